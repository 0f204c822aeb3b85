//! What stands behind an endpoint: one server as it is, or many as one.

use std::pin::Pin;
use std::sync::Arc;

use cocode_client::Notification;
use cocode_core::ServerName;
use cocode_wire::RawJson;

use crate::caller::Caller;
use crate::downstream::Downstream;
use crate::reply::Reply;
use crate::request::Request;

/// The work on a request.
pub(crate) type Replying<'a> = Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;

/// Serves the requests of clients.
pub(crate) trait Room: Send + Sync + 'static {
    /// A client opens a session.
    fn welcome<'a>(
        self: Arc<Self>,
        client: &'a Arc<Downstream>,
        caller: &'a Arc<Caller>,
    ) -> Replying<'a>;

    /// A client asks what there is, and needs no session for that.
    fn discover<'a>(&'a self, request: &'a Request) -> Replying<'a>;

    /// Any other request. It is large, and handed on from future to future.
    fn serve(self: Arc<Self>, request: Box<Request>) -> Replying<'static>;

    /// A client tells something.
    fn told(&self, client: &Downstream, method: &str, params: Option<&RawJson>);

    /// A client has left.
    fn left(&self);

    /// The parameters of what a server tells about a request, as clients know them here; nothing if
    /// they are as the server has them.
    fn retold(&self, _server: &ServerName, _notification: &Notification) -> Option<RawJson> {
        None
    }
}
