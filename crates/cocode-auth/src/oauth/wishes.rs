//! What to ask for at a sign-in, and what a server has wished for since.

use cocode_core::Grant as GrantKind;

use super::authorize::CallbackError;
use super::discovery::Discovered;
use super::login::LoginOptions;
use super::login_error::LoginError;
use super::record::Grant;
use super::scopes::{self, ScopeChoice};
use super::site::Site;
use super::vault::VaultError;

impl Site {
    /// What to ask for: what was decided, or what the server names together with what it was given
    /// before.
    pub(super) fn scopes(
        &self,
        options: &LoginOptions,
        found: &Discovered,
        kept: Option<&Grant>,
    ) -> Vec<String> {
        let configured = &self.sign_in.oauth.scopes;
        let explicit = options.scopes.as_ref().unwrap_or(configured);
        let challenged = options.challenge.as_ref();
        let challenged = challenged.and_then(|challenge| challenge.scope.as_deref());
        let chosen = ScopeChoice {
            explicit,
            challenged,
            resource: found.protected.as_ref(),
            server: &found.server,
            refreshable: self.sign_in.oauth.grant == GrantKind::AuthorizationCode,
        }
        .select();
        let Some(kept) = kept.filter(|_| options.scopes.is_none()) else {
            return chosen;
        };
        // What was granted before is asked for again, unless it was given back, or the configuration
        // says what is wanted.
        let is_open = kept.signed_in_at.is_some() && configured.is_empty();
        let before = Some(kept.requested_scopes.as_slice()).filter(|_| is_open);
        let before = scopes::step_up(before.unwrap_or_default(), &kept.wanted_scopes, &[]);
        scopes::step_up(&before, &chosen, challenged.unwrap_or_default())
    }

    /// Notes what a server wants besides what the tokens allow, for the next sign-in.
    pub(super) async fn want(&self, scopes: &[String]) -> Result<(), VaultError> {
        let mut transaction = self.vault.transaction(&self.url).await?;
        let Some(mut record) = transaction.record().cloned() else {
            return Ok(());
        };
        let Some(slot) = self.usable(&record).map(|(issuer, _)| self.slot(issuer)) else {
            return Ok(());
        };
        let Some(grant) = record.grants.get_mut(&slot) else {
            return Ok(());
        };
        let wanted = scopes::step_up(&grant.wanted_scopes, scopes, &[]);
        if wanted == grant.wanted_scopes {
            return Ok(());
        }
        grant.wanted_scopes = wanted;
        transaction.commit(record).await.map(drop)
    }

    /// Scopes that the server wished for and nobody can have must not spoil the next sign-in.
    pub(super) async fn not_permitted(&self, error: CallbackError) -> LoginError {
        if error.is_about_scopes()
            && let Err(error) = self.forget_wishes().await
        {
            tracing::debug!(error = %cocode_wire::chain(&error), "wanted scopes not forgotten");
        }
        error.into()
    }

    async fn forget_wishes(&self) -> Result<(), VaultError> {
        let mut transaction = self.vault.transaction(&self.url).await?;
        let Some(mut record) = transaction.record().cloned() else {
            return Ok(());
        };
        for grant in record.grants.values_mut() {
            grant.wanted_scopes.clear();
        }
        transaction.commit(record).await.map(drop)
    }
}
