//! Every key that a server may have: its spellings, what it holds, and what it is for. The parser,
//! the suggestions for misspelled keys and the JSON Schema are all made from these tables.

use cocode_core::{Dpop, Grant, Registration, SIGNING_ALGORITHMS};

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Other spellings, in any file.
    pub(crate) aliases: &'static [&'static str],
    /// Spellings that only JSON files of other tools have.
    pub(crate) json_aliases: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
}

/// What a key holds.
#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    OneOf(&'static [&'static str]),
    TextList,
    TextMap,
    Boolean,
    /// A number of seconds, more than none.
    Seconds,
    /// A number of milliseconds, more than none.
    Millis,
    /// Names, each with a number of seconds.
    SecondsMap,
    Port,
    Table(&'static [Key]),
}

const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        name,
        aliases: &[],
        json_aliases: &[],
        kind,
        about,
    }
}

const fn also(mut key: Key, aliases: &'static [&'static str]) -> Key {
    key.aliases = aliases;
    key
}

const fn in_json(mut key: Key, aliases: &'static [&'static str]) -> Key {
    key.json_aliases = aliases;
    key
}

/// The names of the table that holds the servers of a file.
pub(crate) const SERVERS: &str = "mcp_servers";
/// Its name in JSON files of other tools.
pub(crate) const JSON_SERVERS: &[&str] = &["mcpServers", "mcp_servers"];

/// The names of transports, for messages and the schema.
pub(crate) const TRANSPORTS: &[&str] = &["stdio", "http", "sse", "ws", "unix"];
pub(crate) const ISOLATIONS: &[&str] = &["shared", "per-session"];
pub(crate) const SANDBOXES: &[&str] = &["off", "read-only", "workspace-write"];
const REGISTRATIONS: &[&str] = &[
    Registration::Auto.as_str(),
    Registration::Cimd.as_str(),
    Registration::Dcr.as_str(),
];
const GRANTS: &[&str] = &[
    Grant::AuthorizationCode.as_str(),
    Grant::ClientCredentials.as_str(),
    Grant::JwtBearer.as_str(),
    Grant::Enterprise.as_str(),
];
const DPOPS: &[&str] = &[
    Dpop::Auto.as_str(),
    Dpop::Always.as_str(),
    Dpop::Never.as_str(),
];

/// The keys of `[mcp_servers.NAME]`.
pub(crate) const SERVER: &[Key] = &[
    in_json(
        key(
            "transport",
            Kind::OneOf(TRANSPORTS),
            "How to talk to the server. Without it: `command` means stdio, `url` means streamable \
             HTTP with a fallback to HTTP+SSE, or a WebSocket for ws:// and wss://.",
        ),
        &["type"],
    ),
    also(
        key(
            "command",
            Kind::Text,
            "The program that is the server: a name in PATH, or a path. `${VAR}` is expanded.",
        ),
        &["program"],
    ),
    key(
        "args",
        Kind::TextList,
        "Arguments of the program. `${VAR}` is expanded.",
    ),
    key(
        "env",
        Kind::TextMap,
        "Variables for the program. Values may be `${VAR}`, `keyring:NAME` or `cmd:COMMAND`.",
    ),
    key(
        "env_vars",
        Kind::TextList,
        "Names of variables passed on to the program from cocode's own environment.",
    ),
    key("cwd", Kind::Text, "The directory the program starts in."),
    in_json(
        key(
            "url",
            Kind::Text,
            "The address of the server: http, https, ws, wss or unix. `${VAR}` is expanded.",
        ),
        &["serverUrl"],
    ),
    also(
        key(
            "headers",
            Kind::TextMap,
            "Headers for every request. Values may be `${VAR}`, `keyring:NAME` or `cmd:COMMAND`.",
        ),
        &["http_headers"],
    ),
    key(
        "env_http_headers",
        Kind::TextMap,
        "Headers whose values are in variables: header name to variable name.",
    ),
    key(
        "bearer_token_env_var",
        Kind::Text,
        "The variable that holds a bearer token for the server.",
    ),
    also(
        key(
            "headers_helper",
            Kind::Text,
            "A command that prints headers as a JSON object of texts.",
        ),
        &["http_headers_helper"],
    ),
    key(
        "oauth",
        Kind::Table(OAUTH),
        "What is fixed about signing in.",
    ),
    key(
        "scopes",
        Kind::TextList,
        "Scopes to ask for when signing in; the same as `oauth.scopes`.",
    ),
    key("enabled", Kind::Boolean, "Whether the server is used."),
    in_json(
        key(
            "disabled",
            Kind::Boolean,
            "The opposite of `enabled`, as other tools spell it.",
        ),
        &[],
    ),
    key(
        "required",
        Kind::Boolean,
        "Whether a start without this server is a failure.",
    ),
    key(
        "startup_timeout_sec",
        Kind::Seconds,
        "After this nobody waits for the server any more (10).",
    ),
    key(
        "connect_timeout_sec",
        Kind::Seconds,
        "After this an attempt to connect ends (60).",
    ),
    key(
        "tool_timeout_sec",
        Kind::Seconds,
        "How long a tool may be silent (60).",
    ),
    key(
        "tool_timeouts_sec",
        Kind::SecondsMap,
        "How long single tools may be silent, by name; `*` matches any text. The exact name counts, \
         else the pattern that fixes the most of it, else `tool_timeout_sec`.",
    ),
    key(
        "tool_total_timeout_sec",
        Kind::Seconds,
        "How long a call may take in all, whatever progress it makes (as in `[health]`).",
    ),
    in_json(
        key(
            "timeout",
            Kind::Millis,
            "How long a tool may be silent, in milliseconds; JSON files only.",
        ),
        &[],
    ),
    key(
        "enabled_tools",
        Kind::TextList,
        "Only these tools count; `*` matches any text.",
    ),
    also(
        key(
            "disabled_tools",
            Kind::TextList,
            "These tools do not count; wins over `enabled_tools`.",
        ),
        &["excluded_tools"],
    ),
    key(
        "protocol",
        Kind::Text,
        "What to speak: auto, legacy, modern, or a revision such as 2025-11-25.",
    ),
    key(
        "isolation",
        Kind::OneOf(ISOLATIONS),
        "Whether sessions share one connection to the server.",
    ),
    key(
        "always_load",
        Kind::Boolean,
        "Whether its tools are always shown to models, whatever tool search decides.",
    ),
    key(
        "trust_annotations",
        Kind::Boolean,
        "Whether its readOnlyHint permits calls of a remote server also after an agent may have read data \
         outside of its workspace.",
    ),
    key(
        "idle_stop_sec",
        Kind::Seconds,
        "How long the server may idle before it is stopped.",
    ),
    key(
        "sandbox",
        Kind::OneOf(SANDBOXES),
        "What the program may touch.",
    ),
    key("description", Kind::Text, "What the server is for."),
];

/// The keys of `[mcp_servers.NAME.oauth]`.
pub(crate) const OAUTH: &[Key] = &[
    key("client_id", Kind::Text, "A client registered beforehand."),
    key(
        "client_secret_env",
        Kind::Text,
        "The variable that holds the secret of that client.",
    ),
    key(
        "callback_port",
        Kind::Port,
        "The port of the callback. Without it, any that is free.",
    ),
    key(
        "callback_url",
        Kind::Text,
        "The redirect URL, where it is not http://127.0.0.1:PORT/callback: https, or http to this \
         machine. The port of the latter is listened at.",
    ),
    key("scopes", Kind::TextList, "Scopes to ask for."),
    key(
        "resource",
        Kind::Text,
        "The resource to ask for, where it is not the address.",
    ),
    key(
        "registration",
        Kind::OneOf(REGISTRATIONS),
        "How to become a client without `client_id`: by the URL of a document (cimd), by \
         registering (dcr), or by what the authorization server offers (auto).",
    ),
    key(
        "client_metadata_url",
        Kind::Text,
        "The https URL of a document that describes this client, which is then its ID.",
    ),
    key(
        "issuer",
        Kind::Text,
        "The authorization server that knows the client of `client_id`, and that is used if the \
         server names several.",
    ),
    key(
        "grant",
        Kind::OneOf(GRANTS),
        "How to come by a token: somebody agrees in a browser (authorization_code), the client \
         signs in itself, a JWT says who signs in, or the ID token of an identity provider is \
         exchanged (enterprise).",
    ),
    key(
        "private_key_file",
        Kind::Text,
        "The file with the private key of the client, in PEM.",
    ),
    key(
        "private_key_env",
        Kind::Text,
        "The variable that holds the private key of the client, in PEM.",
    ),
    key(
        "signing_algorithm",
        Kind::OneOf(&SIGNING_ALGORITHMS),
        "How the private key signs. Without it, as fits the key.",
    ),
    key(
        "assertion_env",
        Kind::Text,
        "The variable that holds the JWT of jwt_bearer, or the ID token of enterprise.",
    ),
    key("assertion_file", Kind::Text, "The file that holds it."),
    key("assertion_command", Kind::Text, "A command that prints it."),
    key(
        "idp_issuer",
        Kind::Text,
        "The identity provider of enterprise, by its issuer.",
    ),
    key(
        "idp_token_endpoint",
        Kind::Text,
        "Where the identity provider gives out tokens. Without it, what its metadata say.",
    ),
    key(
        "idp_client_id",
        Kind::Text,
        "The client that the identity provider knows. Without it, `client_id`.",
    ),
    key(
        "idp_client_secret_env",
        Kind::Text,
        "The variable that holds the secret of that client.",
    ),
    key(
        "dpop",
        Kind::OneOf(DPOPS),
        "Whether tokens are bound to a key of ours (auto: where it is offered and wanted).",
    ),
    key(
        "allow_private_network",
        Kind::Boolean,
        "Whether a public server may name private addresses to sign in at.",
    ),
];

/// Keys that stand only in JSON files.
pub(crate) const JSON_ONLY: &[&str] = &["timeout", "disabled"];

impl Key {
    /// The key of this spelling.
    pub(crate) fn find(
        keys: &'static [Self],
        spelling: &str,
        is_json: bool,
    ) -> Option<&'static Self> {
        let snake;
        let spelling = if is_json {
            snake = snake_case(spelling);
            snake.as_str()
        } else {
            spelling
        };
        keys.iter().find(|key| {
            let in_json = is_json
                && key
                    .json_aliases
                    .iter()
                    .any(|alias| snake_case(alias) == spelling);
            let exists = is_json || !JSON_ONLY.contains(&key.name);
            exists && (key.name == spelling || key.aliases.contains(&spelling) || in_json)
        })
    }

    /// All spellings that may have been meant.
    pub(crate) fn spellings(
        keys: &'static [Self],
        is_json: bool,
    ) -> impl Iterator<Item = &'static str> {
        keys.iter()
            .filter(move |key| is_json || !JSON_ONLY.contains(&key.name))
            .flat_map(move |key| {
                let json_aliases = if is_json { key.json_aliases } else { &[] };
                let aliases = key.aliases.iter().chain(json_aliases).copied();
                std::iter::once(key.name).chain(aliases)
            })
    }
}

/// JSON files of other tools spell keys in camel case.
fn snake_case(text: &str) -> String {
    let mut snake = String::with_capacity(text.len() + 4);
    for character in text.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
            snake.push(character.to_ascii_lowercase());
        } else {
            snake.push(character);
        }
    }
    snake
}
