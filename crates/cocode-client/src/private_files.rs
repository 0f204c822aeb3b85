//! Files that are for their owner only: directories of mode 0700, files of mode 0600, and writes
//! that are never seen half done.
//!
//! Nothing here is forced to the disk. What is kept this way can be lost with the power, and
//! whoever reads it must notice if it was.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// The mode of directories.
const DIRECTORY_MODE: u32 = 0o700;
/// The mode of files.
pub(crate) const FILE_MODE: u32 = 0o600;
/// What files end with while they are written.
pub(crate) const UNFINISHED: &str = ".new";

/// A file that cannot be read, written or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    /// What was to be done.
    pub action: &'static str,
    /// To what.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            action,
            path,
            source,
        }
    }
}

/// Makes a directory and those above it, where they are missing. One that others may enter is
/// closed to them.
pub(crate) fn make_directory(path: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)
        .map_err(FileError::of("make the directory", path))?;
    let mode = fs::metadata(path)
        .map_err(FileError::of("inspect", path))?
        .mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))
            .map_err(FileError::of("close to others", path))?;
    }
    Ok(())
}

/// Makes a file that was not there before.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
}

/// Puts bytes in the place of a file: whoever reads it finds the old ones or the new ones, however
/// many processes write.
pub(crate) fn replace(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), FileError> {
    make_directory(directory)?;
    let new_path = directory.join(format!(".{name}.{:016x}{UNFINISHED}", fastrand::u64(..)));
    let written = create_new(&new_path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(FileError::of("write", &new_path));
    let path = directory.join(name);
    let replaced = written
        .and_then(|()| fs::rename(&new_path, &path).map_err(FileError::of("replace", &path)));
    if replaced.is_err() {
        // The error that is told is the first one.
        drop(fs::remove_file(&new_path));
    }
    replaced
}

/// The bytes of a regular file of at most `limit` bytes. Anything else is as good as none.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::of("inspect", path)(error)),
    };
    if !metadata.is_file() || metadata.len() > limit {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| {
        // It may have grown, or be another file by now.
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)
    });
    match read {
        Ok(_length) => {
            let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= limit);
            Ok(fits.then_some(bytes))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::of("read", path)(error)),
    }
}

/// Removes a file, and says whether it was there.
pub(crate) fn remove(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::of("remove", path)(error)),
    }
}

/// Lower-case hexadecimal digits of the SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
        text
    })
}
