//! The first exchange of a session, in each era.

use std::borrow::Cow;
use std::time::Duration;

use cocode_wire::{LinkError, RpcError, code, header_value};
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use crate::clock::Deadlines;
use crate::connection::{Cancel, Connection, Exchange, INITIALIZE};
use crate::error::{ConnectError, RequestError};
use crate::mux::Reports;
use crate::options::SessionOptions;
use crate::server::{Greeting, ServerFacts};
use cocode_core::{Era, Revision};

/// What asking a server for its era showed.
#[derive(Debug)]
pub(crate) enum Probe {
    /// It is stateless.
    Modern(ServerFacts),
    /// It answered like a server of the older era. Says how.
    Legacy(RequestError),
    /// It did not answer: not in time, or the exchange broke. That says nothing of its era.
    Silent(RequestError),
    /// It closed the connection.
    Gone(RequestError),
    /// No era will help.
    Failed(RequestError),
}

/// Asks `server/discover`, as the newest stateless revision.
pub(crate) async fn discover(
    connection: &Connection,
    options: &SessionOptions,
    patience: Duration,
) -> Probe {
    let mut revision = Revision::LATEST_MODERN;
    for _attempt in 0..2 {
        let headers = modern_headers(connection, revision, "server/discover", None);
        let meta = modern_meta(options, revision);
        let exchange = Exchange {
            method: "server/discover",
            params: None,
            meta: Cow::Owned(meta),
            headers,
            deadlines: Deadlines::fixed(patience),
            reports: Reports::No,
            cancel: Cancel::Silently,
        };
        let answer = result_of(connection.exchange(exchange).await, "server/discover");
        match judge(answer, revision) {
            Judged::Probe(probe) => return *probe,
            Judged::Again(supported) => revision = supported,
        }
    }
    Probe::Failed(unexpected(
        "server/discover",
        "the server refuses the version that it offers",
    ))
}

enum Judged {
    Probe(Box<Probe>),
    Again(Revision),
}

fn judge(answer: Result<Greeting, RequestError>, asked: Revision) -> Judged {
    let probe = match answer {
        Ok(greeting) => match &greeting.supported {
            Some(supported) => match Revision::newest_among(supported, Era::Modern) {
                Some(revision) => Probe::Modern(greeting.into_facts(revision)),
                None => Probe::Legacy(unexpected("server/discover", "no stateless version")),
            },
            None => Probe::Legacy(unexpected("server/discover", "no supported versions")),
        },
        Err(RequestError::Rpc { method, error }) => match supported_in(&error) {
            Some(supported) => match Revision::newest_among(&supported, Era::Modern) {
                Some(revision) => return Judged::Again(revision),
                None => Probe::Legacy(RequestError::Rpc { method, error }),
            },
            // Only a stateless server knows these, and asking in another way will not help it.
            None if is_modern_error(&error) => {
                tracing::debug!(asked = %asked, "a stateless server refuses to be discovered");
                Probe::Failed(RequestError::Rpc { method, error })
            }
            None => Probe::Legacy(RequestError::Rpc { method, error }),
        },
        Err(error @ RequestError::Timeout { .. }) => Probe::Silent(error),
        Err(error @ RequestError::Closed { .. }) => Probe::Gone(error),
        Err(error @ RequestError::Link { .. }) => match &error {
            RequestError::Link {
                error:
                    LinkError::AuthRequired(_)
                    | LinkError::Credentials(_)
                    | LinkError::Unreachable { .. }
                    | LinkError::Redirect { .. }
                    | LinkError::TooLarge { .. },
                ..
            } => Probe::Failed(error),
            RequestError::Link {
                error: LinkError::Broken { .. },
                ..
            } => Probe::Silent(error),
            _ => Probe::Legacy(error),
        },
        Err(error) => Probe::Legacy(error),
    };
    Judged::Probe(Box::new(probe))
}

/// Opens a session with `initialize`, offering `offer`, and accepting any of `accept`.
pub(crate) async fn initialize(
    connection: &Connection,
    options: &SessionOptions,
    offer: Revision,
    accept: &[Revision],
) -> Result<ServerFacts, ConnectError> {
    let greeting = match offer_version(connection, options, offer).await {
        // Some servers refuse what they should answer with a version of their own.
        Err(error) => {
            let supported = answer_in(&error).and_then(supported_in).unwrap_or_default();
            match Revision::newest_among(&supported, Era::Legacy).filter(|other| *other != offer) {
                Some(other) => offer_version(connection, options, other).await,
                None => Err(error),
            }
        }
        other => other,
    };
    let greeting = greeting.map_err(|error| failed(connection, error))?;
    let version = greeting.version.clone().unwrap_or_default();
    let revision = version
        .parse()
        .ok()
        .filter(|revision| accept.contains(revision));
    let Some(revision) = revision else {
        let offered = if version.is_empty() {
            "no version at all"
        } else {
            &version
        };
        return Err(ConnectError::version(offered, accept));
    };
    connection.link.set_protocol(revision.as_str(), true);
    let initialized = "notifications/initialized";
    if let Err(error) = connection.notify(initialized, None, HeaderMap::new()).await {
        if let RequestError::Closed { .. } = error {
            return Err(failed(connection, error));
        }
        // The server has a session for us already; whether it works will show.
        tracing::warn!(%error, "the server did not take `{initialized}`");
    }
    connection.link.listen();
    Ok(greeting.into_facts(revision))
}

async fn offer_version(
    connection: &Connection,
    options: &SessionOptions,
    offer: Revision,
) -> Result<Greeting, RequestError> {
    let params = serde_json::json!({
        "protocolVersion": offer.as_str(),
        "clientInfo": { "name": options.client.name, "version": options.client.version },
    });
    let capabilities = format!(
        r#""capabilities":{}"#,
        options.handler.capabilities().to_json()
    );
    let params =
        crate::params::with_members(params.to_string().as_bytes(), capabilities.as_bytes());
    let params = params.unwrap_or_default();
    let exchange = Exchange {
        method: INITIALIZE,
        params: Some(&params),
        meta: Cow::Borrowed(b""),
        headers: HeaderMap::new(),
        deadlines: Deadlines::fixed(options.timeouts.connect),
        reports: Reports::No,
        cancel: Cancel::Silently,
    };
    result_of(connection.exchange(exchange).await, INITIALIZE)
}

fn result_of(
    answer: Result<cocode_wire::Frame, RequestError>,
    method: &str,
) -> Result<Greeting, RequestError> {
    let frame = answer?;
    if let Some(error) = frame.error() {
        return Err(RequestError::Rpc {
            method: method.to_owned(),
            error,
        });
    }
    let raw = frame
        .result()
        .ok_or_else(|| unexpected(method, "no result"))?;
    Greeting::parse(&raw).map_err(|error| unexpected(method, &error.to_string()))
}

/// The JSON-RPC error that a server answered with, whatever the HTTP status.
pub(crate) fn answer_in(error: &RequestError) -> Option<&RpcError> {
    match error {
        RequestError::Rpc { error, .. } => Some(error),
        RequestError::Link {
            error: LinkError::Status { rpc, .. },
            ..
        } => rpc.as_ref(),
        _ => None,
    }
}

/// Whether only a stateless server answers like this.
pub(crate) fn is_modern_error(error: &RpcError) -> bool {
    matches!(
        error.code,
        code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// The versions a server names in an error.
pub(crate) fn supported_in(error: &RpcError) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    error
        .data
        .as_ref()?
        .decode::<Data>()
        .ok()
        .map(|data| data.supported)
}

fn unexpected(method: &str, reason: &str) -> RequestError {
    RequestError::Unexpected {
        method: method.to_owned(),
        reason: reason.to_owned(),
    }
}

pub(crate) fn failed(connection: &Connection, error: RequestError) -> ConnectError {
    ConnectError::Handshake {
        error,
        stderr: connection.link.stderr_lines(),
        noise: connection.mux.noise(),
    }
}

/// What every request of the stateless era says about us.
pub(crate) fn modern_meta(options: &SessionOptions, revision: Revision) -> Vec<u8> {
    let info = serde_json::json!({
        "name": options.client.name, "version": options.client.version,
    });
    let capabilities = options.handler.capabilities().to_json();
    let mut meta = format!(
        r#""io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientInfo":{info},"io.modelcontextprotocol/clientCapabilities":{capabilities}"#,
    );
    if let Some(level) = &options.log_level {
        let level = serde_json::Value::from(level.as_str());
        meta = format!(r#"{meta},"io.modelcontextprotocol/logLevel":{level}"#);
    }
    meta.into_bytes()
}

/// The headers that mirror a request of the stateless era.
pub(crate) fn modern_headers(
    connection: &Connection,
    revision: Revision,
    method: &str,
    name: Option<&str>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !connection.link.carries_headers() {
        return headers;
    }
    headers.insert(
        "mcp-protocol-version",
        HeaderValue::from_static(revision.as_str()),
    );
    headers.insert("mcp-method", header_value(method));
    if let Some(name) = name {
        headers.insert("mcp-name", header_value(name));
    }
    headers
}
