//! Decides who comes in: from the headers and the query of a request to a principal or a refusal.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, StatusCode, header};
use url::form_urlencoded;

use crate::Work;
use crate::oauth::{JwtChecked, JwtRefusal, ResourceServer};
use crate::principal::{Principal, PrincipalId, PrincipalKind};
use crate::refusal::{Challenge, Refusal};
use crate::token::{NotAToken, TOKEN_PREFIX, Token};
use crate::token_keeper::TokenKeeper;
use crate::token_store::TokenRecord;

/// Names of parameters that tokens have where somebody puts them into an address.
const TOKEN_PARAMETERS: [&str; 3] = ["access_token", "token", "api_key"];

/// Who may come in.
#[derive(Debug, Default)]
pub struct DoorOptions {
    /// Those with a token of the gateway.
    pub tokens: Option<Arc<TokenKeeper>>,
    /// Those with an access token of an authorization server.
    pub oauth: Option<ResourceServer>,
    /// Everybody, as long as there has been no token and access tokens are not taken. That is for a
    /// gateway that only this machine reaches.
    pub is_open: bool,
}

/// Decides who comes in.
#[derive(Debug)]
pub struct Doorkeeper {
    options: DoorOptions,
}

/// What whoever comes has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorMode {
    /// Nothing.
    Open,
    /// A token of the gateway.
    Tokens,
    /// An access token of an authorization server.
    OAuth,
    /// One or the other.
    Both,
}

/// Who makes a request, now or when somebody was asked.
pub enum Checked {
    /// Nobody had to be asked.
    Now(Result<Principal, Refusal>),
    /// The store of tokens or an issuer is being asked. This has an end by itself.
    Later(Work<'static, Result<Principal, Refusal>>),
}

impl Doorkeeper {
    /// Lets in whom the options say.
    pub fn new(options: DoorOptions) -> Self {
        Self { options }
    }

    /// Whether everybody may come in now.
    pub fn is_open(&self) -> bool {
        let DoorOptions {
            tokens,
            oauth,
            is_open,
        } = &self.options;
        let needs_token = tokens.as_ref().is_some_and(|tokens| tokens.is_needed());
        *is_open && oauth.is_none() && !needs_token
    }

    /// What whoever comes has to have now.
    pub fn mode(&self) -> DoorMode {
        let has_tokens = self
            .options
            .tokens
            .as_ref()
            .is_some_and(|tokens| tokens.is_needed());
        match (&self.options.oauth, has_tokens) {
            (Some(_), true) => DoorMode::Both,
            (Some(_), false) => DoorMode::OAuth,
            (None, _) if self.is_open() => DoorMode::Open,
            (None, _) => DoorMode::Tokens,
        }
    }

    /// What takes access tokens, where that is so.
    pub fn oauth(&self) -> Option<&ResourceServer> {
        self.options.oauth.as_ref()
    }

    /// What knows the gateway's own tokens, where there are some.
    pub fn tokens(&self) -> Option<&Arc<TokenKeeper>> {
        self.options.tokens.as_ref()
    }

    /// Who makes a request with these headers and this query.
    pub fn check(&self, headers: &HeaderMap, query: Option<&str>) -> Checked {
        if query.is_some_and(has_token) {
            return refused(token_in_address());
        }
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (value, second) = (values.next(), values.next());
        if second.is_some() {
            return refused(self.malformed("the request has more than one Authorization header"));
        }
        if self.is_open() {
            return Checked::Now(Ok(Principal::local()));
        }
        let Some(value) = value else {
            return refused(self.nobody());
        };
        match value.to_str().ok().and_then(bearer) {
            Some(Ok(token)) => self.check_token(token),
            Some(Err(Malformed)) => refused(
                self.malformed("what follows Bearer in the Authorization header is no token"),
            ),
            None => refused(self.nobody()),
        }
    }

    fn check_token(&self, text: &str) -> Checked {
        if text.starts_with(TOKEN_PREFIX) {
            return self.check_own(text);
        }
        let Some(oauth) = &self.options.oauth else {
            return refused(self.invalid(NotAToken::SomethingElse.to_string()));
        };
        match oauth.check(text) {
            JwtChecked::Now(result) => {
                Checked::Now(result.map_err(|error| jwt_refusal(oauth, error)))
            }
            JwtChecked::Later(work) => {
                let oauth = oauth.clone();
                Checked::Later(Box::pin(async move {
                    work.await.map_err(|error| jwt_refusal(&oauth, error))
                }))
            }
        }
    }

    /// Looks for one of the gateway's own tokens. One that is not known may have been added a moment
    /// ago.
    fn check_own(&self, text: &str) -> Checked {
        let token = match Token::parse(text) {
            Ok(token) => token,
            Err(error) => return refused(self.invalid(error.to_string())),
        };
        let unknown = self.invalid("there is no such token, or it was revoked");
        let expired = self.invalid("the token has expired");
        let Some(tokens) = &self.options.tokens else {
            return refused(unknown);
        };
        if let Some(record) = tokens.find(&token) {
            return Checked::Now(admitted(record).ok_or(expired));
        }
        let tokens = Arc::clone(tokens);
        Checked::Later(Box::pin(async move {
            let record = tokens.look_for(&token).await.ok_or(unknown)?;
            admitted(record).ok_or(expired)
        }))
    }

    fn challenge(&self) -> Challenge {
        challenge_of(self.options.oauth.as_ref())
    }

    fn nobody(&self) -> Refusal {
        let message =
            "this gateway wants to know who you are: send the header `Authorization: Bearer TOKEN`";
        let hint = match &self.options.oauth {
            Some(_) => {
                "get an access token from one of the authorization servers that the description of this resource names"
            }
            None => "`cocode gateway token add NAME` makes a token",
        };
        Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
            .challenge(&self.challenge())
            .hint(hint)
    }

    fn invalid(&self, message: impl Into<String>) -> Refusal {
        invalid_token(self.options.oauth.as_ref(), message.into())
    }

    fn malformed(&self, message: &str) -> Refusal {
        let challenge = Challenge {
            error: Some("invalid_request"),
            description: Some(message.to_owned()),
            ..self.challenge()
        };
        Refusal::new(StatusCode::BAD_REQUEST, "invalid_request", message)
            .challenge(&challenge)
            .hint("send one header `Authorization: Bearer TOKEN`")
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(result) => formatter.debug_tuple("Now").field(result).finish(),
            Self::Later(_) => formatter.write_str("Later"),
        }
    }
}

fn refused(refusal: Refusal) -> Checked {
    Checked::Now(Err(refusal))
}

fn challenge_of(oauth: Option<&ResourceServer>) -> Challenge {
    let scopes = oauth.map(|oauth| oauth.required_scopes().join(" "));
    Challenge {
        scope: scopes.filter(|scopes| !scopes.is_empty()),
        resource_metadata: oauth.map(ResourceServer::metadata_url),
        ..Challenge::default()
    }
}

fn invalid_token(oauth: Option<&ResourceServer>, message: String) -> Refusal {
    let challenge = Challenge {
        error: Some("invalid_token"),
        description: Some(message.clone()),
        ..challenge_of(oauth)
    };
    Refusal::new(StatusCode::UNAUTHORIZED, "invalid_token", message)
        .challenge(&challenge)
        .hint("come with another token")
}

fn jwt_refusal(oauth: &ResourceServer, refusal: JwtRefusal) -> Refusal {
    let message = refusal.to_string();
    match refusal {
        JwtRefusal::Invalid(_) => invalid_token(Some(oauth), message),
        JwtRefusal::InsufficientScope => {
            let challenge = Challenge {
                error: Some("insufficient_scope"),
                description: Some(message.clone()),
                ..challenge_of(Some(oauth))
            };
            Refusal::new(StatusCode::FORBIDDEN, "insufficient_scope", message)
                .challenge(&challenge)
                .hint("ask the authorization server for a token with the scopes that are named")
        }
        JwtRefusal::Unavailable { retry_after } => Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "temporarily_unavailable",
            message,
        )
        .retry_after(retry_after),
    }
}

/// Who has this token, unless it is good for nothing any more.
fn admitted(record: TokenRecord) -> Option<Principal> {
    if record.has_expired(SystemTime::now()) {
        return None;
    }
    Some(Principal {
        id: PrincipalId::of_token(&record.name),
        name: record.name,
        kind: PrincipalKind::Token,
        scopes: Arc::default(),
        is_admin: record.is_admin,
        until: record.expires,
        credential: Some(record.hash.short()),
    })
}

/// What follows `Bearer` is no token.
struct Malformed;

/// The token of a header, if it is one for that. Its characters are those of RFC 6750.
fn bearer(value: &str) -> Option<Result<&str, Malformed>> {
    let (scheme, rest) = match value.split_once(' ') {
        Some((scheme, rest)) => (scheme, rest.trim_matches(' ')),
        None => (value, ""),
    };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let is_token = !rest.is_empty() && rest.bytes().all(fits);
    Some(is_token.then_some(rest).ok_or(Malformed))
}

/// Whether a query has a token in it: by the name of a parameter, or because a value is one of ours.
fn has_token(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes()).any(|(name, value)| {
        let is_named = |known: &&str| name.eq_ignore_ascii_case(known);
        let is_for_tokens = TOKEN_PARAMETERS.iter().any(is_named);
        (is_for_tokens && !value.is_empty()) || Token::parse(&value).is_ok()
    })
}

fn token_in_address() -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "token_in_url",
        "there is a token in the address of the request, and addresses end up in logs, histories and \
         the Referer of other requests: it counts as known to others now",
    )
    .hint("revoke that token, make another, and send it in the header `Authorization: Bearer TOKEN`")
}

#[cfg(test)]
#[path = "doorkeeper_tests.rs"]
mod tests;
