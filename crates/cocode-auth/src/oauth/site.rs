//! One server, what is known about being let in there, and where its credentials are kept.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cocode_core::Grant as GrantKind;
use cocode_wire::HttpClient;
use url::Url;

use super::guard::Guard;
use super::http::Http;
use super::record::{Grant, Record};
use super::sign_in::SignIn;
use super::vault::{Vault, VaultError};

/// One server and its credentials. Making it touches nothing.
#[derive(Clone, Debug)]
pub struct Site {
    pub(super) sign_in: Arc<SignIn>,
    pub(super) url: Url,
    /// The client that the entry of this server brings, if it brings one.
    own_client: Option<String>,
    pub(super) client: HttpClient,
    pub(super) http: Http,
    pub(super) vault: Vault,
}

impl Site {
    /// Brings together what is known, how HTTP is spoken, and where credentials are kept.
    pub fn new(sign_in: SignIn, client: HttpClient, vault: Vault) -> Self {
        let url = sign_in.http_url();
        let private = sign_in.oauth.allow_private_network;
        let guard = Guard::for_server(&url).with_private_network(private);
        Self {
            own_client: sign_in.oauth.client_id.clone(),
            http: Http::new(client.clone(), guard),
            client,
            sign_in: Arc::new(sign_in),
            url,
            vault,
        }
    }

    /// The same, for an entry that names this client, whoever signs in for it now: where its
    /// credentials are stored is decided by the entry.
    #[must_use]
    pub fn for_entry(mut self, client_id: Option<String>) -> Self {
        self.own_client = client_id;
        self
    }

    /// What is known beforehand.
    pub fn sign_in(&self) -> &SignIn {
        &self.sign_in
    }

    /// Where credentials are kept.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// What is stored and may be used: that of another client, or of another authorization server
    /// than the configured one, may not, nor what was got in another way than the configured one.
    pub fn usable<'a>(&self, record: &'a Record) -> Option<(&'a str, &'a Grant)> {
        let oauth = &self.sign_in.oauth;
        let slot = match &oauth.issuer {
            Some(issuer) => self.slot(issuer),
            None => self.newest_slot(record)?.to_owned(),
        };
        let (slot, grant) = record.grants.get_key_value(&slot)?;
        let is_ours = |id: &String| *id == grant.client.id;
        let same_client = oauth.client_id.as_ref().is_none_or(is_ours);
        let same_resource = oauth.resource.is_none() || oauth.resource == grant.resource;
        // Only a client that sends browsers somewhere has an address to come back to.
        let by_browser = !grant.client.redirect_uris.is_empty();
        let same_way = by_browser == (oauth.grant == GrantKind::AuthorizationCode);
        // A program gets what it is configured to ask for; a person is not asked again for that.
        let asked = |scope: &String| grant.requested_scopes.contains(scope);
        let same_scopes = by_browser || oauth.scopes.iter().all(asked);
        let is_usable = same_client && same_resource && same_way && same_scopes;
        is_usable.then_some((Record::issuer_of(slot), grant))
    }

    /// Where the grant of an authorization server is stored. Entries of the configuration that bring
    /// clients of their own to the same address are not in each other's way.
    pub(super) fn slot(&self, issuer: &str) -> String {
        match &self.own_client {
            Some(client) => format!("{issuer} {client}"),
            None => issuer.to_owned(),
        }
    }

    /// Where the sign-in of this entry is stored that was made last.
    fn newest_slot<'a>(&self, record: &'a Record) -> Option<&'a str> {
        let client = self.own_client.as_deref();
        let is_ours = |slot: &str| slot.split_once(' ').map(|(_, client)| client) == client;
        if let Some(current) = record.issuer.as_deref().filter(|slot| is_ours(slot)) {
            return Some(current);
        }
        let ours = record.grants.iter().filter(|(slot, _)| is_ours(slot));
        let newest = ours.max_by_key(|(_, grant)| grant.signed_in_at);
        newest.map(|(slot, _)| slot.as_str())
    }

    pub(super) async fn read(&self) -> Result<Option<Record>, VaultError> {
        self.vault.read(&self.url).await
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
#[path = "site_tests.rs"]
mod tests;
