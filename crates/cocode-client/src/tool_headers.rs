//! Tool arguments that travel as headers too: `x-mcp-header` in a tool's input schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cocode_wire::{RawJson, header_text, header_value};
use http::{HeaderMap, HeaderName};
use serde_json::Value;

const ANNOTATION: &str = "x-mcp-header";

/// The largest integer that every JSON reader takes exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// How deep a schema is searched for annotations.
const MAX_DEPTH: usize = 64;

/// Which arguments of which tools are mirrored; learned from the lists a server sends.
#[derive(Debug, Default)]
pub(crate) struct ToolHeaders(Mutex<HashMap<String, Arc<[Mirrored]>>>);

/// One argument that is mirrored into a header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mirrored {
    header: HeaderName,
    /// The property names that lead to it.
    path: Vec<String>,
}

impl ToolHeaders {
    /// Replaces all that was known: what is listed no more is mirrored no more.
    pub(crate) fn learn(&self, tools: HashMap<String, Arc<[Mirrored]>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    /// The headers for a call of `tool`.
    pub(crate) fn headers(&self, tool: &str, arguments: Option<&RawJson>) -> HeaderMap {
        let known = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(tool)
            .cloned();
        let mut headers = HeaderMap::new();
        let (Some(known), Some(arguments)) = (known, arguments) else {
            return headers;
        };
        let Ok(arguments) = arguments.decode::<Value>() else {
            return headers;
        };
        for mirrored in known.iter() {
            let mut steps = mirrored.path.iter();
            let found = steps.try_fold(&arguments, |at, step| at.get(step));
            if let Some(text) = found.and_then(text_of) {
                headers.insert(mirrored.header.clone(), header_value(&text));
            }
        }
        headers
    }
}

/// What is wrong with the headers of a call, given the schema of its tool: one that is missing, one
/// too many, or one that says something else than the argument. Nothing if they agree, or if the
/// schema wants no headers.
pub fn mirrored_mismatch(
    schema: &RawJson,
    headers: &HeaderMap,
    arguments: Option<&RawJson>,
) -> Option<String> {
    let mirrored = mirrored_in(schema).ok()?;
    if mirrored.is_empty() {
        return None;
    }
    let arguments = arguments.and_then(|arguments| arguments.decode::<Value>().ok());
    mirrored.iter().find_map(|Mirrored { header, path }| {
        let value = arguments.as_ref();
        let value = value.and_then(|value| path.iter().try_fold(value, |at, step| at.get(step)));
        let expected = value.and_then(text_of);
        let Some(given) = headers.get(header) else {
            return expected.map(|_| format!("Header mismatch: `{header}` is missing"));
        };
        let Some(given) = header_text(given) else {
            return Some(format!("Header mismatch: `{header}` is no valid value"));
        };
        let Some(expected) = expected else {
            return Some(format!(
                "Header mismatch: `{header}` has no argument in the body"
            ));
        };
        let is_same = given == expected
            || value.is_some_and(Value::is_number) && is_same_number(&given, &expected);
        (!is_same).then(|| format!("Header mismatch: `{header}` differs from its argument"))
    })
}

fn is_same_number(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    matches!((number(one), number(other)), (Some(one), Some(other)) if (one - other).abs() < f64::EPSILON)
}

/// The text of an argument that can be mirrored.
fn text_of(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|n| n.fract() == 0.0 && !number.is_f64());
            let safe = number
                .as_i64()
                .is_some_and(|n| n.unsigned_abs() <= MAX_SAFE_INTEGER);
            // A float that is whole is the same integer, spelled otherwise.
            match (whole, safe) {
                (Some(_), true) => Some(number.to_string()),
                _ => number
                    .as_f64()
                    .filter(|n| n.fract() == 0.0)
                    .map(|n| format!("{n:.0}")),
            }
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The annotations of a schema, or why they make its tool unusable over HTTP.
pub(crate) fn mirrored_in(schema: &RawJson) -> Result<Vec<Mirrored>, String> {
    if !schema.as_str().contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    let schema: Value = schema.decode().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    collect(&schema, &mut Vec::new(), true, &mut found)?;
    Ok(found)
}

/// Walks the whole schema; `reachable` says whether only `properties` led here.
fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    reachable: bool,
    found: &mut Vec<Mirrored>,
) -> Result<(), String> {
    if path.len() > MAX_DEPTH {
        return Err("its schema is nested too deeply".into());
    }
    let Value::Object(members) = schema else {
        let Value::Array(items) = schema else {
            return Ok(());
        };
        return items
            .iter()
            .try_for_each(|item| collect(item, path, false, found));
    };
    if let Some(annotation) = members.get(ANNOTATION) {
        if !reachable || path.is_empty() {
            return Err(format!(
                "`{ANNOTATION}` stands where no argument can be found"
            ));
        }
        found.push(check(annotation, members.get("type"), path, found)?);
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect(property, path, reachable, found)?;
                    path.pop();
                }
            }
            // Data, not schemas.
            ("enum" | "const" | "default" | "examples", _) => {}
            _ => collect(value, path, false, found)?,
        }
    }
    Ok(())
}

fn check(
    annotation: &Value,
    kind: Option<&Value>,
    path: &[String],
    found: &[Mirrored],
) -> Result<Mirrored, String> {
    let Some(name) = annotation.as_str().filter(|name| !name.is_empty()) else {
        return Err(format!("`{ANNOTATION}` is not a name"));
    };
    let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes());
    let Ok(header) = header else {
        return Err(format!("`{name}` is not a header name"));
    };
    if !matches!(
        kind.and_then(Value::as_str),
        Some("string" | "integer" | "boolean")
    ) {
        return Err(format!(
            "the argument for header `{name}` is not a string, integer or boolean"
        ));
    }
    if found.iter().any(|other| other.header == header) {
        return Err(format!("two arguments want the header `{name}`"));
    }
    Ok(Mirrored {
        header,
        path: path.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use cocode_wire::RawJson;
    use serde_json::{Value, json};

    use super::{ToolHeaders, mirrored_in};

    fn schema(properties: &Value) -> RawJson {
        RawJson::of(&json!({ "type": "object", "properties": properties })).unwrap()
    }

    #[test]
    fn arguments_become_headers_at_any_depth_of_properties() {
        let schema = schema(&json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "flag": { "type": "boolean", "x-mcp-header": "Flag" },
            "absent": { "type": "string", "x-mcp-header": "Absent" },
            "empty": { "type": "string", "x-mcp-header": "Empty" },
            "nothing": { "type": "string", "x-mcp-header": "Nothing" },
            "deep": { "type": "object", "properties": {
                "count": { "type": "integer", "x-mcp-header": "Count" },
            } },
        }));
        let headers = ToolHeaders::default();
        let mirrored = mirrored_in(&schema).unwrap().into();
        headers.learn(HashMap::from([("t".to_owned(), mirrored)]));
        let arguments = json!({
            "region": "us west", "flag": false, "empty": "", "nothing": null, "deep": { "count": -7 },
        });
        let sent = headers.headers("t", Some(&RawJson::of(&arguments).unwrap()));
        let mut sent: Vec<_> = sent
            .iter()
            .map(|(n, v)| format!("{n}: {}", v.to_str().unwrap()))
            .collect();
        sent.sort();
        assert_eq!(
            sent,
            [
                "mcp-param-count: -7",
                "mcp-param-empty: ",
                "mcp-param-flag: false",
                "mcp-param-region: us west"
            ]
        );
        assert!(
            headers
                .headers("other", Some(&RawJson::of(&arguments).unwrap()))
                .is_empty()
        );
    }

    #[test]
    fn bad_annotations_make_the_tool_unusable() {
        for bad in [
            json!({ "a": { "type": "string", "x-mcp-header": "" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "My Region" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "Région" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a\nb" } }),
            json!({ "a": { "type": "string", "x-mcp-header": 5 } }),
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "object", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "A" },
                    "b": { "type": "string", "x-mcp-header": "a" } }),
            json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } }),
            json!({ "a": { "anyOf": [{ "type": "string", "x-mcp-header": "A" }] } }),
        ] {
            assert!(mirrored_in(&schema(&bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_schema_that_only_mentions_the_word_is_fine() {
        let plain = schema(&json!({ "a": { "type": "string", "description": "an x-mcp-header" } }));
        assert_eq!(mirrored_in(&plain).unwrap(), []);
    }
}
