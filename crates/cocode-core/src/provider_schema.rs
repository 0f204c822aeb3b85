//! Gives every provider of models a schema that it accepts for a tool of an MCP server.
//!
//! A server describes the arguments of a tool in any JSON Schema. No provider takes all of that, and
//! each refuses the whole request if one tool of hundreds is not to its taste. [`convert`] writes a
//! schema that the provider takes, and by these rules:
//!
//! - **Nothing is forbidden that the server allows.** What a provider cannot be told is left out of
//!   the schema and told in the description. The original stays what arguments are checked against.
//!   There are two exceptions, where the letter of JSON Schema is nobody's intent: a missing type is
//!   the one that the keywords beside it are about, and where alternatives at the root become one
//!   object, a key that only some of them mention is as those have it.
//! - **What is given can be taken back.** [`ProviderTool::arguments_back`] makes what a model gave
//!   into what the server wants, [`ProviderTool::arguments_forth`] is its inverse.
//! - **The same tool has the same bytes**, because caches of prompts depend on them.
//! - **A server is trusted with nothing**: depth, size and work are bounded, references are never
//!   fetched, and a schema that holds itself ends somewhere.
//! - A tool that cannot be repaired is [`Unrepairable`], and the reason says why.
//!
//! # What the providers want
//!
//! | | openai | openai-strict | anthropic | gemini | plain |
//! |---|---|---|---|---|---|
//! | root | `object`, no combinator | likewise | likewise | `OBJECT` | as openai |
//! | any value | `{}` | refused | `{}` | JSON text | `{}` |
//! | optional properties | yes | null for each | yes | yes | yes |
//! | other keys | yes | refused | yes | JSON text if no key is listed | yes |
//! | `$ref` | if recursive | if recursive | if recursive | cut | cut |
//! | null | type lists | type lists | type lists | `nullable` | `anyOf` |
//! | tuples | one schema for all | likewise | `prefixItems` | one schema for all | likewise |
//! | `enum` | any scalar | any scalar | any scalar | texts that are not empty | any scalar |
//! | formats | nine | nine | any | `date-time` | any |
//! | keys of objects | any | any | `[a-zA-Z0-9_.-]{1,64}` | likewise | any |
//! | name | `[a-zA-Z0-9_-]{1,64}` | likewise | likewise | also `.`, and no digit first | likewise |
//! | description | 1024 characters | likewise | 10,000 | 10,000 | 10,000 |
//!
//! These come from the guides of OpenAI on function calling and structured outputs (the supported
//! keywords and formats, 5,000 properties, 10 levels, 1,000 values of enums, 120,000 characters of
//! names and values), from the reference of the `Schema` of Gemini and Vertex AI, from Anthropic's
//! guide to tool use, and from what the interfaces answer where the guides are silent: "array schema
//! missing items", "object schema missing properties", "`$ref` cannot have keywords" and "is not a
//! valid format" (OpenAI), "`input_schema` does not support oneOf, allOf, or anyOf at the top level"
//! and "Property keys should match pattern" (Anthropic), "should be non-empty for OBJECT type", "only
//! 'enum' and 'date-time' are supported for STRING type", "When using `any_of`, it must be the only
//! field set" and "property is not defined" (Gemini).
//!
//! # Strictness
//!
//! A strict schema has every property in `required`, so that null stands for one that is absent. That
//! has a way back only where null is not a value of its own. So [`Dialect::OpenAiStrict`] refuses a
//! tool with an optional property that may also be null, unless its default is null: then the server
//! itself says that both are the same, and an explicit null comes back as absence. It also refuses
//! what can be anything, objects that declare to take other keys, and alternatives that cannot be
//! told apart. Keys that a schema does not speak of cannot be given. [`convert_best`] falls back to
//! [`Dialect::OpenAi`] for such tools.

mod dialect;
mod meet;
mod naming;
mod node;
mod note;
mod outline;
mod read;
mod read_rules;
mod refs;
mod settle;
mod strict;
mod way;
mod words;
mod write;
mod write_kind;

pub use dialect::{Dialect, UnknownDialect};
pub use note::{Change, Note, Unrepairable};

use serde_json::{Value, json};

use note::Notes;
use read::Reading;
use way::Ways;
use write::Writer;

/// The largest schema that a provider is given, in bytes.
pub const MAX_PARAMETERS_BYTES: usize = 100_000;

/// As much of a name is the description of a tool that has none, in characters.
const MAX_NAME_SHOWN_CHARS: usize = 128;

/// A tool as its server describes it.
#[derive(Debug, Clone, Copy)]
pub struct ToolSource<'a> {
    /// The name that the model is to see.
    pub name: &'a str,
    /// What the tool does.
    pub description: Option<&'a str>,
    /// The JSON Schema of its arguments.
    pub input_schema: &'a Value,
}

/// A tool as a provider is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderTool {
    /// The name. It differs from the one that was given only if that is not allowed; who calls by
    /// the name keeps a table.
    pub name: String,
    /// What the tool does, and what the schema cannot say.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: Value,
    /// What was changed.
    pub notes: Vec<Note>,
    dialect: Dialect,
    ways: Ways,
}

impl ProviderTool {
    /// Whom this is for.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The tool in the wire form of its provider: for OpenAI that of the Responses interface.
    pub fn definition(&self) -> Value {
        let Self {
            name,
            description,
            parameters,
            ..
        } = self;
        match self.dialect {
            Dialect::OpenAi | Dialect::OpenAiStrict => json!({
                "type": "function",
                "name": name,
                "description": description,
                "parameters": parameters,
                "strict": self.dialect == Dialect::OpenAiStrict,
            }),
            Dialect::Anthropic => json!({
                "name": name,
                "description": description,
                "input_schema": parameters,
            }),
            // Gemini refuses an object without properties, and takes no schema for no arguments.
            Dialect::Gemini if self.has_no_properties() => json!({
                "name": name,
                "description": description,
            }),
            Dialect::Gemini | Dialect::Plain => json!({
                "name": name,
                "description": description,
                "parameters": parameters,
            }),
        }
    }

    /// The tool in the wire form of the Chat Completions interface, which many others share.
    pub fn chat_definition(&self) -> Value {
        let mut function = json!({
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        });
        if self.dialect == Dialect::OpenAiStrict {
            function["strict"] = json!(true);
        }
        json!({ "type": "function", "function": function })
    }

    /// What a model gave, as the server wants it. What does not fit the schema stays as it is.
    pub fn arguments_back(&self, given: Value) -> Value {
        self.ways.back(given)
    }

    /// What the server wants, as a model would have given it: for history that is replayed.
    pub fn arguments_forth(&self, original: Value) -> Value {
        self.ways.forth(original)
    }

    fn has_no_properties(&self) -> bool {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        properties.is_none_or(serde_json::Map::is_empty)
    }
}

/// Writes a tool in the dialect of a provider.
///
/// ```
/// use cocode_core::{Dialect, ToolSource, convert};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"headers": {"type": "object"}}});
/// let tool = ToolSource { name: "post", description: None, input_schema: &schema };
///
/// let tool = convert(&tool, Dialect::Gemini)?;
/// assert_eq!(tool.parameters["properties"]["headers"]["type"], "STRING");
/// let given = json!({"headers": "{\"accept\": \"*/*\"}"});
/// assert_eq!(tool.arguments_back(given), json!({"headers": {"accept": "*/*"}}));
/// # Ok::<(), cocode_core::Unrepairable>(())
/// ```
pub fn convert(tool: &ToolSource<'_>, dialect: Dialect) -> Result<ProviderTool, Unrepairable> {
    if tool.name.is_empty() {
        return Err(Unrepairable::NoName);
    }
    let found = match tool.input_schema {
        Value::Object(_) | Value::Bool(true) => None,
        Value::Bool(false) => Some("false"),
        Value::Null => Some("null"),
        Value::Number(_) => Some("a number"),
        Value::String(_) => Some("a text"),
        Value::Array(_) => Some("a list"),
    };
    if let Some(found) = found {
        return Err(Unrepairable::NotASchema { found });
    }
    let mut too_large = Unrepairable::TooLarge {
        what: "it has too many parts",
        limit: read::MAX_NODES,
    };
    for reading in readings(dialect) {
        let Some((document, notes)) = read::document(tool.input_schema, *reading) else {
            continue;
        };
        let written = write(tool, dialect, document, notes)?;
        if written.parameters.to_string().len() <= MAX_PARAMETERS_BYTES {
            return Ok(written);
        }
        too_large = Unrepairable::TooLarge {
            what: "it has too many bytes",
            limit: MAX_PARAMETERS_BYTES,
        };
    }
    Err(too_large)
}

/// Writes a tool for OpenAI: strictly if that has a way back, or else not.
/// [`ProviderTool::dialect`] tells which.
pub fn convert_best(tool: &ToolSource<'_>) -> Result<ProviderTool, Unrepairable> {
    convert(tool, Dialect::OpenAiStrict).or_else(|_not_strict| convert(tool, Dialect::OpenAi))
}

/// Ways to read a schema, from the one that says most to the one that is smallest.
fn readings(dialect: Dialect) -> &'static [Reading] {
    const fn reading(max_references: usize, keeps_references: bool, distributes: bool) -> Reading {
        Reading {
            max_references,
            keeps_references,
            distributes,
        }
    }
    if dialect.has_references() {
        const {
            &[
                reading(8, true, true),
                reading(0, true, true),
                reading(0, true, false),
            ]
        }
    } else {
        const {
            &[
                reading(8, false, true),
                reading(4, false, true),
                reading(2, false, true),
                reading(1, false, true),
                reading(1, false, false),
            ]
        }
    }
}

fn write(
    tool: &ToolSource<'_>,
    dialect: Dialect,
    mut document: read::Document,
    mut notes: Notes,
) -> Result<ProviderTool, Unrepairable> {
    settle::document(&mut document, &mut notes);
    let (arguments, mut told) = settle::arguments(&document.root, &mut notes)?;
    let mut writer = Writer::new(dialect, &document, &arguments, &mut notes);
    let (parameters, ways) = writer.arguments(&arguments, &mut told)?;
    if dialect == Dialect::OpenAiStrict {
        strict::check_limits(&parameters)?;
    }
    let own = tool.description.filter(|text| !text.trim().is_empty());
    let own = own.or(document.root.about.description.as_deref());
    let mut described = words::of_tool(own, &told, dialect.max_description_chars());
    if described.text.is_empty() {
        // Gemini wants one, and nobody minds.
        described.text = words::cut(tool.name, MAX_NAME_SHOWN_CHARS).0;
    }
    if described.is_cut {
        notes.add("", Change::DescriptionCut);
    }
    let name = naming::of_tool(tool.name, dialect);
    if name != tool.name {
        notes.add("", Change::Renamed(name.clone()));
    }
    Ok(ProviderTool {
        name,
        description: described.text,
        parameters,
        notes: notes.into_vec(),
        dialect,
        ways,
    })
}

#[cfg(test)]
#[path = "provider_schema_property_tests.rs"]
mod property_tests;

#[cfg(test)]
#[path = "provider_schema_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "provider_schema_hostile_tests.rs"]
mod hostile_tests;
