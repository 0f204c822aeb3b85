//! What every store of conversations does alike, wherever it keeps them: what is made ready to be
//! written, and what is made of what was read. For those who write a store.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::{ConversationId, NewConversation, StoreError, Unread};
pub use super::{Hold, random_bytes};
use crate::content::Block;
use crate::model::Usage;
use crate::record::{Record, Settings};

/// One record, one draft or the settings of a conversation, as JSON. Images are the largest that is in them.
pub const MAX_RECORD_BYTES: usize = 16 * 1024 * 1024;
/// All records of a conversation, as JSON: it is read as a whole.
pub const MAX_CONVERSATION_BYTES: u64 = 512 * 1024 * 1024;
/// What is kept of a title, in characters.
pub const MAX_TITLE_CHARACTERS: usize = 200;
/// The longest name of an owner, in bytes.
pub const MAX_OWNER_BYTES: usize = 1024;
/// A list has no more than so many conversations, whatever was asked for.
pub const MAX_LISTED: usize = 1000;
/// The kinds of records that this version knows: nobody goes on with a conversation that has others.
pub const KNOWN_KINDS: &[&str] = &Record::KINDS;

/// A conversation that begins, as it is written.
#[derive(Debug)]
pub struct Beginning {
    /// Its name, made for it.
    pub id: ConversationId,
    /// Whose it is.
    pub owner: String,
    /// What it is about, on one short line.
    pub title: String,
    /// Where it works, as [`path_bytes`] has it.
    pub cwd: Vec<u8>,
    /// The settings, as JSON.
    pub settings: String,
}

/// A record, as it is written.
#[derive(Debug)]
pub struct Entry {
    /// What it calls itself.
    pub kind: &'static str,
    /// All of it.
    pub json: String,
    /// What it changes in lists.
    pub sums: Sums,
}

/// What a record changes in what lists say of the conversation.
#[derive(Debug, Default, PartialEq)]
pub struct Sums {
    /// Turns that begin with it.
    pub turns: u64,
    /// What it took.
    pub usage: Usage,
    /// What it cost; a number.
    pub cost: f64,
    /// Whether nobody can go on after it.
    pub is_closed: bool,
    /// Where the conversation works from here on, if somewhere else.
    pub cwd: Option<Vec<u8>>,
}

/// The records of a conversation, as they are read one by one.
#[derive(Debug, Default)]
pub struct Records {
    /// Those that are understood.
    pub records: Vec<(u64, Record)>,
    /// Those that are not.
    pub unread: Vec<Unread>,
}

impl Beginning {
    /// Makes it ready, with a new name, if it can be stored.
    pub fn new(new: NewConversation) -> Result<Self, StoreError> {
        let NewConversation {
            owner,
            settings,
            title,
        } = new;
        let no_name = |why| StoreError::NotStorable {
            what: "the owner of a conversation",
            why,
        };
        if owner.len() > MAX_OWNER_BYTES {
            let length = owner.len();
            return Err(no_name(format!(
                "the name has {length} bytes, and {MAX_OWNER_BYTES} are the most"
            )));
        }
        // Not every database can hold it in a text.
        if owner.contains('\0') {
            return Err(no_name("the name contains U+0000".to_owned()));
        }
        Ok(Self {
            id: ConversationId::random()?,
            owner,
            title: cut_title(&title),
            cwd: path_bytes(&settings.cwd),
            settings: json_of("the settings of a conversation", &settings)?,
        })
    }
}

impl Entry {
    /// Makes a record ready, if it can be stored.
    pub fn new(record: &Record) -> Result<Self, StoreError> {
        Ok(Self {
            kind: record.kind(),
            json: json_of("a record", record)?,
            sums: Sums::of(record),
        })
    }
}

impl Sums {
    fn of(record: &Record) -> Self {
        let mut sums = Self::default();
        match record {
            Record::Asked { .. } => sums.turns = 1,
            Record::Replied { usage, cost, .. } | Record::Compacted { usage, cost, .. } => {
                sums.usage = *usage;
                // Anything else is no price, and would spoil the sum.
                sums.cost = cost.filter(|cost| cost.is_finite()).unwrap_or(0.0);
            }
            Record::Changed { settings } => sums.cwd = Some(path_bytes(&settings.cwd)),
            Record::Closed => sums.is_closed = true,
            Record::BrokeOff { .. }
            | Record::CallBegun { .. }
            | Record::ApprovalAsked { .. }
            | Record::ApprovalAnswered { .. }
            | Record::CallEnded { .. }
            | Record::Nudged { .. }
            | Record::Ended { .. } => {}
        }
        sums
    }
}

impl Records {
    /// Takes the next one.
    pub fn add(&mut self, number: u64, kind: &str, json: &str) {
        match serde_json::from_str(json) {
            Ok(record) => self.records.push((number, record)),
            Err(error) => self.unread.push(Unread {
                number,
                kind: kind.to_owned(),
                why: error.to_string(),
            }),
        }
    }
}

/// A draft, as it is written.
pub fn draft_json(said: &[Block]) -> Result<String, StoreError> {
    json_of("a draft", said)
}

/// A draft that was written.
pub fn draft_from(json: &str) -> Option<Vec<Block>> {
    match serde_json::from_str(json) {
        Ok(said) => Some(said),
        Err(error) => {
            // A newer version wrote it. Without it the reply is asked for again, as it would be anyway.
            tracing::warn!(%error, "the draft of a reply is not understood, and left out");
            None
        }
    }
}

/// The settings of a conversation that were written.
pub fn settings_from(id: &ConversationId, json: &str) -> Result<Settings, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::NotUnderstood {
        id: id.clone(),
        number: 0,
        kind: "settings".to_owned(),
        why: error.to_string(),
    })
}

/// A record is none of [`KNOWN_KINDS`], so nobody goes on with its conversation.
pub fn unknown_kind(id: &ConversationId, number: u64, kind: String) -> StoreError {
    StoreError::NotUnderstood {
        id: id.clone(),
        number,
        kind,
        why: "this version knows no such records".to_owned(),
    }
}

/// A record would make its conversation longer than [`MAX_CONVERSATION_BYTES`].
pub fn too_long() -> StoreError {
    StoreError::NotStorable {
        what: "a record",
        why: format!(
            "the conversation would be longer than {} MiB; begin another one",
            MAX_CONVERSATION_BYTES / (1024 * 1024)
        ),
    }
}

/// A path as it is stored: it need not be text.
pub fn path_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// A path that was stored.
pub fn path_from(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// The time as it is stored: microseconds since 1970.
pub fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The time that was stored.
pub fn time_of(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(unstored(micros))
}

/// A number as it is stored: databases have none that are larger.
pub fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that was stored.
pub fn unstored(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn json_of<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<String, StoreError> {
    let json = serde_json::to_string(value).map_err(|error| StoreError::NotStorable {
        what,
        why: error.to_string(),
    })?;
    if json.len() > MAX_RECORD_BYTES {
        return Err(StoreError::NotStorable {
            what,
            why: format!(
                "it has {} bytes, and {} MiB are the most",
                json.len(),
                MAX_RECORD_BYTES / (1024 * 1024)
            ),
        });
    }
    Ok(json)
}

/// The beginning of a title, on one line.
fn cut_title(title: &str) -> String {
    let mut characters = title.split_whitespace().flat_map(|word| {
        let word = word.chars().filter(|character| !character.is_control());
        std::iter::once(' ').chain(word)
    });
    // The first word has no space before it.
    characters.next();
    let mut cut: String = characters.by_ref().take(MAX_TITLE_CHARACTERS).collect();
    if characters.next().is_some() {
        cut.pop();
        cut.push('…');
    }
    cut
}

#[cfg(test)]
#[path = "keeping_tests.rs"]
mod tests;
