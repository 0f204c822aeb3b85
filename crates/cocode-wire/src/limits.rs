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

/// How often one request is sent again because its credentials had an answer to a refusal: a nonce, a
/// renewed token and a wider one, each once, and one to spare.
pub const MAX_REFUSALS: u32 = 4;

/// How long an open connection may go without a sign of life from us, whatever its transport:
/// below the minute after which many proxies and address translators forget a silent one. It is
/// the time between WebSocket pings and between HTTP/2 pings, and the silence after which TCP
/// probes the other side.
///
/// Nobody is cut off for saying nothing: servers ought to send a comment on a silent event stream
/// about as often as this, but many never do, and their streams are legal. A peer that is gone
/// shows by not answering pings or probes.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(50);

/// Pings of a WebSocket in a row, without a sign of life from the other side, that mean it is dead.
pub const WEBSOCKET_UNANSWERED_PINGS: u32 = 2;

/// How long a ping over HTTP/2 may stay unanswered before its connection counts as dead.
pub const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Time between the probes of TCP once the first went unanswered.
pub const TCP_PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// Unanswered probes of TCP that mean a dead peer.
pub const TCP_PROBES: u32 = 3;

/// How long what was sent over TCP may stay unacknowledged before the connection counts as dead.
/// This is what ends requests on connections that a laptop's sleep or another network has killed:
/// such connections look young, because the clock of the pool stands still during sleep.
#[cfg(target_os = "linux")]
pub const TCP_UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an unused HTTP connection is kept for the next request: less than the minute after
/// which servers usually close theirs, so that a request seldom meets a closing connection.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// WebSocket messages that may wait for a slow peer.
pub const WEBSOCKET_QUEUE: usize = 64;

/// A WebSocket message has to be taken whole before it can be dropped: up to four times the cap
/// and this much more. A longer one ends the session.
pub const WEBSOCKET_SLACK_BYTES: usize = 1024 * 1024;

/// Requests of one client that are served at once; more are answered with an error.
pub const MAX_REQUESTS_IN_FLIGHT: usize = 1024;

/// Messages in one JSON-RPC batch.
pub const MAX_BATCH_MESSAGES: usize = 256;

/// How long a client may take nothing of what is queued for it, while no more can be queued, before
/// it counts as gone.
pub const CLIENT_STALL_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the requests in flight may go on when a server is to end.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the last messages to a client may take when its connection ends.
pub const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(2);

/// Clients of one unix socket at once.
pub const MAX_UNIX_CLIENTS: usize = 256;

/// Wait before connections are accepted again when the system has refused one.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);
