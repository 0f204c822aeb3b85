//! The keys of `[gateway]`, in settings and in a policy.

use super::{Kind, SettingKey, key};
use crate::keys::SANDBOXES;
use crate::settings::gateway::{ALGORITHMS, LEEWAY_SECONDS};
use crate::settings::{AuditFailure, Metrics, Prefix};

/// The keys of `[gateway]`.
pub(super) const GATEWAY: &[SettingKey] = &[
    key(
        "listen",
        Kind::Listen,
        "The address to listen at, as in 127.0.0.1:7777.",
    ),
    key(
        "admin_listen",
        Kind::Listen,
        "The address of the management API and the dashboard, where that is to be another one than \
         `listen`. Only in your own config.toml and in that of the organization.",
    ),
    key(
        "admin_url",
        Kind::HttpUrl,
        "Where browsers find the dashboard, if a proxy is before it, as in https://gate.example.com. Its \
         cookies are then for https alone. Only in your own config.toml and in that of the organization.",
    ),
    key(
        "allow_hosts",
        Kind::Hosts,
        "Names that clients may call this machine by, besides localhost and its address, as in \
         mcp.example.com or, for this port only, mcp.example.com:7777. Only in your own config.toml and in \
         that of the organization.",
    ),
    key(
        "allow_origins",
        Kind::Origins,
        "Web pages that may use the gateway, by their origin, as in https://mcp.example.com. Only in your \
         own config.toml and in that of the organization.",
    ),
    key(
        "prefix",
        Kind::OneOf(Prefix::WORDS),
        "When tools are named mcp__SERVER__TOOL (always).",
    ),
    key(
        "tls_certificate",
        Kind::Text,
        "The file with the certificate, in PEM.",
    ),
    key("tls_key", Kind::Text, "The file with its key, in PEM."),
    key(
        "metrics",
        Kind::OneOf(Metrics::WORDS),
        "Who may read /metrics where the management API is: whoever reaches that address, or \
         administrators only, as soon as clients need a token (admin). Only in your own config.toml and in \
         that of the organization.",
    ),
    key(
        "max_sessions",
        Kind::Count,
        "How many sessions there may be at once (4096).",
    ),
    key(
        "session_idle_sec",
        Kind::Seconds,
        "How long a session may idle before it ends.",
    ),
    key(
        "idle_stop_sec",
        Kind::Seconds,
        "How long a gateway that was started by `cocode mcp serve` stays after the last one left.",
    ),
    key(
        "first_list_timeout_sec",
        Kind::Seconds,
        "How long a list waits for servers that are starting and have no cached list (2).",
    ),
    key(
        "server_sandbox",
        Kind::OneOf(SANDBOXES),
        "The sandbox of programs whose own entry has no key `sandbox` (workspace-write if clients need a \
         token when the gateway starts, else off). Only in your own config.toml and in that of the organization.",
    ),
    key(
        "store",
        Kind::Store,
        "Where sessions, conversations, tokens and the audit log are kept: \"sqlite\" (files of this \
         user, the default), \"memory\" (sessions and conversations nowhere, the rest in files), or a \
         database that several gateways share, as in \
         \"postgres://cocode:${DB_PASSWORD}@db.example.com/cocode\". Its password is a `${VAR}` or a \
         `${keyring:NAME}`; the whole may be one, too. Only in your own config.toml and in that of the \
         organization.",
    ),
    key(
        "oauth",
        Kind::Table(OAUTH),
        "Which access tokens of authorization servers let clients in. Counts as a whole, from the most \
         important file that has it: your own config.toml, or that of the organization.",
    ),
    key(
        "principals",
        Kind::Named(PRINCIPAL),
        "What those may do who come with a token, by the name of the token. Who signs in elsewhere is named \
         by what `principal_claim` says, a space, and the issuer, as in `\"ana https://login.example.com\"`. \
         `\"*\"` means those who have no table. Only in your own config.toml and in that of the organization; \
         of two with one name the organization's counts, as a whole.",
    ),
    key(
        "limits",
        Kind::Table(LIMITS),
        "How much everybody together may have done. Only in your own config.toml and in that of the \
         organization.",
    ),
    key(
        "audit",
        Kind::Table(AUDIT),
        "What is written down of calls: who called what, when, and how it ended. Only in your own \
         config.toml and in that of the organization.",
    ),
    key(
        "profiles",
        Kind::Named(PROFILE),
        "Selections of servers and settings, by a name of your choice, for `cocode gateway \
         --profile NAME`. Of two with one name the more important file's counts, as a whole.",
    ),
];

/// The keys of `[gateway.profiles.NAME]`.
const PROFILE: &[SettingKey] = &[
    key(
        "servers",
        Kind::TextList,
        "The servers that are served. Without this, all of them.",
    ),
    key(
        "prefix",
        Kind::OneOf(Prefix::WORDS),
        "When tools are named mcp__SERVER__TOOL, whatever [gateway] says.",
    ),
    key(
        "listen",
        Kind::Listen,
        "The address to listen at, whatever [gateway] says.",
    ),
    key(
        "tool_search",
        Kind::SearchMode,
        "Whether clients search for tools, whatever [tool_search] says: true, false, \"auto\" or \
         \"auto:N\".",
    ),
    key(
        "context_window",
        Kind::Count,
        "How many tokens the models of clients see that do not say it themselves.",
    ),
];

/// The keys of `[gateway.oauth]`.
const OAUTH: &[SettingKey] = &[
    key(
        "issuers",
        Kind::Issuers,
        "The authorization servers whose tokens let clients in, to the letter of what the tokens say.",
    ),
    key(
        "resource",
        Kind::HttpUrl,
        "The address that clients know this gateway by, as in https://mcp.example.com/mcp. Tokens have \
         to be made for it, unless there are `audiences`.",
    ),
    key(
        "audiences",
        Kind::Words,
        "What tokens have to be made for, where the authorization server does not write `resource` into them.",
    ),
    key(
        "jwks_uri",
        Kind::SafeUrl,
        "Where the keys of the one issuer are. Without it, where its metadata says.",
    ),
    key(
        "algorithms",
        Kind::SomeOf(ALGORITHMS),
        "The algorithms that tokens may be signed with. Without it, all that are named here.",
    ),
    key(
        "principal_claim",
        Kind::Word,
        "The claim that names who it is (sub).",
    ),
    key(
        "required_scopes",
        Kind::Words,
        "Scopes that a token must have to be let in.",
    ),
    key(
        "admin_scope",
        Kind::Word,
        "The scope that lets its owner use the management API. Without it, no token of an \
         authorization server does, except by `admin` of its principal.",
    ),
    key(
        "leeway_sec",
        Kind::Between(0, LEEWAY_SECONDS),
        "By how many seconds the clocks may differ (60).",
    ),
];

/// The keys of `[gateway.principals.NAME]`.
const PRINCIPAL: &[SettingKey] = &[
    key(
        "servers",
        Kind::TextList,
        "The servers that they see. Without this, all of them.",
    ),
    key(
        "allow",
        Kind::Rules,
        "The tools that they may use, and no others but those under `ask`. Never more than \
         [permissions] allows.",
    ),
    key(
        "ask",
        Kind::Rules,
        "Tools that they may use if a person agrees.",
    ),
    key("deny", Kind::Rules, "Tools that do not exist for them."),
    CALLS_PER_MINUTE,
    MAX_CONCURRENT,
    key(
        "max_sessions",
        Kind::Count,
        "How many sessions, WebSockets and listening streams they may have open at a time (256).",
    ),
    key(
        "admin",
        Kind::Boolean,
        "Whether they may use the management API. Without this, as their token says.",
    ),
];

/// The keys of `[gateway.limits]`.
const LIMITS: &[SettingKey] = &[
    CALLS_PER_MINUTE,
    MAX_CONCURRENT,
    key(
        "servers",
        Kind::Named(SERVER_LIMITS),
        "The same for one server, by its name.",
    ),
];

/// The keys of `[gateway.limits.servers.NAME]`.
const SERVER_LIMITS: &[SettingKey] = &[CALLS_PER_MINUTE, MAX_CONCURRENT];

const CALLS_PER_MINUTE: SettingKey = key(
    "calls_per_minute",
    Kind::Count,
    "How many calls may be begun in a minute. Without this, any number.",
);
const MAX_CONCURRENT: SettingKey = key(
    "max_concurrent",
    Kind::Count,
    "How many calls may be under way at a time. Without this, any number.",
);

/// The keys of `[gateway.audit]`.
const AUDIT: &[SettingKey] = &[
    key(
        "enabled",
        Kind::Boolean,
        "Whether calls are written down. Without this, they are where clients have to say who they are.",
    ),
    key(
        "directory",
        Kind::Text,
        "Where the files are: absolute, beginning with `~/`, or beside this file. Without it, among what \
         cocode keeps for itself.",
    ),
    key(
        "arguments",
        Kind::Boolean,
        "Whether the arguments of calls are written down, too, which may hold secrets (false).",
    ),
    key(
        "max_file_mb",
        Kind::Count,
        "How many megabytes a file may have before the log goes on in the next one. Without it, as \
         `retention.audit_max_mb` (64).",
    ),
    key(
        "keep_files",
        Kind::Count,
        "How many full files are kept; the oldest go first (16).",
    ),
    key(
        "on_failure",
        Kind::OneOf(AuditFailure::WORDS),
        "What happens to a call that cannot be written down: it is refused, or made all the same (refuse).",
    ),
];

/// The keys of `[gateway]` in a policy.
pub(crate) const POLICY_GATEWAY: &[SettingKey] = &[key(
    "require_authentication",
    Kind::Boolean,
    "Whether clients of every gateway have to say who they are, on this machine as well: one that cannot \
     know does not start.",
)];
