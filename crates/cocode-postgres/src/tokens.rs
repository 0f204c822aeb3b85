//! Tokens of all gateways that share a database.

use std::time::SystemTime;

use cocode_access::{
    MAX_TOKENS, PrincipalName, TokenHash, TokenRecord, TokenStamp, TokenStore, TokenStoreError,
    Work,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::error::DatabaseError;
use crate::times::{seconds, time};

const LISTING: &str = "list the tokens";
const ADDING: &str = "add a token";
const REVOKING: &str = "revoke a token";
const NOTING: &str = "note when tokens were used";
const LOOKING: &str = "see whether tokens have changed";

/// Who adds or revokes a token holds this row, so that they are counted by one at a time, and before
/// anything else, so that no two of them wait for each other: every change takes it in the end.
const HOLD: &str = "SELECT FROM cocode.token_changes FOR UPDATE";

/// Rows are held in one order, so that two who note the same tokens never wait for each other.
const NOTE: &str = "
    WITH used AS (
        SELECT hash, max(at) AS at FROM unnest($1::bytea[], $2::bigint[]) AS given (hash, at) GROUP BY hash
    ), held AS (
        SELECT tokens.hash FROM cocode.tokens JOIN used USING (hash) ORDER BY tokens.hash FOR UPDATE OF tokens
    )
    UPDATE cocode.tokens SET last_used = used.at
    FROM used JOIN held USING (hash)
    WHERE tokens.hash = used.hash AND (tokens.last_used IS NULL OR tokens.last_used < used.at)";

/// Keeps tokens in a database.
#[derive(Clone, Debug)]
pub struct PostgresTokenStore {
    database: Database,
}

impl PostgresTokenStore {
    /// Keeps tokens in this database. Nobody is contacted yet.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn add_now(
        &self,
        token: &TokenRecord,
    ) -> Result<Result<(), TokenStoreError>, DatabaseError> {
        let TokenRecord {
            name,
            hash,
            is_admin,
            created,
            expires,
            last_used,
        } = token;
        let failed = self.database.failed(ADDING);
        let mut connection = self.database.connection().await?;
        let transaction = connection.transaction().await.map_err(&failed)?;
        transaction.batch_execute(HOLD).await.map_err(&failed)?;
        let count = "SELECT count(*) FROM cocode.tokens";
        let count = transaction.query_one(count, &[]).await.map_err(&failed)?;
        let added = if usize::try_from(count.get::<_, i64>(0)).is_ok_and(|count| count < MAX_TOKENS)
        {
            let insert = "
                INSERT INTO cocode.tokens (name, hash, is_admin, created, expires, last_used)
                VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
            let n_added = transaction
                .execute_typed(
                    insert,
                    &[
                        (&name.as_str(), Type::TEXT),
                        (&hash.as_bytes().as_slice(), Type::BYTEA),
                        (is_admin, Type::BOOL),
                        (&seconds(*created), Type::INT8),
                        (&expires.map(seconds), Type::INT8),
                        (&last_used.map(seconds), Type::INT8),
                    ],
                )
                .await
                .map_err(&failed)?;
            match n_added {
                0 => Err(TokenStoreError::Taken(name.clone())),
                _ => Ok(()),
            }
        } else {
            Err(TokenStoreError::TooMany)
        };
        transaction.commit().await.map_err(&failed)?;
        connection.give_back();
        Ok(added)
    }

    async fn rows(&self) -> Result<Vec<Row>, DatabaseError> {
        let connection = self.database.connection().await?;
        let query = "
            SELECT name, hash, is_admin, created, expires, last_used FROM cocode.tokens
            ORDER BY name LIMIT $1";
        // One more than there may be shows that there are too many.
        let limit = i64::try_from(MAX_TOKENS).unwrap_or(i64::MAX) + 1;
        let rows = connection
            .query_typed(query, &[(&limit, Type::INT8)])
            .await
            .map_err(self.database.failed(LISTING))?;
        connection.give_back();
        Ok(rows)
    }

    async fn list_now(&self) -> Result<Vec<TokenRecord>, TokenStoreError> {
        let rows = self.database.timely(LISTING, self.rows()).await;
        let rows = rows.map_err(|error| self.told(&error, "read"))?;
        if rows.len() > MAX_TOKENS {
            return Err(self.damaged(format!("there are more than {MAX_TOKENS}")));
        }
        rows.iter().map(|row| self.record(row)).collect()
    }

    async fn remove(&self, name: &PrincipalName) -> Result<Option<Row>, DatabaseError> {
        let failed = self.database.failed(REVOKING);
        let mut connection = self.database.connection().await?;
        let transaction = connection.transaction().await.map_err(&failed)?;
        transaction.batch_execute(HOLD).await.map_err(&failed)?;
        let delete = "
            DELETE FROM cocode.tokens WHERE name = $1
            RETURNING name, hash, is_admin, created, expires, last_used";
        let rows = transaction
            .query_typed(delete, &[(&name.as_str(), Type::TEXT)])
            .await
            .map_err(&failed)?;
        transaction.commit().await.map_err(&failed)?;
        connection.give_back();
        Ok(rows.into_iter().next())
    }

    async fn note_now(&self, used: &[(TokenHash, SystemTime)]) -> Result<(), DatabaseError> {
        let hashes: Vec<&[u8]> = used
            .iter()
            .map(|(hash, _)| hash.as_bytes().as_slice())
            .collect();
        let times: Vec<i64> = used.iter().map(|(_, at)| seconds(*at)).collect();
        let connection = self.database.connection().await?;
        connection
            .execute_typed(
                NOTE,
                &[(&hashes, Type::BYTEA_ARRAY), (&times, Type::INT8_ARRAY)],
            )
            .await
            .map_err(self.database.failed(NOTING))?;
        connection.give_back();
        Ok(())
    }

    async fn mark(&self) -> Result<Option<String>, DatabaseError> {
        let connection = self.database.connection().await?;
        let query = "SELECT mark::text FROM cocode.token_changes";
        let rows = connection
            .query_typed(query, &[])
            .await
            .map_err(self.database.failed(LOOKING))?;
        connection.give_back();
        Ok(rows.first().map(|row| row.get(0)))
    }

    fn record(&self, row: &Row) -> Result<TokenRecord, TokenStoreError> {
        let name: String = row.get(0);
        let damaged = |what: &str| self.damaged(format!("{what} of one of them makes no sense"));
        let at = |seconds: i64, what: &str| time(seconds).ok_or_else(|| damaged(what));
        let hash = row.get::<_, &[u8]>(1).try_into();
        let optional = |index: usize, what: &str| {
            let seconds: Option<i64> = row.get(index);
            seconds.map(|seconds| at(seconds, what)).transpose()
        };
        Ok(TokenRecord {
            name: name.parse().map_err(|_invalid| damaged("the name"))?,
            hash: TokenHash::from_bytes(hash.map_err(|_length| damaged("the hash"))?),
            is_admin: row.get(2),
            created: at(row.get(3), "the time of making")?,
            expires: optional(4, "the time of expiry")?,
            last_used: optional(5, "the time of use")?,
        })
    }

    fn damaged(&self, why: String) -> TokenStoreError {
        TokenStoreError::Damaged {
            place: self.database.place().to_owned(),
            why,
        }
    }

    fn told(&self, error: &DatabaseError, action: &'static str) -> TokenStoreError {
        match error {
            DatabaseError::Newer {
                place,
                found,
                known,
            } => TokenStoreError::Newer {
                place: place.clone(),
                found: found.unsigned_abs(),
                known: known.unsigned_abs(),
            },
            error => TokenStoreError::Unusable {
                place: self.database.place().to_owned(),
                action,
                why: error.to_string(),
            },
        }
    }
}

impl TokenStore for PostgresTokenStore {
    fn add<'a>(&'a self, token: &'a TokenRecord) -> Work<'a, Result<(), TokenStoreError>> {
        Box::pin(async move {
            let added = self.database.timely(ADDING, self.add_now(token)).await;
            added.map_err(|error| self.told(&error, "changed"))?
        })
    }

    fn list(&self) -> Work<'_, Result<Vec<TokenRecord>, TokenStoreError>> {
        Box::pin(self.list_now())
    }

    fn revoke<'a>(
        &'a self,
        name: &'a PrincipalName,
    ) -> Work<'a, Result<TokenRecord, TokenStoreError>> {
        Box::pin(async move {
            let removed = self.database.timely(REVOKING, self.remove(name)).await;
            match removed.map_err(|error| self.told(&error, "changed"))? {
                Some(row) => self.record(&row),
                None => Err(TokenStoreError::Unknown(name.clone())),
            }
        })
    }

    fn note_use<'a>(
        &'a self,
        used: &'a [(TokenHash, SystemTime)],
    ) -> Work<'a, Result<(), TokenStoreError>> {
        Box::pin(async move {
            let noted = self.database.timely(NOTING, self.note_now(used)).await;
            noted.map_err(|error| self.told(&error, "changed"))
        })
    }

    fn stamp(&self) -> Work<'_, Result<TokenStamp, TokenStoreError>> {
        Box::pin(async move {
            let mark = self.database.timely(LOOKING, self.mark()).await;
            let mark = mark.map_err(|error| self.told(&error, "read"))?;
            let mark = mark.ok_or_else(|| self.damaged("their mark is gone".to_owned()))?;
            Ok(TokenStamp::new(mark))
        })
    }
}
