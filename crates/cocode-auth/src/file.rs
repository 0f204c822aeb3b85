//! The file of secrets: private to its owner, replaced as a whole, changed by one process at a
//! time. Besides the secrets of the file it holds the names of those in the keyring, because not
//! every keyring can list them.
//!
//! Readers take no lock: a rename puts either the old file or the new one in their way.

mod content;
mod error;
mod private;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

pub(crate) use content::Content;
pub use error::FileError;
pub(crate) use private::{open_lock, prepare_directory};

/// What a file is for. Each has its own names, so that one is never read as the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// What a user named and set.
    Secrets,
    /// What signing in brought.
    Credentials,
}

impl FileKind {
    fn name(self) -> &'static str {
        match self {
            Self::Secrets => "secrets.json",
            Self::Credentials => "credentials.json",
        }
    }

    /// Written first and then renamed. Only the holder of the lock touches it, so one name will do,
    /// and what a killed process left is cleared by the next.
    fn new_name(self) -> &'static str {
        match self {
            Self::Secrets => "secrets.json.new",
            Self::Credentials => "credentials.json.new",
        }
    }

    /// A file of its own, because the lock must outlive the replacement of the file it guards.
    /// Never removed: two processes could else hold locks on two files of that name.
    fn lock_name(self) -> &'static str {
        match self {
            Self::Secrets => "secrets.lock",
            Self::Credentials => "credentials.lock",
        }
    }

    /// How one comes by its content again.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Secrets => "set the secrets again",
            Self::Credentials => "sign in again",
        }
    }
}

/// More than any number of secrets needs.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// How long another process may hold the lock. Each holds it for milliseconds.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The file of secrets in a directory. Nothing is created before the first change.
#[derive(Debug, Clone)]
pub(crate) struct SecretFile {
    kind: FileKind,
    directory: PathBuf,
}

impl SecretFile {
    pub(crate) fn new(kind: FileKind, directory: PathBuf) -> Self {
        Self { kind, directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(self.kind.name())
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
        private::check_file(&path, &metadata)?;
        if metadata.len() > MAX_FILE_BYTES {
            return Err(FileError::TooLarge { path });
        }
        let expected = usize::try_from(metadata.len()).unwrap_or_default();
        let mut bytes = Zeroizing::new(Vec::with_capacity(expected + 1));
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(self.failure("read"))?;
        Content::parse(self.kind, &path, &bytes)
    }

    fn update_now(&self, change: impl FnOnce(&mut Content) -> bool) -> Result<bool, FileError> {
        prepare_directory(&self.directory)?;
        // Released when it is dropped.
        let _lock = self.lock()?;
        let mut content = self.read_now()?;
        if !change(&mut content) {
            return Ok(false);
        }
        self.replace(&content)?;
        Ok(true)
    }

    fn lock(&self) -> Result<File, FileError> {
        let path = self.directory.join(self.kind.lock_name());
        let file = open_lock(&path)?;
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
        let new_path = self.directory.join(self.kind.new_name());
        match fs::remove_file(&new_path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(FileError::io("clear", &new_path)(error)),
        }
        let bytes = content
            .to_bytes()
            .map_err(|error| FileError::io("write", &new_path)(error.into()))?;
        // It could not be read again.
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
            return Err(FileError::TooLarge { path: self.path() });
        }
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
