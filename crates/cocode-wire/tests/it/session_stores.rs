//! What every store of sessions promises, checked of the one in memory.

use std::time::Duration;

use bytes::Bytes;
use cocode_wire::encode;
use cocode_wire::serve::{MemorySessionStore, SessionKey, SessionStore as _, StoredSession, Whose};

const LONG: Duration = Duration::from_hours(1);

fn session(id: &str, guest: Option<&str>) -> StoredSession {
    StoredSession {
        key: SessionKey::of(id),
        guest: guest.map(str::to_owned),
        credential: None,
        endpoint: Some("files".into()),
        revision: "2025-06-18".into(),
        told: vec![HELLO.into()],
        version: 0,
    }
}

const HELLO: &str = r#"{"jsonrpc":"2.0","method":"initialize","id":1,"params":{}}"#;

/// The client follows a resource, as the message of that number.
fn subscribe(uri: &str, id: u64) -> Bytes {
    let params = format!(r#"{{"uri":"{uri}"}}"#);
    let message = encode::request(id, "resources/subscribe", Some(params.as_bytes()));
    message.into()
}

#[tokio::test]
async fn what_is_put_is_found_until_it_is_removed() {
    let store = MemorySessionStore::new();
    let mut one = session("one", Some("ann"));
    store.put(&one).await.expect("kept");
    store.put(&session("two", None)).await.expect("kept");
    assert_eq!(
        store.find(&one.key, LONG).await.expect("read"),
        Some(one.clone())
    );
    let said = [subscribe("a", 7), subscribe("b", 8)];
    let version = store.tell(&one.key, &said).await.expect("changed");
    assert_eq!(version, Some(1));
    let again = store.tell(&one.key, &said[..1]).await.expect("changed");
    assert_eq!(again, Some(1), "it is so already");
    // Who keeps the same session again has not heard of that.
    store.put(&one).await.expect("kept");
    one.told = vec![HELLO.into(), subscribe("a", 2), subscribe("b", 3)];
    one.version = 1;
    assert_eq!(
        store.find(&one.key, LONG).await.expect("read"),
        Some(one.clone())
    );
    store.remove(&[one.key]).await.expect("changed");
    assert_eq!(store.find(&one.key, LONG).await.expect("read"), None);
    // What is gone does not come back by being told of.
    let version = store.tell(&one.key, &said).await.expect("changed");
    assert_eq!(version, None);
    assert_eq!(store.find(&one.key, LONG).await.expect("read"), None);
    let keys = [one.key, SessionKey::of("two")];
    assert_eq!(store.touch(&keys, LONG).await.expect("read"), [one.key]);
}

#[tokio::test]
async fn guests_lose_all_that_is_theirs() {
    let store = MemorySessionStore::new();
    for (id, guest) in [
        ("1", Some("ann")),
        ("2", Some("bob")),
        ("3", Some("ann")),
        ("4", None),
    ] {
        store.put(&session(id, guest)).await.expect("kept");
    }
    let mut by = session("5", Some("ann"));
    by.credential = Some("old".into());
    store.put(&by).await.expect("kept");
    let keys = ["1", "2", "3", "4", "5"].map(SessionKey::of);
    for (credential, gone) in [("new", &[][..]), ("old", &keys[4..])] {
        let whose = Whose::Credential {
            guest: "ann".into(),
            credential: credential.into(),
        };
        store.remove_of(&whose).await.expect("changed");
        assert_eq!(store.touch(&keys, LONG).await.expect("read"), gone);
    }
    let ann = Whose::Guest("ann".into());
    store.remove_of(&ann).await.expect("changed");
    let gone = store.touch(&keys, LONG).await.expect("read");
    assert_eq!(gone, [keys[0], keys[2], keys[4]]);
    store.remove_of(&Whose::Strangers).await.expect("changed");
    let gone = store.touch(&keys[..4], LONG).await.expect("read");
    assert_eq!(gone, [keys[0], keys[2], keys[3]]);
}

#[tokio::test]
async fn everybody_hears_what_happened() {
    let store = MemorySessionStore::new();
    let [one, two, three] = ["1", "2", "3"].map(|id| session(id, Some("ann")));
    for session in [&one, &two, &three] {
        store.put(session).await.expect("kept");
    }
    store.remove(&[one.key]).await.expect("changed");
    let first = store.news(None).await.expect("read");
    assert_eq!(
        (first.ended.len(), first.retold.len()),
        (0, 0),
        "only from now on"
    );
    for (uri, version) in [("a", 1), ("b", 2)] {
        let told = store.tell(&two.key, &[subscribe(uri, 1)]).await;
        assert_eq!(told.expect("changed"), Some(version));
    }
    store.tell(&two.key, &[]).await.expect("changed");
    store.remove(&[three.key, one.key]).await.expect("changed");
    let second = store.news(Some(&first.mark)).await.expect("read");
    assert_eq!(
        (second.ended, second.retold),
        (vec![three.key], vec![(two.key, 1), (two.key, 2)])
    );
    let third = store.news(Some(&second.mark)).await.expect("read");
    assert_eq!((third.ended.len(), third.retold.len()), (0, 0));
    let ann = Whose::Guest("ann".into());
    store.remove_of(&ann).await.expect("changed");
    let fourth = store.news(Some(&third.mark)).await.expect("read");
    assert_eq!(fourth.ended, [two.key]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_is_as_good_as_gone() {
    let store = MemorySessionStore::new();
    let [one, two] = ["1", "2"].map(|id| session(id, None));
    store.put(&one).await.expect("kept");
    store.put(&two).await.expect("kept");
    tokio::time::advance(Duration::from_mins(40)).await;
    assert_eq!(store.touch(&[two.key], LONG).await.expect("read"), []);
    tokio::time::advance(Duration::from_mins(40)).await;
    assert_eq!(store.find(&one.key, LONG).await.expect("read"), None);
    assert_eq!(
        store.find(&two.key, LONG).await.expect("read"),
        Some(two.clone())
    );
    // It is not forgotten before somebody wants that.
    assert!(
        store
            .find(&one.key, LONG * 2)
            .await
            .expect("read")
            .is_some()
    );
    tokio::time::advance(Duration::from_mins(80)).await;
    store.remove_idle(LONG).await.expect("changed");
    assert_eq!(store.find(&one.key, LONG * 9).await.expect("read"), None);
    // News of a time long ago are not kept for ever, and a mark from then does no harm.
    let mark = store.news(None).await.expect("read").mark;
    for minute in 0..100_u32 {
        let key = minute.to_string();
        store.put(&session(&key, None)).await.expect("kept");
        store
            .remove(&[SessionKey::of(&key)])
            .await
            .expect("changed");
        tokio::time::advance(Duration::from_mins(1)).await;
    }
    let news = store.news(Some(&mark)).await.expect("read");
    assert!((1..5).contains(&news.ended.len()), "{}", news.ended.len());
}

#[test]
fn a_key_shows_nothing_of_the_id() {
    let key = SessionKey::of("secret");
    assert_eq!(key, SessionKey::from_bytes(*key.as_bytes()));
    assert_ne!(key, SessionKey::of("Secret"));
    let shown = format!("{:?}", session("secret", Some("ann")));
    assert!(
        !shown.contains("secret") && !shown.contains("initialize"),
        "{shown}"
    );
}
