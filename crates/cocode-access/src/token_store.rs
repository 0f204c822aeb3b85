//! Where tokens are kept: what a store promises, and what it keeps of a token. The token itself is
//! nowhere: only its hash.

mod content;
mod file;
mod memory;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::Work;
use crate::date::whole_seconds;
use crate::digest::{HASH_BYTES, from_hex, hex, same};
use crate::principal::PrincipalName;

pub use file::FileTokenStore;
pub use memory::MemoryTokenStore;

/// Digits of a hash that tell tokens of one name from each other.
const SHORT_DIGITS: usize = 16;

/// Tokens that a store keeps.
pub const MAX_TOKENS: usize = 10_000;

/// Keeps tokens, for all processes and machines that use it. What a method has returned from is there
/// after a crash of this process.
pub trait TokenStore: Send + Sync + fmt::Debug {
    /// Adds a token. Two tokens have neither the same name nor the same hash, also if one has expired.
    fn add<'a>(&'a self, token: &'a TokenRecord) -> Work<'a, Result<(), TokenStoreError>>;

    /// All tokens, also those that have expired, by their names.
    fn list(&self) -> Work<'_, Result<Vec<TokenRecord>, TokenStoreError>>;

    /// Removes a token, and gives what was kept of it.
    fn revoke<'a>(
        &'a self,
        name: &'a PrincipalName,
    ) -> Work<'a, Result<TokenRecord, TokenStoreError>>;

    /// Notes when tokens were used. Hashes that are not there are passed over, and so are times before
    /// those that are noted: the token was revoked meanwhile, or another process knows better.
    fn note_use<'a>(
        &'a self,
        used: &'a [(TokenHash, SystemTime)],
    ) -> Work<'a, Result<(), TokenStoreError>>;

    /// Something that is different after tokens were added or revoked, by whatever process. It is asked
    /// for all the time, so it has to cost little. It may also change when nothing else did.
    fn stamp(&self) -> Work<'_, Result<TokenStamp, TokenStoreError>>;
}

/// What is kept of a token. Times are kept in whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// What it is called, and whoever uses it.
    pub name: PrincipalName,
    /// What it is recognised by.
    pub hash: TokenHash,
    /// Whether who has it may manage the gateway.
    pub is_admin: bool,
    /// When it was made.
    pub created: SystemTime,
    /// From when on it is good for nothing.
    pub expires: Option<SystemTime>,
    /// When it was used last, a few minutes more or less.
    pub last_used: Option<SystemTime>,
}

impl TokenRecord {
    /// A token that is made now and has not been used.
    pub fn new(name: PrincipalName, hash: TokenHash) -> Self {
        Self {
            name,
            hash,
            is_admin: false,
            created: whole_seconds(SystemTime::now()),
            expires: None,
            last_used: None,
        }
    }

    /// Lets who has it manage the gateway.
    #[must_use]
    pub fn admin(mut self, is_admin: bool) -> Self {
        self.is_admin = is_admin;
        self
    }

    /// Lets it be good for nothing from then on.
    #[must_use]
    pub fn expiring(mut self, expires: Option<SystemTime>) -> Self {
        self.expires = expires.map(whole_seconds);
        self
    }

    /// Whether it is good for nothing at this time.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// When a token was used last, now that it is known when some were.
fn newer_use(token: &TokenRecord, used: &[(TokenHash, SystemTime)]) -> Option<SystemTime> {
    let noted = used.iter().filter(|(hash, _)| *hash == token.hash);
    let noted = noted.map(|(_, time)| whole_seconds(*time)).max();
    token.last_used.max(noted)
}

/// The SHA-256 of a token. It is no secret: a token is 256 random bits, and nobody can try them all,
/// however fast hashing is. That is why no slow hash is needed as for passwords, which people choose.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; HASH_BYTES]);

/// This is no SHA-256 as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a token has 64 lower-case hexadecimal digits")]
pub struct InvalidTokenHash;

impl TokenHash {
    /// Takes the bytes of a hash.
    pub const fn from_bytes(bytes: [u8; HASH_BYTES]) -> Self {
        Self(bytes)
    }

    /// Tells tokens of one name from each other, and is of no use to anybody who would like to have one.
    pub fn short(&self) -> Arc<str> {
        let mut text = [0; SHORT_DIGITS];
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        for (place, digit) in text.iter_mut().zip(digits) {
            *place = if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            };
        }
        String::from_utf8_lossy(&text).into()
    }

    /// The bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Eq for TokenHash {}

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TokenHash({self})")
    }
}

impl FromStr for TokenHash {
    type Err = InvalidTokenHash;

    fn from_str(text: &str) -> Result<Self, InvalidTokenHash> {
        from_hex(text).map(Self).ok_or(InvalidTokenHash)
    }
}

/// Tells whether tokens were added or revoked since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenStamp(Vec<u8>);

impl TokenStamp {
    /// Whatever is different after a change.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

/// Why something was not done with tokens. No message holds a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenStoreError {
    /// The name is in use.
    #[error(
        "there is a token `{0}` already: choose another name, or revoke that one first with \
         `cocode gateway token revoke {0}`"
    )]
    Taken(PrincipalName),
    /// There is none of this name.
    #[error("there is no token `{0}`: `cocode gateway token list` shows those that are there")]
    Unknown(PrincipalName),
    /// There are too many.
    #[error(
        "there are {MAX_TOKENS} tokens, and a store keeps no more: revoke those that nobody uses"
    )]
    TooMany,
    /// What is there cannot be read.
    #[error(
        "the tokens in {place} are damaged: {why}; repair them, or remove them and make new tokens"
    )]
    Damaged {
        /// The file or table.
        place: String,
        /// What is wrong, without what was found.
        why: String,
    },
    /// A later version wrote it.
    #[error(
        "the tokens in {place} have format {found}, and this cocode knows {known}: use the newer \
         version that wrote them"
    )]
    Newer {
        /// The file or table.
        place: String,
        /// Its format.
        found: u64,
        /// Ours.
        known: u64,
    },
    /// Others could read or exchange the file.
    #[error("{why}")]
    NotPrivate {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Another process does not let go.
    #[error("another process has held `{}` for {} seconds: end it", path.display(), after.as_secs())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        after: Duration,
    },
    /// The store cannot be used now.
    #[error("the tokens in {place} cannot be {action}: {why}")]
    Unusable {
        /// The file or database.
        place: String,
        /// What was tried: `read`, `changed`.
        action: &'static str,
        /// What the system said.
        why: String,
    },
}
