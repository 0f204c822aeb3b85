//! Workspace tools for agents, confined to a root: read, list, find, grep, edit, write, shell.
//!
//! [`Workspace::open`] takes a directory and what may be done in it; [`Workspace::definitions`]
//! says which tools there are, and [`Workspace::call`] runs one. What the model should hear about,
//! a missing file or a path that leads outside, is a [`ToolOutput`] with `is_error` set; a
//! [`ToolError`] is for the caller.
//!
//! All work on files goes through descriptors below that of the root, opened without following a
//! link that the crate has not read itself, so that neither paths nor links nor races lead out.
//! The shell only starts in the root. What its commands may write is up to a [`Confinement`] that the
//! caller gives; without one they can do whatever this process can. Nothing here reads the environment.

#[cfg(not(unix))]
compile_error!("cocode-tools needs a Unix system");

mod confine;
mod definition;
mod error;
mod glob;
mod hook_files;
mod job;
mod limits;
mod output;
mod progress;
mod refusal;
mod sandbox;
mod text;
mod tool;
mod tools;
mod walk;
mod workspace;

pub use cocode_process::{ConfineError, Confinement, PathHandle, TemporaryDirectory, remove_tree};
pub use definition::ToolDefinition;
pub use error::{OpenError, ToolError};
pub use hook_files::HookChanges;
pub use output::{Block, Denial, ToolOutput};
pub use progress::{NoProgress, Progress};
pub use sandbox::{LeaveRequest, Leaving};
pub use workspace::{Permissions, Workspace};
