//! The file of sessions: what it keeps, for whom, and what it does when it is not as it should be.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::encode;
use cocode_wire::serve::{SessionKey, SessionStore as _, SessionStoreError, StoredSession, Whose};

use super::FileSessionStore;

const LONG: Duration = Duration::from_hours(1);

fn session(id: &str, guest: Option<&str>) -> StoredSession {
    StoredSession {
        key: SessionKey::of(id),
        guest: guest.map(str::to_owned),
        credential: guest.map(|guest| format!("a token of {guest}")),
        endpoint: None,
        revision: "2025-06-18".into(),
        told: vec![
            encode::request(1, "initialize", Some(b"{\"x\":\n1}")).into(),
            subscribe("\\u0000 \u{2028}ü", 2),
        ],
        version: 0,
    }
}

/// The client follows a resource, as the message of that number.
fn subscribe(uri: &str, id: u64) -> Bytes {
    let params = format!(r#"{{"uri":"{uri}"}}"#);
    encode::request(id, "resources/subscribe", Some(params.as_bytes())).into()
}

fn path(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("state/gateway/sessions.sqlite")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn another_process_finds_what_one_has_kept() {
    let directory = tempfile::tempdir().unwrap();
    let one = FileSessionStore::new(path(&directory));
    assert!(!path(&directory).exists(), "not before it is needed");
    let mut kept = session("one", Some("ann"));
    one.put(&kept).await.unwrap();
    one.put(&session("two", None)).await.unwrap();
    assert_eq!(mode(&path(&directory)), 0o600);
    assert_eq!(mode(path(&directory).parent().unwrap()), 0o700);
    let other = FileSessionStore::new(path(&directory));
    assert_eq!(
        other.find(&kept.key, LONG).await.unwrap(),
        Some(kept.clone())
    );
    let said = [subscribe("a", 7)];
    assert_eq!(one.tell(&kept.key, &said).await.unwrap(), Some(1));
    assert_eq!(other.tell(&kept.key, &said).await.unwrap(), Some(1));
    // Who keeps the same session again has not heard of that.
    one.put(&kept).await.unwrap();
    kept.told.push(subscribe("a", 3));
    kept.version = 1;
    assert_eq!(
        other.find(&kept.key, LONG).await.unwrap(),
        Some(kept.clone())
    );
    // The id is nowhere in it.
    drop((one, other));
    for entry in fs::read_dir(path(&directory).parent().unwrap()).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("one\""));
    }
}

#[tokio::test]
async fn everybody_hears_of_what_ended_and_changed() {
    let directory = tempfile::tempdir().unwrap();
    let one = FileSessionStore::new(path(&directory));
    let other = FileSessionStore::new(path(&directory));
    let sessions = ["1", "2", "3", "4"].map(|id| session(id, (id != "4").then_some("ann")));
    for session in &sessions {
        one.put(session).await.unwrap();
    }
    let keys = sessions.each_ref().map(|session| session.key);
    one.remove(&[keys[0]]).await.unwrap();
    let news = other.news(None).await.unwrap();
    assert_eq!(
        (news.ended.len(), news.retold.len()),
        (0, 0),
        "only from now on"
    );
    for (uri, version) in [("a", 1), ("b", 2)] {
        let told = one.tell(&keys[1], &[subscribe(uri, 1)]).await.unwrap();
        assert_eq!(told, Some(version));
    }
    assert_eq!(one.tell(&keys[0], &[]).await.unwrap(), None);
    one.remove(&[keys[0], keys[2]]).await.unwrap();
    let heard = other.news(Some(&news.mark)).await.unwrap();
    assert_eq!(
        (&heard.ended, &heard.retold),
        (&vec![keys[2]], &vec![(keys[1], 2)])
    );
    let again = other.news(Some(&heard.mark)).await.unwrap();
    assert_eq!((again.ended.len(), again.retold.len()), (0, 0));
    one.remove_of(&Whose::Guest("ann".into())).await.unwrap();
    let heard = other.news(Some(&again.mark)).await.unwrap();
    assert_eq!(heard.ended, [keys[1]]);
    assert_eq!(other.touch(&keys, LONG).await.unwrap(), keys[..3]);
}

#[tokio::test]
async fn a_credential_and_those_without_any_can_be_sent_away() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(path(&directory));
    let keys = ["1", "2", "3"].map(SessionKey::of);
    for session in [
        session("1", Some("ann")),
        session("2", Some("bob")),
        session("3", None),
    ] {
        store.put(&session).await.unwrap();
    }
    let by = |guest: &str, credential: &str| Whose::Credential {
        guest: guest.into(),
        credential: credential.into(),
    };
    for (whose, gone) in [
        (by("ann", "a token of bob"), &[][..]),
        (by("ann", "a token of ann"), &[keys[0]]),
        (Whose::Strangers, &[keys[0], keys[2]]),
    ] {
        store.remove_of(&whose).await.unwrap();
        assert_eq!(store.touch(&keys, LONG).await.unwrap(), gone, "{whose:?}");
    }
}

#[tokio::test]
async fn what_is_told_at_the_same_time_is_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let stores = [(); 3].map(|()| FileSessionStore::new(path(&directory)));
    let kept = session("1", None);
    stores[0].put(&kept).await.unwrap();
    let telling = stores.iter().enumerate().flat_map(|(number, store)| {
        (0..10).map(move |one| async move {
            let said = [subscribe(&format!("{number}-{one}"), 1)];
            store.tell(&kept.key, &said).await.unwrap().unwrap()
        })
    });
    let mut versions = futures_util::future::join_all(telling).await;
    versions.sort_unstable();
    assert_eq!(versions, (1..=30).collect::<Vec<u64>>());
    let found = stores[0].find(&kept.key, LONG).await.unwrap().unwrap();
    assert_eq!((found.told.len(), found.version), (32, 30));
}

#[tokio::test]
async fn who_waits_for_another_process_keeps_nobody_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(path(&directory));
    let kept = session("1", None);
    store.put(&kept).await.unwrap();
    let another = rusqlite::Connection::open(path(&directory)).unwrap();
    another.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Somebody wants to write, and gives up soon.
    let brief = Duration::from_millis(300);
    let late = session("2", None);
    let given_up = tokio::time::timeout(brief, store.put(&late)).await;
    assert!(given_up.is_err());
    // Nobody is kept from reading, although somebody else still waits.
    let waiting = store.put(&late);
    let reading = async {
        let news = tokio::time::timeout(Duration::from_secs(8), store.news(None)).await;
        news.unwrap().unwrap();
        another.execute_batch("COMMIT").unwrap();
    };
    let (put, ()) = tokio::join!(waiting, reading);
    put.unwrap();
    assert!(store.find(&late.key, LONG).await.unwrap().is_some());
}

#[tokio::test]
async fn no_more_are_kept_than_there_may_be() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(path(&directory));
    let first = session("first", None);
    store.put(&first).await.unwrap();
    let file = rusqlite::Connection::open(path(&directory)).unwrap();
    file.execute_batch(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99998)
         INSERT INTO sessions SELECT CAST(n AS BLOB), NULL, NULL, NULL, '', '', 0, 0 FROM numbers",
    )
    .unwrap();
    // Another gateway, which has not counted yet.
    let other = FileSessionStore::new(path(&directory));
    other.put(&session("last", None)).await.unwrap();
    let more = other.put(&session("more", None)).await.unwrap_err();
    assert!(
        matches!(more, SessionStoreError::TooMany { limit: 100_000, .. }),
        "{more}"
    );
    other.put(&first).await.unwrap();
    other.remove(&[first.key]).await.unwrap();
    other.put(&session("more", None)).await.unwrap();
}

#[tokio::test]
async fn what_nobody_uses_is_as_good_as_gone() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(path(&directory));
    let kept = session("1", None);
    store.put(&kept).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let brief = Duration::from_millis(5);
    assert_eq!(store.find(&kept.key, brief).await.unwrap(), None);
    assert_eq!(store.touch(&[kept.key], brief).await.unwrap(), [kept.key]);
    assert!(store.find(&kept.key, LONG).await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(30)).await;
    store.remove_idle(brief).await.unwrap();
    assert_eq!(store.find(&kept.key, LONG).await.unwrap(), None);
}

#[tokio::test]
async fn many_at_once_do_not_get_in_each_others_way() {
    let directory = tempfile::tempdir().unwrap();
    let stores = [(); 3].map(|()| FileSessionStore::new(path(&directory)));
    let all = stores.iter().enumerate().flat_map(|(number, store)| {
        (0..20).map(move |one| async move {
            let session = session(&format!("{number}-{one}"), None);
            store.put(&session).await.unwrap();
            store.remove(&[session.key]).await.unwrap();
        })
    });
    futures_util::future::join_all(all).await;
}

#[tokio::test]
async fn a_file_that_is_no_store_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = path(&directory);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        "not a database at all, and certainly not one of ours",
    )
    .unwrap();
    let store = FileSessionStore::new(path.clone());
    let error = store.put(&session("1", None)).await.unwrap_err();
    assert!(error.to_string().contains("sessions.sqlite"), "{error}");
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .starts_with("not a database")
    );

    fs::remove_file(&path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    let error = store.put(&session("1", None)).await.unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
}
