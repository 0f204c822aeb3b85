//! Following a store: who may come, who may not any more, and when tokens were used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use super::{MAX_WAITING_REVOCATIONS, Revoked, TokenKeeper};
use crate::Work;
use crate::principal::PrincipalName;
use crate::token::Token;
use crate::token_store::{
    MemoryTokenStore, TokenHash, TokenRecord, TokenStamp, TokenStore, TokenStoreError,
};

/// A store in memory that counts what is asked of it, and fails if it is told to.
#[derive(Debug, Default)]
struct Watched {
    inner: MemoryTokenStore,
    is_broken: AtomicBool,
    n_stamps: AtomicU64,
    n_lists: AtomicU64,
    n_notes: AtomicU64,
}

impl Watched {
    fn answer<'a, T: Send + 'a>(
        &'a self,
        counter: &AtomicU64,
        work: Work<'a, Result<T, TokenStoreError>>,
    ) -> Work<'a, Result<T, TokenStoreError>> {
        counter.fetch_add(1, Ordering::Relaxed);
        if !self.is_broken.load(Ordering::Relaxed) {
            return work;
        }
        let broken = TokenStoreError::Unusable {
            place: "the test".to_owned(),
            action: "read",
            why: "it is told to".to_owned(),
        };
        Box::pin(std::future::ready(Err(broken)))
    }
}

impl TokenStore for Watched {
    fn add<'a>(&'a self, token: &'a TokenRecord) -> Work<'a, Result<(), TokenStoreError>> {
        self.inner.add(token)
    }

    fn list(&self) -> Work<'_, Result<Vec<TokenRecord>, TokenStoreError>> {
        self.answer(&self.n_lists, self.inner.list())
    }

    fn revoke<'a>(
        &'a self,
        name: &'a PrincipalName,
    ) -> Work<'a, Result<TokenRecord, TokenStoreError>> {
        self.inner.revoke(name)
    }

    fn note_use<'a>(
        &'a self,
        used: &'a [(TokenHash, SystemTime)],
    ) -> Work<'a, Result<(), TokenStoreError>> {
        self.answer(&self.n_notes, self.inner.note_use(used))
    }

    fn stamp(&self) -> Work<'_, Result<TokenStamp, TokenStoreError>> {
        self.answer(&self.n_stamps, self.inner.stamp())
    }
}

/// Whose token it was, if it was one.
fn revoked_name(revoked: Option<Revoked>) -> Option<PrincipalName> {
    match revoked? {
        Revoked::One(token) => Some(token.name),
        Revoked::Many => None,
    }
}

fn name(text: &str) -> PrincipalName {
    text.parse().unwrap()
}

async fn added(store: &Watched, text: &str) -> Token {
    let token = Token::generate().unwrap();
    let record = TokenRecord::new(name(text), token.hash());
    store.add(&record).await.unwrap();
    token
}

async fn keeper(store: &Arc<Watched>) -> TokenKeeper {
    let store = Arc::clone(store);
    TokenKeeper::open(store).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_added_and_revoked_elsewhere_count_within_a_second() {
    let store = Arc::new(Watched::default());
    let keeper = keeper(&store).await;
    assert!(!keeper.is_needed());
    let mut revocations = keeper.revocations();
    let token = added(&store, "alice").await;
    assert!(keeper.find(&token).is_none());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(keeper.find(&token).unwrap().name, name("alice"));
    assert!(keeper.is_needed());

    store.revoke(&name("alice")).await.unwrap();
    let before = Instant::now();
    let revoked = revocations.next().await;
    assert_eq!(revoked_name(revoked), Some(name("alice")));
    assert!(before.elapsed() <= Duration::from_secs(1));
    assert!(keeper.find(&token).is_none());
    assert!(keeper.is_needed(), "revoking the last token opens no door");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_known_is_looked_for_once_for_all_who_wait() {
    let store = Arc::new(Watched::default());
    let keeper = keeper(&store).await;
    sleep(Duration::from_secs(5)).await;
    let token = added(&store, "alice").await;
    let before = Instant::now();
    let n_lists = store.n_lists.load(Ordering::Relaxed);
    let n_stamps = store.n_stamps.load(Ordering::Relaxed);
    let mut waiting = tokio::task::JoinSet::new();
    let keeper = Arc::new(keeper);
    for _ in 0..100 {
        let (keeper, token) = (Arc::clone(&keeper), token.clone());
        waiting.spawn(async move { keeper.look_for(&token).await.is_some() });
    }
    assert!(waiting.join_all().await.into_iter().all(|found| found));
    assert!(before.elapsed() <= Duration::from_millis(200));
    assert_eq!(store.n_lists.load(Ordering::Relaxed) - n_lists, 1);
    assert!(store.n_stamps.load(Ordering::Relaxed) - n_stamps <= 2);
}

#[tokio::test(start_paused = true)]
async fn unknown_tokens_make_no_more_than_ten_looks_in_a_second() {
    let store = Arc::new(Watched::default());
    let keeper = keeper(&store).await;
    let n_stamps = store.n_stamps.load(Ordering::Relaxed);
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        let forged = Token::generate().unwrap();
        assert!(keeper.look_for(&forged).await.is_none());
    }
    assert!(store.n_stamps.load(Ordering::Relaxed) - n_stamps <= 32);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_changes_nothing_and_is_followed_again() {
    let store = Arc::new(Watched::default());
    let token = added(&store, "alice").await;
    let keeper = keeper(&store).await;
    store.is_broken.store(true, Ordering::Relaxed);
    let mut revocations = keeper.revocations();
    store.revoke(&name("alice")).await.unwrap();
    sleep(Duration::from_mins(1)).await;
    assert!(keeper.find(&token).is_some());
    store.is_broken.store(false, Ordering::Relaxed);
    assert_eq!(revoked_name(revocations.next().await), Some(name("alice")));
    assert!(keeper.find(&token).is_none());
}

#[tokio::test]
async fn without_a_first_reading_there_is_no_keeper() {
    let store = Arc::new(Watched::default());
    store.is_broken.store(true, Ordering::Relaxed);
    let opened = TokenKeeper::open(store).await;
    assert!(matches!(opened, Err(TokenStoreError::Unusable { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_replaced_or_may_do_less_counts_as_revoked() {
    let store = Arc::new(Watched::default());
    let token = added(&store, "alice").await;
    let other = added(&store, "bob").await;
    let keeper = keeper(&store).await;
    let mut revocations = keeper.revocations();
    store.revoke(&name("alice")).await.unwrap();
    let replaced = added(&store, "alice").await;
    assert_eq!(revoked_name(revocations.next().await), Some(name("alice")));
    assert!(keeper.find(&token).is_none());
    assert!(keeper.find(&replaced).is_some());

    let bob = store.revoke(&name("bob")).await.unwrap();
    store.add(&bob.clone().admin(true)).await.unwrap();
    assert_eq!(revoked_name(revocations.next().await), Some(name("bob")));
    assert!(keeper.find(&other).unwrap().is_admin);
}

#[tokio::test(start_paused = true)]
async fn more_revocations_than_can_wait_mean_everybody() {
    let store = Arc::new(Watched::default());
    for number in 0..=MAX_WAITING_REVOCATIONS {
        added(&store, &format!("user-{number}")).await;
    }
    let keeper = keeper(&store).await;
    let mut revocations = keeper.revocations();
    for number in 0..=MAX_WAITING_REVOCATIONS {
        let name = name(&format!("user-{number}"));
        store.revoke(&name).await.unwrap();
    }
    keeper.refresh().await;
    assert_eq!(revocations.next().await, Some(Revoked::Many));
    added(&store, "last").await;
    keeper.refresh().await;
    store.revoke(&name("last")).await.unwrap();
    assert_eq!(revoked_name(revocations.next().await), Some(name("last")));
    drop(keeper);
    assert_eq!(revocations.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn when_a_token_was_used_is_noted_once_and_not_for_every_request() {
    let store = Arc::new(Watched::default());
    let token = added(&store, "alice").await;
    let keeper = keeper(&store).await;
    for _ in 0..100 {
        assert!(keeper.find(&token).is_some());
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(store.n_notes.load(Ordering::Relaxed), 1);
    let noted = store.list().await.unwrap()[0].last_used.unwrap();
    assert!(noted <= SystemTime::now());
    keeper.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn uses_that_cannot_be_noted_are_tried_again_rarely() {
    let store = Arc::new(Watched::default());
    let token = added(&store, "alice").await;
    let keeper = keeper(&store).await;
    store.is_broken.store(true, Ordering::Relaxed);
    assert!(keeper.find(&token).is_some());
    sleep(Duration::from_secs(30)).await;
    assert_eq!(
        store.n_notes.load(Ordering::Relaxed),
        0,
        "a store that cannot be read is not written"
    );
    assert!(keeper.close().await.is_err());
    store.is_broken.store(false, Ordering::Relaxed);
    keeper.close().await.unwrap();
    assert!(store.list().await.unwrap()[0].last_used.is_some());
}
