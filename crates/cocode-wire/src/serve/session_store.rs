//! Where sessions over HTTP are kept so that another server can go on with them: what a store
//! promises, and what it keeps of a session. The id is nowhere: only its hash.

mod headcount;
mod memory;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use ring::digest::{SHA256, digest};

pub use headcount::Headcount;
pub use memory::MemorySessionStore;

/// Bytes of a SHA-256.
const HASH_BYTES: usize = 32;

/// Messages that are kept of one session.
pub const MAX_TOLD: usize = 1100;

/// Bytes of all messages that are kept of one session.
pub const MAX_TOLD_BYTES: usize = 256 * 1024;

/// Something that a store does, and what comes of it. Whoever waits sets the deadline; dropping it
/// leaves open whether it was done.
pub type StoreWork<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

/// Keeps sessions, for all processes and machines that use it. What a method has returned from is
/// seen by all of them.
///
/// Time is that of the store: nobody tells it what the time is, because clocks of machines differ.
/// A session that has not been used for as long as `idle` says is as good as not there, whether or
/// not it has been removed.
pub trait SessionStore: Send + Sync + fmt::Debug + 'static {
    /// Keeps a session, which is used now. If there is one under its key, what that was told stays: this is
    /// the same session, whose first keeping was not answered.
    fn put<'a>(&'a self, session: &'a StoredSession) -> StoreWork<'a, ()>;

    /// The session of that key, which is used now.
    fn find<'a>(
        &'a self,
        key: &'a SessionKey,
        idle: Duration,
    ) -> StoreWork<'a, Option<StoredSession>>;

    /// The client has said these messages as well: keeps what [`retold`](super::retold) makes of them and of
    /// what is kept by then, so that nothing is lost of what servers tell at the same time. Gives the number
    /// of the change, or of the last one if this changes nothing; `None` if the session is not there, because
    /// it has ended meanwhile.
    fn tell<'a>(&'a self, key: &'a SessionKey, said: &'a [Bytes]) -> StoreWork<'a, Option<u64>>;

    /// Notes that sessions are used now, and gives those of them that are not there any more.
    fn touch<'a>(
        &'a self,
        keys: &'a [SessionKey],
        idle: Duration,
    ) -> StoreWork<'a, Vec<SessionKey>>;

    /// Ends sessions. Those that are not there are passed over.
    fn remove<'a>(&'a self, keys: &'a [SessionKey]) -> StoreWork<'a, ()>;

    /// Ends all sessions of somebody.
    fn remove_of<'a>(&'a self, whose: &'a Whose) -> StoreWork<'a, ()>;

    /// Forgets the sessions that have not been used for that long, and what else is of no use any more.
    /// Of these ends nobody has to be told.
    fn remove_idle(&self, idle: Duration) -> StoreWork<'_, ()>;

    /// What has happened to sessions since `mark`, by whatever process; without a mark, nothing but a
    /// mark of now. It is asked for about once a second, so it has to cost little.
    ///
    /// It misses nothing that has happened within the last minute, and may tell of the same for a few
    /// times. What is older is learned from [`SessionStore::touch`].
    fn news<'a>(&'a self, mark: Option<&'a SessionMark>) -> StoreWork<'a, SessionNews>;
}

/// What is kept of a session.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// What it is found by.
    pub key: SessionKey,
    /// The id of the guest whose it is.
    pub guest: Option<String>,
    /// What the guest came with when it began, if the site has said so.
    pub credential: Option<String>,
    /// The name of the endpoint that it is at.
    pub endpoint: Option<String>,
    /// The revision that was agreed on.
    pub revision: String,
    /// What another server has to be told to go on with it, in this order: whole messages of the
    /// client. At most [`MAX_TOLD`], and [`MAX_TOLD_BYTES`] together.
    pub told: Vec<Bytes>,
    /// How often that was changed by [`SessionStore::tell`].
    pub version: u64,
}

/// Whose sessions are meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// All of the guest of this id.
    Guest(String),
    /// Those that a guest has begun with one credential.
    Credential {
        /// The id of the guest.
        guest: String,
        /// What it came with.
        credential: String,
    },
    /// Those that were begun without a guest.
    Strangers,
}

impl Whose {
    /// Whether something is meant that was begun by that guest, with that credential.
    pub fn includes(&self, guest: Option<&str>, credential: Option<&str>) -> bool {
        match self {
            Self::Guest(id) => guest == Some(id),
            Self::Credential {
                guest: id,
                credential: by,
            } => guest == Some(id) && credential == Some(by),
            Self::Strangers => guest.is_none(),
        }
    }
}

/// What a session is found by: the SHA-256 of its id. Nobody comes from it to the id, which is
/// random and too long to be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey([u8; HASH_BYTES]);

impl SessionKey {
    /// The key of a session with that id.
    pub fn of(id: &str) -> Self {
        let mut hash = [0; HASH_BYTES];
        let computed = digest(&SHA256, id.as_bytes());
        // Both are as long as SHA-256 is.
        for (to, from) in hash.iter_mut().zip(computed.as_ref()) {
            *to = *from;
        }
        Self(hash)
    }

    /// Takes the bytes of a key.
    pub const fn from_bytes(bytes: [u8; HASH_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

/// What has happened to sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionNews {
    /// These were ended by [`SessionStore::remove`] or [`SessionStore::remove_of`].
    pub ended: Vec<SessionKey>,
    /// These were changed by [`SessionStore::tell`], each with the number of its last change.
    pub retold: Vec<(SessionKey, u64)>,
    /// Where to go on next time.
    pub mark: SessionMark,
}

/// Up to where somebody knows what has happened. Only the store can read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionMark(Vec<u8>);

impl SessionMark {
    /// A mark that the store finds its place by.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// What the store has put into it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Why something was not done with sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionStoreError {
    /// There are too many.
    #[error("{place} keeps {limit} sessions and no more: let idle ones end sooner")]
    TooMany {
        /// The file or database.
        place: String,
        /// How many it keeps.
        limit: usize,
    },
    /// The store cannot be used now.
    #[error("the sessions in {place} cannot be {action}: {why}")]
    Unusable {
        /// The file or database.
        place: String,
        /// What was tried: `read`, `changed`.
        action: &'static str,
        /// What the system said.
        why: String,
    },
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionKey(")?;
        for byte in self.0.iter().take(4) {
            write!(formatter, "{byte:02x}")?;
        }
        formatter.write_str("…)")
    }
}

impl fmt::Debug for StoredSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a client said is its own business.
        formatter
            .debug_struct("StoredSession")
            .field("key", &self.key)
            .field("guest", &self.guest)
            .field("endpoint", &self.endpoint)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
