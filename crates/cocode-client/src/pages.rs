//! Lists that come in pages, with guards against servers that never stop.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use cocode_wire::RawJson;
use http::HeaderMap;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::clock::Deadlines;
use crate::error::RequestError;
use crate::members::Members;
use crate::mux::Reports;
use crate::session::{Call, Session};

/// Pages of one list.
pub const MAX_PAGES: usize = 1_000;
/// Items of one list.
pub const MAX_ITEMS: usize = 200_000;
/// Bytes of all pages of one list together.
pub const MAX_LIST_BYTES: usize = 256 * 1024 * 1024;
/// Bytes of one cursor.
pub const MAX_CURSOR_BYTES: usize = 64 * 1024;
/// All pages of one list together.
pub const MAX_LIST_TIME: Duration = Duration::from_mins(2);

/// A list as a server gave it.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    /// The usable items, in the server's order.
    pub items: Vec<T>,
    /// What was listed but cannot be used.
    pub quarantined: Vec<Quarantined>,
    /// Set when the list was cut off, with the reason.
    pub incomplete: Option<Incomplete>,
    /// The pages it came in, exactly as the server sent them.
    pub pages: Vec<RawJson>,
    /// How long the server says this list stays fresh.
    pub ttl: Option<Duration>,
    /// Whether the server says that others may share it (`public`) or not (`private`).
    pub cache_scope: Option<String>,
}

/// An item that cannot be used, among others that can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// Why a list was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incomplete {
    /// The server sent the same cursor twice.
    RepeatedCursor,
    /// More pages than [`MAX_PAGES`].
    TooManyPages,
    /// More items than [`MAX_ITEMS`].
    TooManyItems,
    /// More bytes than [`MAX_LIST_BYTES`].
    TooManyBytes,
    /// A cursor over [`MAX_CURSOR_BYTES`].
    CursorTooLarge,
    /// All pages together took longer than [`MAX_LIST_TIME`].
    TooSlow,
}

impl std::fmt::Display for Incomplete {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RepeatedCursor => formatter.write_str("the server sent the same cursor twice"),
            Self::TooManyPages => write!(formatter, "more than {MAX_PAGES} pages"),
            Self::TooManyItems => write!(formatter, "more than {MAX_ITEMS} items"),
            Self::TooManyBytes => write!(formatter, "more than {MAX_LIST_BYTES} bytes"),
            Self::CursorTooLarge => write!(formatter, "a cursor over {MAX_CURSOR_BYTES} bytes"),
            Self::TooSlow => write!(formatter, "more than {} s", MAX_LIST_TIME.as_secs()),
        }
    }
}

/// How the items of one list are read. Each item fails alone.
pub(crate) struct Reader<'a, T> {
    pub(crate) method: &'a str,
    /// The member that holds the items.
    pub(crate) member: &'a str,
    pub(crate) item: &'a (dyn Fn(&RawJson, &RawValue) -> Result<T, Quarantined> + Sync),
}

impl Session {
    /// One page of any list, exactly as the server sent it. `cursor` is the JSON of a `nextCursor`.
    pub async fn page(
        &self,
        method: &str,
        cursor: Option<&RawJson>,
    ) -> Result<RawJson, RequestError> {
        let params = cursor.map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let call = Call {
            method,
            params: params.as_deref().map(str::as_bytes),
            name: None,
            headers: HeaderMap::new(),
            deadlines: Deadlines::fixed(self.shared().options.timeouts.request),
            reports: Reports::No,
        };
        self.call(&call).await
    }

    /// All pages of a list.
    pub(crate) async fn list<T>(&self, reader: Reader<'_, T>) -> Result<Listing<T>, RequestError> {
        let begun = Instant::now();
        let mut listing = Listing {
            items: Vec::new(),
            quarantined: Vec::new(),
            incomplete: None,
            pages: Vec::new(),
            ttl: None,
            cache_scope: None,
        };
        let mut bytes = 0;
        let mut seen = HashSet::new();
        let mut cursor: Option<RawJson> = None;
        loop {
            let page = self.page(reader.method, cursor.as_ref()).await?;
            cursor = listing.add(&page, &reader)?;
            bytes += page.as_bytes().len();
            listing.pages.push(page);
            let Some(next) = &cursor else {
                listing.log_quarantined(reader.method);
                return Ok(listing);
            };
            listing.incomplete = if next.as_bytes().len() > MAX_CURSOR_BYTES {
                Some(Incomplete::CursorTooLarge)
            } else if !seen.insert(next.as_str().to_owned()) {
                Some(Incomplete::RepeatedCursor)
            } else if listing.pages.len() >= MAX_PAGES {
                Some(Incomplete::TooManyPages)
            } else if listing.items.len() + listing.quarantined.len() >= MAX_ITEMS {
                Some(Incomplete::TooManyItems)
            } else if bytes >= MAX_LIST_BYTES {
                Some(Incomplete::TooManyBytes)
            } else if begun.elapsed() >= MAX_LIST_TIME {
                Some(Incomplete::TooSlow)
            } else {
                None
            };
            if let Some(reason) = &listing.incomplete {
                tracing::warn!(method = reader.method, %reason, "a list was cut off");
                listing.log_quarantined(reader.method);
                return Ok(listing);
            }
        }
    }
}

impl<T> Listing<T> {
    /// In one line, however many there are.
    fn log_quarantined(&self, method: &str) {
        if let Some(Quarantined { name, reason }) = self.quarantined.first() {
            let count = self.quarantined.len();
            tracing::warn!(method, count, name, reason, "items that cannot be used");
        }
    }

    /// Takes in one page, and gives the cursor of the next.
    fn add(
        &mut self,
        page: &RawJson,
        reader: &Reader<'_, T>,
    ) -> Result<Option<RawJson>, RequestError> {
        let unexpected = |reason: String| RequestError::Unexpected {
            method: reader.method.to_owned(),
            reason,
        };
        let members: Members<'_> = page
            .decode()
            .map_err(|error| unexpected(error.to_string()))?;
        let items = members.get(reader.member);
        let items = items.ok_or_else(|| unexpected(format!("no `{}` in it", reader.member)))?;
        let items: Vec<&RawValue> = serde_json::from_str(items.get())
            .map_err(|error| unexpected(format!("`{}`: {error}", reader.member)))?;
        let room = MAX_ITEMS.saturating_sub(self.items.len() + self.quarantined.len());
        if items.len() > room {
            self.incomplete = Some(Incomplete::TooManyItems);
        }
        self.items.reserve(items.len().min(room));
        for item in items.into_iter().take(room) {
            match (reader.item)(page, item) {
                Ok(item) => self.items.push(item),
                Err(quarantined) => self.quarantined.push(quarantined),
            }
        }
        let ttl = members.get("ttlMs").and_then(|ttl| ttl.get().parse().ok());
        self.ttl = ttl.map(Duration::from_millis).or(self.ttl);
        let scope = members.get("cacheScope");
        let scope = scope.and_then(|scope| serde_json::from_str::<Cow<'_, str>>(scope.get()).ok());
        self.cache_scope = scope.map(Cow::into_owned).or(self.cache_scope.take());
        // An empty cursor is how some servers say that there is no next page.
        let next = members
            .get("nextCursor")
            .filter(|next| !matches!(next.get(), "null" | "\"\""));
        Ok(next
            .filter(|_| self.incomplete.is_none())
            .map(|next| page.share(next)))
    }
}
