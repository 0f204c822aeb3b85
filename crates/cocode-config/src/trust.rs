//! What the user approved, on this machine, of files that came with a work tree: by file, name and
//! content. Asks nobody and decides nothing else.
//!
//! The store is a private JSON file without secrets: of what may be secret there is a hash. A
//! store that cannot be read means that nothing is approved.

mod store;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::difference::Difference;
use crate::entry::{Entry, EntryLine};
use crate::lock::{self, EditContext, LockError, WriteError, sha256, with_lock};
use crate::problem::Problem;

/// The largest store that is read or written.
pub const MAX_TRUST_BYTES: u64 = 16 * 1024 * 1024;

/// What is approved or refused: something of a file, with its content.
#[derive(Clone, Copy, Debug)]
pub struct TrustItem<'a> {
    /// The file, by any path.
    pub file: &'a Path,
    /// The name of the server, or of the file for a file as a whole.
    pub name: &'a str,
    /// What it says.
    pub content: TrustContent<'a>,
}

/// What an approval is bound to.
#[derive(Clone, Copy, Debug)]
pub enum TrustContent<'a> {
    /// A server.
    Server(&'a Entry),
    /// A file as a whole, such as one of settings.
    File(&'a [u8]),
}

/// What the store says about an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It was approved as it is.
    Approved,
    /// Nobody was asked about it.
    New,
    /// It was approved, but said something else then.
    Changed(Difference),
    /// It was refused as it is, and need not be asked about again.
    Refused,
}

/// Why something is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The user said so.
    Approved,
    /// We wrote it ourselves, as the user asked.
    Written,
}

/// A decision, for a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustDecision<'a> {
    /// The file.
    pub file: &'a Path,
    /// The name of the server or file.
    pub name: &'a str,
    /// Why it is approved, or nothing if it was refused.
    pub approval: Option<Approval>,
    /// The hash of the content.
    pub hash: &'a str,
    /// What it said; where it may be secret, a hash of it.
    pub lines: &'a [EntryLine],
    /// When, in seconds since 1970.
    pub when: u64,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It is not what we wrote, so nothing counts as approved.
    #[error("{0}; nothing counts as approved until the file is mended or removed")]
    Broken(Box<Problem>),
    /// Another process changes it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file of the item cannot be found.
    #[error("cannot find {}", file.display())]
    NoFile {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The path of the item is not text, which the store could not tell from others.
    #[error("the path {} is not UTF-8 text; give the directory another name", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
    },
    /// There is too much in it.
    #[error(
        "{} would become larger than {MAX_TRUST_BYTES} bytes; revoke what is not needed any more",
        path.display()
    )]
    TooLarge {
        /// The store.
        path: PathBuf,
    },
}

/// What the user approved and refused.
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: PathBuf,
    items: BTreeMap<(PathBuf, String), Decisions>,
}

/// What was decided about one item: at most one content is approved, and one is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Decisions {
    approved: Option<(Approval, Record)>,
    refused: Option<Record>,
}

/// A content that was decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    hash: String,
    lines: Vec<EntryLine>,
    when: u64,
}

impl Trust {
    /// Whether it may be used.
    pub fn is_approved(&self) -> bool {
        *self == Self::Approved
    }

    /// The name, as scripts see it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::New => "new",
            Self::Changed(_) => "changed",
            Self::Refused => "refused",
        }
    }
}

impl TrustStore {
    /// The store at this place. No file is an empty store.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, TrustError> {
        let path = path.into();
        let items = store::read(&path).map_err(TrustError::Broken)?;
        Ok(Self { path, items })
    }

    /// A store in which nothing is approved, to go on with where the real one is broken.
    pub fn empty(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            items: BTreeMap::new(),
        }
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was decided about an item.
    pub fn verdict(&self, item: &TrustItem<'_>) -> Trust {
        // A file that cannot be found by its one true path is approved by none.
        let Ok(key) = item.key() else {
            return Trust::New;
        };
        let Some(Decisions { approved, refused }) = self.items.get(&key) else {
            return Trust::New;
        };
        let hash = item.content.hash();
        match (approved, refused) {
            (Some((_, record)), _) if record.hash == hash => Trust::Approved,
            (_, Some(record)) if record.hash == hash => Trust::Refused,
            (Some((_, record)), _) => {
                let lines = item.content.lines();
                Trust::Changed(Difference::between(&record.lines, &lines))
            }
            (None, _) => Trust::New,
        }
    }

    /// Approves an item as it is.
    pub fn approve(
        &mut self,
        context: &EditContext,
        item: &TrustItem<'_>,
        approval: Approval,
        when: u64,
    ) -> Result<(), TrustError> {
        self.approve_all(context, &[*item], approval, when)
    }

    /// Approves items as they are, all of them or none.
    pub fn approve_all(
        &mut self,
        context: &EditContext,
        approved_items: &[TrustItem<'_>],
        approval: Approval,
        when: u64,
    ) -> Result<(), TrustError> {
        let mut records = Vec::with_capacity(approved_items.len());
        for item in approved_items {
            records.push((item.key()?, item.record(when)));
        }
        self.update(context, |items| {
            let is_changed = !records.is_empty();
            for (key, record) in records {
                let approved = Some((approval, record));
                let refused = None;
                items.insert(key, Decisions { approved, refused });
            }
            is_changed
        })?;
        Ok(())
    }

    /// Refuses an item as it is. An approval of another content stays.
    pub fn refuse(
        &mut self,
        context: &EditContext,
        item: &TrustItem<'_>,
        when: u64,
    ) -> Result<(), TrustError> {
        let (key, record) = (item.key()?, item.record(when));
        self.update(context, |items| {
            let decisions = items.entry(key).or_default();
            let is_same = |(_, approved): &(_, Record)| approved.hash == record.hash;
            if decisions.approved.as_ref().is_some_and(is_same) {
                decisions.approved = None;
            }
            decisions.refused = Some(record);
            true
        })?;
        Ok(())
    }

    /// Forgets what was decided about an item. Tells whether anything was.
    pub fn revoke(
        &mut self,
        context: &EditContext,
        file: &Path,
        name: &str,
    ) -> Result<bool, TrustError> {
        let file = known_path(file);
        self.update(context, |items| {
            items.remove(&(file, name.to_owned())).is_some()
        })
    }

    /// Forgets what was decided about all items of a file. Tells how many there were.
    pub fn revoke_all(&mut self, context: &EditContext, file: &Path) -> Result<usize, TrustError> {
        let known = known_path(file);
        let mut n_revoked = 0;
        self.update(context, |items| {
            let before = items.len();
            items.retain(|(file, _), _| *file != known);
            n_revoked = before - items.len();
            n_revoked > 0
        })?;
        Ok(n_revoked)
    }

    /// Everything that was decided, by file and name.
    pub fn decisions(&self) -> impl Iterator<Item = TrustDecision<'_>> {
        self.items.iter().flat_map(|((file, name), decisions)| {
            let Decisions { approved, refused } = decisions;
            let approved = approved.iter().map(|(how, record)| (Some(*how), record));
            let refused = refused.iter().map(|record| (None, record));
            approved
                .chain(refused)
                .map(|(approval, record)| TrustDecision {
                    file,
                    name,
                    approval,
                    hash: &record.hash,
                    lines: &record.lines,
                    when: record.when,
                })
        })
    }

    /// Changes what is in the file now, which may be more than what was loaded.
    fn update(
        &mut self,
        context: &EditContext,
        change: impl FnOnce(&mut BTreeMap<(PathBuf, String), Decisions>) -> bool,
    ) -> Result<bool, TrustError> {
        let path = self.path.clone();
        with_lock(context, &path, || {
            let mut items = store::read(&path).map_err(TrustError::Broken)?;
            let is_changed = change(&mut items);
            if is_changed {
                let text = store::text(&items);
                if text.len() as u64 > MAX_TRUST_BYTES {
                    return Err(TrustError::TooLarge { path: path.clone() });
                }
                lock::write_atomically(&path, text.as_bytes(), Some(lock::PRIVATE_MODE))?;
            }
            self.items = items;
            Ok(is_changed)
        })
    }
}

impl TrustItem<'_> {
    /// Names the content: whoever was shown one approves that one, and no other that took its place.
    pub fn hash(&self) -> String {
        self.content.hash()
    }

    fn key(&self) -> Result<(PathBuf, String), TrustError> {
        let file = std::fs::canonicalize(self.file).map_err(|source| TrustError::NoFile {
            file: self.file.to_owned(),
            source,
        })?;
        if file.to_str().is_none() {
            return Err(TrustError::NotText { file });
        }
        Ok((file, self.name.to_owned()))
    }

    /// What may be kept: no secrets.
    fn record(&self, when: u64) -> Record {
        let lines = self.content.lines().into_iter();
        Record {
            hash: self.content.hash(),
            lines: lines.map(EntryLine::kept).collect(),
            when,
        }
    }
}

impl TrustContent<'_> {
    /// The two kinds never have the same hash.
    fn hash(&self) -> String {
        match self {
            Self::Server(entry) => format!("server:{}", entry.content_hash()),
            Self::File(bytes) => format!("file:{}", sha256(bytes)),
        }
    }

    /// All that it says. Of a file as a whole that is one line that is never shown.
    fn lines(&self) -> Vec<EntryLine> {
        match self {
            Self::Server(entry) => entry.lines(),
            Self::File(bytes) => vec![EntryLine::hidden("content", bytes)],
        }
    }
}

/// The path by which the store knows a file, even one that is gone.
fn known_path(file: &Path) -> PathBuf {
    lock::target(file).unwrap_or_else(|_gone| file.to_owned())
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
