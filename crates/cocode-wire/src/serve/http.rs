//! The server end of HTTP: streamable HTTP of both eras on one path, HTTP+SSE, and the way into a
//! WebSocket.
//!
//! Everything that a request has to pass is decided here: where it may come from, how large and how
//! slow it may be, to which session or era it belongs, and whether its answer is one document or a
//! stream of events. What it means is for the endpoint.

mod accept;
mod accepted;
mod answer;
mod asked;
mod batch;
mod body;
mod client_name;
mod connection;
mod door;
mod event_id;
mod events;
mod guest;
mod guests;
mod handler;
mod held;
mod keeper;
mod kept;
mod legacy_sse;
mod listen;
mod names;
mod opening;
mod options;
mod origin;
mod page;
mod post;
mod receive;
mod reply;
mod revival;
mod server;
mod session;
mod session_events;
mod sessions;
mod site;
mod stateless;
mod streams;
mod tls;
mod told;
mod unknown;
mod upgrade;
mod work;

pub(crate) use accepted::serve_accepted;
pub use door::{Door, SessionFacts, SessionTransport};
pub use guest::{Admission, Admitting, Guest};
pub use options::{BindError, HttpLimits, HttpServerOptions};
pub use page::PageBody;
pub use server::HttpServer;
pub use site::{Page, Site, Visit};
pub use tls::{TlsError, tls_from_pem};
pub use told::retold;
