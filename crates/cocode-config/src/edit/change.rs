//! How every edit goes: lock, read, change the text, judge the new text before anybody sees it,
//! put it in place, read it back.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::EditError;
use super::splice::Refusal;
use crate::document::{Format, Node, Value};
use crate::entry::Text;
use crate::lock::{EditContext, WriteError, with_lock, write_atomically};
use crate::problem::{Origin, Problem};
use crate::read::{self, MAX_FILE_BYTES};

/// The mark that Windows editors begin files with. It is kept where it is.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A file that is about to be changed.
pub(super) struct Edit<'a> {
    pub(super) context: &'a EditContext,
    pub(super) file: &'a Path,
    pub(super) format: Format,
    /// What may be another after the edit, as paths of keys.
    pub(super) changes: &'a [&'a [&'a str]],
}

/// What an edit found, and what it made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The text that was there, without a byte order mark; nothing if there was no file.
    pub before: Option<Text>,
    /// The text that was put in its place; nothing if all was as it should be.
    pub after: Option<Text>,
}

impl Edited {
    /// Whether the file was changed.
    pub fn is_changed(&self) -> bool {
        self.after.is_some()
    }
}

impl Edit<'_> {
    /// Does it. `change` makes the new text, or none if all is as it should be; `check` judges
    /// the new text. Says whether the file was changed.
    pub(super) fn run(
        &self,
        change: impl FnOnce(&str) -> Result<Option<String>, EditError>,
        check: impl FnOnce(&Node) -> Result<(), EditError>,
    ) -> Result<bool, EditError> {
        self.run_and_tell(change, check)
            .map(|edited| edited.is_changed())
    }

    /// Does it, and hands back the texts.
    pub(super) fn run_and_tell(
        &self,
        change: impl FnOnce(&str) -> Result<Option<String>, EditError>,
        check: impl FnOnce(&Node) -> Result<(), EditError>,
    ) -> Result<Edited, EditError> {
        with_lock(self.context, self.file, || {
            let found = read::text(self.file, MAX_FILE_BYTES).map_err(EditError::Unreadable)?;
            let text = found.as_deref().unwrap_or_default();
            let tree = self.tree(text).map_err(EditError::Unreadable)?;
            let new = change(text)?.filter(|new| *new != text);
            if let Some(new) = &new {
                self.judge(&tree, new, check)?;
                let mark = if found.is_none() { &[] } else { self.mark()? };
                self.put(&[mark, new.as_bytes()].concat())?;
            }
            Ok(Edited {
                before: found.map(Text),
                after: new.map(Text),
            })
        })
    }

    /// The error for a text that is written so that it cannot be changed.
    pub(super) fn refused(&self, refusal: Refusal) -> EditError {
        let Refusal { key, message } = refusal;
        let problem = Problem::error(Origin::file(self.file), message);
        let problem = if key.is_empty() {
            problem
        } else {
            problem.key(key)
        };
        EditError::Unsupported(Box::new(problem))
    }

    pub(super) fn tree(&self, text: &str) -> Result<Node, Box<Problem>> {
        let text = match self.format {
            Format::Json if text.trim().is_empty() => "{}",
            _ => text,
        };
        read::parsed(self.file, text, self.format)
    }

    fn judge(
        &self,
        before: &Node,
        new: &str,
        check: impl FnOnce(&Node) -> Result<(), EditError>,
    ) -> Result<(), EditError> {
        if new.len() as u64 > MAX_FILE_BYTES {
            let file = self.file.to_owned();
            return Err(EditError::TooLarge { file });
        }
        let strange = |message| {
            let key = self.changes.first().map(|path| path.join("."));
            let key = key.unwrap_or_default();
            self.refused(Refusal { key, message })
        };
        let Ok(after) = self.tree(new) else {
            return Err(strange("the tables here are written in an unusual way"));
        };
        check(&after)?;
        if others(before, self.changes) != others(&after, self.changes) {
            return Err(strange("other keys would change with it"));
        }
        Ok(())
    }

    fn mark(&self) -> Result<&'static [u8], EditError> {
        let mut first = Vec::new();
        let file = File::open(self.file);
        file.and_then(|file| {
            file.take(BYTE_ORDER_MARK.len() as u64)
                .read_to_end(&mut first)
        })
        .map_err(WriteError::io("read", self.file))?;
        Ok(if first == BYTE_ORDER_MARK {
            BYTE_ORDER_MARK
        } else {
            &[]
        })
    }

    /// Writes and reads back. What is found then was judged already, or is somebody else's: a
    /// program that knows nothing of our locks, whose work is not to be undone.
    fn put(&self, new: &[u8]) -> Result<(), EditError> {
        write_atomically(self.file, new, self.context.new_file_mode)?;
        let found = fs::read(self.file).map_err(WriteError::io("read", self.file))?;
        if found == new {
            return Ok(());
        }
        let file = self.file.to_owned();
        Err(EditError::NotReadBack { file })
    }
}

/// Everything a file says except what is under some paths, as a set of lines.
fn others(node: &Node, except: &[&[&str]]) -> BTreeSet<String> {
    fn collect<'n>(
        node: &'n Node,
        except: &[&[&str]],
        path: &mut Vec<&'n str>,
        lines: &mut BTreeSet<String>,
    ) {
        match &node.value {
            Value::Table(members) => {
                // A table on the way may come or go with what is in it.
                if !except.iter().any(|except| except.starts_with(path)) {
                    lines.insert(format!("{path:?} is a table"));
                }
                for member in members {
                    path.push(&member.key);
                    if !except.contains(&path.as_slice()) {
                        collect(&member.node, except, path, lines);
                    }
                    path.pop();
                }
            }
            // The tables of a list are told apart by their place alone.
            Value::List(nodes) => {
                let mut inner = BTreeSet::new();
                for (index, node) in nodes.iter().enumerate() {
                    let mut within = BTreeSet::new();
                    collect(node, &[], &mut Vec::new(), &mut within);
                    inner.insert((index, within));
                }
                lines.insert(format!("{path:?} = {inner:?}"));
            }
            plain => {
                lines.insert(format!("{path:?} = {plain:?}"));
            }
        }
    }
    let mut lines = BTreeSet::new();
    collect(node, except, &mut Vec::new(), &mut lines);
    lines
}
