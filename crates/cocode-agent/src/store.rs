//! Where conversations are kept: what a store promises. The one that is here keeps them in a file of
//! SQLite; others are made with [`keeping`].

mod database;
mod hold;
pub mod keeping;
mod reading;
mod removing;
mod schema;
mod sqlite;
pub mod sqlite_file;
mod writing;

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::content::Block;
use crate::model::Usage;
use crate::provider::Work;
use crate::record::{Record, Settings};

pub use sqlite::SqliteStore;

/// Keeps conversations. What a method has returned from is there after a crash of this process.
pub trait Store: Send + Sync + fmt::Debug {
    /// Begins a conversation.
    fn begin(&self, new: NewConversation) -> Work<'_, Result<ConversationId, StoreError>>;

    /// Takes a conversation for this holder alone, until the lease is dropped. One whose holder has
    /// died is free.
    fn lease<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<Lease, StoreError>>;

    /// Adds a record, and gives its number: the first of a conversation is 1. A draft is gone with it.
    fn append<'a>(
        &'a self,
        lease: &'a Lease,
        record: &'a Record,
    ) -> Work<'a, Result<u64, StoreError>>;

    /// Keeps what a model has said so far of a reply, in the place of an earlier draft.
    fn draft<'a>(&'a self, lease: &'a Lease, said: &'a [Block])
    -> Work<'a, Result<(), StoreError>>;

    /// Whether there is a conversation of this owner. Takes no longer for one of another owner than for none.
    fn is_owned_by<'a>(
        &'a self,
        id: &'a ConversationId,
        owner: &'a str,
    ) -> Work<'a, Result<bool, StoreError>>;

    /// A whole conversation.
    fn load<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<Stored, StoreError>>;

    /// Conversations, the last used first.
    fn list<'a>(&'a self, wanted: &'a Wanted) -> Work<'a, Result<Vec<Summary>, StoreError>>;

    /// Removes a conversation, unless somebody holds it.
    fn remove<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<(), StoreError>>;

    /// Removes what is older than so many days, unless somebody holds it, and says how many.
    fn purge(&self, older_than_days: u64) -> Work<'_, Result<u64, StoreError>>;
}

/// The name of a conversation: 128 random bits, so that it cannot be guessed, as a UUID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationId(String);

/// This is no name of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is not the id of a conversation: they look like 0f8fad5b-d9cb-469f-a165-70867728950e"
)]
pub struct InvalidConversationId {
    given: String,
}

/// A conversation that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct NewConversation {
    /// Whose it is: who may list, read and go on with it.
    pub owner: String,
    /// What it is held with.
    pub settings: Settings,
    /// What it is about: the beginning of what was asked first.
    pub title: String,
}

/// A conversation as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// What lists say of it.
    pub summary: Summary,
    /// What it began with.
    pub settings: Settings,
    /// All that happened, with the numbers, but for what is [`unread`](Self::unread).
    pub records: Vec<(u64, Record)>,
    /// What a newer version wrote and this one does not understand. Who wants to show a conversation
    /// says that something is missing; who wants to go on with it asks [`Self::whole`] first.
    pub unread: Vec<Unread>,
    /// What the model had said of a reply when the process died that heard it.
    pub draft: Option<Vec<Block>>,
}

/// A record that this version does not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its number.
    pub number: u64,
    /// What it calls itself.
    pub kind: String,
    /// What is wrong with it.
    pub why: String,
}

/// What lists say of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its name.
    pub id: ConversationId,
    /// Whose it is.
    pub owner: String,
    /// What it is about.
    pub title: String,
    /// Where it works.
    pub cwd: std::path::PathBuf,
    /// When it began.
    pub began: SystemTime,
    /// When something happened in it last.
    pub used: SystemTime,
    /// Turns that have begun.
    pub turns: u64,
    /// What it took.
    pub usage: Usage,
    /// What it cost in US dollars, as far as prices are known.
    pub cost: f64,
    /// Whether a turn is going on, in any process.
    pub is_held: bool,
    /// Whether nobody can go on with it.
    pub is_closed: bool,
}

/// Which conversations are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of this owner; of all, if not given.
    pub owner: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Not the first so many.
    pub offset: usize,
}

/// A conversation that is held. Dropping it lets go.
#[derive(Debug)]
pub struct Lease {
    id: ConversationId,
    /// What lets go when it is dropped. Work that is still under way for the lease looks whether this
    /// is still there.
    hold: Arc<dyn Hold>,
}

/// What keeps a conversation held; dropping it lets go.
pub trait Hold: Any + fmt::Debug + Send + Sync {
    /// What the store has written down of who holds it. No two holds have the same.
    fn token(&self) -> i64;
}

/// Why something was not kept or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is none of this name.
    #[error("there is no conversation `{0}`")]
    Unknown(ConversationId),
    /// Somebody else is at it.
    #[error(
        "the conversation `{0}` is in use: it is open in another session, or a turn of it is going on"
    )]
    Held(ConversationId),
    /// Something was to be written through a lease that is another's by now, or of another store.
    #[error(
        "the conversation `{0}` is not held any more by who wants to write: take it again and read it first"
    )]
    Lost(ConversationId),
    /// A newer version has written something into it that counts.
    #[error(
        "record {number} of the conversation `{id}` (`{kind}`) is not understood, so nobody can go on with it here: {why}; it was probably written by a newer version of cocode, so use that one"
    )]
    NotUnderstood {
        /// Which conversation.
        id: ConversationId,
        /// Which record.
        number: u64,
        /// What that calls itself.
        kind: String,
        /// What is wrong with it.
        why: String,
    },
    /// This is more than a store keeps, or nothing that can be kept.
    #[error("{what} cannot be stored: {why}")]
    NotStorable {
        /// What.
        what: &'static str,
        /// Why not, and what to do.
        why: String,
    },
    /// The system gave no random numbers, so that nothing can be named.
    #[error("the system gives no random numbers, so no conversation can be begun or held")]
    NoRandomness,
    /// The store cannot be used.
    #[error("the store of conversations {place} cannot be used: {why}")]
    Broken {
        /// The file, or what stands for it.
        place: String,
        /// What happened.
        why: String,
    },
    /// It was written by a newer version.
    #[error(
        "the store of conversations {place} was written by a newer version of cocode (format {found}, this one knows {known})"
    )]
    Newer {
        /// The file, or what stands for it.
        place: String,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
}

impl ConversationId {
    /// A new one: a UUID of version 4.
    pub fn random() -> Result<Self, StoreError> {
        let mut bits = u128::from_be_bytes(random_bytes()?);
        // The version (4) and the variant (binary 10) have their places in a UUID.
        bits = (bits & !(0xF << 76)) | (0x4 << 76);
        bits = (bits & !(0x3 << 62)) | (0x2 << 62);
        Ok(Self(format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            bits >> 96,
            (bits >> 80) & 0xFFFF,
            (bits >> 64) & 0xFFFF,
            (bits >> 48) & 0xFFFF,
            bits & 0xFFFF_FFFF_FFFF,
        )))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl FromStr for ConversationId {
    type Err = InvalidConversationId;

    fn from_str(text: &str) -> Result<Self, InvalidConversationId> {
        let is_right = text.len() == 36
            && text.bytes().enumerate().all(|(place, byte)| match place {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            });
        if is_right {
            return Ok(Self(text.to_owned()));
        }
        let given = text.chars().take(60).collect();
        Err(InvalidConversationId { given })
    }
}

/// Random bytes of the system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_unspecified| StoreError::NoRandomness)?;
    Ok(bytes)
}

impl Stored {
    /// Whether everything in it is understood: going on without what is not could be wrong.
    pub fn whole(&self) -> Result<(), StoreError> {
        let Some(Unread { number, kind, why }) = self.unread.first() else {
            return Ok(());
        };
        Err(StoreError::NotUnderstood {
            id: self.summary.id.clone(),
            number: *number,
            kind: kind.clone(),
            why: why.clone(),
        })
    }
}

impl Lease {
    /// A conversation that a store has taken for somebody.
    pub fn new(id: ConversationId, hold: Arc<dyn Hold>) -> Self {
        Self { id, hold }
    }

    /// What is held.
    pub fn id(&self) -> &ConversationId {
        &self.id
    }

    /// What lets go when it is dropped, for the store that has made it.
    pub fn hold(&self) -> &Arc<dyn Hold> {
        &self.hold
    }
}
