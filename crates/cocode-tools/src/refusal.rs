//! Why a tool does not do what was asked, as one sentence for a model.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// A reason, complete and without secrets of the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    sentence: String,
    is_denial: bool,
}

impl Refusal {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            is_denial: false,
        }
    }

    /// The sandbox does not allow it, and somebody could.
    pub(crate) fn denied(sentence: impl Into<String>) -> Self {
        Self {
            is_denial: true,
            ..Self::new(sentence)
        }
    }

    pub(crate) fn is_denial(&self) -> bool {
        self.is_denial
    }

    /// What the path leads to is not in the workspace. Says the same whether it exists or not.
    pub(crate) fn outside(path: &str) -> Self {
        Self::new(format!("`{path}` is outside the workspace"))
    }

    /// The call was dropped; nobody reads this.
    pub(crate) fn cancelled() -> Self {
        Self::new("the call was canceled")
    }

    /// What the system said when something was tried with a path.
    pub(crate) fn system(verb: &str, path: &str, errno: Errno) -> Self {
        Self::new(match errno {
            Errno::NOENT => format!("`{path}` does not exist"),
            Errno::NOTDIR => {
                format!("cannot {verb} `{path}`: a part of the path is not a directory")
            }
            Errno::ISDIR => format!("cannot {verb} `{path}`: it is a directory"),
            Errno::ACCESS | Errno::PERM => format!("cannot {verb} `{path}`: permission denied"),
            Errno::NAMETOOLONG => format!("cannot {verb} `{path}`: the name is too long"),
            Errno::LOOP => format!("cannot {verb} `{path}`: too many symbolic links"),
            Errno::NOSPC | Errno::DQUOT => format!("cannot {verb} `{path}`: no space is left"),
            Errno::ROFS => format!("cannot {verb} `{path}`: the file system is read-only"),
            other => format!("cannot {verb} `{path}`: {}", io::Error::from(other)),
        })
    }

    /// The same for an error of the standard library.
    pub(crate) fn io(verb: &str, path: &str, error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(errno) => Self::system(verb, path, errno),
            None => Self::new(format!("cannot {verb} `{path}`: {error}")),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentence)
    }
}
