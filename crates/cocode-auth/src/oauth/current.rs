//! The tokens in use, ready to be put onto requests.

use std::fmt;
use std::sync::Arc;

use cocode_wire::RequestLine;
use http::{HeaderMap, HeaderValue, header};

use super::dpop::Dpop;
use super::key::{KeyError, SigningKey};
use super::record::Grant;
use super::tokens::{TokenKind, Tokens};

/// Tokens are renewed this long before they end, or after most of a short life.
const AHEAD_SECONDS: u64 = 60;
const SHORT_LIFE_PARTS: u64 = 5;

/// Tokens in use.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) tokens: Tokens,
    /// As whom, and since when.
    pub(super) account: String,
    pub(super) authorization: HeaderValue,
    pub(super) dpop: Option<Arc<Dpop>>,
    /// They could not be stored, and end with this process.
    pub(super) unsaved: bool,
}

/// Why tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// They fit into no header.
    #[error("the token has characters that no header can have")]
    Token,
    /// Half of them is missing.
    #[error("the token is bound to a key that is not stored")]
    NoKey,
    /// Half of them is damaged.
    #[error("the key of the token cannot be used")]
    Key(#[from] KeyError),
}

impl Current {
    /// What a grant has, if it has any. A key that is in use already keeps what it has learned.
    pub(super) fn of(grant: &Grant, before: Option<&Self>) -> Result<Option<Self>, Unfit> {
        let Some(tokens) = grant.tokens.clone() else {
            return Ok(None);
        };
        let dpop = match tokens.kind {
            TokenKind::Bearer => None,
            TokenKind::Dpop => {
                let stored = grant.dpop_key.as_ref().ok_or(Unfit::NoKey)?;
                let kept = before.and_then(|before| before.dpop.clone());
                let is_same = |dpop: &Arc<Dpop>| dpop.key().stored().expose() == stored.expose();
                let dpop = match kept.filter(is_same) {
                    Some(kept) => kept,
                    None => Arc::new(Dpop::new(SigningKey::from_stored(stored)?)),
                };
                Some(dpop)
            }
        };
        let authorization = tokens.authorization().ok_or(Unfit::Token)?;
        // A program signs in whenever its token has ended, and stays who it is.
        let is_program = grant.client.redirect_uris.is_empty();
        let signed_in_at = grant.signed_in_at.filter(|_| !is_program);
        let signed_in_at = signed_in_at.unwrap_or_default();
        let Grant {
            client,
            token_endpoint,
            ..
        } = grant;
        Ok(Some(Self {
            tokens,
            account: format!("{token_endpoint} {} {signed_in_at}", client.id),
            authorization,
            dpop,
            unsaved: false,
        }))
    }

    /// The headers of one request.
    pub(super) fn headers(
        &self,
        request: RequestLine<'_>,
        now: u64,
    ) -> Result<HeaderMap, KeyError> {
        let mut headers = HeaderMap::with_capacity(2);
        headers.insert(header::AUTHORIZATION, self.authorization.clone());
        if let Some(dpop) = &self.dpop {
            let proof = dpop.proof(request, Some(&self.tokens.access), now)?;
            headers.insert(Dpop::HEADER, proof);
        }
        Ok(headers)
    }

    /// Whether it is time to renew them.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let Tokens {
            expires_at,
            issued_at,
            ..
        } = &self.tokens;
        expires_at.is_some_and(|end| {
            let life = end.saturating_sub(*issued_at);
            let ahead = AHEAD_SECONDS.min(life / SHORT_LIFE_PARTS);
            now.saturating_add(ahead) >= end
        })
    }

    /// Whether they have ended.
    pub(super) fn has_ended(&self, now: u64) -> bool {
        self.tokens.expires_at.is_some_and(|end| now >= end)
    }

    pub(super) fn is_sent_in(&self, sent: &HeaderMap) -> bool {
        sent.get(header::AUTHORIZATION) == Some(&self.authorization)
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Current").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "current_tests.rs"]
mod tests;
