//! What is shown of `[gateway]`: where it listens, who may use it, and what is written down.

use cocode_config::{
    AuditSettings, GatewayOAuth, GatewayProfile, GatewaySettings, GatewayStore, LimitSettings,
    PrincipalSettings, ServerLimits, SettingOrigin,
};
use cocode_core::{Rule, Sandbox};
use serde_json::{Value, json};

use super::{Row, Rows, number, seconds};

pub(super) fn of_gateway(rows: &mut Rows, settings: &GatewaySettings) {
    let GatewaySettings {
        listen,
        admin_listen,
        admin_url,
        allow_hosts,
        allow_origins,
        prefix,
        tls_certificate,
        tls_key,
        metrics,
        max_sessions,
        session_idle,
        idle_stop,
        first_list_timeout,
        server_sandbox,
        store,
        oauth,
        principals,
        limits,
        audit,
        profiles,
    } = settings;
    rows.table = "gateway";
    rows.given("listen", listen.as_ref(), number);
    rows.given("admin_listen", admin_listen.as_ref(), number);
    rows.given("admin_url", admin_url.as_ref(), number);
    rows.add("allow_hosts", allow_hosts, number);
    rows.add("allow_origins", allow_origins, number);
    rows.add("prefix", prefix, |prefix| json!(prefix.as_str()));
    rows.given("tls_certificate", tls_certificate.as_ref(), number);
    rows.given("tls_key", tls_key.as_ref(), number);
    rows.add("metrics", metrics, |metrics| json!(metrics.as_str()));
    rows.given("max_sessions", max_sessions.as_ref(), number);
    rows.given("session_idle_sec", session_idle.as_ref(), seconds);
    rows.given("idle_stop_sec", idle_stop.as_ref(), seconds);
    rows.add("first_list_timeout_sec", first_list_timeout, seconds);
    rows.given("server_sandbox", server_sandbox.as_ref(), |sandbox| {
        json!(match sandbox {
            Sandbox::Off => "off",
            Sandbox::ReadOnly => "read-only",
            Sandbox::WorkspaceWrite => "workspace-write",
        })
    });
    rows.add("store", store, |store| match store {
        GatewayStore::Sqlite => json!("sqlite"),
        GatewayStore::Memory => json!("memory"),
        // Files hold no password, only where it is.
        GatewayStore::Postgres(address) => json!(address),
    });
    if let Some(oauth) = oauth {
        of_oauth(rows, oauth);
    }
    for (name, principal) in principals {
        rows.rows.push(of_principal(name, principal));
    }
    of_limits(rows, limits);
    of_audit(rows, audit);
    for (name, profile) in profiles {
        rows.rows.push(of_profile(name, profile));
    }
}

fn of_oauth(rows: &mut Rows, settings: &GatewayOAuth) {
    let GatewayOAuth {
        issuers,
        resource,
        audiences,
        jwks_uri,
        algorithms,
        principal_claim,
        required_scopes,
        admin_scope,
        leeway,
    } = settings;
    rows.table = "gateway.oauth";
    rows.add("issuers", issuers, number);
    rows.add("resource", resource, number);
    rows.add("audiences", audiences, number);
    rows.given("jwks_uri", jwks_uri.as_ref(), number);
    rows.add("algorithms", algorithms, number);
    rows.add("principal_claim", principal_claim, number);
    rows.add("required_scopes", required_scopes, number);
    rows.given("admin_scope", admin_scope.as_ref(), number);
    rows.add("leeway_sec", leeway, seconds);
}

fn of_principal(name: &str, settings: &PrincipalSettings) -> Row {
    let PrincipalSettings {
        from,
        is_broken,
        servers,
        allow,
        ask,
        deny,
        calls_per_minute,
        max_concurrent,
        max_sessions,
        admin,
    } = settings;
    let rules = |rules: &[(Rule, SettingOrigin)]| {
        let texts = rules.iter().map(|(rule, _)| rule.to_string());
        json!(texts.collect::<Vec<_>>())
    };
    let some = |list: &[(Rule, SettingOrigin)]| (!list.is_empty()).then(|| rules(list));
    let value = if *is_broken {
        json!("may do nothing until it is mended")
    } else {
        table_of([
            ("servers", servers.as_ref().map(number)),
            ("allow", allow.as_deref().map(rules)),
            ("ask", some(ask)),
            ("deny", some(deny)),
            ("calls_per_minute", calls_per_minute.as_ref().map(number)),
            ("max_concurrent", max_concurrent.as_ref().map(number)),
            ("max_sessions", max_sessions.as_ref().map(number)),
            ("admin", admin.as_ref().map(number)),
        ])
    };
    Row::new(format!("gateway.principals.{name}"), value, Some(from))
}

fn of_limits(rows: &mut Rows, settings: &LimitSettings) {
    let LimitSettings {
        calls_per_minute,
        max_concurrent,
        servers,
    } = settings;
    rows.table = "gateway.limits";
    rows.given("calls_per_minute", calls_per_minute.as_ref(), number);
    rows.given("max_concurrent", max_concurrent.as_ref(), number);
    for (name, limits) in servers {
        let ServerLimits {
            from,
            calls_per_minute,
            max_concurrent,
        } = limits;
        let value = table_of([
            ("calls_per_minute", calls_per_minute.as_ref().map(number)),
            ("max_concurrent", max_concurrent.as_ref().map(number)),
        ]);
        let key = format!("gateway.limits.servers.{name}");
        rows.rows.push(Row::new(key, value, Some(from)));
    }
}

fn of_audit(rows: &mut Rows, settings: &AuditSettings) {
    let AuditSettings {
        enabled,
        directory,
        arguments,
        max_file_mb,
        keep_files,
        on_failure,
    } = settings;
    rows.table = "gateway.audit";
    rows.given("enabled", enabled.as_ref(), number);
    rows.given("directory", directory.as_ref(), number);
    rows.add("arguments", arguments, number);
    rows.given("max_file_mb", max_file_mb.as_ref(), number);
    rows.given("keep_files", keep_files.as_ref(), number);
    rows.add("on_failure", on_failure, |word| json!(word.as_str()));
}

fn of_profile(name: &str, settings: &GatewayProfile) -> Row {
    let GatewayProfile {
        from,
        servers,
        prefix,
        listen,
        tool_search,
        context_window,
    } = settings;
    let value = table_of([
        ("servers", servers.as_ref().map(number)),
        ("prefix", prefix.map(|prefix| json!(prefix.as_str()))),
        ("listen", listen.as_ref().map(number)),
        (
            "tool_search",
            tool_search.map(|mode| json!(mode.to_string())),
        ),
        ("context_window", context_window.as_ref().map(number)),
    ]);
    Row::new(format!("gateway.profiles.{name}"), value, Some(from))
}

/// What is given of a table.
fn table_of<const N: usize>(keys: [(&str, Option<Value>); N]) -> Value {
    let given = keys.into_iter();
    let given = given.filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(given.collect())
}
