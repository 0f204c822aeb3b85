//! Sessions in a database: what every store of them promises, and what several gateways see.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use cocode_postgres::PostgresSessionStore;
use cocode_testkit::PostgresPeer;
use cocode_wire::serve::{SessionKey, SessionMark, SessionStore as _, StoredSession};

use crate::database;

const LONG: Duration = Duration::from_hours(1);

fn session(id: &str, guest: Option<&str>) -> StoredSession {
    StoredSession {
        key: SessionKey::of(id),
        guest: guest.map(str::to_owned),
        endpoint: Some("files".to_owned()),
        revision: "2025-06-18".to_owned(),
        told: vec![Bytes::from_static(b"{\"method\":\"initialize\"}")],
    }
}

fn age(peer: &PostgresPeer, minutes: u32) {
    let text = format!(
        "UPDATE cocode.sessions SET used = used - interval '{minutes} minutes';
         UPDATE cocode.session_events SET at = at - interval '{minutes} minutes'"
    );
    peer.sql("cocode", &text);
}

#[tokio::test(flavor = "multi_thread")]
async fn system_sessions_in_a_database_keep_the_promises_of_every_store() {
    let peer = PostgresPeer::start();
    let store = PostgresSessionStore::new(database(&peer.address("cocode")));
    let other = PostgresSessionStore::new(database(&peer.address("cocode")));

    // What one gateway puts, another finds.
    let mut one = session("one", Some("ann"));
    store.put(&one).await.unwrap();
    store.put(&session("two", None)).await.unwrap();
    assert_eq!(other.find(&one.key, LONG).await.unwrap(), Some(one.clone()));
    let told = [Bytes::from_static(b"a\0"), Bytes::new()];
    other.tell(&one.key, &told).await.unwrap();
    one.told = told.to_vec();
    assert_eq!(store.find(&one.key, LONG).await.unwrap(), Some(one.clone()));
    "sitting".clone_into(&mut one.revision);
    one.endpoint = None;
    store.put(&one).await.unwrap();
    assert_eq!(other.find(&one.key, LONG).await.unwrap(), Some(one.clone()));
    other.remove(&[one.key]).await.unwrap();
    assert_eq!(store.find(&one.key, LONG).await.unwrap(), None);
    // What is gone does not come back by being told of.
    store.tell(&one.key, &told).await.unwrap();
    let keys = [one.key, SessionKey::of("two")];
    assert_eq!(store.touch(&keys, LONG).await.unwrap(), [one.key]);
    assert_eq!(store.touch(&[], LONG).await.unwrap(), []);

    for (id, guest) in [("1", Some("ann")), ("2", Some("bob")), ("3", Some("ann"))] {
        store.put(&session(id, guest)).await.unwrap();
    }
    other.remove_of("ann").await.unwrap();
    let keys = ["1", "2", "3"].map(SessionKey::of);
    let gone = store.touch(&keys, LONG).await.unwrap();
    assert_eq!(gone, [keys[0], keys[2]]);

    everybody_hears_what_happened(&peer, &store, &other).await;
    what_nobody_uses_is_as_good_as_gone(&peer, &store).await;
    let kept = peer.sql("cocode", "SELECT sessions::text FROM cocode.sessions");
    assert!(!kept.contains("three"), "{kept}");
    assert!(!peer.log().contains("ERROR"), "{}", peer.log());
}

async fn everybody_hears_what_happened(
    peer: &PostgresPeer,
    store: &PostgresSessionStore,
    other: &PostgresSessionStore,
) {
    let [one, two, three] = ["n1", "n2", "n3"].map(|id| session(id, Some("ann")));
    for session in [&one, &two, &three] {
        store.put(session).await.unwrap();
    }
    store.remove(&[one.key]).await.unwrap();
    let first = other.news(None).await.unwrap();
    assert_eq!((first.ended, first.retold), (vec![], vec![]));
    store.tell(&two.key, &[]).await.unwrap();
    store.remove(&[three.key, one.key]).await.unwrap();
    let second = other.news(Some(&first.mark)).await.unwrap();
    assert!(second.ended.contains(&three.key), "{second:?}");
    assert!(second.retold.contains(&two.key), "{second:?}");
    // The same may be told for a few times, but not for ever.
    let mut mark = second.mark;
    loop {
        let news = other.news(Some(&mark)).await.unwrap();
        mark = news.mark;
        if news.ended.is_empty() && news.retold.is_empty() {
            break;
        }
    }

    // What is committed late, after somebody has looked, is not passed over.
    let late = SessionKey::of("late");
    let hex = late.as_bytes().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let insert = format!(
        "BEGIN; INSERT INTO cocode.session_events
         VALUES (pg_current_xact_id()::text::bigint, '\\x{hex}', true, now());
         SELECT pg_sleep(2); COMMIT;"
    );
    let is_waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    std::thread::scope(|scope| {
        scope.spawn(|| peer.sql("cocode", &insert));
        while peer.sql("cocode", is_waiting) == "0" {}
    });
    let news = other.news(Some(&mark)).await.unwrap();
    assert!(news.ended.contains(&late), "{news:?}");
    // A mark of another database does no harm.
    let strange = SessionMark::new(i64::MAX.to_be_bytes());
    let news = other.news(Some(&strange)).await.unwrap();
    assert!(news.ended.contains(&late), "{news:?}");
}

async fn what_nobody_uses_is_as_good_as_gone(peer: &PostgresPeer, store: &PostgresSessionStore) {
    let [one, two] = ["three", "four"].map(|id| session(id, None));
    store.put(&one).await.unwrap();
    store.put(&two).await.unwrap();
    age(peer, 40);
    assert_eq!(store.touch(&[two.key], LONG).await.unwrap(), []);
    age(peer, 40);
    assert_eq!(store.touch(&[one.key], LONG).await.unwrap(), [one.key]);
    assert_eq!(store.find(&one.key, LONG).await.unwrap(), None);
    assert_eq!(store.find(&two.key, LONG).await.unwrap(), Some(two.clone()));
    // It is not forgotten before somebody wants that.
    assert!(store.find(&one.key, LONG * 2).await.unwrap().is_some());
    age(peer, 80);
    store.remove_idle(LONG).await.unwrap();
    assert_eq!(store.find(&one.key, LONG * 9).await.unwrap(), None);
    let events = peer.sql("cocode", "SELECT count(*) FROM cocode.session_events");
    assert_eq!(events, "0");
}
