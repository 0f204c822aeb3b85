//! Files and directories that are opened once, without following links, and used by descriptor from then on.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::ConfineError;

/// Opens a name without reading anything and without following a link.
#[cfg(target_os = "linux")]
const NAME_ONLY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const NAME_ONLY: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Links directly below `/` that are followed one after the other before it is called a loop.
const MAX_TOP_LINKS: usize = 8;

/// A file or directory, held by a descriptor. It stays the same one whatever its path leads to later.
#[derive(Clone, Debug)]
pub struct PathHandle(Arc<HeldPath>);

#[derive(Debug)]
struct HeldPath {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl PathHandle {
    /// Opens a path, of which no component may be a link. A program that may write a directory could have put it there.
    /// Links directly below `/` belong to the system and are followed.
    pub fn open(path: &Path) -> Result<Self, ConfineError> {
        let failed = |source: io::Error| ConfineError::Open {
            path: path.to_owned(),
            source,
        };
        let absolute = std::path::absolute(path).map_err(failed)?;
        let mut rest: Vec<OsString> = names(&absolute);
        let top = rustix::fs::open("/", NAME_ONLY, Mode::empty()).map_err(|e| failed(e.into()))?;
        let (mut descriptor, mut depth, mut links) = (top, 0_usize, 0_usize);
        while let Some(name) = rest.pop() {
            let opened = match rustix::fs::openat(&descriptor, &name, NAME_ONLY, Mode::empty()) {
                // Systems without `O_PATH` refuse to open a link.
                Err(Errno::LOOP | Errno::MLINK) => None,
                Err(error) => return Err(failed(error.into())),
                Ok(opened) => {
                    let stat = rustix::fs::fstat(&opened).map_err(|e| failed(e.into()))?;
                    let kind = FileType::from_raw_mode(stat.st_mode);
                    (kind != FileType::Symlink).then_some(opened)
                }
            };
            if let Some(opened) = opened {
                depth = depth.saturating_add(1);
                descriptor = opened;
                continue;
            }
            links = links.saturating_add(1);
            if depth > 0 || links > MAX_TOP_LINKS {
                return Err(ConfineError::Link {
                    path: path.to_owned(),
                    name,
                });
            }
            let target = rustix::fs::readlinkat(&descriptor, &name, Vec::new())
                .map_err(|e| failed(e.into()))?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            rest.extend(names(&target));
        }
        Ok(Self::new(absolute, descriptor))
    }

    fn new(path: PathBuf, descriptor: OwnedFd) -> Self {
        Self(Arc::new(HeldPath { path, descriptor }))
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The path that it has now.
    pub(super) fn current_path(&self) -> Result<PathBuf, ConfineError> {
        #[cfg(target_os = "linux")]
        let found = {
            use std::os::fd::AsRawFd as _;
            std::fs::read_link(format!("/proc/self/fd/{}", self.0.descriptor.as_raw_fd()))
        };
        #[cfg(not(target_os = "linux"))]
        let found = rustix::fs::getpath(&self.0.descriptor)
            .map(|path| PathBuf::from(OsString::from_vec(path.into_bytes())))
            .map_err(io::Error::from);
        found.map_err(|source| ConfineError::Open {
            path: self.path().to_owned(),
            source,
        })
    }

    /// Opens an entry of this directory, unless it is a link.
    #[cfg(target_os = "linux")]
    pub(super) fn entry(&self, name: &std::ffi::OsStr) -> io::Result<Option<Self>> {
        let opened = rustix::fs::openat(&self.0.descriptor, name, NAME_ONLY, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
        Ok((kind != FileType::Symlink).then(|| Self::new(self.path().join(name), opened)))
    }

    /// The names in this directory.
    #[cfg(target_os = "linux")]
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&self.0.descriptor, ".", flags, Mode::empty())?;
        for entry in rustix::fs::Dir::new(readable)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }
}

impl AsFd for PathHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }
}

/// The components below the root directory, last one first. `..` is resolved by the system, by descriptor.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}
