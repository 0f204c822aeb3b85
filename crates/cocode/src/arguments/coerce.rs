//! Turns the text of one value into the JSON that a schema asks for.
//!
//! Where several types are allowed, the most special one that the text fits wins; a string comes
//! last, because every text is one. Where nothing is said, a text stays a string.

use serde_json::Value;
use serde_json::value::RawValue;

use super::object::quoted;
use super::schema::{Form, InputSchema};

/// Numbers whose digits are all there: beyond this, a float no longer knows whether it is whole.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The JSON of a text from the command line, or nothing if it does not fit.
pub(crate) fn text(schema: &InputSchema, property: &Value, text: &str) -> Option<String> {
    let mut forms = schema.forms(property);
    forms.sort_by_key(rank);
    let fitting = forms.iter().find_map(|form| fit(form, text));
    // One plain value where only a list will do is a list of one.
    fitting.or_else(|| {
        let mut items = forms.iter().filter_map(|form| match form {
            Form::Array(items) => Some(*items),
            _ => None,
        });
        items.find_map(|items| list(schema, items, &[Element::Text(text)]))
    })
}

/// The JSON of a file's text: a string wherever a string will do.
pub(crate) fn file_text(schema: &InputSchema, property: &Value, content: &str) -> Option<String> {
    let forms = schema.forms(property);
    if forms
        .iter()
        .any(|form| matches!(form, Form::String | Form::Any))
    {
        return Some(quoted(content));
    }
    text(schema, property, content.trim())
}

/// One of several values that were given for one name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Element<'a> {
    Text(&'a str),
    FileText(&'a str),
    Json(&'a str),
}

/// The JSON list of several values, or nothing if no list is wanted or one of them does not fit.
pub(crate) fn several(
    schema: &InputSchema,
    property: &Value,
    values: &[Element<'_>],
) -> Option<String> {
    schema.forms(property).iter().find_map(|form| match form {
        Form::Array(items) => list(schema, *items, values),
        _ => None,
    })
}

fn list(schema: &InputSchema, items: Option<&Value>, values: &[Element<'_>]) -> Option<String> {
    let anything = Value::Bool(true);
    let items = items.unwrap_or(&anything);
    let element = |value: &Element<'_>| match value {
        Element::Text(given) => text(schema, items, given),
        Element::FileText(content) => file_text(schema, items, content),
        Element::Json(json) => Some((*json).to_owned()),
    };
    let values: Option<Vec<String>> = values.iter().map(element).collect();
    Some(format!("[{}]", values?.join(",")))
}

/// The order in which forms are tried.
fn rank(form: &Form<'_>) -> u8 {
    match form {
        Form::Choice(_) => 0,
        Form::Null => 1,
        Form::Boolean => 2,
        Form::Integer => 3,
        Form::Number => 4,
        Form::Array(_) => 5,
        Form::Object => 6,
        Form::String => 7,
        Form::Any => 8,
    }
}

fn fit(form: &Form<'_>, text: &str) -> Option<String> {
    let verbatim = |fits: bool| fits.then(|| text.to_owned());
    match form {
        Form::Choice(values) => choose(values, text),
        Form::Null => verbatim(text == "null"),
        Form::Boolean => verbatim(matches!(text, "true" | "false")),
        Form::Integer => verbatim(is_number(text) && is_whole(text)),
        Form::Number => verbatim(is_number(text)),
        Form::Array(_) => verbatim(is_json_beginning_with(text, '[')),
        Form::Object => verbatim(is_json_beginning_with(text, '{')),
        Form::String | Form::Any => Some(quoted(text)),
    }
}

/// The choice that a text means: the string of this text, or the value whose JSON it is.
fn choose(values: &[&Value], text: &str) -> Option<String> {
    if values.iter().any(|value| value.as_str() == Some(text)) {
        return Some(quoted(text));
    }
    let given: Value = serde_json::from_str(text).ok()?;
    let same = |value: &&&Value| ***value == given && !value.is_string();
    values.iter().find(same).map(|_| text.to_owned())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

fn is_json_beginning_with(text: &str, first: char) -> bool {
    text.trim_start().starts_with(first) && is_json(text)
}

/// Whether a text is a JSON number, of whatever size.
pub(crate) fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && text.ends_with(|last: char| last.is_ascii_digit())
        && is_json(text)
}

/// Whether a JSON number has no fraction.
pub(crate) fn is_whole(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    let value: Option<f64> = number.parse().ok();
    value.is_some_and(|value| value.fract() == 0.0 && value.abs() <= MAX_WHOLE)
}
