//! What `config.toml` may say, and what is said about the rest.

use proptest::prelude::{Strategy as _, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{RawSettings, SettingsFile, parse_settings, read_settings};
use crate::document::{Format, parse};
use crate::problem::{Origin, Problem};
use crate::settings::{LayerTrust, SECTIONS, Settings, SettingsLayer, merge_settings};

fn read(text: &str) -> (RawSettings, Vec<Problem>) {
    let root = parse(text, Format::Toml).unwrap();
    parse_settings(&root, &Origin::file("config.toml"), SettingsFile::Alone)
}

fn settings(raw: RawSettings) -> Settings {
    let layer = SettingsLayer {
        scope: "user",
        trust: LayerTrust::Own,
        settings: raw,
    };
    merge_settings(&[layer]).0
}

/// What is written, what is said about it, and the hint.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "[agent]\nsandbox = \"workspace\"",
        "config.toml:2: key `agent.sandbox`: `workspace` is not one of read-only, workspace-write, \
             danger-full-access",
        "did you mean `workspace-write`?",
    ),
    (
        "[agent]\napproval_policie = \"never\"",
        "config.toml:2: key `agent.approval_policie`: there is no such key",
        "did you mean `approval_policy`?",
    ),
    (
        "[agent]\ncompact_percent = 96",
        "config.toml:2: key `agent.compact_percent`: it must be from 1 to 95",
        "",
    ),
    (
        "[agent]\nmax_steps = -1",
        "config.toml:2: key `agent.max_steps`: it must be from 1 to 10000",
        "",
    ),
    (
        "[agent]\nmax_steps = 1.5",
        "config.toml:2: key `agent.max_steps`: it is a number, but must be a whole number",
        "",
    ),
    (
        "[agent]\nwritable_roots = [\"/a\", \"b\"]",
        "config.toml:2: key `agent.writable_roots[1]`: this is a place in every directory",
        "write an absolute path, or one that begins with ~/",
    ),
    (
        "[agent.profiles.p]\nnetwrk = true",
        "config.toml:2: key `agent.profiles.p.netwrk`: there is no such key",
        "did you mean `network`?",
    ),
    (
        "[models.m]\ninput_price = -0.5",
        "config.toml:2: key `models.m.input_price`: it must be zero or more, and less than forever",
        "",
    ),
    (
        "[models.m]\noutput_price = inf",
        "config.toml:2: key `models.m.output_price`: it must be zero or more, and less than forever",
        "",
    ),
    (
        "credential_store = \"keyrng\"",
        "config.toml:1: key `credential_store`: `keyrng` is not one of auto, keyring, file",
        "did you mean `keyring`?",
    ),
    (
        "[health]\nping_intervall_sec = 3",
        "config.toml:2: key `health.ping_intervall_sec`: there is no such key",
        "did you mean `ping_interval_sec`?",
    ),
    (
        "[helth]\nmax_failures = 3",
        "config.toml:1: key `helth`: there is no such key",
        "did you mean `health`?",
    ),
    (
        "health = 3",
        "config.toml:1: key `health`: it is a number, but must be a table",
        "",
    ),
    (
        "[health]\nmax_failures = 0",
        "config.toml:2: key `health.max_failures`: it must be more than zero",
        "",
    ),
    (
        "[health]\nmax_failures = 1.5",
        "config.toml:2: key `health.max_failures`: it is a number, but must be a whole number",
        "",
    ),
    (
        "[health]\nping_timeout_sec = -1",
        "config.toml:2: key `health.ping_timeout_sec`: it must be more than zero, and less \
             than forever",
        "",
    ),
    (
        "[health]\nbackoff_multiplier = 0.5",
        "config.toml:2: key `health.backoff_multiplier`: it must be a number of at least 1",
        "",
    ),
    (
        "[health]\nbackoff_initial_ms = 0",
        "config.toml:2: key `health.backoff_initial_ms`: it must be from 1 to 86400000",
        "",
    ),
    (
        "[health]\nstart_concurrency = \"some\"",
        "config.toml:2: key `health.start_concurrency`: it is a text, but must be a whole \
             number or \"all\"",
        "",
    ),
    (
        "[tool_search]\nthreshold = 0.25",
        "config.toml:2: key `tool_search.threshold`: it must be from 1 to 100",
        "it is in percent: write 25",
    ),
    (
        "[tool_search]\nenabled = \"auto:0\"",
        "config.toml:2: key `tool_search.enabled`: `auto:0` is not one of auto, auto:N with N \
             from 1 to 100, true, false",
        "",
    ),
    (
        "[gateway]\nlisten = \"everywhere\"",
        "config.toml:2: key `gateway.listen`: this is nothing to listen at",
        "write an address and a port, as in 127.0.0.1:7777",
    ),
    (
        "[providers.a]\nkind = \"openai\"\napi_key = \"sk-secret\"",
        "config.toml:3: key `providers.a.api_key`: a secret cannot be written here, only \
             where it is",
        "write `keyring:NAME`, `cmd:COMMAND` or `${VAR}`",
    ),
    (
        "[providers.a]\nmodel = \"x\"",
        "config.toml:1: key `providers.a`: it has no `kind`",
        "one of anthropic, openai, openai-compatible, sampling",
    ),
    (
        "[providers.a]\nkind = \"openai-compatible\"",
        "config.toml:1: key `providers.a`: this kind needs `base_url`",
        "",
    ),
    (
        "[providers.a]\nkind = \"openai\"\nbase_url = \"ftp://x\"",
        "config.toml:3: key `providers.a.base_url`: it must begin with http:// or https://",
        "",
    ),
    (
        "[providers.a]\nkind = \"openai\"\nbase_url = \"https://me:pw@x\"",
        "config.toml:3: key `providers.a.base_url`: it must not hold credentials",
        "",
    ),
    (
        "[oauth]\ncallback_port = 0",
        "config.toml:2: key `oauth.callback_port`: it is a number, but must be a port from 1 to \
             65535",
        "",
    ),
    (
        "[oauth]\nclient_metadata_url = \"http://127.0.0.1/client.json\"",
        "config.toml:2: key `oauth.client_metadata_url`: it must begin with https://",
        "",
    ),
    (
        "[oauth]\nclient_metadata_url = \"https://example.com\"",
        "config.toml:2: key `oauth.client_metadata_url`: it must have a path, as in \
             https://example.com/client.json",
        "",
    ),
    (
        "[oauth]\nclient_id = \"x\"",
        "config.toml:2: key `oauth.client_id`: there is no such key",
        "",
    ),
    (
        "[mcp_servers.x]\ncommand = \"y\"",
        "config.toml:1: key `mcp_servers`: this file has no servers",
        "servers are written in mcp.toml beside this file",
    ),
];

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_way_out() {
    for (text, expected, hint) in WRONG {
        let (_, problems) = read(text);
        let [problem] = problems.as_slice() else {
            panic!("{text}: {problems:?}");
        };
        assert_eq!(problem.to_string(), *expected);
        assert_eq!(problem.hint.as_deref().unwrap_or_default(), *hint, "{text}");
        assert!(problem.is_error());
    }
}

#[test]
fn a_broken_key_hides_no_other() {
    let (raw, problems) = read(
        "credential_store = \"file\"\nmodell = 1\n[health]\nmax_failures = \"x\"\n\
         ping_timeout_sec = 2.5\n[gateway]\nprefix = \"never\"\n",
    );
    assert_eq!(problems.len(), 2);
    let settings = settings(raw);
    assert_eq!(settings.credential_store.value.as_str(), "file");
    assert_eq!(settings.health.max_failures.value, 5);
    assert_eq!(settings.health.ping_timeout.value.as_millis(), 2500);
    assert_eq!(settings.gateway.prefix.value.as_str(), "never");
    let from = settings.gateway.prefix.from.unwrap();
    assert_eq!(from.to_string(), "config.toml:7 (user)");
}

#[test]
fn a_provider_with_anything_wrong_does_not_count_at_all() {
    let (raw, problems) = read(
        "[providers.bad]\nkind = \"openai\"\napi_key_env = \"KEY\"\nbase_ur = \"https://own/\"\n\
         [providers.good]\nkind = \"anthropic\"\napi_key = \"keyring:anthropic\"\n",
    );
    assert_eq!(problems.len(), 1);
    let settings = settings(raw);
    assert_eq!(settings.providers.keys().collect::<Vec<_>>(), ["good"]);
    let good = settings.providers.get("good").unwrap();
    assert_eq!(good.api_key.as_deref(), Some("keyring:anthropic"));
}

#[test]
fn a_file_from_the_command_line_may_have_servers_too() {
    let root = parse("[mcp_servers.x]\ncommand = \"y\"", Format::Toml).unwrap();
    let origin = Origin::file("all.toml");
    let (_, problems) = parse_settings(&root, &origin, SettingsFile::WithServers);
    assert_eq!(problems, []);
}

#[test]
fn a_file_that_cannot_be_read_makes_every_tool_ask() {
    let folder = std::env::temp_dir().join(format!("cocode-settings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let missing = read_settings(&folder.join("missing.toml"), SettingsFile::Alone);
    assert_eq!(missing, (None, Vec::new()));
    let file = folder.join("config.toml");
    std::fs::write(&file, "[permissions\ndeny = [\"shell\"]").unwrap();
    let (raw, problems) = read_settings(&file, SettingsFile::Alone);
    assert!(raw.unwrap().has_broken_permissions());
    assert_eq!(problems.len(), 2);
    assert_eq!(problems.first().unwrap().origin.line, Some(1));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_misspelled_permissions_table_is_not_taken_lightly() {
    let (raw, problems) = read("[permission]\ndeny = [\"shell\"]\n[permissions]\nallow = [\"x\"]");
    assert!(raw.has_broken_permissions());
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "config.toml:1: key `permission`: there is no such key",
            "config.toml:1: key `permissions`: rules about tools may be missing, so every tool \
             asks until this is mended",
        ]
    );
}

proptest! {
    /// Whatever stands where, it is a setting or a problem with its line, and never both.
    #[test]
    fn every_value_is_read_or_reported(
        section in proptest::sample::select(&SECTIONS[..]),
        key in prop_oneof![
            proptest::sample::select(vec![
                "enabled", "threshold", "listen", "prefix", "max_failures", "start_concurrency",
                "ping_timeout_sec", "logs_days", "kind", "default", "deny", "allow", "remembered",
            ]).prop_map(str::to_owned),
            "[a-z_]{1,12}",
        ],
        value in proptest::sample::select(vec![
            "1", "-1", "0", "0.5", "inf", "nan", "true", "\"\"", "\"auto\"", "\"all\"",
            "\"always\"", "\"127.0.0.1:1\"", "[]", "[\"x\"]", "[1]", "[{}]", "[[]]", "{}",
            "{ a = 1 }", "{ a = \"deny\" }", "{ a = { b = \"allow\" } }", "1979-05-27",
        ]),
    ) {
        let text = format!("\n[{section}]\n{key} = {value}\n");
        let (raw, problems) = read(&text);
        let permissions = &raw.permissions;
        let has_rules = permissions.default.is_some()
            || !permissions.rules.is_empty()
            || !permissions.answers.is_empty();
        let is_read = !raw.values.is_empty() || !raw.named.is_empty() || has_rules;
        let is_reported = problems.iter().any(Problem::is_error);
        prop_assert!(!(is_read && is_reported), "{text}: {raw:?} {problems:?}");
        let is_empty = matches!(value, "[]" | "{}");
        prop_assert!(is_read || is_reported || is_empty, "{text}");
        prop_assert!(problems.iter().all(|problem| problem.origin.line.is_some()));
        prop_assert_eq!(
            raw.has_broken_permissions(),
            problems.iter().any(|problem| !problem.is_error())
        );
    }
}
