//! A correct minimal MCP server of either era: what is answered where no rule says otherwise.
//!
//! Pure: a message in, the text of the answer out.

use serde_json::{Value, json};

use crate::message::Message;
use crate::script::{Era, Script, ToolPages};

pub(crate) const MODERN_VERSION: &str = "2026-07-28";
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const RESOURCE_NOT_FOUND: i64 = -32002;
const UNSUPPORTED_VERSION: i64 = -32022;

/// The server behind the rules.
#[derive(Debug, Clone)]
pub(crate) struct Defaults {
    era: Era,
    tools: Option<ToolPages>,
}

/// What the server does about a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing: it was a notification or an answer.
    Nothing,
    /// This message is the answer; `code` is its error code, if it is an error.
    Answer { text: String, code: Option<i64> },
    /// This notification opens a subscription whose request stays unanswered.
    Subscribed { text: String },
}

/// An error to be: code, message and data.
struct Refusal(i64, String, Value);

impl Refusal {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self(code, message.into(), Value::Null)
    }
}

impl Defaults {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            era: script.era,
            tools: script.tools,
        }
    }

    /// Whether the message is to be treated as one of the modern era.
    pub(crate) fn is_modern(&self, message: &Message) -> bool {
        match self.era {
            Era::Legacy => false,
            Era::Modern => true,
            Era::Dual => message.is("server/discover") || meta(message, VERSION_KEY).is_some(),
        }
    }

    pub(crate) fn react(&self, message: &Message) -> Reaction {
        let (Some(method), Some(id)) = (message.method(), message.id()) else {
            return Reaction::Nothing;
        };
        let modern = self.is_modern(message);
        let outcome = if modern {
            self.modern(method, message)
        } else {
            self.legacy(method, message)
        };
        match outcome {
            Ok(_) if method == "subscriptions/listen" => Reaction::Subscribed {
                text: acknowledgment(id, message),
            },
            Ok(result) => Reaction::Answer {
                text: format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
                code: None,
            },
            Err(Refusal(code, message, data)) => {
                let mut error = json!({"code": code, "message": message});
                if !data.is_null() {
                    error["data"] = data;
                }
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
                Reaction::Answer {
                    text,
                    code: Some(code),
                }
            }
        }
    }

    fn legacy(&self, method: &str, message: &Message) -> Result<String, Refusal> {
        let result = match method {
            "initialize" => initialized(message),
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                json!({})
            }
            "tools/call" => return self.call(message, ""),
            _ => self.shared(method, message)?,
        };
        Ok(result.to_string())
    }

    fn modern(&self, method: &str, message: &Message) -> Result<String, Refusal> {
        if method == "initialize" {
            return Err(unknown_method(method));
        }
        check_meta(message)?;
        let mut result = match method {
            "server/discover" => json!({
                "supportedVersions": [MODERN_VERSION],
                "capabilities": capabilities(),
                "instructions": "A scripted server.",
            }),
            "subscriptions/listen" => json!({}),
            "tools/call" => return self.call(message, r#""resultType":"complete","#),
            _ => self.shared(method, message)?,
        };
        result["resultType"] = json!("complete");
        result["_meta"] = json!({ SERVER_INFO_KEY: server_info() });
        let cacheable =
            method == "server/discover" || method == "resources/read" || method.ends_with("/list");
        if cacheable {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        Ok(result.to_string())
    }

    /// The methods that both eras have in the same form.
    fn shared(&self, method: &str, message: &Message) -> Result<Value, Refusal> {
        let params = message.params();
        let named = |field: &str, name: &str| params[field].as_str() == Some(name);
        Ok(match method {
            "tools/list" => self.tool_page(&params)?,
            "resources/list" => {
                json!({"resources": [{"uri": "scripted://hello", "name": "hello"}]})
            }
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "resources/read" if named("uri", "scripted://hello") => json!({"contents": [
                {"uri": "scripted://hello", "mimeType": "text/plain", "text": "hello"},
            ]}),
            "resources/read" => {
                let code = if self.is_modern(message) {
                    INVALID_PARAMS
                } else {
                    RESOURCE_NOT_FOUND
                };
                return Err(Refusal::new(code, format!("no resource {}", params["uri"])));
            }
            "prompts/list" => json!({"prompts": [{"name": "greet"}]}),
            "prompts/get" if named("name", "greet") => json!({"messages": [
                {"role": "user", "content": {"type": "text", "text": "Say hello."}},
            ]}),
            "prompts/get" => {
                let problem = format!("no prompt {}", params["name"]);
                return Err(Refusal::new(INVALID_PARAMS, problem));
            }
            "completion/complete" => json!({"completion": {"values": ["hello"]}}),
            _ => return Err(unknown_method(method)),
        })
    }

    /// Every tool answers with its arguments, as text and as they are.
    fn call(&self, message: &Message, extra_fields: &str) -> Result<String, Refusal> {
        let name = message.params()["name"].clone();
        if !name.as_str().is_some_and(|name| self.has_tool(name)) {
            return Err(Refusal::new(INVALID_PARAMS, format!("no tool {name}")));
        }
        let arguments = message.raw_arguments();
        let text = Value::from(arguments.as_str());
        Ok(format!(
            r#"{{{extra_fields}"content":[{{"type":"text","text":{text}}}],"structuredContent":{arguments}}}"#
        ))
    }

    fn has_tool(&self, name: &str) -> bool {
        let number = name
            .strip_prefix("tool-")
            .and_then(|number| number.parse().ok());
        match self.tools {
            None => name == "echo",
            Some(ToolPages { count, .. }) => number.is_some_and(|number: usize| number < count),
        }
    }

    fn tool_page(&self, params: &Value) -> Result<Value, Refusal> {
        let Some(ToolPages { count, page_size }) = self.tools else {
            return Ok(json!({"tools": [{
                "name": "echo",
                "description": "Answers with its arguments.",
                "inputSchema": {"type": "object"},
            }]}));
        };
        let first: usize = match &params["cursor"] {
            Value::Null => 0,
            cursor => cursor
                .as_str()
                .and_then(|cursor| cursor.parse().ok())
                .ok_or_else(|| {
                    Refusal::new(INVALID_PARAMS, format!("not one of my cursors: {cursor}"))
                })?,
        };
        let end = count.min(first + page_size);
        let tools: Vec<_> = (first..end)
            .map(|number| {
                json!({
                    "name": format!("tool-{number}"),
                    "description": format!("Tool number {number}."),
                    "inputSchema": {"type": "object"},
                })
            })
            .collect();
        let mut page = json!({"tools": tools});
        if end < count {
            page["nextCursor"] = json!(end.to_string());
        }
        Ok(page)
    }
}

/// Why the headers of a modern HTTP request would be refused, decided by the caller.
pub(crate) fn error_text(message: &Message, code: i64, problem: &str) -> String {
    let id = message.id().unwrap_or("null");
    let error = json!({"code": code, "message": problem});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// The modern protocol version that the message names.
pub(crate) fn version_in_meta(message: &Message) -> Option<String> {
    meta(message, VERSION_KEY)?.as_str().map(str::to_owned)
}

fn meta(message: &Message, key: &str) -> Option<Value> {
    message.params().get("_meta")?.get(key).cloned()
}

fn check_meta(message: &Message) -> Result<(), Refusal> {
    let Some(version) = version_in_meta(message) else {
        return Err(Refusal::new(
            INVALID_PARAMS,
            format!("_meta lacks {VERSION_KEY}"),
        ));
    };
    if version != MODERN_VERSION {
        let data = json!({"supported": [MODERN_VERSION], "requested": version});
        let problem = "unsupported protocol version".to_owned();
        return Err(Refusal(UNSUPPORTED_VERSION, problem, data));
    }
    if !meta(message, CAPABILITIES_KEY).is_some_and(|capabilities| capabilities.is_object()) {
        return Err(Refusal::new(
            INVALID_PARAMS,
            format!("_meta lacks {CAPABILITIES_KEY}"),
        ));
    }
    Ok(())
}

fn acknowledgment(id: &str, message: &Message) -> String {
    let filter = message.params()["notifications"].clone();
    let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION_KEY}":{id}}},"notifications":{filter}}}"#);
    let method = "notifications/subscriptions/acknowledged";
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

fn initialized(message: &Message) -> Value {
    let requested = message.params()["protocolVersion"].clone();
    let known = requested
        .as_str()
        .is_some_and(|version| LEGACY_VERSIONS.contains(&version));
    let version = if known {
        requested
    } else {
        json!("2025-11-25")
    };
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": "A scripted server.",
    })
}

fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    })
}

fn server_info() -> Value {
    json!({"name": "scripted", "version": "1.0.0"})
}

fn unknown_method(method: &str) -> Refusal {
    Refusal::new(METHOD_NOT_FOUND, format!("no method {method}"))
}
