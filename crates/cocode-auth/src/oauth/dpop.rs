//! Proofs that we hold the key that a token is bound to, RFC 9449, and the memory of what servers
//! want in them. A token that leaks is worth nothing without the key.

mod date;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cocode_wire::RequestLine;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::http::shown;
use super::jwt;
use super::key::{KeyError, SigningKey};
use super::random::unguessable;
use crate::secret::Secret;

pub(crate) use self::date::parse as parse_http_date;

/// Servers whose wishes are remembered. There are two for a sign-in, so this is plenty.
const MAX_SERVERS: usize = 16;

/// No honest nonce is longer.
const MAX_NONCE_BYTES: usize = 1024;

/// A clock that is off by less was not the reason for a refusal.
const TOLERABLE_SECONDS: u64 = 5;

/// How much of the name of a proof cannot be guessed.
const NAME_BYTES: usize = 16;

/// Makes proofs with one key.
pub struct Dpop {
    key: SigningKey,
    servers: Mutex<Vec<Server>>,
}

/// On which side of a token a server stands. Both may be at one address and still want different
/// things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DpopPeer {
    /// It gives tokens.
    AuthorizationServer,
    /// It takes them.
    Resource,
}

/// What one server wants.
struct Server {
    peer: DpopPeer,
    origin: String,
    nonce: Option<String>,
    /// Seconds that its clock is ahead of ours.
    ahead: i64,
}

impl Dpop {
    /// The header that carries a proof.
    pub const HEADER: HeaderName = HeaderName::from_static("dpop");

    /// The header by which servers name the nonce of the next proof.
    pub const NONCE_HEADER: HeaderName = HeaderName::from_static("dpop-nonce");

    /// Proves possession of this key.
    pub fn new(key: SigningKey) -> Self {
        Self {
            key,
            servers: Mutex::default(),
        }
    }

    /// The key that tokens are bound to.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The proof for one request, which must not be used for another. Requests that carry a token go
    /// to a resource, others to the authorization server.
    pub fn proof(
        &self,
        request: RequestLine<'_>,
        access: Option<&Secret>,
        now: u64,
    ) -> Result<HeaderValue, KeyError> {
        let peer = match access {
            Some(_) => DpopPeer::Resource,
            None => DpopPeer::AuthorizationServer,
        };
        let (nonce, ahead) = self.wishes(peer, request.url);
        let mut header = Map::new();
        header.insert("typ".to_owned(), "dpop+jwt".into());
        header.insert("jwk".to_owned(), self.key.public_jwk().to_value());
        let mut claims = Map::new();
        let mut claim = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        claim("jti", unguessable(NAME_BYTES)?.expose().into());
        claim("htm", request.method.as_str().into());
        claim("htu", shown(request.url).into());
        claim("iat", now.saturating_add_signed(ahead).into());
        if let Some(access) = access {
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(access.expose()));
            claim("ath", hash.into());
        }
        if let Some(nonce) = nonce {
            claim("nonce", nonce.into());
        }
        let proof = jwt::signed(&self.key, header, claims)?;
        let mut value = HeaderValue::from_str(proof.expose())
            .map_err(|_invalid| KeyError::Damaged("its proofs fit into no header"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Reads the nonce that an answer names, whether it is a refusal or not: from then on only that
    /// one is good. Says whether there was one.
    pub fn heard(&self, peer: DpopPeer, url: &Url, headers: &HeaderMap) -> bool {
        let named = headers.get(Self::NONCE_HEADER).map(HeaderValue::as_bytes);
        let Some(nonce) = named.and_then(usable_nonce) else {
            return false;
        };
        self.remember(peer, url, |server| server.nonce = Some(nonce.to_owned()));
        true
    }

    /// Sets our clock by the `Date` of an answer, for this server only. To be called when a proof was
    /// refused; says whether a new one is any better.
    pub fn set_clock(&self, peer: DpopPeer, url: &Url, headers: &HeaderMap, now: u64) -> bool {
        let date = headers.get(header::DATE);
        let date = date.and_then(|date| parse_http_date(date.to_str().ok()?));
        let Some(ahead) = date.and_then(|date| date.checked_signed_diff(now)) else {
            return false;
        };
        self.remember(peer, url, |server| {
            let is_off = server.ahead.abs_diff(ahead) > TOLERABLE_SECONDS;
            if is_off {
                server.ahead = ahead;
            }
            is_off
        })
    }

    fn wishes(&self, peer: DpopPeer, url: &Url) -> (Option<String>, i64) {
        let origin = url.origin().ascii_serialization();
        let servers = self.servers();
        let mut known = servers.iter();
        let known = known.find(|server| server.peer == peer && server.origin == origin);
        known.map_or((None, 0), |server| (server.nonce.clone(), server.ahead))
    }

    /// Changes what is known of a server. Those that were not heard of for longest are forgotten.
    fn remember<T>(&self, peer: DpopPeer, url: &Url, change: impl FnOnce(&mut Server) -> T) -> T {
        let origin = url.origin().ascii_serialization();
        let mut servers = self.servers();
        let known = servers
            .iter()
            .position(|server| server.peer == peer && server.origin == origin);
        let mut server = match known {
            Some(place) => servers.remove(place),
            None => Server {
                peer,
                origin,
                nonce: None,
                ahead: 0,
            },
        };
        let outcome = change(&mut server);
        if servers.len() >= MAX_SERVERS {
            servers.remove(0);
        }
        servers.push(server);
        outcome
    }

    fn servers(&self) -> MutexGuard<'_, Vec<Server>> {
        // What is inside is whole after every step.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Dpop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Dpop")
            .field("key", &self.key)
            .field("servers", &self.servers().len())
            .finish()
    }
}

/// The characters of RFC 9449 section 8.1.
fn usable_nonce(nonce: &[u8]) -> Option<&str> {
    let is_usable = (1..=MAX_NONCE_BYTES).contains(&nonce.len())
        && nonce
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    is_usable.then(|| std::str::from_utf8(nonce).ok())?
}

#[cfg(test)]
#[path = "dpop_tests.rs"]
mod tests;
