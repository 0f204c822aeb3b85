//! What is asked at the authorization endpoint, and whether what comes back answers it. Pure: a
//! [`UserAgent`](super::UserAgent) brings the question to a person and the answer to us.

use std::fmt;

use url::{Url, form_urlencoded};

use super::guard::{Guard, GuardError};
use super::http::shown;
use super::metadata::AuthorizationServer;
use super::pkce::Pkce;
use super::random::{self, NoRandomness};
use crate::secret::Secret;

/// How much randomness is in a state.
const STATE_BYTES: usize = 32;

/// The scope that asks for a refresh token, and which `OpenID` Connect grants only together with
/// `prompt=consent`: without it, a server ignores the scope silently.
const OFFLINE_ACCESS: &str = "offline_access";

/// The longest text of an authorization server that is shown.
const MAX_SHOWN_CHARACTERS: usize = 300;

/// What an answer may say. Of these, each may stand in it only once; all others are ignored.
const ANSWER_PARAMETERS: [&str; 6] = [
    "code",
    "state",
    "iss",
    "error",
    "error_description",
    "error_uri",
];

/// What is asked for besides that which the flow itself decides.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizationParameters<'a> {
    /// Who asks.
    pub client_id: &'a str,
    /// Where the answer is to arrive.
    pub redirect_uri: &'a str,
    /// What is wanted; without any, the server decides.
    pub scopes: Option<&'a [String]>,
    /// Which server the token is for, RFC 8707.
    pub resource: Option<&'a str>,
}

/// One question to an authorization server, and all that is needed to judge the answer.
#[derive(Clone)]
pub struct AuthorizationRequest {
    /// Where the browser goes. It holds the state: show it to the user and to nobody else.
    pub url: Url,
    /// What the answer must repeat.
    pub state: Secret,
    /// Proves at the token endpoint that the one who asked is the one who redeems.
    pub verifier: Secret,
    /// Where the answer is to arrive, to be repeated at the token endpoint.
    pub redirect_uri: String,
    /// Who is asked.
    pub issuer: String,
    iss_required: bool,
}

/// Why nothing can be asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthorizeError {
    /// There is no address to send a browser to.
    #[error("{issuer} names no authorization endpoint: it lets nobody sign in with a browser")]
    NoEndpoint {
        /// Who.
        issuer: String,
    },
    /// Its address is not safe to open: it could make the browser, or the program that opens it,
    /// do something else.
    #[error("the authorization endpoint of {issuer} cannot be opened in a browser")]
    Endpoint {
        /// Who.
        issuer: String,
        /// Why.
        #[source]
        source: GuardError,
    },
    /// There is nothing that nobody can guess.
    #[error("cannot make a state for the sign-in")]
    Randomness(#[from] NoRandomness),
}

impl AuthorizationRequest {
    /// Puts the question together.
    pub fn new(
        server: &AuthorizationServer,
        parameters: &AuthorizationParameters<'_>,
        pkce: Pkce,
    ) -> Result<Self, AuthorizeError> {
        let Some(endpoint) = &server.authorization_endpoint else {
            return Err(AuthorizeError::NoEndpoint {
                issuer: untrusted(&server.issuer),
            });
        };
        // Whether this server may point at this machine was decided when its metadata was read.
        // Here it must only be an address of the web, with https unless it is on this machine.
        Guard::for_server(endpoint)
            .check(endpoint)
            .map_err(|source| AuthorizeError::Endpoint {
                issuer: untrusted(&server.issuer),
                source,
            })?;
        let state = random::unguessable(STATE_BYTES)?;
        let url = address(endpoint, parameters, &state, &pkce.challenge);
        Ok(Self {
            url,
            state,
            verifier: pkce.verifier,
            redirect_uri: parameters.redirect_uri.to_owned(),
            issuer: server.issuer.clone(),
            iss_required: server.authorization_response_iss_parameter_supported,
        })
    }

    /// Judges an answer by its query and takes the code out of it.
    ///
    /// The state is compared before anything else is looked at, then the issuer as the MCP
    /// specification wants it: plain texts are compared, a wrong one is refused even from a server
    /// that never promised any, and until it is right nothing else in the answer counts, be it an
    /// error.
    pub fn accept(&self, query: &str) -> Result<Secret, CallbackError> {
        let answer = Answer::read(query);
        match answer.state.as_slice() {
            [] => return Err(CallbackError::StateMissing),
            [state] if !random::same(state.expose(), self.state.expose()) => {
                return Err(CallbackError::StateMismatch);
            }
            [_state] => {}
            _several => return Err(CallbackError::Duplicate { parameter: "state" }),
        }
        if let Some(parameter) = answer.duplicate {
            return Err(CallbackError::Duplicate { parameter });
        }
        match &answer.issuer {
            Some(issuer) if *issuer != self.issuer => {
                return Err(CallbackError::IssuerMismatch {
                    expected: untrusted(&self.issuer),
                    found: self.without_state(issuer),
                });
            }
            None if self.iss_required => {
                return Err(CallbackError::IssuerMissing {
                    expected: untrusted(&self.issuer),
                });
            }
            Some(_) | None => {}
        }
        if let Some(error) = &answer.error {
            return Err(CallbackError::Refused {
                issuer: untrusted(&self.issuer),
                error: self.without_state(error),
                description: answer
                    .description
                    .map(|description| self.without_state(&description))
                    .filter(|description| !description.is_empty()),
            });
        }
        answer.code.ok_or_else(|| CallbackError::NoCode {
            issuer: untrusted(&self.issuer),
        })
    }

    /// A text of the answer as it may be shown, should it repeat the state.
    fn without_state(&self, text: &str) -> String {
        untrusted(&text.replace(self.state.expose(), "…"))
    }
}

/// The address holds the state, and the rest is secret by itself.
impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            url,
            state,
            verifier,
            redirect_uri,
            issuer,
            iss_required,
        } = self;
        formatter
            .debug_struct("AuthorizationRequest")
            .field("url", &shown(url))
            .field("state", state)
            .field("verifier", verifier)
            .field("redirect_uri", redirect_uri)
            .field("issuer", issuer)
            .field("iss_required", iss_required)
            .finish()
    }
}

fn address(
    endpoint: &Url,
    parameters: &AuthorizationParameters<'_>,
    state: &Secret,
    challenge: &str,
) -> Url {
    let scopes = parameters.scopes.unwrap_or_default();
    let scope = scopes.join(" ");
    let offline = scopes.iter().any(|scope| scope == OFFLINE_ACCESS);
    let own = [
        ("response_type", Some("code")),
        ("client_id", Some(parameters.client_id)),
        ("redirect_uri", Some(parameters.redirect_uri)),
        ("state", Some(state.expose())),
        ("code_challenge", Some(challenge)),
        ("code_challenge_method", Some(Pkce::METHOD)),
        ("resource", parameters.resource),
        (
            "scope",
            Some(scope.as_str()).filter(|scope| !scope.is_empty()),
        ),
        ("prompt", offline.then_some("consent")),
    ];
    // What the endpoint's own query says stays, except where it would say something twice.
    let kept: Vec<(String, String)> = endpoint
        .query_pairs()
        .filter(|(name, _)| {
            own.iter()
                .all(|(own, value)| value.is_none() || own != name)
        })
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let mut url = endpoint.clone();
    url.set_fragment(None);
    let mut query = url.query_pairs_mut();
    query.clear().extend_pairs(kept);
    for (name, value) in own {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    drop(query);
    url
}

/// An answer, taken apart and not yet believed.
#[derive(Default)]
struct Answer {
    state: Vec<Secret>,
    code: Option<Secret>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
    duplicate: Option<&'static str>,
}

impl Answer {
    fn read(query: &str) -> Self {
        let query = query.strip_prefix('?').unwrap_or(query);
        let mut answer = Self::default();
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let Some(known) = ANSWER_PARAMETERS.into_iter().find(|known| *known == name) else {
                continue;
            };
            if seen.contains(&known) {
                answer.duplicate.get_or_insert(known);
            }
            seen.push(known);
            match known {
                "state" => answer.state.push(Secret::new(value)),
                "code" if !value.is_empty() => answer.code = Some(Secret::new(value)),
                "iss" => answer.issuer = Some(value.into_owned()),
                "error" => answer.error = Some(value.into_owned()),
                "error_description" => answer.description = Some(value.into_owned()),
                _no_use => {}
            }
        }
        answer
    }
}

/// Why an answer gives no code. Never shows the code or the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// It may come from anywhere.
    #[error("the answer has no state, so it cannot be told to belong to this sign-in")]
    StateMissing,
    /// It is for somebody else, or made up.
    #[error("the answer belongs to another sign-in: its state is not the one of this sign-in")]
    StateMismatch,
    /// It says different things at once.
    #[error("the answer names `{parameter}` more than once, which no honest server does")]
    Duplicate {
        /// Which parameter.
        parameter: &'static str,
    },
    /// The server promised to say who it is and did not.
    #[error(
        "the answer does not say that it comes from {expected}, although that server promises to \
         say so (`iss`); it was not used"
    )]
    IssuerMissing {
        /// Who was asked.
        expected: String,
    },
    /// Somebody else answered.
    #[error("the answer comes from {found}, but {expected} was asked; it was not used")]
    IssuerMismatch {
        /// Who was asked.
        expected: String,
        /// Who says to have answered.
        found: String,
    },
    /// The server said no.
    #[error("{}", told(issuer, error, description.as_deref()))]
    Refused {
        /// Who said so.
        issuer: String,
        /// Its word for it.
        error: String,
        /// Its own explanation.
        description: Option<String>,
    },
    /// There is neither a code nor a reason.
    #[error("the answer of {issuer} has neither a code nor an error")]
    NoCode {
        /// Who answered.
        issuer: String,
    },
}

impl CallbackError {
    /// Whether the user, or somebody who decides for the user, said no.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error == "access_denied")
    }

    /// Whether what was asked for cannot be had.
    pub fn is_about_scopes(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error == "invalid_scope")
    }

    /// Whether the answer cannot be told to belong to this sign-in, so that the right one may still
    /// come.
    pub fn is_foreign(&self) -> bool {
        matches!(
            self,
            Self::StateMissing | Self::StateMismatch | Self::Duplicate { parameter: "state" }
        )
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::StateMissing | Self::StateMismatch => {
                "use the address that was shown last; answers to earlier ones no longer count"
            }
            Self::Duplicate { .. } | Self::NoCode { .. } => {
                "try again; if it happens again, tell whoever runs the server"
            }
            Self::IssuerMissing { .. } | Self::IssuerMismatch { .. } => {
                "try again, and do not go on if it happens again: \
                 somebody may be mixing up two authorization servers"
            }
            Self::Refused { error, .. } => reason(error).1,
        }
    }
}

fn told(issuer: &str, error: &str, description: Option<&str>) -> String {
    let (meaning, _hint) = reason(error);
    match description {
        Some(description) => format!("{issuer} {meaning} ({error}): {description}"),
        None => format!("{issuer} {meaning} ({error})"),
    }
}

/// What an error of RFC 6749, RFC 8707 or `OpenID` Connect means, and what to do about it.
fn reason(error: &str) -> (&'static str, &'static str) {
    match error {
        "access_denied" => (
            "denied access: you, or a rule of its owner, said no",
            "sign in again and agree, or ask whoever runs the server to let you in",
        ),
        "invalid_scope" => (
            "does not know, or does not give you, the scopes that were asked for",
            "ask for others with --scopes",
        ),
        "server_error" => ("failed", "try again later"),
        "temporarily_unavailable" => ("is overloaded or being serviced", "try again later"),
        "login_required" | "interaction_required" | "account_selection_required" => (
            "wants you to sign in first, and did not ask you to",
            "sign in there with the same browser, then try again",
        ),
        "consent_required" => (
            "wants you to agree, and did not ask you to",
            "sign in there with the same browser and agree, then try again",
        ),
        "invalid_request" => (
            "did not understand what it was asked",
            "the client may be registered with another redirect address: `logout --revoke` \
             and `login` register anew",
        ),
        "unauthorized_client" => (
            "does not let this client sign users in",
            "check the client id; `logout --revoke` and `login` register anew",
        ),
        "unsupported_response_type" => (
            "does not give out authorization codes",
            "it cannot be used with a browser; use a client secret or a token that it issued",
        ),
        "invalid_target" => (
            "gives no tokens for this server",
            "check the address of the server in its configuration",
        ),
        _unknown => (
            "refused",
            "try again; if it happens again, tell whoever runs the server",
        ),
    }
}

/// A text that somebody else wrote, fit to be shown: short, in one line, and without characters
/// that steer a terminal or turn the direction of writing.
pub(crate) fn untrusted(text: &str) -> String {
    let mut plain = text.chars().filter(|character| {
        !character.is_control()
            && !matches!(character,
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    });
    let mut short: String = plain.by_ref().take(MAX_SHOWN_CHARACTERS).collect();
    if plain.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
#[path = "authorize_tests.rs"]
mod tests;
