//! `[gateway]`: where it listens, who may connect, what they may do there, and what is written down.
//!
//! Who may connect is decided by whose gateway it is: the user or the organization. What a work tree
//! says about that does not count, approved or not, and is reported. And what cannot be understood of
//! it opens nothing: a principal whose table is broken may do nothing until it is mended.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cocode_core::{Authority, Rule, RuleEntry, RuleSet, Sandbox, ToolSearchMode, Verdict, nearest};

use super::{AuditFailure, Metrics, Prefix, Setting, SettingOrigin};
use crate::problem::Problem;

/// The algorithms that tokens may be signed with: no secret shared with whoever verifies, and not none.
pub(crate) const ALGORITHMS: &[&str] = &[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];
/// The most by which clocks may differ.
pub(crate) const LEEWAY_SECONDS: u64 = 300;
/// By how much clocks may differ where nobody says otherwise.
pub(super) const DEFAULT_LEEWAY: Duration = Duration::from_mins(1);
/// The claim that names who it is where nobody says otherwise.
pub(super) const DEFAULT_CLAIM: &str = "sub";

/// How many sessions a principal may have where nobody says otherwise: far less than all of a gateway.
pub(crate) const DEFAULT_MAX_SESSIONS: u64 = 256;

/// Default wait of a list for servers without a cached list.
pub(super) const DEFAULT_FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// The stores that need no address.
pub(crate) const STORES: &[&str] = &["sqlite", "memory"];

/// The principal that means those who have no table of their own.
pub const OTHERS: &str = "*";

/// The tables of `[gateway]` that belong to its owner.
const OWNERS_TABLES: [&str; 4] = [
    "gateway.oauth",
    "gateway.principals",
    "gateway.limits",
    "gateway.audit",
];
/// The values of `[gateway]` that belong to its owner.
const OWNERS_VALUES: [&str; 7] = [
    "gateway.admin_listen",
    "gateway.admin_url",
    "gateway.allow_hosts",
    "gateway.allow_origins",
    "gateway.metrics",
    "gateway.server_sandbox",
    "gateway.store",
];

/// Keys of `[gateway]` that open nothing if they are not understood. What is wrong with `listen` is
/// looked at where it is used.
const HARMLESS: [&str; 7] = [
    "gateway.listen",
    "gateway.prefix",
    "gateway.max_sessions",
    "gateway.session_idle_sec",
    "gateway.idle_stop_sec",
    "gateway.first_list_timeout_sec",
    "gateway.profiles",
];

/// `[gateway]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySettings {
    /// The address to listen at.
    pub listen: Option<Setting<String>>,
    /// The address of the management API, where that is another one.
    pub admin_listen: Option<Setting<String>>,
    /// Where browsers find the dashboard, if a proxy is before it.
    pub admin_url: Option<Setting<String>>,
    /// Names that clients may call this machine by, besides its own.
    pub allow_hosts: Setting<Vec<String>>,
    /// Origins of web pages that may use the gateway.
    pub allow_origins: Setting<Vec<String>>,
    /// When tools have prefixes.
    pub prefix: Setting<Prefix>,
    /// The file with the certificate.
    pub tls_certificate: Option<Setting<String>>,
    /// The file with its key.
    pub tls_key: Option<Setting<String>>,
    /// Who may read the metrics.
    pub metrics: Setting<Metrics>,
    /// Sessions at once.
    pub max_sessions: Option<Setting<u64>>,
    /// How long a session may idle.
    pub session_idle: Option<Setting<Duration>>,
    /// How long a shared gateway stays without anybody.
    pub idle_stop: Option<Setting<Duration>>,
    /// Wait of a list for starting servers without a cached list.
    pub first_list_timeout: Setting<Duration>,
    /// The sandbox of programs whose entry says nothing about it.
    pub server_sandbox: Option<Setting<Sandbox>>,
    /// Where everything is kept that outlives a request.
    pub store: Setting<GatewayStore>,
    /// Which tokens of authorization servers let clients in; none, if not given.
    pub oauth: Option<GatewayOAuth>,
    /// What those may do who connect, by name. See [`Self::principal`].
    pub principals: BTreeMap<String, PrincipalSettings>,
    /// How much everybody together may have done.
    pub limits: LimitSettings,
    /// What is written down.
    pub audit: AuditSettings,
    /// Selections of servers and settings, by name.
    pub profiles: BTreeMap<String, GatewayProfile>,
}

/// `[gateway.profiles.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayProfile {
    /// Where the entry begins.
    pub from: SettingOrigin,
    /// The servers that are served; all, if not given.
    pub servers: Option<Vec<String>>,
    /// When tools have prefixes.
    pub prefix: Option<Prefix>,
    /// The address to listen at.
    pub listen: Option<String>,
    /// Whether clients search for tools.
    pub tool_search: Option<ToolSearchMode>,
    /// Tokens that the models of clients see that do not say it.
    pub context_window: Option<u64>,
}

/// Where a gateway keeps what outlives a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayStore {
    /// In files of this user.
    Sqlite,
    /// Sessions and conversations nowhere but in its own memory; tokens and the audit log in files.
    Memory,
    /// In a `PostgreSQL` database that several gateways may share. The address as it is written: with
    /// `${VAR}`, `keyring:` or `cmd:` in the place of what is secret.
    Postgres(String),
}

/// `[gateway.oauth]`, of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayOAuth {
    /// The authorization servers whose tokens count. At least one.
    pub issuers: Setting<Vec<String>>,
    /// The address of the gateway, as its clients know it.
    pub resource: Setting<String>,
    /// What tokens are made for, if not for that address.
    pub audiences: Setting<Vec<String>>,
    /// Where the keys of the only issuer are, if not where its metadata says.
    pub jwks_uri: Option<Setting<String>>,
    /// The algorithms that tokens may be signed with.
    pub algorithms: Setting<Vec<String>>,
    /// The claim that names who it is.
    pub principal_claim: Setting<String>,
    /// Scopes without which nobody is let in.
    pub required_scopes: Setting<Vec<String>>,
    /// The scope that lets its owner manage the gateway.
    pub admin_scope: Option<Setting<String>>,
    /// By how much clocks may differ.
    pub leeway: Setting<Duration>,
}

/// `[gateway.principals.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PrincipalSettings {
    /// Where the entry begins.
    pub from: SettingOrigin,
    /// Whether it cannot be understood, so that they may do nothing.
    pub is_broken: bool,
    /// The servers that they see; all, if not given.
    pub servers: Option<Vec<String>>,
    /// The tools that they may use; all that the rules for everybody allow, if not given.
    pub allow: Option<Vec<(Rule, SettingOrigin)>>,
    /// The tools that are asked about.
    pub ask: Vec<(Rule, SettingOrigin)>,
    /// The tools that do not exist for them.
    pub deny: Vec<(Rule, SettingOrigin)>,
    /// Calls that they may begin in a minute.
    pub calls_per_minute: Option<u64>,
    /// Calls that they may have under way.
    pub max_concurrent: Option<u64>,
    /// Sessions, `WebSockets` and listening streams that they may have open; see
    /// [`GatewaySettings::max_sessions_of`].
    pub max_sessions: Option<u64>,
    /// Whether they may manage the gateway; if not given, what their token says.
    pub admin: Option<bool>,
}

/// `[gateway.limits]`: for everybody together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitSettings {
    /// Calls that may be begun in a minute.
    pub calls_per_minute: Option<Setting<u64>>,
    /// Calls that may be under way.
    pub max_concurrent: Option<Setting<u64>>,
    /// The same for single servers, by name.
    pub servers: BTreeMap<String, ServerLimits>,
}

/// `[gateway.limits.servers.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerLimits {
    /// Where the entry begins.
    pub from: SettingOrigin,
    /// Calls that may be begun in a minute.
    pub calls_per_minute: Option<u64>,
    /// Calls that may be under way.
    pub max_concurrent: Option<u64>,
}

/// `[gateway.audit]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditSettings {
    /// Whether calls are written down. See [`Self::is_enabled`].
    pub enabled: Option<Setting<bool>>,
    /// Where, as it is written. See [`Self::directory_in`].
    pub directory: Option<Setting<String>>,
    /// Whether arguments are written down, too.
    pub arguments: Setting<bool>,
    /// Megabytes of one file.
    pub max_file_mb: Option<Setting<u64>>,
    /// How many full files are kept.
    pub keep_files: Option<Setting<u64>>,
    /// What happens to a call that cannot be written down.
    pub on_failure: Setting<AuditFailure>,
}

impl GatewaySettings {
    /// What somebody may do: by their own table, or by that of all who have none. Without either, what
    /// the rules for everybody allow.
    ///
    /// Who has a token is known by its name. Who signs in elsewhere is known by the name that they have
    /// there, a space, and the issuer: `ana https://login.example.com`. If there is only a table for a token
    /// that is called as they are, nobody knows whether it is meant for them, and they may do nothing: see
    /// [`Self::unclear_for`].
    pub fn principal(&self, id: &str) -> Option<Cow<'_, PrincipalSettings>> {
        if let Some(unclear) = self.unclear_for(id) {
            let nothing = PrincipalSettings::broken(unclear.from.clone());
            return Some(Cow::Owned(nothing));
        }
        let own = self.principals.get(id);
        own.or_else(|| self.principals.get(OTHERS))
            .map(Cow::Borrowed)
    }

    /// The table of a token that is called as somebody who signs in elsewhere and has no table of their own.
    pub fn unclear_for(&self, id: &str) -> Option<&PrincipalSettings> {
        let (name, _issuer) = id.split_once(' ')?;
        match self.principals.get(id) {
            Some(_) => None,
            None => self.principals.get(name),
        }
    }

    /// How many sessions, `WebSockets` and listening streams somebody may have open.
    pub fn max_sessions_of(&self, name: &str) -> u64 {
        let own = self.principal(name);
        own.and_then(|own| own.max_sessions)
            .unwrap_or(DEFAULT_MAX_SESSIONS)
    }
}

impl PrincipalSettings {
    /// Whether they see this server.
    pub fn may_use(&self, server: &str) -> bool {
        let names = |servers: &Vec<String>| servers.iter().any(|name| name == server);
        !self.is_broken && self.servers.as_ref().is_none_or(names)
    }

    /// Their own rules for the tools of a server. They only take away, beside the rules for everybody:
    /// see [`Config::rules_of`](crate::Config::rules_of).
    pub fn rules_for(&self, server: &str) -> RuleSet<SettingOrigin> {
        let mut rules = RuleSet::new();
        let authority = Authority::User;
        if !self.may_use(server) {
            rules.push(RuleEntry {
                kind: Verdict::Deny,
                authority,
                rule: Rule::everything(),
                origin: self.from.clone(),
            });
            return rules;
        }
        let allowed = self.allow.iter().flatten();
        let kinds = [
            (Verdict::Allow, allowed.collect::<Vec<_>>()),
            (Verdict::Ask, self.ask.iter().collect()),
            (Verdict::Deny, self.deny.iter().collect()),
        ];
        for (kind, entries) in kinds {
            rules.extend(entries.into_iter().map(|(rule, origin)| RuleEntry {
                kind,
                authority,
                rule: rule.clone(),
                origin: origin.clone(),
            }));
        }
        // A list of what is allowed says of everything else that it is not.
        if self.allow.is_some() {
            rules.set_default(Verdict::Deny, authority, self.from.clone());
        }
        rules
    }

    /// The table of somebody that cannot be understood.
    pub(super) fn broken(from: SettingOrigin) -> Self {
        Self {
            from,
            is_broken: true,
            servers: None,
            allow: None,
            ask: Vec::new(),
            deny: Vec::new(),
            calls_per_minute: None,
            max_concurrent: None,
            max_sessions: None,
            admin: Some(false),
        }
    }
}

impl AuditSettings {
    /// Whether calls are written down. Where nobody says, they are if clients have to say who they are:
    /// then there is somebody to hold to account.
    pub fn is_enabled(&self, is_authenticated: bool) -> bool {
        let said = self.enabled.as_ref();
        said.map_or(is_authenticated, |setting| setting.value)
    }

    /// Where the files are, for a user with this home, of whom cocode keeps things in `state`. A
    /// relative path means a place beside the file that names it.
    pub fn directory_in(&self, home: Option<&Path>, state: &Path) -> PathBuf {
        let Some(Setting { value, from }) = &self.directory else {
            return state.join("audit");
        };
        if let (Some(rest), Some(home)) = (value.strip_prefix("~/"), home) {
            return home.join(rest);
        }
        let beside = from.as_ref().and_then(|from| from.origin.file.parent());
        beside.map_or_else(|| PathBuf::from(value), |beside| beside.join(value))
    }
}

impl GatewayOAuth {
    /// What is wrong with it as a whole, in one sentence without its full stop, at which key, and what
    /// to do.
    pub(super) fn objection(
        issuers: Option<&Setting<Vec<String>>>,
        has_resource: bool,
        has_keys: bool,
    ) -> Option<(&'static str, &'static str, &'static str)> {
        match issuers.map(|issuers| issuers.value.len()) {
            None => Some((
                "gateway.oauth",
                "it has no `issuers`, so no token would be believed",
                "name the authorization server, as in issuers = [\"https://login.example.com\"]",
            )),
            Some(_) if !has_resource => Some((
                "gateway.oauth",
                "it has no `resource`, so tokens that were made for others would be let in",
                "write the address of this gateway, as in resource = \"https://mcp.example.com/mcp\"",
            )),
            Some(issuers) if issuers > 1 && has_keys => Some((
                "gateway.oauth.jwks_uri",
                "it names the keys of one issuer, but there are several",
                "leave it out: the metadata of each issuer says where its keys are",
            )),
            Some(_) => None,
        }
    }
}

/// Whether only the owner of a gateway may say this: the user, or the organization.
pub(crate) fn is_owners_alone(path: &str) -> bool {
    OWNERS_VALUES.contains(&path) || OWNERS_TABLES.iter().any(|table| is_of(path, table))
}

/// Whether what is wrong may have been meant to keep somebody out of a gateway, or to watch them.
pub(crate) fn is_about_access(problem: &Problem) -> bool {
    if !problem.is_error() {
        return false;
    }
    // Without a key, nothing of the file is known.
    let Some(key) = &problem.key else {
        return true;
    };
    let table = key.split(['.', '[']).next().unwrap_or_default();
    if table != "gateway" {
        return !super::SECTIONS.contains(&table) && !nearest(table, ["gateway"]).is_empty();
    }
    !HARMLESS.iter().any(|harmless| is_of(key, harmless))
}

/// Whether a path is that of a table or list, or leads below it.
fn is_of(path: &str, table: &str) -> bool {
    let rest = path.strip_prefix(table);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
#[path = "gateway_tests.rs"]
mod tests;
