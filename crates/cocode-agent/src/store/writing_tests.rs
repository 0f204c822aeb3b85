//! What is written through which lease.

use super::{Beginning, Entry, Through, append, begin, cut_title, draft, lease};
use crate::record::{Record, Settings};
use crate::store::database::{Database, Trouble};
use crate::store::{NewConversation, StoreError};

fn beginning() -> Beginning {
    Beginning::new(NewConversation {
        owner: "ann".to_owned(),
        settings: Settings::default(),
        title: String::new(),
    })
    .unwrap()
}

#[test]
fn work_that_waits_is_not_done_once_its_lease_is_gone() {
    let mut database = Database::in_memory().unwrap();
    let id = begin(&mut database, beginning()).unwrap();
    let held = lease(&mut database, id.clone()).unwrap();
    let waiting = Through::new(&held);
    let also_waiting = Through::new(&held);
    drop(held);
    let appended = append(&mut database, waiting, Entry::new(&Record::Closed).unwrap());
    let lost = |trouble| matches!(trouble, Trouble::Told(StoreError::Lost(which)) if which == id);
    assert!(lost(appended.unwrap_err()));
    assert!(lost(draft(&mut database, also_waiting, "[]").unwrap_err()));
}

#[test]
fn titles_are_cut_between_characters() {
    assert_eq!(cut_title(""), "");
    assert_eq!(cut_title(" \n "), "");
    assert_eq!(cut_title("one\r\ntwo"), "one two");
    assert_eq!(cut_title(&"é".repeat(201)).chars().count(), 200);
}

#[test]
fn a_record_is_stored_under_the_word_that_is_in_it() {
    // Every kind is in the list of those that are known, and no other.
    let mut kinds = Record::KINDS.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), Record::KINDS.len());
    let unknown = serde_json::from_str::<Record>(r#"{"record":"no such thing"}"#);
    let text = unknown.unwrap_err().to_string();
    let named: Vec<_> = text.split('`').skip(3).step_by(2).collect();
    assert_eq!(named, Record::KINDS, "{text}");
    assert_eq!(Record::Closed.kind(), "closed");
}
