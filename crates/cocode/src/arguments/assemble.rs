//! Puts the arguments of a call together, and checks them against the tool's schema.

use std::collections::BTreeMap;

use cocode_client::RawJson;

use super::coerce::{self, Element};
use super::object::{ObjectText, quoted};
use super::pieces::{Piece, Value};
use super::schema::{InputSchema, Lookup, Property};
use crate::error::{CliError, Code};
use crate::text::plain;
use cocode_core::nearest;

/// How much of a value is repeated in an error.
const MAX_SHOWN_CHARS: usize = 60;

/// Reads all of stdin.
pub(crate) type ReadStdin<'a> = &'a dyn Fn() -> Result<String, CliError>;

/// Everything that was given for a call, read and checked as far as that needs no schema.
#[derive(Debug)]
pub(crate) struct Gathered {
    object: ObjectText,
    /// Names and all values that were given for each, in the order of their first mention.
    values: Vec<(String, Vec<Value>)>,
}

impl Gathered {
    /// Takes the words of the command line and the object of `--args`.
    pub(crate) fn read(
        words: &[String],
        whole: Option<&str>,
        read_stdin: ReadStdin<'_>,
    ) -> Result<Self, CliError> {
        let (mut stdin, mut stdin_for_value) = (false, false);
        let mut values: Vec<(String, Vec<Value>)> = Vec::new();
        for word in words {
            match Piece::parse(word)? {
                Piece::Stdin if stdin || stdin_for_value => return Err(stdin_twice()),
                Piece::Stdin => stdin = true,
                Piece::Member { key, given } => {
                    if given.is_stdin() {
                        if stdin || stdin_for_value {
                            return Err(stdin_twice());
                        }
                        stdin_for_value = true;
                    }
                    let value = given.load(&key, read_stdin)?;
                    match values.iter_mut().find(|(name, _)| *name == key) {
                        Some((_, others)) => others.push(value),
                        None => values.push((key, vec![value])),
                    }
                }
            }
        }
        let object = match (whole, stdin) {
            (Some(_), true) => return Err(invalid("both `--args` and `-` give a whole object")),
            (Some(text), false) => object(text.to_owned(), "`--args`")?,
            (None, true) => object(read_stdin()?, "stdin")?,
            (None, false) => ObjectText::empty(),
        };
        Ok(Self { object, values })
    }

    /// The arguments as one JSON object. Without a schema, nothing is checked and texts stay texts.
    /// What is odd and can be sent all the same is told to `warn`.
    pub(crate) fn fit(
        &self,
        tool: &str,
        schema: Option<&InputSchema>,
        warn: &dyn Fn(&str),
    ) -> Result<RawJson, CliError> {
        let Self { object, values } = self;
        let mut object = object.clone();
        let subject = Subject { tool, schema };
        subject.warn_of_undescribed(&object, warn);
        for (key, values) in values {
            let value = subject.value(key, values)?;
            object.set(key, value);
        }
        subject.check(&object)?;
        let broken = |error| invalid("the arguments are not JSON").because(&error);
        object.into_json().map_err(broken)
    }
}

/// A tool that is about to be called.
struct Subject<'a> {
    tool: &'a str,
    schema: Option<&'a InputSchema>,
}

/// `key=value` words whose values are plain texts, as prompts and completions want them.
pub(crate) fn pairs(words: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let no_stdin = || Err(invalid("stdin is read for arguments of tools only"));
    let mut pairs = BTreeMap::new();
    for word in words {
        let Piece::Member { key, given } = Piece::parse(word)? else {
            return Err(invalid("`-` has no meaning here"));
        };
        let value = match given.load(&key, &no_stdin)? {
            Value::Text(text) | Value::FileText(text) => text,
            Value::Json(json) => json.as_str().to_owned(),
        };
        if pairs.insert(key.clone(), value).is_some() {
            let message = format!("`{key}` is given twice");
            return Err(invalid(message));
        }
    }
    Ok(pairs)
}

fn stdin_twice() -> CliError {
    invalid("stdin can be read only once, and `-` is given twice")
}

fn invalid(message: impl Into<String>) -> CliError {
    CliError::new(Code::InvalidArguments, message)
}

/// The argument whose name is most like this one.
fn closest<'a>(name: &str, properties: &[Property<'a>]) -> Option<&'a str> {
    let names = properties.iter().map(|property| property.name);
    nearest(name, names).first().copied()
}

fn object(text: String, place: &str) -> Result<ObjectText, CliError> {
    let bad = |error| {
        let message = format!("{place} does not hold a JSON object");
        invalid(message).because(&error)
    };
    ObjectText::parse(text).map_err(bad)
}

impl Subject<'_> {
    /// The JSON of one argument.
    fn value(&self, key: &str, values: &[Value]) -> Result<String, CliError> {
        let anything = serde_json::Value::Bool(true);
        let property = match self.schema.map(|schema| schema.lookup(key)) {
            Some(Lookup::Known(property)) => property,
            Some(Lookup::Unknown) => return Err(self.unknown(key)),
            // Sent silently, a misspelled name would do something else than was meant.
            Some(Lookup::Undescribed) => {
                let hint = "`--no-check` sends it nevertheless, and so does `--args JSON`";
                return Err(self.unknown(key).hint(hint));
            }
            Some(Lookup::Free) | None => &anything,
        };
        let [value] = values else {
            return self.list(key, property, values);
        };
        let (json, text) = match (value, self.schema) {
            (Value::Json(json), _) => return Ok(json.as_str().to_owned()),
            (Value::Text(text) | Value::FileText(text), None) => return Ok(quoted(text)),
            (Value::Text(text), Some(schema)) => (coerce::text(schema, property, text), text),
            (Value::FileText(text), Some(schema)) => {
                (coerce::file_text(schema, property, text), text)
            }
        };
        json.ok_or_else(|| self.misfit(key, property, text))
    }

    fn list(
        &self,
        key: &str,
        property: &serde_json::Value,
        values: &[Value],
    ) -> Result<String, CliError> {
        let elements: Vec<Element<'_>> = values
            .iter()
            .map(|value| match value {
                Value::Text(text) => Element::Text(text),
                Value::FileText(text) => Element::FileText(text),
                Value::Json(json) => Element::Json(json.as_str()),
            })
            .collect();
        let list = self
            .schema
            .and_then(|schema| coerce::several(schema, property, &elements));
        list.ok_or_else(|| {
            let tool = plain(self.tool);
            let wanted = self.schema.map(|schema| schema.describe(property));
            let wanted = wanted.unwrap_or_else(|| "anything".to_owned());
            let message = format!(
                "argument `{key}` of tool `{tool}` is given {} times and must be {wanted}",
                values.len()
            );
            invalid(message).hint(format!("`{key}:=[…]` sends a list as it is written"))
        })
    }

    fn misfit(&self, key: &str, property: &serde_json::Value, text: &str) -> CliError {
        let wanted = self.schema.map(|schema| schema.describe(property));
        let wanted = wanted.unwrap_or_else(|| "anything".to_owned());
        let mut shown: String = plain(text).chars().take(MAX_SHOWN_CHARS).collect();
        if shown.chars().count() < text.chars().count() {
            shown.push('…');
        }
        let tool = plain(self.tool);
        let message = format!("argument `{key}` of tool `{tool}` must be {wanted}, not `{shown}`");
        invalid(message).hint(format!("`{key}:=JSON` sends any JSON as it is written"))
    }

    fn unknown(&self, key: &str) -> CliError {
        let tool = plain(self.tool);
        let message = format!("tool `{tool}` has no argument `{key}`");
        let mut error = invalid(message);
        let properties = self.schema.map(InputSchema::properties).unwrap_or_default();
        if let Some(close) = closest(key, &properties) {
            error = error.hint(format!("did you mean `{}`?", plain(close)));
        }
        error.hint(self.usage(&properties))
    }

    /// Who wrote a whole object may know more than the schema says.
    fn warn_of_undescribed(&self, object: &ObjectText, warn: &dyn Fn(&str)) {
        let Some(schema) = self.schema else { return };
        let properties = schema.properties();
        for name in object.names() {
            if let Lookup::Undescribed = schema.lookup(name) {
                let close = closest(name, &properties);
                let close = close.map(|close| format!("; did you mean `{}`?", plain(close)));
                warn(&format!(
                    "the tool `{}` describes no argument `{}`{}",
                    plain(self.tool),
                    plain(name),
                    close.unwrap_or_default()
                ));
            }
        }
    }

    /// What can be told about the arguments as a whole.
    fn check(&self, object: &ObjectText) -> Result<(), CliError> {
        let Some(schema) = self.schema else {
            return Ok(());
        };
        for name in object.names() {
            if let Lookup::Unknown = schema.lookup(name) {
                return Err(self.unknown(name));
            }
        }
        let required = schema.required().into_iter();
        let missing: Vec<&str> = required
            .filter(|required| !object.names().any(|name| name == *required))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let properties = schema.properties();
        let shown: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let tool = plain(self.tool);
        let mut error = invalid(format!("tool `{tool}` needs {}", shown.join(" and ")));
        // What nobody asked for may be a misspelled name of what is missing.
        for name in object.names() {
            let known = properties.iter().any(|property| property.name == name);
            let close = nearest(name, missing.iter().copied().filter(|_| !known));
            if let Some(close) = close.first() {
                error = error.hint(format!("did you mean `{close}` instead of `{name}`?"));
            }
        }
        Err(error.hint(self.usage(&properties)))
    }

    /// All arguments of the tool in one sentence.
    fn usage(&self, properties: &[Property<'_>]) -> String {
        let Some(schema) = self.schema.filter(|_| !properties.is_empty()) else {
            return "it takes no arguments".to_owned();
        };
        let one = |property: &Property<'_>| {
            let Property {
                name,
                schema: own,
                required,
            } = property;
            let required = if *required { ", required" } else { "" };
            format!("{} ({}{required})", plain(name), schema.describe(own))
        };
        let all: Vec<String> = properties.iter().map(one).collect();
        format!("its arguments are {}", all.join(", "))
    }
}
