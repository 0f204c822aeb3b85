//! What can go wrong on a link: for one request, or for the whole link.

use std::sync::Arc;

use cocode_process::ExitReport;

use crate::credentials::CredentialsError;
use crate::rpc_error::RpcError;

/// Why one message could not be delivered or answered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The link is gone.
    #[error("the connection is closed: {0}")]
    Closed(Closed),
    /// We were asked to send more than the cap allows.
    #[error("the message has {size} bytes, more than the cap of {limit}")]
    TooLarge {
        /// Size of the message.
        size: usize,
        /// The cap.
        limit: usize,
    },
    /// No HTTP connection could be made.
    #[error("cannot reach {url}")]
    Unreachable {
        /// Where to.
        url: String,
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The HTTP exchange broke after the request may have reached the server.
    #[error("the HTTP exchange with {url} broke")]
    Broken {
        /// Where to.
        url: String,
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The server answered with an HTTP error.
    #[error("HTTP {status}{}", text_after(body))]
    Status {
        /// The status code.
        status: u16,
        /// The beginning of the body.
        body: String,
        /// The JSON-RPC error in the body, if there is one.
        rpc: Option<RpcError>,
        /// Seconds the server asks us to wait (`Retry-After`).
        retry_after: Option<u64>,
    },
    /// The server wants credentials, or others.
    #[error("{0}")]
    AuthRequired(Challenge),
    /// There are no credentials to show.
    #[error(transparent)]
    Credentials(CredentialsError),
    /// The server does not know our session any more.
    #[error("the server has ended the session")]
    SessionGone,
    /// The server sends us elsewhere, and we do not go there.
    #[error("refused to follow the redirect (HTTP {status}) to {location}")]
    Redirect {
        /// The status code.
        status: u16,
        /// Where the server points.
        location: String,
    },
    /// Neither JSON nor an event stream.
    #[error("the server answered with {content_type}{}", text_after(excerpt))]
    ContentType {
        /// What it is instead.
        content_type: String,
        /// The beginning of it.
        excerpt: String,
    },
    /// The answer was longer than the cap.
    #[error("the answer is over the cap of {limit} bytes")]
    AnswerTooLarge {
        /// The cap.
        limit: usize,
    },
    /// The answer was no JSON-RPC message.
    #[error("the server answered with {reason}{}", text_after(excerpt))]
    Malformed {
        /// What is wrong with it.
        reason: String,
        /// The beginning of it.
        excerpt: String,
    },
    /// The exchange ended without the answer.
    #[error(
        "the server ended the exchange without answering the request{}",
        text_after(detail)
    )]
    NoAnswer {
        /// What was seen instead, if anything.
        detail: String,
    },
}

/// `: text`, or nothing.
fn text_after(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

/// What a server said when it refused a request for lack of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// 401, or 403 where other credentials would do.
    pub status: u16,
    /// The `WWW-Authenticate` headers.
    pub www_authenticate: Vec<String>,
    /// The `Mcp-Auth-Server` header.
    pub auth_server: Option<String>,
}

impl std::fmt::Display for Challenge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "the server requires authentication (HTTP {})",
            self.status
        )?;
        if let Some(server) = &self.auth_server {
            write!(formatter, ", authorization server {server}")?;
        }
        match self.www_authenticate.first() {
            Some(challenge) => write!(formatter, ": {challenge}"),
            None if self.auth_server.is_some() => Ok(()),
            None => formatter.write_str(" and names no way to get it"),
        }
    }
}

/// Why a link ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Closed {
    /// We closed it.
    ByUs,
    /// The peer closed it.
    ByPeer,
    /// The server process ended.
    Exited {
        /// How.
        report: ExitReport,
        /// The last lines of its stderr.
        stderr: Vec<String>,
        /// Whether it ended without having read all that was sent.
        has_unread: bool,
    },
    /// Reading or writing failed.
    Io(Arc<std::io::Error>),
    /// The WebSocket was closed with a code.
    WebSocket {
        /// The close code.
        code: u16,
        /// The reason given.
        reason: String,
    },
    /// The peer answers no pings.
    Silent,
    /// The peer broke the rules of the transport.
    Protocol(String),
}

impl std::fmt::Display for Closed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ByUs => formatter.write_str("closed by this side"),
            Self::ByPeer => formatter.write_str("the server closed the connection"),
            Self::Exited { report, .. } => write!(formatter, "the server ended with {report}"),
            Self::Io(error) => write!(formatter, "{error}"),
            Self::WebSocket { code, reason } if reason.is_empty() => {
                write!(
                    formatter,
                    "the server closed the WebSocket with code {code}"
                )
            }
            Self::WebSocket { code, reason } => {
                write!(
                    formatter,
                    "the server closed the WebSocket with code {code} ({reason})"
                )
            }
            Self::Silent => formatter.write_str("the server no longer answers pings"),
            Self::Protocol(what) => formatter.write_str(what),
        }
    }
}
