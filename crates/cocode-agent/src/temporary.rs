//! Temporary files of conversations: one directory each, removed together with the conversation.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cocode_tools::remove_tree;

use crate::store::ConversationId;

/// Directories that are looked at after conversations were removed.
const MAX_SWEPT: usize = 10_000;

/// The directory of a conversation, below the directory of our own data.
pub(crate) fn temporary_directory(state: &Path, id: &ConversationId) -> PathBuf {
    all(state).join(id.as_str())
}

fn all(state: &Path) -> PathBuf {
    state.join("tmp").join("conversations")
}

/// Removes the temporary files of a conversation, if there are any. Blocks.
pub fn remove_temporary(state: &Path, id: &ConversationId) {
    remove(&temporary_directory(state, id));
}

fn remove(path: &Path) {
    if let Err(error) = remove_tree(path) {
        tracing::warn!(%error, path = %path.display(), "cannot remove temporary directory");
    }
}

/// Removes temporary files of conversations that were not opened for so many days. Blocks.
pub fn remove_old_temporary(state: &Path, days: u64) -> std::io::Result<()> {
    let age = Duration::from_hours(days.saturating_mul(24));
    let entries = match std::fs::read_dir(all(state)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries.take(MAX_SWEPT) {
        let entry = entry?;
        let opened = entry.metadata()?.modified()?;
        if opened.elapsed().is_ok_and(|elapsed| elapsed > age) {
            remove(&entry.path());
        }
    }
    Ok(())
}
