//! JSON as text, for what is said to models: this room decodes nothing, and needs no more than this.

/// Adds a text as a JSON string.
pub(super) fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            control if control < ' ' => {
                let escape = format!("\\u{:04x}", u32::from(control));
                json.push_str(&escape);
            }
            other => json.push(other),
        }
    }
    json.push('"');
}

/// Adds a member whose value is JSON already, with a comma before it unless it is the first.
pub(super) fn push_member(json: &mut String, key: &str, value: &str) {
    if !json.ends_with('{') {
        json.push(',');
    }
    push_string(json, key);
    json.push(':');
    json.push_str(value);
}

/// A text as a JSON string.
pub(super) fn string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    json
}
