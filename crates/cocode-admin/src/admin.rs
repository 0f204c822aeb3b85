//! Answers requests: finds the route, asks who comes, reads what they bring, and lets the route do it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

use crate::ask::{Ask, is_read, segments, too_large};
use crate::bulletin::Bulletin;
use crate::call_book::CallBook;
use crate::codes::Codes;
use crate::cookie::Cookie;
use crate::files;
use crate::guard::{self, Who};
use crate::headers;
use crate::house::House;
use crate::inbox::Inbox;
use crate::model::Code;
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{PLAIN, typed};
use crate::route::{Access, Route};
use crate::routes;
use crate::sessions::Sessions;
use cocode_wire::serve::PageBody;
use url::Url;

/// How long a stream of events lasts; whoever listens comes back and goes on where it ended.
const STREAM_LIFETIME: Duration = Duration::from_hours(1);

/// What a house writes and the API reads: made first, and given to both.
#[derive(Clone, Debug)]
pub struct Desk {
    /// What happens.
    pub bulletin: Bulletin,
    /// The calls of clients.
    pub calls: CallBook,
    /// The questions of servers.
    pub inbox: Inbox,
}

impl Desk {
    /// An empty one.
    pub fn new() -> Self {
        let bulletin = Bulletin::new();
        Self {
            calls: CallBook::new(bulletin.clone()),
            inbox: Inbox::new(bulletin.clone()),
            bulletin,
        }
    }
}

impl Default for Desk {
    fn default() -> Self {
        Self::new()
    }
}

/// How the API is to be.
#[derive(Clone, Debug)]
pub struct AdminOptions {
    /// Whether browsers reach it by https. Cookies are then never sent in the clear. Where `site` is
    /// known, that counts.
    pub is_https: bool,
    /// Where browsers find it, if a proxy before it has another name: pages from there are its own.
    pub site: Option<Url>,
    /// How long a stream of events lasts.
    pub stream_lifetime: Duration,
    /// Whether everybody who comes here may read the metrics.
    pub has_open_metrics: bool,
}

impl Default for AdminOptions {
    fn default() -> Self {
        Self {
            is_https: false,
            site: None,
            stream_lifetime: STREAM_LIFETIME,
            has_open_metrics: false,
        }
    }
}

/// The management API. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Admin(Arc<Inner>);

/// The future of an answer.
pub type Answering = Pin<Box<dyn Future<Output = Response<PageBody>> + Send>>;

pub(crate) struct Inner {
    pub(crate) house: Arc<dyn House>,
    pub(crate) desk: Desk,
    pub(crate) codes: Codes,
    pub(crate) sessions: Sessions,
    pub(crate) is_https: bool,
    pub(crate) site: Option<Url>,
    pub(crate) stream_lifetime: Duration,
    pub(crate) has_open_metrics: bool,
    cookie: OnceLock<Cookie>,
}

impl Inner {
    /// The cookie that sessions are known by.
    pub(crate) fn cookie(&self) -> &Cookie {
        self.cookie.get_or_init(|| Cookie::new(None, self.is_https))
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Inner").finish_non_exhaustive()
    }
}

impl Admin {
    /// The API of a house that writes to this desk.
    pub fn new(house: Arc<dyn House>, desk: Desk, options: AdminOptions) -> Self {
        let of_site = options.site.as_ref().map(|site| site.scheme() == "https");
        Self(Arc::new(Inner {
            house,
            desk,
            codes: Codes::default(),
            sessions: Sessions::default(),
            is_https: of_site.unwrap_or(options.is_https),
            site: options.site,
            stream_lifetime: options.stream_lifetime,
            cookie: OnceLock::new(),
            has_open_metrics: options.has_open_metrics,
        }))
    }

    /// Says at which port browsers find it, so that gateways of one host have cookies of different names.
    /// Counts once, and only before the first request.
    pub fn be_at_port(&self, port: u16) {
        let cookie = Cookie::new(Some(port), self.0.is_https);
        let _counts_once = self.0.cookie.set(cookie);
    }

    /// Makes a code to sign in by, once, within [`CODE_LIFETIME`](crate::CODE_LIFETIME). The one that was
    /// made before is worthless from now on.
    pub fn new_code(&self) -> Result<Code, Refusal> {
        self.0.codes.make()
    }

    /// How large the body of a request may be that is worth taking in, in bytes: of who has not shown who
    /// they are only what signs them in, and nothing where no body has a meaning. `is_known` is whether
    /// they have brought a token that is good; cookies are looked at here.
    pub fn body_limit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        is_known: bool,
    ) -> usize {
        let Ok(segments) = segments(path) else {
            return 0;
        };
        match Found::at(&segments, method) {
            Found::Route(route, _) if !route.is_changing() => 0,
            Found::Route(route, _) if route.access == Access::Anyone => route.max_body,
            Found::Route(route, _) if is_known || self.is_signed_in(headers) => route.max_body,
            _ => 0,
        }
    }

    /// Whether a request comes with the cookie of a session.
    fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let name = self.0.cookie().name();
        self.0.sessions.find(name, headers).is_some()
    }

    /// What is said of a body that is larger than that.
    pub fn too_large(most: usize) -> Response<PageBody> {
        let mut response = too_large(most).response();
        headers::secure(response.headers_mut());
        response
    }

    /// Answers a request for any path that is not part of MCP.
    pub fn answer(&self, request: Request<Bytes>, who: Who) -> Answering {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let is_head = request.method() == Method::HEAD;
            let mut response = respond(inner, request, who).await;
            if is_head {
                *response.body_mut() = PageBody::whole(Bytes::new());
            }
            headers::secure(response.headers_mut());
            response
        })
    }
}

async fn respond(inner: Arc<Inner>, request: Request<Bytes>, who: Who) -> Response<PageBody> {
    let found = match segments(request.uri().path()) {
        Ok(segments) => Found::at(&segments, request.method()),
        Err(refusal) => return refusal.response(),
    };
    match found {
        Found::Route(route, names) => {
            let outcome = perform(inner, route, names, request, who).await;
            outcome.unwrap_or_else(|refusal| documented(route, refusal).response())
        }
        Found::Others(allowed) => wrong_method(&allowed),
        Found::Nothing => elsewhere(&request),
    }
}

async fn perform(
    inner: Arc<Inner>,
    route: &'static Route,
    names: Vec<String>,
    request: Request<Bytes>,
    who: Who,
) -> Result<Response<PageBody>, Refusal> {
    let visitor = guard::admit(&inner, who, route, request.headers())?;
    let ask = Ask::read(inner, visitor, route, names, request)?;
    let done = tokio::time::timeout(route.patience, route.handle(ask)).await;
    done.unwrap_or_else(|_elapsed| {
        Err(Refusal::new(
            RefusalStatus::Unavailable,
            "too-slow",
            format!("this was not done within {} s", route.patience.as_secs()),
        )
        .hint("see GET /api/v1/servers for how the servers are"))
    })
}

/// Where a request leads to.
enum Found {
    Route(&'static Route, Vec<String>),
    /// To a path with other methods.
    Others(Vec<&'static Method>),
    Nothing,
}

impl Found {
    fn at(segments: &[String], method: &Method) -> Self {
        let mut others = Vec::new();
        for route in routes::all() {
            let Some(names) = route.matches(segments) else {
                continue;
            };
            if guard::answers(route, method) {
                return Self::Route(route, names);
            }
            others.push(&route.method);
            if guard::answers(route, &Method::HEAD) {
                others.push(&Method::HEAD);
            }
        }
        if others.is_empty() {
            Self::Nothing
        } else {
            Self::Others(others)
        }
    }
}

/// What is below no route: a file of the dashboard, or nothing.
fn elsewhere(request: &Request<Bytes>) -> Response<PageBody> {
    let path = request.uri().path();
    if path.starts_with("/api/") {
        return Refusal::new(
            RefusalStatus::Unknown,
            "route-unknown",
            "there is no such part of the management API",
        )
        .hint("GET /api/v1/openapi.json describes what there is")
        .response();
    }
    match files::file(path, request.headers()) {
        Some(response) if is_read(request.method()) => response,
        Some(_) => wrong_method(&[&Method::GET, &Method::HEAD]),
        None => {
            let text = "there is nothing here; the dashboard is at /, MCP at /mcp\n";
            typed(StatusCode::NOT_FOUND, PLAIN, PageBody::whole(text))
        }
    }
}

fn wrong_method(allowed: &[&'static Method]) -> Response<PageBody> {
    let allowed: Vec<_> = allowed.iter().map(|method| method.as_str()).collect();
    let allowed = allowed.join(", ");
    let mut response = Refusal::new(
        RefusalStatus::WrongMethod,
        "wrong-method",
        format!("this is not done here; these methods are: {allowed}"),
    )
    .response();
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// A refusal as the document has announced it: a house that refuses in a way that nobody expects is not
/// usable now.
fn documented(route: &Route, refusal: Refusal) -> Refusal {
    if route.refusals.contains(&refusal.status) {
        return refusal;
    }
    tracing::error!(
        ?route,
        ?refusal,
        "a refusal that the route does not announce"
    );
    Refusal {
        status: RefusalStatus::Unavailable,
        ..refusal
    }
}
