//! Edits of `plugins.toml`: which folders the user added, and whether they count.

use std::path::Path;

use toml_edit::{InlineTable, Item, TableLike, Value};

use super::change::Edit;
use super::fields::toml_text;
use super::splice::{Refusal, TomlText, put_inline};
use super::{EditError, list, toml};
use crate::document::{Format, Node, Value as NodeValue};
use crate::lock::EditContext;

const PLUGINS: &str = "plugins";
const PATH: &str = "path";
const ENABLED: &str = "enabled";

/// What is to become of a plugin in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// It is in the list. Whether it counts stays as it is.
    Listed,
    /// It is in the list, and counts or not.
    Enabled(bool),
    /// It is not in the list.
    Gone,
}

/// Adds a folder to the list of plugins, which is made if it is missing. Tells whether the file was
/// changed: a folder that is there is not added again.
pub fn add_plugin(context: &EditContext, file: &Path, folder: &Path) -> Result<bool, EditError> {
    edit(context, file, folder, Wanted::Listed)
}

/// Takes a folder out of the list of plugins. Tells whether it was there.
pub fn remove_plugin(context: &EditContext, file: &Path, folder: &Path) -> Result<bool, EditError> {
    edit(context, file, folder, Wanted::Gone)
}

/// Says whether the servers of a plugin in the list count. Tells whether the file was changed; a
/// folder that is not in the list is left alone.
pub fn set_plugin_enabled(
    context: &EditContext,
    file: &Path,
    folder: &Path,
    is_enabled: bool,
) -> Result<bool, EditError> {
    edit(context, file, folder, Wanted::Enabled(is_enabled))
}

fn edit(
    context: &EditContext,
    file: &Path,
    folder: &Path,
    wanted: Wanted,
) -> Result<bool, EditError> {
    let folder = folder.to_str().ok_or_else(|| EditError::NotText {
        what: format!("the path {}", folder.display()),
    })?;
    let edit = Edit {
        context,
        file,
        format: Format::Toml,
        changes: &[&[PLUGINS]],
    };
    edit.run(
        |text| {
            let new = toml(text).and_then(|text| changed(&text, folder, wanted));
            new.map_err(|refusal| edit.refused(refusal))
        },
        |node| {
            if is_said(node, folder, wanted) {
                Ok(())
            } else {
                Err(edit.refused(Refusal {
                    key: PLUGINS.to_owned(),
                    message: "a plugin cannot be written here",
                }))
            }
        },
    )
}

fn changed(text: &TomlText<'_>, folder: &str, wanted: Wanted) -> Result<Option<String>, Refusal> {
    match text.root().get(PLUGINS) {
        None => Ok((wanted == Wanted::Listed).then(|| text.append_block(&block(folder)))),
        Some(Item::ArrayOfTables(tables)) => {
            let matching: Vec<_> = tables
                .iter()
                .filter(|table| is_about(*table, folder))
                .collect();
            Ok(match (matching.as_slice(), wanted) {
                ([], Wanted::Listed) => Some(text.append_block(&block(folder))),
                ([], _) | (_, Wanted::Listed) => None,
                (tables, Wanted::Gone) => Some(text.remove_tables(tables)),
                (tables, Wanted::Enabled(is_enabled)) => {
                    let is_other = |table: &dyn TableLike| is_enabled_in(table) != is_enabled;
                    let tables: Vec<_> = tables
                        .iter()
                        .filter(|table| is_other(**table))
                        .copied()
                        .collect();
                    let value = Value::from(is_enabled);
                    (!tables.is_empty()).then(|| text.set_in_tables(&tables, ENABLED, &value))
                }
            })
        }
        Some(_) => text.change_list(&[PLUGINS], &mut |values| {
            let matching: Vec<usize> = (0..values.len())
                .filter(|index| {
                    let table = values.get(*index).and_then(Value::as_inline_table);
                    table.is_some_and(|table| is_about(table, folder))
                })
                .collect();
            match wanted {
                Wanted::Listed if matching.is_empty() => {
                    let mut table = InlineTable::new();
                    table.insert(PATH, toml_text(folder));
                    list::push(values, Value::InlineTable(table));
                    true
                }
                Wanted::Listed => false,
                Wanted::Gone => {
                    for index in matching.iter().rev() {
                        list::remove(values, *index);
                    }
                    !matching.is_empty()
                }
                Wanted::Enabled(is_enabled) => {
                    let mut is_changed = false;
                    for index in matching {
                        let value = values.get_mut(index);
                        if let Some(table) = value.and_then(Value::as_inline_table_mut)
                            && is_enabled_in(table) != is_enabled
                        {
                            put_inline(table, ENABLED, &Value::from(is_enabled));
                            is_changed = true;
                        }
                    }
                    is_changed
                }
            }
        }),
    }
}

/// Whether a text says about a plugin what it should.
fn is_said(node: &Node, folder: &str, wanted: Wanted) -> bool {
    let plugins = match node.get(PLUGINS).map(|member| &member.node.value) {
        Some(NodeValue::List(plugins)) => plugins.as_slice(),
        _ => &[],
    };
    let mut found = plugins.iter().filter(|plugin| {
        let path = plugin.get(PATH).map(|member| &member.node.value);
        matches!(path, Some(NodeValue::Text(path)) if path == folder)
    });
    match wanted {
        Wanted::Listed => found.next().is_some(),
        Wanted::Gone => found.next().is_none(),
        Wanted::Enabled(is_enabled) => found.all(|plugin| {
            let enabled = plugin.get(ENABLED).map(|member| &member.node.value);
            match enabled {
                None => is_enabled,
                Some(NodeValue::Boolean(truth)) => *truth == is_enabled,
                Some(_) => false,
            }
        }),
    }
}

fn is_about(table: &dyn TableLike, folder: &str) -> bool {
    table.get(PATH).and_then(Item::as_str) == Some(folder)
}

fn is_enabled_in(table: &dyn TableLike) -> bool {
    let enabled = table.get(ENABLED).and_then(Item::as_bool);
    enabled.unwrap_or(true)
}

fn block(folder: &str) -> String {
    format!("[[{PLUGINS}]]\n{PATH} = {}\n", toml_text(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{add_plugin, remove_plugin, set_plugin_enabled};
    use crate::edit::EditError;
    use crate::lock::EditContext;

    struct Scene {
        _directory: tempfile::TempDir,
        file: PathBuf,
        context: EditContext,
    }

    fn scene(text: Option<&str>) -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("plugins.toml");
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let context = EditContext::new(directory.path().join("locks"));
        Scene {
            _directory: directory,
            file,
            context,
        }
    }

    impl Scene {
        fn text(&self) -> String {
            fs::read_to_string(&self.file).unwrap()
        }
    }

    const BY_HAND: &str = "# mine\n\n[[plugins]] # first\npath = \"/a\"\nenabled = false\n\n\
                           # about b\n[[plugins]]\npath = '/b'\n";

    #[test]
    fn a_plugin_is_added_once_and_removed_again_without_a_trace() {
        let scene = scene(Some(BY_HAND));
        let folder = Path::new("/c \"d\"");
        assert!(add_plugin(&scene.context, &scene.file, folder).unwrap());
        assert!(!add_plugin(&scene.context, &scene.file, folder).unwrap());
        let expected = format!("{BY_HAND}\n[[plugins]]\npath = '/c \"d\"'\n");
        assert_eq!(scene.text(), expected);
        assert!(remove_plugin(&scene.context, &scene.file, folder).unwrap());
        assert!(!remove_plugin(&scene.context, &scene.file, folder).unwrap());
        assert_eq!(scene.text(), BY_HAND);
    }

    #[test]
    fn the_first_plugin_makes_the_file() {
        let scene = scene(None);
        assert!(!remove_plugin(&scene.context, &scene.file, Path::new("/a")).unwrap());
        assert!(!scene.file.exists());
        assert!(add_plugin(&scene.context, &scene.file, Path::new("/a")).unwrap());
        assert_eq!(scene.text(), "[[plugins]]\npath = \"/a\"\n");
    }

    #[test]
    fn switching_changes_one_key_and_nothing_else() {
        let scene = scene(Some(BY_HAND));
        let switch = |folder: &str, is_enabled| {
            let folder = Path::new(folder);
            set_plugin_enabled(&scene.context, &scene.file, folder, is_enabled).unwrap()
        };
        assert!(!switch("/a", false));
        assert!(!switch("/b", true));
        assert!(!switch("/not-there", false));
        assert_eq!(scene.text(), BY_HAND);
        assert!(switch("/a", true));
        assert!(switch("/b", false));
        let expected = BY_HAND.replace("enabled = false", "enabled = true");
        assert_eq!(scene.text(), format!("{expected}enabled = false\n"));
    }

    #[test]
    fn a_list_in_one_line_is_kept_so() {
        let scene = scene(Some("plugins = [{ path = \"/a\" }] # mine\n"));
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        assert!(add_plugin(&scene.context, &scene.file, b).unwrap());
        assert!(set_plugin_enabled(&scene.context, &scene.file, b, false).unwrap());
        assert!(remove_plugin(&scene.context, &scene.file, a).unwrap());
        assert_eq!(
            scene.text(),
            "plugins = [{ path = \"/b\", enabled = false }] # mine\n"
        );
    }

    #[test]
    fn a_broken_file_is_left_alone() {
        for broken in ["plugins = 3\n", "[plugins\n", "[plugins]\npath = \"/a\"\n"] {
            let scene = scene(Some(broken));
            let added = add_plugin(&scene.context, &scene.file, Path::new("/b"));
            assert!(
                matches!(
                    added,
                    Err(EditError::Unreadable(_) | EditError::Unsupported(_))
                ),
                "{broken}: {added:?}"
            );
            assert_eq!(scene.text(), broken);
        }
    }
}
