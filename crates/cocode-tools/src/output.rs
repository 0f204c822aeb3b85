//! What a tool answers.

use serde_json::Value;

use crate::hook_files::HookChanges;
use crate::refusal::Refusal;

/// The answer of a tool, also when it says why it did not do what was asked.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    /// For the model to read.
    pub content: Vec<Block>,
    /// The same as data, for tools whose definition has an output schema; a refusal has none.
    pub structured: Option<Value>,
    /// The tool did not do what was asked; the content says why.
    pub is_error: bool,
    /// The sandbox kept the tool from what was asked. Whoever decides may make the call again without:
    /// [`Workspace::unconfined`](crate::Workspace::unconfined).
    pub denial: Option<Denial>,
    /// What a confined command has changed of the files that other programs execute. Undone when it is dropped.
    pub changes: Option<HookChanges>,
}

/// How sure it is that the sandbox was in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// A confined command failed, and its output reads like it. The kernel tells the command alone.
    Likely,
    /// The tool itself refused.
    Certain,
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// The file, in base64 with padding.
        data_base64: String,
        /// Its media type, such as `image/png`.
        mime: &'static str,
    },
}

impl ToolOutput {
    /// Text alone.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::Text(text.into())],
            structured: None,
            is_error: false,
            denial: None,
            changes: None,
        }
    }

    /// Text, and the same as data.
    pub(crate) fn structured(text: impl Into<String>, structured: Value) -> Self {
        Self {
            structured: Some(structured),
            ..Self::text(text)
        }
    }
}

impl From<Refusal> for ToolOutput {
    fn from(refusal: Refusal) -> Self {
        Self {
            is_error: true,
            denial: refusal.is_denial().then_some(Denial::Certain),
            ..Self::text(refusal.to_string())
        }
    }
}
