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
use crate::list_cache::ListKind;
use crate::mux::Reports;
use crate::schema::stack::depth_of;
use crate::session::{Call, Session};
use cocode_wire::members::Members;

/// Pages of one list.
pub const MAX_PAGES: usize = 1_000;
/// Items of one list.
pub const MAX_ITEMS: usize = 200_000;
/// Bytes of all pages of one list together, and of all lists of one server in a catalog.
pub const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;
/// Levels of one item. Clients refuse a list whose JSON is nested much deeper.
pub(crate) const MAX_ITEM_DEPTH: usize = 120;
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
            Self::TooManyBytes => write!(formatter, "more than {} MiB", MAX_LIST_BYTES >> 20),
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

impl<'a, T> Reader<'a, T> {
    pub(crate) fn of(
        kind: ListKind,
        item: &'a (dyn Fn(&RawJson, &RawValue) -> Result<T, Quarantined> + Sync),
    ) -> Self {
        Self {
            method: kind.method(),
            member: kind.member(),
            item,
        }
    }
}

/// Notices when a list has to be cut off.
#[derive(Default)]
struct Guard {
    cursors: HashSet<String>,
    bytes: usize,
}

impl Guard {
    /// Why a page is not to be kept.
    fn refusal(&mut self, page: &RawJson) -> Option<Incomplete> {
        self.bytes += page.as_bytes().len();
        (self.bytes > MAX_LIST_BYTES).then_some(Incomplete::TooManyBytes)
    }

    /// Why the page behind `next` is not to be had any more.
    fn objection<T>(&mut self, listing: &Listing<T>, next: &RawJson) -> Option<Incomplete> {
        if next.as_bytes().len() > MAX_CURSOR_BYTES {
            Some(Incomplete::CursorTooLarge)
        } else if !self.cursors.insert(next.as_str().to_owned()) {
            Some(Incomplete::RepeatedCursor)
        } else if listing.pages.len() >= MAX_PAGES {
            Some(Incomplete::TooManyPages)
        } else if listing.items.len() + listing.quarantined.len() >= MAX_ITEMS {
            Some(Incomplete::TooManyItems)
        } else {
            None
        }
    }
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
            meta: None,
        };
        self.call(&call).await
    }

    /// All pages of a list.
    pub(crate) async fn list<T>(&self, reader: Reader<'_, T>) -> Result<Listing<T>, RequestError> {
        let begun = Instant::now();
        let mut listing = Listing::empty();
        let mut guard = Guard::default();
        let mut cursor: Option<RawJson> = None;
        loop {
            let page = self.page(reader.method, cursor.as_ref()).await?;
            listing.incomplete = guard.refusal(&page);
            if listing.incomplete.is_none() {
                cursor = listing.add(&page, &reader)?;
                listing.pages.push(page);
                let Some(next) = &cursor else {
                    listing.log_quarantined(reader.method);
                    return Ok(listing);
                };
                let is_slow = || (begun.elapsed() >= MAX_LIST_TIME).then_some(Incomplete::TooSlow);
                listing.incomplete = guard.objection(&listing, next).or_else(is_slow);
            }
            if let Some(reason) = &listing.incomplete {
                tracing::warn!(method = reader.method, %reason, "a list was cut off");
                listing.log_quarantined(reader.method);
                return Ok(listing);
            }
        }
    }
}

impl<T> Listing<T> {
    fn empty() -> Self {
        Self {
            items: Vec::new(),
            quarantined: Vec::new(),
            incomplete: None,
            pages: Vec::new(),
            ttl: None,
            cache_scope: None,
        }
    }

    /// Reads pages that were kept, as they were read when they came.
    pub(crate) fn recall(
        pages: Vec<RawJson>,
        reader: &Reader<'_, T>,
    ) -> Result<Self, RequestError> {
        let mut listing = Self::empty();
        let mut guard = Guard::default();
        let mut is_complete = true;
        for page in pages {
            listing.incomplete = guard.refusal(&page);
            if listing.incomplete.is_some() {
                return Ok(listing);
            }
            let next = listing.add(&page, reader)?;
            listing.pages.push(page);
            is_complete = next.is_none();
            if let Some(next) = next {
                listing.incomplete = guard.objection(&listing, &next);
            }
            if listing.incomplete.is_some() {
                return Ok(listing);
            }
        }
        // There was more, and of all reasons to leave it only the time cannot be seen any more.
        listing.incomplete = (!is_complete).then_some(Incomplete::TooSlow);
        Ok(listing)
    }

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
            let read = if depth_of(item.get().as_bytes()) > MAX_ITEM_DEPTH {
                let reason = format!("it is nested more than {MAX_ITEM_DEPTH} levels deep");
                Err(Quarantined { name: None, reason })
            } else {
                (reader.item)(page, item)
            };
            match read {
                Ok(item) => self.items.push(item),
                Err(quarantined) => self.quarantined.push(quarantined),
            }
        }
        self.note_caching(&members);
        // An empty cursor is how some servers say that there is no next page.
        let next = members
            .get("nextCursor")
            .filter(|next| !matches!(next.get(), "null" | "\"\""));
        Ok(next
            .filter(|_| self.incomplete.is_none())
            .map(|next| page.share(next)))
    }

    /// A list is as fresh and as public as the page that is least so.
    fn note_caching(&mut self, members: &Members<'_>) {
        let ttl = members.get("ttlMs").and_then(milliseconds);
        self.ttl = match (self.ttl, ttl) {
            (Some(shortest), Some(ttl)) => Some(shortest.min(ttl)),
            (shortest, ttl) => shortest.or(ttl),
        };
        let scope = members.get("cacheScope");
        let scope = scope.and_then(|scope| serde_json::from_str::<Cow<'_, str>>(scope.get()).ok());
        if self
            .cache_scope
            .as_deref()
            .is_none_or(|kept| kept == "public")
        {
            self.cache_scope = scope.map(Cow::into_owned).or(self.cache_scope.take());
        }
    }
}

/// A time that a server gave. Below zero counts as zero, and what is no number as nothing.
fn milliseconds(value: &RawValue) -> Option<Duration> {
    let text = value.get();
    if let Ok(milliseconds) = text.parse() {
        return Some(Duration::from_millis(milliseconds));
    }
    let milliseconds: f64 = serde_json::from_str(text).ok()?;
    // What is too long for us is as good as forever.
    let duration = Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0);
    Some(duration.unwrap_or(Duration::MAX))
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
