//! Brings the settings of all files together.

mod gateway;

use std::collections::BTreeMap;
use std::time::Duration;

use cocode_core::{
    ApprovalPolicy, Authority, Rule, RuleEntry, SandboxMode, ToolSearchMode, Verdict,
};

use super::agent::{self, AgentProfile, AgentSettings};
use super::parse::{AGENT_PROFILES, GATEWAY_PROFILES, LIMITS_OF_SERVERS, PRINCIPALS, RawEntry};
use super::permissions::Permissions;
use super::reader::Given;
use super::{
    CredentialStore, HealthSettings, LayerTrust, ModelSettings, OAuthSettings, ProviderKind,
    ProviderSettings, RetentionSettings, Setting, SettingOrigin, Settings, SettingsLayer,
    StartConcurrency, ToolSearchSettings, is_owners_alone,
};
use crate::problem::{Origin, Problem};

/// The settings of all files, the most important first, and what does not count and why.
pub fn merge_settings(layers: &[SettingsLayer]) -> (Settings, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut values = Values::default();
    let mut named: BTreeMap<(&str, &str), (&RawEntry, &'static str)> = BTreeMap::new();
    for layer in layers {
        let SettingsLayer {
            scope,
            trust,
            settings,
        } = layer;
        let is_owners = matches!(trust, LayerTrust::Organization | LayerTrust::Own);
        if !is_owners {
            problems.extend(gateway::not_theirs(settings));
        }
        if *trust == LayerTrust::Unapproved {
            continue;
        }
        // Nobody's keys speak for the issuer of another.
        let has_oauth = values.0.keys().any(|path| gateway::is_oauth(path));
        let heard = settings.values.iter().filter(|(path, _)| {
            (is_owners || !is_owners_alone(path)) && !(has_oauth && gateway::is_oauth(path))
        });
        for (path, (given, origin)) in heard {
            values
                .0
                .entry(path)
                .or_insert_with(|| (given, SettingOrigin::new(scope, origin)));
        }
        let heard = settings.named.iter();
        let heard = heard.filter(|((table, _), _)| {
            *table != PRINCIPALS && (is_owners || !is_owners_alone(table))
        });
        for ((table, name), entry) in heard {
            named.entry((table, name)).or_insert((entry, scope));
        }
    }
    let mut settings = values.settings();
    problems.extend(values.oauth_problem());
    problems.extend(backoff_problem(&settings.health));
    settings.permissions = permissions(layers);
    for layer in layers {
        if layer.trust == LayerTrust::Unapproved {
            let origin = |origin: &Origin| SettingOrigin::new(layer.scope, origin);
            let heard = settings.agent.tighten(&layer.settings, origin);
            problems.extend(what_does_not_count(layer, &heard));
        }
    }
    for ((table, name), (entry, scope)) in named {
        let from = SettingOrigin::new(scope, &entry.origin);
        let values = Values::of_entry(entry, scope);
        let name = name.to_owned();
        let gateway = &mut settings.gateway;
        if table == GATEWAY_PROFILES {
            gateway.profiles.insert(name, values.profile(from));
        } else if table == LIMITS_OF_SERVERS {
            let limits = values.server_limits(from);
            gateway.limits.servers.insert(name, limits);
        } else if table == AGENT_PROFILES {
            let profile = values.agent_profile(from);
            settings.agent.profiles.insert(name, profile);
        } else if table == "models" {
            settings.models.insert(name, values.model(from));
        } else if let Some(provider) = values.provider(from) {
            settings.providers.insert(name, provider);
        }
    }
    settings.gateway.principals = gateway::principals(layers);
    problems.extend(gateway::of_nobody(&settings.gateway));
    (settings, problems)
}

impl Default for Settings {
    fn default() -> Self {
        Values::default().settings()
    }
}

impl SettingOrigin {
    fn new(scope: &'static str, origin: &Origin) -> Self {
        let origin = origin.clone();
        Self { scope, origin }
    }
}

/// One sentence for a file of which only the stricter part counts; but for the paths that were heard.
fn what_does_not_count(layer: &SettingsLayer, heard: &[&str]) -> Option<Problem> {
    let SettingsLayer { settings, .. } = layer;
    let values = settings.values.iter();
    // What would not count from an approved file either was said already.
    let values =
        values.filter(|(path, _)| !heard.contains(&path.as_str()) && !is_owners_alone(path));
    let values = values.map(|(_, (_, origin))| origin);
    let entries = settings.named.iter();
    let entries = entries.filter(|((table, _), _)| !is_owners_alone(table));
    let entries = entries.map(|(_, entry)| &entry.origin);
    let rules = settings.permissions.rules.iter();
    let rules = rules.filter(|(verdict, ..)| *verdict == Verdict::Allow);
    let rules = rules.map(|(_, _, origin)| origin);
    let mut ignored: Vec<_> = values.chain(entries).chain(rules).collect();
    ignored.sort_unstable();
    let first = (*ignored.first()?).clone();
    let message = "this file came with the work tree and is not approved: of its settings only \
                   deny rules, ask rules, a stricter default and stricter bounds of agents count";
    Some(Problem::warning(first, message))
}

fn permissions(layers: &[SettingsLayer]) -> Permissions {
    let mut merged = Permissions::default();
    for layer in layers {
        let raw = &layer.settings.permissions;
        let origin = |origin: &Origin| SettingOrigin::new(layer.scope, origin);
        let authority = match layer.trust {
            LayerTrust::Organization => Authority::Organization,
            LayerTrust::Own | LayerTrust::Approved | LayerTrust::Unapproved => Authority::User,
        };
        let counts =
            |verdict: Verdict| layer.trust != LayerTrust::Unapproved || verdict != Verdict::Allow;
        for (verdict, rule, at) in &raw.rules {
            if counts(*verdict) {
                merged.rules.push(RuleEntry {
                    kind: *verdict,
                    authority,
                    rule: rule.clone(),
                    origin: origin(at),
                });
            }
        }
        if let Some((verdict, at)) = &raw.default
            && counts(*verdict)
        {
            merged.defaults.push((*verdict, authority, origin(at)));
        }
        if layer.trust == LayerTrust::Own {
            let answers = raw.answers.iter();
            let answers = answers.map(|(tool, answer, at)| (tool.clone(), *answer, origin(at)));
            merged.answers.extend(answers);
        }
        for at in &raw.broken {
            merged.broken.push(origin(at));
            // To ask would be softer than what an organization may have written here.
            let kind = match authority {
                Authority::Organization => Verdict::Deny,
                Authority::User => Verdict::Ask,
            };
            merged.rules.push(RuleEntry {
                kind,
                authority,
                rule: Rule::everything(),
                origin: origin(at),
            });
        }
    }
    merged
}

/// What is left after the less important files were put aside.
#[derive(Default)]
struct Values<'a>(BTreeMap<&'a str, (&'a Given, SettingOrigin)>);

impl<'a> Values<'a> {
    /// Those of a table with a name.
    fn of_entry(entry: &'a RawEntry, scope: &'static str) -> Self {
        let given = entry.values.iter();
        let given = given.map(|(key, (given, origin))| {
            let origin = SettingOrigin::new(scope, origin);
            (*key, (given, origin))
        });
        Self(given.collect())
    }

    fn get<T>(&self, path: &str, read: impl Fn(&Given) -> Option<T>) -> Option<Setting<T>> {
        let (given, origin) = self.0.get(path)?;
        let value = read(given);
        debug_assert!(value.is_some(), "{path} has a value of another kind");
        let from = Some(origin.clone());
        value.map(|value| Setting { value, from })
    }

    fn or<T>(&self, path: &str, default: T, read: impl Fn(&Given) -> Option<T>) -> Setting<T> {
        self.get(path, read).unwrap_or(Setting {
            value: default,
            from: None,
        })
    }

    fn text(&self, path: &str) -> Option<Setting<String>> {
        self.get(path, |given| word(given).map(str::to_owned))
    }

    fn count(&self, path: &str) -> Option<Setting<u64>> {
        self.get(path, count)
    }

    fn settings(&self) -> Settings {
        Settings {
            credential_store: self.or("credential_store", CredentialStore::Auto, |given| {
                CredentialStore::from_word(word(given)?)
            }),
            oauth: OAuthSettings {
                client_metadata_url: self.text("oauth.client_metadata_url"),
                callback_port: self.get("oauth.callback_port", |given| match given {
                    Given::Port(port) => Some(*port),
                    _ => None,
                }),
            },
            provider: self.text("provider"),
            model: self.text("model"),
            permissions: Permissions::default(),
            tool_search: self.tool_search(),
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            agent: self.agent(),
            gateway: self.gateway(),
            health: self.health(),
            retention: self.retention(),
        }
    }

    fn tool_search(&self) -> ToolSearchSettings {
        ToolSearchSettings {
            mode: self.or("tool_search.enabled", ToolSearchMode::Auto, search_mode),
            threshold_percent: self.or("tool_search.threshold", 10.0, |given| match given {
                Given::Percent(percent) => Some(*percent),
                _ => None,
            }),
            min_context_window: self.or("tool_search.min_context_window", 32_000, count),
            on_list_changed: self.or("tool_search.on_list_changed", true, boolean),
        }
    }

    fn agent(&self) -> AgentSettings {
        AgentSettings {
            approval_policy: self.or(
                agent::APPROVAL_POLICY,
                ApprovalPolicy::default(),
                agent::policy_of,
            ),
            sandbox: self.or(agent::SANDBOX, SandboxMode::default(), agent::sandbox_of),
            network: self.or(agent::NETWORK, false, boolean),
            writable_roots: self.or("agent.writable_roots", Vec::new(), texts),
            instructions: self.text("agent.instructions"),
            max_steps: self.or("agent.max_steps", 100, small),
            compact_percent: self.or("agent.compact_percent", 80, small),
            profiles: BTreeMap::new(),
        }
    }

    fn agent_profile(&self, from: SettingOrigin) -> AgentProfile {
        AgentProfile {
            from,
            model: self.text("model").map(value),
            provider: self.text("provider").map(value),
            approval_policy: self.get("approval_policy", agent::policy_of).map(value),
            sandbox: self.get("sandbox", agent::sandbox_of).map(value),
            network: self.get("network", boolean).map(value),
            instructions: self.text("instructions").map(value),
            max_steps: self.get("max_steps", small).map(value),
        }
    }

    fn health(&self) -> HealthSettings {
        let seconds = Duration::from_secs;
        let at_once = StartConcurrency::AtMost(3);
        HealthSettings {
            start_concurrency: self.or("health.start_concurrency", at_once, |given| match given {
                Given::StartConcurrency(concurrency) => Some(*concurrency),
                _ => None,
            }),
            ping_interval: self.or("health.ping_interval_sec", seconds(30), duration),
            ping_timeout: self.or("health.ping_timeout_sec", seconds(5), duration),
            max_failures: self.or("health.max_failures", 5, count),
            reconnect_attempts: self.or("health.reconnect_attempts", 5, count),
            backoff_initial: self.or(BACKOFF_INITIAL, Duration::from_millis(100), milliseconds),
            backoff_max: self.or(BACKOFF_MAX, seconds(10), milliseconds),
            backoff_multiplier: self.or("health.backoff_multiplier", 2.0, |given| match given {
                Given::Multiplier(factor) => Some(*factor),
                _ => None,
            }),
            list_cache_ttl: self.or("health.list_cache_ttl_sec", seconds(300), duration),
            invalidate_on_list_changed: self.or("health.invalidate_on_list_changed", true, boolean),
            idle_stop: self.get("health.idle_stop_sec", duration),
            tool_total_timeout: self.get("health.tool_total_timeout_sec", duration),
        }
    }

    fn retention(&self) -> RetentionSettings {
        RetentionSettings {
            conversations_days: self.count("retention.conversations_days"),
            results_days: self.count("retention.results_days"),
            results_max_mb: self.count("retention.results_max_mb"),
            logs_days: self.count("retention.logs_days"),
            logs_max_mb: self.count("retention.logs_max_mb"),
            audit_days: self.count("retention.audit_days"),
            audit_max_mb: self.count("retention.audit_max_mb"),
            record_usage: self.get("retention.record_usage", boolean),
        }
    }

    fn provider(&self, from: SettingOrigin) -> Option<ProviderSettings> {
        let kind = self.get("kind", |given| ProviderKind::from_word(word(given)?));
        Some(ProviderSettings {
            from,
            kind: kind?.value,
            base_url: self.text("base_url").map(value),
            model: self.text("model").map(value),
            api_key_env: self.text("api_key_env").map(value),
            api_key: self.text("api_key").map(value),
            max_retries: self.count("max_retries").map(value),
        })
    }

    fn model(&self, from: SettingOrigin) -> ModelSettings {
        ModelSettings {
            from,
            provider: self.text("provider").map(value),
            context_window: self.count("context_window").map(value),
            max_output_tokens: self.count("max_output_tokens").map(value),
            vision: self.get("vision", boolean).map(value),
            tools: self.get("tools", boolean).map(value),
            input_price: self.get("input_price", price).map(value),
            output_price: self.get("output_price", price).map(value),
            cache_read_price: self.get("cache_read_price", price).map(value),
            cache_write_price: self.get("cache_write_price", price).map(value),
        }
    }
}

const BACKOFF_INITIAL: &str = "health.backoff_initial_ms";
const BACKOFF_MAX: &str = "health.backoff_max_ms";

/// The error of a maximum that is below the initial wait, at whichever of them is written.
fn backoff_problem(health: &HealthSettings) -> Option<Problem> {
    let (initial, max) = (&health.backoff_initial, &health.backoff_max);
    if initial.value <= max.value {
        return None;
    }
    let (key, from) = match &max.from {
        Some(from) => (BACKOFF_MAX, from),
        None => (BACKOFF_INITIAL, initial.from.as_ref()?),
    };
    let (initial, max) = (initial.value.as_millis(), max.value.as_millis());
    let message = format!("backoff_max_ms ({max}) is less than backoff_initial_ms ({initial})");
    Some(Problem::error(from.origin.clone(), message).key(key))
}

fn value<T>(setting: Setting<T>) -> T {
    setting.value
}

fn word(given: &Given) -> Option<&str> {
    match given {
        Given::Text(text) => Some(text),
        _ => None,
    }
}

fn boolean(given: &Given) -> Option<bool> {
    match given {
        Given::Boolean(truth) => Some(*truth),
        _ => None,
    }
}

fn search_mode(given: &Given) -> Option<ToolSearchMode> {
    match given {
        Given::SearchMode(mode) => Some(*mode),
        _ => None,
    }
}

fn count(given: &Given) -> Option<u64> {
    match given {
        Given::Count(number) => Some(*number),
        _ => None,
    }
}

/// A number that the table of keys keeps small.
fn small<T: TryFrom<u64>>(given: &Given) -> Option<T> {
    count(given)?.try_into().ok()
}

fn price(given: &Given) -> Option<f64> {
    match given {
        Given::Price(price) => Some(*price),
        _ => None,
    }
}

fn texts(given: &Given) -> Option<Vec<String>> {
    match given {
        Given::Texts(texts) => Some(texts.clone()),
        _ => None,
    }
}

fn milliseconds(given: &Given) -> Option<Duration> {
    count(given).map(Duration::from_millis)
}

fn duration(given: &Given) -> Option<Duration> {
    match given {
        Given::Seconds(seconds) => Some(seconds.duration()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
