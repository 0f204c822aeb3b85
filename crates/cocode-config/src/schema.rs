//! JSON Schemas of our files, for editors: made from the tables that the parsers use.
//!
//! They say what an editor can check while somebody types. What needs more than one key or the
//! meaning of a text is left to the parsers. Spellings that other tools have are understood by the
//! parsers where the tables say so, and are in the schemas too.

use serde_json::{Map, Value, json};

use crate::keys::{JSON_ONLY, Key, Kind, SERVER, SERVERS};
use crate::parse::MAX_SERVERS_PER_FILE;
use crate::settings::{
    ANSWERS, POLICY, RULE, SCHEMA_KEY, SETTINGS, STORES, SettingKey, SettingKind,
};

/// The files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaKind {
    /// Servers: `mcp.toml`, `.mcp.toml`, `.cocode.local.toml`, `managed-mcp.toml`.
    Mcp,
    /// Settings: `config.toml`.
    Config,
    /// What an organization allows: `policy.toml`.
    Policy,
}

impl SchemaKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mcp, Self::Config, Self::Policy];

    /// The name, as in `mcp.schema.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Config => "config",
            Self::Policy => "policy",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The keys of `[[overrides]]`.
const OVERRIDE: &[SettingKey] = &[
    SettingKey {
        name: "server",
        kind: SettingKind::Text,
        about: "The name of the server.",
    },
    SettingKey {
        name: "project",
        kind: SettingKind::Text,
        about: "Only in the work tree at this path.",
    },
    SettingKey {
        name: "plugin",
        kind: SettingKind::Text,
        about: "Only if the server comes with this plugin.",
    },
    SettingKey {
        name: "enabled",
        kind: SettingKind::Boolean,
        about: "Whether the server is used.",
    },
];

/// The schema of a kind of files: JSON Schema 2020-12, always in the same order, with a line end.
pub fn schema(kind: SchemaKind) -> String {
    let (title, about, mut properties) = match kind {
        SchemaKind::Mcp => (
            "MCP servers of cocode",
            "mcp.toml, .mcp.toml, .cocode.local.toml and managed-mcp.toml.",
            mcp(),
        ),
        SchemaKind::Config => (
            "Settings of cocode",
            "config.toml: settings that belong to no single server.",
            properties(SETTINGS),
        ),
        SchemaKind::Policy => (
            "Policy of cocode",
            "policy.toml: what an organization allows. If anything in it is not understood, every \
             server is blocked.",
            properties(POLICY),
        ),
    };
    let about_schema = "Where editors find this schema.";
    let reference = described(json!({ "type": "string" }), about_schema);
    properties.insert(SCHEMA_KEY.to_owned(), reference);
    let mut root = closed(properties);
    root.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert("title".to_owned(), json!(title));
    root.insert("description".to_owned(), json!(about));
    let mut text = format!("{:#}", sorted(Value::Object(root)));
    text.push('\n');
    text
}

fn mcp() -> Map<String, Value> {
    let mut server = closed(server_properties());
    // A server has a program or an address, under any of their spellings.
    let reached_by = SERVER
        .iter()
        .filter(|key| matches!(key.name, "command" | "url"))
        .flat_map(spellings)
        .map(|name| json!({ "required": [name] }));
    server.insert("oneOf".to_owned(), reached_by.collect());
    server.insert("description".to_owned(), json!("A server."));
    let servers = json!({
        "type": "object",
        "description": "The servers, by name.",
        "maxProperties": MAX_SERVERS_PER_FILE,
        "propertyNames": { "minLength": 1, "maxLength": cocode_core::MAX_SERVER_NAME_BYTES },
        "additionalProperties": server,
    });
    let mut about = closed(properties(OVERRIDE));
    about.insert("required".to_owned(), json!(["server", "enabled"]));
    let overrides = json!({
        "type": "array",
        "description": "What you decided about servers of projects and plugins, whose files are \
                        not yours. Only in your own mcp.toml.",
        "items": about,
    });
    let mut properties = Map::new();
    properties.insert(SERVERS.to_owned(), servers);
    properties.insert("overrides".to_owned(), overrides);
    properties
}

fn server_properties() -> Map<String, Value> {
    key_properties(SERVER)
}

fn key_properties(keys: &'static [Key]) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in keys.iter().filter(|key| !JSON_ONLY.contains(&key.name)) {
        let value = key_value(key);
        properties.insert(key.name.to_owned(), described(value.clone(), key.about));
        for alias in key.aliases {
            let about = format!("The same as `{}`.", key.name);
            properties.insert((*alias).to_owned(), described(value.clone(), &about));
        }
    }
    properties
}

fn key_value(key: &Key) -> Value {
    // Scopes may also be one text with spaces between, as OAuth has them.
    if key.name == "scopes" {
        return json!({ "anyOf": [texts(), text()] });
    }
    match &key.kind {
        Kind::Text => text(),
        Kind::OneOf(words) => json!({ "enum": words }),
        Kind::TextList => texts(),
        Kind::TextMap => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "integer", "boolean"] },
        }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Seconds | Kind::Millis => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Kind::SecondsMap => json!({
            "type": "object",
            "propertyNames": { "minLength": 1 },
            "additionalProperties": { "type": "number", "exclusiveMinimum": 0 },
        }),
        Kind::Port => port(),
        Kind::Table(keys) => Value::Object(closed(key_properties(keys))),
    }
}

fn spellings(key: &Key) -> impl Iterator<Item = &'static str> {
    std::iter::once(key.name).chain(key.aliases.iter().copied())
}

fn properties(keys: &'static [SettingKey]) -> Map<String, Value> {
    keys.iter()
        .map(|key| (key.name.to_owned(), described(setting(key), key.about)))
        .collect()
}

fn setting(key: &SettingKey) -> Value {
    let count = || json!({ "type": "integer", "minimum": 1 });
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match &key.kind {
        SettingKind::Text => text(),
        SettingKind::OneOf(words) => json!({ "enum": words }),
        SettingKind::Boolean => json!({ "type": "boolean" }),
        SettingKind::Seconds => json!({ "type": "number", "exclusiveMinimum": 0 }),
        SettingKind::Count => count(),
        SettingKind::CountOrAll => json!({ "anyOf": [count(), { "const": "all" }] }),
        SettingKind::Percent => json!({ "type": "number", "minimum": 1, "maximum": 100 }),
        SettingKind::Between(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        SettingKind::Multiplier => json!({ "type": "number", "minimum": 1 }),
        SettingKind::Price => json!({ "type": "number", "minimum": 0 }),
        SettingKind::SearchMode => json!({
            "anyOf": [
                { "type": "boolean" },
                { "enum": ["auto", "true", "false"] },
                pattern("^auto:([1-9]|[1-9][0-9]|100)$"),
            ],
        }),
        SettingKind::Listen => pattern("^.+:[0-9]{1,5}$"),
        SettingKind::HttpUrl => pattern("^https?://"),
        SettingKind::DocumentUrl => pattern("^https://[^/?#]+/[^#]+$"),
        SettingKind::Port => port(),
        SettingKind::SecretReference => pattern(r"^(keyring:.+|cmd:.+|\$\{[^}]+\})$"),
        SettingKind::SafeUrl => safe_url(),
        SettingKind::Issuers => json!({ "type": "array", "items": safe_url(), "minItems": 1 }),
        SettingKind::Store => json!({
            "anyOf": [
                { "enum": STORES },
                pattern(r"^(postgres(ql)?://.+|keyring:.+|cmd:.+|\$\{[^}]+\})$"),
            ],
        }),
        SettingKind::Word => word(),
        SettingKind::Words => json!({ "type": "array", "items": word() }),
        SettingKind::Hosts => {
            json!({ "type": "array", "items": pattern(r"^[^\s/?#@\\]+$") })
        }
        SettingKind::Origins => {
            json!({ "type": "array", "items": pattern("^[A-Za-z][A-Za-z0-9+.-]*://[^/?#@]+$") })
        }
        SettingKind::TextList => texts(),
        SettingKind::SomeOf(words) => json!({
            "type": "array",
            "items": { "enum": words },
            "minItems": 1,
        }),
        SettingKind::Directories => json!({ "type": "array", "items": pattern("^(/|~/)") }),
        SettingKind::Command => json!({
            "type": "array",
            "items": { "type": "string" },
            "minItems": 1,
        }),
        SettingKind::UrlPattern => {
            pattern(r"^(\*+|(\*|https?|wss?)://[^/?#@\s\\]+([/?][^#\s\\]*)?|unix:///[^#\s\\]*)$")
        }
        SettingKind::Rules => rules(),
        SettingKind::Answers => json!({
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    { "enum": ANSWERS },
                    { "type": "object", "additionalProperties": { "enum": ANSWERS } },
                ],
            },
        }),
        SettingKind::Table(keys) => Value::Object(closed(properties(keys))),
        SettingKind::Named(keys) => json!({
            "type": "object",
            "additionalProperties": named(key.name, keys),
        }),
        SettingKind::Tables(keys) => json!({ "type": "array", "items": matcher(keys) }),
    }
}

fn named(table: &str, keys: &'static [SettingKey]) -> Value {
    let mut entry = closed(properties(keys));
    if table == "providers" {
        entry.insert("required".to_owned(), json!(["kind"]));
        entry.insert(
            "not".to_owned(),
            json!({ "required": ["api_key", "api_key_env"] }),
        );
        let compatible = json!({ "properties": { "kind": { "const": "openai-compatible" } } });
        entry.insert("if".to_owned(), compatible);
        entry.insert("then".to_owned(), json!({ "required": ["base_url"] }));
    }
    Value::Object(entry)
}

fn matcher(keys: &'static [SettingKey]) -> Value {
    let mut matcher = closed(properties(keys));
    if SettingKey::find(keys, "serverName").is_some() {
        matcher.insert("minProperties".to_owned(), json!(1));
        matcher.insert("maxProperties".to_owned(), json!(1));
        return Value::Object(matcher);
    }
    let any = ["name", "command", "url"].map(|key| json!({ "required": [key] }));
    matcher.insert("anyOf".to_owned(), json!(any));
    matcher.insert("not".to_owned(), json!({ "required": ["command", "url"] }));
    let with_command = ["allow_env", "cwd"].into_iter();
    let with_command = with_command.filter(|name| SettingKey::find(keys, name).is_some());
    let with_command: Map<String, Value> = with_command
        .map(|name| (name.to_owned(), json!(["command"])))
        .collect();
    if !with_command.is_empty() {
        matcher.insert("dependentRequired".to_owned(), Value::Object(with_command));
    }
    Value::Object(matcher)
}

fn rules() -> Value {
    let mut rule = closed(properties(RULE));
    rule.insert("minProperties".to_owned(), json!(1));
    let name = described(
        json!({ "type": "string", "minLength": 1, "maxLength": cocode_core::MAX_RULE_BYTES }),
        "As in `mcp__github__*`, `mcp__*`, or the name of a built-in tool.",
    );
    json!({ "type": "array", "items": { "anyOf": [name, rule] } })
}

fn port() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX })
}

fn text() -> Value {
    json!({ "type": "string", "pattern": r"\S" })
}

fn word() -> Value {
    json!({ "type": "string", "pattern": r"^\S+$" })
}

/// What the parser says of addresses on this machine is more than this.
fn safe_url() -> Value {
    json!({ "type": "string", "pattern": "^https?://" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

/// An object that has these properties and no others.
fn closed(properties: Map<String, Value>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

fn described(mut value: Value, about: &str) -> Value {
    if let Value::Object(object) = &mut value {
        object.insert("description".to_owned(), json!(about));
    }
    value
}

/// The same with all members in the order of their names, however maps are kept.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut members: Vec<_> = object.into_iter().collect();
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            let members = members.into_iter();
            Value::Object(members.map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
