//! The server ends of links: whoever connects, over whatever carries it, meets an [`Endpoint`].
//!
//! A link cuts what clients send into frames, keeps what belongs together together (connections,
//! sessions, streams), and enforces limits. What the messages mean is for the [`Conversation`].

mod connection;
mod http;
mod line;
mod lost;
#[cfg(test)]
mod scripted;
mod service;
mod session_store;
mod unix;
mod websocket;

pub use connection::Patience;
pub use http::{
    Admission, Admitting, BindError, Door, Guest, HttpLimits, HttpServer, HttpServerOptions, Page,
    PageBody, SessionFacts, SessionTransport, Site, TlsError, Visit, retold, tls_from_pem,
};
pub use line::{
    FirstLine, FirstLineError, LineOptions, Restored, StandardStreams, read_first_line,
    serve_lines, standard_streams, stdio,
};
pub use lost::{GATEWAY_LOST, only_reads};
pub use service::{Answer, Asked, Conversation, Endpoint, Serving, Sink};
pub use session_store::{
    Headcount, MAX_TOLD, MAX_TOLD_BYTES, MemorySessionStore, SessionKey, SessionMark, SessionNews,
    SessionStore, SessionStoreError, StoreWork, StoredSession, Whose,
};
pub use unix::{UnixClient, UnixServer, UnixServerError, check_socket_directory};
