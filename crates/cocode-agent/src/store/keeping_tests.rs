//! What is made ready to be written, and read again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{cut_title, micros, stored, time_of, unstored};
use crate::record::Record;

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

#[test]
fn numbers_and_times_fit_whatever_they_are() {
    assert_eq!(unstored(stored(7)), 7);
    assert_eq!(stored(u64::MAX), i64::MAX);
    assert_eq!(unstored(-1), 0);
    let time = UNIX_EPOCH + Duration::from_micros(1_234_567);
    assert_eq!(time_of(micros(time)), time);
    assert_eq!(micros(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), 0);
}
