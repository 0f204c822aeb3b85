//! What can go wrong, said once: for a connection, and for one request.

use std::time::Duration;

use cocode_wire::{Closed, CredentialsErrorKind, LinkError, OpenError, RpcError};

use cocode_core::Revision;

/// Every name that [`RequestError::code`] and [`ConnectError::code`] can give, in the order of the
/// alphabet. `docs/errors` has a page for each.
pub const ERROR_CODES: [&str; 27] = [
    "answer-too-large",
    "auth-required",
    "client-registration-required",
    "connect-timeout",
    "connection-broken",
    "connection-closed",
    "credentials-unavailable",
    "handshake-refused",
    "http-setup",
    "http-status",
    "invalid-params",
    "invalid-target",
    "malformed-answer",
    "message-too-large",
    "no-answer",
    "redirect-refused",
    "request-timeout",
    "server-error",
    "server-exited",
    "session-gone",
    "spawn-failed",
    "too-many-input-rounds",
    "transport-error",
    "unexpected-answer",
    "unreachable",
    "version-mismatch",
    "wrong-content-type",
];

/// Whether trying the same again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The server never saw the request: trying again is safe.
    Safe,
    /// The server may have acted on it: only a request that may be repeated should be.
    MayHaveRun,
    /// The answer would be the same.
    Pointless,
}

/// Why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server answered with an error.
    #[error("the server refused `{method}`")]
    Rpc {
        /// What was asked.
        method: String,
        /// What it answered.
        #[source]
        error: RpcError,
    },
    /// No answer came in time.
    #[error("`{method}` got no answer within {}", seconds(*after))]
    Timeout {
        /// What was asked.
        method: String,
        /// How long we waited since the last sign of progress, or in total.
        after: Duration,
    },
    /// The connection ended before the answer came.
    #[error("the connection ended during `{method}`: {reason}")]
    Closed {
        /// What was asked.
        method: String,
        /// Why it ended.
        reason: Closed,
        /// Whether the server may have got the request.
        sent: bool,
    },
    /// The transport could not carry the request or its answer.
    #[error("`{method}` failed")]
    Link {
        /// What was asked.
        method: String,
        /// What happened.
        #[source]
        error: LinkError,
    },
    /// The answer was no usable JSON-RPC message.
    #[error("the server answered `{method}` with {reason}: {excerpt}")]
    Malformed {
        /// What was asked.
        method: String,
        /// What is wrong with the answer.
        reason: String,
        /// The beginning of it.
        excerpt: String,
    },
    /// The answer is JSON-RPC, but not what the method promises.
    #[error("the server's answer to `{method}` does not fit: {reason}")]
    Unexpected {
        /// What was asked.
        method: String,
        /// What does not fit.
        reason: String,
    },
    /// The server asked for input again and again.
    #[error("`{method}` still needs input after {rounds} rounds")]
    InputRounds {
        /// What was asked.
        method: String,
        /// How often input was given.
        rounds: usize,
    },
    /// The parameters are no JSON object.
    #[error("the parameters of `{method}` are not a JSON object")]
    Params {
        /// What was asked.
        method: String,
    },
}

/// Why no session could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no connection.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The connection is there, but the two did not get to know each other.
    #[error("the handshake failed")]
    Handshake {
        /// What happened.
        #[source]
        error: RequestError,
        /// The last lines of the server's stderr.
        stderr: Vec<String>,
        /// The first lines that it sent which were no messages.
        noise: Vec<String>,
    },
    /// All of it took too long.
    #[error("not connected within {}, while {step}", seconds(*after))]
    Timeout {
        /// How long we waited.
        after: Duration,
        /// What we were waiting for.
        step: &'static str,
        /// The last lines of the server's stderr.
        stderr: Vec<String>,
        /// The first lines that it sent which were no messages.
        noise: Vec<String>,
    },
    /// The two have no revision in common that the caller accepts.
    #[error("the server speaks {offered}, but {wanted} is wanted")]
    Version {
        /// What the server offers.
        offered: String,
        /// What the caller accepts.
        wanted: String,
    },
}

impl RequestError {
    /// A JSON-RPC error that came with an HTTP error is the server's answer to the request.
    pub(crate) fn with_its_answer(self) -> Self {
        match self {
            Self::Link {
                method,
                error:
                    LinkError::Status {
                        rpc: Some(error), ..
                    },
            } => Self::Rpc { method, error },
            other => other,
        }
    }

    /// Whether trying again can help. An error of the server's own making is pointless to repeat
    /// unless the server says otherwise.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Rpc { .. }
            | Self::Unexpected { .. }
            | Self::InputRounds { .. }
            | Self::Params { .. } => Retry::Pointless,
            Self::Closed { sent: false, .. } => Retry::Safe,
            Self::Timeout { .. } | Self::Closed { .. } | Self::Malformed { .. } => {
                Retry::MayHaveRun
            }
            Self::Link { error, .. } => retry_of_link(error),
        }
    }

    /// How long the server asks to be left alone, if it says (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Link {
                error: LinkError::Status { retry_after, .. },
                ..
            } => retry_after.map(Duration::from_secs),
            _ => None,
        }
    }

    /// The stable name of this kind of error; `docs/errors` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rpc { .. } => "server-error",
            Self::Timeout { .. } => "request-timeout",
            Self::Closed { reason, .. } => code_of_close(reason),
            Self::Link { error, .. } => code_of_link(error),
            Self::Malformed { .. } => "malformed-answer",
            Self::Unexpected { .. } => "unexpected-answer",
            Self::InputRounds { .. } => "too-many-input-rounds",
            Self::Params { .. } => "invalid-params",
        }
    }
}

impl ConnectError {
    /// Whether trying again can help. Nothing was asked of the server yet, so it is always safe.
    pub fn retry(&self) -> Retry {
        let helps = match self {
            Self::Open(OpenError::Link(error)) => retry_of_link(error) != Retry::Pointless,
            Self::Open(OpenError::Unix { .. }) | Self::Timeout { .. } => true,
            Self::Handshake { error, .. } => error.retry() != Retry::Pointless,
            Self::Open(_) | Self::Version { .. } => false,
        };
        if helps { Retry::Safe } else { Retry::Pointless }
    }

    /// The stable name of this kind of error; `docs/errors` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open(OpenError::Spawn(_)) => "spawn-failed",
            Self::Open(OpenError::Unix { .. }) => "unreachable",
            Self::Open(OpenError::HttpSetup(_)) => "http-setup",
            Self::Open(OpenError::Link(error)) => code_of_link(error),
            Self::Open(_) => "invalid-target",
            Self::Handshake { error, .. } => match error.code() {
                "server-error" => "handshake-refused",
                other => other,
            },
            Self::Timeout { .. } => "connect-timeout",
            Self::Version { .. } => "version-mismatch",
        }
    }

    /// The last lines of the server's stderr, where there are any.
    pub fn stderr(&self) -> &[String] {
        match self {
            Self::Handshake {
                error: RequestError::Closed { reason, .. },
                stderr,
                ..
            } => match reason {
                Closed::Exited { stderr, .. } => stderr,
                _ => stderr,
            },
            Self::Handshake { stderr, .. } | Self::Timeout { stderr, .. } => stderr,
            Self::Open(_) | Self::Version { .. } => &[],
        }
    }

    /// The first lines that the server sent which were no messages: usually logs on its stdout.
    pub fn noise(&self) -> &[String] {
        match self {
            Self::Handshake { noise, .. } | Self::Timeout { noise, .. } => noise,
            Self::Open(_) | Self::Version { .. } => &[],
        }
    }

    pub(crate) fn version(offered: &str, wanted: &[Revision]) -> Self {
        let wanted: Vec<&str> = wanted.iter().map(|revision| revision.as_str()).collect();
        Self::Version {
            offered: offered.to_owned(),
            wanted: wanted.join(" or "),
        }
    }
}

fn retry_of_link(error: &LinkError) -> Retry {
    match error {
        LinkError::Unreachable { .. }
        | LinkError::SessionGone
        | LinkError::Status { status: 429, .. } => Retry::Safe,
        LinkError::Credentials(error) if error.kind == CredentialsErrorKind::Temporary => {
            Retry::Safe
        }
        LinkError::TooLarge { .. }
        | LinkError::AuthRequired(_)
        | LinkError::Credentials(_)
        | LinkError::Redirect { .. }
        | LinkError::ContentType { .. }
        | LinkError::AnswerTooLarge { .. }
        | LinkError::Malformed { .. } => Retry::Pointless,
        LinkError::Status { status, .. } if *status < 500 => Retry::Pointless,
        _ => Retry::MayHaveRun,
    }
}

fn code_of_link(error: &LinkError) -> &'static str {
    match error {
        LinkError::Closed(reason) => code_of_close(reason),
        LinkError::TooLarge { .. } => "message-too-large",
        LinkError::Unreachable { .. } => "unreachable",
        LinkError::Broken { .. } => "connection-broken",
        LinkError::Status { .. } => "http-status",
        LinkError::AuthRequired(_) => "auth-required",
        LinkError::Credentials(error) => match error.kind {
            CredentialsErrorKind::NeedsAuth => "auth-required",
            CredentialsErrorKind::NeedsClientRegistration => "client-registration-required",
            _ => "credentials-unavailable",
        },
        LinkError::SessionGone => "session-gone",
        LinkError::Redirect { .. } => "redirect-refused",
        LinkError::ContentType { .. } => "wrong-content-type",
        LinkError::AnswerTooLarge { .. } => "answer-too-large",
        LinkError::Malformed { .. } => "malformed-answer",
        LinkError::NoAnswer { .. } => "no-answer",
        _ => "transport-error",
    }
}

fn code_of_close(reason: &Closed) -> &'static str {
    match reason {
        Closed::Exited { .. } => "server-exited",
        _ => "connection-closed",
    }
}

/// A duration as people write it.
fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::ERROR_CODES;

    #[test]
    fn the_table_holds_exactly_the_codes_that_are_given() {
        let source = include_str!("error.rs");
        let mut given: Vec<&str> = source
            .split("=> \"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .filter(|code| {
                code.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
                    && !code.is_empty()
            })
            .collect();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given, ERROR_CODES);
    }
}
