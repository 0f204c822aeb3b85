//! What is removed is gone, and its room with it.

use std::fs;

use cocode_agent::{Store as _, StoreError};

use super::{all, asked, begun, by_hand, file_in, new, store_in, titles};

#[tokio::test]
async fn a_removed_conversation_is_gone_with_all_that_was_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    let id = begun(&store).await;
    let lease = store.lease(&id).await.unwrap();
    store.append(&lease, &asked("one")).await.unwrap();
    store.draft(&lease, &[]).await.unwrap();
    drop(lease);
    store.remove(&id).await.unwrap();
    let loaded = store.load(&id).await;
    assert!(matches!(loaded, Err(StoreError::Unknown(_))));
    drop(store);
    let connection = rusqlite::Connection::open(file_in(directory.path())).unwrap();
    for table in ["conversations", "records", "drafts"] {
        let count = format!("SELECT count(*) FROM {table}");
        let left: i64 = connection.query_row(&count, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[tokio::test]
async fn purging_removes_what_is_old_and_not_held() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    for title in ["old", "recent", "held", "new"] {
        store.begin(new(title)).await.unwrap();
    }
    let day = 86_400_000_000_i64;
    by_hand(
        directory.path(),
        &format!(
            "UPDATE conversations SET used = used - 30 * {day} WHERE title IN ('old', 'held');
             UPDATE conversations SET used = used - 29 * {day} WHERE title = 'recent';"
        ),
    );
    let listed = store.list(&all()).await.unwrap();
    let held = listed.iter().find(|summary| summary.title == "held");
    let lease = store.lease(&held.unwrap().id).await.unwrap();
    assert_eq!(store.purge(u64::MAX).await.unwrap(), 0);
    assert_eq!(store.purge(31).await.unwrap(), 0);
    assert_eq!(store.purge(30).await.unwrap(), 1);
    assert_eq!(titles(&store, &all()).await, ["new", "recent", "held"]);
    drop(lease);
    assert_eq!(store.purge(30).await.unwrap(), 1);
    assert_eq!(store.purge(0).await.unwrap(), 2);
    assert!(titles(&store, &all()).await.is_empty());
}

#[tokio::test]
async fn purging_many_gives_the_room_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    begun(&store).await;
    by_hand(
        directory.path(),
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
         INSERT INTO conversations (id, owner, title, cwd, settings, began, used)
         SELECT printf('%08x-0000-4000-8000-000000000000', i), 'ann', 't', x'2F', '{}', 0, 0 FROM n;
         INSERT INTO records SELECT key, 1, 'asked', 0, hex(randomblob(20000)) FROM conversations;",
    );
    let size = || fs::metadata(file_in(directory.path())).unwrap().len();
    let before = size();
    assert!(before > 5_000_000, "{before}");
    assert_eq!(store.purge(10).await.unwrap(), 250);
    let after = size();
    assert!(after < before / 10, "{before} to {after}");
    assert_eq!(store.list(&all()).await.unwrap().len(), 1);
}
