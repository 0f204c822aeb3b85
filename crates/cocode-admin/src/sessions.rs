//! Who has signed in by a browser: cookies that are known only by their prints.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, header};
use tokio::time::Instant;

use crate::random::{Print, print_of, random, same, text_of};
use crate::refusal::Refusal;
use crate::secret::Secret;

/// Sessions at a time; one more ends the one that was not used for longest.
pub const MAX_SESSIONS: usize = 64;
/// How long a session lives without being used. An open stream of events uses it.
pub const SESSION_IDLE: Duration = Duration::from_hours(1);
/// How long a session lives at most.
pub const SESSION_LIFETIME: Duration = Duration::from_hours(12);

/// Cookies of one request that are looked at: other programs of this machine can set some, too.
const MAX_COOKIES: usize = 8;
const COOKIE_PURPOSE: &str = "session cookie";
const CSRF_PURPOSE: &str = "csrf value";

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<Print, Times>>);

#[derive(Debug)]
struct Times {
    begun: Instant,
    used: Instant,
}

/// A session that was found by its cookie.
#[derive(Clone)]
pub(crate) struct Session {
    key: Print,
    csrf: String,
}

impl Session {
    /// What changing requests have to bring besides the cookie. It follows from the cookie, and the
    /// cookie does not follow from it.
    pub(crate) fn csrf(&self) -> Secret {
        Secret::new(self.csrf.clone())
    }

    /// Whether a request has brought it.
    pub(crate) fn is_csrf(&self, value: &[u8]) -> bool {
        same(self.csrf.as_bytes(), value)
    }

    fn of(cookie: &str) -> Self {
        Self {
            key: print_of(COOKIE_PURPOSE, cookie),
            csrf: text_of(&print_of(CSRF_PURPOSE, cookie)),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Session")
    }
}

impl Sessions {
    /// Begins a session: its cookie, and what is known of it.
    pub(crate) fn open(&self) -> Result<(Secret, Session), Refusal> {
        let cookie = text_of(&random::<32>()?);
        let session = Session::of(&cookie);
        let now = Instant::now();
        let mut all = self.lock();
        all.retain(|_, times| times.are_fine(now));
        if all.len() >= MAX_SESSIONS {
            let longest = all.iter().min_by_key(|(_, times)| times.used);
            if let Some(key) = longest.map(|(key, _)| *key) {
                all.remove(&key);
            }
        }
        let times = Times {
            begun: now,
            used: now,
        };
        all.insert(session.key, times);
        Ok((Secret::new(cookie), session))
    }

    /// The session that a request belongs to, by the cookie of that name. It counts as used.
    pub(crate) fn find(&self, name: &str, headers: &HeaderMap) -> Option<Session> {
        let cookies = headers.get_all(header::COOKIE).iter();
        cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(found, _)| *found == name)
            .take(MAX_COOKIES)
            .map(|(_, cookie)| Session::of(cookie))
            .find(|session| self.is_live(session))
    }

    /// Whether a session has not ended. If so, it counts as used.
    pub(crate) fn is_live(&self, session: &Session) -> bool {
        let now = Instant::now();
        let mut all = self.lock();
        match all.get_mut(&session.key) {
            Some(times) if times.are_fine(now) => {
                times.used = now;
                true
            }
            Some(_) => {
                all.remove(&session.key);
                false
            }
            None => false,
        }
    }

    /// Ends a session.
    pub(crate) fn close(&self, session: &Session) {
        self.lock().remove(&session.key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Print, Times>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Times {
    fn are_fine(&self, now: Instant) -> bool {
        now.duration_since(self.begun) < SESSION_LIFETIME
            && now.duration_since(self.used) < SESSION_IDLE
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, header};

    use super::{MAX_SESSIONS, SESSION_IDLE, SESSION_LIFETIME, Sessions};

    const NAME: &str = "cocode_session_1";

    fn bringing(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let value = format!("a=b; {NAME}=forged; cocode_session_2=x; {NAME}={cookie}; c");
        headers.insert(header::COOKIE, value.parse().unwrap());
        headers
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = Sessions::default();
        let (cookie, session) = sessions.open().unwrap();
        let found = sessions.find(NAME, &bringing(cookie.expose())).unwrap();
        assert_eq!(found.csrf(), session.csrf());
        assert!(found.is_csrf(session.csrf().expose().as_bytes()));
        assert!(!found.is_csrf(b""));
        assert!(!found.is_csrf(cookie.expose().as_bytes()));
        assert!(sessions.find(NAME, &bringing("other")).is_none());
        let of_another = "cocode_session_2";
        assert!(
            sessions
                .find(of_another, &bringing(cookie.expose()))
                .is_none()
        );
        assert!(sessions.find(NAME, &HeaderMap::new()).is_none());
        sessions.close(&session);
        assert!(sessions.find(NAME, &bringing(cookie.expose())).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end_when_they_are_not_used_and_when_they_are_old() {
        let sessions = Sessions::default();
        let (idle, _) = sessions.open().unwrap();
        let (used, _) = sessions.open().unwrap();
        let (idle, used) = (bringing(idle.expose()), bringing(used.expose()));
        let step = SESSION_IDLE.saturating_sub(Duration::from_secs(1));
        tokio::time::advance(step).await;
        assert!(sessions.find(NAME, &used).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(sessions.find(NAME, &idle).is_none());
        let mut age = SESSION_IDLE;
        while age + step < SESSION_LIFETIME {
            assert!(sessions.find(NAME, &used).is_some(), "after {age:?}");
            tokio::time::advance(step).await;
            age += step;
        }
        assert!(sessions.find(NAME, &used).is_some());
        tokio::time::advance(SESSION_LIFETIME.saturating_sub(age)).await;
        assert!(sessions.find(NAME, &used).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_session_too_many_ends_the_one_that_was_idle_longest() {
        let sessions = Sessions::default();
        let mut all = Vec::new();
        for _ in 0..MAX_SESSIONS {
            all.push(sessions.open().unwrap().1);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(sessions.is_live(&all[0]));
        let (_, newest) = sessions.open().unwrap();
        let live: Vec<_> = all
            .iter()
            .map(|session| sessions.is_live(session))
            .collect();
        assert_eq!(live.iter().filter(|live| !**live).count(), 1);
        assert!(!live[1]);
        assert!(sessions.is_live(&newest));
    }
}
