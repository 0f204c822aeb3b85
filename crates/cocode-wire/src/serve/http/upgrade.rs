//! The way from HTTP into a WebSocket: the opening handshake, and the tasks that carry what follows.

use std::sync::{Arc, Mutex, PoisonError};

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::client_name::{ClientName, Introduced};
use super::guests::Visitor;
use super::handler::Handler;
use super::post::endpoint;
use super::reply::{self, Reply};
use super::site::Visit;
use crate::serve::connection::Patience;
use crate::serve::websocket::{WebSocketOptions, serve_websocket};

const SUBPROTOCOL: &str = "mcp";
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// Every WebSocket of a server.
#[derive(Debug, Default)]
pub(super) struct Upgrades(Mutex<JoinSet<()>>);

impl Upgrades {
    /// Owns a WebSocket until it ends.
    fn keep(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Whether there is none left.
    pub(super) fn is_empty(&self) -> bool {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.is_empty()
    }

    /// Hands all over to be waited for.
    pub(super) fn take(&self) -> JoinSet<()> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a request wants to become a WebSocket.
pub(super) fn is_wanted(parts: &Parts) -> bool {
    parts.method == Method::GET && has_token(&parts.headers, &UPGRADE, "websocket")
}

/// Agrees to become a WebSocket to the endpoint of that name.
pub(super) fn accept(
    handler: &Handler,
    name: Option<String>,
    visitor: &Visitor,
    request: Request<Incoming>,
) -> Reply {
    let headers = request.headers();
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let Some(key) = key.filter(|_| has_token(headers, &CONNECTION, "upgrade")) else {
        return reply::refusal(StatusCode::BAD_REQUEST, "Not a WebSocket handshake");
    };
    if headers.get(SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
        let message = "This version of WebSockets is not spoken here";
        let mut reply = reply::refusal(StatusCode::UPGRADE_REQUIRED, message);
        reply.headers_mut().insert(SEC_WEBSOCKET_VERSION, VERSION);
        return reply;
    }
    let visit = Visit {
        method: request.method(),
        path: request.uri().path(),
        headers,
        query: request.uri().query(),
        guest: visitor.guest.as_ref(),
    };
    let endpoint = match endpoint(&*handler.shared.site, name.as_deref(), &visit) {
        Ok(endpoint) => endpoint,
        Err(reply) => return *reply,
    };
    let Ok(accepted) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) else {
        return reply::refusal(StatusCode::BAD_REQUEST, "Not a WebSocket handshake");
    };
    let visitor = match handler.shared.seat(visitor.clone()) {
        Ok(visitor) => visitor,
        Err(reply) => return *reply,
    };
    let speaks_mcp = has_token(headers, &SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
    let permit = Arc::clone(&handler.permit);
    let draining = handler.shared.draining();
    let limits = &handler.shared.options.limits;
    let options = WebSocketOptions {
        max_frame: limits.max_body,
        patience: Patience {
            max_in_flight: limits.max_session_requests,
            drain: limits.drain,
            ..Patience::default()
        },
    };
    let upgrade = hyper::upgrade::on(request);
    let client = Arc::<ClientName>::default();
    let endpoint = Introduced::new(endpoint, &client);
    let mut stay = handler.shared.guests.open_socket(&visitor, name, client);
    let evicted = stay.evicted();
    handler.shared.upgrades.keep(async move {
        // What was asked for in time is answered.
        let over = async {
            tokio::select! {
                () = draining => {}
                () = std::future::poll_fn(|context| stay.poll_late(context)) => {}
            }
        };
        let served = async {
            match upgrade.await {
                Ok(io) => {
                    let io = TokioIo::new(io);
                    let reason = serve_websocket(io, &endpoint, &options, over).await;
                    tracing::debug!(?reason, "a WebSocket ended");
                }
                Err(error) => tracing::debug!(%error, "a WebSocket did not come to be"),
            }
        };
        tokio::select! {
            biased;
            () = evicted => tracing::debug!("a WebSocket was ended: its guest has to go"),
            () = served => {}
        }
        drop(permit);
    });
    let mut reply = reply::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = reply.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    if speaks_mcp {
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    reply
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut tokens = texts.flat_map(|text| text.split(','));
    tokens.any(|one| one.trim().eq_ignore_ascii_case(token))
}
