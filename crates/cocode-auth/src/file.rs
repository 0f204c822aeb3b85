//! The file of secrets: private to its owner, replaced as a whole, changed by one process at a
//! time. Besides the secrets of the file it holds the names of those in the keyring, because not
//! every keyring can list them.
//!
//! Readers take no lock: a rename puts either the old file or the new one in their way.

mod content;
mod error;

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

pub(crate) use content::Content;
pub use error::FileError;

const FILE_NAME: &str = "secrets.json";
/// Written first and then renamed. Only the holder of the lock touches it, so one name will do,
/// and what a killed process left is cleared by the next.
const NEW_FILE_NAME: &str = "secrets.json.new";
/// A file of its own, because the lock must outlive the replacement of the file it guards. Never
/// removed: two processes could else hold locks on two files of that name.
const LOCK_FILE_NAME: &str = "secrets.lock";

/// More than any number of secrets needs.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// How long another process may hold the lock. Each holds it for milliseconds.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The file of secrets in a directory. Nothing is created before the first change.
#[derive(Debug, Clone)]
pub(crate) struct SecretFile {
    directory: PathBuf,
}

impl SecretFile {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(FILE_NAME)
    }

    /// What the file holds now; nothing, if there is none.
    pub(crate) async fn read(&self) -> Result<Content, FileError> {
        let file = self.clone();
        tokio::task::spawn_blocking(move || file.read_now())
            .await
            .unwrap_or_else(|error| Err(self.failure("read")(error.into())))
    }

    /// Changes the file, alone among all processes. `change` says whether it changed anything, and
    /// so does this.
    ///
    /// Dropping the future part way leaves the change to finish by itself.
    pub(crate) async fn update(
        &self,
        change: impl FnOnce(&mut Content) -> bool + Send + 'static,
    ) -> Result<bool, FileError> {
        let file = self.clone();
        tokio::task::spawn_blocking(move || file.update_now(change))
            .await
            .unwrap_or_else(|error| Err(self.failure("change")(error.into())))
    }

    fn read_now(&self) -> Result<Content, FileError> {
        let path = self.path();
        // Without NONBLOCK, opening a named pipe would wait for a writer.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
            Err(error) => return Err(FileError::opening(&path, error)),
        };
        // Judged by the open file, which nobody can exchange any more.
        let metadata = file.metadata().map_err(self.failure("inspect"))?;
        check_file(&path, &metadata)?;
        if metadata.len() > MAX_FILE_BYTES {
            return Err(FileError::TooLarge { path });
        }
        let expected = usize::try_from(metadata.len()).unwrap_or_default();
        let mut bytes = Zeroizing::new(Vec::with_capacity(expected + 1));
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(self.failure("read"))?;
        Content::parse(&path, &bytes)
    }

    fn update_now(&self, change: impl FnOnce(&mut Content) -> bool) -> Result<bool, FileError> {
        self.prepare_directory()?;
        // Released when it is dropped.
        let _lock = self.lock()?;
        let mut content = self.read_now()?;
        if !change(&mut content) {
            return Ok(false);
        }
        self.replace(&content)?;
        Ok(true)
    }

    /// Makes the directory if it is missing, and refuses one in which others could exchange files.
    fn prepare_directory(&self) -> Result<(), FileError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(FileError::io("create", &self.directory))?;
        let metadata =
            fs::metadata(&self.directory).map_err(FileError::io("inspect", &self.directory))?;
        check_owner(&self.directory, &metadata)?;
        match metadata.mode() & 0o7777 {
            mode if mode & 0o022 != 0 => Err(FileError::OpenDirectory {
                path: self.directory.clone(),
                mode,
            }),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> Result<File, FileError> {
        let path = self.directory.join(LOCK_FILE_NAME);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(|error| FileError::opening(&path, error))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_LIMIT => {
                    thread::sleep(LOCK_POLL);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(FileError::Busy {
                        path,
                        after: LOCK_LIMIT,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(FileError::io("lock", &path)(error)),
            }
        }
    }

    /// Puts new content in the place of the old one. A crash at any point leaves one of the two.
    fn replace(&self, content: &Content) -> Result<(), FileError> {
        let new_path = self.directory.join(NEW_FILE_NAME);
        match fs::remove_file(&new_path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(FileError::io("clear", &new_path)(error)),
        }
        let bytes = content
            .to_bytes()
            .map_err(|error| FileError::io("write", &new_path)(error.into()))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new_path)
            .map_err(FileError::io("create", &new_path))?;
        file.write_all(&bytes)
            .and_then(|()| file.sync_all())
            .map_err(FileError::io("write", &new_path))?;
        fs::rename(&new_path, self.path()).map_err(self.failure("replace"))?;
        // The rename itself must survive a loss of power, too.
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(FileError::io("write", &self.directory))
    }

    fn failure(&self, action: &'static str) -> impl FnOnce(io::Error) -> FileError + use<> {
        FileError::io(action, &self.path())
    }
}

fn check_file(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
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
