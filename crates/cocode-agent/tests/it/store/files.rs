//! The file itself: when it is made, who may read it, and what is wrong with it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cocode_agent::{Block, SqliteStore, Store as _, StoreError};

use super::contract::{all, asked, begun};
use super::{by_hand, file_in, store_in};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn nothing_is_made_before_it_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    assert!(!directory.path().join("state").exists());
    store.list(&all()).await.unwrap();
    assert!(file_in(directory.path()).exists());
}

#[tokio::test]
async fn only_the_owner_can_read_what_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    let id = begun(&store).await;
    let lease = store.lease(&id).await.unwrap();
    store.draft(&lease, &[Block::text("x")]).await.unwrap();
    let state = directory.path().join("state");
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("locks")), 0o700);
    let lock = state.join(format!("locks/{id}.lock"));
    let files = ["", "-wal", "-shm"].map(|end| state.join(format!("conversations.db{end}")));
    for file in files.iter().chain([&lock]) {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_file_that_others_can_read_is_closed_to_them() {
    let directory = tempfile::tempdir().unwrap();
    begun(&store_in(directory.path())).await;
    let file = file_in(directory.path());
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let store = store_in(directory.path());
    begun(&store).await;
    for end in ["", "-wal", "-shm"] {
        let file = file.with_file_name(format!("conversations.db{end}"));
        assert_eq!(mode(&file), 0o600, "{end}");
    }
}

#[tokio::test]
async fn a_directory_that_is_there_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let store = SqliteStore::open(&directory.path().join("c.db")).unwrap();
    begun(&store).await;
    assert_eq!(mode(directory.path()), 0o755);
}

#[tokio::test]
async fn a_newer_format_is_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    begun(&store_in(directory.path())).await;
    by_hand(directory.path(), "PRAGMA user_version = 7");
    let before = fs::read(file_in(directory.path())).unwrap();
    let error = store_in(directory.path()).list(&all()).await.unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Newer {
                found: 7,
                known: 1,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("conversations.db"), "{error}");
    let after = fs::read(file_in(directory.path())).unwrap();
    assert!(after == before, "the file has changed");
}

#[tokio::test]
async fn the_database_of_another_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("state")).unwrap();
    by_hand(directory.path(), "CREATE TABLE theirs (x)");
    let error = store_in(directory.path()).list(&all()).await.unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_is_named_with_what_to_do_and_a_repaired_one_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let file = file_in(directory.path());
    fs::create_dir(directory.path().join("state")).unwrap();
    fs::write(
        &file,
        "This is no database, but it is longer than nothing. ".repeat(100),
    )
    .unwrap();
    let store = store_in(directory.path());
    let error = store.list(&all()).await.unwrap_err();
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    assert!(text.contains("move it away"), "{text}");
    fs::remove_file(&file).unwrap();
    begun(&store).await;
}

#[tokio::test]
async fn pages_that_are_damaged_are_reported_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path());
    let id = begun(&store).await;
    let lease = store.lease(&id).await.unwrap();
    let record = asked(&"x".repeat(50_000));
    store.append(&lease, &record).await.unwrap();
    drop(lease);
    drop(store);
    let file = file_in(directory.path());
    let mut bytes = fs::read(&file).unwrap();
    // All but the page with the names of the tables.
    bytes[4096..].fill(0x5A);
    fs::write(&file, bytes).unwrap();
    let error = store_in(directory.path()).load(&id).await.unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[tokio::test]
async fn a_place_that_cannot_be_is_refused_with_its_name() {
    assert!(SqliteStore::open(Path::new("/")).is_err());
    assert!(SqliteStore::open(Path::new("")).is_err());
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("state"), "a file").unwrap();
    let error = store_in(directory.path()).list(&all()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("make the directory"), "{text}");
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
