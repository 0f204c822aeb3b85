//! What the providers of models publish about the schemas of tools, as checks over definitions.
//!
//! Nothing here knows how a schema is converted. The rules are those of the guides and references of
//! the providers, and of the errors that their interfaces answer with where those are silent:
//!
//! - **openai** and **plain**: the name, 1024 characters of description ("string too long. Expected a
//!   string with maximum length 1024"), "schema must have type 'object' and not have
//!   'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", "array schema missing items", "object
//!   schema missing properties", "is not a valid format". Plain ones have no references, no lists of
//!   types and no limit of 1024.
//! - **openai-strict**: besides, the guide to structured outputs: the keywords, every property
//!   required, no additional ones, 5,000 properties, 10 levels, 1,000 values, 120,000 characters.
//! - **anthropic**: valid JSON Schema 2020-12, "`input_schema` does not support oneOf, allOf, or anyOf
//!   at the top level", "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".
//! - **gemini**: the fields of `Schema` in the reference, "should be non-empty for OBJECT type", "only
//!   'enum' and 'date-time' are supported for STRING type", "enum: only allowed for STRING type",
//!   "cannot be empty", "When using `any_of`, it must be the only field set", "items: missing field",
//!   "property is not defined", "Invalid function name".

mod gemini;
mod json_schema;
mod strict;

use serde_json::Value;

use json_schema::Provider;

/// What a provider would refuse in the definition of a tool. The dialect is one of `openai`,
/// `openai-strict`, `anthropic`, `gemini` and `plain`; the definition is in that provider's wire form.
pub fn violations(dialect: &str, definition: &Value) -> Vec<String> {
    let mut report = Report::default();
    match dialect {
        "openai" | "openai-strict" => {
            report.envelope(definition, "parameters", Some(1024));
            let is_strict = dialect == "openai-strict";
            if definition.get("type") != Some(&Value::from("function")) {
                report.add("", "is no function");
            }
            if definition.get("strict") != Some(&Value::from(is_strict)) {
                report.add("", "says something else about strictness");
            }
            let schema = definition.get("parameters").unwrap_or(&Value::Null);
            json_schema::check(&mut report, schema, Provider::OpenAi);
            if is_strict {
                strict::check(&mut report, schema);
            }
        }
        "anthropic" => {
            report.envelope(definition, "input_schema", None);
            let schema = definition.get("input_schema").unwrap_or(&Value::Null);
            json_schema::check(&mut report, schema, Provider::Anthropic);
        }
        "plain" => {
            report.envelope(definition, "parameters", None);
            let schema = definition.get("parameters").unwrap_or(&Value::Null);
            json_schema::check(&mut report, schema, Provider::Plain);
        }
        "gemini" => {
            report.gemini_envelope(definition);
            if let Some(schema) = definition.get("parameters") {
                gemini::check(&mut report, schema);
            }
        }
        other => report.add("", &format!("there is no dialect {other}")),
    }
    report.found
}

#[derive(Debug, Default)]
struct Report {
    found: Vec<String>,
}

impl Report {
    fn add(&mut self, place: &str, what: &str) {
        self.found.push(format!("{place}: {what}"));
    }

    fn envelope(&mut self, definition: &Value, schema: &str, limit: Option<usize>) {
        self.name(definition, |letter| {
            letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
        });
        self.fields(
            definition,
            &["type", "name", "description", "strict", schema],
        );
        let description = definition.get("description").and_then(Value::as_str);
        let length = description.unwrap_or_default().chars().count();
        if limit.is_some_and(|limit| length > limit) {
            self.add("/description", &format!("is {length} characters long"));
        }
    }

    fn gemini_envelope(&mut self, definition: &Value) {
        self.name(definition, |letter| {
            letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
        });
        let name = definition.get("name").and_then(Value::as_str);
        let is_initial = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        if !name.unwrap_or_default().starts_with(is_initial) {
            self.add("/name", "starts with neither a letter nor an underscore");
        }
        self.fields(definition, &["name", "description", "parameters"]);
        if definition.get("description") == Some(&Value::from("")) {
            self.add("/description", "is required");
        }
    }

    fn name(&mut self, definition: &Value, is_allowed: impl Fn(char) -> bool) {
        let name = definition
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_allowed) {
            self.add("/name", &format!("is not allowed: {name}"));
        }
    }

    fn fields(&mut self, definition: &Value, known: &[&str]) {
        for key in definition
            .as_object()
            .into_iter()
            .flat_map(|members| members.keys())
        {
            if !known.contains(&key.as_str()) {
                self.add("", &format!("unknown field {key}"));
            }
        }
        let description = definition.get("description");
        if !description.is_some_and(Value::is_string) {
            self.add("/description", "is missing");
        }
    }
}

/// Whether a key is one that Anthropic takes.
fn is_key(key: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    (1..=64).contains(&key.len()) && key.chars().all(is_allowed)
}

#[cfg(test)]
#[path = "provider_rules_tests.rs"]
mod tests;
