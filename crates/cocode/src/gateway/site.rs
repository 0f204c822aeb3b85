//! What is found at which path: the servers, and two pages for people and machines that look
//! whether the gateway is there.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use cocode_gateway::View;
use cocode_wire::serve::{Endpoint, Page, Site};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};

/// The paths of a gateway.
#[derive(Debug)]
pub(crate) struct Endpoints {
    view: View,
}

impl Endpoints {
    pub(crate) fn new(view: View) -> Self {
        Self { view }
    }

    fn introduction(&self) -> String {
        let mut text = format!(
            "cocode gateway {}\n\nMCP, for clients of every protocol revision:\n\n  /mcp\n",
            env!("CARGO_PKG_VERSION")
        );
        for name in self.view.names() {
            // Writing to a text does not fail.
            let _written = writeln!(text, "  /mcp/{name}");
        }
        text
    }
}

impl Site for Endpoints {
    fn endpoint(&self, name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        match name {
            Some(name) => self.view.server(name),
            None => Some(self.view.all()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.view
            .names()
            .into_iter()
            .map(|name| name.to_string())
            .collect()
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let (status, text) = match request.uri().path() {
            "/" | "/healthz" if !is_read => {
                (StatusCode::METHOD_NOT_ALLOWED, "GET only\n".to_owned())
            }
            "/" => (StatusCode::OK, self.introduction()),
            "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
            _ => (
                StatusCode::NOT_FOUND,
                "there is nothing here; / lists what there is\n".to_owned(),
            ),
        };
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = status;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        Box::pin(std::future::ready(response))
    }
}
