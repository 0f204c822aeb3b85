//! What the file of tokens holds, and its JSON. What it does not know it keeps: a later version of the
//! same format may have put it there.

use std::collections::HashSet;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{MAX_TOKENS, TokenRecord, TokenStoreError};
use crate::date;

/// The format that is written, and the newest that is read.
const VERSION: u64 = 1;

/// The content of the file.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Content {
    version: u64,
    #[serde(default)]
    tokens: Vec<Kept>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// One token as it is written.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Kept {
    name: String,
    hash: String,
    #[serde(default)]
    admin: bool,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_used: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            version: VERSION,
            tokens: Vec::new(),
            others: Map::new(),
        }
    }
}

impl Content {
    /// Reads a file. What is wrong is said by its place, without what is there.
    pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, TokenStoreError> {
        let damaged = |error: &serde_json::Error| {
            let (line, column) = (error.line(), error.column());
            let why = format!("they cannot be read at line {line}, column {column}");
            damaged(path, why)
        };
        // The version first: what else a newer file holds may look different.
        let Version { version } = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
        if version > VERSION {
            return Err(TokenStoreError::Newer {
                place: place(path),
                found: version,
                known: VERSION,
            });
        }
        serde_json::from_slice(bytes).map_err(|error| damaged(&error))
    }

    /// As the file is written.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The tokens, by their names. One that makes no sense makes the file unusable: whether it was to
    /// let somebody in cannot be told.
    pub(super) fn records(&self, path: &Path) -> Result<Vec<TokenRecord>, TokenStoreError> {
        if self.tokens.len() > MAX_TOKENS {
            let why = format!("there are more than {MAX_TOKENS}");
            return Err(damaged(path, why));
        }
        let mut records = Vec::with_capacity(self.tokens.len());
        for (index, kept) in self.tokens.iter().enumerate() {
            let record = kept.record().map_err(|why| {
                damaged(path, format!("in the token number {}, {why}", index + 1))
            })?;
            records.push(record);
        }
        let mut hashes = HashSet::new();
        if !records.iter().all(|record| hashes.insert(record.hash)) {
            return Err(damaged(path, "two tokens have one hash".to_owned()));
        }
        records.sort_by(|left, right| left.name.cmp(&right.name));
        let twice = records
            .array_windows()
            .find(|[left, right]| left.name == right.name);
        if let Some([token, _]) = twice {
            return Err(damaged(path, format!("`{}` is there twice", token.name)));
        }
        Ok(records)
    }

    /// Makes the tokens these. What else is known of those that stay is kept.
    pub(super) fn set(&mut self, records: &[TokenRecord]) {
        let mut before = std::mem::take(&mut self.tokens);
        self.tokens = records
            .iter()
            .map(|record| {
                let name = record.name.as_str();
                let same = before.iter_mut().find(|kept| kept.name == name);
                Kept::of(record, same.map(|kept| std::mem::take(&mut kept.others)))
            })
            .collect();
    }
}

impl Kept {
    fn of(record: &TokenRecord, others: Option<Map<String, Value>>) -> Self {
        let TokenRecord {
            name,
            hash,
            is_admin,
            created,
            expires,
            last_used,
        } = record;
        Self {
            name: name.as_str().to_owned(),
            hash: hash.to_string(),
            admin: *is_admin,
            created: date::format(*created),
            expires: expires.map(date::format),
            last_used: last_used.map(date::format),
            others: others.unwrap_or_default(),
        }
    }

    fn record(&self) -> Result<TokenRecord, String> {
        let time = |key: &str, text: &str| -> Result<SystemTime, String> {
            date::parse(text)
                .ok_or_else(|| format!("`{key}` is no time such as 2026-11-17T08:30:00.000Z"))
        };
        let optional = |key: &str, text: &Option<String>| {
            let time = text.as_deref().map(|text| time(key, text));
            time.transpose()
        };
        Ok(TokenRecord {
            name: self
                .name
                .parse()
                .map_err(|error| format!("`name` makes no sense: {error}"))?,
            hash: self
                .hash
                .parse()
                .map_err(|error| format!("`hash` makes no sense: {error}"))?,
            is_admin: self.admin,
            created: time("created", &self.created)?,
            expires: optional("expires", &self.expires)?,
            last_used: optional("last_used", &self.last_used)?,
        })
    }
}

fn damaged(path: &Path, why: String) -> TokenStoreError {
    TokenStoreError::Damaged {
        place: place(path),
        why,
    }
}

/// How messages name the file.
pub(super) fn place(path: &Path) -> String {
    format!("`{}`", path.display())
}
