//! Lets a link in by OAuth: puts tokens on requests, renews them ahead of their end and after a
//! refusal, and signs in where that needs nobody, or somebody is there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_core::Grant;
use cocode_wire::{
    Credentials, CredentialsError, CredentialsErrorKind, CredentialsWork, Refusal, RequestLine,
};
use http::HeaderMap;
use tokio_util::task::TaskTracker;

use super::challenge::{self, AuthChallenge};
use super::current::Current;
use super::lock::Stamp;
use super::login::LoginOptions;
use super::login_error::LoginError;
use super::renew::{self, RenewError};
use super::site::{Site, now};
use super::user_agent::UserAgent;
use crate::turn::Turn;

/// How often the store is looked at while somebody is expected to sign in elsewhere.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often a sign-in is widened for the same scopes before a server that is never content is given
/// up, and of how many such wishes that is remembered.
const MAX_STEP_UPS: usize = 2;
const MAX_REMEMBERED: usize = 64;

/// How often one request may be refused before nothing else is tried.
const MAX_TRIES: u32 = 2;

/// What lets us in at one server. Clones share it.
#[derive(Clone)]
pub struct OAuthCredentials(Arc<Inner>);

struct Inner {
    site: Site,
    user_agent: Option<Arc<dyn UserAgent>>,
    held: Mutex<Held>,
    /// One sign-in or renewal at a time.
    turn: Turn,
    /// A renewal that was begun is finished, even if nobody waits for it any more: its result must
    /// be stored, since the old tokens are worth nothing then.
    renewals: TaskTracker,
}

#[derive(Default)]
struct Held {
    current: Option<Arc<Current>>,
    /// The store when it was read last; nothing, if it never was.
    read: Option<Stamp>,
    /// How often the sign-in was widened for these scopes.
    step_ups: BTreeMap<String, usize>,
    /// The tokens come of a sign-in of ours, and were not accepted yet.
    untried: bool,
}

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
        loop {
            let read = self.held().read.clone().unwrap_or_default();
            match self.0.site.vault.stamp(&self.0.site.url).await {
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
        let lasts = current.tokens.refresh.is_none() && !current.has_ended(now());
        if current.is_due(now()) && !lasts {
            let _turn = self.0.turn.wait().await;
            let newest = self.held().current.clone();
            current = match newest {
                Some(newest) if newest.authorization != current.authorization => newest,
                _ => match self.renewed(Arc::clone(&current)).await {
                    Ok(renewed) => renewed,
                    // It is still good for a while, and so it is without the authorization server.
                    Err(error) if !current.has_ended(now()) && !error.needs_sign_in() => {
                        tracing::debug!(error = %cocode_wire::chain(&error), "not renewed ahead of its end");
                        current
                    }
                    // The server has the last word; without a token it will ask for a sign-in.
                    Err(error) if error.needs_sign_in() => {
                        tracing::debug!(error = %cocode_wire::chain(&error), "signed out");
                        self.held().current = None;
                        return Ok(HeaderMap::new());
                    }
                    Err(error) => return Err(self.not_renewed(&error)),
                },
            };
        }
        // The handshake of a WebSocket is a request of HTTP.
        let is_http = matches!(request.url.scheme(), "http" | "https");
        let url = if is_http {
            request.url
        } else {
            &self.0.site.url
        };
        let headers = current.headers(RequestLine { url, ..request }, now());
        headers.map_err(|error| {
            self.error(CredentialsErrorKind::Unusable, "cannot prove its key")
                .because(&error)
        })
    }

    /// The tokens in use. At first, what is stored, if anything ever was: a server that wants
    /// nothing costs no look into a keyring.
    async fn loaded(&self) -> Option<Arc<Current>> {
        {
            let held = self.held();
            if held.read.is_some() {
                return held.current.clone();
            }
        }
        let _turn = self.0.turn.wait().await;
        if self.held().read.is_some() {
            return self.held().current.clone();
        }
        let site = &self.0.site;
        match site.vault.stamp(&site.url).await {
            Ok(stamp) if stamp == Stamp::default() => {
                self.held().read = Some(stamp);
                return None;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the store of credentials cannot be looked at"),
        }
        match self.read().await {
            Ok(current) => current,
            Err(error) => {
                // If it matters, the server refuses the request, and the error comes up there.
                tracing::debug!(%error, "stored credentials cannot be read");
                None
            }
        }
    }

    /// Reads the store, and holds what is there.
    async fn read(&self) -> Result<Option<Arc<Current>>, CredentialsError> {
        let site = &self.0.site;
        let failed = |error: &dyn std::error::Error| {
            let told = "its stored credentials cannot be read";
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
        let mut held = self.held();
        held.read = Some(stamp);
        let account = |current: &Arc<Current>| current.account.clone();
        if held.current.as_ref().map(account) != current.as_ref().map(account) {
            held.untried = false;
        }
        held.current.clone_from(&current);
        Ok(current)
    }

    /// New tokens in place of these. Finished even if this future is dropped.
    async fn renewed(&self, old: Arc<Current>) -> Result<Arc<Current>, RenewError> {
        let shared = self.clone();
        let renewing = self.0.renewals.spawn(async move {
            let renewed = shared.0.site.renew(&old).await.map(Arc::new)?;
            shared.held().current = Some(Arc::clone(&renewed));
            Ok(renewed)
        });
        renewing
            .await
            .unwrap_or(Err(RenewError::SignedOut("the program is ending")))
    }

    async fn answer(&self, refusal: Refusal<'_>) -> Result<bool, CredentialsError> {
        let challenge = challenge::best(refusal.challenge);
        let in_use = self.held().current.clone();
        if let Some(current) = in_use
            && current.is_sent_in(refusal.sent)
            && renew::heard(&current, refusal.request.url, refusal.headers)
            && challenge
                .as_ref()
                .is_some_and(AuthChallenge::is_use_dpop_nonce)
        {
            return Ok(refusal.before < MAX_TRIES);
        }
        match (refusal.challenge.status, &challenge) {
            (403, Some(challenge)) if challenge.is_insufficient_scope() => {
                self.widened(refusal, challenge).await
            }
            (403, _) => Ok(false),
            _ => self.admitted_anew(refusal, challenge.as_ref()).await,
        }
    }

    /// The server wants a token, or another one.
    async fn admitted_anew(
        &self,
        refusal: Refusal<'_>,
        challenge: Option<&AuthChallenge>,
    ) -> Result<bool, CredentialsError> {
        let _turn = self.0.turn.wait().await;
        let stored = match self.newer(refusal.sent).await? {
            Newer::Yes => return Ok(true),
            Newer::No(stored) => stored,
        };
        if refusal.before > MAX_TRIES {
            return Ok(false);
        }
        let mut why = None;
        if let Some(stored) = stored.filter(|stored| stored.tokens.refresh.is_some())
            && refusal.before == 0
        {
            match self.renewed(stored).await {
                Ok(_renewed) => return Ok(true),
                Err(error) if error.needs_sign_in() => why = Some(error),
                Err(error) => return Err(self.not_renewed(&error)),
            }
        }
        let options = LoginOptions {
            challenge: challenge.cloned(),
            ..LoginOptions::default()
        };
        self.signed_in(refusal, options, why).await
    }

    /// The server wants a token that allows more.
    async fn widened(
        &self,
        refusal: Refusal<'_>,
        challenge: &AuthChallenge,
    ) -> Result<bool, CredentialsError> {
        let wanted = challenge.scope.clone().unwrap_or_default();
        let _turn = self.0.turn.wait().await;
        if let Newer::Yes = self.newer(refusal.sent).await? {
            return Ok(true);
        }
        let tries = {
            let mut held = self.held();
            if held.step_ups.len() >= MAX_REMEMBERED {
                held.step_ups.clear();
            }
            let tries = held.step_ups.entry(wanted.join(" ")).or_default();
            *tries += 1;
            *tries
        };
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
        why: Option<RenewError>,
    ) -> Result<bool, CredentialsError> {
        let site = &self.0.site;
        // A new token that is refused at once is not made better by another sign-in.
        if self.held().untried && !refusal.sent.is_empty() {
            return Ok(false);
        }
        let outcome = match (&self.0.user_agent, site.sign_in.oauth.grant) {
            (Some(agent), Grant::AuthorizationCode) => {
                site.log_in(&**agent, &options).await.map(drop)
            }
            (None, Grant::AuthorizationCode) => {
                self.held().current = None;
                return Err(self.nobody_there(&options, why.as_ref()).await);
            }
            _ => site.acquire_unless_stored(&options, refusal.sent).await,
        };
        outcome.map_err(|error| self.not_signed_in(&error))?;
        self.read().await?;
        let mut held = self.held();
        held.untried = true;
        Ok(held.current.is_some())
    }

    /// What to tell when somebody would have to sign in, and nobody is there.
    async fn nobody_there(
        &self,
        options: &LoginOptions,
        why: Option<&RenewError>,
    ) -> CredentialsError {
        if let Some(error) = self.0.site.cannot_register(options).await {
            return self.not_signed_in(&error);
        }
        let name = &self.0.site.sign_in.server;
        let mut error = self.needs_auth("wants you to sign in");
        if options.challenge.is_none() {
            // It did not say how, so that it may mean a fixed token.
            error = error.hint(format!(
                "if it takes a fixed token, name the variable that holds it: \
                 `bearer_token_env_var` of `{name}`"
            ));
        }
        match why {
            Some(why) => error.because(why),
            None => error,
        }
    }

    fn needs_auth(&self, what: &str) -> CredentialsError {
        let name = &self.0.site.sign_in.server;
        self.error(CredentialsErrorKind::NeedsAuth, what)
            .hint(format!("sign in with `cocode mcp login {name}`"))
    }

    fn not_renewed(&self, error: &RenewError) -> CredentialsError {
        let kind = match error {
            error if error.needs_sign_in() => return self.needs_auth("wants you to sign in"),
            RenewError::Token(error) if error.is_final() => CredentialsErrorKind::Unusable,
            RenewError::Endpoint | RenewError::Source(_) => CredentialsErrorKind::Unusable,
            _ => CredentialsErrorKind::Temporary,
        };
        self.error(kind, "has a token that could not be renewed")
            .because(error)
    }

    fn not_signed_in(&self, error: &LoginError) -> CredentialsError {
        let told = self.error(error.kind(), "does not let us in");
        let mut told = told.because(error);
        told.hints.extend(error.hints(&self.0.site.sign_in.server));
        told
    }

    fn error(&self, kind: CredentialsErrorKind, what: &str) -> CredentialsError {
        let name = &self.0.site.sign_in.server;
        CredentialsError::new(kind, format!("server `{name}` {what}"))
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
            held.untried = false;
            held.current.clone()
        };
        if let Some(current) = current {
            renew::heard(&current, &self.0.site.url, headers);
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
