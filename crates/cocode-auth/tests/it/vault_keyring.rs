//! The vault of credentials against a real Secret Service: there, gone, and back again.

use std::fs;

use cocode_auth::oauth::{Vault, VaultError};
use cocode_auth::{KeyringError, Place, Reference, References, StoreChoice, StoreError};
use tokio::task::JoinSet;

use crate::keyring::Bus;
use crate::shown;
use crate::vault::{increment, number, options, read_number, record, server};

fn vault(bus: &Bus, choice: StoreChoice) -> Vault {
    Vault::new(options(choice, &bus.home(), Some(&bus.address)))
}

fn file(bus: &Bus) -> String {
    fs::read_to_string(bus.home().join("credentials.json")).unwrap()
}

fn is_out_of_reach(error: &VaultError) -> bool {
    let text = shown(error);
    assert!(
        text.contains("start or unlock it, or choose the file store"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
    matches!(
        error,
        VaultError::Store(StoreError::Keyring(KeyringError::NoService))
    )
}

#[tokio::test]
async fn system_keyring_keeps_credentials_apart_from_secrets() {
    let bus = Bus::start("vault").await;
    let _keyring = bus.start_keyring().await;
    for choice in [StoreChoice::Auto, StoreChoice::Keyring] {
        let vault = vault(&bus, choice);
        let url = server("kept");
        let stamp = vault.stamp(&url).await.unwrap();
        assert!(vault.read(&url).await.unwrap().is_none());
        assert_eq!(increment(&vault, &url).await.unwrap(), Place::Keyring);
        assert!(vault.changed_since(&url, &stamp).await.unwrap());
        // Also when the file need not change.
        let stamp = vault.stamp(&url).await.unwrap();
        assert_eq!(increment(&vault, &url).await.unwrap(), Place::Keyring);
        assert!(vault.changed_since(&url, &stamp).await.unwrap());
        assert_eq!(read_number(&vault, &url).await, 2);
        assert!(!file(&bus).contains("hunter2"), "{}", file(&bus));
        let listing = vault.list().await.unwrap();
        assert_eq!(listing.records.len(), 1);
        assert_eq!(listing.records[0].place, Place::Keyring);

        // Neither a list nor a name leads from the secrets to the tokens.
        let secrets = bus.store(choice);
        assert_eq!(secrets.list().await.unwrap(), []);
        let text = format!("keyring:oauth:{}", Vault::id(&url));
        let reference: Reference = text.parse().unwrap();
        let commands = cocode_auth::CommandSettings::new(Vec::new());
        let references = References::new(secrets, commands);
        assert!(references.resolve(&reference).await.is_err());

        let mut transaction = vault.transaction(&url).await.unwrap();
        assert!(transaction.clear().await.unwrap());
        assert!(vault.read(&url).await.unwrap().is_none());
        assert!(vault.list().await.unwrap().records.is_empty());
        transaction.commit(record(&url, 9)).await.unwrap();
        drop(transaction);
        assert!(vault.remove(&url).await.unwrap());
        assert!(!vault.remove(&url).await.unwrap());
    }
    assert_eq!(
        vault(&bus, StoreChoice::Auto).describe().await.to_string(),
        "system keyring (Secret Service), because it is there and answers"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn system_keyring_takes_forty_changers_of_one_record() {
    let bus = Bus::start("vault-forty").await;
    let _keyring = bus.start_keyring().await;
    let shared = vault(&bus, StoreChoice::Auto);
    let mut tasks = JoinSet::new();
    for task in 0..40 {
        let vault = match task % 2 {
            0 => shared.clone(),
            _ => vault(&bus, StoreChoice::Auto),
        };
        tasks.spawn(async move {
            let place = increment(&vault, &server("shared")).await.unwrap();
            assert_eq!(place, Place::Keyring);
        });
    }
    tasks.join_all().await;
    assert_eq!(read_number(&shared, &server("shared")).await, 40);
}

#[tokio::test]
async fn system_keyring_that_goes_away_midway_is_told_and_leaves_one_copy() {
    let bus = Bus::start("vault-midway").await;
    let mut keyring = bus.start_keyring().await;
    let vault = vault(&bus, StoreChoice::Auto);
    let url = server("midway");
    increment(&vault, &url).await.unwrap();
    let mut transaction = vault.transaction(&url).await.unwrap();
    keyring.stop().await;
    let error = transaction.commit(record(&url, 2)).await.unwrap_err();
    assert!(is_out_of_reach(&error), "{error:?}");
    let error = transaction.clear().await.unwrap_err();
    assert!(is_out_of_reach(&error), "{error:?}");
    drop(transaction);
    for error in [
        vault.read(&url).await.unwrap_err(),
        vault.transaction(&url).await.unwrap_err(),
        vault.remove(&url).await.unwrap_err(),
    ] {
        assert!(is_out_of_reach(&error), "{error:?}");
    }
    assert!(!file(&bus).contains("hunter2"), "{}", file(&bus));
    // A server that the keyring knows nothing of can be used, and is listed beside.
    let other = server("other");
    assert_eq!(increment(&vault, &other).await.unwrap(), Place::File);
    let listing = vault.list().await.unwrap();
    assert_eq!(listing.records.len(), 1);
    assert_eq!(listing.unreadable.len(), 1);
    assert_eq!(listing.unreadable[0].ids, [Vault::id(&url)]);
    assert!(is_out_of_reach(&listing.unreadable[0].error));

    let _keyring = bus.start_keyring().await;
    assert_eq!(read_number(&vault, &url).await, 1);
    assert_eq!(increment(&vault, &url).await.unwrap(), Place::Keyring);
    // What is in the file stays there: a process without a keyring may be using it.
    assert_eq!(increment(&vault, &other).await.unwrap(), Place::File);
    assert_eq!(read_number(&vault, &other).await, 2);
    vault.remove(&other).await.unwrap();
    assert_eq!(increment(&vault, &other).await.unwrap(), Place::Keyring);
}

#[tokio::test]
async fn system_keyring_finds_what_a_killed_process_had_no_time_to_note() {
    let bus = Bus::start("vault-note").await;
    let _keyring = bus.start_keyring().await;
    let vault = vault(&bus, StoreChoice::Auto);
    let url = server("unnoted");
    increment(&vault, &url).await.unwrap();
    fs::remove_file(bus.home().join("credentials.json")).unwrap();
    assert_eq!(read_number(&vault, &url).await, 1);
    assert!(vault.list().await.unwrap().records.is_empty());
    // Whoever takes the lock makes up for it.
    let transaction = vault.transaction(&url).await.unwrap();
    assert_eq!(number(transaction.record()), 1);
    assert_eq!(vault.list().await.unwrap().records.len(), 1);
    drop(transaction);

    // Removed from the keyring, and still noted.
    let noted = file(&bus);
    vault.remove(&url).await.unwrap();
    fs::write(bus.home().join("credentials.json"), noted).unwrap();
    assert!(vault.read(&url).await.unwrap().is_none());
    assert!(vault.list().await.unwrap().records.is_empty());
    increment(&vault, &url).await.unwrap();
    assert_eq!(read_number(&vault, &url).await, 1);
}

#[tokio::test]
async fn system_keyring_that_is_locked_takes_no_credentials_and_the_file_takes_none_either() {
    let bus = Bus::start("vault-locked").await;
    let _keyring = bus.start_keyring().await;
    let vault = vault(&bus, StoreChoice::Auto);
    let url = server("locked");
    increment(&vault, &url).await.unwrap();
    bus.lock_default_keyring().await;
    let error = vault.transaction(&url).await.unwrap_err();
    assert!(shown(&error).contains("is locked"), "{error:?}");
    let error = increment(&vault, &server("new")).await.unwrap_err();
    assert!(shown(&error).contains("is locked"), "{error:?}");
    let listing = vault.list().await.unwrap();
    assert_eq!(listing.unreadable[0].ids, [Vault::id(&url)]);
    assert!(!file(&bus).contains("hunter2"), "{}", file(&bus));
}
