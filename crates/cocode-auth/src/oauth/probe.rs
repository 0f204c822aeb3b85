//! Asks an MCP server whether it wants credentials, where no refusal is at hand.

use std::time::Duration;

use bytes::Bytes;
use cocode_wire::{Challenge, FetchError, HeaderMap, HttpClient, Url};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

use super::http::shown;

/// How long one question may take.
const QUESTION_LIMIT: Duration = Duration::from_secs(20);

/// What is asked first: it changes nothing, begins no session, and servers that let strangers
/// introduce themselves refuse it.
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// What is asked where a session is demanded before anything else.
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"cocode","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What a server does with a request that shows no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// It refuses it for lack of credentials.
    Refused(Challenge),
    /// It answers it: it wants no credentials, or not for everything.
    Open,
    /// It refuses it for another reason.
    Unclear {
        /// The status code.
        status: u16,
    },
}

/// Why a server could not be asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProbeError {
    /// The exchange failed.
    #[error("cannot reach {url}")]
    Failed {
        /// Where to, without its query.
        url: String,
        /// Why.
        #[source]
        source: FetchError,
    },
    /// It took too long.
    #[error("{url} did not answer within {} seconds", QUESTION_LIMIT.as_secs())]
    TimedOut {
        /// Where to, without its query.
        url: String,
    },
}

/// Asks an MCP server, with the headers that are configured for it, until an answer is clear.
pub async fn probe(
    http: &HttpClient,
    url: &Url,
    headers: &HeaderMap,
) -> Result<ProbeAnswer, ProbeError> {
    let asked = [
        (Method::POST, PING),
        (Method::POST, INITIALIZE),
        // The older transport takes nothing at its address but listens there.
        (Method::GET, ""),
    ];
    let mut unclear = None;
    for (method, body) in asked {
        let answer = ask(http, method, url, headers.clone(), body).await?;
        let status = answer.status();
        let challenge = challenge(&answer);
        let asks = !challenge.www_authenticate.is_empty();
        if status == StatusCode::UNAUTHORIZED || (status == StatusCode::FORBIDDEN && asks) {
            return Ok(ProbeAnswer::Refused(challenge));
        }
        if status.is_success() {
            leave(http, url, headers.clone(), &answer).await;
            return Ok(ProbeAnswer::Open);
        }
        unclear.get_or_insert(status.as_u16());
    }
    let status = unclear.unwrap_or_default();
    Ok(ProbeAnswer::Unclear { status })
}

fn challenge(answer: &Response<()>) -> Challenge {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = answer.headers();
    let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
    Challenge {
        status: answer.status().as_u16(),
        www_authenticate: values.map(text).collect(),
        auth_server: headers.get("mcp-auth-server").map(text),
    }
}

/// Ends the session that a question has begun. If that fails, the server ends it in its own time.
async fn leave(http: &HttpClient, url: &Url, mut headers: HeaderMap, answer: &Response<()>) {
    let Some(session) = answer.headers().get(SESSION) else {
        return;
    };
    headers.insert(SESSION, session.clone());
    if let Err(error) = ask(http, Method::DELETE, url, headers, "").await {
        tracing::debug!(%error, "a session that was only a question stays open");
    }
}

async fn ask(
    http: &HttpClient,
    method: Method,
    url: &Url,
    mut headers: HeaderMap,
    body: &'static str,
) -> Result<Response<()>, ProbeError> {
    let failed = |source| ProbeError::Failed {
        url: shown(url),
        source,
    };
    let accept = match method {
        Method::GET => "text/event-stream",
        _ => "application/json, text/event-stream",
    };
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    if !body.is_empty() {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
    }
    let mut request = Request::new(Bytes::from_static(body.as_bytes()));
    *request.method_mut() = method;
    *request.headers_mut() = headers;
    *request.uri_mut() = url
        .as_str()
        .parse()
        .map_err(|_no_uri| failed(FetchError::Address))?;
    match tokio::time::timeout(QUESTION_LIMIT, http.fetch_head(request)).await {
        Ok(answer) => answer.map_err(failed),
        Err(_elapsed) => Err(ProbeError::TimedOut { url: shown(url) }),
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
