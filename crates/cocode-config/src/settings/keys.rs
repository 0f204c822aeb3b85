//! Every key of `config.toml` and `policy.toml`: what it holds and what it is for. The parsers, the
//! suggestions for misspelled keys and the JSON Schemas are all made from these tables.

mod agent;
mod gateway;
mod models;

use super::CredentialStore;

use agent::AGENT;
pub(crate) use agent::POLICY_AGENT;
use gateway::GATEWAY;
pub(crate) use gateway::POLICY_GATEWAY;
use models::{MODEL, PROVIDER};

/// A key of a table.
#[derive(Debug)]
pub(crate) struct SettingKey {
    pub(crate) name: &'static str,
    pub(crate) kind: SettingKind,
    pub(crate) about: &'static str,
}

/// What a key holds.
#[derive(Debug)]
pub(crate) enum SettingKind {
    Text,
    OneOf(&'static [&'static str]),
    Boolean,
    /// A number of seconds, more than none.
    Seconds,
    /// A whole number, more than none.
    Count,
    /// A whole number, more than none, or "all".
    CountOrAll,
    /// From 1 to 100.
    Percent,
    /// A whole number from the first to the second.
    Between(u64, u64),
    /// A number of at least 1.
    Multiplier,
    /// A number that is not negative.
    Price,
    /// true, false, "auto", or "auto:N".
    SearchMode,
    /// `HOST:PORT`.
    Listen,
    /// An address with http or https, without credentials.
    HttpUrl,
    /// The address of a document that describes a client.
    DocumentUrl,
    Port,
    /// The address of something that is believed: https, or http to this machine.
    SafeUrl,
    /// A list of names of authorization servers, with at least one in it.
    Issuers,
    /// `keyring:NAME`, `cmd:LINE` or `${VAR}`, but never the secret itself.
    SecretReference,
    /// `sqlite`, `memory`, or the address of a database without a password in it.
    Store,
    TextList,
    /// A text without blanks.
    Word,
    /// A list of such texts.
    Words,
    /// A list of names or addresses of machines, each with or without a port.
    Hosts,
    /// A list of origins of web pages: a scheme and a host each.
    Origins,
    /// A list of at least one of these words.
    SomeOf(&'static [&'static str]),
    /// A list of directories: absolute, or in the home of the user.
    Directories,
    /// A list of texts with at least one in it.
    Command,
    /// A [`crate::UrlPattern`].
    UrlPattern,
    /// A list of permission rules.
    Rules,
    /// Answers that were given to questions about tools.
    Answers,
    Table(&'static [SettingKey]),
    /// A table of tables, by name.
    Named(&'static [SettingKey]),
    /// A list of tables.
    Tables(&'static [SettingKey]),
}

const fn key(name: &'static str, kind: SettingKind, about: &'static str) -> SettingKey {
    SettingKey { name, kind, about }
}

use SettingKind as Kind;

pub(crate) const VERDICTS: &[&str] = &["allow", "ask", "deny"];
pub(crate) const ANSWERS: &[&str] = &["allow", "deny"];

/// The keys of `config.toml`.
pub(crate) const SETTINGS: &[SettingKey] = &[
    key(
        "credential_store",
        Kind::OneOf(CredentialStore::WORDS),
        "Where credentials are kept: the keyring of the system, a file that only you can read, or \
         the one that works (auto).",
    ),
    key(
        "oauth",
        Kind::Table(OAUTH),
        "How to sign in at servers, where their own entries do not say otherwise.",
    ),
    key(
        "provider",
        Kind::Text,
        "The provider that is used where none is named: a name of `[providers]`.",
    ),
    key(
        "model",
        Kind::Text,
        "The model that is used where none is named.",
    ),
    key(
        "permissions",
        Kind::Table(PERMISSIONS),
        "Which tools may run. Deny is stronger than ask, ask is stronger than allow, and the rules \
         of all files count together. A rule that is broken makes every tool ask until it is mended.",
    ),
    key(
        "tool_search",
        Kind::Table(TOOL_SEARCH),
        "When models search for tools instead of being shown all of them.",
    ),
    key(
        "providers",
        Kind::Named(PROVIDER),
        "Where models are reached, by a name of your choice. Of two with one name the more \
         important file's counts, as a whole.",
    ),
    key(
        "models",
        Kind::Named(MODEL),
        "What models can do, by the name that the provider knows them by.",
    ),
    key(
        "agent",
        Kind::Table(AGENT),
        "What agents may do, and how they work. A file that came with a work tree and is not \
         approved can only make `approval_policy`, `sandbox` and `network` stricter.",
    ),
    key("gateway", Kind::Table(GATEWAY), "How the gateway serves."),
    key(
        "health",
        Kind::Table(HEALTH),
        "How servers are started, watched and reconnected.",
    ),
    key(
        "retention",
        Kind::Table(RETENTION),
        "How long and how much of it is kept. What is not given is kept.",
    ),
];

/// The names of those keys.
pub(crate) const SECTIONS: [&str; SETTINGS.len()] = {
    let mut names = [""; SETTINGS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = SETTINGS[index].name;
        index += 1;
    }
    names
};

/// The key by which editors find the schema of a file.
pub(crate) const SCHEMA_KEY: &str = "$schema";

/// The keys of `[permissions]`.
pub(crate) const PERMISSIONS: &[SettingKey] = &[
    DEFAULT,
    ALLOW,
    ASK,
    DENY,
    key(
        "remembered",
        Kind::Answers,
        "Answers to questions about single tools. Written by cocode, and honored in your own \
         config.toml alone.",
    ),
];

/// The keys of `[permissions]` in a policy.
pub(crate) const POLICY_PERMISSIONS: &[SettingKey] = &[DEFAULT, ALLOW, ASK, DENY];

const DEFAULT: SettingKey = key(
    "default",
    Kind::OneOf(VERDICTS),
    "What happens to tools that no rule matches. Of all files the strictest counts.",
);
const ALLOW: SettingKey = key("allow", Kind::Rules, "Tools that run without a question.");
const ASK: SettingKey = key("ask", Kind::Rules, "Tools that run if a person agrees.");
const DENY: SettingKey = key(
    "deny",
    Kind::Rules,
    "Tools that never run, and are not shown.",
);

/// The keys of a permission rule that is a table.
pub(crate) const RULE: &[SettingKey] = &[
    key(
        "tool",
        Kind::Text,
        "The tool; `*` matches any text. With `server` the tool's own name, else a name as in \
         `mcp__github__create_*`, or that of a built-in tool.",
    ),
    key(
        "server",
        Kind::Text,
        "The server that has the tool; `*` matches any text.",
    ),
    key(
        "read_only",
        Kind::Boolean,
        "Only tools that say they change nothing, or only the others.",
    ),
    key(
        "destructive",
        Kind::Boolean,
        "Only tools that say they may destroy something, or only the others.",
    ),
];

const OAUTH: &[SettingKey] = &[
    key(
        "client_metadata_url",
        Kind::DocumentUrl,
        "The https URL of a document that describes this client, which is then its ID.",
    ),
    key(
        "callback_port",
        Kind::Port,
        "The port of the callback. Without it, any that is free.",
    ),
];

const TOOL_SEARCH: &[SettingKey] = &[
    key(
        "enabled",
        Kind::SearchMode,
        "Whether models search for tools: true, false, \"auto\" (from `threshold` on), or \
         \"auto:N\" (from N percent of the context window on).",
    ),
    key(
        "threshold",
        Kind::Percent,
        "From how many percent of the context window on \"auto\" means search (10).",
    ),
    key(
        "min_context_window",
        Kind::Count,
        "Models with fewer tokens in their context window do not search (32000).",
    ),
    key(
        "on_list_changed",
        Kind::Boolean,
        "Whether a server that changes its tools makes the decision anew (true).",
    ),
];

/// One day.
const MAX_BACKOFF_MS: u64 = 24 * 60 * 60 * 1000;

const HEALTH: &[SettingKey] = &[
    key(
        "start_concurrency",
        Kind::CountOrAll,
        "How many servers are started at once, or \"all\" (3).",
    ),
    key(
        "ping_interval_sec",
        Kind::Seconds,
        "How often an idle server is asked whether it is there (30).",
    ),
    key(
        "ping_timeout_sec",
        Kind::Seconds,
        "How long it may take to answer that (5).",
    ),
    key(
        "max_failures",
        Kind::Count,
        "After how many failures in a row a server is taken for dead (5).",
    ),
    key(
        "reconnect_attempts",
        Kind::Count,
        "How often it is then reconnected before the next call has to try (5).",
    ),
    key(
        "backoff_initial_ms",
        Kind::Between(1, MAX_BACKOFF_MS),
        "Milliseconds before the first attempt to reconnect (100).",
    ),
    key(
        "backoff_max_ms",
        Kind::Between(1, MAX_BACKOFF_MS),
        "The longest wait between attempts to reconnect, in milliseconds; not less than \
         `backoff_initial_ms` (10000).",
    ),
    key(
        "backoff_multiplier",
        Kind::Multiplier,
        "The factor from one of these waits to the next, at least 1 (2).",
    ),
    key(
        "list_cache_ttl_sec",
        Kind::Seconds,
        "How long a list of a server stays fresh if the server sends no `ttlMs` (300), a day at most.",
    ),
    key(
        "invalidate_on_list_changed",
        Kind::Boolean,
        "Whether a `list_changed` notification refreshes the cached list (true).",
    ),
    key(
        "idle_stop_sec",
        Kind::Seconds,
        "How long servers may idle before they are stopped, where their own entry does not say.",
    ),
    key(
        "tool_total_timeout_sec",
        Kind::Seconds,
        "How long a call may take in all, whatever progress it makes, where the entry of its server \
         does not say (3600, at a gateway 21600).",
    ),
];

const RETENTION: &[SettingKey] = &[
    key(
        "conversations_days",
        Kind::Count,
        "How many days conversations are kept. Without this, for ever.",
    ),
    key(
        "results_days",
        Kind::Count,
        "How many days results are kept that were too large to show.",
    ),
    key(
        "results_max_mb",
        Kind::Count,
        "How many megabytes of such results are kept.",
    ),
    key("logs_days", Kind::Count, "How many days logs are kept."),
    key(
        "logs_max_mb",
        Kind::Count,
        "How many megabytes the log of one server may have.",
    ),
    key(
        "audit_days",
        Kind::Count,
        "How many days entries of the audit log are kept. In files, they are removed together with the file that they are in.",
    ),
    key(
        "audit_max_mb",
        Kind::Count,
        "How many megabytes the audit log may have before it goes on in a new file.",
    ),
    key(
        "record_usage",
        Kind::Boolean,
        "Whether it is counted how often each tool is called, for `cocode mcp budget` (true). The \
         counts stay on this machine.",
    ),
];

/// The keys of `policy.toml`.
pub(crate) const POLICY: &[SettingKey] = &[
    key(
        "allowed",
        Kind::Tables(ALLOWED),
        "If this is there, even empty, only servers that one of these matches may be used.",
    ),
    key(
        "denied",
        Kind::Tables(DENIED),
        "Servers that one of these matches may never be used.",
    ),
    key(
        "allowedMcpServers",
        Kind::Tables(MCP_POLICY),
        "As `allowed`, in the spelling of Claude Code. A server has to be allowed by both lists, if both are there.",
    ),
    key(
        "deniedMcpServers",
        Kind::Tables(MCP_POLICY),
        "As `denied`, in the spelling of Claude Code. Both lists count.",
    ),
    key(
        "permissions",
        Kind::Table(POLICY_PERMISSIONS),
        "Which tools may run, for everybody. Nobody's own rules or answers weaken these.",
    ),
    key(
        "agent",
        Kind::Table(POLICY_AGENT),
        "What anybody may ask of an agent.",
    ),
    key(
        "gateway",
        Kind::Table(POLICY_GATEWAY),
        "What every gateway has to do.",
    ),
];

/// The keys of entries in the spelling of Claude Code, of which each has exactly one.
const MCP_POLICY: &[SettingKey] = &[
    key("serverName", Kind::Text, NAME.about),
    key("serverCommand", Kind::Command, COMMAND.about),
    key("serverUrl", Kind::UrlPattern, URL.about),
];

/// The keys of `[[denied]]`.
const DENIED: &[SettingKey] = &[NAME, COMMAND, URL, REASON];

/// The keys of `[[allowed]]`.
const ALLOWED: &[SettingKey] = &[
    NAME,
    COMMAND,
    URL,
    REASON,
    key(
        "allow_env",
        Kind::TextList,
        "Variables that an entry may set for this command although they can change what is run; \
         `*` matches any text. Needs `command`.",
    ),
    key(
        "cwd",
        Kind::Text,
        "The directory that an entry may start this command in; without it, none. Needs `command`.",
    ),
    key(
        "allow_helpers",
        Kind::Boolean,
        "Whether an entry may run other programs for its secrets and headers (`cmd:` and \
         `headers_helper`, `oauth.assertion_command`). Without it, not.",
    ),
];

const NAME: SettingKey = key(
    "name",
    Kind::Text,
    "The name of the server; `*` matches any text. Whoever writes an entry chooses its name.",
);
const COMMAND: SettingKey = key(
    "command",
    Kind::Command,
    "The program and all of its arguments, exactly.",
);
const URL: SettingKey = key(
    "url",
    Kind::UrlPattern,
    "The address, as in https://*.example.com/*. Scheme, host, port and path are compared apart; \
     without a path any path is meant, without a port the usual one of the scheme.",
);
const REASON: SettingKey = key(
    "reason",
    Kind::Text,
    "Why, for the people who are blocked by it.",
);

impl SettingKey {
    /// The key of this name.
    pub(crate) fn find(keys: &'static [Self], name: &str) -> Option<&'static Self> {
        keys.iter().find(|key| key.name == name)
    }
}
