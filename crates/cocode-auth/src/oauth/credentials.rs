//! Lets a link in by OAuth: puts tokens on requests, renews them ahead of their end and after a
//! refusal, and signs in where that needs nobody, or somebody is there.

mod held;
mod told;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_core::Grant;
use cocode_wire::{
    Credentials, CredentialsError, CredentialsErrorKind, CredentialsWork, Refusal, RequestLine,
};
use http::HeaderMap;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use url::Url;

use self::held::{Held, How, LOOK_AGAIN};
use super::challenge::{self, AuthChallenge};
use super::current::Current;
use super::dpop::DpopPeer;
use super::lock::Stamp;
use super::login::LoginOptions;
use super::renew::RenewError;
use super::site::{Site, now};
use super::user_agent::UserAgent;
use crate::turn::Turn;

/// How often a sign-in is widened for the same scopes before a server that is never content is given
/// up.
const MAX_STEP_UPS: usize = 2;

/// How many refusals of one request may be about its proof.
const MAX_PROOFS: u32 = 3;

/// What lets us in at one server. Clones share it.
#[derive(Clone)]
pub struct OAuthCredentials(Arc<Inner>);

struct Inner {
    site: Site,
    user_agent: Option<Arc<dyn UserAgent>>,
    held: Mutex<Held>,
    /// One look at the store, renewal or sign-in at a time.
    turn: Turn,
    /// A renewal that was begun is finished, even if nobody waits for it any more: its result must
    /// be stored, since the old tokens are worth nothing then.
    renewals: TaskTracker,
}

type Renewal = Result<Arc<Current>, Arc<RenewError>>;

impl OAuthCredentials {
    /// Without a user agent, a server that wants somebody to sign in is left to wait for that.
    pub fn new(site: Site, user_agent: Option<Arc<dyn UserAgent>>) -> Self {
        Self(Arc::new(Inner {
            site,
            user_agent,
            held: Mutex::default(),
            turn: Turn::new(),
            renewals: TaskTracker::new(),
        }))
    }

    /// The server and its store.
    pub fn site(&self) -> &Site {
        &self.0.site
    }

    /// Reads what is stored, unless that was done: for those who have to know before the first
    /// request as whom it will be made.
    pub async fn recall(&self) {
        self.loaded().await;
    }

    /// As whom we are known at the server: the same as long as nobody signs in anew. Nothing if that
    /// is not known yet, because no request was made.
    pub fn identity(&self) -> Option<String> {
        let held = self.held();
        held.read.as_ref()?;
        let account = held.current.as_ref().map(|current| current.account.clone());
        Some(account.unwrap_or_default())
    }

    /// Ends when what is stored about the server has changed since it was last looked at.
    pub async fn changed(&self) {
        let site = &self.0.site;
        loop {
            let read = self.held().read.clone().unwrap_or_default();
            match site.vault.stamp(&site.url).await {
                Ok(stamp) if stamp != read => return,
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the store of credentials cannot be watched"),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until renewals that are under way are stored, for those who end the process.
    pub async fn settle(&self) {
        self.0.renewals.close();
        self.0.renewals.wait().await;
        self.0.renewals.reopen();
    }

    async fn headers_now(&self, request: RequestLine<'_>) -> Result<HeaderMap, CredentialsError> {
        let Some(mut current) = self.loaded().await else {
            return Ok(HeaderMap::new());
        };
        if current.has_ended(now()) {
            current = match self.renewed(&current).await {
                Ok(renewed) => renewed,
                // The server has the last word; without a token it will ask for a sign-in.
                Err(error) if error.needs_sign_in() => {
                    tracing::debug!(error = %cocode_wire::chain(&*error), "signed out");
                    return Ok(HeaderMap::new());
                }
                Err(error) => return Err(self.not_renewed(&error)),
            };
        } else if current.is_due(now()) && current.tokens.refresh.is_some() {
            // It is still good, so that nobody has to wait for the next one.
            self.renew_ahead(&current);
        }
        let url = self.http_url(request.url);
        let headers = current.headers(RequestLine { url, ..request }, now());
        headers.map_err(|error| {
            self.error(CredentialsErrorKind::Unusable, "cannot prove its key")
                .because(&error)
        })
    }

    /// The tokens in use. What is stored is looked at once a second at most, since others may have
    /// signed in or out; a server of which nothing was ever stored costs no look into a keyring.
    async fn loaded(&self) -> Option<Arc<Current>> {
        if !self.held().is_time_to_look() {
            let held = self.held();
            if held.read.is_some() {
                return held.current.clone();
            }
        }
        let is_known = self.held().read.is_some();
        let _turn = if is_known {
            // Whoever renews or signs in may take long, and what is at hand is good meanwhile.
            match self.0.turn.try_take() {
                Some(turn) => Some(turn),
                None => return self.held().current.clone(),
            }
        } else {
            self.0.turn.wait().await
        };
        let site = &self.0.site;
        match site.vault.stamp(&site.url).await {
            Ok(stamp) if stamp == Stamp::default() && self.held().read.is_none() => {
                self.held().read = Some(stamp);
            }
            Ok(stamp) if self.held().read.as_ref() == Some(&stamp) => {}
            Ok(_changed) => {
                if let Err(error) = self.read().await {
                    // If it matters, the server refuses the request, and the error comes up there.
                    tracing::debug!(%error, "stored credentials cannot be read");
                }
            }
            Err(error) => tracing::debug!(%error, "the store of credentials cannot be looked at"),
        }
        self.held().current.clone()
    }

    /// Reads the store, and uses what is there.
    async fn read(&self) -> Result<Option<Arc<Current>>, CredentialsError> {
        let site = &self.0.site;
        let failed = |error: &dyn std::error::Error| {
            let told = "has stored credentials that cannot be read";
            self.error(CredentialsErrorKind::Temporary, told)
                .because(error)
        };
        // Before reading: what changes between is noticed the next time.
        let stamp = site.vault.stamp(&site.url).await;
        let stamp = stamp.map_err(|error| failed(&error))?;
        let record = site.read().await.map_err(|error| failed(&error))?;
        let before = self.held().current.clone();
        let mut current = None;
        if let Some((_, grant)) = record.as_ref().and_then(|record| site.usable(record)) {
            match Current::of(grant, before.as_deref()) {
                Ok(read) => current = read.map(Arc::new),
                Err(error) => tracing::warn!(%error, "stored credentials cannot be used"),
            }
        }
        let account = |current: &Arc<Current>| current.account.clone();
        let same = before.as_ref().map(account) == current.as_ref().map(account);
        // What could not be stored is newer than what is.
        let unsaved = before.filter(|before| same && before.unsaved);
        let mut held = self.held();
        held.read = Some(stamp);
        held.use_now(unsaved.or(current));
        Ok(held.current.clone())
    }

    /// New tokens in place of these, unless that failed a moment ago.
    async fn renewed(&self, old: &Arc<Current>) -> Renewal {
        let ended = self.renewal(old).await;
        ended.unwrap_or_else(|error| {
            tracing::error!(%error, "a renewal broke");
            Err(Arc::new(RenewError::Broken))
        })
    }

    /// Renews without anybody waiting for it.
    fn renew_ahead(&self, old: &Arc<Current>) {
        {
            let mut held = self.held();
            if held.renewing || held.failed_lately().is_some() {
                return;
            }
            held.renewing = true;
        }
        drop(self.renewal(old));
    }

    /// Begins a renewal, which is finished whatever becomes of the handle.
    fn renewal(&self, old: &Arc<Current>) -> JoinHandle<Renewal> {
        let (shared, old) = (self.clone(), Arc::clone(old));
        self.0.renewals.spawn(async move {
            let _turn = shared.0.turn.wait().await;
            let outcome = shared.renew_in_turn(&old).await;
            if let Err(error) = &outcome {
                tracing::debug!(error = %cocode_wire::chain(&**error), "not renewed");
            }
            shared.held().renewing = false;
            outcome
        })
    }

    async fn renew_in_turn(&self, old: &Arc<Current>) -> Renewal {
        {
            let held = self.held();
            if let Some(newest) = &held.current
                && newest.authorization != old.authorization
            {
                return Ok(Arc::clone(newest));
            }
            if let Some(error) = held.failed_lately() {
                return Err(error);
            }
        }
        let (outcome, stamp) = self.0.site.renew(old).await;
        let mut held = self.held();
        if let Some(stamp) = stamp {
            held.read = Some(stamp);
        }
        match outcome {
            Ok(renewed) => {
                let renewed = Arc::new(renewed);
                held.use_now(Some(Arc::clone(&renewed)));
                Ok(renewed)
            }
            Err(error) => {
                let error = Arc::new(error);
                if error.needs_sign_in() {
                    held.use_now(None);
                }
                held.note_failed(&error);
                Err(error)
            }
        }
    }

    async fn answer(&self, refusal: Refusal<'_>) -> Result<bool, CredentialsError> {
        let challenge = challenge::best(refusal.challenge);
        if self.proves_better(&refusal, challenge.as_ref()) {
            return Ok(true);
        }
        match (refusal.challenge.status, &challenge) {
            (403, Some(challenge)) if challenge.is_insufficient_scope() => {
                self.widened(refusal, challenge).await
            }
            (403, _) => Ok(false),
            _ => self.admitted_anew(refusal, challenge.as_ref()).await,
        }
    }

    /// Whether the token was good and only the proof of its key was not: the server named a nonce, or
    /// its clock is not ours.
    fn proves_better(&self, refusal: &Refusal<'_>, challenge: Option<&AuthChallenge>) -> bool {
        let current = self.held().current.clone();
        let current = current.filter(|current| current.is_sent_in(refusal.sent));
        let Some(dpop) = current.and_then(|current| current.dpop.clone()) else {
            return false;
        };
        let (peer, url) = (DpopPeer::Resource, self.http_url(refusal.request.url));
        let named = dpop.heard(peer, url, refusal.headers);
        let Some(challenge) = challenge.filter(|_| refusal.before < MAX_PROOFS) else {
            return false;
        };
        let is_unproven = challenge.error.as_deref() == Some("invalid_dpop_proof");
        named && challenge.is_use_dpop_nonce()
            || is_unproven && dpop.set_clock(peer, url, refusal.headers, now())
    }

    /// The server wants a token, or another one.
    async fn admitted_anew(
        &self,
        refusal: Refusal<'_>,
        challenge: Option<&AuthChallenge>,
    ) -> Result<bool, CredentialsError> {
        let stored = match self.newer(refusal.sent).await? {
            Newer::Yes => return Ok(true),
            Newer::No(stored) => stored,
        };
        let obtained = self.held().obtained(refusal.sent);
        let mut why = None;
        if let Some(stored) = stored.filter(|stored| stored.tokens.refresh.is_some())
            && obtained.is_none()
        {
            match self.renewed(&stored).await {
                Ok(_renewed) => {
                    self.held().note_obtained(How::Renewed);
                    return Ok(true);
                }
                Err(error) if error.needs_sign_in() => why = Some(error),
                Err(error) => return Err(self.not_renewed(&error)),
            }
        }
        if obtained == Some(How::SignedIn) {
            return Ok(false);
        }
        let options = LoginOptions {
            challenge: challenge.cloned(),
            ..LoginOptions::default()
        };
        self.signed_in(refusal, options, why.as_deref()).await
    }

    /// The server wants a token that allows more.
    async fn widened(
        &self,
        refusal: Refusal<'_>,
        challenge: &AuthChallenge,
    ) -> Result<bool, CredentialsError> {
        let wanted = challenge.scope.clone().unwrap_or_default();
        if let Newer::Yes = self.newer(refusal.sent).await? {
            return Ok(true);
        }
        let tries = self.held().count_wish(&wanted);
        let can_ask = self.0.user_agent.is_some()
            || self.0.site.sign_in.oauth.grant != Grant::AuthorizationCode;
        if wanted.is_empty() || can_ask && tries > MAX_STEP_UPS {
            return Ok(false);
        }
        if !can_ask {
            let noted = self.0.site.want(&wanted).await;
            if let Err(error) = noted {
                tracing::debug!(error = %cocode_wire::chain(&error), "wanted scopes not noted");
            }
            let told = format!("wants more than you have allowed: {}", wanted.join(" "));
            return Err(self.needs_auth(&told));
        }
        let options = LoginOptions {
            challenge: Some(challenge.clone()),
            ..LoginOptions::default()
        };
        self.signed_in(refusal, options, None).await
    }

    /// Whether there are other tokens than those that were refused, here or in the store. If not,
    /// those that were refused.
    async fn newer(&self, sent: &HeaderMap) -> Result<Newer, CredentialsError> {
        let _turn = self.0.turn.wait().await;
        let current = self.held().current.clone();
        if current.is_some_and(|current| !current.is_sent_in(sent)) {
            return Ok(Newer::Yes);
        }
        Ok(match self.read().await? {
            Some(stored) if !stored.is_sent_in(sent) => Newer::Yes,
            stored => Newer::No(stored),
        })
    }

    async fn signed_in(
        &self,
        refusal: Refusal<'_>,
        options: LoginOptions,
        why: Option<&RenewError>,
    ) -> Result<bool, CredentialsError> {
        let site = &self.0.site;
        let is_by_browser = site.sign_in.oauth.grant == Grant::AuthorizationCode;
        if is_by_browser && self.0.user_agent.is_none() {
            let error = self.nobody_there(&options, why).await;
            return Err(self.with_challenge(error, refusal.challenge));
        }
        let _turn = self.0.turn.wait().await;
        let current = self.held().current.clone();
        if current.is_some_and(|current| !current.is_sent_in(refusal.sent)) {
            return Ok(true);
        }
        match &self.0.user_agent {
            Some(agent) if is_by_browser => {
                let signed_in = site.log_in(&**agent, &options).await;
                signed_in.map_err(|error| self.not_signed_in(&error))?;
                self.read().await?;
            }
            _ => {
                let got = site.acquire_for(&options, refusal.sent).await;
                let got = got.map_err(|error| self.not_signed_in(&error))?;
                self.held().use_now(Some(Arc::new(got)));
            }
        }
        let mut held = self.held();
        held.note_obtained(How::SignedIn);
        Ok(held.current.is_some())
    }

    /// The address as HTTP knows it: the handshake of a WebSocket is one of its requests.
    fn http_url<'a>(&'a self, url: &'a Url) -> &'a Url {
        if matches!(url.scheme(), "http" | "https") {
            url
        } else {
            &self.0.site.url
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Newer {
    Yes,
    No(Option<Arc<Current>>),
}

impl Credentials for OAuthCredentials {
    fn headers<'a>(&'a self, request: RequestLine<'a>) -> CredentialsWork<'a, HeaderMap> {
        Box::pin(self.headers_now(request))
    }

    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> CredentialsWork<'a, bool> {
        Box::pin(self.answer(refusal))
    }

    fn answered(&self, headers: &HeaderMap) {
        let current = {
            let mut held = self.held();
            held.accepted();
            held.current.clone()
        };
        if let Some(dpop) = current.and_then(|current| current.dpop.clone()) {
            dpop.heard(DpopPeer::Resource, &self.0.site.url, headers);
        }
    }
}

impl fmt::Debug for OAuthCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OAuthCredentials")
            .field("server", &self.0.site.sign_in.server)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "credentials/credentials_tests.rs"]
mod tests;
