//! Formats are brought to the present one, at once or not at all.

use rusqlite::Connection;

use super::{APPLICATION, STEPS, Unfit, migrate};
use crate::store::database::Trouble;

const FIRST: &str = "CREATE TABLE t (a) STRICT";
const FIRST_RIGHT: &str = "CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (1)";
const SECOND: &str = "ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 5";

fn pragma(connection: &Connection, name: &str) -> i64 {
    connection
        .pragma_query_value(None, name, |row| row.get(0))
        .unwrap()
}

#[test]
fn an_empty_file_gets_all_steps() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, STEPS).unwrap();
    assert_eq!(pragma(&connection, "user_version"), 1);
    assert_eq!(pragma(&connection, "application_id"), APPLICATION);
    migrate(&mut connection, STEPS).unwrap();
}

#[test]
fn an_older_file_gets_the_steps_that_it_lacks_and_keeps_what_is_in_it() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &[FIRST_RIGHT]).unwrap();
    migrate(&mut connection, &[FIRST_RIGHT, SECOND]).unwrap();
    let row: (i64, i64) = connection
        .query_row("SELECT a, b FROM t", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(row, (1, 5));
    assert_eq!(pragma(&connection, "user_version"), 2);
}

#[test]
fn a_step_that_fails_leaves_the_file_as_it_was() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &[FIRST_RIGHT]).unwrap();
    let failed = migrate(&mut connection, &[FIRST_RIGHT, SECOND, FIRST]);
    assert!(matches!(failed, Err(Trouble::Sql(_))), "{failed:?}");
    assert_eq!(pragma(&connection, "user_version"), 1);
    let columns: i64 = connection
        .query_row("SELECT count(*) FROM pragma_table_info('t')", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(columns, 1);
}

#[test]
fn newer_files_and_those_of_others_are_told_apart() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &[FIRST_RIGHT, SECOND]).unwrap();
    let newer = migrate(&mut connection, &[FIRST_RIGHT]);
    assert!(matches!(
        newer,
        Err(Trouble::Unfit(Unfit::Newer { found: 2, known: 1 }))
    ));
    for theirs in [
        "PRAGMA application_id = 5",
        "PRAGMA user_version = 1",
        "CREATE TABLE t (x)",
    ] {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(theirs).unwrap();
        let foreign = migrate(&mut connection, STEPS);
        assert!(
            matches!(foreign, Err(Trouble::Unfit(Unfit::Foreign))),
            "{theirs}: {foreign:?}"
        );
    }
}
