//! Edits of configuration files that leave everything else as it is: comments, order, spaces, line
//! ends and the byte order mark. Each one is done alone, as a whole, and read back.
//!
//! A server that is added to a TOML file comes after an empty line at the end; when it is removed
//! again, that line goes with it. A last line that had no end gets one and keeps it.

mod change;
mod fields;
mod json;
mod lines;
mod list;
mod overrides;
mod plugins;
mod settings;
mod splice;

use std::path::{Path, PathBuf};

use change::Edit;
pub use change::Edited;
use json::JsonText;
use splice::{Refusal, TomlText};
use toml_edit::Value;

pub use overrides::{OverrideKey, set_override};
pub use plugins::{add_plugin, remove_plugin, set_plugin_enabled};
pub use settings::{
    RuleText, SettingValue, add_rule, forget, remember, remove_rule, set_value, unset_value,
};

use crate::document::{Format, Node};
use crate::entry::{Entry, Text};
use crate::expand::is_reference;
use crate::keys::SERVERS;
use crate::lock::{EditContext, LockError, WriteError};
use crate::parse::{self, Found, server_tables};
use crate::problem::{Origin, Problem};
use crate::read::MAX_FILE_BYTES;

/// What to do when a server is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// Leave it, and fail.
    Fail,
    /// Put the new one in its place.
    Replace,
}

/// Why a file was not edited. It is as it was, unless another program changed it.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Another process edits it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It cannot be read, or is broken: mending it by a program could lose what was meant.
    #[error("{0}; nothing was changed, mend it first")]
    Unreadable(Box<Problem>),
    /// The server is there.
    #[error("{origin}: there is already a server `{server}`; remove it first, or replace it")]
    Exists {
        /// Where.
        origin: Origin,
        /// Its name.
        server: String,
    },
    /// The server is not there.
    #[error("{}: there is no server `{server}` in this file", file.display())]
    NoServer {
        /// The file.
        file: PathBuf,
        /// The name that was asked for.
        server: String,
    },
    /// What was to be written would be refused when it is read.
    #[error("this would not be valid: {0}")]
    Invalid(Box<Problem>),
    /// The file is written so that this change cannot be made without touching other things.
    #[error("{0}; this cannot be changed by a program here, please edit the file by hand")]
    Unsupported(Box<Problem>),
    /// No key of settings.
    #[error("`{key}` is not a key; write it as in `permissions.allow`")]
    BadKey {
        /// What was given.
        key: String,
    },
    /// A path or value that a file cannot hold.
    #[error("{what} is not text that a file can hold")]
    NotText {
        /// What it is.
        what: String,
    },
    /// More than is ever read.
    #[error("{} would become larger than {MAX_FILE_BYTES} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// Another program wrote the file at the same moment, and what it wrote is there now.
    #[error(
        "{} was changed by another program at the same moment; look at it, and try again",
        file.display()
    )]
    NotReadBack {
        /// The file.
        file: PathBuf,
    },
}

impl EditError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unreadable(problem) | Self::Invalid(problem) | Self::Unsupported(problem) => {
                problem.hint.as_deref()
            }
            Self::Write(WriteError::LeadsOut { .. })
            | Self::Lock(LockError::Place(WriteError::LeadsOut { .. })) => {
                Some("put a file of the work tree in the place of the link")
            }
            _ => None,
        }
    }
}

/// Writes a server into a file, which is made if it is missing: for its owner only, if the server
/// has values that may be secret.
pub fn add_server(
    context: &EditContext,
    file: &Path,
    format: Format,
    name: &str,
    entry: &Entry,
    if_exists: IfExists,
) -> Result<(), EditError> {
    let changes = paths_of(format, name);
    let changes: Vec<_> = changes.iter().map(<[&str; 2]>::as_slice).collect();
    let mut context = context.clone();
    if has_literal_secrets(entry) {
        context = context.private();
    }
    let edit = Edit {
        context: &context,
        file,
        format,
        changes: &changes,
    };
    edit.run(
        |text| {
            let existing = find(&edit, text, name)?;
            match existing {
                Some(found) if if_exists == IfExists::Fail => Err(EditError::Exists {
                    origin: found.origin,
                    server: name.to_owned(),
                }),
                // What is said already is not said anew: a person may have written it nicely.
                Some(found) if !found.is_broken() && found.entry == *entry => Ok(None),
                existing => {
                    let new = put_server(text, format, name, entry, existing.is_some());
                    new.map(Some).map_err(|refusal| edit.refused(refusal))
                }
            }
        },
        |node| is_written(&edit, node, name, entry),
    )?;
    Ok(())
}

/// Takes a server out of a file, with the comments right above it.
pub fn remove_server(
    context: &EditContext,
    file: &Path,
    format: Format,
    name: &str,
) -> Result<(), EditError> {
    let changes = paths_of(format, name);
    let changes: Vec<_> = changes.iter().map(<[&str; 2]>::as_slice).collect();
    let edit = Edit {
        context,
        file,
        format,
        changes: &changes,
    };
    let missing = || EditError::NoServer {
        file: file.to_owned(),
        server: name.to_owned(),
    };
    edit.run(
        |text| {
            let new = match format {
                Format::Toml => toml(text)
                    .and_then(|toml| toml.remove(&[SERVERS, name]))
                    .map_err(|refusal| edit.refused(refusal))?,
                Format::Json => {
                    let json = JsonText::parse(text);
                    json.map_err(|refusal| edit.refused(refusal))?.remove(name)
                }
            };
            new.ok_or_else(missing).map(Some)
        },
        |node| match found_in(&edit, node, name) {
            None => Ok(()),
            Some(_) => Err(edit.refused(Refusal {
                key: format!("{SERVERS}.{name}"),
                message: "it would still be there",
            })),
        },
    )?;
    Ok(())
}

/// Says in a file whether a server is used. `enabled` is written for a server that is not, and
/// goes for one that is, because that needs no saying. Tells whether the file was changed.
pub fn set_enabled(
    context: &EditContext,
    file: &Path,
    format: Format,
    name: &str,
    is_enabled: bool,
) -> Result<bool, EditError> {
    let changes = paths_of(format, name);
    let changes: Vec<_> = changes.iter().map(<[&str; 2]>::as_slice).collect();
    let edit = Edit {
        context,
        file,
        format,
        changes: &changes,
    };
    let missing = || EditError::NoServer {
        file: file.to_owned(),
        server: name.to_owned(),
    };
    edit.run(
        |text| {
            let found = find(&edit, text, name)?.ok_or_else(missing)?;
            if found.entry.enabled.unwrap_or(true) == is_enabled {
                return Ok(None);
            }
            let path = [SERVERS, name, "enabled"];
            let new = match format {
                Format::Json => {
                    JsonText::parse(text).map(|json| json.set_enabled(name, is_enabled))
                }
                Format::Toml if is_enabled => toml(text).and_then(|toml| toml.remove(&path)),
                Format::Toml => toml(text)
                    .and_then(|toml| toml.set(&path, &Value::from(false)))
                    .map(Some),
            };
            new.map_err(|refusal| edit.refused(refusal))
        },
        |node| {
            let found = found_in(&edit, node, name).map(|found| found.entry.enabled);
            if found.map(|enabled| enabled.unwrap_or(true)) == Some(is_enabled) {
                Ok(())
            } else {
                Err(edit.refused(Refusal {
                    key: format!("{SERVERS}.{name}.enabled"),
                    message: "it cannot be set",
                }))
            }
        },
    )
}

/// Whether an entry holds values itself that may be secret, rather than saying where they are.
fn has_literal_secrets(entry: &Entry) -> bool {
    let mut values = entry.env.values().chain(entry.headers.values());
    values.any(|Text(value)| !is_reference(value))
}

fn put_server(
    text: &str,
    format: Format,
    name: &str,
    entry: &Entry,
    is_there: bool,
) -> Result<String, Refusal> {
    match format {
        Format::Toml => {
            let path = [SERVERS, name];
            let toml_text = toml(text)?;
            let block = fields::toml_block(name, entry);
            if !is_there {
                return match toml_text.root().get(SERVERS) {
                    Some(item) if item.is_inline_table() => {
                        toml_text.set(&path, &fields::toml_inline(entry))
                    }
                    _ => Ok(toml_text.append_block(&block)),
                };
            }
            if let Some(new) = toml_text.replace_block(&path, &block) {
                return Ok(new);
            }
            match toml_text
                .root()
                .get(SERVERS)
                .and_then(|servers| servers.get(name))
            {
                Some(item) if item.is_value() => toml_text.set(&path, &fields::toml_inline(entry)),
                _ => {
                    let rest = toml_text.remove(&path)?.unwrap_or_default();
                    Ok(toml(&rest)?.append_block(&block))
                }
            }
        }
        Format::Json => {
            let json = JsonText::parse(text)?;
            let entry = fields::json_object(entry);
            if is_there && let Some(new) = json.replace(name, entry.clone()) {
                return Ok(new);
            }
            json.add(name, entry)
        }
    }
}

/// Whether a text says about a server what it should.
fn is_written(edit: &Edit<'_>, node: &Node, name: &str, entry: &Entry) -> Result<(), EditError> {
    let strange = |message| {
        edit.refused(Refusal {
            key: format!("{SERVERS}.{name}"),
            message,
        })
    };
    let Some(found) = found_in(edit, node, name) else {
        return Err(strange("a server cannot be written here"));
    };
    if let Some(problem) = found.problems.into_iter().find(Problem::is_error) {
        return Err(EditError::Invalid(Box::new(problem)));
    }
    if found.entry != *entry {
        return Err(strange("it would not be read as it was meant"));
    }
    Ok(())
}

/// The server of this name in a text.
fn find(edit: &Edit<'_>, text: &str, name: &str) -> Result<Option<Found>, EditError> {
    let node = edit.tree(text).map_err(EditError::Unreadable)?;
    Ok(found_in(edit, &node, name))
}

fn found_in(edit: &Edit<'_>, node: &Node, name: &str) -> Option<Found> {
    let origin = Origin::file(edit.file);
    let mut found = parse::servers(node, edit.format, &origin, &mut Vec::new());
    let index = found.iter().rposition(|found| found.name == name)?;
    Some(found.swap_remove(index))
}

/// Where a server may be in a file.
fn paths_of(format: Format, name: &str) -> Vec<[&str; 2]> {
    let tables = server_tables(format).iter();
    tables.map(|table| [*table, name]).collect()
}

fn toml(text: &str) -> Result<TomlText<'_>, Refusal> {
    TomlText::parse(text).ok_or(Refusal {
        key: String::new(),
        message: "the file is not valid TOML",
    })
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
