//! What an HTTP server is told: where to listen, by which names it goes, and every bound.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::DEFAULT_MAX_FRAME_BYTES;
use crate::serve::session_store::SessionStore;

/// Where an HTTP server listens and whom it lets in.
#[derive(Clone, Debug)]
pub struct HttpServerOptions {
    /// The address. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Speaks TLS with this, if given; see [`tls_from_pem`](super::tls_from_pem).
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Names that clients may call this server by, beside the loopback ones and the address it
    /// listens on. Without a port, any port is meant.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use this server from a browser, such as
    /// `https://example.com`. Pages on loopback names are let in, but may not read answers unless
    /// they are listed, nor open a WebSocket, where everything can be read, unless this server
    /// itself has sent them.
    pub allowed_origins: Vec<String>,
    /// The revisions with sessions, oldest first.
    pub stateful: &'static [&'static str],
    /// The revisions whose requests stand alone, oldest first.
    pub stateless: &'static [&'static str],
    /// Where sessions are kept so that other servers can go on with them, and this one after its end.
    /// Without it, a session ends with the server.
    pub sessions: Option<Arc<dyn SessionStore>>,
    /// The bounds.
    pub limits: HttpLimits,
}

impl HttpServerOptions {
    /// The defaults: every revision, loopback names, no TLS.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            tls: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            stateful: &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"],
            stateless: &["2026-07-28"],
            sessions: None,
            limits: HttpLimits::default(),
        }
    }
}

/// Every bound of an HTTP server.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The body of one request, in bytes.
    pub max_body: usize,
    /// The head of one request, in bytes.
    pub max_header_bytes: usize,
    /// Connections at a time. A few more are accepted to be told so.
    pub max_connections: usize,
    /// Sessions at a time.
    pub max_sessions: usize,
    /// Requests of one session under way at a time.
    pub max_session_requests: usize,
    /// Members of one batch.
    pub max_batch: usize,
    /// How long a session lives without any request or open stream.
    pub session_idle: Duration,
    /// How long a client may take for the head of a request once it has begun, and for the TLS
    /// handshake.
    pub header_timeout: Duration,
    /// How long a body may make no progress.
    pub body_timeout: Duration,
    /// How long a body may take as a whole.
    pub body_deadline: Duration,
    /// How long a connection may stay open between requests.
    pub keep_alive: Duration,
    /// How long a client may take nothing of what it is sent.
    pub stall: Duration,
    /// How long an answer may take before it becomes a stream of events.
    pub stream_after: Duration,
    /// How often a silent stream shows that it lives.
    pub comment_interval: Duration,
    /// What may wait for a client on one stream, in bytes, before messages are dropped.
    pub max_queued: usize,
    /// What may wait for a client that is not there, over all streams of its session, in bytes.
    pub max_undelivered: usize,
    /// Sent events that a session keeps in case they were lost on the way, in bytes.
    pub max_replay_bytes: usize,
    /// Events of a session that are kept in case they were lost on the way.
    pub max_replay_events: usize,
    /// How long the end of the server waits for requests under way.
    pub drain: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            max_body: DEFAULT_MAX_FRAME_BYTES,
            max_header_bytes: 64 * 1024,
            max_connections: 4096,
            max_sessions: 4096,
            max_session_requests: crate::limits::MAX_REQUESTS_IN_FLIGHT,
            max_batch: crate::limits::MAX_BATCH_MESSAGES,
            session_idle: Duration::from_mins(30),
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(15),
            body_deadline: Duration::from_mins(2),
            keep_alive: Duration::from_mins(2),
            stall: crate::limits::CLIENT_STALL_TIMEOUT,
            stream_after: Duration::from_secs(1),
            comment_interval: crate::limits::KEEP_ALIVE_INTERVAL,
            max_queued: crate::limits::MAX_QUEUED_BYTES,
            max_undelivered: 4 * crate::limits::MAX_QUEUED_BYTES,
            max_replay_bytes: 256 * 1024,
            max_replay_events: 256,
            drain: crate::limits::DRAIN_TIMEOUT,
        }
    }
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
