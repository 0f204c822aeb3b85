//! How one tool is spelled for a model: the only producer of `mcp__<server>__<tool>`.
//!
//! A spelling is *plain* or *hashed*. Plain spellings are verbatim and can be read back in one way
//! only: the server has no `__` and does not end with `_`, so the first `__` after the prefix is
//! the separator. All others are sanitized, cut and closed with a hash of the unaltered pair. No
//! plain spelling ends like a hashed one, so the two kinds never meet, and the spelling of a tool
//! depends on that tool alone. Two hashed spellings can be equal only if the hashes are, and that
//! is the table's business.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::names::{ServerName, ToolName};

/// The longest name that the model interfaces in use accept.
pub const MAX_QUALIFIED_NAME_BYTES: usize = 64;

const PREFIX: &str = "mcp__";
const SEPARATOR: &str = "__";
/// Hex digits of the hash that closes a hashed spelling: 40 bits.
const HASH_DIGITS: usize = 10;
/// What the server and the tool share in a hashed spelling: the underscore is the hash's own.
const HASHED_BUDGET_BYTES: usize =
    MAX_QUALIFIED_NAME_BYTES - PREFIX.len() - SEPARATOR.len() - 1 - HASH_DIGITS;
/// What a long server name keeps beside a long tool name, so that it can still be recognized.
const MIN_SERVER_BYTES: usize = 16;

/// The name under which a model sees a tool: within `[A-Za-z0-9_-]` and at most
/// [`MAX_QUALIFIED_NAME_BYTES`] long.
///
/// Only a [`NameTable`](crate::NameTable) gives these out, because only there they are unique.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QualifiedName(Arc<str>);

impl QualifiedName {
    /// The name as sent to a model.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Borrow<str> for QualifiedName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Hashes a pair. The salt is zero unless the hash of the pair is already taken.
pub(crate) type PairHash = fn(&ServerName, &ToolName, salt: u64) -> u64;

/// The plain spelling, if the pair has one.
pub(crate) fn plain(server: &ServerName, tool: &ToolName) -> Option<QualifiedName> {
    let (server, tool) = (server.as_str(), tool.as_str());
    let length = PREFIX.len() + server.len() + SEPARATOR.len() + tool.len();
    let verbatim = !tool.is_empty()
        && length <= MAX_QUALIFIED_NAME_BYTES
        && server.chars().chain(tool.chars()).all(is_allowed)
        && !server.contains(SEPARATOR)
        && !server.ends_with('_');
    if !verbatim {
        return None;
    }
    let name = format!("{PREFIX}{server}{SEPARATOR}{tool}");
    // Asked of the whole name: a tool made of ten digits borrows the underscore of the separator.
    (!ends_like_hashed(&name)).then(|| QualifiedName(name.into()))
}

/// The hashed spelling of any pair.
pub(crate) fn hashed(
    server: &ServerName,
    tool: &ToolName,
    salt: u64,
    hash: PairHash,
) -> QualifiedName {
    let mut server_part = sanitize(server.as_str());
    let mut tool_part = sanitize(tool.as_str());
    // Both are ASCII by now, so that every cut is at a character.
    server_part.truncate(MIN_SERVER_BYTES.max(HASHED_BUDGET_BYTES.saturating_sub(tool_part.len())));
    tool_part.truncate(HASHED_BUDGET_BYTES - server_part.len());
    let digits = hash(server, tool, salt) & ((1 << (4 * HASH_DIGITS)) - 1);
    let name = format!("{PREFIX}{server_part}{SEPARATOR}{tool_part}_{digits:0HASH_DIGITS$x}");
    QualifiedName(name.into())
}

/// Whether a name can be shown as it is: every model can spell it, and it is no name that says whose
/// it is, nor looks like one.
pub(crate) fn stands_alone(name: &str) -> bool {
    (1..=MAX_QUALIFIED_NAME_BYTES).contains(&name.len())
        && name.chars().all(is_allowed)
        && !name.starts_with(PREFIX)
}

/// The first 40 bits of SHA-256 over the pair, each part led by its length so that no two pairs
/// feed it the same bytes.
pub(crate) fn sha256(server: &ServerName, tool: &ToolName, salt: u64) -> u64 {
    let mut hasher = Sha256::new();
    for part in [server.as_str(), tool.as_str()] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.update(salt.to_be_bytes());
    let digest = hasher.finalize();
    digest
        .iter()
        .take(HASH_DIGITS / 2)
        .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The text in allowed characters, as far as a name has room for it.
fn sanitize(text: &str) -> String {
    text.chars()
        .map(|character| {
            if is_allowed(character) {
                character
            } else {
                '_'
            }
        })
        .take(MAX_QUALIFIED_NAME_BYTES)
        .collect()
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn ends_like_hashed(name: &str) -> bool {
    let Some((_, tail)) = name.rsplit_once('_') else {
        return false;
    };
    tail.len() == HASH_DIGITS
        && tail
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
#[path = "qualified_tests.rs"]
mod tests;
