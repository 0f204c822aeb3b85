//! The settings that hold, each with the place it is written at, or marked as a default.

mod gateway;

use std::time::Duration;

use cocode_config::{
    AgentProfile, AgentSettings, HealthSettings, ModelSettings, OAuthSettings, ProviderSettings,
    RetentionSettings, Setting, SettingOrigin, Settings, StartConcurrency, ToolSearchSettings,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{CliError, Exit};
use crate::manage::report::HIDDEN;
use crate::printer::{Style, print_json};
use crate::table::{Cell, table};
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report {
    settings: Vec<Row>,
}

/// One setting.
#[derive(Serialize)]
struct Row {
    key: String,
    value: Value,
    /// Whether nobody wrote it.
    default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl Row {
    fn new(key: impl Into<String>, value: Value, from: Option<&SettingOrigin>) -> Self {
        Self {
            key: key.into(),
            value,
            default: from.is_none(),
            scope: from.map(|from| from.scope),
            file: from.map(|from| from.origin.file.display().to_string()),
            line: from.and_then(|from| from.origin.line),
        }
    }

    fn place(&self) -> String {
        match (&self.file, self.line, self.scope) {
            (Some(file), Some(line), Some(scope)) => format!("{file}:{line} ({scope})"),
            (Some(file), None, Some(scope)) => format!("{file} ({scope})"),
            _ => "default".to_owned(),
        }
    }
}

pub(super) fn run(workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let settings = rows(&config.settings);
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &Report { settings }).map(|()| Exit::Ok);
    }
    workspace.warn_of_files(config);
    let cells: Vec<Vec<Cell>> = settings
        .iter()
        .map(|row| {
            let place = Cell::new(row.place());
            let place = if row.default {
                place.styled(Style::Dim)
            } else {
                place
            };
            vec![
                Cell::new(&row.key).styled(Style::Bold),
                Cell::new(row.value.to_string()),
                place,
            ]
        })
        .collect();
    printer.out(table(&["KEY", "VALUE", "FROM"], &cells, printer.paint()))?;
    printer.note("rules for tools are in `cocode permissions list`");
    Ok(Exit::Ok)
}

/// Gathers rows under a table of the file.
struct Rows {
    table: &'static str,
    rows: Vec<Row>,
}

impl Rows {
    fn add<T>(&mut self, key: &str, setting: &Setting<T>, value: impl FnOnce(&T) -> Value) {
        let key = match self.table {
            "" => key.to_owned(),
            table => format!("{table}.{key}"),
        };
        let value = value(&setting.value);
        self.rows.push(Row::new(key, value, setting.from.as_ref()));
    }

    fn given<T>(
        &mut self,
        key: &str,
        setting: Option<&Setting<T>>,
        value: impl FnOnce(&T) -> Value,
    ) {
        if let Some(setting) = setting {
            self.add(key, setting, value);
        }
    }
}

fn rows(settings: &Settings) -> Vec<Row> {
    let Settings {
        credential_store,
        oauth,
        provider,
        model,
        permissions: _,
        tool_search,
        providers,
        models,
        agent,
        gateway,
        health,
        retention,
    } = settings;
    let mut rows = Rows {
        table: "",
        rows: Vec::new(),
    };
    rows.add("credential_store", credential_store, |store| {
        json!(store.as_str())
    });
    rows.given("provider", provider.as_ref(), |text| json!(text));
    rows.given("model", model.as_ref(), |text| json!(text));
    of_oauth(&mut rows, oauth);
    of_tool_search(&mut rows, tool_search);
    of_agent(&mut rows, agent);
    gateway::of_gateway(&mut rows, gateway);
    of_health(&mut rows, health);
    of_retention(&mut rows, retention);
    let mut rows = rows.rows;
    for (name, provider) in providers {
        rows.push(of_provider(name, provider));
    }
    for (name, model) in models {
        rows.push(of_model(name, model));
    }
    rows
}

fn of_oauth(rows: &mut Rows, settings: &OAuthSettings) {
    let OAuthSettings {
        client_metadata_url,
        callback_port,
    } = settings;
    rows.table = "oauth";
    rows.given("client_metadata_url", client_metadata_url.as_ref(), |url| {
        json!(url)
    });
    rows.given("callback_port", callback_port.as_ref(), |port| json!(port));
}

fn of_tool_search(rows: &mut Rows, settings: &ToolSearchSettings) {
    let ToolSearchSettings {
        mode,
        threshold_percent,
        min_context_window,
        on_list_changed,
    } = settings;
    rows.table = "tool_search";
    rows.add("mode", mode, |mode| json!(mode.to_string()));
    rows.add("threshold_percent", threshold_percent, number);
    rows.add("min_context_window", min_context_window, number);
    rows.add("on_list_changed", on_list_changed, |truth| json!(truth));
}

fn of_agent(rows: &mut Rows, settings: &AgentSettings) {
    let AgentSettings {
        approval_policy,
        sandbox,
        network,
        writable_roots,
        instructions,
        max_steps,
        compact_percent,
        profiles,
    } = settings;
    rows.table = "agent";
    rows.add("approval_policy", approval_policy, |policy| {
        json!(policy.as_str())
    });
    rows.add("sandbox", sandbox, |mode| json!(mode.as_str()));
    rows.add("network", network, number);
    rows.add("writable_roots", writable_roots, number);
    rows.given("instructions", instructions.as_ref(), number);
    rows.add("max_steps", max_steps, number);
    rows.add("compact_percent", compact_percent, number);
    for (name, profile) in profiles {
        rows.rows.push(of_agent_profile(name, profile));
    }
}

fn of_agent_profile(name: &str, settings: &AgentProfile) -> Row {
    let AgentProfile {
        from,
        model,
        provider,
        approval_policy,
        sandbox,
        network,
        instructions,
        max_steps,
    } = settings;
    let mut value = json!({});
    for (key, given) in [
        ("model", model.as_ref().map(|text| json!(text))),
        ("provider", provider.as_ref().map(|text| json!(text))),
        (
            "approval_policy",
            approval_policy.map(|policy| json!(policy.as_str())),
        ),
        ("sandbox", sandbox.map(|mode| json!(mode.as_str()))),
        ("network", network.map(|truth| json!(truth))),
        (
            "instructions",
            instructions.as_ref().map(|text| json!(text)),
        ),
        ("max_steps", max_steps.map(|many| json!(many))),
    ] {
        if let Some(given) = given {
            value[key] = given;
        }
    }
    Row::new(format!("agent.profiles.{name}"), value, Some(from))
}

fn of_health(rows: &mut Rows, settings: &HealthSettings) {
    let HealthSettings {
        start_concurrency,
        ping_interval,
        ping_timeout,
        max_failures,
        reconnect_attempts,
        backoff_initial,
        backoff_max,
        backoff_multiplier,
        list_cache_ttl,
        invalidate_on_list_changed,
        idle_stop,
        tool_total_timeout,
    } = settings;
    rows.table = "health";
    rows.add("start_concurrency", start_concurrency, |many| match many {
        StartConcurrency::AtMost(many) => json!(many),
        StartConcurrency::All => json!("all"),
    });
    rows.add("ping_interval_sec", ping_interval, seconds);
    rows.add("ping_timeout_sec", ping_timeout, seconds);
    rows.add("max_failures", max_failures, number);
    rows.add("reconnect_attempts", reconnect_attempts, number);
    let milliseconds =
        |wait: &Duration| json!(wait.as_secs() * 1000 + u64::from(wait.subsec_millis()));
    rows.add("backoff_initial_ms", backoff_initial, milliseconds);
    rows.add("backoff_max_ms", backoff_max, milliseconds);
    rows.add("backoff_multiplier", backoff_multiplier, number);
    rows.add("list_cache_ttl_sec", list_cache_ttl, seconds);
    rows.add(
        "invalidate_on_list_changed",
        invalidate_on_list_changed,
        number,
    );
    rows.given("idle_stop_sec", idle_stop.as_ref(), seconds);
    rows.given(
        "tool_total_timeout_sec",
        tool_total_timeout.as_ref(),
        seconds,
    );
}

fn of_retention(rows: &mut Rows, settings: &RetentionSettings) {
    let RetentionSettings {
        conversations_days,
        results_days,
        results_max_mb,
        logs_days,
        logs_max_mb,
        audit_days,
        audit_max_mb,
        record_usage,
    } = settings;
    rows.table = "retention";
    for (key, setting) in [
        ("conversations_days", conversations_days),
        ("results_days", results_days),
        ("results_max_mb", results_max_mb),
        ("logs_days", logs_days),
        ("logs_max_mb", logs_max_mb),
        ("audit_days", audit_days),
        ("audit_max_mb", audit_max_mb),
    ] {
        rows.given(key, setting.as_ref(), number);
    }
    rows.given("record_usage", record_usage.as_ref(), number);
}

fn of_provider(name: &str, settings: &ProviderSettings) -> Row {
    let ProviderSettings {
        from,
        kind,
        base_url,
        model,
        api_key_env,
        api_key,
        max_retries,
    } = settings;
    let mut value = json!({ "kind": kind.as_str() });
    for (key, text) in [
        ("base_url", base_url.as_deref()),
        ("model", model.as_deref()),
        ("api_key_env", api_key_env.as_deref()),
        ("api_key", api_key.as_deref().map(reference)),
    ] {
        if let Some(text) = text {
            value[key] = json!(text);
        }
    }
    if let Some(many) = max_retries {
        value["max_retries"] = json!(many);
    }
    Row::new(format!("providers.{name}"), value, Some(from))
}

/// A reference to a secret may be seen; a secret that somebody wrote in its place may not.
fn reference(text: &str) -> &str {
    let is_reference = ["keyring:", "cmd:", "${"]
        .iter()
        .any(|beginning| text.starts_with(beginning));
    if is_reference { text } else { HIDDEN }
}

fn of_model(name: &str, settings: &ModelSettings) -> Row {
    let ModelSettings {
        from,
        provider,
        context_window,
        max_output_tokens,
        vision,
        tools,
        input_price,
        output_price,
        cache_read_price,
        cache_write_price,
    } = settings;
    let mut value = json!({});
    for (key, given) in [
        ("provider", provider.as_ref().map(|text| json!(text))),
        ("context_window", context_window.map(|many| json!(many))),
        (
            "max_output_tokens",
            max_output_tokens.map(|many| json!(many)),
        ),
        ("vision", vision.map(|truth| json!(truth))),
        ("tools", tools.map(|truth| json!(truth))),
        ("input_price", input_price.map(|price| json!(price))),
        ("output_price", output_price.map(|price| json!(price))),
        (
            "cache_read_price",
            cache_read_price.map(|price| json!(price)),
        ),
        (
            "cache_write_price",
            cache_write_price.map(|price| json!(price)),
        ),
    ] {
        if let Some(given) = given {
            value[key] = given;
        }
    }
    Row::new(format!("models.{name}"), value, Some(from))
}

fn number<T: Serialize>(number: &T) -> Value {
    json!(number)
}

fn seconds(duration: &Duration) -> Value {
    if duration.subsec_nanos() == 0 {
        json!(duration.as_secs())
    } else {
        json!(duration.as_secs_f64())
    }
}
