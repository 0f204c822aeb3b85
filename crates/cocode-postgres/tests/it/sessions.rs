//! Sessions in a database: what every store of them promises, and what several gateways see.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cocode_postgres::PostgresSessionStore;
use cocode_testkit::PostgresPeer;
use cocode_wire::encode;
use cocode_wire::serve::{
    SessionKey, SessionMark, SessionStore as _, SessionStoreError, StoredSession, Whose,
};
use tokio::task::JoinSet;

use crate::database;

const LONG: Duration = Duration::from_hours(1);

fn session(id: &str, guest: Option<&str>) -> StoredSession {
    StoredSession {
        key: SessionKey::of(id),
        guest: guest.map(str::to_owned),
        credential: guest.map(|guest| format!("a token of {guest}")),
        endpoint: Some("files".to_owned()),
        revision: "2025-06-18".to_owned(),
        told: vec![encode::request(1, "initialize", None).into()],
        version: 0,
    }
}

/// The client follows a resource, as the message of that number.
fn subscribe(uri: &str, id: u64) -> Bytes {
    let params = format!(r#"{{"uri":"{uri}"}}"#);
    encode::request(id, "resources/subscribe", Some(params.as_bytes())).into()
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
    let said = [subscribe("a\u{fc}", 5)];
    assert_eq!(other.tell(&one.key, &said).await.unwrap(), Some(1));
    assert_eq!(store.tell(&one.key, &said).await.unwrap(), Some(1));
    // Who keeps the same session again has not heard of that.
    store.put(&one).await.unwrap();
    one.told.push(subscribe("a\u{fc}", 2));
    one.version = 1;
    assert_eq!(store.find(&one.key, LONG).await.unwrap(), Some(one.clone()));
    "sitting".clone_into(&mut one.revision);
    one.endpoint = None;
    store.put(&one).await.unwrap();
    assert_eq!(other.find(&one.key, LONG).await.unwrap(), Some(one.clone()));
    other.remove(&[one.key]).await.unwrap();
    assert_eq!(store.find(&one.key, LONG).await.unwrap(), None);
    // What is gone does not come back by being told of.
    assert_eq!(store.tell(&one.key, &said).await.unwrap(), None);
    let keys = [one.key, SessionKey::of("two")];
    assert_eq!(store.touch(&keys, LONG).await.unwrap(), [one.key]);
    assert_eq!(store.touch(&[], LONG).await.unwrap(), []);

    for (id, guest) in [("1", Some("ann")), ("2", Some("bob")), ("3", Some("ann"))] {
        store.put(&session(id, guest)).await.unwrap();
    }
    let mut by = session("4", Some("bob"));
    by.credential = Some("another".to_owned());
    store.put(&by).await.unwrap();
    other.remove_of(&Whose::Guest("ann".into())).await.unwrap();
    let keys = ["1", "2", "3", "4", "two"].map(SessionKey::of);
    let gone = store.touch(&keys, LONG).await.unwrap();
    assert_eq!(gone, [keys[0], keys[2]]);
    let whose = Whose::Credential {
        guest: "bob".into(),
        credential: "another".into(),
    };
    other.remove_of(&whose).await.unwrap();
    let gone = store.touch(&keys, LONG).await.unwrap();
    assert_eq!(gone, [keys[0], keys[2], keys[3]]);
    other.remove_of(&Whose::Strangers).await.unwrap();
    let gone = store.touch(&keys, LONG).await.unwrap();
    assert_eq!(gone, [keys[0], keys[2], keys[3], keys[4]]);

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
    for (uri, version) in [("a", 1), ("b", 2)] {
        let told = store.tell(&two.key, &[subscribe(uri, 1)]).await.unwrap();
        assert_eq!(told, Some(version));
    }
    store.remove(&[three.key, one.key]).await.unwrap();
    let second = other.news(Some(&first.mark)).await.unwrap();
    assert!(second.ended.contains(&three.key), "{second:?}");
    assert_eq!(second.retold, [(two.key, 2)]);
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
         VALUES (pg_current_xact_id()::text::bigint, '\\x{hex}', true, 0, now());
         SELECT pg_sleep(2); COMMIT;"
    );
    let is_waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let runtime = tokio::runtime::Handle::current();
    let meanwhile = std::thread::scope(|scope| {
        scope.spawn(|| peer.sql("cocode", &insert));
        while peer.sql("cocode", is_waiting) == "0" {}
        // Others do something at that time, and are done before.
        let look = async {
            store.put(&session("fast", None)).await.unwrap();
            store.remove(&[SessionKey::of("fast")]).await.unwrap();
            other.news(Some(&mark)).await.unwrap()
        };
        tokio::task::block_in_place(|| runtime.block_on(look))
    });
    assert_eq!(meanwhile.ended, [SessionKey::of("fast")], "it is not done");
    let news = other.news(Some(&meanwhile.mark)).await.unwrap();
    assert!(news.ended.contains(&late), "{news:?}");
    // A mark of another database does no harm.
    let strange = SessionMark::new(i64::MAX.to_be_bytes());
    let news = other.news(Some(&strange)).await.unwrap();
    assert!(news.ended.contains(&late), "{news:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn system_what_is_told_at_the_same_time_is_all_kept() {
    let peer = PostgresPeer::start();
    let store = Arc::new(PostgresSessionStore::new(database(&peer.address("cocode"))));
    let one = session("one", None);
    store.put(&one).await.unwrap();
    let mut telling = JoinSet::new();
    for gateway in 0..4 {
        let store = PostgresSessionStore::new(database(&peer.address("cocode")));
        telling.spawn(async move {
            let mut versions = Vec::new();
            for number in 0..25 {
                let said = [subscribe(&format!("{gateway}-{number}"), 1)];
                versions.extend(store.tell(&one.key, &said).await.unwrap());
            }
            versions
        });
    }
    let mut versions: Vec<u64> = telling.join_all().await.into_iter().flatten().collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=100).collect::<Vec<u64>>());
    let found = store.find(&one.key, LONG).await.unwrap().unwrap();
    assert_eq!((found.told.len(), found.version), (101, 100));
    assert!(!peer.log().contains("ERROR"), "{}", peer.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn system_no_more_sessions_are_kept_than_there_may_be() {
    let peer = PostgresPeer::start();
    let store = PostgresSessionStore::new(database(&peer.address("cocode")));
    let first = session("first", None);
    store.put(&first).await.unwrap();
    peer.sql(
        "cocode",
        "INSERT INTO cocode.sessions (key, revision, told, version, used)
         SELECT sha256(n::text::bytea), '', '{}', 0, now() FROM generate_series(1, 99997) AS n",
    );
    // Another gateway, which has not counted yet.
    let other = PostgresSessionStore::new(database(&peer.address("cocode")));
    for id in ["one", "two"] {
        other.put(&session(id, None)).await.unwrap();
    }
    let more = other.put(&session("more", None)).await;
    assert!(
        matches!(more, Err(SessionStoreError::TooMany { limit: 100_000, .. })),
        "{more:?}"
    );
    other.put(&first).await.unwrap();
    other.remove(&[first.key]).await.unwrap();
    other.put(&session("more", None)).await.unwrap();
    assert!(!peer.log().contains("ERROR"), "{}", peer.log());
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
