//! The file of secrets: what it keeps, how private it is, and what it refuses.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use cocode_auth::{
    FileError, MAX_SECRET_BYTES, Place, Secret, SecretStore, StoreError, StoredSecret,
};

use crate::{file_store, fresh_directory, get, name, set, shown};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A file of secrets with one secret in it.
async fn filled(test: &str) -> (SecretStore, std::path::PathBuf) {
    let directory = fresh_directory(test);
    let store = file_store(&directory);
    set(&store, "github", "hunter2").await;
    (store, directory.join("secrets.json"))
}

async fn refusal(store: &SecretStore) -> FileError {
    match store.get(&name("github")).await {
        Err(StoreError::File(error)) => {
            assert!(!shown(&error).contains("hunter2"), "{}", shown(&error));
            error
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn secrets_are_set_replaced_listed_and_removed() {
    let directory = fresh_directory("set-get");
    let store = file_store(&directory);
    assert_eq!(get(&store, "github").await, None);
    assert_eq!(store.list().await.unwrap(), []);
    assert!(!store.remove(&name("github")).await.unwrap());

    assert_eq!(set(&store, "github", "old").await, Place::File);
    set(&store, "github", "new \"quoted\" – ünïcode\n").await;
    set(&store, "atlas", "a").await;
    // Another process sees the same.
    let other = file_store(&directory);
    assert_eq!(
        get(&other, "github").await.as_deref(),
        Some("new \"quoted\" – ünïcode\n")
    );
    let listed = |text| StoredSecret {
        name: name(text),
        place: Place::File,
    };
    assert_eq!(
        other.list().await.unwrap(),
        [listed("atlas"), listed("github")]
    );
    assert!(other.remove(&name("github")).await.unwrap());
    assert_eq!(get(&store, "github").await, None);
    assert_eq!(store.list().await.unwrap(), [listed("atlas")]);
}

#[tokio::test]
async fn looking_creates_nothing() {
    let directory = fresh_directory("looking");
    let store = file_store(&directory);
    get(&store, "github").await;
    store.remove(&name("github")).await.unwrap();
    store.list().await.unwrap();
    store.describe().await;
    assert!(!directory.exists());
}

#[tokio::test]
async fn only_the_owner_has_access() {
    let (store, path) = filled("modes").await;
    set(&store, "second", "x").await;
    let directory = path.parent().unwrap();
    assert_eq!(mode(directory), 0o700);
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert_eq!(files, [path.clone(), directory.join("secrets.lock")]);
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_file_that_others_may_read_is_refused() {
    for open in [0o640, 0o604, 0o620, 0o601] {
        let (store, path) = filled("readable").await;
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let error = refusal(&store).await;
        assert!(
            matches!(&error, FileError::OpenFile { mode, .. } if *mode == open),
            "{error}"
        );
        assert!(error.to_string().contains("chmod 600"), "{error}");
        // Neither is it overwritten, which would hide that the secrets were seen.
        let set = store.set(&name("x"), &Secret::new("y")).await;
        assert!(matches!(
            set,
            Err(StoreError::File(FileError::OpenFile { .. }))
        ));
    }
}

#[tokio::test]
async fn a_symbolic_link_is_refused() {
    let (store, path) = filled("symlink").await;
    let target = path.with_file_name("elsewhere.json");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    assert!(matches!(refusal(&store).await, FileError::Symlink { .. }));
    fs::remove_file(&target).unwrap();
    assert!(matches!(refusal(&store).await, FileError::Symlink { .. }));
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let (store, path) = filled("directory").await;
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(refusal(&store).await, FileError::NotAFile { .. }));
}

#[tokio::test]
async fn what_belongs_to_somebody_else_is_refused() {
    let (store, path) = filled("foreign").await;
    let (owner, error) = if chown(&path, Some(65534), None).is_ok() {
        (65534, refusal(&store).await)
    } else {
        // Only root can give files away; others have the root directory to try.
        match file_store(Path::new("/"))
            .set(&name("x"), &Secret::new("y"))
            .await
        {
            Err(StoreError::File(error)) => (0, error),
            other => panic!("not refused: {other:?}"),
        }
    };
    assert!(
        matches!(&error, FileError::ForeignOwner { owner: found, .. } if *found == owner),
        "{error}"
    );
}

#[tokio::test]
async fn a_directory_that_others_may_write_to_is_refused() {
    let (store, path) = filled("writable").await;
    let directory = path.parent().unwrap();
    fs::set_permissions(directory, Permissions::from_mode(0o770)).unwrap();
    let error = store.set(&name("x"), &Secret::new("y")).await.unwrap_err();
    assert!(
        matches!(
            &error,
            StoreError::File(FileError::OpenDirectory { mode: 0o770, .. })
        ),
        "{error}"
    );
    fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    set(&store, "x", "y").await;
}

#[tokio::test]
async fn a_damaged_file_is_told_and_kept() {
    let (store, path) = filled("damaged").await;
    let damaged = "{\n \"version\": 1,\n \"secrets\": \"hunter2\"}";
    fs::write(&path, damaged).unwrap();
    let error = refusal(&store).await;
    assert!(
        matches!(&error, FileError::Malformed { line: 3, .. }),
        "{error}"
    );
    store.set(&name("x"), &Secret::new("y")).await.unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
}

#[tokio::test]
async fn what_a_killed_process_left_is_cleared() {
    let (store, path) = filled("leftover").await;
    let leftover = path.with_file_name("secrets.json.new");
    fs::write(&leftover, "half a fi").unwrap();
    fs::set_permissions(&leftover, Permissions::from_mode(0o644)).unwrap();
    set(&store, "second", "x").await;
    assert!(!leftover.exists());
    assert_eq!(mode(&path), 0o600);
    assert_eq!(get(&store, "github").await.as_deref(), Some("hunter2"));
}

#[tokio::test]
async fn empty_and_huge_values_are_refused() {
    let directory = fresh_directory("values");
    let store = file_store(&directory);
    let empty = store.set(&name("x"), &Secret::new("")).await;
    assert!(matches!(empty, Err(StoreError::Empty(_))));
    let huge = "h".repeat(MAX_SECRET_BYTES + 1);
    let error = store.set(&name("x"), &Secret::new(huge)).await.unwrap_err();
    assert!(!shown(&error).contains("hhh") && matches!(error, StoreError::TooLong(_)));
    set(&store, "x", &"h".repeat(MAX_SECRET_BYTES)).await;
}
