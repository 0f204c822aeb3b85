//! The header names of MCP, and one of ours.

use http::HeaderName;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A proxy says that it has sent this request to another gateway, which is gone without an answer.
pub(super) const UNANSWERED: HeaderName = HeaderName::from_static("cocode-unanswered");
