//! Locks as files.

use std::fs::{self, File};

use super::{ConversationId, Locks};
use crate::store::StoreError;
use crate::store::database::Trouble;

fn id() -> ConversationId {
    ConversationId::random().unwrap()
}

#[test]
fn a_file_that_a_dead_holder_left_is_no_hold_and_is_removed_by_who_looks() {
    let directory = tempfile::tempdir().unwrap();
    let locks = Locks::in_directory(directory.path().join("locks"));
    let id = id();
    assert!(!locks.is_held(&id).unwrap());
    drop(locks.take(&id).unwrap());
    let left = directory.path().join(format!("locks/{id}.lock"));
    assert!(!left.exists());
    File::create(&left).unwrap();
    assert!(locks.is_in_question(&id));
    assert!(!locks.is_held(&id).unwrap());
    assert!(!left.exists());
    File::create(&left).unwrap();
    let hold = locks.take(&id).unwrap();
    assert!(locks.is_held(&id).unwrap());
    assert!(matches!(
        locks.take(&id),
        Err(Trouble::Told(StoreError::Held(_)))
    ));
    drop(hold);
    assert!(!locks.is_held(&id).unwrap());
}

#[test]
fn who_lets_go_of_a_removed_file_leaves_that_of_the_next_alone() {
    let directory = tempfile::tempdir().unwrap();
    let locks = Locks::in_directory(directory.path().to_owned());
    let id = id();
    let first = locks.take(&id).unwrap();
    let file = directory.path().join(format!("{id}.lock"));
    fs::remove_file(&file).unwrap();
    let second = locks.take(&id).unwrap();
    assert_ne!(first.token(), second.token());
    drop(first);
    assert!(file.exists());
    assert!(locks.is_held(&id).unwrap());
    drop(second);
    assert!(!file.exists());
}
