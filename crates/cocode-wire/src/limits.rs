//! Every bound of the wire in one place, with its unit.

use std::time::Duration;

/// One JSON-RPC frame, in either direction, unless the caller configures another cap.
pub const DEFAULT_MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// Bytes that may wait for a slow reader before senders have to wait themselves.
pub const MAX_QUEUED_BYTES: usize = 1024 * 1024;

/// How much of an HTTP error body is kept for the message.
pub const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// How much of an offending text is shown in an error.
pub const MAX_EXCERPT_CHARS: usize = 200;

/// Establishing a TCP or TLS connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The polite `DELETE` that ends a streamable HTTP session.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// Messages under way over HTTP that nobody waits for; more are dropped.
pub const MAX_POSTS: usize = 64;

/// How long the end of a server's output may precede the news of its exit.
pub const EXIT_REPORT_WAIT: Duration = Duration::from_secs(3);

/// Stderr lines that accompany the report of a dead server.
pub const STDERR_LINES_SHOWN: usize = 20;

/// Wait before an event stream is reopened when the server named no `retry:`.
pub const DEFAULT_STREAM_RETRY: Duration = Duration::from_secs(1);

/// The shortest wait before an event stream is reopened: a server that names a `retry:` of zero
/// and ends its streams at once must not be asked again at once, for ever.
pub const MIN_STREAM_RETRY: Duration = Duration::from_millis(50);

/// The longest wait of our own choice before an event stream is opened again.
pub const MAX_STREAM_RETRY: Duration = Duration::from_secs(30);

/// The longest `retry:` that is taken at its word; more than this is a mistake or malice. The
/// deadline of a request ends its own waiting long before.
pub const MAX_NAMED_RETRY: Duration = Duration::from_hours(1);

/// How long a server may take to begin its answer when an event stream is opened by GET. Generous:
/// some send nothing before the first event.
pub const STREAM_OPEN_TIMEOUT: Duration = Duration::from_mins(1);

/// Failed attempts in a row to resume the stream of one request.
pub const MAX_RESUME_FAILURES: u32 = 5;

/// The head of a proxy's answer to the request for a tunnel.
pub const MAX_PROXY_ANSWER_BYTES: usize = 16 * 1024;

/// Same-origin redirects followed for one request.
pub const MAX_REDIRECTS: usize = 5;

/// Time between WebSocket pings; two of them without any traffic mean a dead peer.
pub const WEBSOCKET_PING_INTERVAL: Duration = Duration::from_secs(30);

/// WebSocket messages that may wait for a slow peer.
pub const WEBSOCKET_QUEUE: usize = 64;

/// A WebSocket message has to be taken whole before it can be dropped: up to four times the cap
/// and this much more. A longer one ends the session.
pub const WEBSOCKET_SLACK_BYTES: usize = 1024 * 1024;
