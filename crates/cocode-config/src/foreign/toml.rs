//! Changes one table of a TOML file and leaves everything else as it stands: comments and order.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::draft::{Members, Output};
use super::json::EditError;
use super::owned::Owned;

/// Adds servers to a table, or changes them. Of a server that is there already, keys that are not
/// `owned` stay.
pub(super) fn add(
    text: &str,
    table: &str,
    servers: &[(String, Members)],
    owned: Owned,
) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let found = document.entry(table).or_insert_with(|| {
        let mut created = Table::new();
        // A header of its own would hold nothing.
        created.set_implicit(true);
        Item::Table(created)
    });
    let is_inline = found.is_inline_table();
    change(found, |table| {
        for (name, members) in servers {
            match table.get_mut(name) {
                Some(server) if server.is_table_like() => {
                    change(server, |server| update(server, members, owned));
                }
                _ => {
                    table.insert(name, item(&Output::Table(members.clone()), is_inline));
                }
            }
        }
    })
    .ok_or_else(|| EditError::NotTable(table.to_owned()))?;
    Ok(with_line_ends_of(text, document.to_string()))
}

/// Removes servers from a table.
pub(super) fn remove(text: &str, table: &str, names: &[String]) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let found = document.get_mut(table);
    if let Some(table) = found.and_then(Item::as_table_like_mut) {
        for name in names {
            table.remove(name);
        }
    }
    Ok(with_line_ends_of(text, document.to_string()))
}

/// Changes a table, if it is one. One in a line is then spaced evenly: the space before its `}`
/// belongs to what was last before.
fn change(item: &mut Item, edit: impl FnOnce(&mut dyn TableLike)) -> Option<()> {
    let before = item.as_inline_table().map(InlineTable::len);
    edit(item.as_table_like_mut()?);
    if let Some(table) = item.as_inline_table_mut()
        && before != Some(table.len())
        && !table.to_string().contains(['#', '\n'])
    {
        table.fmt();
    }
    Some(())
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse::<DocumentMut>()
        .map_err(|error| EditError::Syntax(error.message().to_owned()))
}

/// The library ends the lines it writes in one way only.
fn with_line_ends_of(before: &str, after: String) -> String {
    let ends = before.matches('\n').count();
    if ends > 0 && ends == before.matches("\r\n").count() {
        after.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        after
    }
}

/// Makes a table say what is wanted.
fn update(table: &mut dyn TableLike, members: &Members, owned: Owned) {
    let is_wanted = |key: &str| members.iter().any(|(wanted, _)| wanted == key);
    let keys: Vec<_> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for key in keys.iter().filter(|key| owned.has(key) && !is_wanted(key)) {
        table.remove(key);
    }
    for (key, value) in members {
        match (table.get_mut(key), value) {
            (Some(found), value) if is_same(found, value) => {}
            (Some(found), Output::Table(members)) if found.is_table_like() => {
                change(found, |inner| update(inner, members, owned.inside(key)));
            }
            (Some(Item::Value(found)), value) => {
                // What stands around the value, a comment behind it too, is kept.
                let decor = found.decor().clone();
                *found = inline(value);
                *found.decor_mut() = decor;
            }
            _ => {
                table.insert(key, item(value, true));
            }
        }
    }
}

/// Whether a value is already written.
fn is_same(found: &Item, value: &Output) -> bool {
    match value {
        Output::Table(members) => found.as_table_like().is_some_and(|table| {
            table.len() == members.len()
                && members
                    .iter()
                    .all(|(key, value)| table.get(key).is_some_and(|item| is_same(item, value)))
        }),
        value => found
            .as_value()
            .is_some_and(|found| is_same_value(found, value)),
    }
}

fn is_same_value(found: &Value, value: &Output) -> bool {
    match value {
        Output::Text(text) => found.as_str() == Some(text),
        Output::Integer(number) => found.as_integer() == Some(*number),
        Output::Float(number) => found.as_float() == Some(*number),
        Output::Boolean(truth) => found.as_bool() == Some(*truth),
        Output::List(values) => found.as_array().is_some_and(|array| {
            array.len() == values.len()
                && array
                    .iter()
                    .zip(values)
                    .all(|(found, value)| is_same_value(found, value))
        }),
        Output::Table(_) => is_same(&Item::Value(found.clone()), value),
    }
}

/// A value as an item; tables with headers of their own unless they stand inside a line.
fn item(value: &Output, is_inline: bool) -> Item {
    match value {
        Output::Table(members) if !is_inline => {
            let mut table = Table::new();
            for (key, value) in members {
                table.insert(key, item(value, false));
            }
            Item::Table(table)
        }
        value => Item::Value(inline(value)),
    }
}

fn inline(value: &Output) -> Value {
    match value {
        Output::Text(text) => text.as_str().into(),
        Output::Integer(number) => (*number).into(),
        Output::Float(number) => (*number).into(),
        Output::Boolean(truth) => (*truth).into(),
        Output::List(values) => Value::Array(values.iter().map(inline).collect::<Array>()),
        Output::Table(members) => {
            let mut table = InlineTable::new();
            for (key, value) in members {
                table.insert(key, inline(value));
            }
            Value::InlineTable(table)
        }
    }
}
