//! The audit log of all gateways that share a database: one chain of lines, whoever writes.
//!
//! Who appends holds the row of the head, so lines follow each other. When the answer to a commit is
//! lost, nobody knows whether the lines are there. So each process numbers its batches and writes the
//! number in the same transaction: a batch that is tried again is found if it was written. The row of the
//! head is held for that, too: as long as the lost transaction may still be done, it holds it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cocode_access::{
    AuditEntry, AuditError, AuditEvent, AuditHash, AuditHead, AuditLedger, AuditLine, Finding,
    MAX_AUDIT_LINE_BYTES, Place, Verifier, VerifyReport, Work,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Semaphore;
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, Row, Transaction};

use crate::database::Database;
use crate::error::DatabaseError;

const WRITING: &str = "write the audit log";
const READING: &str = "read the audit log";

/// What findings call the lines.
const LINES: &str = "cocode.audit_lines";
/// What findings call the row of the head.
const HEAD: &str = "cocode.audit_head";

/// Lines that can be asked for at once.
const MAX_RECENT: usize = 1_000;
/// Lines that are read at once for verifying.
const PAGE: i64 = 200;
/// Lines that are removed at once: others wait meanwhile.
const MAX_REMOVED: i64 = 10_000;
/// Interval of the search for lines that are too old.
const AGE_INTERVAL: Duration = Duration::from_mins(1);
/// A log that is too long is made shorter by this part of what may be kept, and not line by line.
const REMOVED_PART: i64 = 16;

/// How much of a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerOptions {
    /// Bytes of lines; with more, the oldest are removed.
    pub max_bytes: u64,
    /// Lines that are older are removed.
    pub max_age: Option<Duration>,
}

/// Keeps an audit log in a database.
#[derive(Debug)]
pub struct PostgresLedger {
    database: Database,
    options: LedgerOptions,
    /// Entries are appended by one at a time, in their order.
    turn: Semaphore,
    writer: Mutex<Writer>,
}

/// This process, as it is known to the others.
#[derive(Debug, Default)]
struct Writer {
    /// Drawn by lot before the first batch.
    id: Option<[u8; 16]>,
    n_batches: i64,
    /// A batch that was begun, and is not known to be written.
    doubtful: Option<Vec<AuditEntry>>,
    /// When it was last looked whether lines are too old.
    age_checked: Option<Instant>,
}

/// A batch, and whose it is.
#[derive(Clone, Copy)]
struct Batch {
    writer: [u8; 16],
    number: i64,
}

/// The row of the head.
struct Head {
    head: AuditHead,
    bytes: i64,
}

impl PostgresLedger {
    /// Keeps a log in this database. Nobody is contacted yet.
    pub fn new(database: Database, options: LedgerOptions) -> Self {
        Self {
            database,
            options,
            turn: Semaphore::new(1),
            writer: Mutex::default(),
        }
    }

    async fn append_now(&self, entries: &[AuditEntry]) -> Result<(), DatabaseError> {
        // It is never closed, and dropping it lets the next one in.
        let _turn = self.turn.acquire().await;
        let batch = self.begin(entries)?;
        let mut connection = self.database.connection().await?;
        let failed = self.database.failed(WRITING);
        let transaction = connection.transaction().await.map_err(&failed)?;
        let head = self.hold_head(&transaction).await?;
        let n_written = "SELECT batch FROM cocode.audit_writers WHERE writer = $1";
        let n_written = transaction
            .query_typed_opt(n_written, &[(&batch.writer.as_slice(), Type::BYTEA)])
            .await
            .map_err(&failed)?;
        if n_written.is_none_or(|row| row.get::<_, i64>(0) < batch.number) {
            self.write(&transaction, head, entries, batch).await?;
        }
        transaction.commit().await.map_err(&failed)?;
        connection.give_back();
        self.writer().doubtful = None;
        Ok(())
    }

    fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of this batch: the same as before, if these entries are tried again.
    fn begin(&self, entries: &[AuditEntry]) -> Result<Batch, DatabaseError> {
        let mut writer = self.writer();
        let id = match writer.id {
            Some(id) => id,
            None => *writer.id.insert(self.lot()?),
        };
        if writer.doubtful.as_deref() != Some(entries) {
            writer.n_batches = writer.n_batches.saturating_add(1);
            writer.doubtful = Some(entries.to_vec());
        }
        Ok(Batch {
            writer: id,
            number: writer.n_batches,
        })
    }

    fn lot(&self) -> Result<[u8; 16], DatabaseError> {
        let mut lot = [0; 16];
        let drawn = SystemRandom::new().fill(&mut lot);
        drawn.map_err(|_unspecified| self.wrong(WRITING, "the system gives no random numbers"))?;
        Ok(lot)
    }

    /// Takes the row of the head: whoever else appends waits.
    async fn hold_head(&self, transaction: &Transaction<'_>) -> Result<Head, DatabaseError> {
        let query = "SELECT seq, hash, bytes FROM cocode.audit_head FOR UPDATE";
        let row = transaction.query_typed_opt(query, &[]).await;
        let row = row.map_err(self.database.failed(WRITING))?;
        let head = row.as_ref().and_then(head_of);
        let (Some(row), Some(head)) = (row, head) else {
            let why = "the row of cocode.audit_head is gone or makes no sense: look at the log with \
                       `cocode audit verify`";
            return Err(self.wrong(WRITING, why));
        };
        Ok(Head {
            head,
            bytes: row.get(2),
        })
    }

    async fn write(
        &self,
        transaction: &Transaction<'_>,
        head: Head,
        entries: &[AuditEntry],
        batch: Batch,
    ) -> Result<(), DatabaseError> {
        let Head {
            head: mut last,
            mut bytes,
        } = head;
        let mut lines = Vec::with_capacity(entries.len() + 1);
        let mut add = |entry: &AuditEntry| {
            let line = AuditLine::after(last, entry);
            last = line.head();
            bytes += length(&line);
            lines.push(line);
        };
        entries.iter().for_each(&mut add);
        let removal = self.removal(transaction, head.bytes).await?;
        if let Some(removal) = &removal {
            add(&AuditEntry::of_log(AuditEvent::Retention {
                file: LINES.to_owned(),
                through: removal.through,
            }));
            bytes -= removal.bytes;
        }
        self.insert(transaction, &lines).await?;
        let failed = self.database.failed(WRITING);
        let removed = removal.map(|removal| number(removal.through.seq));
        let update = "
            UPDATE cocode.audit_head
            SET seq = $1, hash = $2, bytes = $3, removed = coalesce($4, removed)";
        transaction
            .execute_typed(
                update,
                &[
                    (&number(last.seq), Type::INT8),
                    (&last.hash.as_bytes().as_slice(), Type::BYTEA),
                    (&bytes, Type::INT8),
                    (&removed, Type::INT8),
                ],
            )
            .await
            .map_err(&failed)?;
        if let Some(through) = removed {
            let delete = "DELETE FROM cocode.audit_lines WHERE seq <= $1";
            transaction
                .execute_typed(delete, &[(&through, Type::INT8)])
                .await
                .map_err(&failed)?;
        }
        self.note(transaction, batch).await
    }

    async fn insert(
        &self,
        transaction: &Transaction<'_>,
        lines: &[AuditLine],
    ) -> Result<(), DatabaseError> {
        let numbers: Vec<i64> = lines.iter().map(|line| number(line.head().seq)).collect();
        let texts: Vec<&str> = lines.iter().map(AuditLine::text).collect();
        let insert = "
            INSERT INTO cocode.audit_lines (seq, line)
            SELECT seq, line FROM unnest($1::bigint[], $2::text[]) AS given (seq, line)";
        transaction
            .execute_typed(
                insert,
                &[(&numbers, Type::INT8_ARRAY), (&texts, Type::TEXT_ARRAY)],
            )
            .await
            .map_err(self.database.failed(WRITING))?;
        Ok(())
    }

    /// Notes that a batch is written. Processes that have written nothing for a month are forgotten.
    async fn note(&self, transaction: &Transaction<'_>, batch: Batch) -> Result<(), DatabaseError> {
        let failed = self.database.failed(WRITING);
        let upsert = "
            INSERT INTO cocode.audit_writers (writer, batch, written) VALUES ($1, $2, now())
            ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, written = excluded.written";
        transaction
            .execute_typed(
                upsert,
                &[
                    (&batch.writer.as_slice(), Type::BYTEA),
                    (&batch.number, Type::INT8),
                ],
            )
            .await
            .map_err(&failed)?;
        if batch.number == 1 {
            let delete =
                "DELETE FROM cocode.audit_writers WHERE written < now() - interval '30 days'";
            transaction
                .execute_typed(delete, &[])
                .await
                .map_err(&failed)?;
        }
        Ok(())
    }

    /// Whether it is time to look for lines that are too old.
    fn is_age_due(&self) -> bool {
        let mut writer = self.writer();
        let is_due = writer
            .age_checked
            .is_none_or(|at| at.elapsed() >= AGE_INTERVAL);
        if is_due {
            writer.age_checked = Some(Instant::now());
        }
        is_due
    }

    /// Lines to remove from a log that is too long or has expired lines.
    async fn removal(
        &self,
        transaction: &Transaction<'_>,
        bytes: i64,
    ) -> Result<Option<Removal>, DatabaseError> {
        let kept = number(self.options.max_bytes).max(1);
        let max_age = self.options.max_age.filter(|_| self.is_age_due());
        let max_age = max_age.map(|age| age.as_secs_f64());
        let wanted = match bytes {
            bytes if bytes > kept => (bytes - kept).max(kept / REMOVED_PART),
            _ if max_age.is_some() => 0,
            _ => return Ok(None),
        };
        // The last of these stays, so that there is always one that says what was before it.
        let query = "
            WITH cutoff AS (SELECT to_char(now() AT TIME ZONE 'UTC' - $2 * interval '1 second',
                'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS at)
            SELECT seq, octet_length(line)::bigint,
                coalesce(substring(line FROM '\"at\":\"([^\"]+)\"') < cutoff.at, false)
            FROM cocode.audit_lines, cutoff ORDER BY seq LIMIT $1";
        let failed = self.database.failed(WRITING);
        let rows = transaction
            .query_typed(
                query,
                &[(&MAX_REMOVED, Type::INT8), (&max_age, Type::FLOAT8)],
            )
            .await
            .map_err(&failed)?;
        let mut removed = 0;
        let mut stays = None;
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                stays = Some(row.get::<_, i64>(0));
            }
            if (removed >= wanted && !row.get::<_, bool>(2)) || index + 1 == rows.len() {
                break;
            }
            removed += row.get::<_, i64>(1);
        }
        let Some(stays) = stays else {
            return Ok(None);
        };
        let query = "SELECT line FROM cocode.audit_lines WHERE seq = $1";
        let row = transaction
            .query_typed_one(query, &[(&stays, Type::INT8)])
            .await
            .map_err(&failed)?;
        // A line that was tampered with says nothing that can be believed. Nothing is removed then: it
        // would hide what somebody did.
        let line = AuditLine::parse(row.get(0)).filter(|line| number(line.head().seq) == stays);
        if line.is_none() {
            tracing::warn!(
                "the audit log is too long, and not what was written: nothing is removed"
            );
        }
        Ok(line.map(|line| Removal {
            through: AuditHead {
                seq: line.head().seq.saturating_sub(1),
                hash: line.previous(),
            },
            bytes: removed,
        }))
    }

    async fn recent_now(&self, limit: usize) -> Result<Vec<AuditLine>, DatabaseError> {
        let limit = i64::try_from(limit.min(MAX_RECENT)).unwrap_or(i64::MAX);
        let connection = self.database.connection().await?;
        let query = "SELECT line FROM cocode.audit_lines ORDER BY seq DESC LIMIT $1";
        let rows = connection
            .query_typed(query, &[(&limit, Type::INT8)])
            .await
            .map_err(self.database.failed(READING))?;
        connection.give_back();
        let lines = rows.iter().map(|row| row.get::<_, &str>(0));
        Ok(lines.filter_map(AuditLine::parse).collect())
    }

    /// Reads all lines as they are at one moment, a page at a time, while others go on writing.
    async fn verify_now(&self, expected: Option<AuditHead>) -> Result<VerifyReport, DatabaseError> {
        let failed = self.database.failed(READING);
        let mut connection = self.database.connection().await?;
        let transaction = connection
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start();
        let transaction = self
            .database
            .timely(READING, async { transaction.await.map_err(&failed) })
            .await?;
        let query = "SELECT seq, hash FROM cocode.audit_head";
        let looking = async {
            let row = transaction.query_typed_opt(query, &[]).await;
            row.map_err(&failed)
        };
        let row = self.database.timely(READING, looking).await?;
        let noted = row.as_ref().and_then(head_of);
        let mut verifier = Verifier::new(expected.into_iter().chain(noted));
        if noted.is_none() {
            let file = HEAD.to_owned();
            let place = Place { file, line: 1 };
            verifier.add_problem(Finding::BadHead { place });
        }
        verifier.file(LINES);
        let mut after = i64::MIN;
        while let Some(last) = self.page(&transaction, after, &mut verifier).await? {
            after = last;
        }
        let ending = async { transaction.rollback().await.map_err(&failed) };
        self.database.timely(READING, ending).await?;
        connection.give_back();
        Ok(verifier.finish())
    }

    /// Verifies the lines after this one, as many as are read at once, and gives the number of the last.
    async fn page(
        &self,
        transaction: &Transaction<'_>,
        after: i64,
        verifier: &mut Verifier,
    ) -> Result<Option<i64>, DatabaseError> {
        // More than the longest line may have is not needed to see that it is none.
        let query = "
            SELECT seq, left(line, $3) FROM cocode.audit_lines WHERE seq > $1 ORDER BY seq LIMIT $2";
        let most = i32::try_from(MAX_AUDIT_LINE_BYTES).unwrap_or(i32::MAX) + 1;
        let reading = async {
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] = [
                (&after, Type::INT8),
                (&PAGE, Type::INT8),
                (&most, Type::INT4),
            ];
            let rows = transaction.query_typed(query, &parameters).await;
            rows.map_err(self.database.failed(READING))
        };
        let rows = self.database.timely(READING, reading).await?;
        for row in &rows {
            verifier.line(row.get::<_, &str>(1).as_bytes());
        }
        Ok(rows.last().map(|row| row.get(0)))
    }

    fn wrong(&self, action: &'static str, why: &str) -> DatabaseError {
        DatabaseError::Failed {
            place: self.database.place().to_owned(),
            action,
            why: why.to_owned(),
        }
    }

    fn told(&self, error: &DatabaseError, action: &'static str) -> AuditError {
        AuditError::Unusable {
            place: self.database.place().to_owned(),
            action,
            why: error.to_string(),
        }
    }
}

/// The oldest lines, which are removed.
struct Removal {
    through: AuditHead,
    bytes: i64,
}

/// Where the chain has come to, by the first two columns of its row.
fn head_of(row: &Row) -> Option<AuditHead> {
    let hash = row.get::<_, &[u8]>(1).try_into().ok()?;
    Some(AuditHead {
        seq: u64::try_from(row.get::<_, i64>(0)).ok()?,
        hash: AuditHash::from_bytes(hash),
    })
}

fn length(line: &AuditLine) -> i64 {
    i64::try_from(line.text().len()).unwrap_or(i64::MAX)
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl AuditLedger for PostgresLedger {
    fn append<'a>(&'a self, entries: &'a [AuditEntry]) -> Work<'a, Result<(), AuditError>> {
        Box::pin(async move {
            let appended = self
                .database
                .timely(WRITING, self.append_now(entries))
                .await;
            appended.map_err(|error| self.told(&error, "written"))
        })
    }

    fn recent(&self, limit: usize) -> Work<'_, Result<Vec<AuditLine>, AuditError>> {
        Box::pin(async move {
            let recent = self.database.timely(READING, self.recent_now(limit)).await;
            recent.map_err(|error| self.told(&error, "read"))
        })
    }

    fn verify(&self, expected: Option<AuditHead>) -> Work<'_, Result<VerifyReport, AuditError>> {
        Box::pin(async move {
            let verified = self.verify_now(expected).await;
            verified.map_err(|error| self.told(&error, "read"))
        })
    }
}
