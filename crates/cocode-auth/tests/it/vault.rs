//! The vault of credentials in its file: transactions, stamps, privacy, and what damage does.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use cocode_auth::oauth::{
    Client, ClientAuthentication, ClientKind, Grant, Record, Stamp, TokenKind, Tokens, Transaction,
    Vault, VaultError,
};
use cocode_auth::{FileError, Place, Secret, StoreChoice, StoreError, StoreOptions};
use tokio::task::JoinSet;
use url::Url;

use crate::{file_store, fresh_directory, shown};

pub(crate) const ISSUER: &str = "https://login.example";

pub(crate) fn server(name: &str) -> Url {
    Url::parse(&format!("https://{name}.example/mcp")).unwrap()
}

pub(crate) fn options(
    choice: StoreChoice,
    directory: &Path,
    session_bus: Option<&str>,
) -> StoreOptions {
    StoreOptions {
        choice,
        directory: directory.to_owned(),
        session_bus: session_bus.map(str::to_owned),
    }
}

pub(crate) fn file_vault(directory: &Path) -> Vault {
    Vault::new(options(StoreChoice::File, directory, None))
}

/// One that gives up at the first try.
pub(crate) fn hasty_vault(directory: &Path) -> Vault {
    Vault::with_wait_limit(options(StoreChoice::File, directory, None), Duration::ZERO)
}

/// A record with tokens, and a number to tell it by.
pub(crate) fn record(url: &Url, number: u64) -> Record {
    let client = Client {
        id: "client".to_owned(),
        secret: Some(Secret::new("hunter2-client")),
        authentication: ClientAuthentication::SecretBasic,
        kind: ClientKind::Dynamic,
        redirect_uris: Vec::new(),
        secret_expires_at: None,
        registration_access_token: None,
        registration_uri: None,
    };
    let mut grant = Grant::new(client, "https://login.example/token");
    grant.tokens = Some(Tokens {
        access: Secret::new(format!("hunter2-access-{number}")),
        kind: TokenKind::Bearer,
        expires_at: None,
        issued_at: number,
        refresh: None,
        scopes: None,
    });
    let mut record = Record::new(url);
    record.set_current(ISSUER, grant);
    record
}

pub(crate) fn number(record: Option<&Record>) -> u64 {
    let tokens = record.map(|record| record.current().unwrap().tokens.as_ref().unwrap());
    tokens.map_or(0, |tokens| {
        let expected = format!("hunter2-access-{}", tokens.issued_at);
        assert_eq!(tokens.access.expose(), expected);
        tokens.issued_at
    })
}

/// Reads the number of a server and stores the next one.
pub(crate) async fn increment(vault: &Vault, url: &Url) -> Result<Place, VaultError> {
    let mut transaction = vault.transaction(url).await?;
    let next = number(transaction.record()) + 1;
    transaction.commit(record(url, next)).await
}

pub(crate) async fn read_number(vault: &Vault, url: &Url) -> u64 {
    number(vault.read(url).await.unwrap().as_ref())
}

/// What is stored for a server, changed behind the back of all locks.
fn edit_file(directory: &Path, edit: impl FnOnce(String) -> String) {
    let path = directory.join("credentials.json");
    let text = fs::read_to_string(&path).unwrap();
    let edited = edit(text.clone());
    assert_ne!(text, edited);
    fs::write(&path, edited).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[tokio::test]
async fn records_are_kept_replaced_listed_and_removed() {
    let directory = fresh_directory("vault-keep");
    let vault = file_vault(&directory);
    let (first, second) = (server("first"), server("second"));
    assert!(vault.read(&first).await.unwrap().is_none());
    assert!(vault.list().await.unwrap().records.is_empty());
    assert!(!vault.remove(&first).await.unwrap());

    let mut transaction = vault.transaction(&first).await.unwrap();
    assert!(transaction.record().is_none());
    let place = transaction.commit(record(&second, 7)).await.unwrap();
    assert_eq!(place, Place::File);
    // Whatever it said, it is the record of this server now, and the first version of it.
    let kept = transaction.record().unwrap();
    assert_eq!((kept.url.as_str(), kept.revision), (first.as_str(), 1));
    let again = transaction.record().unwrap().clone();
    transaction.commit(again).await.unwrap();
    drop(transaction);
    increment(&vault, &second).await.unwrap();

    // Another process sees the same.
    let other = file_vault(&directory);
    let read = other.read(&first).await.unwrap().unwrap();
    assert_eq!((number(Some(&read)), read.revision), (7, 2));
    let listing = other.list().await.unwrap();
    let urls: Vec<_> = listing
        .records
        .iter()
        .map(|listed| (listed.record.url.as_str(), listed.place))
        .collect();
    assert_eq!(
        urls,
        [
            (first.as_str(), Place::File),
            (second.as_str(), Place::File)
        ]
    );
    assert!(listing.unreadable.is_empty());

    let mut transaction = other.transaction(&first).await.unwrap();
    assert!(transaction.clear().await.unwrap());
    assert!(transaction.record().is_none());
    assert!(!transaction.clear().await.unwrap());
    drop(transaction);
    assert!(vault.read(&first).await.unwrap().is_none());
    assert!(vault.remove(&second).await.unwrap());
    assert!(vault.list().await.unwrap().records.is_empty());
}

#[tokio::test]
async fn a_changed_address_finds_nothing_of_the_old_one() {
    let directory = fresh_directory("vault-address");
    let vault = file_vault(&directory);
    let kept = Url::parse("https://mcp.example/api?team=a").unwrap();
    increment(&vault, &kept).await.unwrap();
    let same = ["https://me@MCP.example:443/api?team=a#x", kept.as_str()];
    for text in same {
        let url = Url::parse(text).unwrap();
        assert_eq!(read_number(&vault, &url).await, 1, "{text}");
    }
    let others = [
        "https://mcp.example/api",
        "https://mcp.example/api?team=b",
        "https://mcp.example/api/?team=a",
        "http://mcp.example/api?team=a",
        "https://mcp.example:8443/api?team=a",
        "https://evil.example/api?team=a",
    ];
    for text in others {
        let url = Url::parse(text).unwrap();
        assert!(vault.read(&url).await.unwrap().is_none(), "{text}");
    }
    // Nor does a record that was moved under the name of another server.
    let evil = Url::parse("https://evil.example/").unwrap();
    edit_file(&directory, |text| {
        text.replace(&Vault::id(&kept), &Vault::id(&evil))
    });
    let error = vault.read(&evil).await.unwrap_err();
    assert!(matches!(error, VaultError::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn only_the_owner_has_access_and_secrets_are_kept_apart() {
    let directory = fresh_directory("vault-modes");
    let vault = Vault::new(options(StoreChoice::Auto, &directory, None));
    let url = server("private");
    assert_eq!(increment(&vault, &url).await.unwrap(), Place::File);
    let lock = directory.join(format!("locks/oauth-{}.lock", Vault::id(&url)));
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join("locks")), 0o700);
    assert_eq!(mode(&directory.join("credentials.json")), 0o600);
    assert_eq!(mode(&lock), 0o600);
    assert_eq!(
        vault.describe().await.to_string(),
        format!(
            "file {}, because there is no D-Bus session bus",
            directory.join("credentials.json").display()
        )
    );
    let store = file_store(&directory);
    assert_eq!(store.list().await.unwrap(), []);
    assert!(!directory.join("secrets.json").exists());

    fs::remove_file(&lock).unwrap();
    fs::write(directory.join("elsewhere"), "").unwrap();
    symlink("../elsewhere", &lock).unwrap();
    let error = vault.transaction(&url).await.unwrap_err();
    assert!(matches!(
        error,
        VaultError::Store(StoreError::File(FileError::Symlink { .. }))
    ));
}

#[tokio::test]
async fn looking_creates_nothing() {
    let directory = fresh_directory("vault-look");
    let vault = file_vault(&directory);
    let url = server("unknown");
    assert!(vault.read(&url).await.unwrap().is_none());
    assert!(vault.list().await.unwrap().records.is_empty());
    assert_eq!(vault.stamp(&url).await.unwrap(), Stamp::default());
    vault.describe().await;
    vault.settle().await;
    assert!(!directory.exists());
}

#[tokio::test]
async fn a_stamp_tells_of_every_change_of_its_server_and_of_no_other() {
    let directory = fresh_directory("vault-stamp");
    let (ours, theirs) = (file_vault(&directory), file_vault(&directory));
    let url = server("stamped");
    let mut stamp = ours.stamp(&url).await.unwrap();
    let mut changed = async || {
        let changed = ours.changed_since(&url, &stamp).await.unwrap();
        stamp = ours.stamp(&url).await.unwrap();
        changed
    };
    assert!(!changed().await);
    drop(theirs.transaction(&url).await.unwrap());
    increment(&theirs, &server("other")).await.unwrap();
    assert!(!changed().await);

    increment(&theirs, &url).await.unwrap();
    assert!(changed().await && !changed().await);
    let mut transaction = theirs.transaction(&url).await.unwrap();
    transaction.clear().await.unwrap();
    drop(transaction);
    assert!(changed().await && !changed().await);
    // The first version again, and still a change.
    increment(&theirs, &url).await.unwrap();
    assert!(changed().await);
    theirs.remove(&url).await.unwrap();
    assert!(changed().await && !changed().await);
}

#[tokio::test]
async fn a_change_without_our_lock_is_a_conflict_that_can_be_resolved() {
    let directory = fresh_directory("vault-conflict");
    let vault = file_vault(&directory);
    let url = server("shared");
    increment(&vault, &url).await.unwrap();
    let mut transaction = vault.transaction(&url).await.unwrap();
    edit_file(&directory, |text| text.replace("access-1", "access-5"));
    edit_file(&directory, |text| text.replace("_at\\\":1", "_at\\\":5"));
    let conflict = |error| match error {
        VaultError::Conflict { url } => url,
        other => panic!("{other:?}"),
    };
    let error = transaction.commit(record(&url, 2)).await.unwrap_err();
    assert_eq!(conflict(error), "https://shared.example/mcp");
    let error = transaction.clear().await.unwrap_err();
    assert_eq!(conflict(error), "https://shared.example/mcp");
    assert_eq!(read_number(&vault, &url).await, 5);

    assert_eq!(number(transaction.re_read().await.unwrap()), 5);
    transaction.commit(record(&url, 6)).await.unwrap();
    assert_eq!(read_number(&vault, &url).await, 6);

    // Removed by others, and not brought back.
    fs::remove_file(directory.join("credentials.json")).unwrap();
    let error = transaction.commit(record(&url, 7)).await.unwrap_err();
    assert_eq!(conflict(error), "https://shared.example/mcp");
    assert!(transaction.re_read().await.unwrap().is_none());
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_is_finished_before_the_lock_is_free() {
    let directory = fresh_directory("vault-cancel");
    let vault = file_vault(&directory);
    let url = server("cancelled");
    for expected in 1..=20 {
        let mut transaction = vault.transaction(&url).await.unwrap();
        {
            let mut commit = Box::pin(transaction.commit(record(&url, expected)));
            // Begun, and given up at once.
            assert!(futures_poll(&mut commit).await.is_none());
        }
        if expected % 2 == 0 {
            // Who goes on learns what became of it.
            let known = number(transaction.re_read().await.unwrap());
            assert_eq!(known, expected);
        }
        drop(transaction);
        let transaction = vault.transaction(&url).await.unwrap();
        assert_eq!(number(transaction.record()), expected);
    }
    let mut transaction = vault.transaction(&url).await.unwrap();
    assert!(
        futures_poll(&mut Box::pin(transaction.commit(record(&url, 21))))
            .await
            .is_none()
    );
    drop(transaction);
    vault.settle().await;
    assert_eq!(read_number(&vault, &url).await, 21);
    drop(hasty_vault(&directory).transaction(&url).await.unwrap());
}

/// Polls a future once.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn those_who_wait_too_long_are_told_for_whom() {
    let directory = fresh_directory("vault-busy");
    let url = Url::parse("https://busy.example/mcp?key=hunter2").unwrap();
    let vault = file_vault(&directory);
    let held: Transaction = vault.transaction(&url).await.unwrap();
    let hasty = hasty_vault(&directory);
    let error = hasty.transaction(&url).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "waited 0 seconds for another part of this process, which is signing in or renewing \
             the credentials for https://busy.example/mcp (it holds `{}`): try again, or end it",
            directory
                .join(format!("locks/oauth-{}.lock", Vault::id(&url)))
                .display()
        )
    );
    assert!(hasty.remove(&url).await.is_err());
    // Another server is another lock, and reading needs none.
    drop(hasty.transaction(&server("idle")).await.unwrap());
    assert!(hasty.read(&url).await.unwrap().is_none());
    drop(held);
    drop(hasty.transaction(&url).await.unwrap());
}

#[tokio::test]
async fn a_waiter_that_gives_up_leaves_no_trace() {
    let directory = fresh_directory("vault-give-up");
    let url = server("waited-for");
    let (vault, other) = (file_vault(&directory), file_vault(&directory));
    let held = vault.transaction(&url).await.unwrap();
    for waiting in [&vault, &other] {
        let limit = Duration::from_millis(20);
        let waiter = tokio::time::timeout(limit, waiting.transaction(&url));
        assert!(waiter.await.is_err());
    }
    drop(held);
    vault.settle().await;
    drop(other.transaction(&url).await.unwrap());
    drop(vault.transaction(&url).await.unwrap());
}

#[tokio::test]
async fn who_comes_back_at_once_does_not_pass_those_who_wait() {
    let directory = fresh_directory("vault-fair");
    let url = server("wanted");
    let (ours, theirs) = (file_vault(&directory), file_vault(&directory));
    let held = ours.transaction(&url).await.unwrap();
    let mut waiting = JoinSet::new();
    waiting.spawn({
        let url = url.clone();
        async move { increment(&theirs, &url).await }
    });
    // The first in the queue has its file.
    let queue = directory.join(format!("locks/oauth-{}.next", Vault::id(&url)));
    let queue = fs::File::open(queue).unwrap();
    while queue.try_lock().is_ok() {
        queue.unlock().unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(held);
    let transaction = ours.transaction(&url).await.unwrap();
    assert_eq!(number(transaction.record()), 1);
    waiting.join_all().await.remove(0).unwrap();
}

#[tokio::test]
async fn a_lock_file_that_is_removed_is_made_again_for_all() {
    let directory = fresh_directory("vault-removed-lock");
    let url = server("unlocked");
    let vault = file_vault(&directory);
    drop(vault.transaction(&url).await.unwrap());
    fs::remove_dir_all(directory.join("locks")).unwrap();
    let held = vault.transaction(&url).await.unwrap();
    assert!(hasty_vault(&directory).transaction(&url).await.is_err());
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_tasks_lose_no_change() {
    let directory = fresh_directory("vault-tasks");
    // Half of them share a vault, the others have their own, as processes would.
    let shared = file_vault(&directory);
    let mut tasks = JoinSet::new();
    for task in 0..100 {
        let vault = match task % 2 {
            0 => shared.clone(),
            _ => file_vault(&directory),
        };
        tasks.spawn(async move {
            let url = server(["even", "odd"][task / 50]);
            for _ in 0..3 {
                increment(&vault, &url).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    for name in ["even", "odd"] {
        let record = shared.read(&server(name)).await.unwrap().unwrap();
        assert_eq!((number(Some(&record)), record.revision), (150, 150));
    }
}

#[tokio::test]
async fn a_damaged_file_is_told_and_never_replaced() {
    let directory = fresh_directory("vault-damaged");
    let vault = file_vault(&directory);
    let url = server("damaged");
    increment(&vault, &url).await.unwrap();
    let path = directory.join("credentials.json");
    let whole = fs::read_to_string(&path).unwrap();
    let half: String = whole.chars().take(whole.len() / 2).collect();
    let mut transaction = vault.transaction(&url).await.unwrap();
    for damaged in [
        "",
        "\0\0\0",
        "[]",
        "{\"version\": 1, \"secrets\": 3}",
        &half,
    ] {
        fs::write(&path, damaged).unwrap();
        let told = |error: VaultError| {
            assert!(
                matches!(
                    error,
                    VaultError::Store(StoreError::File(FileError::Malformed { .. }))
                ),
                "{error:?}"
            );
            let text = shown(&error);
            let expected = format!("`{}` is damaged", path.display());
            assert!(text.contains(&expected), "{text}");
            assert!(text.contains("remove it and sign in again"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        };
        told(vault.read(&url).await.unwrap_err());
        told(vault.list().await.unwrap_err());
        told(transaction.re_read().await.unwrap_err());
        told(transaction.commit(record(&url, 2)).await.unwrap_err());
        told(transaction.clear().await.unwrap_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
    fs::write(&path, whole).unwrap();
    transaction.commit(record(&url, 2)).await.unwrap();
}

#[tokio::test]
async fn a_damaged_record_leaves_the_others_alone() {
    let directory = fresh_directory("vault-garbage");
    let vault = file_vault(&directory);
    let (good, bad, newer) = (server("good"), server("bad"), server("newer"));
    for url in [&good, &bad, &newer] {
        increment(&vault, url).await.unwrap();
    }
    edit_file(&directory, |text| {
        let bad = text.replace(r#"\"url\":\"https://bad"#, r#"\"url\":[\"hunter2"#);
        bad.replace(
            r#"1,\"url\":\"https://newer"#,
            r#"9,\"url\":\"https://newer"#,
        )
    });
    increment(&vault, &good).await.unwrap();
    assert_eq!(read_number(&vault, &good).await, 2);

    let error = vault.transaction(&bad).await.unwrap_err();
    assert!(matches!(error, VaultError::Damaged { .. }), "{error:?}");
    let text = shown(&error);
    let expected = "credentials for https://bad.example/mcp are damaged";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let error = vault.read(&newer).await.unwrap_err();
    assert!(matches!(error, VaultError::NewerVersion { version: 9, .. }));

    let listing = vault.list().await.unwrap();
    assert_eq!(listing.records.len(), 1);
    let mut unreadable: Vec<_> = listing
        .unreadable
        .iter()
        .flat_map(|group| &group.ids)
        .collect();
    unreadable.sort();
    let mut expected = [Vault::id(&bad), Vault::id(&newer)];
    expected.sort();
    assert_eq!(unreadable, expected.iter().collect::<Vec<_>>());

    // The way out that the message names.
    assert!(vault.remove(&bad).await.unwrap());
    increment(&vault, &bad).await.unwrap();
    assert_eq!(read_number(&vault, &bad).await, 1);
}

#[tokio::test]
async fn what_is_too_long_is_refused_and_changes_nothing() {
    let directory = fresh_directory("vault-long");
    let vault = file_vault(&directory);
    let url = server("long");
    let mut transaction = vault.transaction(&url).await.unwrap();
    transaction.commit(record(&url, 1)).await.unwrap();
    let mut long = record(&url, 2);
    let text = "hunter2 ".repeat(10_000);
    long.current_mut().unwrap().dpop_key = Some(Secret::new(text));
    let error = transaction.commit(long).await.unwrap_err();
    assert!(matches!(error, VaultError::TooLong { .. }), "{error:?}");
    assert!(!shown(&error).contains("hunter2"));
    assert_eq!(number(transaction.record()), 1);
    transaction.commit(record(&url, 3)).await.unwrap();
    assert_eq!(read_number(&vault, &url).await, 3);
}
