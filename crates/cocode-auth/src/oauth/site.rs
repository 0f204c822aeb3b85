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
            http: Http::new(client.clone(), guard),
            client,
            sign_in: Arc::new(sign_in),
            url,
            vault,
        }
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
        let issuer = match &oauth.issuer {
            Some(issuer) => issuer,
            None => record.issuer.as_ref()?,
        };
        let (issuer, grant) = record.grants.get_key_value(issuer)?;
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
        is_usable.then_some((issuer.as_str(), grant))
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
