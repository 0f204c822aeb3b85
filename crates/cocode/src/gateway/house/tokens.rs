//! The tokens that let clients in.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_access::{PrincipalName, TokenKeeper};
use cocode_admin::model::{MadeToken, NewToken, Token, TokenChange, TokenNews};
use cocode_admin::{Moment, News, Refusal, RefusalStatus, Secret};

use super::Entrance;
use super::interior::Interior;
use super::refusing::refusal;
use crate::access::token_trouble;
use crate::govern::tokens::{made, parsed};

/// How often it is looked, while somebody listens, whether another process has made a token.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Interior {
    fn keeper(&self) -> Result<&Arc<TokenKeeper>, Refusal> {
        self.tokens.as_ref().ok_or_else(|| {
            let message = "this gateway keeps no tokens";
            Refusal::new(RefusalStatus::Unavailable, "no-tokens", message)
        })
    }

    pub(super) async fn tokens(&self) -> Result<Vec<Token>, Refusal> {
        let keeper = self.keeper()?;
        // `cocode gateway token` relies on this: listed tokens are in effect.
        keeper.refresh().await;
        let tokens = keeper.store().list().await;
        let tokens = tokens.map_err(|error| refusal(token_trouble(&error)))?;
        let shown = tokens.into_iter().map(|token| Token {
            name: token.name.as_str().to_owned(),
            admin: token.is_admin,
            created_at: token.created.into(),
            last_used_at: token.last_used.map(Moment::from),
            expires_at: token.expires.map(Moment::from),
        });
        Ok(shown.collect())
    }

    pub(super) async fn add_token(&self, wanted: NewToken) -> Result<MadeToken, Refusal> {
        let keeper = self.keeper()?;
        let name = parsed(&wanted.name).map_err(refusal)?;
        let days = wanted.expires_in_days.map(|days| u64::from(days.get()));
        let expires = days.map(|days| Duration::from_hours(24 * days));
        let made = made(&name, wanted.admin.unwrap_or_default(), expires);
        let (token, record) = made.map_err(refusal)?;
        let added = keeper.store().add(&record).await;
        added.map_err(|error| refusal(token_trouble(&error)))?;
        self.lock_own_tokens().insert(name.clone());
        // From now on it counts.
        keeper.refresh().await;
        self.tell_of_token(&name, TokenChange::Added);
        Ok(MadeToken {
            name: name.as_str().to_owned(),
            token: Secret::new(token.expose()),
        })
    }

    pub(super) async fn revoke_token(&self, name: &str) -> Result<(), Refusal> {
        let keeper = self.keeper()?;
        let Ok(name) = parsed(name) else {
            let message = "there is no token of this name";
            return Err(Refusal::new(
                RefusalStatus::Unknown,
                "unknown-token",
                message,
            ));
        };
        let revoked = keeper.store().revoke(&name).await;
        revoked.map_err(|error| refusal(token_trouble(&error)))?;
        // First nobody comes in with it any more, then those go who did.
        keeper.refresh().await;
        if let Some(Entrance { door, .. }) = self.entrance.get() {
            door.evict(name.as_str());
        }
        Ok(())
    }

    /// Tells of tokens that another process makes, for as long as somebody listens. The store cannot
    /// say it by itself.
    pub(super) async fn tell_of_added_tokens(&self) {
        let Some(keeper) = &self.tokens else {
            return std::future::pending().await;
        };
        loop {
            self.bulletin.attended().await;
            self.lock_own_tokens().clear();
            let mut known = names(keeper).await;
            while self.bulletin.listeners() > 0 {
                tokio::time::sleep(LOOK_EVERY).await;
                let now = names(keeper).await;
                if let (Some(known), Some(now)) = (&known, &now) {
                    for name in now.difference(known) {
                        if !self.lock_own_tokens().remove(name) {
                            self.tell_of_token(name, TokenChange::Added);
                        }
                    }
                }
                known = now.or(known);
            }
        }
    }

    fn lock_own_tokens(&self) -> MutexGuard<'_, BTreeSet<PrincipalName>> {
        let own = self.own_tokens.lock();
        own.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell_of_token(&self, name: &PrincipalName, change: TokenChange) {
        let name = name.as_str().to_owned();
        self.bulletin
            .publish(&News::Token(TokenNews { name, change }));
    }
}

/// The names of all tokens; nothing if the store cannot be read now.
async fn names(keeper: &TokenKeeper) -> Option<BTreeSet<PrincipalName>> {
    let tokens = keeper.store().list().await.ok()?;
    Some(tokens.into_iter().map(|token| token.name).collect())
}
