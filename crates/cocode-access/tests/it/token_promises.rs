//! What every store of tokens promises: the same tests for all of them, in whatever crate they are.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cocode_access::{PrincipalName, Token, TokenRecord, TokenStore, TokenStoreError};

pub(crate) fn name(text: &str) -> PrincipalName {
    text.parse().unwrap()
}

pub(crate) fn record(text: &str) -> (Token, TokenRecord) {
    let token = Token::generate().unwrap();
    let record = TokenRecord::new(name(text), token.hash());
    (token, record)
}

pub(crate) fn seconds(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// What every store promises.
pub(crate) async fn keeps_its_promises(store: &dyn TokenStore) {
    let nothing = store.stamp().await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
    let (_, bob) = record("bob");
    let bob = bob.admin(true).expiring(Some(seconds(4_000_000_000)));
    let (_, alice) = record("alice");
    store.add(&bob).await.unwrap();
    let one = store.stamp().await.unwrap();
    store.add(&alice).await.unwrap();
    let two = store.stamp().await.unwrap();
    assert!(nothing != one && one != two && nothing != two);
    assert_eq!(store.list().await.unwrap(), [alice.clone(), bob.clone()]);

    let (_, again) = record("bob");
    let taken = store.add(&again).await;
    assert!(matches!(taken, Err(TokenStoreError::Taken(name)) if name.as_str() == "bob"));
    let same_hash = TokenRecord::new(name("carol"), alice.hash);
    assert!(store.add(&same_hash).await.is_err());

    let unknown = record("nobody").1.hash;
    let used = [(alice.hash, seconds(2_000)), (unknown, seconds(3_000))];
    store.note_use(&used).await.unwrap();
    store
        .note_use(&[(alice.hash, seconds(1_000))])
        .await
        .unwrap();
    let noted = &store.list().await.unwrap()[0];
    assert_eq!(noted.last_used, Some(seconds(2_000)));

    let before = store.stamp().await.unwrap();
    assert_eq!(store.revoke(&name("bob")).await.unwrap(), bob);
    assert_ne!(store.stamp().await.unwrap(), before);
    let gone = store.revoke(&name("bob")).await;
    assert!(matches!(gone, Err(TokenStoreError::Unknown(_))));
    assert_eq!(store.list().await.unwrap().len(), 1);
}
