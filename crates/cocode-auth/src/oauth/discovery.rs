//! Finds the authorization server of an MCP server: first what the MCP server says about itself, then
//! what the authorization server it names says, each checked before it is believed. Sends nothing that
//! is secret.

use cocode_wire::{FetchError, LinkError};
use serde::de::DeserializeOwned;
use url::Url;

use super::authorize::untrusted;
use super::challenge::AuthChallenge;
use super::guard::GuardError;
use super::http::{Http, HttpError, shown};
use super::metadata::{AuthorizationServer, ProtectedResource};

/// How many of the authorization servers that an MCP server names are tried. At three documents each,
/// and as many of the MCP server itself, this bounds what a server can make us do.
const MAX_AUTHORIZATION_SERVERS: usize = 5;

/// What tokens are bound to, and who gives them.
#[derive(Clone, Debug)]
pub struct Discovered {
    /// The resource to ask tokens for: exactly as the MCP server names it, or its canonical address.
    pub resource: String,
    /// What the MCP server says about itself.
    pub protected: Option<ProtectedResource>,
    /// Who gives tokens for it.
    pub server: AuthorizationServer,
    /// The refusal that led here.
    pub challenge: Option<AuthChallenge>,
}

/// A search that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Discovery<'a> {
    /// How to get there.
    pub http: &'a Http,
    /// The MCP server.
    pub server_url: &'a Url,
    /// What it said when it refused a request.
    pub challenge: Option<&'a AuthChallenge>,
    /// Who is to be used if the MCP server names several, or nobody.
    pub preferred_issuer: Option<&'a str>,
    /// What the authorization server has to be able to do.
    pub purpose: Purpose,
}

/// What an authorization server is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A user agrees in a browser.
    Browser,
    /// A program shows its own credentials.
    Machine,
}

/// Why no authorization server was found.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// Perhaps at the next attempt.
    #[error("cannot find out how to sign in")]
    Unreachable(#[source] HttpError),
    /// Perhaps at the next attempt.
    #[error("cannot find out how to sign in now: {url} answered with HTTP {status}")]
    Unavailable {
        /// Who answered.
        url: String,
        /// How.
        status: u16,
    },
    /// The server points to where we do not go.
    #[error(transparent)]
    Refused(#[from] GuardError),
    /// Tokens would be for somebody else.
    #[error(
        "{url} describes {resource}, which is not the server at {server}: its metadata is wrong, or \
         somebody wants tokens that are not meant for this server"
    )]
    ResourceMismatch {
        /// Where the metadata is.
        url: String,
        /// What it describes.
        resource: String,
        /// What it should describe.
        server: String,
    },
    /// The metadata is that of somebody else.
    #[error(
        "{url} says that it is {found} and not {expected}: both have to be the same to the letter, \
         which is for whoever runs the server to correct"
    )]
    IssuerMismatch {
        /// Where the metadata is.
        url: String,
        /// Who it should belong to.
        expected: String,
        /// Who it belongs to.
        found: String,
    },
    /// What should name an authorization server does not.
    #[error(
        "the server names {issuer:?} as its authorization server, which is not a usable address"
    )]
    BadIssuer {
        /// What it names.
        issuer: String,
    },
    /// The authorization server publishes nothing that can be used.
    #[error("the authorization server {issuer} publishes no metadata: looked at {}", tried.join(", "))]
    NoMetadata {
        /// Who.
        issuer: String,
        /// Where that should have been.
        tried: Vec<String>,
    },
    /// The authorization server cannot do what it is needed for.
    #[error("the authorization server {issuer} names no `{endpoint}`")]
    NoEndpoint {
        /// Who.
        issuer: String,
        /// What is missing, as metadata calls it.
        endpoint: &'static str,
    },
    /// A stolen code could be used by others.
    #[error(
        "the authorization server {issuer} does not protect authorization codes: it lists no `S256` \
         in `code_challenge_methods_supported`"
    )]
    NoPkce {
        /// Who.
        issuer: String,
    },
}

impl DiscoveryError {
    /// Whether it may go better at the next attempt.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable(HttpError::Failed { source, .. }) => {
                !matches!(source, FetchError::Setup(_) | FetchError::Address)
            }
            Self::Unreachable(_) | Self::Unavailable { .. } => true,
            Self::Refused(_)
            | Self::ResourceMismatch { .. }
            | Self::IssuerMismatch { .. }
            | Self::BadIssuer { .. }
            | Self::NoMetadata { .. }
            | Self::NoEndpoint { .. }
            | Self::NoPkce { .. } => false,
        }
    }
}

/// What the MCP server says about itself.
struct Description {
    protected: Option<ProtectedResource>,
    /// Why it may say more at another time.
    trouble: Option<DiscoveryError>,
}

impl Discovery<'_> {
    /// Searches. Documents that are not there, or not now, are looked for elsewhere, as the
    /// specification orders the places: many servers answer with an error of theirs wherever they
    /// have nothing. Only if no place has a document, such an error counts. A server that cannot be
    /// reached ends the search.
    pub async fn run(self) -> Result<Discovered, DiscoveryError> {
        let Description { protected, trouble } = self.protected_resource().await?;
        let resource = match &protected {
            Some(protected) => protected.resource.clone(),
            None => canonical(self.server_url),
        };
        let named = protected.as_ref().map(|it| &*it.authorization_servers);
        let named = named.filter(|named| !named.is_empty());
        let own = self.own_issuers();
        let is_other = |issuer: &&str| own.iter().all(|own| own != issuer);
        let configured = self.preferred_issuer.filter(is_other);
        let hint = self.challenge.filter(|_| self.preferred_issuer.is_none());
        let hint = hint.and_then(|said| said.auth_server.as_deref());
        let server = match (named, configured.or(hint)) {
            (Some(named), _) => self.one_of(named).await?,
            (None, Some(issuer)) => self.usable_server(issuer).await?,
            (None, None) => self.own_server(protected.is_some(), trouble).await?,
        };
        Ok(Discovered {
            resource,
            protected,
            server,
            challenge: self.challenge.cloned(),
        })
    }

    async fn protected_resource(&self) -> Result<Description, DiscoveryError> {
        let named = self.named_metadata();
        let (mut refusal, mut trouble) = (None, None);
        let places = named.iter().cloned().chain(self.well_known_metadata());
        let mut tried: Vec<Url> = Vec::new();
        for url in places {
            if tried.contains(&url) {
                continue;
            }
            let is_named = tried.is_empty() && named.is_some();
            match document::<ProtectedResource>(self.http, &url).await {
                Ok(Some(protected)) => {
                    self.check_resource(&url, &protected)?;
                    return Ok(Description {
                        protected: Some(protected),
                        trouble: None,
                    });
                }
                Ok(None) => {}
                // Servers behind a proxy often name themselves wrongly. Where they really are we know.
                Err(error @ DiscoveryError::Refused(_)) if is_named => refusal = Some(error),
                // What is named is there: what it says counts, as soon as it can.
                Err(error @ DiscoveryError::Unavailable { .. }) if !is_named => {
                    trouble.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
            tried.push(url);
        }
        match refusal {
            Some(refusal) => Err(trouble.unwrap_or(refusal)),
            None => Ok(Description {
                protected: None,
                trouble,
            }),
        }
    }

    fn named_metadata(&self) -> Option<Url> {
        let named = self.challenge?.resource_metadata.as_deref()?;
        self.server_url.join(named).ok()
    }

    /// Where the MCP server should describe itself: at its path, with a slash at the end and without,
    /// and at its root.
    fn well_known_metadata(&self) -> Vec<Url> {
        const NAME: &str = "oauth-protected-resource";
        let path = self.server_url.path();
        let bare = path.trim_end_matches('/');
        let mut places = Vec::new();
        if !bare.is_empty() {
            for path in [path, bare] {
                let mut place = well_known(self.server_url, NAME, path);
                place.set_query(self.server_url.query());
                places.push(place);
            }
        }
        places.push(well_known(self.server_url, NAME, ""));
        places
    }

    /// A description has to be that of this server: of its origin, and of its path or one above it.
    fn check_resource(
        &self,
        url: &Url,
        protected: &ProtectedResource,
    ) -> Result<(), DiscoveryError> {
        if is_resource_of(&protected.resource, self.server_url) {
            return Ok(());
        }
        Err(DiscoveryError::ResourceMismatch {
            url: shown(url),
            resource: untrusted(&protected.resource),
            server: shown(self.server_url),
        })
    }

    /// The preferred one of the authorization servers that the MCP server names, or the first that
    /// can be used.
    async fn one_of(&self, named: &[String]) -> Result<AuthorizationServer, DiscoveryError> {
        let preferred = self
            .preferred_issuer
            .filter(|preferred| named.iter().any(|issuer| issuer == preferred));
        let others = named
            .iter()
            .map(String::as_str)
            .filter(|issuer| Some(*issuer) != preferred);
        let mut failure: Option<DiscoveryError> = None;
        for issuer in preferred
            .into_iter()
            .chain(others)
            .take(MAX_AUTHORIZATION_SERVERS)
        {
            match self.usable_server(issuer).await {
                Ok(server) => return Ok(server),
                // Whoever signed in there before must not be sent elsewhere for an hour of trouble.
                Err(error) if Some(issuer) == preferred && error.is_temporary() => {
                    return Err(error);
                }
                Err(error) => {
                    let issuer = untrusted(issuer);
                    tracing::debug!(issuer, %error, "an authorization server cannot be used");
                    let replace = match &failure {
                        Some(first) => !first.is_temporary() && error.is_temporary(),
                        None => true,
                    };
                    if replace {
                        failure = Some(error);
                    }
                }
            }
        }
        Err(failure.unwrap_or_else(|| DiscoveryError::BadIssuer {
            issuer: String::new(),
        }))
    }

    /// What the authorization server of this name says about itself, if it can do what is needed.
    async fn usable_server(&self, issuer: &str) -> Result<AuthorizationServer, DiscoveryError> {
        let server = authorization_server(self.http, issuer).await?;
        self.check_server(&server).await?;
        Ok(server)
    }

    /// Both ways to write the origin of the MCP server, which may be its own authorization server.
    fn own_issuers(&self) -> [String; 2] {
        let origin = self.server_url.origin().ascii_serialization();
        let with_slash = format!("{origin}/");
        [origin, with_slash]
    }

    /// The MCP server itself as authorization server, which was the rule in revision 2025-03-26. One
    /// that describes itself, says that it does, or may do so when its trouble is over, is not so old
    /// that its endpoints can be assumed.
    async fn own_server(
        &self,
        described: bool,
        trouble: Option<DiscoveryError>,
    ) -> Result<AuthorizationServer, DiscoveryError> {
        // Nobody named it, so both ways name what the address was made of.
        let accepted = self.own_issuers();
        let found = published(self.http, self.server_url, "", &accepted).await;
        let says_so = described || self.named_metadata().is_some();
        let server = match (found, trouble) {
            (Err(DiscoveryError::NoMetadata { .. }), Some(trouble)) => return Err(trouble),
            (Err(DiscoveryError::NoMetadata { issuer, .. }), None) if !says_so => {
                let assumed = AuthorizationServer::assumed(self.server_url);
                assumed.ok_or(DiscoveryError::BadIssuer { issuer })?
            }
            (found, _) => found?,
        };
        self.check_server(&server).await?;
        Ok(server)
    }

    /// Whether an authorization server can do what it is needed for.
    async fn check_server(&self, server: &AuthorizationServer) -> Result<(), DiscoveryError> {
        let issuer = || untrusted(&server.issuer);
        let demand = async |url: Option<&Url>, endpoint: &'static str| {
            let issuer = issuer();
            let url = url.ok_or(DiscoveryError::NoEndpoint { issuer, endpoint })?;
            Ok::<(), DiscoveryError>(self.http.guard().admit(url).await?)
        };
        demand(server.token_endpoint.as_ref(), "token_endpoint").await?;
        if self.purpose == Purpose::Machine {
            return Ok(());
        }
        let browser = server.authorization_endpoint.as_ref();
        demand(browser, "authorization_endpoint").await?;
        let methods = server.code_challenge_methods_supported.as_deref();
        let protects = methods.map_or(server.assumed, |methods| {
            methods.iter().any(|method| method == "S256")
        });
        if protects {
            Ok(())
        } else {
            Err(DiscoveryError::NoPkce { issuer: issuer() })
        }
    }
}

/// What the authorization server of this name says about itself.
pub async fn authorization_server(
    http: &Http,
    issuer: &str,
) -> Result<AuthorizationServer, DiscoveryError> {
    let bad = || DiscoveryError::BadIssuer {
        issuer: untrusted(issuer),
    };
    let url = Url::parse(issuer).map_err(|_error| bad())?;
    if url.query().is_some() || url.fragment().is_some() || !url.has_host() {
        return Err(bad());
    }
    http.guard().admit(&url).await?;
    let path = url.path().trim_end_matches('/');
    published(http, &url, path, &[issuer.to_owned()]).await
}

/// The first document that says that it is of the issuer. Without one, what was wrong at the first
/// place that had something.
async fn published(
    http: &Http,
    origin: &Url,
    path: &str,
    accepted: &[String],
) -> Result<AuthorizationServer, DiscoveryError> {
    let expected = accepted
        .first()
        .map_or_else(String::new, |name| untrusted(name));
    let mut tried = Vec::new();
    let mut failure = None;
    for url in places_of_metadata(origin, path) {
        tried.push(shown(&url));
        let wrong = match document::<AuthorizationServer>(http, &url).await {
            Ok(None) => continue,
            Ok(Some(server)) if accepted.contains(&server.issuer) => return Ok(server),
            Ok(Some(server)) => DiscoveryError::IssuerMismatch {
                url: shown(&url),
                expected: expected.clone(),
                found: untrusted(&server.issuer),
            },
            Err(error @ DiscoveryError::Unavailable { .. }) => error,
            Err(error) => return Err(error),
        };
        failure.get_or_insert(wrong);
    }
    let issuer = expected;
    Err(failure.unwrap_or(DiscoveryError::NoMetadata { issuer, tried }))
}

/// Where an authorization server publishes its metadata, in the order of the specification.
fn places_of_metadata(origin: &Url, path: &str) -> Vec<Url> {
    const OAUTH: &str = "oauth-authorization-server";
    const OPENID: &str = "openid-configuration";
    let mut places = vec![
        well_known(origin, OAUTH, path),
        well_known(origin, OPENID, path),
    ];
    if !path.is_empty() {
        let mut appended = well_known(origin, OPENID, "");
        appended.set_path(&format!("{path}/.well-known/{OPENID}"));
        places.push(appended);
    }
    places
}

fn well_known(origin: &Url, name: &str, path: &str) -> Url {
    let mut url = origin.clone();
    url.set_path(&format!("/.well-known/{name}{path}"));
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for addresses that have no host, and those carry no credentials.
    let _cannot_have_any = url.set_username("").and_then(|()| url.set_password(None));
    url
}

/// A document, if there is one. Pages that servers show for every address are none.
async fn document<T: DeserializeOwned>(
    http: &Http,
    url: &Url,
) -> Result<Option<T>, DiscoveryError> {
    let answer = match http.get(url).await {
        Ok(answer) => answer,
        Err(HttpError::Refused(error)) => return Err(error.into()),
        Err(HttpError::Failed {
            source: FetchError::Link(LinkError::AnswerTooLarge { .. }),
            ..
        }) => return Ok(None),
        Err(error) => return Err(DiscoveryError::Unreachable(error)),
    };
    let status = answer.status().as_u16();
    match status {
        200 => {
            let parsed = serde_json::from_slice(answer.body());
            if parsed.is_err() {
                tracing::debug!(url = shown(url), "there is something else than metadata");
            }
            Ok(parsed.ok())
        }
        408 | 429 | 500 | 502..=599 => Err(DiscoveryError::Unavailable {
            url: shown(url),
            status,
        }),
        _ => Ok(None),
    }
}

/// Whether a resource is this server, or something that it is a part of.
fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(url) = Url::parse(resource) else {
        return false;
    };
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    let same_query = url.query().is_none() || url.query() == server.query();
    let above = url.path().trim_end_matches('/');
    let below = server.path().strip_prefix(above);
    let is_above = below.is_some_and(|below| below.is_empty() || below.starts_with('/'));
    plain && same_query && is_above && url.has_host() && url.origin() == server.origin()
}

/// The address of a server as a resource: without what may be secret in it, and without a slash at
/// the end.
fn canonical(server: &Url) -> String {
    let path = server.path().trim_end_matches('/');
    format!("{}{path}", server.origin().ascii_serialization())
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
