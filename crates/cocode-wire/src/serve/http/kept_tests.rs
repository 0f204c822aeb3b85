//! What is set here, elsewhere, and at both at the same time.

use bytes::Bytes;

use super::Kept;
use crate::raw::RawJson;
use crate::serve::http::told::{Told, retold};
use crate::serve::session_store::{MAX_TOLD, SessionKey, StoredSession};

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const SET_LEVEL: &str = "logging/setLevel";

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn uri(uri: &str) -> RawJson {
    raw(&format!(r#"{{"uri":"{uri}"}}"#))
}

fn kept() -> Kept {
    let hello = Told::hello(Some(&raw(r#"{"protocolVersion":"2025-06-18"}"#))).unwrap();
    Kept::new("id", hello, 0)
}

fn stored(kept: &Kept) -> StoredSession {
    StoredSession {
        key: SessionKey::of("id"),
        guest: None,
        credential: None,
        endpoint: None,
        revision: "2025-06-18".into(),
        told: kept.messages(),
        version: 0,
    }
}

/// Tells the store what is to be told, and gives whether something else was set elsewhere.
fn tell(kept: &Kept, store: &mut StoredSession) -> bool {
    let Some(saying) = kept.saying() else {
        return false;
    };
    if let Some(told) = retold(&store.told, &saying.messages) {
        store.told = told;
        store.version += 1;
    }
    kept.said(&saying, Some(store.version))
}

fn settings(messages: &[Bytes]) -> String {
    let told = Told::read(messages).unwrap();
    let settings = told.settings().map(|setting| setting.params);
    settings.collect()
}

#[test]
fn what_is_set_while_the_store_is_read_stays() {
    let here = kept();
    let mut store = stored(&here);
    assert!(here.note(SUBSCRIBE, Some(&uri("a"))));
    assert!(!tell(&here, &mut store));
    // Somebody looks at what there is, and the client goes on meanwhile.
    let read = store.clone();
    assert!(here.note(SUBSCRIBE, Some(&uri("b"))));
    assert!(here.note(UNSUBSCRIBE, Some(&uri("a"))));
    assert_eq!(here.catch_up(&read), []);
    assert!(!tell(&here, &mut store));
    assert_eq!(settings(&store.told), r#"{"uri":"b"}"#);
    assert_eq!(settings(&here.messages()), r#"{"uri":"b"}"#);
    // What was read before the store was told says nothing new.
    assert_eq!(here.catch_up(&read), []);
    assert_eq!(settings(&here.messages()), r#"{"uri":"b"}"#);
}

#[test]
fn what_is_set_at_two_servers_at_the_same_time_is_put_together() {
    let (here, there) = (kept(), kept());
    let mut store = stored(&here);
    here.note(SUBSCRIBE, Some(&uri("a")));
    there.note(SUBSCRIBE, Some(&uri("b")));
    there.note(SET_LEVEL, Some(&raw(r#"{"level":"error"}"#)));
    assert!(!tell(&here, &mut store), "nobody else has set anything");
    assert!(tell(&there, &mut store), "something is not known there");
    assert!(here.knows(1) && !here.knows(2) && !there.knows(1));
    let both = r#"{"level":"error"}{"uri":"a"}{"uri":"b"}"#;
    assert_eq!(settings(&store.told), both);
    assert_eq!(here.catch_up(&store).len(), 2);
    assert_eq!(there.catch_up(&store).len(), 1);
    for one in [&here, &there] {
        assert_eq!(settings(&one.messages()), both);
        assert!(one.knows(2) && !one.knows(3));
    }
}

#[test]
fn what_is_so_here_already_is_told_all_the_same() {
    // What was set elsewhere may not be known here yet.
    let here = kept();
    let mut store = stored(&here);
    store.told = retold(
        &store.told,
        &[r#"{"id":1,"method":"resources/subscribe","params":{"uri":"a"}}"#.into()],
    )
    .unwrap();
    store.version = 1;
    assert!(here.note(UNSUBSCRIBE, Some(&uri("a"))));
    tell(&here, &mut store);
    assert_eq!(settings(&store.told), "");
    // What changes nothing is no change.
    assert_eq!(store.version, 2);
    here.catch_up(&store);
    assert!(here.note(UNSUBSCRIBE, Some(&uri("a"))));
    assert!(!tell(&here, &mut store));
    assert_eq!(store.version, 2);
    assert!(here.saying().is_none());
}

#[test]
fn what_waits_for_the_store_does_not_become_too_much() {
    let here = kept();
    for number in 0..2 * MAX_TOLD {
        here.note(UNSUBSCRIBE, Some(&uri(&number.to_string())));
    }
    assert_eq!(here.saying().unwrap().messages.len(), MAX_TOLD);
    // The same again takes no more room.
    assert!(here.note(SUBSCRIBE, Some(&uri("0"))));
    let saying = here.saying().unwrap();
    assert_eq!(saying.messages.len(), MAX_TOLD);
    assert!(here.note(UNSUBSCRIBE, Some(&uri("0"))));
    here.said(&saying, None);
    assert_eq!(here.saying().unwrap().messages.len(), 1);
}
