//! The tools, one file each.

mod edit;
mod find;
mod grep;
mod list;
mod read;
mod shell;
mod write;

pub(crate) use edit::Edit;
pub(crate) use find::Find;
pub(crate) use grep::Grep;
pub(crate) use list::List;
pub(crate) use read::Read;
pub(crate) use shell::{NAME as SHELL, Shell};
pub(crate) use write::Write;

/// Adds notes about what was left out, below the text and apart from it.
fn with_notes(mut text: String, notes: &[String]) -> String {
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push('[');
        text.push_str(note);
        text.push(']');
    }
    text
}
