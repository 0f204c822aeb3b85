//! The root of a workspace, and the only way from a path to a descriptor.
//!
//! A path is first made relative without asking the system ([`Inside`]). On Linux one `openat2`
//! then resolves it, which never leaves the root and never follows a link. A path with links in it
//! goes to the [`walker`], as does every path where that system call is missing. What comes out is
//! a descriptor; nobody resolves the path again.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod beneath;
mod path;
mod replace;
mod walker;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "confine/beneath_elsewhere.rs"]
mod beneath;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cocode_process::{Confinement, PathHandle};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, stat, statat};
use rustix::io::Errno;

use crate::error::OpenError;
use crate::limits::MAX_RACES;
use crate::refusal::Refusal;

pub(crate) use path::Inside;
pub(crate) use replace::{Kept, replace};
pub(crate) use walker::{Missing, Place};

/// How a directory is opened when its entries are read.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How a file is opened when it is read: never waiting for the other end of a FIFO, and never
/// taking a terminal.
pub(crate) const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Who resolves paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// The system where it can, the walker otherwise.
    System,
    /// The walker alone, as on systems without `openat2`.
    #[cfg_attr(not(test), expect(dead_code, reason = "chosen by tests"))]
    Walker,
}

/// The directory that nothing leads out of.
#[derive(Debug)]
pub(crate) struct Root {
    descriptor: OwnedFd,
    handle: PathHandle,
    /// Without links.
    path: PathBuf,
    /// What an absolute path may begin with: the path above, and the one that was asked for.
    prefixes: Vec<PathBuf>,
    resolver: Resolver,
    reserved: OnceLock<ReservedPaths>,
}

/// Directories of the system that no tool reads or writes, also where the root contains them.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Directories below the root that tools keep out of, relative to it.
#[derive(Debug)]
struct ReservedPaths {
    hidden: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

/// A directory and where it really is, relative to the root.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) descriptor: OwnedFd,
    pub(crate) path: PathBuf,
}

/// A regular file and what the system knows of it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) stat: Stat,
}

impl Opened {
    pub(crate) fn size(&self) -> u64 {
        size(&self.stat)
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found {
    File(Opened, PathBuf),
    Directory(Directory),
}

impl Root {
    /// Opens the root. It may itself be a link; from then on it is the directory that it is now,
    /// wherever that is moved.
    pub(crate) fn open(asked: &Path, resolver: Resolver) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Root {
            path: asked.to_owned(),
            source,
        };
        let path = asked.canonicalize().map_err(failed)?;
        let mut root = Self::at(PathHandle::open(&path)?, resolver)?;
        root.prefixes
            .push(std::path::absolute(asked).map_err(failed)?);
        Ok(root)
    }

    /// The root at a directory that is open already.
    pub(crate) fn at(handle: PathHandle, resolver: Resolver) -> Result<Self, OpenError> {
        let path = handle.path().to_owned();
        let descriptor =
            openat(&handle, ".", DIRECTORY, Mode::empty()).map_err(|errno| OpenError::Root {
                path: path.clone(),
                source: errno.into(),
            })?;
        let root = Self {
            descriptor,
            handle,
            prefixes: vec![path.clone()],
            path,
            resolver,
            reserved: OnceLock::new(),
        };
        if root.is_still_there() {
            Ok(root)
        } else {
            Err(OpenError::Replaced { path: root.path })
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps out of the hidden and protected directories of a sandbox, and of those of the system, from now on.
    pub(crate) fn reserve(&self, confinement: &Confinement) {
        // A root inside a reserved directory is reserved as a whole, by the empty path.
        let relative = |path: &PathBuf| match path.strip_prefix(&self.path) {
            Ok(below) => Some(below.to_owned()),
            Err(_) => self.path.starts_with(path).then(PathBuf::new),
        };
        // A root inside of a directory of the system was chosen on purpose.
        let below = |path: &&str| Some(Path::new(path).strip_prefix(&self.path).ok()?.to_owned());
        self.reserved.get_or_init(|| ReservedPaths {
            hidden: (confinement.hidden().iter())
                .filter_map(relative)
                .chain(SYSTEM.iter().filter_map(below))
                .collect(),
            protected: (confinement.protected().iter())
                .filter_map(relative)
                .collect(),
        });
    }

    /// Refuses a path, relative to the root, whose files are hidden.
    pub(crate) fn check_readable(&self, path: &Path) -> Result<(), Refusal> {
        self.check_reserved(path, |reserved| reserved.hidden.iter().chain(&[]))
    }

    /// Refuses a path, relative to the root, that is not to be written.
    pub(crate) fn check_writable(&self, path: &Path) -> Result<(), Refusal> {
        self.check_reserved(path, |reserved| {
            reserved.hidden.iter().chain(&reserved.protected)
        })
    }

    fn check_reserved<'a, I: Iterator<Item = &'a PathBuf>>(
        &'a self,
        path: &Path,
        chosen: impl FnMut(&'a ReservedPaths) -> I,
    ) -> Result<(), Refusal> {
        let mut chosen = self.reserved.get().into_iter().flat_map(chosen);
        if chosen.any(|reserved| path.starts_with(reserved)) {
            let shown = crate::text::shown(path);
            let message = format!("`{shown}` belongs to cocode itself or to the system");
            return Err(Refusal::denied(message));
        }
        Ok(())
    }

    /// The root as other programs are started in it.
    pub(crate) fn handle(&self) -> &PathHandle {
        &self.handle
    }

    /// Whether the path of the root still leads to the directory that was opened.
    pub(crate) fn is_still_there(&self) -> bool {
        let (Ok(named), Ok(held)) = (stat(&self.path), fstat(&self.descriptor)) else {
            return false;
        };
        same_file(&named, &held)
    }

    /// Reads a path as a caller wrote it.
    pub(crate) fn inside(&self, text: &str) -> Result<Inside, Refusal> {
        Inside::parse(text, &self.prefixes)
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Inside) -> Result<Opened, Refusal> {
        match self.look_up(path)? {
            Found::File(opened, _) => Ok(opened),
            Found::Directory(_) => Err(Refusal::system("read", path.shown(), Errno::ISDIR)),
        }
    }

    /// Opens a directory.
    pub(crate) fn open_directory(&self, path: &Inside) -> Result<Directory, Refusal> {
        match self.look_up(path)? {
            Found::Directory(directory) => Ok(directory),
            Found::File(..) => Err(Refusal::new(format!(
                "`{}` is a file, not a directory",
                path.shown()
            ))),
        }
    }

    /// Opens a regular file or a directory; what is anything else is refused unopened.
    pub(crate) fn look_up(&self, path: &Inside) -> Result<Found, Refusal> {
        let found = self.find(path)?;
        let (Found::File(_, real) | Found::Directory(Directory { path: real, .. })) = &found;
        self.check_readable(real)?;
        Ok(found)
    }

    fn find(&self, path: &Inside) -> Result<Found, Refusal> {
        if self.resolver == Resolver::System
            && let Some(found) = self.open_beneath(path)?
        {
            return Ok(found);
        }
        for _ in 0..MAX_RACES {
            let place = self.locate(path, Missing::Refused)?;
            match open_at(&place, path) {
                Err(Errno::LOOP | Errno::MLINK) => {}
                Err(errno) => return Err(Refusal::system("open", path.shown(), errno)),
                Ok(found) => return found,
            }
        }
        Err(Refusal::new(format!(
            "`{}` keeps changing while it is opened",
            path.shown()
        )))
    }

    /// Finds out where a path really leads, one component after the other. A file that is not
    /// there yet has a place too.
    pub(crate) fn locate(&self, path: &Inside, missing: Missing) -> Result<Place, Refusal> {
        walker::locate(self, path, missing)
    }

    /// Asks the system to resolve the path; nothing when the walker must.
    fn open_beneath(&self, path: &Inside) -> Result<Option<Found>, Refusal> {
        let relative = path.relative();
        // What it is decides whether it is opened at all: opening alone can have effects.
        let known = match beneath::stat(self.as_fd(), relative) {
            Ok(known) => known,
            Err(beneath::NotOpened::AskWalker) => return Ok(None),
            Err(beneath::NotOpened::Failed(errno)) => {
                return Err(Refusal::system("open", path.shown(), errno));
            }
        };
        let flags = match FileType::from_raw_mode(known.st_mode) {
            FileType::RegularFile => FILE,
            FileType::Directory => DIRECTORY,
            // Without following it, the system looks at the last link itself.
            FileType::Symlink => return Ok(None),
            other => return Err(special(path, other)),
        };
        match beneath::open(self.as_fd(), relative, flags) {
            Ok(descriptor) => finish(descriptor, relative.to_owned(), path).map(Some),
            Err(beneath::NotOpened::AskWalker) => Ok(None),
            Err(beneath::NotOpened::Failed(errno)) => {
                Err(Refusal::system("open", path.shown(), errno))
            }
        }
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Opens what is at a place that the walker has found. The outer error is that of the system, and
/// a link there means that the place has changed.
fn open_at(place: &Place, path: &Inside) -> Result<Result<Found, Refusal>, Errno> {
    let name: OsString = place.name.clone().unwrap_or_else(|| ".".into());
    let known = statat(&place.parent, &name, AtFlags::SYMLINK_NOFOLLOW)?;
    let flags = match FileType::from_raw_mode(known.st_mode) {
        FileType::RegularFile => FILE,
        FileType::Directory => DIRECTORY,
        FileType::Symlink => return Err(Errno::LOOP),
        other => return Ok(Err(special(path, other))),
    };
    let descriptor = match openat(&place.parent, &name, flags, Mode::empty()) {
        // A directory became a link, which this combination of flags reports so.
        Err(Errno::NOTDIR) => return Err(Errno::LOOP),
        other => other?,
    };
    Ok(finish(descriptor, place.path(), path))
}

/// Asks the descriptor itself what was opened: names may have changed since they were looked at.
fn finish(descriptor: OwnedFd, real: PathBuf, path: &Inside) -> Result<Found, Refusal> {
    let stat = fstat(&descriptor).map_err(|errno| Refusal::system("open", path.shown(), errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Found::File(
            Opened {
                file: File::from(descriptor),
                stat,
            },
            real,
        )),
        FileType::Directory => Ok(Found::Directory(Directory {
            descriptor,
            path: real,
        })),
        other => Err(special(path, other)),
    }
}

fn special(path: &Inside, kind: FileType) -> Refusal {
    let kind = match kind {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "neither a file nor a directory",
    };
    Refusal::new(format!(
        "`{}` is {kind}; only files and directories are opened",
        path.shown()
    ))
}

/// The size of a file; the system never reports a negative one.
pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

pub(crate) fn same_file(left: &Stat, right: &Stat) -> bool {
    left.st_dev == right.st_dev && left.st_ino == right.st_ino
}

#[cfg(test)]
#[path = "confine/attack_tests.rs"]
mod attack_tests;
#[cfg(test)]
#[path = "confine/house_tests.rs"]
mod house_tests;
#[cfg(test)]
#[path = "confine/race_tests.rs"]
mod race_tests;
#[cfg(test)]
#[path = "confine/replace_tests.rs"]
mod replace_tests;
