//! The files of a log: what they are called, who may rotate them, and which are too old.

use std::fmt::Write as _;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::line::{TIME_BYTES, parse_time};
use crate::private_files::{self, FILE_MODE, FileError};

/// Held by whoever moves or removes files.
const LOCK: &str = ".lock";
/// What the name of a current file ends with.
const EXTENSION: &str = ".log";
/// Names of servers that need more bytes than this are cut, and closed with a hash.
const MAX_STEM_BYTES: usize = 120;
/// How much of a name that is cut is kept.
const CUT_STEM_BYTES: usize = 80;
/// Files that were put aside are looked for up to this number, whatever limits were when they were.
const MAX_FILES: u32 = 100;

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// The files of one server's log.
#[derive(Clone, Debug)]
pub(super) struct LogFiles {
    directory: PathBuf,
    name: String,
}

/// What came of an attempt to rotate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rotation {
    /// The file has another name now, by us or by another process.
    Done,
    /// Another process is at it.
    Busy,
}

impl LogFiles {
    pub(super) fn new(directory: &Path, server: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            name: format!("{}{EXTENSION}", stem(server)),
        }
    }

    /// The file that is written to.
    pub(super) fn current(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The current file for 0, and then those that were put aside, the last one first.
    fn path(&self, number: u32) -> PathBuf {
        match number {
            0 => self.current(),
            number => self.directory.join(format!("{}.{number}", self.name)),
        }
    }

    /// Opens the current file to add to it, and makes it if it is missing.
    pub(super) fn open_to_add(&self) -> Result<File, FileError> {
        private_files::make_directory(&self.directory)?;
        let path = self.current();
        let opened = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .open(&path);
        opened.map_err(FileError::of("open", &path))
    }

    /// All files that there are, the newest first. One that is moved meanwhile is there once.
    pub(super) fn open_all(&self) -> Result<Vec<(File, Identity)>, FileError> {
        let mut files: Vec<(File, Identity)> = Vec::new();
        for number in 0..MAX_FILES {
            let path = self.path(number);
            let file = match File::open(&path) {
                Ok(file) => file,
                // There is no current file between its rotation and the next line.
                Err(error) if error.kind() == ErrorKind::NotFound && number == 0 => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(FileError::of("open", &path)(error)),
            };
            let metadata = file.metadata().map_err(FileError::of("inspect", &path))?;
            let identity = Identity::of(&metadata);
            if files.iter().all(|(_, known)| *known != identity) {
                files.push((file, identity));
            }
        }
        Ok(files)
    }

    /// Which file is the current one.
    pub(super) fn identity(&self) -> Result<Option<Identity>, FileError> {
        let path = self.current();
        match fs::metadata(&path) {
            Ok(metadata) => Ok(Some(Identity::of(&metadata))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::of("inspect", &path)(error)),
        }
    }

    /// Puts the file aside that we write to, and keeps so many, the next one included. Does not
    /// wait.
    pub(super) fn rotate(&self, full: Identity, keep: u32) -> Result<Rotation, FileError> {
        let Some(_lock) = try_lock(&self.directory)? else {
            return Ok(Rotation::Busy);
        };
        // With the lock in hand nobody else renames: either it is still the same file, or somebody
        // was faster and there is nothing to do.
        if self.identity()? != Some(full) {
            return Ok(Rotation::Done);
        }
        // Limits may have been wider once.
        for number in keep.max(1)..MAX_FILES {
            if !private_files::remove(&self.path(number))? && number > keep {
                break;
            }
        }
        if keep <= 1 {
            private_files::remove(&self.current())?;
        }
        for number in (0..keep.saturating_sub(1)).rev() {
            let (from, to) = (self.path(number), self.path(number + 1));
            match fs::rename(&from, &to) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(FileError::of("rotate", &from)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(Rotation::Done)
    }

    /// Removes all files, and says how many.
    pub(super) fn clear(&self) -> Result<usize, FileError> {
        if !self.directory.exists() {
            return Ok(0);
        }
        let lock = lock_file(&self.directory)?;
        lock.lock()
            .map_err(FileError::of("lock", &self.directory.join(LOCK)))?;
        let mut removed = 0;
        for number in 0..MAX_FILES {
            removed += usize::from(private_files::remove(&self.path(number))?);
        }
        Ok(removed)
    }
}

fn lock_file(directory: &Path) -> Result<File, FileError> {
    let path = directory.join(LOCK);
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(&path);
    opened.map_err(FileError::of("open", &path))
}

/// The right to move and remove files, until it is dropped; nothing if another process has it.
fn try_lock(directory: &Path) -> Result<Option<File>, FileError> {
    let lock = lock_file(directory)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(FileError::of("lock", &directory.join(LOCK))(error)),
    }
}

/// The time of the first line of a file.
pub(super) fn begun(file: &File) -> Option<SystemTime> {
    let mut time = [0; TIME_BYTES];
    file.read_exact_at(&mut time, 0).ok()?;
    parse_time(std::str::from_utf8(&time).ok()?)
}

/// Whether a file ends in the middle of a line, because the disk was full.
pub(super) fn ends_within_line(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    match file.read_exact_at(&mut byte, last) {
        Ok(()) => Ok(byte != *b"\n"),
        // It is shorter than it was.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the logs that nobody wrote to for so long, of all servers.
pub(super) fn purge(directory: &Path, max_age: Duration, now: SystemTime) -> Result<(), FileError> {
    let failed = || FileError::of("read the directory", directory);
    if !directory.exists() {
        return Ok(());
    }
    // Without it, a file that another process puts in the place of an old one could go.
    let Some(_lock) = try_lock(directory)? else {
        return Ok(());
    };
    for entry in fs::read_dir(directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        // What goes away meanwhile was removed by somebody else.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let written = metadata.modified().map_err(failed())?;
        let is_old = now.duration_since(written).is_ok_and(|age| age > max_age);
        if is_old && metadata.is_file() && entry.file_name().to_str().is_some_and(is_log) {
            private_files::remove(&entry.path())?;
        }
    }
    Ok(())
}

fn is_log(name: &str) -> bool {
    let current = match name.rsplit_once('.') {
        Some((current, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => current,
        _ => name,
    };
    current.ends_with(EXTENSION)
}

/// A server's name as part of a file's name: what could mean something to the file system is
/// spelled as the hexadecimal digits of its bytes. No two names read the same.
fn stem(server: &str) -> String {
    let mut stem = String::with_capacity(server.len());
    for (index, byte) in server.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => stem.push(char::from(byte)),
            b'.' if index > 0 => stem.push('.'),
            other => {
                // Writing to a string cannot fail.
                let _infallible = write!(stem, "%{other:02x}");
            }
        }
    }
    if stem.len() > MAX_STEM_BYTES {
        stem.truncate(CUT_STEM_BYTES);
        let hash = private_files::sha256(server.as_bytes());
        stem.push('~');
        stem.extend(hash.chars().take(32));
    }
    stem
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
