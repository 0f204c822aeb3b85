//! A directory and all below it, by descriptors: no link is followed, so nothing leads out.

mod ignored;

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, openat, statat};
use rustix::io::Errno;

use crate::confine::{DIRECTORY, Directory, Root};
use crate::job::Job;
use crate::limits::{
    MAX_DIRECTORY_ENTRIES, MAX_WALK_DEPTH, MAX_WALK_ENTRIES, MAX_WALK_TIME, PROGRESS_ENTRIES,
};
use crate::refusal::Refusal;
use crate::text::count;

use ignored::Ignored;

/// What `git` keeps for itself, which is never searched.
const GIT: &str = ".git";

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
}

/// What an entry is, links being what they are and not what they lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    Other,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// An entry met on a walk.
#[derive(Debug)]
pub(crate) struct Met<'a> {
    /// The directory that it is in.
    pub(crate) parent: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    pub(crate) kind: Kind,
    /// Relative to the root.
    pub(crate) path: &'a Path,
    /// Relative to where the walk began.
    pub(crate) below: &'a Path,
}

/// What was left out of a walk.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Entries looked at.
    pub(crate) n_entries: u64,
    /// The walk took too long, or met too many entries.
    pub(crate) stopped: Option<&'static str>,
    n_unreadable: u64,
    n_too_deep: u64,
    n_too_large: u64,
}

impl Report {
    /// One sentence for each thing that was left out.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Self {
            n_entries,
            stopped,
            n_unreadable,
            n_too_deep,
            n_too_large,
        } = self;
        let mut notes = Vec::new();
        if let Some(reason) = stopped {
            let seen = count(*n_entries, "entry", "entries");
            notes.push(format!(
                "the search stopped after {seen}, because {reason}; name a directory or a glob to narrow it"
            ));
        }
        for (number, what) in [
            (n_unreadable, "could not be read"),
            (n_too_deep, "too deep and not searched"),
            (n_too_large, "too large, and searched only in part"),
        ] {
            if *number > 0 {
                let directories = count(*number, "directory", "directories");
                let verb = match (what.starts_with("could"), *number == 1) {
                    (true, _) => "",
                    (false, true) => "is ",
                    (false, false) => "are ",
                };
                notes.push(format!("{directories} {verb}{what}"));
            }
        }
        notes
    }

    /// Whether everything was looked at.
    pub(crate) fn is_complete(&self) -> bool {
        self.stopped.is_none() && self.n_unreadable + self.n_too_deep + self.n_too_large == 0
    }
}

/// Visits everything below a directory, parents before children and names in order. Links are
/// visited and not followed; `.git` is left out, and what `.gitignore` files name is unless
/// `include_ignored`.
pub(crate) fn walk(
    root: &Root,
    start: Directory,
    include_ignored: bool,
    job: &Job,
    visit: &mut dyn FnMut(&Met<'_>) -> Result<ControlFlow<()>, Refusal>,
) -> Result<Report, Refusal> {
    let mut ignored = Ignored::default();
    if !include_ignored {
        ignored.enter_parents(root, &start.path);
    }
    let mut walk = Walk {
        root,
        job,
        visit,
        ignored: (!include_ignored).then_some(ignored),
        report: Report::default(),
        deadline: Instant::now() + MAX_WALK_TIME,
        path: start.path,
        below: PathBuf::new(),
    };
    match walk.directory(&start.descriptor, 0)? {
        // Whether the visitor has seen enough is for the visitor to say.
        ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(walk.report),
    }
}

struct Walk<'a> {
    root: &'a Root,
    job: &'a Job,
    visit: &'a mut dyn FnMut(&Met<'_>) -> Result<ControlFlow<()>, Refusal>,
    ignored: Option<Ignored>,
    report: Report,
    deadline: Instant,
    path: PathBuf,
    below: PathBuf,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &OwnedFd, depth: usize) -> Result<ControlFlow<()>, Refusal> {
        let Ok(Listing { mut entries, cut }) = list(directory, self.job)? else {
            self.report.n_unreadable += 1;
            return Ok(ControlFlow::Continue(()));
        };
        self.report.n_too_large += u64::from(cut);
        entries.sort_unstable();
        if let Some(ignored) = &mut self.ignored {
            ignored.enter(directory.as_fd(), &self.path);
        }
        for Entry { name, kind } in &entries {
            self.path.push(name);
            self.below.push(name);
            let flow = self.entry(directory, name, *kind, depth);
            self.path.pop();
            self.below.pop();
            if flow?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if let Some(ignored) = &mut self.ignored {
            ignored.leave();
        }
        Ok(ControlFlow::Continue(()))
    }

    fn entry(
        &mut self,
        parent: &OwnedFd,
        name: &OsStr,
        kind: Kind,
        depth: usize,
    ) -> Result<ControlFlow<()>, Refusal> {
        if self.is_over()? {
            return Ok(ControlFlow::Break(()));
        }
        let is_directory = kind == Kind::Directory;
        if name == GIT
            || self.root.check_readable(&self.path).is_err()
            || self
                .ignored
                .as_ref()
                .is_some_and(|ignored| ignored.matches(&self.path, is_directory))
        {
            return Ok(ControlFlow::Continue(()));
        }
        let met = Met {
            parent: parent.as_fd(),
            name,
            kind,
            path: &self.path,
            below: &self.below,
        };
        if (self.visit)(&met)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if !is_directory {
            return Ok(ControlFlow::Continue(()));
        }
        if depth + 1 >= MAX_WALK_DEPTH {
            self.report.n_too_deep += 1;
            return Ok(ControlFlow::Continue(()));
        }
        match openat(parent, name, DIRECTORY, Mode::empty()) {
            Ok(directory) => self.directory(&directory, depth + 1),
            // It is gone, or has become something else since it was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                Ok(ControlFlow::Continue(()))
            }
            Err(_) => {
                self.report.n_unreadable += 1;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Counts an entry against the limits of a walk.
    fn is_over(&mut self) -> Result<bool, Refusal> {
        self.job.check()?;
        let seen = self.report.n_entries;
        if seen >= MAX_WALK_ENTRIES {
            self.report.stopped = Some("there are too many");
            return Ok(true);
        }
        if Instant::now() >= self.deadline {
            self.report.stopped = Some("it took too long");
            return Ok(true);
        }
        self.report.n_entries += 1;
        if seen > 0 && seen.is_multiple_of(PROGRESS_ENTRIES) {
            let message = format!("{} searched", count(seen, "entry", "entries"));
            self.job.report(seen, message);
        }
        Ok(false)
    }
}

/// The entries of one directory, in no order.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// There are more than anybody wants to look at.
    pub(crate) cut: bool,
}

/// Reads a directory. The outer error is for a job that nobody waits for.
pub(crate) fn list(directory: &OwnedFd, job: &Job) -> Result<Result<Listing, Errno>, Refusal> {
    let reader = match Dir::read_from(directory) {
        Ok(reader) => reader,
        Err(errno) => return Ok(Err(errno)),
    };
    let mut entries = Vec::new();
    for entry in reader {
        job.check()?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(errno) => return Ok(Err(errno)),
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if entries.len() >= MAX_DIRECTORY_ENTRIES {
            return Ok(Ok(Listing { entries, cut: true }));
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                // Gone since it was listed.
                Err(_) => continue,
            },
            known => known,
        };
        entries.push(Entry {
            name: name.to_owned(),
            kind: kind.into(),
        });
    }
    Ok(Ok(Listing {
        entries,
        cut: false,
    }))
}
