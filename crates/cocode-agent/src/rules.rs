//! What the rules of user and organization say: the seam to whoever has them.

use cocode_core::{Hints, Ruled, ToolRef};

/// Permission rules. Asked before every call, and about every tool that a model is to be shown.
pub trait Rules: Send + Sync {
    /// What they say of a tool.
    fn ruling(&self, tool: ToolRef<'_>, hints: Hints) -> Ruling;

    /// Whether an answer about this tool may be remembered.
    fn can_remember(&self, tool: ToolRef<'_>) -> bool;

    /// Remembers that a tool may always be used. What is wrong is said for people.
    fn remember(&self, tool: ToolRef<'_>) -> Result<(), String>;
}

/// What the rules say of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// What.
    pub ruled: Ruled,
    /// Whether a rule or a remembered answer that names the tool or its server says so.
    pub is_named: bool,
    /// Because of which rule, and where it is written: the end of a sentence.
    pub why: String,
}

/// No rules at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRules;

impl Rules for NoRules {
    fn ruling(&self, _tool: ToolRef<'_>, _hints: Hints) -> Ruling {
        Ruling {
            ruled: Ruled::Nothing,
            is_named: false,
            why: String::new(),
        }
    }

    fn can_remember(&self, _tool: ToolRef<'_>) -> bool {
        false
    }

    fn remember(&self, _tool: ToolRef<'_>) -> Result<(), String> {
        Err("there is no place to remember answers in".to_owned())
    }
}
