//! The tokens that let clients in.

use std::sync::Arc;
use std::time::Duration;

use cocode_access::{PrincipalName, TokenKeeper};
use cocode_admin::model::{MadeToken, NewToken, Token, TokenChange, TokenNews};
use cocode_admin::{Moment, News, Refusal, RefusalStatus, Secret};

use super::Entrance;
use super::interior::Interior;
use super::refusing::refusal;
use crate::access::token_trouble;
use crate::govern::tokens::{made, parsed};

impl Interior {
    fn keeper(&self) -> Result<&Arc<TokenKeeper>, Refusal> {
        self.tokens.as_ref().ok_or_else(|| {
            let message = "this gateway keeps no tokens";
            Refusal::new(RefusalStatus::Unavailable, "no-tokens", message)
        })
    }

    pub(super) async fn tokens(&self) -> Result<Vec<Token>, Refusal> {
        let tokens = self.keeper()?.store().list().await;
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

    pub(super) fn tell_of_token(&self, name: &PrincipalName, change: TokenChange) {
        let name = name.as_str().to_owned();
        self.bulletin
            .publish(&News::Token(TokenNews { name, change }));
    }
}
