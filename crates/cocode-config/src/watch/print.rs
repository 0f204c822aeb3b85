//! What is at a path, as far as it matters to whoever reads configuration there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::lock::sha256;
use crate::trust::MAX_TRUST_BYTES;

/// The largest file whose content counts, which is the largest that is ever read.
const MAX_BYTES: u64 = MAX_TRUST_BYTES;

/// What is at each of some paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prints(BTreeMap<PathBuf, Print>);

#[derive(Debug, PartialEq, Eq)]
enum Print {
    /// Nothing, or something that cannot be asked about.
    Error(ErrorKind),
    /// A directory, or what is no file at all.
    NoFile,
    File {
        /// Behind all links: approvals and relative paths depend on it.
        real: Option<PathBuf>,
        /// Who may change it: approvals depend on it.
        mode: u32,
        content: Content,
    },
}

#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// By its hash.
    Read(String),
    /// It cannot be read.
    Error(ErrorKind),
    /// It is too large to be read.
    TooLarge(u64),
}

impl Prints {
    pub(super) fn of(paths: BTreeSet<PathBuf>) -> Self {
        let prints = paths.into_iter().map(|path| {
            let print = Print::of(&path);
            (path, print)
        });
        Self(prints.collect())
    }
}

impl Print {
    fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Err(error) => Self::Error(error.kind()),
            // Opening a pipe without a writer would wait forever.
            Ok(metadata) if !metadata.is_file() => Self::NoFile,
            Ok(metadata) => Self::File {
                real: fs::canonicalize(path).ok(),
                mode: metadata.mode(),
                content: Content::of(path, metadata.len()),
            },
        }
    }
}

impl Content {
    fn of(path: &Path, length: u64) -> Self {
        if length > MAX_BYTES {
            return Self::TooLarge(length);
        }
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
        match read {
            Ok(_) => Self::Read(sha256(&bytes)),
            Err(error) => Self::Error(error.kind()),
        }
    }
}
