//! Stores of tokens: the same promises in memory and in a file, and what only a file can get wrong.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cocode_access::{
    FileTokenStore, MemoryTokenStore, Revoked, TokenKeeper, TokenStore as _, TokenStoreError,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::token_promises::{keeps_its_promises, name, record, seconds};
use crate::{part, start};

/// Whose token it was, if it was one.
fn revoked_name(revoked: Option<Revoked>) -> Option<cocode_access::PrincipalName> {
    match revoked? {
        Revoked::One(token) => Some(token.name),
        Revoked::Many => None,
    }
}

fn file_store() -> (TempDir, FileTokenStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = FileTokenStore::new(directory.path().join("gateway"));
    (directory, store)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn stores_in_memory_and_in_a_file_keep_the_same_promises() {
    keeps_its_promises(&MemoryTokenStore::new()).await;
    let (_directory, store) = file_store();
    keeps_its_promises(&store).await;
}

#[tokio::test]
async fn a_file_holds_no_token_and_is_for_its_owner_alone() {
    let (_directory, store) = file_store();
    assert_eq!(
        store.list().await.unwrap(),
        [],
        "nothing is made by looking"
    );
    assert!(!store.path().exists());
    let (token, alice) = record("alice");
    store.add(&alice).await.unwrap();
    assert_eq!(mode(&store.path()), 0o600);
    assert_eq!(mode(store.path().parent().unwrap()), 0o700);
    let text = fs::read_to_string(store.path()).unwrap();
    assert!(text.contains(&token.hash().to_string()), "{text}");
    assert!(!text.contains(token.expose()), "{text}");
    let another = FileTokenStore::new(store.path().parent().unwrap());
    assert_eq!(another.list().await.unwrap(), [alice]);
}

#[tokio::test]
async fn what_a_file_holds_besides_is_kept() {
    let (_directory, store) = file_store();
    let (_, alice) = record("alice");
    let (_, bob) = record("bob");
    store.add(&alice).await.unwrap();
    store.add(&bob).await.unwrap();
    let mut content: Value = serde_json::from_slice(&fs::read(store.path()).unwrap()).unwrap();
    content["note"] = json!({ "by": "hand" });
    content["tokens"][0]["owner"] = json!("Alice of sales");
    fs::write(store.path(), content.to_string()).unwrap();
    store.revoke(&name("bob")).await.unwrap();
    store.note_use(&[(alice.hash, seconds(5))]).await.unwrap();
    let content: Value = serde_json::from_slice(&fs::read(store.path()).unwrap()).unwrap();
    assert_eq!(content["note"], json!({ "by": "hand" }));
    assert_eq!(content["tokens"][0]["owner"], "Alice of sales");
    assert_eq!(content["tokens"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_of_a_newer_format_is_refused_and_left_alone() {
    let (_directory, store) = file_store();
    store.add(&record("alice").1).await.unwrap();
    let newer = r#"{"version": 2, "tokens": {"sealed": true}}"#;
    fs::write(store.path(), newer).unwrap();
    let read = store.list().await.unwrap_err();
    assert!(
        matches!(
            read,
            TokenStoreError::Newer {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{read}"
    );
    assert!(read.to_string().contains("tokens.json"), "{read}");
    assert!(store.add(&record("bob").1).await.is_err());
    assert_eq!(fs::read_to_string(store.path()).unwrap(), newer);
}

#[tokio::test]
async fn damage_is_told_by_its_place_and_lets_nobody_in() {
    let (_directory, store) = file_store();
    let (_, alice) = record("alice");
    store.add(&alice).await.unwrap();
    let good = fs::read_to_string(store.path()).unwrap();
    let hash = alice.hash.to_string();
    for (text, why) in [
        (String::new(), "line 1, column 0"),
        ("{".to_owned(), "line 1, column 1"),
        (
            good.replace("\"version\": 1", "\"version\": \"x\""),
            "line 2",
        ),
        (good.replace(&hash, "abc"), "in the token number 1, `hash`"),
        (
            good.replace("\"alice\"", "\"a b\""),
            "in the token number 1, `name`",
        ),
        (good.replace('T', " "), "in the token number 1, `created`"),
    ] {
        fs::write(store.path(), &text).unwrap();
        let error = store.list().await.unwrap_err();
        assert!(matches!(error, TokenStoreError::Damaged { .. }), "{error}");
        let told = error.to_string();
        assert!(told.contains(why) && told.contains("tokens.json"), "{told}");
        assert!(TokenKeeper::open(Arc::new(store.clone())).await.is_err());
    }
    let mut twice: Value = serde_json::from_str(&good).unwrap();
    let mut second = twice["tokens"][0].clone();
    twice["tokens"].as_array_mut().unwrap().push(second.clone());
    fs::write(store.path(), twice.to_string()).unwrap();
    let error = store.list().await.unwrap_err().to_string();
    assert!(error.contains("two tokens have one hash"), "{error}");
    second["hash"] = json!("0".repeat(64));
    twice["tokens"][1] = second;
    fs::write(store.path(), twice.to_string()).unwrap();
    let error = store.list().await.unwrap_err().to_string();
    assert!(error.contains("`alice` is there twice"), "{error}");
}

#[tokio::test]
async fn files_that_others_could_use_are_refused() {
    let (directory, store) = file_store();
    store.add(&record("alice").1).await.unwrap();
    set_mode(&store.path(), 0o644);
    let error = store.list().await.unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    set_mode(&store.path(), 0o600);
    let place = store.path().parent().unwrap().to_owned();
    set_mode(&place, 0o777);
    let error = store.add(&record("bob").1).await.unwrap_err().to_string();
    assert!(error.contains("chmod 700"), "{error}");
    set_mode(&place, 0o700);
    let elsewhere = directory.path().join("elsewhere.json");
    fs::rename(store.path(), &elsewhere).unwrap();
    symlink(&elsewhere, store.path()).unwrap();
    let error = store.list().await.unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
}

#[tokio::test]
async fn a_keeper_follows_the_file_that_another_process_changes() {
    let (_directory, store) = file_store();
    let (token, alice) = record("alice");
    store.add(&alice).await.unwrap();
    let keeper = TokenKeeper::open(Arc::new(store.clone())).await.unwrap();
    assert!(keeper.find(&token).is_some());
    let mut revocations = keeper.revocations();
    let (other_token, bob) = record("bob");
    store.add(&bob).await.unwrap();
    assert_eq!(
        keeper.look_for(&other_token).await.unwrap().name,
        name("bob")
    );
    store.revoke(&name("alice")).await.unwrap();
    let revoked = timeout(Duration::from_secs(20), revocations.next()).await;
    assert_eq!(revoked_name(revoked.unwrap()), Some(name("alice")));
    assert!(keeper.find(&token).is_none());
    assert!(keeper.find(&other_token).is_some());
    keeper.close().await.unwrap();
    let kept = store.list().await.unwrap();
    assert!(kept[0].last_used.is_some(), "{kept:?}");
}

const N_PROCESSES: usize = 4;
const N_TOKENS: usize = 15;

#[tokio::test]
async fn processes_that_add_and_revoke_at_once_lose_nothing() {
    if let Some((directory, part)) = part() {
        let store = FileTokenStore::new(directory);
        for number in 0..N_TOKENS {
            let (_, token) = record(&format!("{part}-{number}"));
            store.add(&token).await.unwrap();
            if number % 3 == 0 {
                store.revoke(&token.name).await.unwrap();
            }
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("gateway");
    let test = "token_stores::processes_that_add_and_revoke_at_once_lose_nothing";
    let children: Vec<_> = (0..N_PROCESSES)
        .map(|number| start(test, &place, &number.to_string()))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let names: Vec<String> = FileTokenStore::new(place)
        .list()
        .await
        .unwrap()
        .iter()
        .map(|token| token.name.to_string())
        .collect();
    let mut expected: Vec<String> = (0..N_PROCESSES)
        .flat_map(|process| {
            let kept = (0..N_TOKENS).filter(|number| number % 3 != 0);
            kept.map(move |number| format!("{process}-{number}"))
        })
        .collect();
    expected.sort();
    assert_eq!(names, expected);
}
