//! What is done in the file of sessions, each in a transaction that others have begun.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cocode_wire::serve::{
    Headcount, SessionKey, SessionMark, SessionNews, StoredSession, Whose, retold,
};
use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::Trouble;

/// How long it is remembered that something has happened.
const REMEMBERED: Duration = Duration::from_mins(2);

/// The time, in milliseconds.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    millis(now.unwrap_or_default())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What was used before this is as good as gone.
fn oldest(idle: Duration) -> i64 {
    now().saturating_sub(millis(idle))
}

/// Notes an end, or the change of that number.
fn note(file: &Transaction<'_>, key: &[u8], change: Option<i64>) -> Result<(), Trouble> {
    let mut noting =
        file.prepare("INSERT INTO events (key, is_end, version, at) VALUES (?1, ?2, ?3, ?4)")?;
    noting.execute(params![key, change.is_none(), change.unwrap_or(0), now()])?;
    Ok(())
}

pub(super) fn put(
    file: &Transaction<'_>,
    session: &StoredSession,
    headcount: &Headcount,
) -> Result<(), Trouble> {
    let has_room = headcount.take() || {
        let mut counting = file.prepare("SELECT count(*) FROM sessions")?;
        let count: i64 = counting.query_row([], |row| row.get(0))?;
        headcount.counted(usize::try_from(count).unwrap_or(usize::MAX))
    };
    let mut putting = file.prepare(
        "INSERT INTO sessions (key, guest, credential, endpoint, revision, told, version, used)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
         WHERE ?9 OR EXISTS (SELECT 1 FROM sessions WHERE key = ?1)
         ON CONFLICT (key) DO UPDATE SET guest = excluded.guest, credential = excluded.credential,
            endpoint = excluded.endpoint, revision = excluded.revision, used = excluded.used",
    )?;
    let changed = putting.execute(params![
        session.key.as_bytes(),
        session.guest,
        session.credential,
        session.endpoint,
        session.revision,
        written(&session.told),
        i64::try_from(session.version).unwrap_or(i64::MAX),
        now(),
        has_room,
    ])?;
    if changed == 0 {
        return Err(Trouble::TooMany);
    }
    Ok(())
}

pub(super) fn find(
    file: &Transaction<'_>,
    key: SessionKey,
    idle: Duration,
) -> Result<Option<StoredSession>, Trouble> {
    let mut finding = file.prepare(
        "UPDATE sessions SET used = ?1 WHERE key = ?2 AND used >= ?3
         RETURNING guest, credential, endpoint, revision, told, version",
    )?;
    let found = finding.query_row(params![now(), key.as_bytes(), oldest(idle)], |row| {
        let told: String = row.get(4)?;
        Ok(StoredSession {
            key,
            guest: row.get(0)?,
            credential: row.get(1)?,
            endpoint: row.get(2)?,
            revision: row.get(3)?,
            told: read(&told),
            version: row.get::<_, i64>(5)?.unsigned_abs(),
        })
    });
    Ok(found.optional()?)
}

/// Puts what a client has said to what is kept. Nobody else writes meanwhile.
pub(super) fn tell(
    file: &Transaction<'_>,
    key: SessionKey,
    said: &[Bytes],
) -> Result<Option<u64>, Trouble> {
    let key = key.as_bytes();
    let kept = file
        .prepare("SELECT told, version FROM sessions WHERE key = ?1")?
        .query_row([key], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        });
    let Some((told, version)) = kept.optional()? else {
        return Ok(None);
    };
    let Some(told) = retold(&read(&told), said) else {
        return Ok(Some(version.unsigned_abs()));
    };
    let version = version.saturating_add(1);
    file.execute(
        "UPDATE sessions SET told = ?1, version = ?2 WHERE key = ?3",
        params![written(&told), version, key],
    )?;
    note(file, key, Some(version))?;
    Ok(Some(version.unsigned_abs()))
}

pub(super) fn touch(
    file: &Transaction<'_>,
    keys: &[SessionKey],
    idle: Duration,
) -> Result<Vec<SessionKey>, Trouble> {
    let mut touching =
        file.prepare("UPDATE sessions SET used = ?1 WHERE key = ?2 AND used >= ?3")?;
    let mut gone = Vec::new();
    for key in keys {
        if touching.execute(params![now(), key.as_bytes(), oldest(idle)])? == 0 {
            gone.push(*key);
        }
    }
    Ok(gone)
}

pub(super) fn remove(file: &Transaction<'_>, keys: &[SessionKey]) -> Result<(), Trouble> {
    let mut removing = file.prepare("DELETE FROM sessions WHERE key = ?1")?;
    for key in keys {
        if removing.execute([key.as_bytes()])? > 0 {
            note(file, key.as_bytes(), None)?;
        }
    }
    Ok(())
}

pub(super) fn remove_of(file: &Transaction<'_>, whose: &Whose) -> Result<(), Trouble> {
    let (guest, credential) = match whose {
        Whose::Guest(guest) => (Some(guest), None),
        Whose::Credential { guest, credential } => (Some(guest), Some(credential)),
        Whose::Strangers => (None, None),
    };
    let mut removing = file.prepare(
        "DELETE FROM sessions WHERE guest IS ?1 AND (?2 IS NULL OR credential = ?2) RETURNING key",
    )?;
    let keys = removing.query_map(params![guest, credential], |row| row.get::<_, Vec<u8>>(0))?;
    let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
    for key in keys {
        note(file, &key, None)?;
    }
    Ok(())
}

pub(super) fn remove_idle(file: &Transaction<'_>, idle: Duration) -> Result<(), Trouble> {
    file.execute("DELETE FROM sessions WHERE used < ?1", [oldest(idle)])?;
    file.execute("DELETE FROM events WHERE at < ?1", [oldest(REMEMBERED)])?;
    Ok(())
}

pub(super) fn news(file: &Transaction<'_>, mark: Option<i64>) -> Result<SessionNews, Trouble> {
    let last = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'";
    let last: i64 = file.prepare(last)?.query_row([], |row| row.get(0))?;
    let mut news = SessionNews {
        mark: SessionMark::new(last.to_be_bytes()),
        ..SessionNews::default()
    };
    let Some(mark) = mark.filter(|mark| *mark != last) else {
        return Ok(news);
    };
    let mut asking = file.prepare(
        "SELECT key, is_end, max(version) FROM events WHERE number > ?1 GROUP BY key, is_end",
    )?;
    let mut rows = asking.query([mark])?;
    while let Some(row) = rows.next()? {
        let Some(key) = key_of(row)? else {
            continue;
        };
        if row.get(1)? {
            news.ended.push(key);
        } else {
            news.retold
                .push((key, row.get::<_, i64>(2)?.unsigned_abs()));
        }
    }
    Ok(news)
}

fn key_of(row: &Row<'_>) -> Result<Option<SessionKey>, Trouble> {
    let bytes: Vec<u8> = row.get(0)?;
    let bytes = <[u8; 32]>::try_from(bytes).ok();
    Ok(bytes.map(SessionKey::from_bytes))
}

/// Messages as one text: a list of strings.
fn written(told: &[Bytes]) -> String {
    let texts = told.iter().map(|text| String::from_utf8_lossy(text));
    let texts: Vec<_> = texts.collect();
    serde_json::json!(texts).to_string()
}

/// The messages in a text. A text that is none has none, and makes no session.
fn read(told: &str) -> Vec<Bytes> {
    let texts: Vec<String> = serde_json::from_str(told).unwrap_or_default();
    texts.into_iter().map(Bytes::from).collect()
}
