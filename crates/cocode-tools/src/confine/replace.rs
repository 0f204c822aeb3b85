//! Files are written whole: a new file beside the old one, brought to disk, then renamed over it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, fsync, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{Inside, Place, same_file};
use crate::job::Job;
use crate::limits::CHUNK_BYTES;
use crate::refusal::Refusal;

/// Names tried for the new file.
const MAX_NAMES: usize = 16;

/// What is there before a file is written.
#[derive(Debug)]
pub(crate) struct Kept {
    stat: Stat,
}

impl Kept {
    /// Looks at what would be replaced: nothing, or a regular file that may be written.
    pub(crate) fn look(place: &Place, path: &Inside) -> Result<Option<Self>, Refusal> {
        let Some(name) = &place.name else {
            return Err(Refusal::system("write", path.shown(), Errno::ISDIR));
        };
        let stat = match statat(&place.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            other => other.map_err(|errno| Refusal::system("write", path.shown(), errno))?,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => {
                return Err(Refusal::system("write", path.shown(), Errno::ISDIR));
            }
            FileType::Symlink => return Err(changed(path)),
            other => return Err(super::special(path, other)),
        }
        may_be_written(place, name, &stat)
            .map_err(|errno| Refusal::system("write", path.shown(), errno))?;
        Ok(Some(Self { stat }))
    }

    /// Opens the file that was looked at, for reading.
    pub(crate) fn open(&self, place: &Place, path: &Inside) -> Result<File, Refusal> {
        let failed = |errno| Refusal::system("read", path.shown(), errno);
        let Some(name) = &place.name else {
            return Err(failed(Errno::ISDIR));
        };
        let file = match openat(&place.parent, name, super::FILE, Mode::empty()) {
            Err(Errno::LOOP | Errno::MLINK) => return Err(changed(path)),
            other => other.map_err(failed)?,
        };
        if same_file(&fstat(&file).map_err(failed)?, &self.stat) {
            Ok(File::from(file))
        } else {
            Err(changed(path))
        }
    }
}

/// A rename would replace a file that its owner has made read-only.
fn may_be_written(place: &Place, name: &OsStr, stat: &Stat) -> Result<(), Errno> {
    if stat.st_mode & 0o222 == 0 {
        return Err(Errno::ACCESS);
    }
    let flags =
        OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(&place.parent, name, flags, Mode::empty()) {
        // A program that runs can be replaced, though not written.
        Ok(_) | Err(Errno::TXTBSY) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Writes a file at a place, replacing what was there: all of the content, or nothing is changed.
/// A file that is replaced keeps its mode, and its owner where that is allowed; other names of the
/// old file (hard links) keep the old content.
pub(crate) fn replace(
    place: &Place,
    path: &Inside,
    kept: Option<&Kept>,
    content: &[u8],
    job: &Job,
) -> Result<(), Refusal> {
    let failed = |errno| Refusal::system("write", path.shown(), errno);
    let Some(name) = &place.name else {
        return Err(failed(Errno::ISDIR));
    };
    // The one that the walker holds may be good only to go through.
    let flags = super::DIRECTORY;
    let directory = openat(&place.parent, ".", flags, Mode::empty()).map_err(failed)?;
    let mut new = New::create(&directory, kept.is_some()).map_err(failed)?;
    for chunk in content.chunks(CHUNK_BYTES) {
        job.check()?;
        new.file
            .write_all(chunk)
            .map_err(|error| Refusal::io("write", path.shown(), &error))?;
    }
    if let Some(kept) = kept {
        new.take_after(kept).map_err(failed)?;
    }
    fsync(&new.file).map_err(failed)?;
    job.check()?;
    if is_changed(&directory, name, kept).map_err(failed)? {
        return Err(changed(path));
    }
    new.rename(name).map_err(failed)?;
    // The content is safe either way; this makes the name safe too, where directories can be.
    match fsync(&directory) {
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// Whether somebody else has written the file since it was looked at. Not a matter of confinement:
/// a rename replaces a link, it never follows one.
fn is_changed(directory: impl AsFd, name: &OsStr, kept: Option<&Kept>) -> Result<bool, Errno> {
    match (statat(directory, name, AtFlags::SYMLINK_NOFOLLOW), kept) {
        (Err(Errno::NOENT), None) => Ok(false),
        (Err(Errno::NOENT), Some(_)) | (Ok(_), None) => Ok(true),
        (Ok(now), Some(Kept { stat })) => Ok(!same_file(&now, stat)
            || now.st_size != stat.st_size
            || now.st_mtime != stat.st_mtime
            || now.st_mtime_nsec != stat.st_mtime_nsec),
        (Err(errno), _) => Err(errno),
    }
}

fn changed(path: &Inside) -> Refusal {
    Refusal::new(format!(
        "`{}` was changed by somebody else at the same time, and was left as it is",
        path.shown()
    ))
}

/// A file that has no name of its own yet; removed unless it is renamed.
struct New<'a> {
    directory: BorrowedFd<'a>,
    file: File,
    name: Option<OsString>,
}

impl<'a> New<'a> {
    fn create(directory: &'a OwnedFd, replaces: bool) -> Result<Self, Errno> {
        // What replaces a private file is private from the beginning; a new one is as the umask
        // of the process says.
        let mode = Mode::from_raw_mode(if replaces { 0o600 } else { 0o666 });
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut result = Err(Errno::EXIST);
        for _ in 0..MAX_NAMES {
            let name = OsString::from(format!(".cocode-{:016x}.tmp", fastrand::u64(..)));
            result = openat(directory, &name, flags, mode).map(|file| Self {
                directory: directory.as_fd(),
                file: File::from(file),
                name: Some(name),
            });
            if !matches!(result, Err(Errno::EXIST)) {
                break;
            }
        }
        result
    }

    /// Takes mode and owner from the file that is replaced, without the bits that lend somebody's
    /// rights: the system takes those away from a file that is written, too.
    fn take_after(&self, kept: &Kept) -> Result<(), Errno> {
        let Kept { stat } = kept;
        let own = fstat(&self.file)?;
        let mut mode = stat.st_mode & 0o1777;
        if own.st_uid != stat.st_uid || own.st_gid != stat.st_gid {
            let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
            let is_kept = fchown(&self.file, Some(user), Some(group)).is_ok()
                || fchown(&self.file, None, Some(group)).is_ok();
            if !is_kept {
                // Another group must not get the rights that this one had.
                mode &= 0o1707;
            }
        }
        fchmod(&self.file, Mode::from_raw_mode(mode))
    }

    fn rename(&mut self, name: &OsStr) -> Result<(), Errno> {
        if let Some(own) = &self.name {
            renameat(self.directory, own, self.directory, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take()
            && let Err(error) = unlinkat(self.directory, &name, AtFlags::empty())
        {
            tracing::warn!(%error, name = %name.display(), "cannot remove a file that was not finished");
        }
    }
}
