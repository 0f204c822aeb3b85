//! Keeps results that are too large to show, under handles by which they can be read later.
//!
//! [`limit()`] says whether a result is too large, a [`ResultStore`] keeps it, and [`shorten`] makes
//! what is shown in its place: both ends of the text, and how to get at the rest. A
//! [`StoredResult`] can be read page by page and searched.
//!
//! Everything here is synchronous, and a store does file I/O: asynchronous callers use
//! `spawn_blocking`.

mod blocks;
mod handle;
mod limit;
mod pretty;
mod store;
mod view;

pub use handle::{InvalidResultHandle, ResultHandle};
pub(crate) use limit::shorten_measured;
pub use limit::{limit, shorten};
pub use store::{
    DEFAULT_RESULTS_MAX_AGE, DEFAULT_RESULTS_MAX_BYTES, KeptResult, Purged, ResultStore,
    ResultStoreError, ResultStoreOptions,
};
pub use view::{
    DEFAULT_PAGE_TOKENS, FoundLine, LineKind, MAX_FOUND_LINE_BYTES, Page, PageSize, StoredResult,
};
