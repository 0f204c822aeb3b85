//! Settings that belong to no single server: `config.toml` of every scope, and how the scopes come
//! together.
//!
//! For each key the most important file that has it counts. Providers and models count as a whole,
//! so that nobody's key goes to another's address. Permissions are united. A file that comes with a
//! work tree and is not approved can only make things stricter: of it count deny and ask rules, a
//! stricter default, what makes agents stricter, and nothing else. Remembered answers count in the user's own file alone.
//! Who may connect to a gateway, what they may do there and what is written down of it is never said by a file of a work tree.

mod agent;
mod gateway;
mod keys;
mod merge;
mod parse;
mod permissions;
mod reader;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cocode_core::ToolSearchMode;

use crate::problem::Origin;

pub use agent::{AgentBounds, AgentProfile, AgentSettings};
pub use gateway::{
    AuditSettings, GatewayOAuth, GatewayProfile, GatewaySettings, GatewayStore, LimitSettings,
    OTHERS, PrincipalSettings, ServerLimits,
};
pub(crate) use gateway::{STORES, is_about_access, is_owners_alone};
pub(crate) use keys::{
    ANSWERS, POLICY, POLICY_AGENT, POLICY_GATEWAY, POLICY_PERMISSIONS, RULE, SCHEMA_KEY, SECTIONS,
    SETTINGS, SettingKey, SettingKind,
};
pub use merge::merge_settings;
pub(crate) use parse::told_of_organization;
pub use parse::{RawSettings, SettingsFile, read_settings, settings_of_text};
pub use permissions::{Permissions, remembered_path};
pub(crate) use permissions::{RawPermissions, permissions};
pub(crate) use reader::{Given, Reader};

/// A request is not made again more often than this.
const MAX_RETRIES: u64 = 20;

/// The settings of one file, and what the file may decide.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsLayer {
    /// The name of its scope, for people.
    pub scope: &'static str,
    /// What it may decide.
    pub trust: LayerTrust,
    /// What it says.
    pub settings: RawSettings,
}

/// What a file may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerTrust {
    /// Everything but answers, and its rules are the organization's.
    Organization,
    /// Everything: it is the user's own.
    Own,
    /// Everything but answers and who may connect to a gateway: it came with a work tree, and the user
    /// approved it.
    Approved,
    /// What makes things stricter: it came with a work tree.
    Unapproved,
}

/// Where a setting is written, and in which scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingOrigin {
    /// The name of the scope.
    pub scope: &'static str,
    /// The file and line.
    pub origin: Origin,
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it is written; nothing if nobody wrote it.
    pub from: Option<SettingOrigin>,
}

/// All settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where credentials are kept.
    pub credential_store: Setting<CredentialStore>,
    /// How to sign in at servers whose entries do not say otherwise.
    pub oauth: OAuthSettings,
    /// The provider to use where none is named.
    pub provider: Option<Setting<String>>,
    /// The model to use where none is named.
    pub model: Option<Setting<String>>,
    /// Which tools may run.
    pub permissions: Permissions,
    /// When models search for tools.
    pub tool_search: ToolSearchSettings,
    /// Where models are reached, by name.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// What models can do, by name.
    pub models: BTreeMap<String, ModelSettings>,
    /// What agents may do, before the organization bounds it: see
    /// [`Config::agent`](crate::Config::agent).
    pub agent: AgentSettings,
    /// How the gateway serves.
    pub gateway: GatewaySettings,
    /// How servers are watched.
    pub health: HealthSettings,
    /// What is kept.
    pub retention: RetentionSettings,
}

/// `[oauth]`: what holds where the entry of a server does not say otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OAuthSettings {
    /// The https URL of a document that describes this client, which is then its ID.
    pub client_metadata_url: Option<Setting<String>>,
    /// The port of the callback; without it, any that is free.
    pub callback_port: Option<Setting<u16>>,
}

/// `[tool_search]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSearchSettings {
    /// Whether models search.
    pub mode: Setting<ToolSearchMode>,
    /// Percent of the context window from which on [`ToolSearchMode::Auto`] means search.
    pub threshold_percent: Setting<f64>,
    /// Tokens of the smallest context window with which models search.
    pub min_context_window: Setting<u64>,
    /// Whether changed tools make the decision anew.
    pub on_list_changed: Setting<bool>,
}

/// `[providers.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderSettings {
    /// Where the entry begins.
    pub from: SettingOrigin,
    /// What it speaks.
    pub kind: ProviderKind,
    /// Its address.
    pub base_url: Option<String>,
    /// The model to use where none is named.
    pub model: Option<String>,
    /// The variable with the key.
    pub api_key_env: Option<String>,
    /// A reference to the key: `keyring:NAME`, `cmd:LINE` or `${VAR}`.
    pub api_key: Option<String>,
    /// How often a request is made again that failed for a reason that may pass.
    pub max_retries: Option<u64>,
}

/// `[models.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// Where the entry begins.
    pub from: SettingOrigin,
    /// The provider that has it.
    pub provider: Option<String>,
    /// Tokens it can see at once.
    pub context_window: Option<u64>,
    /// Tokens it can write at once.
    pub max_output_tokens: Option<u64>,
    /// Whether it can see images.
    pub vision: Option<bool>,
    /// Whether it can call tools.
    pub tools: Option<bool>,
    /// US dollars for a million tokens that it reads.
    pub input_price: Option<f64>,
    /// US dollars for a million tokens that it writes.
    pub output_price: Option<f64>,
    /// US dollars for a million tokens that it reads from a cache; as `input_price`, if not given.
    pub cache_read_price: Option<f64>,
    /// US dollars for a million tokens that it puts into a cache; as `input_price`, if not given.
    pub cache_write_price: Option<f64>,
}

/// `[health]`.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthSettings {
    /// Servers started at once.
    pub start_concurrency: Setting<StartConcurrency>,
    /// How often an idle server is asked.
    pub ping_interval: Setting<Duration>,
    /// How long the answer may take.
    pub ping_timeout: Setting<Duration>,
    /// Failures in a row that mean dead.
    pub max_failures: Setting<u64>,
    /// Attempts to reconnect.
    pub reconnect_attempts: Setting<u64>,
    /// Wait before the first attempt to reconnect.
    pub backoff_initial: Setting<Duration>,
    /// Longest wait between attempts to reconnect.
    pub backoff_max: Setting<Duration>,
    /// Factor from one wait to the next.
    pub backoff_multiplier: Setting<f64>,
    /// TTL of lists whose server sends none.
    pub list_cache_ttl: Setting<Duration>,
    /// Whether `list_changed` notifications refresh cached lists.
    pub invalidate_on_list_changed: Setting<bool>,
    /// When idle servers are stopped.
    pub idle_stop: Option<Setting<Duration>>,
    /// Total timeout of a call.
    pub tool_total_timeout: Option<Setting<Duration>>,
}

/// `[retention]`: what is not given is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetentionSettings {
    /// Days of conversations.
    pub conversations_days: Option<Setting<u64>>,
    /// Days of results too large to show.
    pub results_days: Option<Setting<u64>>,
    /// Megabytes of such results.
    pub results_max_mb: Option<Setting<u64>>,
    /// Days of logs.
    pub logs_days: Option<Setting<u64>>,
    /// Megabytes of the log of one server.
    pub logs_max_mb: Option<Setting<u64>>,
    /// Days of the audit log.
    pub audit_days: Option<Setting<u64>>,
    /// Megabytes of one file of the audit log.
    pub audit_max_mb: Option<Setting<u64>>,
    /// Whether calls of tools are counted; they are, if not given.
    pub record_usage: Option<Setting<bool>>,
}

/// How many servers are started at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartConcurrency {
    /// So many.
    AtMost(u64),
    /// All of them.
    All,
}

/// An enum whose variants are words in files.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$variant_about:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_about])* $variant,)*
        }

        impl $name {
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word in files.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            pub(crate) fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// Where credentials are kept.
    CredentialStore {
        /// The keyring if there is one, else the file.
        Auto = "auto",
        /// The keyring of the system.
        Keyring = "keyring",
        /// A file that only the user can read.
        File = "file",
    }
}

words! {
    /// What a provider of models speaks.
    ProviderKind {
        /// Messages, as Anthropic has them.
        Anthropic = "anthropic",
        /// Responses, as `OpenAI` has them.
        OpenAi = "openai",
        /// Chat completions, as many have them.
        OpenAiCompatible = "openai-compatible",
        /// The model of the client that called cocode.
        Sampling = "sampling",
    }
}

words! {
    /// When the gateway names tools `mcp__SERVER__TOOL`.
    Prefix {
        /// Always.
        Always = "always",
        /// Where two servers have a tool of the same name.
        OnConflict = "on-conflict",
        /// Never.
        Never = "never",
    }
}

words! {
    /// Who may read the metrics of a gateway where it is looked after.
    Metrics {
        /// Whoever reaches that address.
        Open = "open",
        /// Administrators, as soon as clients have to say who they are.
        Admin = "admin",
    }
}

words! {
    /// What happens to a call that cannot be written down.
    AuditFailure {
        /// It is refused.
        Refuse = "refuse",
        /// It is made all the same.
        Continue = "continue",
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.origin, self.scope)
    }
}
