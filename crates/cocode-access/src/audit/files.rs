//! The files of a log in their directory: what they are called, in which order they come, and what is
//! kept beside them about the last line.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::AuditError;
use super::hash::AuditHead;
use super::line::{AuditLine, MAX_AUDIT_LINE_BYTES};
use crate::private::{self, Opening, PrivateError};

/// The file that is written to.
const CURRENT: &str = "audit.jsonl";
/// What is known of the last line, so that a log that was cut can be told from one that ends.
const HEAD: &str = "audit.head";
const LOCK: &str = "audit.lock";
/// A file that is full is called by the number of its first line.
const PREFIX: &str = "audit-";
const SUFFIX: &str = ".jsonl";
/// Digits of that number.
const DIGITS: usize = 20;

/// Bytes of the file of the head, which is always as long.
const HEAD_BYTES: usize = 110;

/// The directory of a log.
#[derive(Clone, Debug)]
pub(super) struct Directory(PathBuf);

/// A file that is full, and its place in the order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Full {
    first: u64,
    /// Tells files apart that begin with the same number, as they may after somebody has tampered.
    copy: u64,
    pub(super) name: String,
}

/// What the file of the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    Nothing,
    Head(AuditHead),
    Unreadable,
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn current(&self) -> PathBuf {
        self.0.join(CURRENT)
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.0.join(LOCK)
    }

    pub(super) fn head(&self) -> PathBuf {
        self.0.join(HEAD)
    }

    pub(super) fn at(&self, full: &Full) -> PathBuf {
        self.0.join(&full.name)
    }

    /// The files that are full, the oldest first. There are none if there is no directory.
    pub(super) fn full(&self) -> Result<Vec<Full>, AuditError> {
        let failed = |source| io_error("list", &self.0)(source);
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            files.extend(name.to_str().and_then(Full::of));
        }
        files.sort();
        Ok(files)
    }

    /// A name that no file has for one that begins with this number.
    pub(super) fn free_name(&self, first: u64) -> Full {
        let mut copy = 0;
        loop {
            let full = Full::named(first, copy);
            if !self.at(&full).exists() {
                return full;
            }
            copy += 1;
        }
    }

    /// What is noted of the last line.
    pub(super) fn noted(&self) -> Result<Noted, AuditError> {
        let Some(file) = private::open_if_there(&self.head(), Opening::Inspect)? else {
            return Ok(Noted::Nothing);
        };
        let mut bytes = Vec::new();
        file.take(2 * HEAD_BYTES as u64)
            .read_to_end(&mut bytes)
            .map_err(io_error("read", &self.head()))?;
        if bytes.is_empty() {
            return Ok(Noted::Nothing);
        }
        Ok(match serde_json::from_slice(&bytes) {
            Ok(head) => Noted::Head(head),
            Err(_no_head) => Noted::Unreadable,
        })
    }
}

/// Notes the last line in the file of the head, in one write of always the same length.
pub(super) fn note_head(file: &File, head: AuditHead) -> io::Result<()> {
    let AuditHead { seq, hash } = head;
    let text = format!("{{\"seq\":{seq:>DIGITS$},\"hash\":\"{hash}\"}}");
    let line = format!("{text:<width$}\n", width = HEAD_BYTES - 1);
    file.write_all_at(line.as_bytes(), 0)
}

impl Full {
    fn named(first: u64, copy: u64) -> Self {
        let name = match copy {
            0 => format!("{PREFIX}{first:0DIGITS$}{SUFFIX}"),
            _ => format!("{PREFIX}{first:0DIGITS$}-{copy}{SUFFIX}"),
        };
        Self { first, copy, name }
    }

    fn of(name: &str) -> Option<Self> {
        let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let (first, copy) = number.split_once('-').unwrap_or((number, "0"));
        let full = Self::named(first.parse().ok()?, copy.parse().ok()?);
        (full.name == name).then_some(full)
    }
}

/// The first line of a file, if it is as it was written.
pub(super) fn first_line(file: &File) -> io::Result<Option<AuditLine>> {
    let mut bytes = vec![0; MAX_AUDIT_LINE_BYTES + 1];
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        let n_read = file.read_at(rest, length as u64)?;
        let ended = rest.get(..n_read).is_some_and(|new| new.contains(&b'\n'));
        length += n_read;
        if n_read == 0 || ended {
            break;
        }
    }
    bytes.truncate(length);
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let text = std::str::from_utf8(line).ok();
    Ok(text.and_then(AuditLine::parse))
}

/// Gives the lines of the first so many bytes of a file one by one, without their ends, and whether each
/// had one. Something longer than any line is given in pieces, which are no lines either.
pub(super) fn each_line(
    file: &File,
    length: u64,
    mut take: impl FnMut(&[u8], bool),
) -> io::Result<()> {
    let mut reader = BufReader::new(file).take(length);
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = MAX_AUDIT_LINE_BYTES as u64 + 1;
        let n_read = reader.by_ref().take(most).read_until(b'\n', &mut line)?;
        if n_read == 0 {
            return Ok(());
        }
        match line.split_last() {
            Some((b'\n', line)) => take(line, true),
            _ => take(&line, false),
        }
    }
}

pub(super) fn io_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> AuditError + use<> {
    let path = path.to_owned();
    move |source| AuditError::Io {
        action,
        path,
        source,
    }
}

impl From<PrivateError> for AuditError {
    fn from(error: PrivateError) -> Self {
        match error {
            PrivateError::NotPrivate { path, why } => Self::NotPrivate { path, why },
            PrivateError::Busy { path, after } => Self::Busy { path, after },
            PrivateError::Io {
                action,
                path,
                source,
            } => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}
