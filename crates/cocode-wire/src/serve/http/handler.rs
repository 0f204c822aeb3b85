//! Where a request goes: the gate first, then the site, which says who comes, then by path and method.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::accept::Accepts;
use super::body::Body;
use super::connection::Pulse;
use super::guest::{Admission, Admitting, Guest};
use super::guests::{Guests, Length, Visitor};
use super::keeper::Keeper;
use super::legacy_sse::{self, MESSAGES};
use super::listen;
use super::options::HttpServerOptions;
use super::origin::{Gate, Refused, make_readable, preflight};
use super::post::{Incomer, enter, post};
use super::receive::{NoBody, ignore, receive};
use super::reply::{self, Reply};
use super::sessions::Sessions;
use super::site::{Site, Visit};
use super::upgrade::{self, Upgrades};

/// What all connections of a server share.
pub(super) struct Shared {
    pub(super) options: HttpServerOptions,
    pub(super) site: Arc<dyn Site>,
    pub(super) gate: Gate,
    pub(super) sessions: Arc<Sessions>,
    /// Keeps sessions for other servers, if there is a store.
    pub(super) keeper: Option<Arc<Keeper>>,
    pub(super) guests: Arc<Guests>,
    pub(super) upgrades: Upgrades,
    pub(super) stage: watch::Receiver<Stage>,
}

/// How far the end of the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Serving,
    /// What has begun is finished.
    Draining,
    /// Nothing is waited for any more.
    Ended,
}

impl Shared {
    /// Has to be made within a runtime.
    pub(super) fn new(
        options: HttpServerOptions,
        address: IpAddr,
        site: Arc<dyn Site>,
        stage: watch::Receiver<Stage>,
    ) -> Self {
        Self {
            site,
            gate: Gate::new(&options, address),
            sessions: Arc::new(Sessions::new(options.limits, Handle::current())),
            keeper: options.sessions.clone().map(|store| {
                let idle = options.limits.session_idle;
                Arc::new(Keeper::new(store, idle))
            }),
            guests: Arc::default(),
            upgrades: Upgrades::default(),
            stage,
            options,
        }
    }

    /// Ready when the server begins to end.
    pub(super) fn draining(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reached(Stage::Draining)
    }

    /// Ready when the server gives up waiting.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reached(Stage::Ended)
    }

    /// Whether the server has given up waiting. Connections look again when that comes to pass.
    pub(super) fn has_ended(&self) -> bool {
        *self.stage.borrow() == Stage::Ended
    }

    /// Seats somebody for something that stays: a session, a WebSocket, a stream that is listened to. How
    /// many of these a guest may have is for the site to say.
    pub(super) fn seat(&self, visitor: Visitor) -> Result<Visitor, Box<Reply>> {
        let Some(guest) = &visitor.guest else {
            return Ok(visitor);
        };
        let most = self.site.seats(guest);
        let seated = self.guests.seat(visitor, most);
        seated.ok_or_else(|| Box::new(reply::no_seat(most)))
    }

    fn reached(&self, wanted: Stage) -> impl Future<Output = ()> + Send + 'static {
        let mut stage = self.stage.clone();
        async move {
            // A server that is gone has ended, too.
            drop(stage.wait_for(|stage| *stage >= wanted).await.map(|_| ()));
        }
    }
}

/// Serves the requests of one connection.
pub(super) struct Handler {
    pub(super) shared: Arc<Shared>,
    pub(super) pulse: Arc<Pulse>,
    /// Whoever takes the connection over takes this with it.
    pub(super) permit: Arc<OwnedSemaphorePermit>,
}

/// What a path stands for.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    Mcp(Option<String>),
    Sse(Option<String>),
    Messages,
    WebSocket(Option<String>),
    Page,
}

/// How a request goes on.
pub(super) enum Next {
    Done(Reply),
    /// A message to an endpoint: what nearly every request is.
    Post(Incomer, Incoming),
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl Handler {
    pub(super) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let busy = self.pulse.busy();
        let (parts, body) = request.into_parts();
        let (next, origin) = match self.pass_gate(&parts) {
            Err((reply, origin)) => (Next::Done(reply), origin),
            Ok(origin) => {
                let before = self.shared.guests.now();
                let admission = match self.shared.site.admit(visit(&parts, None)) {
                    Admitting::Now(admission) => admission,
                    Admitting::Later(admission) => admission.await,
                };
                let next = match admission {
                    Admission::Welcome(guest) => self.route(parts, body, before.let_in(guest)),
                    Admission::Refused(response) => {
                        self.pulse.refuse();
                        ignore(body, &parts.headers, &self.shared.options.limits).await;
                        Next::Done(response.map(Body::whole))
                    }
                };
                (next, origin)
            }
        };
        let mut reply = match next {
            Next::Done(reply) => reply,
            Next::Post(incomer, body) => post(&self.shared, incomer, body).await,
            Next::Later(reply) => reply.await,
        };
        if let Some(origin) = origin {
            make_readable(reply.headers_mut(), origin);
        }
        Ok(reply.map(|body| body.holding(busy)))
    }

    /// Looks at Host and Origin. Gives the origin, if it is of a page that may read the answer.
    fn pass_gate(
        &self,
        parts: &Parts,
    ) -> Result<Option<HeaderValue>, (Reply, Option<HeaderValue>)> {
        match self.shared.gate.admit(parts) {
            Err(refused) => Err((turn_away(refused), None)),
            Ok(Some(origin)) if is_preflight(parts) => {
                let mut reply = reply::empty(StatusCode::NO_CONTENT);
                *reply.headers_mut() = preflight(&parts.headers);
                Err((reply, Some(origin)))
            }
            Ok(origin) => Ok(origin),
        }
    }

    fn route(self: &Arc<Self>, parts: Parts, body: Incoming, visitor: Visitor) -> Next {
        let shared = &self.shared;
        Next::Done(match Route::of(parts.uri.path()) {
            Route::Mcp(name) if parts.method == Method::POST => {
                return match enter(shared, name, parts, visitor) {
                    Ok(incomer) => Next::Post(incomer, body),
                    Err(reply) => Next::Done(*reply),
                };
            }
            Route::Mcp(name) | Route::WebSocket(name) if upgrade::is_wanted(&parts) => {
                upgrade::accept(self, name, &visitor, Request::from_parts(parts, body))
            }
            Route::Mcp(name) if parts.method == Method::GET => {
                return listen::get(shared, name, visitor, parts);
            }
            Route::Mcp(name) if parts.method == Method::DELETE => {
                return listen::delete(shared, name, visitor, &parts.headers);
            }
            Route::Mcp(_) => reply::not_allowed("GET, POST, DELETE"),
            Route::Sse(name) if parts.method == Method::GET => {
                if Accepts::of(&parts.headers).names_events {
                    legacy_sse::open(shared, name, visitor, &parts)
                } else {
                    // Such as a picture on any page, for which a browser says no Origin.
                    let message = "The client does not ask for text/event-stream";
                    reply::refusal(StatusCode::NOT_ACCEPTABLE, message)
                }
            }
            Route::Sse(_) => reply::not_allowed("GET"),
            Route::Messages if parts.method == Method::POST => {
                let shared = Arc::clone(shared);
                return Next::Later(Box::pin(async move {
                    legacy_sse::message(&shared, &visitor, parts, body).await
                }));
            }
            Route::Messages => reply::not_allowed("POST"),
            Route::WebSocket(_) => {
                let message = "This is for WebSockets";
                reply::refusal(StatusCode::UPGRADE_REQUIRED, message)
            }
            Route::Page => {
                let page = Arc::clone(self).page(parts, body, visitor);
                return Next::Later(Box::pin(page));
            }
        })
    }

    async fn page(self: Arc<Self>, mut parts: Parts, body: Incoming, visitor: Visitor) -> Reply {
        let shared = &self.shared;
        let mut limits = shared.options.limits;
        let most = shared
            .site
            .page_body(&visit(&parts, visitor.guest.as_ref()));
        limits.max_body = limits.max_body.min(most);
        let bytes = if most == 0 {
            ignore(body, &parts.headers, &limits).await;
            Bytes::new()
        } else {
            match receive(body, &limits).await {
                Ok(bytes) => bytes,
                Err(NoBody::TooLarge { limit }) => {
                    let told = shared.site.too_large(limit);
                    return told.map(|body| body.send(|| None, || Box::pin(shared.draining())));
                }
                Err(problem) => return problem.reply(),
            }
        };
        if let Some(guest) = &visitor.guest {
            parts.extensions.insert(guest.clone());
        }
        let page = shared.site.page(Request::from_parts(parts, bytes)).await;
        let stay = || shared.guests.open(&visitor, Length::Standing);
        page.map(|body| body.send(stay, || Box::pin(shared.draining())))
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Handler").finish_non_exhaustive()
    }
}

/// How whoever makes a request comes here.
pub(super) fn visit<'a>(parts: &'a Parts, guest: Option<&'a Guest>) -> Visit<'a> {
    Visit {
        method: &parts.method,
        path: parts.uri.path(),
        headers: &parts.headers,
        query: parts.uri.query(),
        guest,
    }
}

fn turn_away(refused: Refused) -> Reply {
    tracing::debug!(?refused, "a request was turned away");
    match refused {
        Refused::NoHost => reply::refusal(StatusCode::BAD_REQUEST, "One Host is needed"),
        Refused::Host => reply::refusal(StatusCode::FORBIDDEN, "This host is not served here"),
        Refused::Origin => reply::refusal(StatusCode::FORBIDDEN, "This origin is not allowed"),
    }
}

fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS
        && parts
            .headers
            .contains_key(http::header::ACCESS_CONTROL_REQUEST_METHOD)
}

impl Route {
    fn of(path: &str) -> Self {
        let under = |base: &str| name_under(path, base);
        if let Ok(name) = under("/mcp") {
            Self::Mcp(name)
        } else if let Ok(name) = under("/sse") {
            Self::Sse(name)
        } else if let Ok(name) = under("/ws") {
            Self::WebSocket(name)
        } else if path == MESSAGES {
            Self::Messages
        } else {
            Self::Page
        }
    }
}

/// The path is not `base`, nor one step below.
struct Elsewhere;

/// The name behind `base`, or none.
fn name_under(path: &str, base: &str) -> Result<Option<String>, Elsewhere> {
    let rest = path.strip_prefix(base).ok_or(Elsewhere)?;
    if rest.is_empty() || rest == "/" {
        return Ok(None);
    }
    let name = rest.strip_prefix('/').ok_or(Elsewhere)?;
    if name.contains('/') {
        return Err(Elsewhere);
    }
    let name = decode_percent(name).ok_or(Elsewhere)?;
    Ok(Some(name.into_owned()))
}

fn decode_percent(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            plain => plain,
        };
        decoded.push(byte);
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::Route;

    #[test]
    fn paths_lead_to_endpoints_by_name() {
        let name = |text: &str| Some(text.to_owned());
        for (path, route) in [
            ("/mcp", Route::Mcp(None)),
            ("/mcp/", Route::Mcp(None)),
            ("/mcp/files", Route::Mcp(name("files"))),
            ("/mcp/a%20b%c3%a9", Route::Mcp(name("a bé"))),
            ("/sse", Route::Sse(None)),
            ("/sse/files", Route::Sse(name("files"))),
            ("/ws/files", Route::WebSocket(name("files"))),
            ("/messages", Route::Messages),
            ("/", Route::Page),
            ("/mcpx", Route::Page),
            ("/mcp/a/b", Route::Page),
            ("/mcp//", Route::Page),
            ("/mcp/a%2", Route::Page),
            ("/mcp/a%zz", Route::Page),
            ("/mcp/%ff", Route::Page),
            ("/messages/x", Route::Page),
        ] {
            assert_eq!(Route::of(path), route, "for {path}");
        }
    }
}
