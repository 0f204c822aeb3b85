//! What files of other tools were before we changed them, so that it can be undone.
//!
//! Each export has a folder of its own: what the file was, what we made of it, and which file it
//! is. All are for their owner only, because such files hold secrets.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cocode_config::{EditError, PRIVATE_MODE, Tool, WriteError, write_atomically};
use serde::{Deserialize, Serialize};

use crate::error::{CliError, Code};
use crate::manage::writing::not_written;

/// So many are kept for each file.
const MAX_BACKUPS_PER_FILE: usize = 10;

const ABOUT: &str = "about.json";
const BEFORE: &str = "before";
const AFTER: &str = "after";

/// All backups.
#[derive(Debug)]
pub(crate) struct Backups {
    directory: PathBuf,
}

/// What one export changed.
#[derive(Debug)]
pub(crate) struct Backup {
    pub(crate) directory: PathBuf,
    about: About,
}

#[derive(Debug, Serialize, Deserialize)]
struct About {
    tool: String,
    file: PathBuf,
    kind: Kind,
}

/// What a backup is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// An export, which can be undone.
    Export,
    /// What an undo replaced although it had changed; for the user to look at.
    Undo,
}

impl Backups {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Keeps what a file was, and what it becomes. Without a text there was none.
    pub(crate) fn save(
        &self,
        kind: Kind,
        tool: Tool,
        file: &Path,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Result<Backup, CliError> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700).recursive(true);
        let make = |path: &Path, builder: &DirBuilder| builder.create(path);
        make(&self.directory, &builder)
            .map_err(|error| CliError::file("make", &self.directory, &error))?;
        builder.recursive(false);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut now = since.map(|since| since.as_millis()).unwrap_or_default();
        let directory = loop {
            // Another export may have had the same moment.
            let directory = self.directory.join(format!("{now:015}-{tool}"));
            match make(&directory, &builder) {
                Ok(()) => break directory,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => now += 1,
                Err(error) => return Err(CliError::file("make", &directory, &error)),
            }
        };
        let about = About {
            tool: tool.id().to_owned(),
            file: file.to_owned(),
            kind,
        };
        let text = serde_json::to_string(&about).map_err(|error| {
            CliError::new(Code::SetupFailed, "cannot write JSON").because(&error)
        })?;
        let put = |name: &str, text: &str| {
            let path = directory.join(name);
            write_atomically(&path, text.as_bytes(), Some(PRIVATE_MODE))
        };
        let put_if = |name: &str, text: Option<&str>| text.map_or(Ok(()), |text| put(name, text));
        // Without the last one the folder does not count.
        put_if(BEFORE, before)
            .and_then(|()| put_if(AFTER, after))
            .and_then(|()| put(ABOUT, &text))
            .map_err(cannot_write)?;
        self.prune(file)?;
        Ok(Backup { directory, about })
    }

    /// The last export of a file.
    pub(crate) fn last(&self, file: &Path) -> Result<Option<Backup>, CliError> {
        let mut all = self.of(file)?;
        all.retain(|backup| backup.about.kind == Kind::Export);
        Ok(all.pop())
    }

    /// All of a file, the oldest first.
    fn of(&self, file: &Path) -> Result<Vec<Backup>, CliError> {
        let cannot = |error: io::Error| CliError::file("read", &self.directory, &error);
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let directory = entry.map_err(cannot)?.path();
            // What is not ours, or was not finished, is no backup.
            let Ok(text) = std::fs::read_to_string(directory.join(ABOUT)) else {
                continue;
            };
            let Ok(about) = serde_json::from_str::<About>(&text) else {
                continue;
            };
            if about.file == file {
                found.push(Backup { directory, about });
            }
        }
        found.sort_by(|one, other| one.directory.cmp(&other.directory));
        Ok(found)
    }

    fn prune(&self, file: &Path) -> Result<(), CliError> {
        let all = self.of(file)?;
        let n_old = all.len().saturating_sub(MAX_BACKUPS_PER_FILE);
        all.into_iter().take(n_old).try_for_each(Backup::discard)
    }
}

impl Backup {
    /// What the file was, if there was one.
    pub(crate) fn before(&self) -> Result<Option<String>, CliError> {
        self.text(BEFORE)
    }

    /// What we made of it.
    pub(crate) fn after(&self) -> Result<Option<String>, CliError> {
        self.text(AFTER)
    }

    fn text(&self, name: &str) -> Result<Option<String>, CliError> {
        let path = self.directory.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CliError::file("read", &path, &error)),
        }
    }

    /// Which tool the file is of.
    pub(crate) fn tool(&self) -> &str {
        &self.about.tool
    }

    pub(crate) fn discard(self) -> Result<(), CliError> {
        std::fs::remove_dir_all(&self.directory)
            .map_err(|error| CliError::file("remove", &self.directory, &error))
    }
}

/// A file that could not be written, as it was.
pub(crate) fn cannot_write(error: WriteError) -> CliError {
    not_written(&EditError::from(error))
}
