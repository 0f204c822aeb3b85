//! A file as a tree of values that know their lines, whether it was TOML or JSON.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toml_edit::{Item, Value as TomlValue};

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: u32,
    pub(crate) value: Value,
}

/// What a value is. Dates, which no key of ours has, are text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Member>),
}

/// A key of a table, where it stands, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) line: u32,
    pub(crate) node: Node,
}

/// The two languages files are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own.
    Toml,
    /// That of most other tools; comments and trailing commas are understood.
    Json,
}

/// A text that is not in its language. Holds nothing of the text itself, which may have secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: Option<u32>,
    pub(crate) message: String,
}

/// Reads a whole text.
pub(crate) fn parse(text: &str, format: Format) -> Result<Node, SyntaxError> {
    let lines = LineStarts::of(text);
    match format {
        Format::Toml => toml(text, &lines),
        Format::Json => json(text, &lines),
    }
}

impl Node {
    /// What kind of value it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Boolean(_) => "a boolean",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The members, if it is a table.
    pub(crate) fn members(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Table(members) => Some(members),
            _ => None,
        }
    }

    /// The last member of this name, if it is a table: the one that counts.
    pub(crate) fn get(&self, key: &str) -> Option<&Member> {
        self.members()?
            .iter()
            .rev()
            .find(|member| member.key == key)
    }
}

/// Where lines begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let after = |(at, byte): (usize, u8)| (byte == b'\n').then_some(at + 1);
        let rest = text.bytes().enumerate().filter_map(after);
        Self(std::iter::once(0).chain(rest).collect())
    }

    fn line(&self, offset: usize) -> u32 {
        let line = self.0.partition_point(|start| *start <= offset);
        u32::try_from(line).unwrap_or(u32::MAX)
    }
}

fn toml(text: &str, lines: &LineStarts) -> Result<Node, SyntaxError> {
    let document = toml_edit::Document::parse(text).map_err(|error| SyntaxError {
        line: error.span().map(|span| lines.line(span.start)),
        message: error.message().replace('\n', ", "),
    })?;
    Ok(toml_table(document.as_table(), 1, lines))
}

fn toml_table(table: &dyn toml_edit::TableLike, line: u32, lines: &LineStarts) -> Node {
    let mut members = Vec::with_capacity(table.len());
    for (key, item) in table.iter() {
        let written = table.key(key).and_then(toml_edit::Key::span);
        let span = written.or_else(|| item.span());
        let line = span.map_or(line, |span| lines.line(span.start));
        members.push(Member {
            key: key.to_owned(),
            line,
            node: toml_item(item, line, lines),
        });
    }
    let value = Value::Table(members);
    Node { line, value }
}

fn toml_item(item: &Item, line: u32, lines: &LineStarts) -> Node {
    match item {
        Item::None => Node {
            line,
            value: Value::Null,
        },
        Item::Value(value) => toml_value(value, line, lines),
        Item::Table(table) => toml_table(table, line, lines),
        Item::ArrayOfTables(tables) => {
            let nodes = tables.iter().map(|table| {
                let line = table.span().map_or(line, |span| lines.line(span.start));
                toml_table(table, line, lines)
            });
            let value = Value::List(nodes.collect());
            Node { line, value }
        }
    }
}

fn toml_value(value: &TomlValue, line: u32, lines: &LineStarts) -> Node {
    let line = value.span().map_or(line, |span| lines.line(span.start));
    let value = match value {
        TomlValue::String(text) => Value::Text(text.value().clone()),
        TomlValue::Integer(number) => Value::Integer(*number.value()),
        TomlValue::Float(number) => Value::Float(*number.value()),
        TomlValue::Boolean(truth) => Value::Boolean(*truth.value()),
        TomlValue::Datetime(date) => Value::Text(date.value().to_string()),
        TomlValue::Array(values) => {
            let nodes = values.iter().map(|value| toml_value(value, line, lines));
            Value::List(nodes.collect())
        }
        TomlValue::InlineTable(table) => return toml_table(table, line, lines),
    };
    Node { line, value }
}

/// What people write by hand in such files, and no more: JSON with comments.
pub(crate) fn json_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn json(text: &str, lines: &LineStarts) -> Result<Node, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &json_options());
    let parsed = parsed.map_err(|error| SyntaxError {
        line: Some(lines.line(error.range().start)),
        message: error.kind().to_string(),
    })?;
    match parsed.value {
        Some(value) => Ok(json_value(&value, lines)),
        None => Err(SyntaxError {
            line: None,
            message: "the file has no value".to_owned(),
        }),
    }
}

fn json_value(value: &ast::Value<'_>, lines: &LineStarts) -> Node {
    use jsonc_parser::common::Ranged as _;
    let line = lines.line(value.start());
    let value = match value {
        ast::Value::StringLit(text) => Value::Text(text.value.to_string()),
        ast::Value::NumberLit(number) => match number.value.parse() {
            Ok(integer) => Value::Integer(integer),
            Err(_not_whole) => number
                .value
                .parse()
                .map_or_else(|_| Value::Text(number.value.to_owned()), Value::Float),
        },
        ast::Value::BooleanLit(truth) => Value::Boolean(truth.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(values) => {
            let nodes = values.elements.iter().map(|value| json_value(value, lines));
            Value::List(nodes.collect())
        }
        ast::Value::Object(object) => {
            let members = object.properties.iter().map(|property| Member {
                key: property.name.as_str().to_owned(),
                line: lines.line(property.start()),
                node: json_value(&property.value, lines),
            });
            Value::Table(members.collect())
        }
    };
    Node { line, value }
}
