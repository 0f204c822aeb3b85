//! Access tokens of authorization servers: the gateway as an OAuth resource server.
//!
//! A token is read, what it says is compared with what is demanded, and its signature is checked with the
//! keys that its issuer publishes. Refusals before the signature was checked tell nobody anything that is
//! not known: who is trusted here, and as what, is published.

mod algorithm;
mod fetch;
mod issuer_keys;
mod jwt;
mod key_set;
mod options;
mod verified;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cocode_wire::HttpClient;
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use crate::Work;
use crate::digest::sha256;
use crate::principal::{Principal, PrincipalId, PrincipalKind};
use crate::token_store::TokenHash;

use fetch::Source;
use issuer_keys::{IssuerKeys, Waiting};
use jwt::{Claims, Demands, Jwt, MAX_TOKEN_BYTES};
use key_set::Checked;
use verified::{Entry, Verified};

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use jwt::JwtError;
pub use options::{IssuerOptions, OAuthOptions, OAuthSetupError};

/// Where the description of a protected resource is, RFC 9728.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Takes access tokens of authorization servers. Clones are the same one.
#[derive(Clone, Debug)]
pub struct ResourceServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: OAuthOptions,
    demands: Demands,
    issuers: Vec<IssuerKeys>,
    verified: Verified,
}

/// Why an access token lets nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtRefusal {
    /// It is not good.
    #[error(transparent)]
    Invalid(#[from] JwtError),
    /// It is good, and does not allow what is needed here.
    #[error("the token does not allow what is needed here")]
    InsufficientScope,
    /// It cannot be checked now.
    #[error("the keys of the issuer cannot be fetched now")]
    Unavailable {
        /// When to try again.
        retry_after: Duration,
    },
}

/// What comes of a token, now or when the keys of its issuer were fetched.
pub enum JwtChecked {
    /// Nothing had to be fetched.
    Now(Result<Principal, JwtRefusal>),
    /// The issuer is being asked.
    Later(Work<'static, Result<Principal, JwtRefusal>>),
}

/// How far a token got without waiting.
enum Step {
    Done(Result<Principal, JwtRefusal>),
    /// Its key is not known, and is being fetched.
    Waits(Waiting),
}

impl ResourceServer {
    /// Takes tokens as the options say. Nobody is asked for anything before the first token comes.
    pub fn new(options: OAuthOptions, http: &HttpClient) -> Result<Self, OAuthSetupError> {
        options.check()?;
        let mut issuers = Vec::with_capacity(options.issuers.len());
        for one in &options.issuers {
            let issuer = one.issuer.clone();
            let url = one.url().ok_or_else(|| OAuthSetupError::Issuer {
                issuer: issuer.clone(),
            })?;
            let source = Source::new(issuer.clone(), url, one.jwks_uri.clone(), http);
            issuers.push(IssuerKeys::new(issuer, source));
        }
        Ok(Self {
            shared: Arc::new(Shared::new(options, issuers)),
        })
    }

    /// Who comes with this token.
    pub fn check(&self, token: &str) -> JwtChecked {
        match self.shared.check(token, true) {
            Step::Done(result) => JwtChecked::Now(result),
            Step::Waits(waiting) => {
                let shared = Arc::clone(&self.shared);
                let token = Zeroizing::new(token.to_owned());
                JwtChecked::Later(Box::pin(async move {
                    waiting.over().await;
                    match shared.check(&token, false) {
                        Step::Done(result) => result,
                        // Nothing is fetched a second time for one token.
                        Step::Waits(_) => Err(JwtError::UnknownKey.into()),
                    }
                }))
            }
        }
    }

    /// What clients are told about how to come by a token: the description of the protected resource,
    /// as JSON.
    pub fn metadata(&self) -> Bytes {
        let options = &self.shared.options;
        let issuers: Vec<&str> = options.issuers.iter().map(|one| &*one.issuer).collect();
        let mut document = json!({
            "resource": resource_name(&options.resource),
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": "cocode gateway",
        });
        let scopes: Vec<&String> = options
            .required_scopes
            .iter()
            .chain(&options.admin_scope)
            .collect();
        if !scopes.is_empty()
            && let Some(members) = document.as_object_mut()
        {
            members.insert("scopes_supported".to_owned(), json!(scopes));
        }
        Bytes::from(document.to_string())
    }

    /// Whether the description is asked for with this path: at its root, with the path of the resource,
    /// or with that of something below it.
    pub fn serves_metadata_at(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(WELL_KNOWN) else {
            return false;
        };
        let resource = resource_path(&self.shared.options.resource);
        let below = rest.strip_prefix(resource);
        rest.is_empty()
            || rest == "/"
            || below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    /// The address of the description.
    pub fn metadata_url(&self) -> String {
        let resource = &self.shared.options.resource;
        let (origin, path) = (resource_origin(resource), resource_path(resource));
        format!("{origin}{WELL_KNOWN}{path}")
    }

    /// What every token has to allow.
    pub fn required_scopes(&self) -> &[String] {
        &self.shared.options.required_scopes
    }
}

impl Shared {
    fn new(options: OAuthOptions, issuers: Vec<IssuerKeys>) -> Self {
        let demands = Demands {
            audiences: audiences(&options),
            principal_claim: options.principal_claim.clone(),
            leeway: options.leeway,
        };
        Self {
            options,
            demands,
            issuers,
            verified: Verified::default(),
        }
    }

    fn check(&self, token: &str, may_wait: bool) -> Step {
        if token.len() > MAX_TOKEN_BYTES {
            return Step::Done(Err(JwtError::TooLong.into()));
        }
        let now = SystemTime::now();
        let hash = TokenHash::from_bytes(sha256(token.as_bytes()));
        if let Some(entry) = self.verified.get(&hash, now)
            && let Some(issuer) = self.issuers.get(entry.issuer)
        {
            let look = issuer.look();
            if look.is_old {
                // Known keys are used meanwhile.
                let _nobody_waits = issuer.want();
            }
            if look.keys.is_some() && look.n_changes == entry.n_changes {
                return Step::Done(self.admit(entry.principal));
            }
            self.verified.forget_older(entry.issuer, look.n_changes);
        }
        let read = Jwt::parse(token, &self.options.algorithms).and_then(|jwt| {
            let place = self
                .issuers
                .iter()
                .position(|issuer| jwt.issuer() == Some(issuer.issuer()));
            let place = place.ok_or(JwtError::Issuer)?;
            let claims = jwt.check(&self.demands, now)?;
            Ok((jwt, place, claims))
        });
        match read {
            Ok((jwt, place, claims)) => self.verify(hash, &jwt, place, claims, may_wait),
            Err(error) => Step::Done(Err(error.into())),
        }
    }

    /// Checks the signature of a token that says what it should.
    fn verify(
        &self,
        hash: TokenHash,
        jwt: &Jwt<'_>,
        place: usize,
        claims: Claims,
        may_wait: bool,
    ) -> Step {
        let Some(issuer) = self.issuers.get(place) else {
            return Step::Done(Err(JwtError::Issuer.into()));
        };
        let look = issuer.look();
        let checked = look.keys.as_ref().map(|keys| {
            let message = jwt.message.as_bytes();
            keys.check(
                jwt.key_id.as_deref(),
                jwt.algorithm,
                message,
                &jwt.signature,
            )
        });
        let wants_keys = matches!(checked, None | Some(Checked::UnknownKey));
        if (wants_keys && may_wait) || look.is_old {
            let waiting = issuer.want();
            if wants_keys
                && may_wait
                && let Some(waiting) = waiting
            {
                return Step::Waits(waiting);
            }
        }
        let is_well = look.is_well;
        let refused = match checked {
            Some(Checked::Good) => {
                return Step::Done(self.welcome(hash, place, look.n_changes, claims));
            }
            Some(Checked::UnknownKey) if is_well => JwtError::UnknownKey.into(),
            None | Some(Checked::UnknownKey) => JwtRefusal::Unavailable {
                retry_after: issuer.pause(),
            },
            Some(Checked::KeyMismatch) => JwtError::KeyMismatch.into(),
            Some(Checked::Ambiguous) => JwtError::NoKeyId.into(),
            Some(Checked::Bad) => JwtError::Signature.into(),
        };
        Step::Done(Err(refused))
    }

    fn welcome(
        &self,
        hash: TokenHash,
        place: usize,
        n_changes: u64,
        claims: Claims,
    ) -> Result<Principal, JwtRefusal> {
        let Claims {
            name,
            scopes,
            until,
        } = claims;
        let issuer = self.issuers.get(place).ok_or(JwtError::Issuer)?;
        let admin_scope = self.options.admin_scope.as_ref();
        let principal = Principal {
            id: PrincipalId::of_issuer(&name, issuer.issuer()),
            name,
            kind: PrincipalKind::Jwt,
            is_admin: admin_scope.is_some_and(|scope| scopes.contains(scope)),
            scopes: scopes.into(),
            until: Some(until),
            credential: None,
        };
        let entry = Entry {
            principal: principal.clone(),
            until,
            issuer: place,
            n_changes,
        };
        self.verified.insert(hash, entry);
        self.admit(principal)
    }

    /// Whether a token that is good allows what is needed here.
    fn admit(&self, principal: Principal) -> Result<Principal, JwtRefusal> {
        let has = |scope: &String| principal.scopes.contains(scope);
        if self.options.required_scopes.iter().all(has) {
            Ok(principal)
        } else {
            Err(JwtRefusal::InsufficientScope)
        }
    }
}

impl fmt::Debug for JwtChecked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(result) => formatter.debug_tuple("Now").field(result).finish(),
            Self::Later(_) => formatter.write_str("Later"),
        }
    }
}

/// What tokens may be for. The resource is always among it: as clients are told to ask for it, and with the
/// slash that some write at its end, whatever else is configured and however it is written there.
fn audiences(options: &OAuthOptions) -> Vec<String> {
    let name = resource_name(&options.resource);
    let resource = [
        format!("{name}/"),
        options.resource.as_str().to_owned(),
        name,
    ];
    let mut audiences = options.audiences.clone();
    for spelling in resource {
        if !audiences.contains(&spelling) {
            audiences.push(spelling);
        }
    }
    audiences
}

/// The resource as clients are told of it: its host in small letters, without a port that goes without
/// saying, and without a slash at its end.
fn resource_name(resource: &Url) -> String {
    format!("{}{}", resource_origin(resource), resource_path(resource))
}

fn resource_origin(resource: &Url) -> String {
    resource.origin().ascii_serialization()
}

fn resource_path(resource: &Url) -> &str {
    resource.path().trim_end_matches('/')
}
