//! Links over HTTP: streamable HTTP in both eras, and the older HTTP+SSE.

pub(crate) mod addresses;
pub(crate) mod client;
pub(crate) mod event_body;
pub(crate) mod events;
mod exchange;
pub(crate) mod fetch;
pub(crate) mod legacy_sse;
mod listen;
pub(crate) mod network;
mod posts;
pub(crate) mod response;
mod resume;
pub(crate) mod secured;
mod sender;
mod stream;
pub(crate) mod streamable;
pub(crate) mod tunnel;
pub(crate) mod values;
