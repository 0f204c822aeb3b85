//! The file of sessions: what it keeps, for whom, and what it does when it is not as it should be.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::serve::{SessionKey, SessionStore as _, StoredSession};

use super::FileSessionStore;

const LONG: Duration = Duration::from_hours(1);

fn session(id: &str, guest: Option<&str>) -> StoredSession {
    StoredSession {
        key: SessionKey::of(id),
        guest: guest.map(str::to_owned),
        endpoint: None,
        revision: "2025-06-18".into(),
        told: vec![
            Bytes::from_static(b"{\"method\":\n\"initialize\"}"),
            Bytes::from_static("{\"x\":\"\\u0000 \u{2028}ü\"}".as_bytes()),
        ],
    }
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
    kept.told.truncate(1);
    one.tell(&kept.key, &kept.told).await.unwrap();
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
    one.tell(&keys[1], &[]).await.unwrap();
    one.tell(&keys[0], &[]).await.unwrap();
    one.remove(&[keys[0], keys[2]]).await.unwrap();
    let heard = other.news(Some(&news.mark)).await.unwrap();
    assert_eq!(
        (&heard.ended, &heard.retold),
        (&vec![keys[2]], &vec![keys[1]])
    );
    let again = other.news(Some(&heard.mark)).await.unwrap();
    assert_eq!((again.ended.len(), again.retold.len()), (0, 0));
    one.remove_of("ann").await.unwrap();
    let heard = other.news(Some(&again.mark)).await.unwrap();
    assert_eq!(heard.ended, [keys[1]]);
    assert_eq!(other.touch(&keys, LONG).await.unwrap(), keys[..3]);
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
