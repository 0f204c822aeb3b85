//! Configuration of cocode, the MCP runtime: files in, server specifications with their origin out.
//!
//! Never spawns, never connects, never reads the environment: places and variables are given.

mod document;
mod entry;
mod expand;
mod keys;
mod parse;
mod problem;
mod read;
mod url_pattern;

pub use document::Format;
pub use entry::{Entry, EntryLine, OAuthEntry, Seconds, Text, Transport};
pub use expand::{
    ExpandError, MAX_EXPANDED_BYTES, Variables, expand_plain, expand_secret, is_variable_name,
    variables_of,
};
pub use parse::{Found, MAX_SERVERS_PER_FILE};
pub use problem::{Origin, Problem, Severity};
pub use read::MAX_FILE_BYTES;
pub use url_pattern::{InvalidUrlPattern, MAX_URL_PATTERN_BYTES, UrlPattern};
