//! Why something was not done, as a status, a code for programs and words for people.

use std::fmt;
use std::time::Duration;

use http::StatusCode;

use crate::schema::record;

/// Hints that are passed on with one refusal.
const MAX_HINTS: usize = 16;

/// The ways in which the API refuses. There are no others, so that each is documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalStatus {
    /// 400: the request cannot be understood.
    Malformed,
    /// 401: nobody is signed in.
    SignedOut,
    /// 403: whoever asks may not do this.
    Forbidden,
    /// 404: there is no such thing.
    Unknown,
    /// 405: this is not done to such a thing.
    WrongMethod,
    /// 409: it does not go with how things are now.
    Conflict,
    /// 413: the body is too large.
    TooLarge,
    /// 415: the body is not JSON.
    NotJson,
    /// 422: the request is understood, and what it wants cannot be.
    Unfit,
    /// 424: a server that the gateway depends on for this did not do its part.
    ServerFailed,
    /// 429: too much in too short a time.
    TooMany,
    /// 503: not now.
    Unavailable,
}

impl RefusalStatus {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Malformed,
        Self::SignedOut,
        Self::Forbidden,
        Self::Unknown,
        Self::WrongMethod,
        Self::Conflict,
        Self::TooLarge,
        Self::NotJson,
        Self::Unfit,
        Self::ServerFailed,
        Self::TooMany,
        Self::Unavailable,
    ];

    /// As HTTP has it.
    pub fn code(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Unfit => StatusCode::UNPROCESSABLE_ENTITY,
            Self::ServerFailed => StatusCode::FAILED_DEPENDENCY,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A name for it, for the document of the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Malformed => "Malformed",
            Self::SignedOut => "SignedOut",
            Self::Forbidden => "Forbidden",
            Self::Unknown => "Unknown",
            Self::WrongMethod => "WrongMethod",
            Self::Conflict => "Conflict",
            Self::TooLarge => "TooLarge",
            Self::NotJson => "NotJson",
            Self::Unfit => "Unfit",
            Self::ServerFailed => "ServerFailed",
            Self::TooMany => "TooMany",
            Self::Unavailable => "Unavailable",
        }
    }

    /// A header that comes with it, and what it says.
    pub(crate) fn header(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::SignedOut => Some(("WWW-Authenticate", "How to show who asks: `Bearer`.")),
            Self::WrongMethod => Some(("Allow", "The methods that there are here.")),
            Self::TooMany => Some(("Retry-After", "How many seconds to wait.")),
            _ => None,
        }
    }

    /// What it means, for the document of the API.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Malformed => {
                "The request cannot be understood: its query has parameters that are not known or \
                 not allowed, its path is not percent-encoded text, or its body is no JSON."
            }
            Self::SignedOut => {
                "Nobody is signed in: send `Authorization: Bearer` with the token of an \
                 administrator, or sign in by a one-time code."
            }
            Self::Forbidden => {
                "Whoever asks may not do this: the token is not that of an administrator, or a \
                 request with a cookie lacks the header `X-Cocode-CSRF` or comes from a page of \
                 another origin."
            }
            Self::Unknown => "There is no such thing.",
            Self::WrongMethod => "This is not done here; `Allow` says what is.",
            Self::Conflict => "It does not go with how things are now.",
            Self::TooLarge => "The body is larger than is allowed here.",
            Self::NotJson => "The body is not `application/json`.",
            Self::Unfit => {
                "The body is JSON, but does not fit; `hints` say where. Or what it asks for cannot \
                 be done as it is asked for."
            }
            Self::ServerFailed => {
                "The MCP server that this is about did not do its part: it could not be reached, \
                 was too slow, or answered with an error."
            }
            Self::TooMany => "Too much in too short a time; `Retry-After` says how long to wait.",
            Self::Unavailable => "Not now: the gateway is starting, ending, or full.",
        }
    }
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In which way it was refused.
    pub status: RefusalStatus,
    /// A code that programs can compare, such as `server-unknown`.
    pub code: String,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What could be done about it.
    pub hints: Vec<String>,
    /// When it is worth to try again.
    pub retry_after: Option<Duration>,
}

record! {
    /// Why a request was refused.
    pub struct Problem {
        /// What is wrong.
        error: ProblemFacts,
    }
}

record! {
    /// What is wrong with a request.
    pub struct ProblemFacts {
        /// A code that programs can compare.
        code: String,
        /// What is wrong, in a sentence.
        message: String,
        /// What could be done about it.
        hints: Vec<String>,
    }
}

impl Refusal {
    /// A refusal without hints.
    pub fn new(status: RefusalStatus, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            hints: Vec::new(),
            retry_after: None,
        }
    }

    /// The same, with the time after which it is worth to try again.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The same with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same with these hints.
    #[must_use]
    pub fn hints(mut self, hints: impl IntoIterator<Item = String>) -> Self {
        self.hints.extend(hints);
        self
    }

    /// As it is written.
    pub fn problem(self) -> Problem {
        let Self {
            status: _,
            code,
            message,
            mut hints,
            retry_after: _,
        } = self;
        hints.truncate(MAX_HINTS);
        Problem {
            error: ProblemFacts {
                code,
                message,
                hints,
            },
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
