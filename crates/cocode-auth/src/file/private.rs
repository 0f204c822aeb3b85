//! Files and directories that belong to one user alone.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::FileError;

/// Makes the directory if it is missing, and refuses one in which others could exchange files.
pub(crate) fn prepare_directory(directory: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(FileError::io("create", directory))?;
    let metadata = fs::metadata(directory).map_err(FileError::io("inspect", directory))?;
    check_owner(directory, &metadata)?;
    match metadata.mode() & 0o7777 {
        mode if mode & 0o022 != 0 => Err(FileError::OpenDirectory {
            path: directory.to_owned(),
            mode,
        }),
        _ => Ok(()),
    }
}

/// Opens a file to be locked, and makes it if it is missing.
pub(crate) fn open_lock(path: &Path) -> Result<File, FileError> {
    // Without NONBLOCK, opening a named pipe could wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| FileError::opening(path, error))?;
    let metadata = file.metadata().map_err(FileError::io("inspect", path))?;
    if !metadata.is_file() {
        return Err(FileError::NotAFile {
            path: path.to_owned(),
        });
    }
    check_owner(path, &metadata)?;
    Ok(file)
}

/// Refuses a file that others may use.
pub(super) fn check_file(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    if !metadata.is_file() {
        return Err(FileError::NotAFile {
            path: path.to_owned(),
        });
    }
    check_owner(path, metadata)?;
    match metadata.mode() & 0o7777 {
        mode if mode & 0o077 != 0 => Err(FileError::OpenFile {
            path: path.to_owned(),
            mode,
        }),
        _ => Ok(()),
    }
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    if metadata.uid() == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(FileError::ForeignOwner {
            path: path.to_owned(),
            owner: metadata.uid(),
        })
    }
}
