//! The hash of a line, and the place that a chain has come to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::{HASH_BYTES, from_hex, hex};

/// The SHA-256 of a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AuditHash([u8; HASH_BYTES]);

/// This is no SHA-256 as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a line has 64 lower-case hexadecimal digits")]
pub struct InvalidAuditHash;

/// How far a chain goes: its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of the line; the first is 1.
    pub seq: u64,
    /// The hash of the line.
    pub hash: AuditHash,
}

impl AuditHash {
    /// What the first line of all names as the one before.
    pub const ZERO: Self = Self([0; HASH_BYTES]);

    /// Takes the bytes of a hash.
    pub const fn from_bytes(bytes: [u8; HASH_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

impl AuditHead {
    /// Before the first line.
    pub const START: Self = Self {
        seq: 0,
        hash: AuditHash::ZERO,
    };

    /// The number of the line after this one.
    pub(super) const fn next(self) -> u64 {
        self.seq.saturating_add(1)
    }
}

impl fmt::Display for AuditHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for AuditHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuditHash({self})")
    }
}

impl FromStr for AuditHash {
    type Err = InvalidAuditHash;

    fn from_str(text: &str) -> Result<Self, InvalidAuditHash> {
        from_hex(text).map(Self).ok_or(InvalidAuditHash)
    }
}

impl Serialize for AuditHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AuditHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
