//! What is remembered of one server, and how long it counts as fresh.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use cocode_core::{Era, Revision};
use cocode_wire::RawJson;

use super::ListKind;
use crate::pages::Listing;
use crate::server::{Greeting, ServerFacts};

/// How long a list is fresh whose server does not say.
pub const DEFAULT_LIST_TTL: Duration = Duration::from_mins(5);
/// How long a list is fresh at most, whatever its server says.
pub const MAX_LIST_TTL: Duration = Duration::from_hours(24);

/// What one server said the last time it was there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The revision that was spoken.
    pub revision: Option<Revision>,
    /// The result of `initialize` or `server/discover`, as it came.
    pub greeting: Option<RawJson>,
    /// What it listed.
    pub lists: BTreeMap<ListKind, RememberedList>,
}

/// One list, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RememberedList {
    /// The pages, byte for byte.
    pub pages: Vec<RawJson>,
    /// When the first page was asked for, to the millisecond.
    pub fetched_at: SystemTime,
    /// How long the server says it stays fresh: the shortest time of all pages.
    pub ttl: Option<Duration>,
    /// Whether the server says that others may share it (`public`) or not (`private`).
    pub cache_scope: Option<String>,
}

/// Whether a list can be used as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// There is no need to ask the server.
    Fresh,
    /// Good enough to show, but the server is to be asked when it is there.
    Stale,
}

impl Remembered {
    /// A server that listed nothing yet.
    pub fn of(facts: &ServerFacts) -> Self {
        Self {
            revision: Some(facts.revision),
            greeting: Some(facts.raw.clone()),
            lists: BTreeMap::new(),
        }
    }

    /// The era that was spoken.
    pub fn era(&self) -> Option<Era> {
        self.revision.map(Revision::era)
    }

    /// The server as it presented itself: its name, version, capabilities and instructions. Of the
    /// connection, which is no more, nothing is in it.
    pub fn facts(&self) -> Option<ServerFacts> {
        let greeting = Greeting::parse(self.greeting.as_ref()?).ok()?;
        Some(greeting.into_facts(self.revision?))
    }
}

impl RememberedList {
    /// What to remember of a list that was asked for at this time.
    pub fn of<T>(listing: &Listing<T>, fetched_at: SystemTime) -> Self {
        Self {
            pages: listing.pages.clone(),
            fetched_at,
            ttl: listing.ttl,
            cache_scope: listing.cache_scope.clone(),
        }
    }

    /// Whether the list can be used as it is. A clock that was set back makes it stale: nobody
    /// knows how old it is.
    pub fn freshness(&self, now: SystemTime) -> Freshness {
        self.freshness_by(DEFAULT_LIST_TTL, now)
    }

    /// Like [`Self::freshness`], with another TTL where the server sent none.
    pub fn freshness_by(&self, default_ttl: Duration, now: SystemTime) -> Freshness {
        let ttl = self.ttl.unwrap_or(default_ttl).min(MAX_LIST_TTL);
        match now.duration_since(self.fetched_at) {
            Ok(age) if age < ttl => Freshness::Fresh,
            Ok(_) | Err(_) => Freshness::Stale,
        }
    }
}
