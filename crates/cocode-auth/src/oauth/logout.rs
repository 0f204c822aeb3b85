//! Signs out: gives tokens back if that is wanted, and forgets them.

use url::Url;

use super::record::{Grant, Record};
use super::registration;
use super::revoke::TokenHint;
use super::site::{Site, now};
use super::token::{TokenEndpoint, Unbound};
use super::vault::VaultError;

/// What became of a sign-out.
#[derive(Debug, Default)]
pub struct SignedOut {
    /// Whether anybody was signed in.
    pub was_signed_in: bool,
    /// The authorization servers that took their tokens back.
    pub revoked: Vec<String>,
    /// The authorization servers that did not, and why. The tokens are forgotten all the same.
    pub kept_valid: Vec<(String, String)>,
}

impl Site {
    /// Forgets the tokens of a server. The registration stays, so that the next sign-in needs no new
    /// one. With `revoke`, authorization servers are told first, and registrations of ours are
    /// deleted as well.
    pub async fn log_out(&self, revoke: bool) -> Result<SignedOut, VaultError> {
        let mut outcome = SignedOut::default();
        let mut transaction = match self.vault.transaction(&self.url).await {
            Ok(transaction) => transaction,
            // Whatever it is, it is not to stay.
            Err(VaultError::Damaged { .. } | VaultError::NewerVersion { .. }) => {
                outcome.was_signed_in = self.vault.remove(&self.url).await?;
                return Ok(outcome);
            }
            Err(error) => return Err(error),
        };
        let Some(mut record) = transaction.record().cloned() else {
            return Ok(outcome);
        };
        outcome.was_signed_in = record.grants.values().any(|grant| grant.tokens.is_some());
        if !revoke {
            for grant in record.grants.values_mut() {
                (grant.tokens, grant.dpop_key, grant.signed_in_at) = (None, None, None);
                grant.wanted_scopes.clear();
            }
            transaction.commit(record).await?;
            return Ok(outcome);
        }
        for (slot, grant) in &record.grants {
            let issuer = Record::issuer_of(slot);
            match self.give_back(issuer, grant).await {
                Ok(true) => outcome.revoked.push(issuer.to_owned()),
                Ok(false) => {}
                Err(why) => outcome.kept_valid.push((issuer.to_owned(), why)),
            }
        }
        transaction.clear().await?;
        Ok(outcome)
    }

    /// Gives back what can be. Says whether tokens were.
    async fn give_back(&self, issuer: &str, grant: &Grant) -> Result<bool, String> {
        let told = |error: &dyn std::error::Error| cocode_wire::chain(error);
        let mut revoked = Ok(false);
        if let Some(tokens) = &grant.tokens {
            let no_endpoint = || "it names no address for that".to_owned();
            let revocation = grant.revocation_endpoint.as_deref();
            let url = Url::parse(&grant.token_endpoint).ok();
            let revocation = revocation.and_then(|url| Url::parse(url).ok());
            revoked = match url.zip(revocation) {
                None => Err(no_endpoint()),
                Some((url, revocation)) => {
                    // Without its key, a client is not believed, and that is told.
                    let key = self.sign_in.signing_key().await.unwrap_or_else(|error| {
                        tracing::warn!(issuer, error = %told(&error), "signing out without a key");
                        None
                    });
                    let endpoint = TokenEndpoint {
                        http: &self.http,
                        url: &url,
                        issuer,
                        client: &grant.client,
                        key: key.as_ref(),
                        dpop: None,
                        unbound: Unbound::Accepted,
                        now: now(),
                    };
                    // The refresh token first: what came of it usually ends with it.
                    let (token, hint) = match &tokens.refresh {
                        Some(refresh) => (refresh, TokenHint::Refresh),
                        None => (&tokens.access, TokenHint::Access),
                    };
                    let given = endpoint.revoke(&revocation, token, hint).await;
                    given.map(|()| true).map_err(|error| told(&error))
                }
            };
        }
        if let Err(error) = registration::unregister(&self.http, &grant.client).await {
            tracing::warn!(issuer, error = %told(&error), "a registered client was not deleted");
        }
        revoked
    }
}
