//! Vocabulary and pure decisions of cocode, the MCP runtime: names, permissions, schemas.
//!
//! A model sees every tool under one flat name, `mcp__<server>__<tool>`. [`NameTable`] gives those
//! names out for a whole catalog and finds the way back; nothing ever splits a name at its
//! separators.
//!
//! ```
//! use cocode_core::{NameTable, ServerName, ToolName};
//!
//! let server: ServerName = "files".parse()?;
//! let tool = ToolName::new("read");
//! let table = NameTable::build([(server.clone(), tool.clone())]);
//!
//! let name = table.name_of(&server, &tool).map(|name| name.as_str());
//! assert_eq!(name, Some("mcp__files__read"));
//! assert_eq!(table.resolve("mcp__files__read"), Some((&server, &tool)));
//! # Ok::<(), cocode_core::InvalidServerName>(())
//! ```
//!
//! This crate does no I/O and has no clock.

mod approval;
mod names;
mod nearest;
mod output;
mod percent;
mod permission;
mod protocol;
mod provider_schema;
mod qualified;
mod search;
mod shown;
mod spec;
mod table;
mod visible;
mod wildcard;

pub use approval::{
    Approval, ApprovalPolicy, Doing, Ruled, SandboxMode, UnknownWord, Why, approve,
};
pub use names::{InvalidServerName, MAX_SERVER_NAME_BYTES, ServerName, ToolName};
pub use nearest::nearest;
pub use output::{
    LeftOut, MAX_IMAGE_TOKENS, OutputLimits, OutputSize, PixelSize, Preview, estimate_tokens,
    image_tokens, pixel_size, preview, split_at_tokens,
};
pub use percent::percent_encode;
pub use permission::{
    Answer, Authority, Condition, DecidedBy, Decision, Hints, InvalidRule, MAX_RULE_BYTES,
    Narrowed, Rule, RuleEntry, RuleSet, ToolRef, ToolUse, Verdict,
};
pub use protocol::{Era, Protocol, Revision, UnknownProtocol};
pub use provider_schema::{
    Change, Dialect, MAX_PARAMETERS_BYTES, Note, ProviderTool, ToolSource, UnknownDialect,
    Unrepairable, convert, convert_best,
};
pub use qualified::{MAX_QUALIFIED_NAME_BYTES, QualifiedName};
pub use search::{
    CHARACTERS_PER_TOKEN, DEFAULT_FOUND, Explained, FoundDetail, FoundText, Hit, Loading,
    MAX_FOUND, ScorePart, SearchDecision, SearchPolicy, SearchedServer, Searcher, Share, TOOL_CALL,
    TOOL_SEARCH, ToolIndex, ToolLoad, ToolSearchMode, ToolText, UnknownToolSearchMode, WhySearch,
    WhyShowAll, definition_characters, first_sentence, found_tools, nothing_found,
    tool_call_definition, tool_search_definition, tool_search_for,
};
pub use shown::{Prefix, Shadowed, ShownNames};
pub use spec::{
    DEFAULT_CONNECT_TIMEOUT, DEFAULT_STARTUP_TIMEOUT, DEFAULT_TOOL_TIMEOUT, Dpop, Grant, Isolation,
    OAuth, Program, Reach, Registration, Remote, RemoteTransport, SIGNING_ALGORITHMS, Sandbox,
    ServerSpec, Template, TemplatePart, ToolFilter,
};
pub use table::NameTable;
pub use visible::{argument_lines, is_hidden_format, make_visible, member_lines};
pub use wildcard::Wildcard;
