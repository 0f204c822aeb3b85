//! Renews tokens, once for all processes: under the lock of the record, with the record read again
//! at every step that could throw something away.

use std::time::Duration;

use cocode_wire::CredentialsErrorKind;
use url::Url;

use super::client::{Client, ClientAuthentication, ClientKind};
use super::current::{Current, Unfit};
use super::key::KeyError;
use super::lock::Stamp;
use super::record::{Grant, Record};
use super::sign_in::SourceError;
use super::site::{Site, now};
use super::token::{TokenEndpoint, TokenError, Unbound};
use super::tokens::{TokenKind, Tokens};
use super::vault::{Transaction, VaultError};

/// How often somebody without our lock may get in between.
const ATTEMPTS: usize = 3;

/// Why tokens were not renewed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenewError {
    /// There is nothing to renew them with.
    #[error("{0}")]
    SignedOut(&'static str),
    /// The authorization server does not take what we had. It was removed.
    #[error("the sign-in has ended")]
    Ended(#[source] TokenError),
    #[error("the token could not be renewed")]
    Token(#[source] TokenError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("the address of the token endpoint that is stored cannot be used")]
    Endpoint,
    #[error("the renewal broke, which is a defect of the program")]
    Broken,
}

impl RenewError {
    /// Whether somebody has to sign in.
    pub(super) fn needs_sign_in(&self) -> bool {
        match self {
            Self::SignedOut(_) | Self::Ended(_) | Self::Unfit(_) | Self::Endpoint => true,
            // It will not take what we have, whatever it calls that.
            Self::Token(error) => {
                error.refusal().is_some() || matches!(error, TokenError::Malformed { .. })
            }
            Self::Vault(_) | Self::Source(_) | Self::Broken => false,
        }
    }

    /// How long not to try it again, if that would bring the same.
    pub(super) fn pause(&self) -> Option<Duration> {
        match self {
            Self::Token(TokenError::Temporary(trouble)) => {
                Some(Duration::from_secs(trouble.retry_after.unwrap_or_default()))
            }
            Self::Token(_) | Self::Vault(_) | Self::Source(_) | Self::Broken => {
                Some(Duration::ZERO)
            }
            Self::SignedOut(_) | Self::Ended(_) | Self::Unfit(_) | Self::Endpoint => None,
        }
    }

    /// What is missing, where nobody has to sign in.
    pub(super) fn kind(&self) -> CredentialsErrorKind {
        match self {
            Self::Token(error) if error.is_final() => CredentialsErrorKind::Unusable,
            Self::Source(error) if !error.may_pass() => CredentialsErrorKind::Unusable,
            _ => CredentialsErrorKind::Temporary,
        }
    }
}

impl From<KeyError> for RenewError {
    fn from(error: KeyError) -> Self {
        Self::Unfit(error.into())
    }
}

impl Site {
    /// Gets tokens other than these. Nobody else does so at the same time, in this process or
    /// another: whoever comes second finds what the first has stored. Also gives the stamp that the
    /// record has afterwards, taken before anybody else can change it.
    pub(super) async fn renew(
        &self,
        old: &Current,
    ) -> (Result<Current, RenewError>, Option<Stamp>) {
        let mut transaction = match self.vault.transaction(&self.url).await {
            Ok(transaction) => transaction,
            Err(error) => return (Err(error.into()), None),
        };
        let outcome = self.renew_in(&mut transaction, old).await;
        let stamp = self.vault.stamp(&self.url).await.ok();
        drop(transaction);
        (outcome, stamp)
    }

    async fn renew_in(
        &self,
        transaction: &mut Transaction,
        old: &Current,
    ) -> Result<Current, RenewError> {
        for _attempt in 0..ATTEMPTS {
            let Some(record) = transaction.record().cloned() else {
                return Err(RenewError::SignedOut("somebody has signed out"));
            };
            let Some((issuer, grant)) = self.usable(&record) else {
                return Err(RenewError::SignedOut(
                    "what is stored belongs to another client or authorization server",
                ));
            };
            let Some(tokens) = &grant.tokens else {
                return Err(RenewError::SignedOut("nobody is signed in"));
            };
            let stored = Current::of(grant, Some(old))?;
            let is_behind = |stored: &Current| old.unsaved && old.account == stored.account;
            let stored = stored.filter(|stored| !is_behind(stored));
            if let Some(current) = stored
                && current.authorization != old.authorization
                && !current.has_ended(now())
            {
                return Ok(current);
            }
            // What could not be stored is newer than what is.
            let newest = if old.unsaved { &old.tokens } else { tokens };
            let Some(refresh) = newest.refresh.clone() else {
                return Err(RenewError::SignedOut(
                    "the token has ended, and the authorization server gave nothing to renew it with",
                ));
            };
            let (issuer, grant) = (issuer.to_owned(), grant.clone());
            match self.refreshed(&issuer, &grant, &refresh, old).await {
                Ok(tokens) => {
                    return self.store(transaction, &issuer, &grant, tokens, old).await;
                }
                Err(RenewError::Token(error)) if ends(&error, &grant.client) => {
                    // Somebody without our lock may have been first: theirs is the good one.
                    let again = transaction.re_read().await?;
                    let still = again.and_then(|record| refresh_of(record, &self.slot(&issuer)));
                    if still.is_some_and(|still| still != refresh.expose()) {
                        continue;
                    }
                    self.forget(transaction, &issuer, &error).await?;
                    return Err(RenewError::Ended(error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(RenewError::SignedOut(
            "others renewed the token again and again at the same time",
        ))
    }

    async fn refreshed(
        &self,
        issuer: &str,
        grant: &Grant,
        refresh: &crate::secret::Secret,
        old: &Current,
    ) -> Result<Tokens, RenewError> {
        let url = Url::parse(&grant.token_endpoint).map_err(|_bad| RenewError::Endpoint)?;
        let key = self.sign_in.signing_key().await?;
        let mut client = grant.client.clone();
        if client.kind == ClientKind::Preregistered
            && let Some(secret) = self.sign_in.client_secret(client.secret.as_ref())?
        {
            client.secret = Some(secret);
            if client.authentication == ClientAuthentication::None {
                client.authentication = ClientAuthentication::SecretBasic;
            }
        }
        let stored = grant.dpop()?;
        // The one in use knows the nonce already.
        let dpop = old.dpop.as_deref().or(stored.as_ref());
        let is_bound = grant.tokens.as_ref().map(|tokens| tokens.kind) == Some(TokenKind::Dpop);
        let endpoint = TokenEndpoint {
            http: &self.http,
            url: &url,
            issuer,
            client: &client,
            key: key.as_ref(),
            dpop: dpop.filter(|_| is_bound),
            unbound: Unbound::Refused,
            now: now(),
        };
        let refreshed = endpoint.refresh(refresh, grant.resource.as_deref(), &[]);
        let mut tokens = refreshed.await.map_err(RenewError::Token)?;
        if tokens.scopes.is_none() {
            let before = grant.tokens.as_ref();
            tokens.scopes = before.and_then(|before| before.scopes.clone());
        }
        Ok(tokens)
    }

    /// Stores new tokens. They are used even if that fails: the old ones are worth nothing now.
    async fn store(
        &self,
        transaction: &mut Transaction,
        issuer: &str,
        grant: &Grant,
        tokens: Tokens,
        old: &Current,
    ) -> Result<Current, RenewError> {
        let mut grant = grant.clone();
        grant.tokens = Some(tokens);
        let current = Current::of(&grant, Some(old))?;
        let mut current = current.ok_or(RenewError::SignedOut("nobody is signed in"))?;
        for _attempt in 0..ATTEMPTS {
            let Some(mut record) = transaction.record().cloned() else {
                // Signed out meanwhile, by somebody without our lock.
                return Ok(current);
            };
            record.grants.insert(self.slot(issuer), grant.clone());
            match transaction.commit(record).await {
                Ok(_place) => return Ok(current),
                Err(VaultError::Conflict { .. }) => {
                    transaction.re_read().await?;
                }
                Err(error) => {
                    tracing::error!(
                        server = %self.sign_in.server, error = %cocode_wire::chain(&error),
                        "renewed credentials could not be stored; they end with this process"
                    );
                    current.unsaved = true;
                    return Ok(current);
                }
            }
        }
        tracing::error!(server = %self.sign_in.server, "renewed credentials could not be stored: others write to the store without its lock");
        current.unsaved = true;
        Ok(current)
    }

    /// Removes tokens that are worth nothing, and a client that is not known any more.
    async fn forget(
        &self,
        transaction: &mut Transaction,
        issuer: &str,
        error: &TokenError,
    ) -> Result<(), VaultError> {
        let Some(mut record) = transaction.record().cloned() else {
            return Ok(());
        };
        match error {
            TokenError::InvalidClient(_) => {
                record.grants.remove(&self.slot(issuer));
            }
            _ => {
                if let Some(grant) = record.grants.get_mut(&self.slot(issuer)) {
                    grant.tokens = None;
                }
            }
        }
        transaction.commit(record).await.map(drop)
    }
}

/// Whether an authorization server will never again take what we had. A client that somebody
/// configured may only have been shown with the wrong secret; one that we registered is gone.
fn ends(error: &TokenError, client: &Client) -> bool {
    match error {
        TokenError::InvalidGrant(_) => true,
        TokenError::InvalidClient(refusal) => {
            client.kind == ClientKind::Dynamic && refusal.error == "invalid_client"
        }
        _ => false,
    }
}

fn refresh_of<'a>(record: &'a Record, slot: &str) -> Option<&'a str> {
    let tokens = record.grants.get(slot)?.tokens.as_ref()?;
    Some(tokens.refresh.as_ref()?.expose())
}
