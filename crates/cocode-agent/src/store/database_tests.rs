//! How a file is opened, and what its errors are told as.

use std::time::Duration;

use rusqlite::{Error, ffi};

use super::{Database, Safety, Trouble};
use crate::store::{StoreError, sqlite_file};

fn pragma(database: &Database, name: &str) -> String {
    let connection = database.connection();
    let value = connection.pragma_query_value(None, name, |row| row.get(0));
    match value.unwrap() {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_file_is_opened_with_what_the_promises_rest_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/c.db");
    for _ in 0..2 {
        let mut database = Database::open(&path).unwrap();
        assert_eq!(pragma(&database, "journal_mode"), "wal");
        assert_eq!(pragma(&database, "synchronous"), "2");
        assert_eq!(pragma(&database, "auto_vacuum"), "2");
        assert_eq!(pragma(&database, "foreign_keys"), "1");
        assert_eq!(pragma(&database, "secure_delete"), "2");
        for (safety, level) in [(Safety::Crash, "1"), (Safety::PowerCut, "2")] {
            drop(database.write(safety).unwrap());
            assert_eq!(pragma(&database, "synchronous"), level);
        }
    }
}

#[test]
fn two_connections_of_one_process_do_not_free_the_locks_of_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.db");
    let mut first = Database::open(&path).unwrap();
    let (writing, _locks) = first.write(Safety::Crash).unwrap();
    // Opening it again must not let others in that wait for the first.
    let second = Database::open(&path).unwrap();
    second
        .connection()
        .busy_timeout(Duration::from_millis(1))
        .unwrap();
    let begun = second.connection().execute_batch("BEGIN IMMEDIATE");
    assert!(sqlite_file::is_busy(&begun.unwrap_err()));
    drop(writing);
}

#[test]
fn errors_say_what_to_do() {
    let of = |code| {
        let error = Error::SqliteFailure(ffi::Error::new(code), None);
        Trouble::from(error).told("/x/c.db")
    };
    for (code, expected) in [
        (ffi::SQLITE_CORRUPT, "sqlite3 /x/c.db .recover"),
        (ffi::SQLITE_NOTADB, "move it away"),
        (ffi::SQLITE_BUSY, "try again"),
        (ffi::SQLITE_FULL, "make room"),
        (ffi::SQLITE_READONLY, "who may write"),
        (ffi::SQLITE_CANTOPEN, "who may write"),
    ] {
        let error = of(code);
        assert!(matches!(error, StoreError::Broken { .. }));
        let text = error.to_string();
        assert!(text.contains("/x/c.db"), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
