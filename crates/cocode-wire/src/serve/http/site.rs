//! What a server serves, and to whom: the seam to whoever knows that.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::guest::{Admission, Admitting, Guest};
use super::page::PageBody;
use crate::serve::service::Endpoint;

/// The answer to a request for something that is not part of MCP.
pub type Page<'a> = Pin<Box<dyn Future<Output = Response<PageBody>> + Send + 'a>>;

/// How somebody comes.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// The method of the request that begins it.
    pub method: &'a Method,
    /// The path of its address.
    pub path: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The query of the address.
    pub query: Option<&'a str>,
    /// Who comes, once [`Site::admit`] has said so.
    pub guest: Option<&'a Guest>,
}

/// What a server serves.
pub trait Site: Send + Sync + 'static {
    /// Whether a request is let in, and who makes it. Asked for every request, whatever it is for,
    /// after Host and Origin were checked and before anything else is looked at; only the question
    /// of a browser what it may send (a preflight) is answered before.
    ///
    /// Sessions belong to the guest who has opened them: nobody else finds them.
    fn admit<'a>(&'a self, _visit: Visit<'a>) -> Admitting<'a> {
        Admitting::Now(Admission::Welcome(None))
    }

    /// How many sessions, `WebSockets` and listening streams a guest may have at a time.
    fn seats(&self, _guest: &Guest) -> usize {
        usize::MAX
    }

    /// The endpoint of that name, or the one without a name.
    fn endpoint(&self, name: Option<&str>) -> Option<Arc<dyn Endpoint>>;

    /// The same, for somebody who comes like this: it may say more about what is wanted. What is
    /// wrong with it is answered with status 400, in these words.
    fn endpoint_for(
        &self,
        name: Option<&str>,
        _visit: &Visit<'_>,
    ) -> Result<Option<Arc<dyn Endpoint>>, String> {
        Ok(self.endpoint(name))
    }

    /// The names of all endpoints that have one, for people who missed theirs.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// The same, as far as somebody who comes like this may know them.
    fn names_for(&self, _visit: &Visit<'_>) -> Vec<String> {
        self.names()
    }

    /// How much of a body is taken in for any other path, in bytes, before [`Site::page`] is asked: what
    /// comes with a request fills memory, whoever sends it. Nothing is taken in for 0, and the page sees no
    /// body then; the bounds of the server hold in any case.
    fn page_body(&self, _visit: &Visit<'_>) -> usize {
        usize::MAX
    }

    /// What is said of a body that is larger than that.
    fn too_large(&self, most: usize) -> Response<PageBody> {
        let text = format!("the body is larger than {most} bytes\n");
        let mut response = Response::new(PageBody::from(text));
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        response
    }

    /// Any other path. The request was let in, the body is whole, and the [`Guest`] who makes it is
    /// among the extensions.
    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        drop(request);
        Box::pin(async {
            let mut response = Response::new(PageBody::from("not found\n"));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        })
    }
}
