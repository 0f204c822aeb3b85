//! The tables of the database, and how older formats become the present one.
//!
//! A format is never changed once it was released: a new one is another step. Each step is a list of
//! texts, one for each thing that is kept, in files of their own below `schema/`. Every name says its
//! schema, because nobody knows what else the user of a database has in its path.

use tokio_postgres::Client;

use crate::error::DatabaseError;
use crate::limits::MIGRATION_TIMEOUT;

/// What is tried here, for messages.
pub(crate) const ACTION: &str = "make its tables";

/// One step for each format: the first makes format 1 of nothing.
pub(crate) const FORMATS: &[&[&str]] = &[FORMAT_1];

const FORMAT_1: &[&str] = &[
    include_str!("schema/audit.sql"),
    include_str!("schema/conversations.sql"),
    include_str!("schema/sessions.sql"),
    include_str!("schema/tokens.sql"),
];

/// Whoever changes tables holds this lock: `coco` and a number. Others are in the space of two numbers,
/// so they cannot be the same as this one.
const MIGRATION_LOCK: i64 = 0x636F_636F_0000_0001;

/// What texts are kept in: any other cannot keep all of them.
const ENCODING: &str = "UTF8";

/// Where the number of the format is kept.
const FORMAT_TABLE: &str = "
CREATE TABLE cocode.format (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    number bigint NOT NULL
);
INSERT INTO cocode.format (number) VALUES (0);
";

/// Brings the tables to the format that the last of `formats` makes, at once or not at all. Processes
/// that do this at the same time wait for each other.
pub(crate) async fn migrate(
    client: &mut Client,
    formats: &[&[&str]],
    place: &str,
) -> Result<(), DatabaseError> {
    let failed = |error| DatabaseError::doing(place, ACTION, &error);
    let known = i64::try_from(formats.len()).unwrap_or(i64::MAX);
    if format(client, known, place).await? == Some(known) {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failed)?;
    // This may take longer than other work.
    let limit = MIGRATION_TIMEOUT.as_millis();
    let lock = format!(
        "SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {limit};
         SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
    );
    transaction.batch_execute(&lock).await.map_err(failed)?;
    // Somebody else may have done it in between.
    let found = format(transaction.client(), known, place).await?;
    if found.is_none() {
        // One that is there already may be all that we are allowed to have.
        let query = "SELECT to_regnamespace('cocode') IS NOT NULL";
        let row = transaction.query_one(query, &[]).await.map_err(failed)?;
        let is_there: bool = row.get(0);
        if !is_there {
            let schema = "CREATE SCHEMA cocode";
            transaction.batch_execute(schema).await.map_err(failed)?;
        }
        transaction
            .batch_execute(FORMAT_TABLE)
            .await
            .map_err(failed)?;
    }
    let done = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    let missing: Vec<String> = formats.iter().skip(done).map(|one| one.concat()).collect();
    transaction
        .batch_execute(&missing.concat())
        .await
        .map_err(failed)?;
    transaction
        .execute("UPDATE cocode.format SET number = $1", &[&known])
        .await
        .map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// The format of the tables, unless they are not for us; `None` if there are none.
async fn format(client: &Client, known: i64, place: &str) -> Result<Option<i64>, DatabaseError> {
    let failed = |error| DatabaseError::doing(place, ACTION, &error);
    let foreign = || DatabaseError::Foreign {
        place: place.to_owned(),
    };
    let query = "
        SELECT current_setting('server_encoding'),
               to_regclass('cocode.format') IS NOT NULL,
               EXISTS (
                   SELECT FROM pg_catalog.pg_class AS class
                   JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
                   WHERE space.nspname = 'cocode'
               )";
    let row = client.query_one(query, &[]).await.map_err(failed)?;
    let (encoding, has_format, has_anything): (String, bool, bool) =
        (row.get(0), row.get(1), row.get(2));
    if encoding != ENCODING {
        return Err(DatabaseError::Encoding {
            place: place.to_owned(),
            encoding,
        });
    }
    if !has_format {
        return if has_anything {
            Err(foreign())
        } else {
            Ok(None)
        };
    }
    let row = client
        .query_opt("SELECT number FROM cocode.format", &[])
        .await
        .map_err(failed)?;
    let found: i64 = row.ok_or_else(foreign)?.get(0);
    if found > known {
        return Err(DatabaseError::Newer {
            place: place.to_owned(),
            found,
            known,
        });
    }
    Ok(Some(found))
}
