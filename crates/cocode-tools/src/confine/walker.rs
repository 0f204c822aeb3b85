//! Resolution without the kernel's help: one component after the other, links read and not
//! followed.
//!
//! Every directory on the way is opened by its single name in the one before it, and never if it
//! is a link at that moment; its descriptor is held. `..`, which only links can bring, goes back to
//! the descriptor that is held, never to what the system thinks is the parent. So whatever is
//! renamed meanwhile, the way consists of directories that were in the root.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::{Inside, Root};
use crate::limits::MAX_LINKS;
use crate::refusal::Refusal;

/// What happens to a component that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The path is refused.
    Refused,
    /// The last one may be missing, and the directories before it are made.
    DirectoriesMade,
}

/// Where a path really leads: a name in a directory that is held, or the root itself.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) parent: OwnedFd,
    /// Nothing for the root, which is then the parent. Never `.` or `..`, and not a link when it
    /// was looked at.
    pub(crate) name: Option<OsString>,
    /// Where the parent is, relative to the root.
    directory: PathBuf,
}

impl Place {
    /// The real path, relative to the root.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => self.directory.join(name),
            None => PathBuf::new(),
        }
    }
}

/// One step that is still to be made.
#[derive(Debug)]
enum Step {
    Down(OsString),
    Up,
}

/// How a directory on the way is opened: only to go through, where the system knows that.
const THROUGH: OFlags = {
    let common = OFlags::DIRECTORY
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        common.union(OFlags::PATH)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        common
    }
};

/// The way that has been gone.
struct Way<'a> {
    root: &'a Root,
    path: &'a Inside,
    held: Vec<(OwnedFd, OsString)>,
    /// In reverse, the next one last.
    steps: Vec<Step>,
    /// Links followed, and surprises.
    n_links: usize,
}

pub(super) fn locate(root: &Root, path: &Inside, missing: Missing) -> Result<Place, Refusal> {
    let mut way = Way {
        root,
        path,
        held: Vec::new(),
        steps: path.names().rev().map(Step::Down).collect(),
        n_links: 0,
    };
    while let Some(step) = way.steps.pop() {
        match step {
            Step::Up => {
                if way.held.pop().is_none() {
                    return Err(way.leads_outside());
                }
            }
            Step::Down(name) => {
                if let Some(place) = way.down(name, missing)? {
                    return Ok(place);
                }
            }
        }
    }
    // The way ended with a link to a directory that it has already come through, or at the root.
    let name = way.held.pop().map(|(_, name)| name);
    way.place(name)
}

impl Way<'_> {
    /// Goes one name down. A place, if that was the last one.
    fn down(&mut self, name: OsString, missing: Missing) -> Result<Option<Place>, Refusal> {
        let is_last = self.steps.is_empty();
        match readlinkat(self.here(), &name, Vec::new()) {
            Ok(target) => {
                self.count_link()?;
                self.follow(OsStr::from_bytes(target.as_bytes()))?;
                return Ok(None);
            }
            Err(Errno::INVAL) => {}
            Err(Errno::NOENT) if is_last && missing != Missing::Refused => {}
            Err(Errno::NOENT) if missing == Missing::DirectoriesMade => self.make(&name)?,
            Err(errno) => return Err(self.failed(errno)),
        }
        if is_last {
            return self.place(Some(name)).map(Some);
        }
        match openat(self.here(), &name, THROUGH, Mode::empty()) {
            Ok(directory) => self.held.push((directory, name)),
            Err(Errno::LOOP | Errno::MLINK | Errno::NOTDIR) => self.look_again(name)?,
            Err(errno) => return Err(self.failed(errno)),
        }
        Ok(None)
    }

    /// What was no link a moment ago could not be opened as a directory: it has become a link,
    /// and perhaps is none again; or it never was a directory.
    fn look_again(&mut self, name: OsString) -> Result<(), Refusal> {
        let now = statat(self.here(), &name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.failed(errno))?;
        match FileType::from_raw_mode(now.st_mode) {
            FileType::Directory | FileType::Symlink => {
                self.count_link()?;
                self.steps.push(Step::Down(name));
                Ok(())
            }
            _ => Err(self.failed(Errno::NOTDIR)),
        }
    }

    /// Puts the target of a link before the steps that are left.
    fn follow(&mut self, target: &OsStr) -> Result<(), Refusal> {
        let target = Path::new(target);
        let below = if target.is_absolute() {
            let below = self
                .root
                .prefixes
                .iter()
                .find_map(|prefix| target.strip_prefix(prefix).ok())
                .ok_or_else(|| self.leads_outside())?;
            self.held.clear();
            below
        } else {
            target
        };
        for component in below.components().rev() {
            match component {
                Component::Normal(name) => self.steps.push(Step::Down(name.to_owned())),
                Component::ParentDir => self.steps.push(Step::Up),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return Err(self.leads_outside()),
            }
        }
        Ok(())
    }

    fn make(&self, name: &OsStr) -> Result<(), Refusal> {
        let held = self.held.iter().map(|(_, name)| name.as_os_str());
        let path: PathBuf = held.chain([name]).collect();
        self.root.check_writable(&path)?;
        match mkdirat(self.here(), name, Mode::from_raw_mode(0o777)) {
            // Somebody else was quicker; whether it is a directory is seen when it is opened.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(Refusal::system(
                "make the directories of",
                self.path.shown(),
                errno,
            )),
        }
    }

    fn here(&self) -> BorrowedFd<'_> {
        match self.held.last() {
            Some((directory, _)) => directory.as_fd(),
            None => self.root.as_fd(),
        }
    }

    fn place(&mut self, name: Option<OsString>) -> Result<Place, Refusal> {
        let directory = self.held.iter().map(|(_, name)| name).collect();
        let parent = match self.held.pop() {
            Some((parent, _)) => parent,
            None => self
                .root
                .descriptor
                .try_clone()
                .map_err(|error| Refusal::io("open", self.path.shown(), &error))?,
        };
        Ok(Place {
            parent,
            name,
            directory,
        })
    }

    fn count_link(&mut self) -> Result<(), Refusal> {
        self.n_links += 1;
        if self.n_links > MAX_LINKS {
            return Err(self.failed(Errno::LOOP));
        }
        Ok(())
    }

    fn failed(&self, errno: Errno) -> Refusal {
        Refusal::system("open", self.path.shown(), errno)
    }

    fn leads_outside(&self) -> Refusal {
        Refusal::new(format!(
            "`{}` is outside the workspace: a symbolic link leads there",
            self.path.shown()
        ))
    }
}
