//! Sketches in one line what a value looks like, where a schema cannot.

use super::node::{Kind, Node, Number, Object, Rest};
use super::words;

/// How many levels of a value are sketched.
const MAX_LEVELS: usize = 3;
/// How many keys or alternatives are sketched.
const MAX_MEMBERS: usize = 12;
/// The longest sketch, in characters.
const MAX_CHARS: usize = 200;

/// Such as `{"name": string, "size"?: integer}`.
pub(super) fn outline(node: &Node) -> String {
    words::cut(&sketch(node, MAX_LEVELS), MAX_CHARS).0
}

fn sketch(node: &Node, levels: usize) -> String {
    if node.open {
        return "any value".to_owned();
    }
    let mut forms: Vec<String> = Vec::new();
    for form in node.forms.iter().take(MAX_MEMBERS) {
        let text = match &form.kind {
            Kind::Null => "null".to_owned(),
            Kind::Boolean => "boolean".to_owned(),
            Kind::Text(_) => "string".to_owned(),
            Kind::Number(Number { integer: true, .. }) => "integer".to_owned(),
            Kind::Number(_) => "number".to_owned(),
            Kind::Choice(values) => words::list(values.iter().take(MAX_MEMBERS)),
            Kind::Again(_) => "…".to_owned(),
            Kind::Array(_) | Kind::Object(_) if levels == 0 => "…".to_owned(),
            Kind::Array(array) => {
                let items = array.prefix.iter().map(|item| sketch(item, levels - 1));
                let mut items: Vec<String> = items.take(MAX_MEMBERS).collect();
                if !array.rest.is_never() {
                    items.push(format!("{}, …", sketch(&array.rest, levels - 1)));
                }
                format!("[{}]", items.join(", "))
            }
            Kind::Object(object) => sketch_object(object, levels - 1),
        };
        if !forms.contains(&text) {
            forms.push(text);
        }
    }
    forms.join(" or ")
}

fn sketch_object(object: &Object, levels: usize) -> String {
    let members = object.properties.iter().map(|(key, node)| {
        let mark = if object.required.contains(key) {
            ""
        } else {
            "?"
        };
        format!("{key:?}{mark}: {}", sketch(node, levels))
    });
    let mut members: Vec<String> = members.take(MAX_MEMBERS).collect();
    match &object.rest {
        Rest::Open(rest) => members.push(format!("any key: {}", sketch(rest, levels))),
        Rest::Unsaid if members.is_empty() => members.push("any key: any value".to_owned()),
        Rest::Closed | Rest::Unsaid => {}
    }
    format!("{{{}}}", members.join(", "))
}
