//! What is found at which path: the servers, and two pages for people and machines that look
//! whether the gateway is there.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use cocode_gateway::{Announced, View};
use cocode_wire::serve::{Endpoint, Page, PageBody, Site, Visit};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use url::form_urlencoded;

/// Whether clients are asked who they are. They are not yet, whatever tokens there are, so that others may
/// not reach a gateway.
pub(super) const ASKS: bool = false;

/// How clients say how many tokens their model sees.
const WINDOW_HEADER: &str = "cocode-context-window";
const WINDOW_PARAMETER: &str = "context_window";
/// How clients say whether it is to search for tools.
const MODE_HEADER: &str = "cocode-tool-search";
const MODE_PARAMETER: &str = "tool_search";

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

    fn endpoint_for(
        &self,
        name: Option<&str>,
        visit: &Visit<'_>,
    ) -> Result<Option<Arc<dyn Endpoint>>, String> {
        // One server by itself is as it is, whoever comes.
        if name.is_some() {
            return Ok(self.endpoint(name));
        }
        Ok(Some(self.view.all_for(announced(visit)?)))
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
        let mut response = Response::new(PageBody::from(text));
        *response.status_mut() = status;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        Box::pin(std::future::ready(response))
    }
}

/// What somebody says of their model by how they come. Headers count more than the address.
fn announced(visit: &Visit<'_>) -> Result<Announced, String> {
    let window = one_header(visit.headers, WINDOW_HEADER)?;
    let mode = one_header(visit.headers, MODE_HEADER)?;
    let in_headers = parsed("a header", window.as_deref(), mode.as_deref())?;
    let Some(query) = visit.query else {
        return Ok(in_headers);
    };
    let (mut window, mut mode) = (None, None);
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let place = match &*key {
            WINDOW_PARAMETER => &mut window,
            MODE_PARAMETER => &mut mode,
            _ => continue,
        };
        if place.replace(value).is_some() {
            return Err(format!("`{key}` is there twice in the address"));
        }
    }
    let in_address = parsed("the address", window.as_deref(), mode.as_deref())?;
    Ok(in_headers.or(in_address))
}

fn parsed(place: &str, window: Option<&str>, mode: Option<&str>) -> Result<Announced, String> {
    let parsed = Announced::parse(window, mode);
    parsed.map_err(|error| format!("what {place} says of the model cannot be used: {error}"))
}

fn one_header(headers: &HeaderMap, name: &str) -> Result<Option<String>, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(format!("`{name}` is there twice")),
        (Some(value), None) => {
            let text = String::from_utf8_lossy(value.as_bytes());
            Ok(Some(text.trim().to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use cocode_core::ToolSearchMode;
    use cocode_gateway::Announced;
    use cocode_wire::serve::Visit;
    use http::{HeaderMap, Method};

    use super::announced;

    fn of(headers: &[(&'static str, &str)], query: Option<&str>) -> Result<Announced, String> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, value.parse().unwrap());
        }
        announced(&Visit {
            method: &Method::POST,
            path: "/mcp",
            headers: &all,
            query,
            guest: None,
        })
    }

    #[test]
    fn clients_say_of_their_model_what_they_can_by_header_or_address() {
        let said = |context_window, mode| {
            Ok(Announced {
                context_window,
                mode,
            })
        };
        let (on, ten) = (ToolSearchMode::On, ToolSearchMode::AutoFrom(10));
        assert_eq!(of(&[], None), said(None, None));
        assert_eq!(of(&[], Some("a=b&context_window")), Err(
            "what the address says of the model cannot be used: `` is no context window: write a \
             number of tokens above zero, as in 200000"
                .to_owned()
        ));
        let header = [
            ("cocode-context-window", "200000"),
            ("cocode-tool-search", "true"),
        ];
        assert_eq!(of(&header, None), said(Some(200_000), Some(on)));
        let query = Some("x=y&context_window=1000&tool_search=auto%3A10");
        assert_eq!(of(&[], query), said(Some(1_000), Some(ten)));
        assert_eq!(of(&header[..1], query), said(Some(200_000), Some(ten)));
        for (headers, query) in [
            (&[("cocode-tool-search", "yes")][..], None),
            (&[("cocode-context-window", "é")][..], None),
            (
                &[
                    ("cocode-tool-search", "true"),
                    ("cocode-tool-search", "true"),
                ][..],
                None,
            ),
            (&[][..], Some("tool_search=yes")),
            (&[][..], Some("tool_search=true&tool_search=true")),
        ] {
            assert!(of(headers, query).is_err(), "{headers:?} {query:?}");
        }
    }
}
