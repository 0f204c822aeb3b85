//! What is in use now, and what has been tried about it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cocode_wire::CredentialsError;
use http::{HeaderMap, HeaderValue, header};
use tokio::time::Instant;

use super::super::current::Current;
use super::super::lock::Stamp;
use super::super::renew::RenewError;

/// How often the store is looked at, at most.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a new token that nobody has accepted yet counts as new.
const NEW_FOR: Duration = Duration::from_secs(30);

/// How long a renewal that failed for the moment is not tried again, unless the server names a time.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// How long it is remembered that nobody could sign in.
const VERDICT_FOR: Duration = Duration::from_mins(1);

/// Of how many wishes for scopes it is remembered how often they were tried.
const MAX_WISHES: usize = 64;

#[derive(Default)]
pub(super) struct Held {
    pub(super) current: Option<Arc<Current>>,
    /// The store when it was read last, or when we wrote it last; nothing, if neither happened.
    pub(super) read: Option<Stamp>,
    /// When the store was looked at last.
    pub(super) looked_at: Option<Instant>,
    /// A renewal ahead of the end is under way.
    pub(super) renewing: bool,
    failed: Option<(Instant, Arc<RenewError>)>,
    obtained: Option<Obtained>,
    wishes: BTreeMap<String, usize>,
    verdict: Option<(Instant, CredentialsError)>,
}

/// A token that a refusal made us get, and that was not accepted yet.
struct Obtained {
    authorization: HeaderValue,
    at: Instant,
    how: How,
}

/// How a token was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Renewed,
    SignedIn,
}

impl Held {
    /// Uses these tokens, because they were read or got. What failed with others says nothing about
    /// them.
    pub(super) fn use_now(&mut self, current: Option<Arc<Current>>) {
        let authorization =
            |current: Option<&Arc<Current>>| current.map(|current| current.authorization.clone());
        if authorization(self.current.as_ref()) != authorization(current.as_ref()) {
            self.failed = None;
            self.verdict = None;
        }
        self.current = current;
    }

    /// Notes that the tokens in use were got after a refusal.
    pub(super) fn note_obtained(&mut self, how: How) {
        self.obtained = self.current.as_ref().map(|current| Obtained {
            authorization: current.authorization.clone(),
            at: Instant::now(),
            how,
        });
    }

    /// How the token that was sent was got, if that was just now: getting another in the same way
    /// makes nothing better.
    pub(super) fn obtained(&self, sent: &HeaderMap) -> Option<How> {
        let sent = sent.get(header::AUTHORIZATION)?;
        let obtained = self.obtained.as_ref()?;
        let is_it = obtained.authorization == *sent && obtained.at.elapsed() < NEW_FOR;
        is_it.then_some(obtained.how)
    }

    /// A server has accepted what it was sent.
    pub(super) fn accepted(&mut self) {
        self.obtained = None;
    }

    /// Notes that a renewal failed for the moment.
    pub(super) fn note_failed(&mut self, error: &Arc<RenewError>) {
        if let Some(pause) = error.pause() {
            let pause = pause.clamp(PAUSE, LONGEST_PAUSE);
            self.failed = Some((Instant::now() + pause, Arc::clone(error)));
        }
    }

    /// Why a renewal would fail now as well.
    pub(super) fn failed_lately(&self) -> Option<Arc<RenewError>> {
        let (until, error) = self.failed.as_ref()?;
        (Instant::now() < *until).then(|| Arc::clone(error))
    }

    /// Counts how often these scopes were wished for.
    pub(super) fn count_wish(&mut self, scopes: &[String]) -> usize {
        if self.wishes.len() >= MAX_WISHES {
            self.wishes.clear();
        }
        let tries = self.wishes.entry(scopes.join(" ")).or_default();
        *tries += 1;
        *tries
    }

    /// Remembers what to tell those who would have to sign in.
    pub(super) fn note_verdict(&mut self, error: &CredentialsError) {
        self.verdict = Some((Instant::now() + VERDICT_FOR, error.clone()));
    }

    pub(super) fn verdict(&self) -> Option<CredentialsError> {
        let (until, error) = self.verdict.as_ref()?;
        (Instant::now() < *until).then(|| error.clone())
    }

    /// Whether it is time to look at the store again. Counts as looking.
    pub(super) fn is_time_to_look(&mut self) -> bool {
        let is_time = self
            .looked_at
            .is_none_or(|looked_at| looked_at.elapsed() >= LOOK_AGAIN);
        if is_time {
            self.looked_at = Some(Instant::now());
        }
        is_time
    }
}
