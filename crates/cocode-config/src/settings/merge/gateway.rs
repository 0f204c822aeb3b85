//! `[gateway]` of all files: what a work tree may not say, and what counts as a whole.

use std::collections::BTreeMap;

use cocode_core::Rule;

use super::{Values, boolean, count, duration, search_mode, texts, value, word};
use crate::problem::{Origin, Problem};
use crate::settings::gateway::{
    ALGORITHMS, DEFAULT_CLAIM, DEFAULT_FIRST_LIST_TIMEOUT, DEFAULT_LEEWAY,
};
use crate::settings::parse::{PRINCIPALS, RawSettings};
use crate::settings::reader::Given;
use crate::settings::{
    AuditFailure, AuditSettings, GatewayOAuth, GatewayProfile, GatewaySettings, GatewayStore,
    LayerTrust, LimitSettings, Metrics, Prefix, PrincipalSettings, ServerLimits, SettingOrigin,
    SettingsLayer, is_owners_alone,
};
use crate::specify::sandbox_of;

const OAUTH: &str = "gateway.oauth.";

/// What a file of a work tree says and only the owner of a gateway may say.
pub(super) fn not_theirs(settings: &RawSettings) -> Vec<Problem> {
    let values = settings.values.iter();
    let values = values.map(|(path, (_, origin))| (path.clone(), origin));
    let entries = settings.named.iter();
    let entries = entries.map(|((table, name), entry)| (format!("{table}.{name}"), &entry.origin));
    let mut found: Vec<(&Origin, String)> = values
        .chain(entries)
        .filter(|(path, _)| is_owners_alone(path))
        .map(|(path, origin)| (origin, path))
        .collect();
    found.sort_unstable();
    let message = "a file of a work tree cannot say who may use a gateway, nor how they are watched: \
                   this does not count";
    let hint = "write it into your own config.toml";
    let found = found.into_iter();
    found
        .map(|(origin, path)| Problem::error(origin.clone(), message).key(path).hint(hint))
        .collect()
}

/// Whether this is of `[gateway.oauth]`, which counts as a whole.
pub(super) fn is_oauth(path: &str) -> bool {
    path.starts_with(OAUTH)
}

/// What those may do who connect: of each name the table of the most important file. Whose table cannot
/// be understood may do nothing.
pub(super) fn principals(layers: &[SettingsLayer]) -> BTreeMap<String, PrincipalSettings> {
    let owners = layers
        .iter()
        .filter(|layer| matches!(layer.trust, LayerTrust::Organization | LayerTrust::Own));
    let mut principals = BTreeMap::new();
    // The least important first, so that the most important has the last word.
    for SettingsLayer {
        scope, settings, ..
    } in owners.rev()
    {
        let is_meant = |table: &str| table == PRINCIPALS;
        let broken = settings.broken.iter();
        for ((_, name), origin) in broken.filter(|((table, _), _)| is_meant(table)) {
            let from = SettingOrigin::new(scope, origin);
            principals.insert(name.clone(), PrincipalSettings::broken(from));
        }
        let good = settings.named.iter();
        for ((_, name), entry) in good.filter(|((table, _), _)| is_meant(table)) {
            let from = SettingOrigin::new(scope, &entry.origin);
            let principal = Values::of_entry(entry, scope).principal(from);
            principals.insert(name.clone(), principal);
        }
    }
    principals
}

/// Tables of people who sign in where nobody is asked to: whoever was meant would be judged by another.
pub(super) fn of_nobody(gateway: &GatewaySettings) -> Vec<Problem> {
    let oauth = gateway.oauth.as_ref();
    let issuers = oauth.map(|oauth| oauth.issuers.value.as_slice());
    let issuers = issuers.unwrap_or_default();
    let tables = gateway.principals.iter();
    let tables = tables.filter_map(|(id, table)| {
        let (_, issuer) = id.split_once(' ')?;
        if table.is_broken || issuers.iter().any(|known| known == issuer) {
            return None;
        }
        let message = format!("`{issuer}` is not among the `issuers` of [gateway.oauth]");
        let problem = Problem::error(table.from.origin.clone(), message);
        let problem = problem.key(format!("{PRINCIPALS}.{id}"));
        Some(problem.hint("write the issuer to the letter as it stands there"))
    });
    tables.collect()
}

impl Values<'_> {
    pub(super) fn gateway(&self) -> GatewaySettings {
        GatewaySettings {
            listen: self.text("gateway.listen"),
            admin_listen: self.text("gateway.admin_listen"),
            admin_url: self.text("gateway.admin_url"),
            allow_hosts: self.or("gateway.allow_hosts", Vec::new(), texts),
            allow_origins: self.or("gateway.allow_origins", Vec::new(), texts),
            prefix: self.or("gateway.prefix", Prefix::Always, |given| {
                Prefix::from_word(word(given)?)
            }),
            tls_certificate: self.text("gateway.tls_certificate"),
            tls_key: self.text("gateway.tls_key"),
            metrics: self.or("gateway.metrics", Metrics::Admin, |given| {
                Metrics::from_word(word(given)?)
            }),
            max_sessions: self.count("gateway.max_sessions"),
            session_idle: self.get("gateway.session_idle_sec", duration),
            idle_stop: self.get("gateway.idle_stop_sec", duration),
            first_list_timeout: self.or(
                "gateway.first_list_timeout_sec",
                DEFAULT_FIRST_LIST_TIMEOUT,
                duration,
            ),
            server_sandbox: self.get("gateway.server_sandbox", |given| {
                word(given).map(sandbox_of)
            }),
            store: self.or("gateway.store", GatewayStore::Sqlite, |given| match given {
                Given::Store(store) => Some(store.clone()),
                _ => None,
            }),
            oauth: self.oauth(),
            principals: BTreeMap::new(),
            limits: LimitSettings {
                calls_per_minute: self.count("gateway.limits.calls_per_minute"),
                max_concurrent: self.count("gateway.limits.max_concurrent"),
                servers: BTreeMap::new(),
            },
            audit: self.audit(),
            profiles: BTreeMap::new(),
        }
    }

    /// Nothing, if it cannot be used as a whole.
    fn oauth(&self) -> Option<GatewayOAuth> {
        if self.oauth_problem().is_some() {
            return None;
        }
        let of = |key: &str| format!("{OAUTH}{key}");
        let all = ALGORITHMS.iter().map(|name| (*name).to_owned()).collect();
        Some(GatewayOAuth {
            issuers: self.get(&of("issuers"), texts)?,
            resource: self.text(&of("resource"))?,
            audiences: self.or(&of("audiences"), Vec::new(), texts),
            jwks_uri: self.text(&of("jwks_uri")),
            algorithms: self.or(&of("algorithms"), all, texts),
            principal_claim: self.or(&of("principal_claim"), DEFAULT_CLAIM.to_owned(), |given| {
                word(given).map(str::to_owned)
            }),
            required_scopes: self.or(&of("required_scopes"), Vec::new(), texts),
            admin_scope: self.text(&of("admin_scope")),
            leeway: self.or(&of("leeway_sec"), DEFAULT_LEEWAY, |given| {
                count(given).map(std::time::Duration::from_secs)
            }),
        })
    }

    /// What is wrong with `[gateway.oauth]` as a whole, if it is there.
    pub(super) fn oauth_problem(&self) -> Option<Problem> {
        let mut given = self.0.iter().filter(|(path, _)| is_oauth(path));
        let (_, (_, first)) = given.next()?;
        let has = |key: &str| self.0.contains_key(format!("{OAUTH}{key}").as_str());
        let issuers = self.get(&format!("{OAUTH}issuers"), texts);
        let (key, message, hint) =
            GatewayOAuth::objection(issuers.as_ref(), has("resource"), has("jwks_uri"))?;
        let place = self.0.get(key).map_or(first, |(_, from)| from);
        Some(
            Problem::error(place.origin.clone(), message)
                .key(key)
                .hint(hint),
        )
    }

    fn audit(&self) -> AuditSettings {
        let max_file_mb = self.count("gateway.audit.max_file_mb");
        AuditSettings {
            enabled: self.get("gateway.audit.enabled", boolean),
            directory: self.text("gateway.audit.directory"),
            arguments: self.or("gateway.audit.arguments", false, boolean),
            max_file_mb: max_file_mb.or_else(|| self.count("retention.audit_max_mb")),
            keep_files: self.count("gateway.audit.keep_files"),
            on_failure: self.or("gateway.audit.on_failure", AuditFailure::Refuse, |given| {
                AuditFailure::from_word(word(given)?)
            }),
        }
    }

    pub(super) fn profile(&self, from: SettingOrigin) -> GatewayProfile {
        let prefix = self.get("prefix", |given| Prefix::from_word(word(given)?));
        GatewayProfile {
            from,
            servers: self.get("servers", texts).map(value),
            prefix: prefix.map(value),
            listen: self.text("listen").map(value),
            tool_search: self.get("tool_search", search_mode).map(value),
            context_window: self.count("context_window").map(value),
        }
    }

    fn principal(&self, from: SettingOrigin) -> PrincipalSettings {
        let scope = from.scope;
        let rules = |key: &str| -> Option<Vec<(Rule, SettingOrigin)>> {
            let given = self.get(key, |given| match given {
                Given::Rules(rules) => Some(rules.clone()),
                _ => None,
            })?;
            let placed = |(rule, origin): (Rule, Origin)| {
                let origin = SettingOrigin::new(scope, &origin);
                (rule, origin)
            };
            Some(given.value.into_iter().map(placed).collect())
        };
        PrincipalSettings {
            is_broken: false,
            servers: self.get("servers", texts).map(value),
            allow: rules("allow"),
            ask: rules("ask").unwrap_or_default(),
            deny: rules("deny").unwrap_or_default(),
            calls_per_minute: self.count("calls_per_minute").map(value),
            max_concurrent: self.count("max_concurrent").map(value),
            max_sessions: self.count("max_sessions").map(value),
            admin: self.get("admin", boolean).map(value),
            from,
        }
    }

    pub(super) fn server_limits(&self, from: SettingOrigin) -> ServerLimits {
        ServerLimits {
            from,
            calls_per_minute: self.count("calls_per_minute").map(value),
            max_concurrent: self.count("max_concurrent").map(value),
        }
    }
}
