//! Tokens that are kept in a file of JSON: private to its owner, replaced as a whole, changed by one
//! process at a time.
//!
//! Readers take no lock: a rename puts either the old file or the new one in their way.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::content::{Content, place};
use super::memory::{insert, remove};
use super::{TokenHash, TokenRecord, TokenStamp, TokenStore, TokenStoreError, newer_use};
use crate::Work;
use crate::principal::PrincipalName;
use crate::private::{self, Lock, Opening, PrivateError};

/// More than any number of tokens needs.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

const FILE: &str = "tokens.json";
/// Written first and then renamed. Only the holder of the lock touches it.
const NEW_FILE: &str = "tokens.json.new";
const LOCK: &str = "tokens.lock";

/// Keeps tokens in the file `tokens.json` of a directory. Nothing is made before the first change.
#[derive(Clone, Debug)]
pub struct FileTokenStore {
    directory: PathBuf,
}

impl FileTokenStore {
    /// Keeps tokens in this directory, which is to be its owner's alone.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self { directory }
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn read(&self) -> Result<Content, TokenStoreError> {
        let path = self.path();
        let Some(file) = private::open_if_there(&path, Opening::Read)? else {
            return Ok(Content::default());
        };
        let mut bytes = Vec::new();
        let unreadable = |error: io::Error| self.unusable("read", error.to_string());
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
            return Err(TokenStoreError::Damaged {
                place: place(&path),
                why: format!("the file is larger than {MAX_FILE_BYTES} bytes"),
            });
        }
        Content::parse(&path, &bytes)
    }

    fn records(&self) -> Result<Vec<TokenRecord>, TokenStoreError> {
        self.read()?.records(&self.path())
    }

    /// Changes the file, alone among all processes.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<T, TokenStoreError>,
    ) -> Result<T, TokenStoreError> {
        private::prepare_directory(&self.directory)?;
        // Let go of when it is dropped.
        let _lock = Lock::take(&self.directory.join(LOCK))?;
        let path = self.path();
        let mut content = self.read()?;
        let before = content.records(&path)?;
        let mut records = before.clone();
        let changed = change(&mut records)?;
        if records != before {
            content.set(&records);
            let bytes = content
                .to_bytes()
                .map_err(|error| self.unusable("changed", error.to_string()))?;
            private::replace(&path, &self.directory.join(NEW_FILE), &bytes)?;
        }
        Ok(changed)
    }

    fn stamp_now(&self) -> Result<TokenStamp, TokenStoreError> {
        let metadata = match std::fs::symlink_metadata(self.path()) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(TokenStamp::default());
            }
            Err(error) => return Err(self.unusable("read", error.to_string())),
        };
        // Replacing the file makes another inode, and edits in place make another time.
        let parts = [
            metadata.dev(),
            metadata.ino(),
            metadata.size(),
            metadata.mtime().cast_unsigned(),
            metadata.mtime_nsec().cast_unsigned(),
            metadata.ctime().cast_unsigned(),
            metadata.ctime_nsec().cast_unsigned(),
        ];
        Ok(TokenStamp::new(parts.map(u64::to_be_bytes).concat()))
    }

    fn unusable(&self, action: &'static str, why: String) -> TokenStoreError {
        unusable(&self.path(), action, why)
    }

    /// Does on a thread of its own what may wait for the disk or for another process. Dropping the
    /// future leaves it to finish by itself.
    async fn blocking<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Self) -> Result<T, TokenStoreError> + Send + 'static,
    ) -> Result<T, TokenStoreError> {
        let store = self.clone();
        tokio::task::spawn_blocking(move || work(&store))
            .await
            .unwrap_or_else(|error| Err(self.unusable(action, error.to_string())))
    }
}

fn unusable(path: &Path, action: &'static str, why: String) -> TokenStoreError {
    TokenStoreError::Unusable {
        place: place(path),
        action,
        why,
    }
}

impl From<PrivateError> for TokenStoreError {
    fn from(error: PrivateError) -> Self {
        match error {
            PrivateError::NotPrivate { path, why } => Self::NotPrivate { path, why },
            PrivateError::Busy { path, after } => Self::Busy { path, after },
            PrivateError::Io {
                action,
                path,
                source,
            } => unusable(&path, "used", format!("cannot {action} it: {source}")),
        }
    }
}

impl TokenStore for FileTokenStore {
    fn add<'a>(&'a self, token: &'a TokenRecord) -> Work<'a, Result<(), TokenStoreError>> {
        let token = token.clone();
        Box::pin(self.blocking("changed", move |store| {
            store.change(|tokens| insert(tokens, &token))
        }))
    }

    fn list(&self) -> Work<'_, Result<Vec<TokenRecord>, TokenStoreError>> {
        Box::pin(self.blocking("read", Self::records))
    }

    fn revoke<'a>(
        &'a self,
        name: &'a PrincipalName,
    ) -> Work<'a, Result<TokenRecord, TokenStoreError>> {
        let name = name.clone();
        Box::pin(self.blocking("changed", move |store| {
            store.change(|tokens| remove(tokens, &name))
        }))
    }

    fn note_use<'a>(
        &'a self,
        used: &'a [(TokenHash, SystemTime)],
    ) -> Work<'a, Result<(), TokenStoreError>> {
        let used = used.to_vec();
        Box::pin(self.blocking("changed", move |store| {
            store.change(|tokens| {
                for token in tokens {
                    token.last_used = newer_use(token, &used);
                }
                Ok(())
            })
        }))
    }

    fn stamp(&self) -> Work<'_, Result<TokenStamp, TokenStoreError>> {
        Box::pin(self.blocking("read", Self::stamp_now))
    }
}
