//! Renews tokens, once for all processes: under the lock of the record, with the record read again
//! at every step that could throw something away.

use http::HeaderMap;
use url::Url;

use super::client::ClientKind;
use super::current::{Current, Unfit};
use super::key::KeyError;
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
}

impl RenewError {
    /// Whether somebody has to sign in.
    pub(super) fn needs_sign_in(&self) -> bool {
        matches!(self, Self::SignedOut(_) | Self::Ended(_) | Self::Unfit(_))
    }
}

impl From<KeyError> for RenewError {
    fn from(error: KeyError) -> Self {
        Self::Unfit(error.into())
    }
}

impl Site {
    /// Gets tokens other than those that `sent` shows. Nobody else does so at the same time, in this
    /// process or another: whoever comes second finds what the first has stored.
    pub(super) async fn renew(&self, old: &Current) -> Result<Current, RenewError> {
        let mut transaction = self.vault.transaction(&self.url).await?;
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
            if let Some(current) = Current::of(grant, Some(old))?
                && current.authorization != old.authorization
                && !current.has_ended(now())
            {
                return Ok(current);
            }
            let Some(refresh) = tokens.refresh.clone() else {
                return Err(RenewError::SignedOut(
                    "the token has ended, and the authorization server gave nothing to renew it with",
                ));
            };
            let (issuer, grant) = (issuer.to_owned(), grant.clone());
            match self.refreshed(&issuer, &grant, &refresh, old).await {
                Ok(tokens) => {
                    return self
                        .store(&mut transaction, &issuer, &grant, tokens, old)
                        .await;
                }
                Err(RenewError::Token(error)) if ends(&error) => {
                    // Somebody without our lock may have been first: theirs is the good one.
                    let again = transaction.re_read().await?;
                    let still = again.and_then(|record| refresh_of(record, &issuer));
                    if still.is_some_and(|still| still != refresh.expose()) {
                        continue;
                    }
                    self.forget(&mut transaction, &issuer, &error).await?;
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
        let current = current.ok_or(RenewError::SignedOut("nobody is signed in"))?;
        for _attempt in 0..ATTEMPTS {
            let Some(mut record) = transaction.record().cloned() else {
                // Signed out meanwhile, by somebody without our lock.
                return Ok(current);
            };
            record.grants.insert(issuer.to_owned(), grant.clone());
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
                    return Ok(current);
                }
            }
        }
        tracing::error!(server = %self.sign_in.server, "renewed credentials could not be stored: others write to the store without its lock");
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
        let is_unknown = matches!(error, TokenError::InvalidClient(_));
        let Some(grant) = record.grants.get_mut(issuer) else {
            return Ok(());
        };
        grant.tokens = None;
        if is_unknown && grant.client.kind == ClientKind::Dynamic {
            record.grants.remove(issuer);
        }
        transaction.commit(record).await.map(drop)
    }
}

/// Whether an authorization server will never again take what we had.
fn ends(error: &TokenError) -> bool {
    matches!(
        error,
        TokenError::InvalidGrant(_) | TokenError::InvalidClient(_)
    )
}

fn refresh_of<'a>(record: &'a Record, issuer: &str) -> Option<&'a str> {
    let tokens = record.grants.get(issuer)?.tokens.as_ref()?;
    Some(tokens.refresh.as_ref()?.expose())
}

/// Reads the nonce that a server wants in the next proof. Says whether it named one.
pub(super) fn heard(current: &Current, url: &Url, headers: &HeaderMap) -> bool {
    let dpop = current.dpop.as_ref();
    dpop.is_some_and(|dpop| dpop.heard(super::dpop::DpopPeer::Resource, url, headers))
}
