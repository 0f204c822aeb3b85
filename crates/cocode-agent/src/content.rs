//! What is said in a conversation, as no provider in particular has it. These types are stored, so
//! every member that is added needs a default.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, and the tools.
    User,
    /// The model.
    Assistant,
}

/// Something said in one go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// By whom.
    pub role: Role,
    /// What.
    pub content: Vec<Block>,
}

/// A piece of what is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// Base64.
        data: String,
    },
    /// What a model thought before it spoke.
    Reasoning {
        /// What may be read of it.
        text: String,
        /// The provider that it belongs to: no other is shown it.
        provider: String,
        /// What the provider wants back, as it came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// A model wants a tool to be called.
    ToolCall(ToolCall),
    /// What became of that.
    ToolResult(ToolResult),
}

/// A model wants a tool to be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for the call.
    pub id: String,
    /// The tool, by the name that the model was shown.
    pub name: String,
    /// With what.
    pub arguments: Arguments,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A JSON value.
    Json(Value),
    /// What a model wrote that is no JSON, as it wrote it.
    Malformed(String),
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The model's name for the call.
    pub id: String,
    /// Texts and images.
    pub content: Vec<Block>,
    /// The tool did not do what was asked; the content says why.
    #[serde(default)]
    pub is_error: bool,
}

impl Block {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

impl Message {
    /// What a person says.
    pub fn user(content: Vec<Block>) -> Self {
        let role = Role::User;
        Self { role, content }
    }

    /// What a model says.
    pub fn assistant(content: Vec<Block>) -> Self {
        let role = Role::Assistant;
        Self { role, content }
    }

    /// The calls in it, in their order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        tool_calls(&self.content)
    }
}

impl Arguments {
    /// Reads what a model wrote. Nothing at all means no arguments.
    pub fn read(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Json(Value::Object(serde_json::Map::new()));
        }
        match serde_json::from_str(text) {
            Ok(value) => Self::Json(value),
            Err(_no_json) => Self::Malformed(text.to_owned()),
        }
    }

    /// As a JSON object, where a provider takes nothing else.
    pub fn to_object(&self) -> Value {
        match self {
            Self::Json(value @ Value::Object(_)) => value.clone(),
            Self::Json(Value::Null) => Value::Object(serde_json::Map::new()),
            Self::Json(other) => serde_json::json!({ "malformed": other.to_string() }),
            Self::Malformed(text) => serde_json::json!({ "malformed": text }),
        }
    }

    /// As text, as the model wrote it or would write it.
    pub fn to_text(&self) -> String {
        match self {
            Self::Json(value) => value.to_string(),
            Self::Malformed(text) => text.clone(),
        }
    }
}

/// The calls among blocks, in their order.
pub fn tool_calls(blocks: &[Block]) -> impl Iterator<Item = &ToolCall> {
    blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    })
}

/// All text of blocks, paragraphs apart.
pub fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join("\n\n")
}
