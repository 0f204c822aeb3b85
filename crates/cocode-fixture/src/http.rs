//! Any number of clients over streamable HTTP, at `/mcp` on the loopback interface.

use std::convert::Infallible;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::era::Era;
use crate::screen::{Screen, Screened, error};
use crate::server::Fixture;
use crate::sessions::Sessions;
use crate::shared::Shared;

const PATH: &str = "/mcp";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// What a legacy server says to a version that it does not know, and other mistakes of transport.
const BAD_REQUEST: i64 = -32000;
const HEADER_MISMATCH: i64 = -32020;

type Service = StreamableHttpService<Fixture, Sessions>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

pub(crate) async fn serve(shared: Arc<Shared>, port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let port = listener.local_addr()?.port();
    let era = shared.era;
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(era != Era::Modern)
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]);
    let service = Service::new(
        move || Ok(Fixture::new(Arc::clone(&shared))),
        Arc::default(),
        config,
    );
    let mut terminated = signal(SignalKind::terminate())?;
    println!("http://localhost:{port}{PATH}");
    let mut connections = JoinSet::new();
    loop {
        let (stream, _peer) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = terminated.recv() => return Ok(()),
        };
        stream.set_nodelay(true)?;
        let service = service.clone();
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(answer(&service, era, request).await) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                eprintln!("a connection ended: {error}");
            }
        });
        // Those that are over need no place.
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(service: &Service, era: Era, request: Request<Incoming>) -> Answer {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, Bytes::new());
    }
    let (parts, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return plain(StatusCode::BAD_REQUEST, error.to_string().into()),
    };
    let message = serde_json::from_slice::<Value>(&body).ok();
    let id = message
        .as_ref()
        .and_then(|message| message.get("id"))
        .cloned()
        .unwrap_or_default();
    if let Some(refusal) = check_head(era, &parts, &id) {
        return refusal;
    }
    // What is not JSON is for rmcp to refuse.
    let body = match message.map(|message| Screen::of_request(era).look_at(message)) {
        Some(Screened::Pass(message)) if era == Era::Legacy => message.to_string().into(),
        Some(Screened::Pass(_)) | None => body,
        Some(Screened::Refuse(error)) => return refuse(StatusCode::NOT_FOUND, &error),
        Some(Screened::Drop) => return plain(StatusCode::ACCEPTED, Bytes::new()),
    };
    service
        .handle(Request::from_parts(parts, Full::new(body)))
        .await
}

/// What a server of one era says to the other before it reads the body.
fn check_head(era: Era, parts: &http::request::Parts, id: &Value) -> Option<Answer> {
    let version = parts.headers.get(PROTOCOL_VERSION);
    match era {
        Era::Both => None,
        Era::Legacy => {
            let known = era.versions();
            let is_known = |version: &http::HeaderValue| {
                let version = version.as_bytes();
                known
                    .iter()
                    .any(|known| known.as_str().as_bytes() == version)
            };
            version.filter(|version| !is_known(version)).map(|_| {
                let text = "Bad Request: Unsupported protocol version";
                refuse(StatusCode::BAD_REQUEST, &error(id, BAD_REQUEST, text))
            })
        }
        Era::Modern if parts.method != Method::POST => {
            Some(plain(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()))
        }
        Era::Modern => version.is_none().then(|| {
            let text = "MCP-Protocol-Version is missing; supported: 2026-07-28";
            refuse(StatusCode::BAD_REQUEST, &error(id, HEADER_MISMATCH, text))
        }),
    }
}

fn plain(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body).boxed());
    *answer.status_mut() = status;
    answer
}

fn refuse(status: StatusCode, error: &Value) -> Answer {
    let mut answer = plain(status, error.to_string().into());
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    answer
}
