//! Edits of `config.toml`: permissions, and any other setting by its key.

use std::path::Path;

use cocode_core::{Answer, Condition, ToolRef, Verdict};
use toml_edit::{Array, InlineTable, Key, Value};

use super::change::{Edit, Edited};
use super::fields::toml_text;
use super::splice::Refusal;
use super::{EditError, list, toml};
use crate::document::{Format, Node, Value as NodeValue};
use crate::lock::EditContext;
use crate::settings::remembered_path;

const PERMISSIONS: &str = "permissions";
const REMEMBERED: &str = "remembered";
/// How deep keys may be.
const MAX_KEY_PARTS: usize = 16;

/// A rule as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleText {
    /// The names of tools it is for, as in `mcp__github__*`.
    pub tool: String,
    /// What the tools must say of themselves.
    pub condition: Condition,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
}

/// Adds a rule after the others of its kind; a rule that is there is not added again. Tells what
/// the file said and what it says now, so that exactly this can be approved.
pub fn add_rule(
    context: &EditContext,
    file: &Path,
    kind: Verdict,
    rule: &RuleText,
) -> Result<Edited, EditError> {
    let path = [PERMISSIONS, kind.as_str()];
    change(context, file, &path, |text| {
        let text = toml(text)?;
        let exists = text
            .root()
            .get(PERMISSIONS)
            .is_some_and(|permissions| permissions.get(kind.as_str()).is_some());
        if !exists {
            let rules: Array = std::iter::once(rule.value()).collect();
            return text.set(&path, &Value::Array(rules)).map(Some);
        }
        text.change_list(&path, &mut |rules| {
            let is_new = !rules.iter().any(|value| rule.is(value));
            if is_new {
                list::push(rules, rule.value());
            }
            is_new
        })
    })
}

/// Takes a rule away, each time it is there. Tells what the file said and what it says now.
pub fn remove_rule(
    context: &EditContext,
    file: &Path,
    kind: Verdict,
    rule: &RuleText,
) -> Result<Edited, EditError> {
    let path = [PERMISSIONS, kind.as_str()];
    change(context, file, &path, |text| {
        toml(text)?.change_list(&path, &mut |rules| {
            let before = rules.len();
            for index in (0..before).rev() {
                if rules.get(index).is_some_and(|value| rule.is(value)) {
                    list::remove(rules, index);
                }
            }
            rules.len() != before
        })
    })
}

/// Remembers an answer for a tool, where it is looked for. Tells whether the file was changed.
pub fn remember(
    context: &EditContext,
    file: &Path,
    tool: ToolRef<'_>,
    answer: Answer,
) -> Result<bool, EditError> {
    let answer = match answer {
        Answer::Allow => "allow",
        Answer::Deny => "deny",
    };
    let path = remembered_path(tool);
    let mut is_changed = false;
    // An older answer in the other spelling would contradict. Without it the tool only asks again.
    for other in spellings(tool) {
        if other != path {
            is_changed |= remove_path(context, file, &other)?;
        }
    }
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    let value = SettingValue::Text(answer.to_owned());
    Ok(is_changed | set_path(context, file, &path, &value)?)
}

/// Forgets the answer for a tool, however it is written. Tells whether there was one.
pub fn forget(context: &EditContext, file: &Path, tool: ToolRef<'_>) -> Result<bool, EditError> {
    let mut was_there = false;
    for path in spellings(tool) {
        was_there |= remove_path(context, file, &path)?;
    }
    Ok(was_there)
}

/// Every way in which an answer about a tool may be written.
fn spellings(tool: ToolRef<'_>) -> Vec<Vec<String>> {
    let path = remembered_path(tool);
    let apart = match tool {
        ToolRef::BuiltIn { .. } => return vec![path],
        ToolRef::Mcp { server, tool } => [PERMISSIONS, REMEMBERED, server.as_str(), tool.as_str()],
    };
    let apart = apart.map(str::to_owned).to_vec();
    if path == apart {
        vec![apart]
    } else {
        vec![path, apart]
    }
}

fn remove_path(context: &EditContext, file: &Path, path: &[String]) -> Result<bool, EditError> {
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    let edited = change(context, file, &path, |text| toml(text)?.remove(&path))?;
    Ok(edited.is_changed())
}

/// Gives a setting a value. Tells whether the file was changed. Whether there is such a setting
/// is for the caller to know.
pub fn set_value(
    context: &EditContext,
    file: &Path,
    key: &str,
    value: &SettingValue,
) -> Result<bool, EditError> {
    let path = key_path(key)?;
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    set_path(context, file, &path, value)
}

/// Takes a setting away. Tells whether it was there.
pub fn unset_value(context: &EditContext, file: &Path, key: &str) -> Result<bool, EditError> {
    let path = key_path(key)?;
    remove_path(context, file, &path)
}

impl RuleText {
    /// A rule without conditions.
    pub fn new(tool: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            ..Self::default()
        }
    }

    fn value(&self) -> Value {
        let Self { tool, condition } = self;
        let Condition {
            read_only,
            destructive,
        } = condition;
        if read_only.is_none() && destructive.is_none() {
            return toml_text(tool);
        }
        let mut table = InlineTable::new();
        table.insert("tool", toml_text(tool));
        for (key, condition) in [("read_only", read_only), ("destructive", destructive)] {
            if let Some(condition) = condition {
                table.insert(key, Value::from(*condition));
            }
        }
        Value::InlineTable(table)
    }

    fn is(&self, value: &Value) -> bool {
        if let Some(text) = value.as_str() {
            return *self == Self::new(text);
        }
        let Some(table) = value.as_inline_table() else {
            return false;
        };
        let condition = |key| table.get(key).and_then(Value::as_bool);
        let is_all_known = table
            .iter()
            .all(|(key, _)| ["tool", "read_only", "destructive"].contains(&key));
        is_all_known
            && table.get("tool").and_then(Value::as_str) == Some(&self.tool)
            && condition("read_only") == self.condition.read_only
            && condition("destructive") == self.condition.destructive
    }
}

impl SettingValue {
    fn value(&self) -> Value {
        match self {
            Self::Boolean(truth) => Value::from(*truth),
            Self::Integer(number) => Value::from(*number),
            Self::Float(number) => Value::from(*number),
            Self::Text(text) => toml_text(text),
            Self::Texts(texts) => {
                let list: Array = texts.iter().map(|text| toml_text(text)).collect();
                Value::Array(list)
            }
        }
    }

    fn is(&self, node: &Node) -> bool {
        match (self, &node.value) {
            (Self::Boolean(wanted), NodeValue::Boolean(found)) => wanted == found,
            (Self::Integer(wanted), NodeValue::Integer(found)) => wanted == found,
            (Self::Float(wanted), NodeValue::Float(found)) => wanted.total_cmp(found).is_eq(),
            (Self::Text(wanted), NodeValue::Text(found)) => wanted == found,
            (Self::Texts(wanted), NodeValue::List(found)) => {
                let is = |(wanted, found): (&String, &Node)| {
                    found.value == NodeValue::Text(wanted.clone())
                };
                wanted.len() == found.len() && wanted.iter().zip(found).all(is)
            }
            _ => false,
        }
    }
}

fn set_path(
    context: &EditContext,
    file: &Path,
    path: &[&str],
    value: &SettingValue,
) -> Result<bool, EditError> {
    let edit = Edit {
        context,
        file,
        format: Format::Toml,
        changes: &[path],
    };
    let is_said = |node: &Node| {
        let mut node = Some(node);
        for key in path {
            node = node
                .and_then(|node| node.get(key))
                .map(|member| &member.node);
        }
        node.is_some_and(|node| value.is(node))
    };
    edit.run(
        |text| {
            if is_said(&edit.tree(text).map_err(EditError::Unreadable)?) {
                return Ok(None);
            }
            let new = toml(text).and_then(|text| text.set(path, &value.value()));
            new.map(Some).map_err(|refusal| edit.refused(refusal))
        },
        |node| {
            if is_said(node) {
                return Ok(());
            }
            Err(edit.refused(Refusal {
                key: path.join("."),
                message: "it cannot be set here",
            }))
        },
    )
}

fn change(
    context: &EditContext,
    file: &Path,
    path: &[&str],
    change: impl FnOnce(&str) -> Result<Option<String>, Refusal>,
) -> Result<Edited, EditError> {
    let edit = Edit {
        context,
        file,
        format: Format::Toml,
        changes: &[path],
    };
    edit.run_and_tell(
        |text| change(text).map_err(|refusal| edit.refused(refusal)),
        |_| Ok(()),
    )
}

/// The parts of a key, which may be quoted as in TOML.
fn key_path(key: &str) -> Result<Vec<String>, EditError> {
    let bad = || EditError::BadKey {
        key: key.to_owned(),
    };
    let parts = Key::parse(key).map_err(|_no_key| bad())?;
    if parts.is_empty() || parts.len() > MAX_KEY_PARTS {
        return Err(bad());
    }
    Ok(parts.iter().map(|part| part.get().to_owned()).collect())
}
