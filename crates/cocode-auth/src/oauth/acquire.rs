//! Tokens that need nobody: the client's own, those for an assertion, and those for which an
//! identity provider vouches.

use std::time::Duration;

use cocode_core::{Grant as GrantKind, OAuth};
use http::HeaderMap;
use url::Url;

use super::client::{Client, ClientAuthentication, ClientKind};
use super::current::Current;
use super::discovery::{self, Discovered};
use super::dpop::Dpop;
use super::guard::Guard;
use super::http::Http;
use super::key::SigningKey;
use super::login::{LoginOptions, SignedIn};
use super::login_error::LoginError;
use super::record::{Grant, Record};
use super::registration::RegistrationError;
use super::sign_in::SourceError;
use super::site::{Site, now};
use super::token::{IdentityExchange, TokenEndpoint, Unbound};
use super::tokens::Tokens;
use super::vault::{Transaction, VaultError};
use crate::secret::Secret;

/// How long it may take to find out whether a sign-in is possible at all, when nobody asked for it.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

impl Site {
    /// Gets tokens by the configured grant. Nothing is tried twice: an assertion that was refused
    /// once stays refused.
    pub(super) async fn acquire(&self, options: &LoginOptions) -> Result<SignedIn, LoginError> {
        let transaction = self.vault.transaction(&self.url).await?;
        self.acquire_in(transaction, options).await
    }

    /// Does so unless somebody else has stored other tokens than those that `refused` shows. The lock
    /// is held all the time, so that many processes that start at once ask once. Where nothing can be
    /// stored, the tokens serve this process alone: they are easily got again.
    pub(super) async fn acquire_for(
        &self,
        options: &LoginOptions,
        refused: &HeaderMap,
    ) -> Result<Current, LoginError> {
        let unstored = |error: &VaultError| {
            tracing::warn!(server = %self.sign_in.server, error = %cocode_wire::chain(error),
                "tokens cannot be stored for other processes");
        };
        let mut transaction = match self.vault.transaction(&self.url).await {
            Ok(transaction) => Some(transaction),
            Err(error) => {
                unstored(&error);
                None
            }
        };
        let record = transaction.as_ref().and_then(Transaction::record).cloned();
        let mut record = record.unwrap_or_else(|| Record::new(&self.url));
        let stored = self.usable(&record);
        let stored = stored.and_then(|(_, grant)| Current::of(grant, None).ok()?);
        if let Some(stored) =
            stored.filter(|stored| !stored.is_sent_in(refused) && !stored.has_ended(now()))
        {
            return Ok(stored);
        }
        let (issuer, grant) = self.acquired(&record, options).await?;
        let current = Current::of(&grant, None).map_err(LoginError::Unfit)?;
        let mut current = current.ok_or(LoginError::NoToken)?;
        record.set_current(self.slot(&issuer), grant);
        let stored = match &mut transaction {
            Some(transaction) => transaction.commit(record).await.map(drop),
            None => Ok(()),
        };
        if let Err(error) = stored {
            unstored(&error);
            current.unsaved = true;
        }
        Ok(current)
    }

    async fn acquire_in(
        &self,
        mut transaction: Transaction,
        options: &LoginOptions,
    ) -> Result<SignedIn, LoginError> {
        let record = transaction.record().cloned();
        let mut record = record.unwrap_or_else(|| Record::new(&self.url));
        let (issuer, grant) = self.acquired(&record, options).await?;
        record.set_current(self.slot(&issuer), grant.clone());
        let place = transaction.commit(record).await?;
        Ok(SignedIn::of(&issuer, &grant, place))
    }

    async fn acquired(
        &self,
        record: &Record,
        options: &LoginOptions,
    ) -> Result<(String, Grant), LoginError> {
        self.check_address()?;
        let found = self.discover(options).await?;
        self.check_issuer(&found.server, record)?;
        let kept = record.grants.get(&self.slot(&found.server.issuer));
        let asked = self.scopes(options, &found, kept);
        let before = kept.map(|grant| &grant.client);
        let client = self.preregistered(options, &found.server, before, None)?;
        let client = client.ok_or(LoginError::Source(SourceError::Missing {
            needed: "oauth.client_id",
        }))?;
        let mut grant = self.grant_of(&found, client, kept)?;
        let dpop = grant.dpop()?;
        let key = self.sign_in.signing_key().await?;
        let tokens = self
            .asked_for(&found, &grant, key.as_ref(), dpop.as_ref(), &asked)
            .await?;
        grant.signed_in(tokens, asked);
        if self.sign_in.oauth.client_secret_env.is_some() {
            // It is read anew each time.
            grant.client.secret = None;
        }
        Ok((found.server.issuer, grant))
    }

    async fn asked_for(
        &self,
        found: &Discovered,
        grant: &Grant,
        key: Option<&SigningKey>,
        dpop: Option<&Dpop>,
        asked: &[String],
    ) -> Result<Tokens, LoginError> {
        let endpoint = self.endpoint(&found.server, &grant.client, key, dpop)?;
        let resource = grant.resource.as_deref();
        Ok(match self.sign_in.oauth.grant {
            GrantKind::ClientCredentials => endpoint.client_credentials(resource, asked).await?,
            GrantKind::Enterprise => {
                let vouched = self.vouched(found, grant, asked).await?;
                endpoint.jwt_bearer(&vouched, resource, asked).await?
            }
            _ => {
                let assertion = self.sign_in.assertion().await?;
                endpoint.jwt_bearer(&assertion, resource, asked).await?
            }
        })
    }

    /// What the identity provider says to the authorization server about the user.
    async fn vouched(
        &self,
        found: &Discovered,
        grant: &Grant,
        asked: &[String],
    ) -> Result<Secret, LoginError> {
        let OAuth {
            client_id,
            idp_client_id,
            idp_issuer,
            idp_token_endpoint,
            ..
        } = &self.sign_in.oauth;
        let id = idp_client_id.clone().or_else(|| client_id.clone());
        let secret = self.sign_in.idp_client_secret()?;
        let authentication = match secret {
            Some(_) => ClientAuthentication::SecretBasic,
            None => ClientAuthentication::None,
        };
        let client = Client {
            id: id.ok_or(LoginError::IdentityProvider(
                "`oauth.idp_client_id` is not set",
            ))?,
            secret,
            authentication,
            kind: ClientKind::Preregistered,
            redirect_uris: Vec::new(),
            secret_expires_at: None,
            registration_access_token: None,
            registration_uri: None,
        };
        let address = idp_token_endpoint.as_ref().or(idp_issuer.as_ref());
        let address = address.ok_or(LoginError::IdentityProvider(
            "neither `oauth.idp_issuer` nor `oauth.idp_token_endpoint` is set",
        ))?;
        let no_url = |_bad| LoginError::IdentityProvider("its address is no URL");
        let address = Url::parse(address).map_err(no_url)?;
        // Its address comes from the user and not from the server, so it may be anywhere.
        let http = Http::new(self.client.clone(), Guard::for_server(&address));
        let issuer = idp_issuer.clone().unwrap_or_default();
        let url = if idp_token_endpoint.is_some() {
            address
        } else {
            let server = discovery::authorization_server(&http, &issuer).await?;
            let url = server.token_endpoint;
            url.ok_or_else(|| LoginError::NoTokenEndpoint {
                issuer: issuer.clone(),
            })?
        };
        let provider = TokenEndpoint {
            http: &http,
            url: &url,
            issuer: &issuer,
            client: &client,
            key: None,
            dpop: None,
            unbound: Unbound::Accepted,
            now: now(),
        };
        let id_token = self.sign_in.assertion().await?;
        let exchange = IdentityExchange {
            id_token: &id_token,
            audience: &found.server.issuer,
            resource: grant.resource.as_deref().unwrap_or_default(),
            scopes: asked,
        };
        Ok(provider.exchange_id_token(exchange).await?)
    }

    /// Looks whether somebody could sign in at all, and says why not. What cannot be found out in a
    /// moment counts as possible.
    pub(super) async fn cannot_register(&self, options: &LoginOptions) -> Option<LoginError> {
        if let Err(error) = self.check_address() {
            return Some(error);
        }
        if self.sign_in.oauth.client_id.is_some() {
            return None;
        }
        let looking = tokio::time::timeout(LOOK_LIMIT, self.discover(options));
        let found = looking.await.ok()?.ok()?;
        let server = &found.server;
        let has_document = server.client_id_metadata_document_supported
            && self.sign_in.oauth.client_metadata_url.is_some();
        if has_document || server.registration_endpoint.is_some() {
            return None;
        }
        let issuer = server.issuer.clone();
        Some(self.unregistered(server, RegistrationError::NotOffered { issuer }))
    }
}
