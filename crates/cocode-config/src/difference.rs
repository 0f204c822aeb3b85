//! What changed between two states of an entry, key by key: in full, because it is there to be
//! judged by, except where only a hash was kept.

use std::collections::BTreeMap;
use std::fmt;

use crate::entry::{EntryLine, Text, visible};

/// What changed, in the order of the new state, and then what is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// One for each key that changed.
    pub changes: Vec<KeyChange>,
}

/// One key that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// It was not there.
    Added {
        /// The key.
        key: String,
        /// What it is now.
        after: Shown,
    },
    /// It is not there any more.
    Removed {
        /// The key.
        key: String,
        /// What it was.
        before: Shown,
    },
    /// It is something else.
    Changed {
        /// The key.
        key: String,
        /// What it was.
        before: Shown,
        /// What it is now.
        after: Shown,
    },
}

/// A value, as far as it is known. Its [`fmt::Debug`] leaves out what may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// As JSON.
    Value(Text),
    /// As JSON, without what may be secret: no more was kept.
    Masked(String),
}

impl Difference {
    /// What leads from one state to the other.
    pub fn between(before: &[EntryLine], after: &[EntryLine]) -> Self {
        let by_key = |lines| -> BTreeMap<&str, &EntryLine> {
            let lines: std::slice::Iter<'_, EntryLine> = lines;
            lines.map(|line| (line.key.as_str(), line)).collect()
        };
        let (old, new) = (by_key(before.iter()), by_key(after.iter()));
        let mut changes = Vec::new();
        for line in after {
            let (key, after) = (line.key.clone(), Shown::of(line));
            match old.get(line.key.as_str()) {
                None => changes.push(KeyChange::Added { key, after }),
                Some(before) if !before.is_same(line) => {
                    let before = Shown::of(before);
                    changes.push(KeyChange::Changed { key, before, after });
                }
                Some(_) => {}
            }
        }
        for line in before {
            if !new.contains_key(line.key.as_str()) {
                let (key, before) = (line.key.clone(), Shown::of(line));
                changes.push(KeyChange::Removed { key, before });
            }
        }
        Self { changes }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl Shown {
    fn of(line: &EntryLine) -> Self {
        if line.is_hashed() {
            Self::Masked(line.masked.clone())
        } else {
            Self::Value(Text(line.approvable()))
        }
    }
}

/// One line for each thing that is gone (`-`), has come (`+`) or changed unseen (`~`), each ended
/// by a newline. What a terminal would not show as it is, is escaped: the text is there to
/// be judged by.
impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.changes {
            match change {
                KeyChange::Added { key, after } => line(formatter, '+', key, after)?,
                KeyChange::Removed { key, before } => line(formatter, '-', key, before)?,
                KeyChange::Changed {
                    key,
                    before: Shown::Masked(_),
                    after: Shown::Masked(_),
                } => writeln!(formatter, "~ {} = (changed, not shown)", visible(key))?,
                KeyChange::Changed { key, before, after } => {
                    line(formatter, '-', key, before)?;
                    line(formatter, '+', key, after)?;
                }
            }
        }
        Ok(())
    }
}

fn line(formatter: &mut fmt::Formatter<'_>, mark: char, key: &str, value: &Shown) -> fmt::Result {
    let (Shown::Value(Text(value)) | Shown::Masked(value)) = value;
    writeln!(formatter, "{mark} {} = {}", visible(key), visible(value))
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
