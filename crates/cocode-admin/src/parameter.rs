//! What may stand in the query of an address, and reading it. What is not known is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use url::form_urlencoded;

use crate::refusal::{Refusal, RefusalStatus};

/// A parameter of a query. All of them can be left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: ParameterKind,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParameterKind {
    /// A whole number in these bounds.
    Count {
        least: usize,
        most: usize,
        otherwise: usize,
    },
    /// Text of at most so many characters.
    Text { most: usize },
    /// `true` or `false`; the latter unless given.
    Flag,
}

impl Parameter {
    /// How it is described.
    pub(crate) fn description(&self) -> Value {
        let schema = match self.kind {
            ParameterKind::Count {
                least,
                most,
                otherwise,
            } => {
                json!({ "type": "integer", "minimum": least, "maximum": most, "default": otherwise })
            }
            ParameterKind::Text { most } => json!({ "type": "string", "maxLength": most }),
            ParameterKind::Flag => json!({ "type": "boolean", "default": false }),
        };
        json!({
            "name": self.name, "in": "query", "required": false, "description": self.about,
            "schema": schema,
        })
    }

    fn check(&self, value: &str) -> Result<(), Refusal> {
        let (fits, wanted) = match self.kind {
            ParameterKind::Count { least, most, .. } => (
                number(value).is_some_and(|count| (least..=most).contains(&count)),
                format!("a whole number from {least} to {most}"),
            ),
            ParameterKind::Text { most } => (
                value.chars().count() <= most,
                format!("a text of at most {most} characters"),
            ),
            ParameterKind::Flag => (
                matches!(value, "true" | "false"),
                "`true` or `false`".to_owned(),
            ),
        };
        if fits {
            return Ok(());
        }
        let message = format!("the parameter `{}` has to be {wanted}", self.name);
        Err(malformed("query-unfit", message))
    }
}

/// The parameters of a request.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<&'static str, String>);

impl Query {
    /// Reads a query of which these parameters may be part, each once.
    pub(crate) fn parse(query: Option<&str>, known: &[Parameter]) -> Result<Self, Refusal> {
        let mut values = BTreeMap::new();
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let Some(parameter) = known.iter().find(|known| known.name == key) else {
                // The value is not repeated: it may be a token that somebody has put there.
                let message = "the address has a parameter that is not known here";
                let names: Vec<_> = known.iter().map(|known| known.name).collect();
                let hint = match names.as_slice() {
                    [] => "there are no parameters here".to_owned(),
                    names => format!("these are known: {}", names.join(", ")),
                };
                return Err(malformed("query-unknown", message.to_owned()).hint(hint));
            };
            parameter.check(&value)?;
            if values.insert(parameter.name, value.into_owned()).is_some() {
                let message = format!("the parameter `{}` is there twice", parameter.name);
                return Err(malformed("query-twice", message));
            }
        }
        Ok(Self(values))
    }

    /// The number that a parameter says, or what it is otherwise.
    pub(crate) fn count(&self, parameter: &Parameter) -> usize {
        let said = self.0.get(parameter.name).and_then(|value| number(value));
        let otherwise = match parameter.kind {
            ParameterKind::Count { otherwise, .. } => otherwise,
            ParameterKind::Text { most } => most,
            ParameterKind::Flag => 0,
        };
        said.unwrap_or(otherwise)
    }

    /// Whether a parameter says so.
    pub(crate) fn is_set(&self, parameter: &Parameter) -> bool {
        self.text(parameter) == "true"
    }

    /// The text that a parameter says.
    pub(crate) fn text(&self, parameter: &Parameter) -> &str {
        self.0.get(parameter.name).map_or("", String::as_str)
    }
}

fn number(text: &str) -> Option<usize> {
    let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| are_digits)
}

fn malformed(code: &str, message: String) -> Refusal {
    Refusal::new(RefusalStatus::Malformed, code, message)
}

#[cfg(test)]
mod tests {
    use super::{Parameter, ParameterKind, Query};

    const LIMIT: Parameter = Parameter {
        name: "limit",
        about: "How many.",
        kind: ParameterKind::Count {
            least: 1,
            most: 50,
            otherwise: 5,
        },
    };
    const WORDS: Parameter = Parameter {
        name: "words",
        about: "Which.",
        kind: ParameterKind::Text { most: 4 },
    };

    const FULL: Parameter = Parameter {
        name: "full",
        about: "Whether all.",
        kind: ParameterKind::Flag,
    };

    #[test]
    fn what_is_known_is_read() {
        let read = |query| Query::parse(query, &[LIMIT, WORDS, FULL]).unwrap();
        assert!(read(Some("full=true")).is_set(&FULL));
        assert!(!read(Some("full=false")).is_set(&FULL) && !read(None).is_set(&FULL));
        assert_eq!(read(None).count(&LIMIT), 5);
        assert_eq!(read(Some("")).text(&WORDS), "");
        let both = read(Some("words=a+%C3%A9b&limit=50"));
        assert_eq!((both.count(&LIMIT), both.text(&WORDS)), (50, "a éb"));
    }

    #[test]
    fn everything_else_is_refused_and_not_repeated() {
        for (query, code) in [
            ("limit=0", "query-unfit"),
            ("limit=51", "query-unfit"),
            ("limit=", "query-unfit"),
            ("limit", "query-unfit"),
            ("limit=+5", "query-unfit"),
            ("limit=5.0", "query-unfit"),
            ("limit=99999999999999999999999", "query-unfit"),
            ("limit=5&limit=5", "query-twice"),
            ("words=abcde", "query-unfit"),
            ("full=1", "query-unfit"),
            ("full", "query-unfit"),
            ("access_token=hunter2", "query-unknown"),
            ("Limit=5", "query-unknown"),
        ] {
            let refusal = Query::parse(Some(query), &[LIMIT, WORDS, FULL]).unwrap_err();
            assert_eq!(refusal.code, code, "{query}");
            assert!(!format!("{refusal:?}").contains("hunter2"));
        }
        let refusal = Query::parse(Some("x=1"), &[LIMIT, WORDS]).unwrap_err();
        assert_eq!(refusal.hints, ["these are known: limit, words"]);
    }
}
