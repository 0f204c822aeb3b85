//! Text with variables, filled from the message that triggered a rule.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Message;

/// Text that a script sends, broken JSON included.
///
/// These variables are replaced by JSON text, and `$$` by one dollar sign. A variable that is a
/// whole JSON string, such as `"$id"`, is replaced together with its quotes, so that templates can
/// be written with `json!`.
///
/// | variable | becomes |
/// |---|---|
/// | `$id` | the id of the request, verbatim; `null` for a notification |
/// | `$token` | its progress token, verbatim |
/// | `$params` | its params, verbatim |
/// | `$arguments` | the tool arguments in its params, verbatim |
/// | `$method` | its method, as a JSON string |
/// | `$n` | how often the rule has matched, this time included |
/// | `$run` | the number of the process or connection, from one |
/// | `$answer` | the whole message that answered the last `ask` |
/// | `$pids` | the process ids of the last `fork`, as an array |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template(String);

impl From<&str> for Template {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Template {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Value> for Template {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

impl Template {
    /// A template that becomes exactly this text.
    pub(crate) fn literal(text: &str) -> Self {
        Self(text.replace('$', "$$"))
    }

    /// The text without any variables replaced.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the variables stand for while one rule runs.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) message: Message,
    count: u32,
    pub(crate) answer: String,
    pub(crate) pids: String,
}

impl Scope {
    /// The variables of a rule that the message triggered for the `count`th time.
    pub(crate) fn of(message: &Message, count: u32) -> Self {
        Self {
            message: message.clone(),
            count,
            answer: "null".to_owned(),
            pids: "[]".to_owned(),
        }
    }

    /// The template with its variables replaced.
    pub(crate) fn fill(&self, template: &Template) -> String {
        let mut filled = String::with_capacity(template.0.len());
        let mut rest = template.0.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            if let Some(after) = after.strip_prefix('$') {
                filled.push_str(before);
                filled.push('$');
                rest = after;
                continue;
            }
            let end = after.find(|character: char| !character.is_ascii_alphabetic());
            let (name, tail) = after.split_at(end.unwrap_or(after.len()));
            if let Some(value) = self.variable(name) {
                let quoted = before.strip_suffix('"').zip(tail.strip_prefix('"'));
                let (before, tail) = quoted.unwrap_or((before, tail));
                filled.push_str(before);
                filled.push_str(&value);
                rest = tail;
            } else {
                filled.push_str(before);
                filled.push('$');
                rest = after;
            }
        }
        filled.push_str(rest);
        filled
    }

    fn variable(&self, name: &str) -> Option<String> {
        let message = &self.message;
        Some(match name {
            "id" => message.id().unwrap_or("null").to_owned(),
            "token" => message.params()["_meta"]["progressToken"].to_string(),
            "params" => message.raw_params().unwrap_or("null").to_owned(),
            "arguments" => message.raw_arguments(),
            "method" => Value::from(message.method()).to_string(),
            "n" => self.count.to_string(),
            "run" => message.run.to_string(),
            "answer" => self.answer.clone(),
            "pids" => self.pids.clone(),
            _ => return None,
        })
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
