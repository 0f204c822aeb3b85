//! The form of an entry on disk.
//!
//! ```text
//! cocode-lists 1 SHA-256 of everything below
//! {"key":…,"revision":…,"greeting":BYTES,"lists":[{"kind":…,"pages":[BYTES,…],…},…]}
//! the greeting and the pages, one after the other, byte for byte
//! ```
//!
//! What cannot be read, in whole or in part, is as good as not there.

use std::time::{Duration, SystemTime};

use cocode_wire::RawJson;
use serde::{Deserialize, Serialize};

use super::{ListKind, MAX_ENTRY_BYTES, Remembered, RememberedList};
use crate::private_files::sha256;

const MAGIC: &str = "cocode-lists";
/// Another one for every form that this program could not read.
const VERSION: &str = "1";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    key: String,
    revision: Option<String>,
    greeting: Option<usize>,
    lists: Vec<ListHeader>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListHeader {
    kind: String,
    fetched_at_ms: u64,
    ttl_ms: Option<u64>,
    cache_scope: Option<String>,
    pages: Vec<usize>,
}

/// Why an entry cannot be written.
#[derive(Debug)]
pub(super) enum Unwritable {
    /// It would have more than so many bytes.
    TooLarge(usize),
    /// It has no form.
    Header(serde_json::Error),
}

/// The bytes of an entry.
pub(super) fn encode(key: &str, remembered: &Remembered) -> Result<Vec<u8>, Unwritable> {
    let Remembered {
        revision,
        greeting,
        lists,
    } = remembered;
    let pages = || {
        greeting
            .iter()
            .chain(lists.values().flat_map(|list| &list.pages))
    };
    let size: usize = pages().map(|page| page.as_bytes().len()).sum();
    if size > MAX_ENTRY_BYTES {
        return Err(Unwritable::TooLarge(size));
    }
    let header = Header {
        key: key.to_owned(),
        revision: revision.map(|revision| revision.as_str().to_owned()),
        greeting: greeting.as_ref().map(|greeting| greeting.as_bytes().len()),
        lists: lists
            .iter()
            .map(|(kind, list)| list_header(*kind, list))
            .collect(),
    };
    let mut rest = serde_json::to_vec(&header).map_err(Unwritable::Header)?;
    rest.push(b'\n');
    rest.reserve(size);
    for page in pages() {
        rest.extend_from_slice(page.as_bytes());
    }
    let mut bytes = format!("{MAGIC} {VERSION} {}\n", sha256(&rest)).into_bytes();
    bytes.append(&mut rest);
    if bytes.len() > MAX_ENTRY_BYTES {
        return Err(Unwritable::TooLarge(bytes.len()));
    }
    Ok(bytes)
}

fn list_header(kind: ListKind, list: &RememberedList) -> ListHeader {
    let RememberedList {
        pages,
        fetched_at,
        ttl,
        cache_scope,
    } = list;
    let since = fetched_at.duration_since(SystemTime::UNIX_EPOCH);
    ListHeader {
        kind: kind.method().to_owned(),
        // A time before the beginning of time is stale all the same.
        fetched_at_ms: since.map_or(0, whole_millis),
        ttl_ms: ttl.map(whole_millis),
        cache_scope: cache_scope.clone(),
        pages: pages.iter().map(|page| page.as_bytes().len()).collect(),
    }
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What an entry says, or what is wrong with it.
pub(super) fn decode(key: &str, bytes: &[u8]) -> Result<Remembered, &'static str> {
    let (first, rest) = line(bytes).ok_or("it has no first line")?;
    let first = std::str::from_utf8(first).map_err(|_bad| "it is of another kind")?;
    let mut words = first.split(' ');
    if words.next() != Some(MAGIC) {
        return Err("it is of another kind");
    }
    if words.next() != Some(VERSION) {
        return Err("it is of another version");
    }
    if words.next() != Some(sha256(rest).as_str()) {
        return Err("it is damaged");
    }
    let (header, body) = line(rest).ok_or("it has no header")?;
    let header: Header =
        serde_json::from_slice(header).map_err(|_bad| "its header is unreadable")?;
    if header.key != key {
        return Err("it is about another server");
    }
    let mut body = Body(body);
    let greeting = header.greeting.map(|bytes| body.take(bytes)).transpose()?;
    let mut remembered = Remembered {
        // One that is not known here is no longer of use, but the lists are.
        revision: header.revision.and_then(|revision| revision.parse().ok()),
        greeting,
        ..Remembered::default()
    };
    for list in header.lists {
        let pages = list.pages.into_iter().map(|bytes| body.take(bytes));
        let pages = pages.collect::<Result<Vec<RawJson>, _>>()?;
        let kind = ListKind::ALL
            .into_iter()
            .find(|kind| kind.method() == list.kind)
            .ok_or("it has a list of another kind")?;
        let fetched_at = SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_millis(list.fetched_at_ms))
            .ok_or("it is of an impossible time")?;
        let list = RememberedList {
            pages,
            fetched_at,
            ttl: list.ttl_ms.map(Duration::from_millis),
            cache_scope: list.cache_scope,
        };
        remembered.lists.insert(kind, list);
    }
    if !body.0.is_empty() {
        return Err("it has more than it says");
    }
    Ok(remembered)
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    let (line, rest) = bytes.split_at_checked(end)?;
    Some((line, rest.get(1..)?))
}

/// What is left of the pages.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take(&mut self, bytes: usize) -> Result<RawJson, &'static str> {
        let (page, rest) = self.0.split_at_checked(bytes).ok_or("it is cut off")?;
        self.0 = rest;
        RawJson::parse(page.to_vec()).map_err(|_bad| "a page is no JSON")
    }
}
