//! Files of SQLite that only their owner can read, and that many processes open at the same time.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// How long to wait before a file is opened again that others are opening at the same time. SQLite
/// does not wait there by itself.
const OPENING_PAUSE: Duration = Duration::from_millis(5);
/// Directories that are made here are for their owner only.
const DIRECTORY_MODE: u32 = 0o700;
/// So are files. SQLite gives those that it makes beside it (`-wal`, `-shm`) the same mode.
pub(super) const FILE_MODE: u32 = 0o600;

/// Held while a file is made and opened. The system frees all of a process's locks on a file when any
/// descriptor of that file is closed, and the one that made the file is closed: nobody in this process
/// may have opened it by then.
static OPENING: Mutex<()> = Mutex::new(());

/// What can go wrong with a file, besides what SQLite says of it.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileTrouble {
    pub(super) action: &'static str,
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

/// Why a file cannot be used, to those who keep something in it.
pub trait Unusable: From<rusqlite::Error> + From<FileTrouble> {
    /// What SQLite said, if it did.
    fn sqlite(&self) -> Option<&rusqlite::Error>;
}

/// Opens a file, and makes it and its directory where they are missing.
///
/// `prepare` sets up a connection, and is called again for another one while other processes keep the
/// file busy, until `busy_limit` is over.
pub fn open<T: Unusable>(
    path: &Path,
    busy_limit: Duration,
    prepare: impl Fn(&mut Connection) -> Result<(), T>,
) -> Result<Connection, T> {
    make_directory(path.parent().unwrap_or(Path::new("/")))?;
    let started = Instant::now();
    loop {
        let tried = connect::<T>(path, busy_limit).and_then(|mut connection| {
            prepare(&mut connection)?;
            Ok(connection)
        });
        match tried {
            Err(trouble)
                if trouble.sqlite().is_some_and(is_busy) && started.elapsed() < busy_limit =>
            {
                thread::sleep(OPENING_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

fn connect<T: Unusable>(path: &Path, busy_limit: Duration) -> Result<Connection, T> {
    let opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    make_private_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    drop(opening);
    connection.busy_timeout(busy_limit)?;
    Ok(connection)
}

/// Makes a directory and those above it, where they are missing. Those that are there are left as they
/// are: they may be anybody's.
pub(super) fn make_directory(path: &Path) -> Result<(), FileTrouble> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)
        .map_err(FileTrouble::with("make the directory", path))
}

/// Makes a file that only its owner can read, or closes one to others that is there.
fn make_private_file(path: &Path) -> Result<(), FileTrouble> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path);
    match made {
        Ok(file) => drop(file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(FileTrouble::with("make", path)(error)),
    }
    let mode = fs::metadata(path)
        .map_err(FileTrouble::with("inspect", path))?
        .mode();
    if mode & 0o777 != FILE_MODE {
        fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
            .map_err(FileTrouble::with("close to others", path))?;
    }
    Ok(())
}

/// Whether others are using the file just now.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

impl FileTrouble {
    /// With what was to be done, and to which file.
    pub(super) fn with(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            action,
            path,
            source,
        }
    }
}
