//! When keys are fetched, and when not. Time stands still here; the network is a script.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;
use url::Url;

use super::IssuerKeys;
use crate::Work;
use crate::oauth::fetch::{Fetch, FetchProblem, Fetched};
use crate::oauth::key_set::KeySet;

/// Answers with keys that are told apart by the number of their modulus; none means that the issuer
/// cannot be reached. The last answer is repeated.
#[derive(Debug, Clone)]
struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    answers: Mutex<VecDeque<Option<u8>>>,
    n_fetches: AtomicU64,
    gate: Semaphore,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Option<u8>>) -> Self {
        Self(Arc::new(Inner {
            answers: Mutex::new(answers.into_iter().collect()),
            n_fetches: AtomicU64::new(0),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        }))
    }

    /// Answers nothing until permits are added.
    fn closed(answers: impl IntoIterator<Item = Option<u8>>) -> Self {
        let script = Self::new(answers);
        script.0.gate.forget_permits(Semaphore::MAX_PERMITS);
        script
    }

    fn n_fetches(&self) -> u64 {
        self.0.n_fetches.load(Ordering::Relaxed)
    }
}

impl Fetch for Script {
    fn keys<'a>(&'a self, _known: Option<&'a Url>) -> Work<'a, Fetched> {
        Box::pin(async move {
            self.0.n_fetches.fetch_add(1, Ordering::Relaxed);
            self.0.gate.acquire().await.unwrap().forget();
            let mut answers = self.0.answers.lock().unwrap();
            let answer = match answers.len() {
                1 => answers.front().copied(),
                _ => answers.pop_front(),
            };
            match answer.flatten() {
                Some(number) => Ok((keys(number), "https://issuer.example/keys".parse().unwrap())),
                None => Err(FetchProblem::TimedOut),
            }
        })
    }
}

fn keys(number: u8) -> KeySet {
    let modulus = ["AQ", "Ag", "Aw"][usize::from(number)];
    let text = format!(r#"{{"keys":[{{"kty":"RSA","kid":"a","n":"{modulus}","e":"AQAB"}}]}}"#);
    KeySet::parse(text.as_bytes()).unwrap()
}

fn issuer(script: &Script) -> IssuerKeys {
    IssuerKeys::new("https://issuer.example".to_owned(), script.clone())
}

async fn fetched(issuer: &IssuerKeys) -> bool {
    match issuer.want() {
        Some(waiting) => {
            waiting.over().await;
            true
        }
        None => false,
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_fetched_when_they_are_wanted_and_not_again_within_half_a_minute() {
    let script = Script::new([Some(0), Some(1)]);
    let issuer = issuer(&script);
    assert!(issuer.look().keys.is_none());
    assert_eq!(
        script.n_fetches(),
        0,
        "nobody is asked before there is a reason"
    );
    assert!(fetched(&issuer).await);
    let first = issuer.look();
    assert_eq!(first.keys.as_deref(), Some(&keys(0)));
    assert!(first.is_well && !first.is_old);
    for _ in 0..29 {
        sleep(Duration::from_secs(1)).await;
        assert!(
            !fetched(&issuer).await,
            "forged names of keys do not hammer"
        );
    }
    sleep(Duration::from_secs(1)).await;
    assert!(fetched(&issuer).await);
    let second = issuer.look();
    assert_eq!(second.keys.as_deref(), Some(&keys(1)));
    assert_eq!(second.n_changes, first.n_changes + 1);
    assert_eq!(script.n_fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_share_one_fetch_and_none_of_them_can_end_it() {
    let script = Script::closed([Some(0)]);
    let issuer = Arc::new(issuer(&script));
    drop(issuer.want().unwrap());
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let issuer = Arc::clone(&issuer);
        waiting.spawn(async move {
            assert!(fetched(&issuer).await);
            issuer.look().keys.is_some()
        });
    }
    tokio::task::yield_now().await;
    script.0.gate.add_permits(1);
    assert!(waiting.join_all().await.into_iter().all(|found| found));
    assert_eq!(script.n_fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn known_keys_are_used_while_the_issuer_cannot_be_reached_but_not_for_ever() {
    let script = Script::new([Some(0), None]);
    let issuer = issuer(&script);
    assert!(fetched(&issuer).await);
    sleep(Duration::from_mins(10)).await;
    assert!(issuer.look().is_old);
    assert!(fetched(&issuer).await);
    let look = issuer.look();
    assert_eq!(look.keys.as_deref(), Some(&keys(0)));
    assert!(!look.is_well);
    sleep(Duration::from_hours(23)).await;
    assert!(issuer.look().keys.is_some());
    sleep(Duration::from_hours(1)).await;
    assert!(issuer.look().keys.is_none());
}

#[tokio::test(start_paused = true)]
async fn without_any_keys_the_issuer_is_asked_again_soon() {
    let script = Script::new([None, Some(2)]);
    let issuer = issuer(&script);
    assert!(fetched(&issuer).await);
    assert!(issuer.look().keys.is_none());
    assert!(!fetched(&issuer).await);
    assert_eq!(issuer.pause(), Duration::from_secs(5));
    sleep(Duration::from_secs(5)).await;
    assert!(fetched(&issuer).await);
    assert!(issuer.look().keys.is_some());
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_the_same_are_no_change() {
    let script = Script::new([Some(0)]);
    let issuer = issuer(&script);
    assert!(fetched(&issuer).await);
    let before = issuer.look().n_changes;
    sleep(Duration::from_mins(1)).await;
    assert!(fetched(&issuer).await);
    assert_eq!(issuer.look().n_changes, before);
}
