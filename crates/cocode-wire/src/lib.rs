//! Raw JSON-RPC frames and the links that carry them.
//!
//! A [`Frame`] is the bytes of one message and where its parts are; nothing inside is decoded, so
//! nothing is lost. A [`Link`] sends messages and delivers frames to an [`Inbox`]; it knows framing,
//! limits and the lifetime of a process or connection. This crate knows no MCP feature beyond what
//! the transports themselves define.

mod credentials;
mod deliver;
pub mod encode;
mod error;
mod frame;
mod http;
mod inbox;
pub mod limits;
mod line;
mod link;
pub mod members;
mod raw;
mod rpc_error;
mod salvage;
mod scan;
mod sending;
pub mod serve;
mod websocket;

pub use cocode_process::{
    ConfineError, Confinement, ExitReport, PathHandle, ProcessSpec, SpawnError, StderrTail,
    StderrTap, StopPolicy, baseline_environment,
};
pub use http::addresses::{AddressFilter, AddressRefused, Admitted};
pub use http::client::{HttpClient, HttpSettings, HttpSetupError, chain};
pub use http::event_body::{EventBody, EventLimits, StreamEvent};
pub use http::fetch::FetchError;
pub use http::network::Network;
pub use http::secured::Secured;
pub use http::streamable::HttpTarget;
pub use http::values::{header_text, header_value};

pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
pub use url::Url;

pub use credentials::{
    Credentials, CredentialsError, CredentialsErrorKind, CredentialsWork, Refusal, RequestLine,
};
pub use error::{Challenge, Closed, LinkError};
pub use frame::{Frame, FrameError, FrameKind};
pub use inbox::{Inbox, Malformed, MalformedReason, Origin};
pub use link::{
    Link, MemoryTarget, OpenError, Outgoing, StdioTarget, Target, UnixTarget, memory_pair,
};
pub use raw::RawJson;
pub use rpc_error::{RpcError, code};
pub use sending::Sending;
pub use websocket::WebSocketTarget;
