//! What callers write as the arguments of the two tools. What is wrong is said with the name of the
//! argument, so that a model can mend it.

use std::path::PathBuf;
use std::str::FromStr;

use cocode_core::{ApprovalPolicy, SandboxMode, nearest};
use serde_json::{Map, Value};

use super::tools::{BEGIN, BEGIN_KEYS, REPLY, REPLY_KEYS};
use crate::store::ConversationId;

/// What a caller of `cocode` asks for, besides what is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// `model`.
    pub model: Option<String>,
    /// `profile`: a part of the configuration, by name.
    pub profile: Option<String>,
    /// `cwd`: where to work, as it was written.
    pub cwd: Option<PathBuf>,
    /// `approval-policy`.
    pub approval: Option<ApprovalPolicy>,
    /// `sandbox`.
    pub sandbox: Option<SandboxMode>,
    /// `config`: more settings, by the names that they have in the configuration.
    pub config: Map<String, Value>,
    /// `base-instructions`.
    pub base_instructions: Option<String>,
    /// `developer-instructions`.
    pub developer_instructions: Option<String>,
    /// `compact-prompt`.
    pub compact_prompt: Option<String>,
}

/// A call, understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wanted {
    /// A conversation is to begin.
    Begin { prompt: String, asked: Box<Asked> },
    /// A conversation is to go on.
    Reply { id: ConversationId, message: String },
}

/// Reads the arguments of `cocode`.
pub(super) fn begin(arguments: &Map<String, Value>) -> Result<Wanted, String> {
    let reader = Reader::new(BEGIN, BEGIN_KEYS, arguments)?;
    let asked = Asked {
        model: reader.text("model")?,
        profile: reader.text("profile")?,
        cwd: reader.text("cwd")?.map(PathBuf::from),
        approval: reader.word::<ApprovalPolicy>("approval-policy")?,
        sandbox: reader.word::<SandboxMode>("sandbox")?,
        config: reader.object("config")?,
        base_instructions: reader.text("base-instructions")?,
        developer_instructions: reader.text("developer-instructions")?,
        compact_prompt: reader.text("compact-prompt")?,
    };
    Ok(Wanted::Begin {
        prompt: reader.words("prompt")?,
        asked: Box::new(asked),
    })
}

/// Reads the arguments of `cocode-reply`.
pub(super) fn reply(arguments: &Map<String, Value>) -> Result<Wanted, String> {
    let reader = Reader::new(REPLY, REPLY_KEYS, arguments)?;
    let id = reader.words("session_id")?;
    let id = id.trim().parse::<ConversationId>();
    Ok(Wanted::Reply {
        id: id.map_err(|error| format!("`session_id` of `{REPLY}` does not fit: {error}"))?,
        message: reader.words("message")?,
    })
}

struct Reader<'a> {
    tool: &'static str,
    arguments: &'a Map<String, Value>,
}

impl<'a> Reader<'a> {
    fn new(
        tool: &'static str,
        keys: &'static [&'static str],
        arguments: &'a Map<String, Value>,
    ) -> Result<Self, String> {
        let unknown = arguments.keys().find(|key| !keys.contains(&key.as_str()));
        let Some(unknown) = unknown else {
            return Ok(Self { tool, arguments });
        };
        let meant = match nearest(unknown, keys.iter().copied()).first() {
            Some(near) => format!(" Did you mean `{near}`?"),
            None => String::new(),
        };
        let shown: String = unknown.chars().take(60).collect();
        Err(format!(
            "`{tool}` has no argument `{shown}`.{meant} It has: {}.",
            keys.join(", ")
        ))
    }

    /// What is written for a key. Models write `null` for what they leave out.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.arguments.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.misfit(key, "a text", other)),
        }
    }

    /// A text that has to be there, and to say something.
    fn words(&self, key: &str) -> Result<String, String> {
        match self.text(key)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(format!("`{key}` of `{}` is empty.", self.tool)),
            None => Err(format!("`{}` lacks its argument `{key}`.", self.tool)),
        }
    }

    fn word<T: FromStr<Err: std::fmt::Display>>(&self, key: &str) -> Result<Option<T>, String> {
        let Some(word) = self.text(key)? else {
            return Ok(None);
        };
        let misfit = |error| format!("`{key}` of `{}` does not fit: {error}.", self.tool);
        word.parse().map(Some).map_err(misfit)
    }

    fn object(&self, key: &str) -> Result<Map<String, Value>, String> {
        match self.get(key) {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members.clone()),
            Some(other) => Err(self.misfit(key, "an object", other)),
        }
    }

    fn misfit(&self, key: &str, wanted: &str, given: &Value) -> String {
        let given = match given {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        format!(
            "`{key}` of `{}` has to be {wanted}, and is {given}.",
            self.tool
        )
    }
}

#[cfg(test)]
mod tests {
    use cocode_core::{ApprovalPolicy, SandboxMode};
    use serde_json::{Value, json};

    use super::{Wanted, begin, reply};

    fn object(value: &Value) -> serde_json::Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn everything_that_a_caller_may_ask_for_is_read() {
        let wanted = begin(&object(&json!({
            "prompt": "do it",
            "model": "m",
            "profile": "p",
            "cwd": "/w",
            "approval-policy": "never",
            "sandbox": "workspace-write",
            "config": { "a.b": 1 },
            "base-instructions": "b",
            "developer-instructions": "d",
            "compact-prompt": null,
        })));
        let Ok(Wanted::Begin { prompt, asked }) = wanted else {
            panic!("{wanted:?}");
        };
        assert_eq!(prompt, "do it");
        assert_eq!(asked.model.as_deref(), Some("m"));
        assert_eq!(asked.profile.as_deref(), Some("p"));
        assert_eq!(asked.cwd.as_deref(), Some(std::path::Path::new("/w")));
        assert_eq!(asked.approval, Some(ApprovalPolicy::Never));
        assert_eq!(asked.sandbox, Some(SandboxMode::WorkspaceWrite));
        assert_eq!(asked.config.get("a.b"), Some(&json!(1)));
        assert_eq!(asked.base_instructions.as_deref(), Some("b"));
        assert_eq!(asked.developer_instructions.as_deref(), Some("d"));
        assert_eq!(asked.compact_prompt, None);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_name_of_the_argument() {
        for (arguments, told) in [
            (json!({}), "`cocode` lacks its argument `prompt`."),
            (json!({ "prompt": " " }), "`prompt` of `cocode` is empty."),
            (
                json!({ "prompt": 1 }),
                "`prompt` of `cocode` has to be a text, and is a number.",
            ),
            (
                json!({ "prompt": "p", "config": [] }),
                "`config` of `cocode` has to be an object, and is a list.",
            ),
            (json!({ "promt": "p" }), "Did you mean `prompt`?"),
            (json!({ "prompt": "p", "sandbox": "none" }), "`sandbox` of"),
            (
                json!({ "prompt": "p", "approval-policy": "often" }),
                "use untrusted, on-request, on-failure, never",
            ),
        ] {
            let error = begin(&object(&arguments)).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let error = reply(&object(&json!({ "session_id": "x", "message": "m" }))).unwrap_err();
        assert!(error.contains("`session_id`"), "{error}");
        assert!(error.contains("they look like"), "{error}");
    }
}
