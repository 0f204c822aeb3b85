//! What is said in a conversation, as no provider in particular has it. These types are stored, so
//! every member that is added needs a default.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Characters of base64 that an image may have: what the strictest of providers takes.
const MAX_IMAGE_CHARS: usize = 5 * 1024 * 1024;

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

    /// An image, if models can be shown it: one that a provider refuses would be refused with every
    /// request that follows. Else a note that says why it is not there.
    pub fn image(media_type: &str, data: String) -> Self {
        let begins = match media_type {
            "image/png" => "iVBORw0KGgo",
            "image/jpeg" => "/9j/",
            "image/gif" => "R0lGOD",
            "image/webp" => "UklGR",
            _ => {
                let note = "is left out: models are shown PNG, JPEG, GIF and WebP";
                return Self::text(format!("(an image of type `{media_type}` {note})"));
            }
        };
        if !data.starts_with(begins) {
            return Self::text(format!(
                "(what is said to be {media_type} is none, and left out)"
            ));
        }
        if data.len() > MAX_IMAGE_CHARS {
            let size = data.len() / 4 * 3 / 1_000_000;
            return Self::text(format!(
                "(an image of {size} MB is left out: it is too large)"
            ));
        }
        Self::Image {
            media_type: media_type.to_owned(),
            data,
        }
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

#[cfg(test)]
mod tests {
    use super::Block;

    #[test]
    fn only_images_that_providers_take_are_images() {
        let is_image = |media_type: &str, data: &str| {
            matches!(
                Block::image(media_type, data.to_owned()),
                Block::Image { .. }
            )
        };
        assert!(is_image("image/png", "iVBORw0KGgoAAAA"));
        assert!(!is_image("image/png", "/9j/AAAA"));
        assert!(!is_image("image/svg+xml", "PHN2Zz4="));
        assert!(!is_image("image/png", ""));
        let large = format!("/9j/{}", "A".repeat(6 * 1024 * 1024));
        assert!(!is_image("image/jpeg", &large));
    }
}
