//! The names people and servers choose: [`ServerName`] and [`ToolName`].
//!
//! What a model may see of them is decided in the `qualified` module, not here.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// The longest server name a configuration may use.
pub const MAX_SERVER_NAME_BYTES: usize = 128;

/// The name under which a user configured a server.
///
/// Not empty, at most [`MAX_SERVER_NAME_BYTES`] bytes and free of control characters; any other
/// text is allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// The name a server gave one of its tools, exactly as it was sent.
///
/// Servers send what they like, so every string is a tool name, the empty one too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// Why a text cannot name a server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidServerName {
    /// The text has no characters.
    #[error("a server name cannot be empty")]
    Empty,
    /// The text is longer than [`MAX_SERVER_NAME_BYTES`].
    #[error("a server name has at most {MAX_SERVER_NAME_BYTES} bytes, this one has {bytes}")]
    TooLong {
        /// The length of the refused text.
        bytes: usize,
    },
    /// The text holds a character that would garble logs and terminals.
    #[error("a server name cannot contain the control character {character:?}")]
    ControlCharacter {
        /// The first such character.
        character: char,
    },
}

impl ServerName {
    /// The name as configured.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = InvalidServerName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(InvalidServerName::Empty);
        }
        if text.len() > MAX_SERVER_NAME_BYTES {
            return Err(InvalidServerName::TooLong { bytes: text.len() });
        }
        if let Some(character) = text.chars().find(|character| character.is_control()) {
            return Err(InvalidServerName::ControlCharacter { character });
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl ToolName {
    /// Wraps the name a server sent.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name as the server knows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ToolName {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for ToolName {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
