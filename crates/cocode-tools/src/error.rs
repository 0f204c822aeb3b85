//! What can go wrong for the caller. What a model should hear is a tool's output instead.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Why a workspace could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The root does not exist, is not a directory, or may not be read.
    #[error("cannot open the workspace `{}`", path.display())]
    Root {
        /// The root as it was asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A directory cannot be held, or cannot be given to a sandbox.
    #[error(transparent)]
    Handle(#[from] cocode_process::ConfineError),
    /// The root was replaced while it was being opened.
    #[error("the workspace `{}` was replaced while it was being opened", path.display())]
    Replaced {
        /// The root as it was asked for.
        path: PathBuf,
    },
}

/// Why a call has no output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no tool with this name.
    #[error("there is no tool `{tool}`")]
    Unknown {
        /// The name that was called.
        tool: String,
    },
    /// There is such a tool, but the workspace was opened without the permission for it.
    #[error(
        "tool `{tool}` needs the permission to {permission}, which this workspace was not given"
    )]
    NotPermitted {
        /// The name that was called.
        tool: &'static str,
        /// What is missing: `write` or `shell`.
        permission: &'static str,
    },
    /// The arguments are not what the tool takes.
    #[error("invalid arguments for tool `{tool}`: {message}")]
    Arguments {
        /// The name that was called.
        tool: &'static str,
        /// What is wrong with them, written for a model.
        message: String,
    },
    /// The tool itself failed: its thread panicked, or the runtime is shutting down.
    #[error("tool `{tool}` failed")]
    Internal {
        /// The name that was called.
        tool: &'static str,
        /// What happened.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}
