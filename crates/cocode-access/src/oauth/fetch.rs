//! Getting what an issuer publishes: its metadata, and from there its keys.
//!
//! Where the issuer is, and where its keys are if that is configured, was said by whoever runs the
//! gateway. What a document says is less than that: keys on another host are only fetched from there
//! over https and from public addresses.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::{AddressFilter, Admitted, HttpClient, Network, chain};
use http::{HeaderValue, Request, Response, header};
use serde::Deserialize;
use tokio::time::timeout;
use url::{Host, Url};

use super::key_set::KeySet;
use crate::Work;

/// Bytes of a document.
const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
/// How long it may take to get the keys, with all that is on the way to them.
pub(super) const FETCH_LIMIT: Duration = Duration::from_secs(10);
/// How often a document may be at another place of the same host.
const MAX_REDIRECTS: usize = 3;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why there are no keys. Said in logs, and not to clients.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum FetchProblem {
    #[error("nothing came within {} seconds", FETCH_LIMIT.as_secs())]
    TimedOut,
    #[error("cannot reach {url}: {why}")]
    Unreachable { url: String, why: String },
    #[error("{url} answers with status {status}")]
    Status { url: String, status: u16 },
    #[error("{url} sends us to another host, where we do not go")]
    Redirected { url: String },
    #[error("{url} holds no keys that could be used")]
    NoKeys { url: String },
    #[error(
        "no metadata of {issuer} names that very issuer and its keys; tried {}. If it is right, set \
         `jwks_uri`", tried.join(", ")
    )]
    NoMetadata { issuer: String, tried: Vec<String> },
    #[error(
        "the metadata of {issuer} says that its keys are at {url}, where we do not go: {why}. If that \
         is right, set `jwks_uri`"
    )]
    Guarded {
        issuer: String,
        url: String,
        why: &'static str,
    },
}

/// Gets the keys of an issuer.
pub(super) trait Fetch: Send + Sync + fmt::Debug + 'static {
    /// The keys as they are now, and where they were; `known` is where they were the last time. Has an
    /// end by itself.
    fn keys<'a>(&'a self, known: Option<&'a Url>) -> Work<'a, Fetched>;
}

/// Keys and where they were, or why there are none.
pub(super) type Fetched = Result<(KeySet, Url), FetchProblem>;

/// What an issuer publishes in the network.
#[derive(Clone, Debug)]
pub(super) struct Source {
    issuer: String,
    url: Url,
    configured_keys: Option<Url>,
    /// Goes where it was told by whoever runs the gateway.
    trusting: HttpClient,
    /// Goes to public addresses only.
    guarded: HttpClient,
}

/// What is read of the metadata of an issuer, RFC 8414 and `OpenID` Connect Discovery.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: Option<String>,
}

impl Source {
    pub(super) fn new(
        issuer: String,
        url: Url,
        configured_keys: Option<Url>,
        http: &HttpClient,
    ) -> Self {
        Self {
            issuer,
            url,
            configured_keys,
            trusting: http.clone(),
            guarded: http.with_address_filter(Arc::new(PublicOnly)),
        }
    }

    /// The keys, and where they were found. Where that is not configured, the metadata says it; `known`
    /// is what it said the last time, and it is asked again if they are not there any more.
    async fn keys_from(&self, known: Option<&Url>) -> Result<(KeySet, Url), FetchProblem> {
        if let Some(place) = &self.configured_keys {
            return Ok((self.keys_at(place).await?, place.clone()));
        }
        if let Some(place) = known
            && let Ok(keys) = self.keys_at(place).await
        {
            return Ok((keys, place.clone()));
        }
        let place = self.discover().await?;
        Ok((self.keys_at(&place).await?, place))
    }

    async fn keys_at(&self, place: &Url) -> Result<KeySet, FetchProblem> {
        let client = if self.is_configured(place) {
            &self.trusting
        } else {
            &self.guarded
        };
        let answer = get(client, place).await?;
        let keys = KeySet::parse(answer.body()).filter(|keys| !keys.is_empty());
        let url = || shown(place);
        keys.ok_or_else(|| FetchProblem::NoKeys { url: url() })
    }

    /// Whether somebody who runs the gateway named this place, or the host of the issuer at it.
    fn is_configured(&self, place: &Url) -> bool {
        self.configured_keys.as_ref() == Some(place) || place.origin() == self.url.origin()
    }

    /// Where the issuer says that its keys are.
    async fn discover(&self) -> Result<Url, FetchProblem> {
        let mut tried = Vec::new();
        let mut unreachable = None;
        for place in places_of_metadata(&self.url) {
            let answer = match get(&self.trusting, &place).await {
                Ok(answer) => answer,
                Err(problem @ FetchProblem::Unreachable { .. }) => {
                    unreachable.get_or_insert(problem);
                    continue;
                }
                Err(_not_there) => {
                    tried.push(shown(&place));
                    continue;
                }
            };
            tried.push(shown(&place));
            let Ok(metadata) = serde_json::from_slice::<Metadata>(answer.body()) else {
                continue;
            };
            // To the letter: another name is another issuer.
            if metadata.issuer != self.issuer {
                continue;
            }
            if let Some(Ok(keys)) = metadata.jwks_uri.as_deref().map(Url::parse) {
                self.admit(&keys)?;
                return Ok(keys);
            }
        }
        let issuer = self.issuer.clone();
        let none = FetchProblem::NoMetadata { issuer, tried };
        Err(unreachable.unwrap_or(none))
    }

    /// Whether keys may be fetched from where a document says.
    fn admit(&self, keys: &Url) -> Result<(), FetchProblem> {
        let guarded = |why| FetchProblem::Guarded {
            issuer: self.issuer.clone(),
            url: shown(keys),
            why,
        };
        if !keys.username().is_empty() || keys.password().is_some() {
            return Err(guarded("the address has a user name or a password in it"));
        }
        if keys.origin() == self.url.origin() {
            return Ok(());
        }
        if keys.scheme() != "https" {
            return Err(guarded("only https is safe there"));
        }
        let address = match keys.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) => return Ok(()),
            None => return Err(guarded("it has no host")),
        };
        match Network::of(address) {
            Network::Public => Ok(()),
            _ => Err(guarded("it is no public address")),
        }
    }
}

impl Fetch for Source {
    fn keys<'a>(&'a self, known: Option<&'a Url>) -> Work<'a, Fetched> {
        Box::pin(async move {
            let fetched = timeout(FETCH_LIMIT, self.keys_from(known)).await;
            fetched.unwrap_or(Err(FetchProblem::TimedOut))
        })
    }
}

/// Lets names stand for public addresses only.
#[derive(Debug)]
struct PublicOnly;

impl AddressFilter for PublicOnly {
    fn admit(&self, mut addresses: Vec<SocketAddr>) -> Admitted<'_> {
        addresses.retain(|address| Network::of(address.ip()) == Network::Public);
        Box::pin(std::future::ready(addresses))
    }
}

/// Fetches a document. Redirects are followed on the same host alone.
async fn get(client: &HttpClient, url: &Url) -> Result<Response<Bytes>, FetchProblem> {
    let mut place = url.clone();
    for _redirect in 0..=MAX_REDIRECTS {
        let answer = get_here(client, &place).await?;
        let status = answer.status().as_u16();
        match status {
            200 => return Ok(answer),
            301 | 302 | 303 | 307 | 308 => {}
            _ => {
                let url = shown(&place);
                return Err(FetchProblem::Status { url, status });
            }
        }
        let location = answer.headers().get(header::LOCATION);
        let next = location.and_then(|location| place.join(location.to_str().ok()?).ok());
        match next {
            Some(next) if next.origin() == url.origin() => place = next,
            _ => return Err(FetchProblem::Redirected { url: shown(&place) }),
        }
    }
    Err(FetchProblem::Redirected { url: shown(&place) })
}

async fn get_here(client: &HttpClient, url: &Url) -> Result<Response<Bytes>, FetchProblem> {
    let unreachable = |why: String| FetchProblem::Unreachable {
        url: shown(url),
        why,
    };
    let request = Request::get(url.as_str())
        .header(header::ACCEPT, JSON)
        .body(Bytes::new())
        .map_err(|error| unreachable(error.to_string()))?;
    let fetched = client.fetch(request, MAX_DOCUMENT_BYTES).await;
    fetched.map_err(|error| unreachable(chain(&error)))
}

/// Where an issuer publishes its metadata, RFC 8414 first.
fn places_of_metadata(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place
    };
    let mut places = vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ];
    if !path.is_empty() {
        places.push(at(format!("/.well-known/openid-configuration{path}")));
    }
    places
}

/// An address fit to be shown: credentials and queries are left out.
fn shown(url: &Url) -> String {
    let path = url.path();
    format!("{}{path}", url.origin().ascii_serialization())
}
