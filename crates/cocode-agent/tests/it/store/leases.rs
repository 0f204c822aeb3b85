//! A conversation has one holder at a time.

use std::fs;
use std::sync::Arc;

use cocode_agent::{Block, SqliteStore, Store as _, StoreError};

use super::{all, asked, begun, file_in, store_in};

/// How many files stand for locks.
fn lock_files(directory: &std::path::Path) -> usize {
    let locks = file_in(directory).with_file_name("locks");
    fs::read_dir(locks).unwrap().count()
}

#[tokio::test]
async fn a_held_conversation_is_nobody_elses_until_it_is_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    let other = store_in(directory.path());
    let id = begun(&store).await;
    let lease = store.lease(&id).await.unwrap();
    for store in [&store, &other] {
        let error = store.lease(&id).await.unwrap_err();
        assert!(matches!(&error, StoreError::Held(which) if *which == id));
        let error = store.remove(&id).await.unwrap_err();
        assert!(matches!(&error, StoreError::Held(_)), "{error:?}");
        assert_eq!(store.purge(0).await.unwrap(), 0);
        assert!(store.list(&all()).await.unwrap()[0].is_held);
        assert!(store.load(&id).await.unwrap().summary.is_held);
    }
    assert_eq!(lock_files(directory.path()), 1);
    drop(lease);
    assert_eq!(lock_files(directory.path()), 0);
    assert!(!other.list(&all()).await.unwrap()[0].is_held);
    let lease = other.lease(&id).await.unwrap();
    assert_eq!(other.append(&lease, &asked("mine")).await.unwrap(), 1);
}

#[tokio::test]
async fn leases_exclude_each_other_in_memory_too() {
    let store = SqliteStore::in_memory();
    let id = begun(&store).await;
    let other = begun(&store).await;
    let lease = store.lease(&id).await.unwrap();
    let _elsewhere = store.lease(&other).await.unwrap();
    assert!(matches!(store.lease(&id).await, Err(StoreError::Held(_))));
    assert!(store.load(&id).await.unwrap().summary.is_held);
    drop(lease);
    assert!(!store.load(&id).await.unwrap().summary.is_held);
    drop(store.lease(&id).await.unwrap());
}

#[tokio::test]
async fn many_tasks_that_want_one_conversation_have_it_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let id = begun(&store_in(directory.path())).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = Arc::new(store_in(directory.path()));
        let id = id.clone();
        tasks.spawn(async move {
            let mut appended = 0;
            while appended < 5 {
                let lease = match store.lease(&id).await {
                    Ok(lease) => lease,
                    Err(StoreError::Held(_)) => {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                let known = store.load(&id).await.unwrap().records.len();
                let number = store.append(&lease, &asked("x")).await.unwrap();
                assert_eq!(number, u64::try_from(known).unwrap() + 1);
                appended += 1;
            }
        });
    }
    tasks.join_all().await;
    let stored = store_in(directory.path()).load(&id).await.unwrap();
    assert_eq!(stored.records.len(), 40);
}

#[tokio::test]
async fn who_lost_a_lease_cannot_write_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    let id = begun(&store).await;
    let lost = store.lease(&id).await.unwrap();
    // Somebody tidies up where they should not.
    fs::remove_dir_all(file_in(directory.path()).with_file_name("locks")).unwrap();
    let other = store_in(directory.path());
    let lease = other.lease(&id).await.unwrap();
    let appended = store.append(&lost, &asked("late")).await;
    assert!(matches!(appended, Err(StoreError::Lost(which)) if which == id));
    let drafted = store.draft(&lost, &[Block::text("late")]).await;
    assert!(matches!(drafted, Err(StoreError::Lost(_))));
    drop(lost);
    assert!(other.load(&id).await.unwrap().summary.is_held);
    assert_eq!(other.append(&lease, &asked("ours")).await.unwrap(), 1);
}

#[tokio::test]
async fn a_lease_of_another_store_is_none() {
    let (here, there) = (SqliteStore::in_memory(), SqliteStore::in_memory());
    let id = begun(&here).await;
    let lease = here.lease(&id).await.unwrap();
    let appended = there.append(&lease, &asked("x")).await;
    assert!(matches!(appended, Err(StoreError::Unknown(_))));

    let directory = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let here = store_in(directory.path());
    let id = begun(&here).await;
    drop(here);
    fs::create_dir(copy.path().join("state")).unwrap();
    fs::copy(file_in(directory.path()), file_in(copy.path())).unwrap();
    let here = store_in(directory.path());
    let lease = here.lease(&id).await.unwrap();
    let appended = store_in(copy.path()).append(&lease, &asked("x")).await;
    assert!(matches!(appended, Err(StoreError::Lost(_))), "{appended:?}");
}

#[tokio::test]
async fn nothing_is_done_for_a_lease_once_somebody_else_has_it() {
    let store = Arc::new(SqliteStore::in_memory());
    let id = begun(&store).await;
    for _ in 0..20 {
        let lease = store.lease(&id).await.unwrap();
        let record = asked("x");
        // Polled once, so that it is under way or done, and then dropped.
        let mut append = store.append(&lease, &record);
        if let std::task::Poll::Ready(done) = futures_util::poll!(&mut append) {
            done.unwrap();
        }
        drop(append);
        drop(lease);
        let lease = store.lease(&id).await.unwrap();
        let known = store.load(&id).await.unwrap().records.len();
        let number = store.append(&lease, &asked("y")).await.unwrap();
        assert_eq!(number, u64::try_from(known).unwrap() + 1);
    }
}
