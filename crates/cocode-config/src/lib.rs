//! Configuration of cocode, the MCP runtime: files in, server specifications with their origin out.
//!
//! Never spawns, never connects, never reads the environment: places and variables are given.

mod config;
mod difference;
mod document;
mod edit;
mod entry;
mod expand;
mod foreign;
mod keys;
mod layers;
mod live;
mod lock;
mod parse;
mod plugins;
mod policy;
mod problem;
mod read;
mod schema;
mod scope;
mod settings;
mod settings_files;
mod sign_in_url;
mod specify;
mod trust;
mod url_pattern;
mod watch;

pub use config::{
    Candidate, Config, FileReport, Kept, KeptPart, Loss, PluginRoot, Server, State, check_entry,
};
pub use difference::{Difference, KeyChange, Shown};
pub use document::Format;
pub use edit::{
    EditError, Edited, IfExists, OverrideKey, RuleText, SettingValue, add_plugin, add_rule,
    add_server, forget, remember, remove_plugin, remove_rule, remove_server, set_enabled,
    set_override, set_plugin_enabled, set_value, unset_value,
};
pub use entry::{Entry, EntryLine, OAuthEntry, Seconds, Text, Transport, visible};
pub use expand::{
    ExpandError, MAX_EXPANDED_BYTES, Variables, expand_plain, expand_secret, is_variable_name,
    variables_of,
};
pub use foreign::{
    Change, Foreign, ForeignServer, HomePlaces, MAX_FOREIGN_BYTES, Place, PlaceScope, Tool,
    UnknownTool, Written, read_foreign, write_foreign,
};
pub use layers::Override;
pub use live::{ChangeKind, Gone, Live, Reload, ServerChange};
pub use lock::{
    EditContext, LOCK_WAIT, LockError, PRIVATE_MODE, WriteError, with_lock, write_atomically,
};
pub use parse::{Found, MAX_SERVERS_PER_FILE, entry_from_json};
pub use plugins::{MAX_PLUGINS, PLUGIN_ROOT_VARIABLES, Plugin, plugin_files, read_plugin};
pub use policy::{POLICY_SCOPE, Policy, PolicyVerdict};
pub use problem::{Origin, Problem, Severity};
pub use read::MAX_FILE_BYTES;
pub use schema::{SchemaKind, schema};
pub use scope::{LOCAL_FILE, PROJECT_FILES, Places, Scope, format_of};
pub use settings::{
    AgentBounds, AgentProfile, AgentSettings, AuditFailure, AuditSettings, CredentialStore,
    GatewayOAuth, GatewayProfile, GatewaySettings, GatewayStore, HealthSettings, LayerTrust,
    LimitSettings, Metrics, ModelSettings, OAuthSettings, OTHERS, Permissions, Prefix,
    PrincipalSettings, ProviderKind, ProviderSettings, RawSettings, RetentionSettings,
    ServerLimits, Setting, SettingOrigin, Settings, SettingsFile, SettingsLayer, StartConcurrency,
    ToolSearchSettings, merge_settings, read_settings, remembered_path, settings_of_text,
};
pub use settings_files::PendingSettings;
pub use trust::{
    Approval, MAX_TRUST_BYTES, Trust, TrustContent, TrustDecision, TrustError, TrustItem,
    TrustStore,
};
pub use url_pattern::{InvalidUrlPattern, MAX_URL_PATTERN_BYTES, UrlPattern};
pub use watch::{WatchError, Watcher};
