//! Protocol revisions, the two eras they fall into, and how a caller chooses among them.

use std::str::FromStr;

/// A revision of the specification, by its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, with HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26, with streamable HTTP.
    V2025_03_26,
    /// 2025-06-18, with structured output and elicitation.
    V2025_06_18,
    /// 2025-11-25, the last with a handshake.
    V2025_11_25,
    /// 2026-07-28, stateless.
    V2026_07_28,
}

/// Which of the two ways of talking a revision belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake opens a session; servers send requests of their own.
    Legacy,
    /// Every request stands alone; servers ask for input in their results.
    Modern,
}

/// What a caller wants to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Ask the server, and take the newest that both know.
    #[default]
    Auto,
    /// The newest revision with a handshake that both know.
    Legacy,
    /// The newest stateless revision that both know.
    Modern,
    /// This one or none.
    Exact(Revision),
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest with a handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest.
    pub const LATEST_MODERN: Self = Self::V2026_07_28;

    /// The date, as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era it belongs to.
    pub fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Era::Legacy
            }
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// The newest revision of `era` among those that a server named.
    pub fn newest_among(named: &[String], era: Era) -> Option<Self> {
        let known = Self::ALL
            .into_iter()
            .rev()
            .filter(|revision| revision.era() == era);
        known
            .into_iter()
            .find(|revision| named.iter().any(|name| name == revision.as_str()))
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl std::fmt::Display for Era {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

/// A text that names no protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a protocol: use auto, legacy, modern, or one of {list}", list = known())]
pub struct UnknownProtocol(pub String);

fn known() -> String {
    Revision::ALL.map(Revision::as_str).join(", ")
}

impl FromStr for Revision {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text);
        found.ok_or_else(|| UnknownProtocol(text.to_owned()))
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "auto" => Self::Auto,
            "legacy" => Self::Legacy,
            "modern" => Self::Modern,
            revision => Self::Exact(revision.parse()?),
        })
    }
}
