//! [`Wildcard`]: text in which `*` stands for anything. Knows nothing of what the text names.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Text in which `*` matches any run of characters, the empty one too, and everything else matches
/// only itself. Upper and lower case differ, and there is no way to mean a star alone.
///
/// ```
/// use cocode_core::Wildcard;
///
/// let pattern = Wildcard::new("create_*");
/// assert!(pattern.matches("create_issue"));
/// assert!(!pattern.matches("recreate_issue"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wildcard(Arc<str>);

impl Wildcard {
    /// Takes any text as a pattern.
    pub fn new(pattern: impl Into<Arc<str>>) -> Self {
        Self(pattern.into())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern covers the whole of `text`.
    ///
    /// The first and the last literal are anchored, and each one between is taken where it first
    /// occurs: whatever a later place would leave for the rest, the first place leaves too. So no
    /// choice is ever taken back, and the time is linear in pattern and text together.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else {
            return *self.0 == *text;
        };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(mut remaining) = text
            .strip_prefix(first)
            .and_then(|text| text.strip_suffix(last))
        else {
            return false;
        };
        middle.split('*').all(|literal| {
            let Some((_, after)) = remaining.split_once(literal) else {
                return false;
            };
            remaining = after;
            true
        })
    }

    /// Whether there is no text that the pattern does not match: it is made of stars.
    pub fn matches_everything(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte == b'*')
    }
}

impl From<&str> for Wildcard {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

impl From<String> for Wildcard {
    fn from(pattern: String) -> Self {
        Self::new(pattern)
    }
}

impl FromStr for Wildcard {
    type Err = Infallible;

    fn from_str(pattern: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(pattern))
    }
}

impl fmt::Display for Wildcard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
#[path = "wildcard_tests.rs"]
mod tests;
