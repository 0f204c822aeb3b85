//! What a server link needs of whoever serves: the seam between carrying messages and
//! understanding them.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use crate::encode;
use crate::frame::Frame;
use crate::raw::RawJson;
use crate::rpc_error::RpcError;

/// A place that clients talk to.
pub trait Endpoint: Send + Sync + 'static {
    /// A client begins to talk: it has connected, or wants a session. `outlet` reaches it outside of
    /// its requests, for as long as the conversation lasts.
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation>;

    /// Who serves requests that belong to no session: each brings everything with it.
    fn stateless(&self) -> Arc<dyn Conversation>;
}

/// One client that talks to an endpoint. The methods are called in the order of arrival and must
/// not block.
pub trait Conversation: Send + Sync + 'static {
    /// A request. What the future gives is its answer; if the future is dropped, nobody wants the
    /// answer any more.
    fn request(self: Arc<Self>, asked: Asked) -> Serving;

    /// The client tells something.
    fn notification(&self, frame: Frame);

    /// The client answers a request that was sent to it.
    fn response(&self, frame: Frame);

    /// The client is gone, or its session has ended. Nothing follows.
    fn ended(&self);
}

/// The work on one request.
pub type Serving = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A request, and the way to say something about it before it is answered.
pub struct Asked {
    /// The request.
    pub frame: Frame,
    /// The headers it came with, where it came over HTTP.
    pub headers: HeaderMap,
    /// Carries notifications and requests that belong to this request, ahead of its answer.
    pub stream: Arc<dyn Sink>,
}

/// A way to a client.
pub trait Sink: Send + Sync + 'static {
    /// Sends a whole message, in the order of the calls. Returns at once; `false` if the client is
    /// gone or takes too little, and the message was dropped.
    fn send(&self, message: Bytes) -> bool;
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The whole message. Empty if there is none, because the request was cancelled by its client:
    /// then nothing is sent, and whatever was opened for the answer ends.
    pub body: Bytes,
    /// The code of the error, if it is one.
    pub error: Option<i64>,
}

impl Answer {
    /// A successful answer to request `id`.
    pub fn result(id: &RawJson, result: &RawJson) -> Self {
        let body = encode::response(id, result).into();
        Self { body, error: None }
    }

    /// A successful answer to request `id`, whose result is in parts that together are JSON.
    pub fn result_of_parts(id: &RawJson, parts: &[&[u8]]) -> Self {
        let body = encode::response_of_parts(id, parts).into();
        Self { body, error: None }
    }

    /// No answer, to a request that its client has cancelled.
    pub fn none() -> Self {
        let body = Bytes::new();
        Self { body, error: None }
    }

    /// A failed answer to request `id`.
    pub fn error(id: &RawJson, error: &RpcError) -> Self {
        Self {
            body: encode::error_response(id, error).into(),
            error: Some(error.code),
        }
    }
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Asked")
            .field("method", &self.frame.method())
            .finish_non_exhaustive()
    }
}
