//! Leases of a file and of memory: what stands for them, and what they are worth elsewhere.

use std::fs;

use cocode_agent::{SqliteStore, Store as _, StoreError};

use super::contract::{all, asked, begun};
use super::{file_in, store_in};

/// How many files stand for locks.
fn lock_files(directory: &std::path::Path) -> usize {
    let locks = file_in(directory).with_file_name("locks");
    fs::read_dir(locks).unwrap().count()
}

#[tokio::test]
async fn a_lock_is_a_file_which_is_gone_as_soon_as_it_is_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    let id = begun(&store).await;
    let lease = store.lease(&id).await.unwrap();
    assert_eq!(lock_files(directory.path()), 1);
    drop(lease);
    assert_eq!(lock_files(directory.path()), 0);
    let other = store_in(directory.path());
    assert!(!other.list(&all()).await.unwrap()[0].is_held);
    drop(other.lease(&id).await.unwrap());
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
