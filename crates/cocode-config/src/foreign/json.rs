//! Changes one table of a JSON file and leaves everything else as it stands: comments, order,
//! indentation, trailing commas.

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};

use super::draft::{Members, Output};
use super::owned::Owned;
use crate::document::json_options;

/// Why a file cannot be changed.
pub(super) enum EditError {
    /// It is not in its language.
    Syntax(String),
    /// Something on the way to the servers is no table.
    NotTable(String),
}

/// Adds servers, or changes them. Of a server that is there already, keys that are not `owned`
/// stay.
pub(super) fn add(
    text: &str,
    path: &[String],
    servers: &[(String, Members)],
    owned: Owned,
) -> Result<String, EditError> {
    let root = parse(text)?;
    let mut table = root
        .object_value_or_create()
        .ok_or_else(|| EditError::NotTable(String::new()))?;
    for key in path {
        table = inner_table(&table, key)?;
    }
    for (name, members) in servers {
        match last(&table, name) {
            Some(property) => match property.object_value() {
                Some(server) => update(&server, members, owned),
                None => property.set_value(input(&Output::Table(members.clone()))),
            },
            None => {
                table.append(name, input(&Output::Table(members.clone())));
            }
        }
    }
    Ok(root.to_string())
}

/// Removes servers.
pub(super) fn remove(text: &str, path: &[String], names: &[String]) -> Result<String, EditError> {
    let root = parse(text)?;
    let mut table = root.object_value();
    for key in path {
        table = table.and_then(|table| last(&table, key)?.object_value());
    }
    for property in table.iter().flat_map(CstObject::properties) {
        let name = property.decoded_name();
        if name.is_some_and(|name| names.contains(&name)) {
            property.remove();
        }
    }
    Ok(root.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &json_options())
        .map_err(|error| EditError::Syntax(error.kind().to_string()))
}

/// The last member of a name: the one that counts.
fn last(table: &CstObject, name: &str) -> Option<CstObjectProp> {
    let named = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(name);
    table.properties().into_iter().rev().find(named)
}

fn inner_table(table: &CstObject, key: &str) -> Result<CstObject, EditError> {
    let property = last(table, key);
    let property = property.unwrap_or_else(|| table.append(key, CstInputValue::Object(Vec::new())));
    let is_null = property
        .value()
        .is_some_and(|value| value.as_null_keyword().is_some());
    if is_null {
        return Ok(property.object_value_or_set());
    }
    property
        .object_value()
        .ok_or_else(|| EditError::NotTable(key.to_owned()))
}

/// Makes a table say what is wanted.
fn update(table: &CstObject, members: &Members, owned: Owned) {
    let is_wanted = |key: &str| members.iter().any(|(wanted, _)| wanted == key);
    for property in table.properties() {
        if let Some(key) = property.decoded_name()
            && owned.has(&key)
            && !is_wanted(&key)
        {
            property.remove();
        }
    }
    for (key, value) in members {
        let Some(property) = last(table, key) else {
            table.append(key, input(value));
            continue;
        };
        if property.value().is_some_and(|node| is_same(&node, value)) {
            continue;
        }
        match (property.object_value(), value) {
            (Some(inner), Output::Table(members)) => update(&inner, members, owned.inside(key)),
            _ => property.set_value(input(value)),
        }
    }
}

/// Whether a value is already written.
fn is_same(node: &CstNode, value: &Output) -> bool {
    match value {
        Output::Text(text) => node
            .as_string_lit()
            .and_then(|literal| literal.decoded_value().ok())
            .is_some_and(|found| found == *text),
        Output::Integer(number) => raw_number(node) == Some(number.to_string()),
        Output::Float(number) => raw_number(node).and_then(|raw| raw.parse().ok()) == Some(*number),
        Output::Boolean(truth) => node
            .as_boolean_lit()
            .is_some_and(|literal| literal.value() == *truth),
        Output::List(values) => node.as_array().is_some_and(|array| {
            let elements = array.elements();
            elements.len() == values.len()
                && elements
                    .iter()
                    .zip(values)
                    .all(|(node, value)| is_same(node, value))
        }),
        Output::Table(members) => node.as_object().is_some_and(|table| {
            table.properties().len() == members.len()
                && members.iter().all(|(key, value)| {
                    last(&table, key)
                        .and_then(|property| property.value())
                        .is_some_and(|node| is_same(&node, value))
                })
        }),
    }
}

fn raw_number(node: &CstNode) -> Option<String> {
    node.as_number_lit().map(|literal| literal.to_string())
}

fn input(value: &Output) -> CstInputValue {
    match value {
        Output::Text(text) => CstInputValue::String(text.clone()),
        Output::Integer(number) => CstInputValue::Number(number.to_string()),
        Output::Float(number) => CstInputValue::Number(number.to_string()),
        Output::Boolean(truth) => CstInputValue::Bool(*truth),
        Output::List(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Output::Table(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}
