//! What a user says about servers of projects and plugins, whose own files are not the user's to
//! change: `[[overrides]]` in the user's file.

use std::path::{Path, PathBuf};

use toml_edit::{InlineTable, Item, Table, TableLike, Value};

use super::change::Edit;
use super::fields::toml_text;
use super::splice::{Refusal, TomlText, put_inline};
use super::{EditError, list, toml};
use crate::document::{Format, Node, Value as NodeValue};
use crate::lock::EditContext;

const OVERRIDES: &str = "overrides";

/// Which server an override is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideKey {
    /// Its name.
    pub server: String,
    /// The project it is in, if it is in one.
    pub project: Option<PathBuf>,
    /// The plugin that brings it, if one does.
    pub plugin: Option<String>,
}

/// Says in the user's own file whether a server of a project or plugin is used; with nothing, that
/// is left to the other file again. Tells whether the file was changed.
pub fn set_override(
    context: &EditContext,
    file: &Path,
    key: &OverrideKey,
    is_enabled: Option<bool>,
) -> Result<bool, EditError> {
    let pairs = key.pairs()?;
    let edit = Edit {
        context,
        file,
        format: Format::Toml,
        changes: &[&[OVERRIDES]],
    };
    edit.run(
        |text| {
            let new = toml(text).and_then(|text| changed(&text, &pairs, is_enabled));
            new.map_err(|refusal| edit.refused(refusal))
        },
        |node| {
            if said(node, &pairs) == is_enabled {
                Ok(())
            } else {
                Err(edit.refused(strange()))
            }
        },
    )
}

impl OverrideKey {
    fn pairs(&self) -> Result<Vec<(&'static str, &str)>, EditError> {
        let Self {
            server,
            project,
            plugin,
        } = self;
        let mut pairs = vec![("server", server.as_str())];
        if let Some(project) = project {
            let text = project.to_str().ok_or_else(|| EditError::NotText {
                what: format!("the path {}", project.display()),
            })?;
            pairs.push(("project", text));
        }
        if let Some(plugin) = plugin {
            pairs.push(("plugin", plugin));
        }
        Ok(pairs)
    }
}

fn changed(
    text: &TomlText<'_>,
    pairs: &[(&str, &str)],
    is_enabled: Option<bool>,
) -> Result<Option<String>, Refusal> {
    match (text.root().get(OVERRIDES), is_enabled) {
        (None, None) => Ok(None),
        (None, Some(is_enabled)) => Ok(Some(text.append_block(&block(pairs, is_enabled)))),
        (Some(Item::ArrayOfTables(tables)), is_enabled) => {
            let matching: Vec<&Table> = tables
                .iter()
                .filter(|table| is_about(*table, pairs))
                .collect();
            Ok(match (matching.as_slice(), is_enabled) {
                ([], None) => None,
                ([], Some(is_enabled)) => Some(text.append_block(&block(pairs, is_enabled))),
                (tables, None) => Some(text.remove_tables(tables)),
                (tables, Some(is_enabled)) => {
                    Some(text.set_in_tables(tables, "enabled", &Value::from(is_enabled)))
                }
            })
        }
        (Some(_), is_enabled) => text.change_list(&[OVERRIDES], &mut |values| {
            let matching: Vec<usize> = (0..values.len())
                .filter(|index| {
                    let table = values.get(*index).and_then(Value::as_inline_table);
                    table.is_some_and(|table| is_about(table, pairs))
                })
                .collect();
            match is_enabled {
                None => {
                    for index in matching.iter().rev() {
                        list::remove(values, *index);
                    }
                    !matching.is_empty()
                }
                Some(is_enabled) if matching.is_empty() => {
                    list::push(values, Value::InlineTable(inline(pairs, is_enabled)));
                    true
                }
                Some(is_enabled) => {
                    for index in matching {
                        let value = values.get_mut(index);
                        if let Some(table) = value.and_then(Value::as_inline_table_mut) {
                            put_inline(table, "enabled", &Value::from(is_enabled));
                        }
                    }
                    true
                }
            }
        }),
    }
}

/// What the last override about a server says.
fn said(node: &Node, pairs: &[(&str, &str)]) -> Option<bool> {
    let NodeValue::List(overrides) = &node.get(OVERRIDES)?.node.value else {
        return None;
    };
    let is_about = |node: &&Node| {
        ["server", "project", "plugin"].iter().all(|key| {
            let wanted = pairs.iter().find(|(name, _)| name == key);
            let found = node.get(key).map(|member| &member.node.value);
            match (wanted, found) {
                (Some((_, wanted)), Some(NodeValue::Text(found))) => wanted == found,
                (None, None) => true,
                _ => false,
            }
        })
    };
    let found = overrides.iter().rev().find(is_about)?;
    match found.get("enabled")?.node.value {
        NodeValue::Boolean(truth) => Some(truth),
        _ => None,
    }
}

fn is_about(table: &dyn TableLike, pairs: &[(&str, &str)]) -> bool {
    ["server", "project", "plugin"].iter().all(|key| {
        let wanted = pairs.iter().find(|(name, _)| name == key);
        match (wanted, table.get(key)) {
            (Some((_, wanted)), Some(found)) => found.as_str() == Some(wanted),
            (None, None) => true,
            _ => false,
        }
    })
}

fn block(pairs: &[(&str, &str)], is_enabled: bool) -> String {
    let lines = pairs
        .iter()
        .map(|(key, text)| format!("{key} = {}\n", toml_text(text)));
    let lines: String = lines.collect();
    format!("[[{OVERRIDES}]]\n{lines}enabled = {is_enabled}\n")
}

fn inline(pairs: &[(&str, &str)], is_enabled: bool) -> InlineTable {
    let mut table = InlineTable::new();
    for (key, text) in pairs {
        table.insert(*key, toml_text(text));
    }
    table.insert("enabled", Value::from(is_enabled));
    table
}

fn strange() -> Refusal {
    Refusal {
        key: OVERRIDES.to_owned(),
        message: "an override cannot be written here",
    }
}
