//! Reading a log: its last lines, and those that are added, through every rotation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use super::files::{Identity, LogFiles};
use crate::private_files::FileError;

/// How often to look for new lines.
pub const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);
/// One read.
const CHUNK_BYTES: usize = 64 * 1024;
/// How much one look at a log reads.
const MAX_POLL_BYTES: u64 = 1024 * 1024;

/// The last lines of a log, oldest first.
pub(super) fn tail(files: &LogFiles, lines: usize) -> Result<Option<Vec<String>>, FileError> {
    let all = files.open_all()?;
    if all.is_empty() {
        return Ok(None);
    }
    let (tail, _end) = last_lines(&all, lines).map_err(FileError::of("read", &files.current()))?;
    Ok(Some(tail))
}

/// Yields the last lines of a log and then those that are added to it. The log need not exist yet;
/// it may be rotated, emptied or removed at any time.
#[derive(Debug)]
pub struct LogFollower {
    files: Option<LogFiles>,
    /// Lines that were there at the beginning.
    tail: Vec<String>,
    current: Option<Reading>,
    /// The file before, in which somebody who had it open may have written a last line. It also
    /// tells what is still to be read if the current one is removed.
    previous: Option<Reading>,
}

/// A file, and how far it is read.
#[derive(Debug)]
struct Reading {
    file: File,
    identity: Identity,
    offset: u64,
    /// The beginning of a line whose end is not there yet.
    partial: Vec<u8>,
}

impl LogFollower {
    pub(super) fn new(files: Option<LogFiles>, lines: usize) -> Result<Self, FileError> {
        let mut follower = Self {
            files,
            tail: Vec::new(),
            current: None,
            previous: None,
        };
        let Some(files) = &follower.files else {
            return Ok(follower);
        };
        let all = files.open_all()?;
        let failed = |error| FileError::of("read", &files.current())(error);
        let (tail, end) = last_lines(&all, lines).map_err(failed)?;
        follower.tail = tail;
        let mut all = all.into_iter();
        if let Some((file, identity)) = all.next() {
            follower.current = Some(Reading::new(file, identity, end));
        }
        if let Some((file, identity)) = all.next() {
            let end = file.metadata().map_err(failed)?.len();
            follower.previous = Some(Reading::new(file, identity, end));
        }
        Ok(follower)
    }

    /// Whether there is a log at all.
    pub fn exists(&self) -> bool {
        self.current.is_some()
    }

    /// The lines that were added since the last time, or no more than can be read at once; none if
    /// there are none. Blocks on the disk, but waits for nobody: ask again after
    /// [`FOLLOW_INTERVAL`], or at once if there were any.
    pub fn poll(&mut self) -> Result<Vec<String>, FileError> {
        let mut lines = std::mem::take(&mut self.tail);
        let Some(files) = self.files.clone() else {
            return Ok(lines);
        };
        let failed = |error| FileError::of("read", &files.current())(error);
        if let Some(previous) = &mut self.previous {
            previous.read(&mut lines).map_err(failed)?;
        }
        loop {
            let is_current = match &mut self.current {
                None => false,
                Some(reading) => {
                    // Asked before reading, so that nothing comes in between.
                    let is_current = files.identity()? == Some(reading.identity);
                    if reading.read(&mut lines).map_err(failed)? == Progress::More {
                        return Ok(lines);
                    }
                    is_current
                }
            };
            if is_current || !self.step(&files)? {
                return Ok(lines);
            }
        }
    }

    /// Goes on to the file after the current one, if there is one.
    fn step(&mut self, files: &LogFiles) -> Result<bool, FileError> {
        let mut all = files.open_all()?;
        let position = |reading: &Option<Reading>| {
            let known = reading.as_ref()?.identity;
            all.iter().position(|(_, identity)| *identity == known)
        };
        let of_current = position(&self.current);
        // Where both are no longer there, they were older than all that are.
        let read = of_current.or_else(|| position(&self.previous));
        let Some(next) = read.unwrap_or(all.len()).checked_sub(1) else {
            if of_current.is_none() {
                self.current = None;
            }
            return Ok(false);
        };
        let (file, identity) = all.swap_remove(next);
        let left = self.current.replace(Reading::new(file, identity, 0));
        // One that was removed does not tell any more what comes after it.
        if of_current.is_some() {
            self.previous = left;
        }
        Ok(true)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// There may be more.
    More,
    /// Everything was read.
    End,
}

impl Reading {
    fn new(file: File, identity: Identity, offset: u64) -> Self {
        Self {
            file,
            identity,
            offset,
            partial: Vec::new(),
        }
    }

    /// Adds the lines that are new.
    fn read(&mut self, lines: &mut Vec<String>) -> io::Result<Progress> {
        if self.file.metadata()?.len() < self.offset {
            // It was emptied, and begins anew.
            self.offset = 0;
            self.partial.clear();
        }
        let end = self.offset.saturating_add(MAX_POLL_BYTES);
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.offset < end {
            let length = match self.file.read_at(&mut chunk, self.offset) {
                Ok(0) => return Ok(Progress::End),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.offset += u64::try_from(length).unwrap_or(u64::MAX);
            let read = chunk.get(..length).unwrap_or_default();
            for piece in read.split_inclusive(|byte| *byte == b'\n') {
                self.partial.extend_from_slice(piece);
                if let Some(line) = self.partial.strip_suffix(b"\n") {
                    lines.push(String::from_utf8_lossy(line).into_owned());
                    self.partial.clear();
                }
            }
        }
        Ok(Progress::More)
    }
}

/// The last lines of files, of which the newest comes first, and where the last line of that one
/// ends.
fn last_lines(files: &[(File, Identity)], wanted: usize) -> io::Result<(Vec<String>, u64)> {
    let mut lines: Vec<String> = Vec::new();
    let mut end = 0;
    for (index, (file, _)) in files.iter().enumerate() {
        let (mut older, older_end) = last_of(file, wanted.saturating_sub(lines.len()))?;
        if index == 0 {
            end = older_end;
        }
        older.append(&mut lines);
        lines = older;
        if lines.len() >= wanted {
            break;
        }
    }
    Ok((lines, end))
}

/// The last whole lines of a file, and where the last one ends.
fn last_of(file: &File, wanted: usize) -> io::Result<(Vec<String>, u64)> {
    let mut start = file.metadata()?.len();
    // What is read so far, the end of the file first.
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut end = None;
    let mut n_ends = 0;
    while start > 0 && n_ends <= wanted {
        let length = usize::try_from(start).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        start -= u64::try_from(length).unwrap_or(start);
        let mut chunk = vec![0; length];
        match file.read_exact_at(&mut chunk, start) {
            Ok(()) => {}
            // It was emptied just now.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok((Vec::new(), 0));
            }
            Err(error) => return Err(error),
        }
        if end.is_none()
            && let Some(last) = memchr::memrchr(b'\n', &chunk)
        {
            end = Some(start + u64::try_from(last + 1).unwrap_or(u64::MAX));
        }
        n_ends += memchr::memchr_iter(b'\n', &chunk).count();
        chunks.push(chunk);
    }
    let Some(end) = end else {
        return Ok((Vec::new(), 0));
    };
    let bytes: Vec<u8> = chunks.into_iter().rev().flatten().collect();
    // What comes after the last end is not whole.
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let skipped = lines.len().saturating_sub(wanted);
    let lines = lines.into_iter().skip(skipped);
    let lines = lines.map(|line| String::from_utf8_lossy(line).into_owned());
    Ok((lines.collect(), end))
}
