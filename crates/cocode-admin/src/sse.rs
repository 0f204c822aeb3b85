//! Server-sent events as text.

use bytes::Bytes;
use cocode_wire::RawJson;
use serde::Serialize;
use serde_json::value::RawValue;

/// Says that a silent stream lives.
pub(crate) const COMMENT: &[u8] = b": still here\n\n";

/// An event. Its data are JSON, which may have been written over several lines by somebody else.
pub(crate) fn event(name: &str, id: Option<u64>, data: &str) -> Bytes {
    let mut text = String::with_capacity(data.len() + 64);
    if let Some(id) = id {
        text.push_str("id: ");
        text.push_str(&id.to_string());
        text.push('\n');
    }
    text.push_str("event: ");
    text.push_str(name);
    text.push('\n');
    // A carriage return alone ends a line, too. In JSON both are only ever space between tokens.
    for line in data.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

/// The JSON of something that always has one.
pub(crate) fn json_text(value: &impl Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(text) => text,
        Err(error) => {
            // Only maps without text keys cannot be written, and there are none.
            tracing::error!(%error, "something of the management API cannot be written as JSON");
            "null".to_owned()
        }
    }
}

/// The same, not as text.
pub(crate) fn raw_json(value: &impl Serialize) -> RawJson {
    RawJson::parse(json_text(value)).unwrap_or_else(|_never| RawValue::NULL.to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::event;

    #[test]
    fn data_of_several_lines_stay_one_event() {
        let text = event("log", Some(7), "{\r\"a\":\n\r\n1}");
        assert_eq!(
            text,
            "id: 7\nevent: log\ndata: {\ndata: \"a\":\ndata: \ndata: \ndata: 1}\n\n"
        );
        assert_eq!(event("hello", None, "{}"), "event: hello\ndata: {}\n\n");
    }
}
