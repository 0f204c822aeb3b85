//! What is removed is gone.

use cocode_agent::StoreError;

use super::{Place, all, asked, begun, new, titles};

pub(crate) async fn a_removed_conversation_is_gone_with_all_that_was_in_it(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    store.append(&lease, &asked("one")).await.unwrap();
    store.draft(&lease, &[]).await.unwrap();
    drop(lease);
    store.remove(&id).await.unwrap();
    let loaded = store.load(&id).await;
    assert!(matches!(loaded, Err(StoreError::Unknown(_))));
    for table in ["conversations", "records", "drafts"] {
        assert_eq!(place.count(table).await, 0, "{table}");
    }
}

pub(crate) async fn purging_removes_what_is_old_and_not_held(place: &impl Place) {
    let store = place.store().await;
    for title in ["old", "recent", "held", "new"] {
        store.begin(new(title)).await.unwrap();
    }
    let day = 86_400_000_000_i64;
    place
        .by_hand(&format!(
            "UPDATE conversations SET used = used - 30 * {day} WHERE title IN ('old', 'held');
             UPDATE conversations SET used = used - 29 * {day} WHERE title = 'recent';"
        ))
        .await;
    let listed = store.list(&all()).await.unwrap();
    let held = listed.iter().find(|summary| summary.title == "held");
    let lease = store.lease(&held.unwrap().id).await.unwrap();
    assert_eq!(store.purge(u64::MAX).await.unwrap(), 0);
    assert_eq!(store.purge(31).await.unwrap(), 0);
    assert_eq!(store.purge(30).await.unwrap(), 1);
    assert_eq!(titles(&*store, &all()).await, ["new", "recent", "held"]);
    drop(lease);
    assert_eq!(store.purge(30).await.unwrap(), 1);
    assert_eq!(store.purge(0).await.unwrap(), 2);
    assert!(titles(&*store, &all()).await.is_empty());
}

pub(crate) async fn purging_goes_through_all_that_is_old(place: &impl Place) {
    let store = place.store().await;
    let mut held = Vec::new();
    for number in 0..120 {
        let id = begun(&*store).await;
        if number % 40 == 0 {
            held.push(store.lease(&id).await.unwrap());
        }
    }
    assert_eq!(store.purge(0).await.unwrap(), 117);
    assert_eq!(place.count("conversations").await, 3);
    drop(held);
    assert_eq!(store.purge(0).await.unwrap(), 3);
}
