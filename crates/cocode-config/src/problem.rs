//! What is wrong with a file, said so that it can be mended: where, to which server, at which key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::entry::visible;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file.
    pub file: Arc<Path>,
    /// The line, counted from 1.
    pub line: Option<u32>,
}

/// Whether something still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// What was written does not count.
    Error,
    /// It counts, but probably not as meant.
    Warning,
}

/// Something that is wrong in a file. The rest of the file, and the other files, still count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub origin: Origin,
    /// The server it is about, if it is about one.
    pub server: Option<String>,
    /// The key it is about.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Origin {
    /// A file as a whole.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let file = Arc::from(path.into());
        Self { file, line: None }
    }

    /// A line of the same file.
    #[must_use]
    pub fn at(&self, line: u32) -> Self {
        let file = Arc::clone(&self.file);
        let line = Some(line);
        Self { file, line }
    }
}

impl Problem {
    pub(crate) fn error(origin: Origin, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            origin,
            server: None,
            key: None,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn warning(origin: Origin, message: impl Into<String>) -> Self {
        let severity = Severity::Warning;
        Self {
            severity,
            ..Self::error(origin, message)
        }
    }

    #[must_use]
    pub(crate) fn server(mut self, name: &str) -> Self {
        self.server = Some(name.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether something that was written does not count.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names of files, servers and keys come from anywhere, and go to a terminal.
        formatter.write_str(&visible(&self.file.display().to_string()))?;
        match self.line {
            Some(line) => write!(formatter, ":{line}"),
            None => Ok(()),
        }
    }
}

/// `FILE:LINE: server `x`, key `y`: what is wrong`. The hint is left to whoever shows it.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.origin)?;
        match (&self.server, &self.key) {
            (Some(server), Some(key)) => {
                let (server, key) = (visible(server), visible(key));
                write!(formatter, "server `{server}`, key `{key}`: ")?;
            }
            (Some(server), None) => write!(formatter, "server `{}`: ", visible(server))?,
            (None, Some(key)) => write!(formatter, "key `{}`: ", visible(key))?,
            (None, None) => {}
        }
        formatter.write_str(&visible(&self.message))
    }
}
