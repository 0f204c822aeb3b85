//! What is kept about one MCP server: at which authorization servers we have a client, and the
//! tokens that they gave us. Knows nothing of where it is kept.
//!
//! What belongs to one issuer is of no use to another, so each has a [`Grant`] of its own, and
//! going back to an earlier one finds its registration again.

mod json;

use std::collections::BTreeMap;
use std::fmt;

use url::Url;

use super::client::Client;
use super::http::shown;
use super::tokens::Tokens;
use crate::secret::Secret;

pub(super) use json::RecordError;

/// How many authorization servers are remembered for one MCP server.
pub const MAX_ISSUERS: usize = 4;

/// What is kept about one MCP server.
#[derive(Clone)]
pub struct Record {
    /// The address of the server, as [`canonical_url`] writes it.
    pub url: String,
    /// The authorization server that counts now.
    pub issuer: Option<String>,
    /// What each authorization server gave us, by its issuer.
    pub grants: BTreeMap<String, Grant>,
    /// How often this was stored. Counted by the vault; what others put here does not matter.
    pub revision: u64,
}

/// What one authorization server gave us for one MCP server.
#[derive(Clone)]
pub struct Grant {
    /// Who we are there.
    pub client: Client,
    /// What lets us in, once somebody has signed in.
    pub tokens: Option<Tokens>,
    /// What the tokens are bound to, as it was asked for.
    pub resource: Option<String>,
    /// Where tokens come from.
    pub token_endpoint: String,
    /// Where tokens are given back.
    pub revocation_endpoint: Option<String>,
    /// The private key that the tokens are bound to.
    pub dpop_key: Option<Secret>,
    /// What was asked for at the last sign-in.
    pub requested_scopes: Vec<String>,
    /// What the server has asked for since then, for the next one.
    pub wanted_scopes: Vec<String>,
    /// When somebody signed in last, in seconds since 1970.
    pub signed_in_at: Option<u64>,
}

impl Record {
    /// The authorization server of a grant, by the name that the grant is stored under: its issuer,
    /// and behind a blank the client, if that is one of an entry of its own.
    pub fn issuer_of(slot: &str) -> &str {
        slot.split_once(' ').map_or(slot, |(issuer, _)| issuer)
    }

    /// A record of a server that nothing is known about.
    pub fn new(url: &Url) -> Self {
        Self {
            url: canonical_url(url).into(),
            issuer: None,
            grants: BTreeMap::new(),
            revision: 0,
        }
    }

    /// The grant that counts now.
    pub fn current(&self) -> Option<&Grant> {
        self.grants.get(self.issuer.as_deref()?)
    }

    /// The grant that counts now, to be changed.
    pub fn current_mut(&mut self) -> Option<&mut Grant> {
        self.grants.get_mut(self.issuer.as_deref()?)
    }

    /// Keeps a grant and makes it the one that counts. The oldest ones go if there are too many.
    pub fn set_current(&mut self, issuer: impl Into<String>, grant: Grant) {
        let issuer = issuer.into();
        self.grants.insert(issuer.clone(), grant);
        self.issuer = Some(issuer);
        self.forget_oldest();
    }

    /// Keeps no more than [`MAX_ISSUERS`] grants: the oldest sign-ins go, the current one stays.
    pub(super) fn forget_oldest(&mut self) {
        while self.grants.len() > MAX_ISSUERS {
            let oldest = self
                .grants
                .iter()
                .filter(|(issuer, _)| self.issuer.as_ref() != Some(*issuer))
                .min_by_key(|(_, grant)| grant.signed_in_at)
                .map(|(issuer, _)| issuer.clone());
            let Some(oldest) = oldest else { return };
            self.grants.remove(&oldest);
        }
    }
}

impl Grant {
    /// A grant of a client that has no tokens yet.
    pub fn new(client: Client, token_endpoint: impl Into<String>) -> Self {
        Self {
            client,
            tokens: None,
            resource: None,
            token_endpoint: token_endpoint.into(),
            revocation_endpoint: None,
            dpop_key: None,
            requested_scopes: Vec::new(),
            wanted_scopes: Vec::new(),
            signed_in_at: None,
        }
    }
}

/// The address that a server is known by. Scheme and host are in lower case and a default port is
/// gone, as in every parsed address; so are the fragment, which no server sees, and credentials. The
/// query stays: it may choose what the server is.
pub fn canonical_url(url: &Url) -> Url {
    let mut url = url.clone();
    // These fail only for addresses that have no host, and those carry no credentials.
    let _cannot_have_any = url.set_username("").and_then(|()| url.set_password(None));
    url.set_fragment(None);
    url
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            url,
            issuer,
            grants,
            revision,
        } = self;
        formatter
            .debug_struct("Record")
            .field("url", &Address(url))
            .field("issuer", &issuer.as_deref().map(Address))
            .field("grants", &Grants(grants))
            .field("revision", revision)
            .finish()
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            client,
            tokens,
            resource,
            token_endpoint,
            revocation_endpoint,
            dpop_key,
            requested_scopes,
            wanted_scopes,
            signed_in_at,
        } = self;
        formatter
            .debug_struct("Grant")
            .field("client", client)
            .field("tokens", tokens)
            .field("resource", &resource.as_deref().map(Address))
            .field("token_endpoint", &Address(token_endpoint))
            .field(
                "revocation_endpoint",
                &revocation_endpoint.as_deref().map(Address),
            )
            .field("dpop_key", dpop_key)
            .field("requested_scopes", requested_scopes)
            .field("wanted_scopes", wanted_scopes)
            .field("signed_in_at", signed_in_at)
            .finish()
    }
}

/// An address in debug output: its query may be a key.
struct Address<'a>(&'a str);

impl fmt::Debug for Address<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Url::parse(self.0) {
            Ok(url) => formatter.write_str(&shown(&url)),
            Err(_) => formatter.write_str("(no address)"),
        }
    }
}

struct Grants<'a>(&'a BTreeMap<String, Grant>);

impl fmt::Debug for Grants<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self
            .0
            .iter()
            .map(|(issuer, grant)| (Address(issuer), grant));
        formatter.debug_map().entries(entries).finish()
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
