//! What is found at which path: the servers for those who are let in, and pages for people and machines
//! that look after the gateway.

use std::sync::Arc;

use bytes::Bytes;
use cocode_admin::Admin;
use cocode_gateway::{Announced, View};
use cocode_wire::serve::{Admitting, Endpoint, Guest, Page, PageBody, Site, Visit};
use http::{HeaderMap, Request, Response};
use url::form_urlencoded;

use super::door::FrontDoor;
use super::management::Pages;
use super::views::Views;

/// How clients say how many tokens their model sees.
const WINDOW_HEADER: &str = "cocode-context-window";
const WINDOW_PARAMETER: &str = "context_window";
/// How clients say whether it is to search for tools.
const MODE_HEADER: &str = "cocode-tool-search";
const MODE_PARAMETER: &str = "tool_search";

/// The paths of a gateway.
#[derive(Debug)]
pub(crate) struct Endpoints {
    views: Arc<Views>,
    door: Arc<FrontDoor>,
    pages: Arc<Pages>,
    /// Whether everything that there is to look after the gateway is found here, too.
    has_office: bool,
}

impl Endpoints {
    pub(crate) fn new(
        views: Arc<Views>,
        door: Arc<FrontDoor>,
        pages: Arc<Pages>,
        has_office: bool,
    ) -> Self {
        Self {
            views,
            door,
            pages,
            has_office,
        }
    }

    /// What somebody sees. Whoever is let in has a view; where everybody is the same, it is the owner's.
    fn view_of(&self, guest: Option<&Guest>) -> Option<View> {
        match guest {
            Some(guest) => self.views.known(guest.id()),
            None => Some(self.views.own().clone()),
        }
    }
}

impl Site for Endpoints {
    fn admit<'a>(&'a self, visit: Visit<'a>) -> Admitting<'a> {
        if is_mcp(visit.path) {
            self.door.admit(&visit)
        } else {
            self.door.recognise(&visit)
        }
    }

    fn seats(&self, guest: &Guest) -> usize {
        self.views.max_sessions(guest.id())
    }

    fn endpoint(&self, name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        let view = self.views.own();
        match name {
            Some(name) => view.server(name),
            None => Some(view.all()),
        }
    }

    fn endpoint_for(
        &self,
        name: Option<&str>,
        visit: &Visit<'_>,
    ) -> Result<Option<Arc<dyn Endpoint>>, String> {
        let Some(view) = self.view_of(visit.guest) else {
            return Ok(None);
        };
        // One server by itself is as it is, whatever is said of models.
        match name {
            Some(name) => Ok(view.server(name)),
            None => Ok(Some(view.all_for(announced(visit)?))),
        }
    }

    fn names(&self) -> Vec<String> {
        names_in(self.views.own())
    }

    fn names_for(&self, visit: &Visit<'_>) -> Vec<String> {
        let view = self.view_of(visit.guest);
        view.as_ref().map(names_in).unwrap_or_default()
    }

    fn page_body(&self, visit: &Visit<'_>) -> usize {
        // What is found in public takes no body at all.
        if self.has_office {
            self.pages.body_limit(visit)
        } else {
            0
        }
    }

    fn too_large(&self, most: usize) -> Response<PageBody> {
        Admin::too_large(most)
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        if self.has_office {
            Box::pin(self.pages.answer(request))
        } else {
            Box::pin(self.pages.answer_in_public(request))
        }
    }
}

fn names_in(view: &View) -> Vec<String> {
    let names = view.names().into_iter();
    names.map(|name| name.to_string()).collect()
}

/// Whether servers are used at this path.
fn is_mcp(path: &str) -> bool {
    let begins = |base: &&str| path.strip_prefix(*base).is_some_and(is_end_or_below);
    ["/mcp", "/sse", "/ws", "/messages"].iter().any(begins)
}

fn is_end_or_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
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
