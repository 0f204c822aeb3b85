//! Which file counts for which setting.

use std::collections::BTreeMap;

use cocode_core::ToolSearchMode;
use proptest::prelude::{prop_assert_eq, proptest};

use super::merge_settings;
use crate::document::{Format, parse};
use crate::problem::{Origin, Problem};
use crate::settings::parse::parse_settings;
use crate::settings::{
    LayerTrust, OAuthSettings, SETTINGS, SettingKey, SettingKind, Settings, SettingsFile,
    SettingsLayer, StartConcurrency,
};

fn layer(scope: &'static str, trust: LayerTrust, text: &str) -> SettingsLayer {
    let root = parse(text, Format::Toml).unwrap();
    let origin = Origin::file(format!("{scope}.toml"));
    let (settings, problems) = parse_settings(&root, &origin, SettingsFile::Alone);
    assert_eq!(problems, [], "{text}");
    SettingsLayer {
        scope,
        trust,
        settings,
    }
}

fn merge(layers: &[SettingsLayer]) -> (Settings, Vec<Problem>) {
    merge_settings(layers)
}

#[test]
fn the_numbers_are_those_of_the_design() {
    let settings = Settings::default();
    let health = &settings.health;
    assert_eq!(health.start_concurrency.value, StartConcurrency::AtMost(3));
    assert_eq!(health.ping_interval.value.as_secs(), 30);
    assert_eq!(health.ping_timeout.value.as_secs(), 5);
    assert_eq!(health.max_failures.value, 5);
    assert_eq!(settings.tool_search.mode.value, ToolSearchMode::Auto);
    assert!((settings.tool_search.threshold_percent.value - 10.0).abs() < f64::EPSILON);
    assert_eq!(settings.tool_search.min_context_window.value, 32_000);
    assert!(settings.tool_search.on_list_changed.value);
    assert_eq!(merge(&[]), (settings, Vec::new()));
}

#[test]
fn for_each_key_the_most_important_file_counts() {
    let (settings, problems) = merge(&[
        layer("local", LayerTrust::Approved, "[health]\nmax_failures = 1"),
        layer(
            "user",
            LayerTrust::Own,
            "model = \"m\"\n[health]\nmax_failures = 2\nstart_concurrency = \"all\"",
        ),
    ]);
    assert_eq!(problems, []);
    assert_eq!(settings.health.max_failures.value, 1);
    assert_eq!(
        settings.health.max_failures.from.unwrap().to_string(),
        "local.toml:2 (local)"
    );
    assert_eq!(
        settings.health.start_concurrency.value,
        StartConcurrency::All
    );
    assert_eq!(
        settings.model.unwrap().from.unwrap().to_string(),
        "user.toml:1 (user)"
    );
}

#[test]
fn settings_about_signing_in_tell_where_they_are_written() {
    let (settings, problems) = merge(&[
        layer("user", LayerTrust::Own, "[oauth]\ncallback_port = 8080"),
        layer(
            "enterprise",
            LayerTrust::Organization,
            "[oauth]\ncallback_port = 9090\nclient_metadata_url = \"https://h/client.json\"",
        ),
    ]);
    assert_eq!(problems, []);
    let OAuthSettings {
        client_metadata_url,
        callback_port,
    } = settings.oauth;
    let (url, port) = (client_metadata_url.unwrap(), callback_port.unwrap());
    assert_eq!(url.value, "https://h/client.json");
    assert_eq!(
        url.from.unwrap().to_string(),
        "enterprise.toml:3 (enterprise)"
    );
    assert_eq!(port.value, 8080);
    assert_eq!(port.from.unwrap().to_string(), "user.toml:2 (user)");
}

#[test]
fn a_provider_counts_as_a_whole() {
    let (settings, _) = merge(&[
        layer(
            "local",
            LayerTrust::Approved,
            "[providers.p]\nkind = \"openai\"\nbase_url = \"https://other/\"",
        ),
        layer(
            "user",
            LayerTrust::Own,
            "[providers.p]\nkind = \"openai\"\napi_key_env = \"KEY\"\n[models.m]\nvision = true",
        ),
    ]);
    let provider = settings.providers.get("p").unwrap();
    assert_eq!(provider.base_url.as_deref(), Some("https://other/"));
    assert_eq!(
        provider.api_key_env, None,
        "a key never goes to another's address"
    );
    assert_eq!(settings.models.get("m").unwrap().vision, Some(true));
}

#[test]
fn settings_of_a_work_tree_that_is_not_approved_do_not_count() {
    let (settings, problems) = merge(&[layer(
        "project",
        LayerTrust::Unapproved,
        "model = \"m\"\n[gateway]\nlisten = \"0.0.0.0:1\"\n[providers.p]\nkind = \"openai\"\n",
    )]);
    assert_eq!(settings, Settings::default());
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    assert!(!problem.is_error());
    assert!(problem.message.contains("is not approved"), "{problem}");
    let strict = "[permissions]\ndeny = [\"*\"]";
    let (_, problems) = merge(&[layer("project", LayerTrust::Unapproved, strict)]);
    assert_eq!(problems, []);
}

#[test]
fn backoff_maximum_below_the_initial_wait_names_file_and_key() {
    let problem = |layers: &[SettingsLayer]| {
        let (_, problems) = merge(layers);
        problems.first().map(ToString::to_string)
    };
    let initial = |ms| {
        layer(
            "user",
            LayerTrust::Own,
            &format!("[health]\nbackoff_initial_ms = {ms}"),
        )
    };
    let max = |ms| {
        layer(
            "local",
            LayerTrust::Approved,
            &format!("[health]\nbackoff_max_ms = {ms}"),
        )
    };
    assert_eq!(problem(&[max(500), initial(500)]), None);
    assert_eq!(
        problem(&[max(499), initial(500)]).unwrap(),
        "local.toml:2: key `health.backoff_max_ms`: backoff_max_ms (499) is less than \
         backoff_initial_ms (500)"
    );
    assert_eq!(
        problem(&[initial(10_001)]).unwrap(),
        "user.toml:2: key `health.backoff_initial_ms`: backoff_max_ms (10000) is less than \
         backoff_initial_ms (10001)"
    );
}

#[test]
fn every_key_of_the_tables_is_read_into_the_settings() {
    fn sample(key: &SettingKey) -> String {
        match &key.kind {
            SettingKind::Text => "\"some text\"".to_owned(),
            SettingKind::OneOf(words) => format!("\"{}\"", words.last().unwrap()),
            SettingKind::Boolean => "false".to_owned(),
            SettingKind::Seconds
            | SettingKind::Count
            | SettingKind::Percent
            | SettingKind::Between(..)
            | SettingKind::Multiplier
            | SettingKind::Price => "7".to_owned(),
            SettingKind::Directories => "[\"/x\"]".to_owned(),
            SettingKind::CountOrAll => "\"all\"".to_owned(),
            SettingKind::SearchMode => "\"auto:7\"".to_owned(),
            SettingKind::Listen => "\"localhost:7\"".to_owned(),
            SettingKind::HttpUrl | SettingKind::SafeUrl => "\"https://example.com\"".to_owned(),
            SettingKind::SecretReference => "\"keyring:x\"".to_owned(),
            SettingKind::DocumentUrl => "\"https://example.com/client.json\"".to_owned(),
            SettingKind::Port => "77".to_owned(),
            SettingKind::Rules | SettingKind::TextList | SettingKind::Words => "[\"*\"]".to_owned(),
            SettingKind::Word => "\"word\"".to_owned(),
            SettingKind::Hosts => "[\"example.com\"]".to_owned(),
            SettingKind::Origins | SettingKind::Issuers => "[\"https://example.com\"]".to_owned(),
            SettingKind::SomeOf(words) => format!("[\"{}\"]", words.last().unwrap()),
            SettingKind::Store => "\"memory\"".to_owned(),
            SettingKind::Answers => "{ shell = \"deny\" }".to_owned(),
            other => panic!("{} is {other:?}", key.name),
        }
    }
    /// What stands before a key so that the rest can be understood.
    fn start(path: &str, key: &str) -> String {
        match (path, key) {
            ("", _) => String::new(),
            ("providers.x", "kind") => "[providers.x]".to_owned(),
            ("providers.x", _) => "[providers.x]\nkind = \"sampling\"".to_owned(),
            ("gateway.oauth", "issuers") => "[gateway.oauth]\nresource = \"https://r\"".to_owned(),
            ("gateway.oauth", "resource") => {
                "[gateway.oauth]\nissuers = [\"https://i\"]".to_owned()
            }
            ("gateway.oauth", _) => {
                "[gateway.oauth]\nissuers = [\"https://i\"]\nresource = \"https://r\"".to_owned()
            }
            (path, _) => format!("[{path}]"),
        }
    }
    fn collect(keys: &'static [SettingKey], path: &str, texts: &mut Vec<(String, String)>) {
        for key in keys {
            let below = match path {
                "" => key.name.to_owned(),
                path => format!("{path}.{}", key.name),
            };
            match &key.kind {
                SettingKind::Table(keys) => collect(keys, &below, texts),
                SettingKind::Named(keys) => collect(keys, &format!("{below}.x"), texts),
                _ => {
                    let start = start(path, key.name);
                    let text = format!("{start}\n{} = {}", key.name, sample(key));
                    texts.push((text, start));
                }
            }
        }
    }
    let mut texts = Vec::new();
    collect(SETTINGS, "", &mut texts);
    assert!(texts.len() > 40, "{}", texts.len());
    for (text, without) in texts {
        let of = |text: &str| {
            let root = parse(text, Format::Toml).unwrap();
            let origin = Origin::file("user.toml");
            let (settings, _) = parse_settings(&root, &origin, SettingsFile::Alone);
            let (scope, trust) = ("user", LayerTrust::Own);
            merge(&[SettingsLayer {
                scope,
                trust,
                settings,
            }])
            .0
        };
        let _understood = layer("user", LayerTrust::Own, &text);
        assert_ne!(of(&text), of(&without), "{text}");
    }
}

proptest! {
    /// Against the simplest model: the first file that has the key.
    #[test]
    fn merging_finds_the_first_file_that_says_something(
        files in proptest::collection::vec(
            proptest::collection::btree_map(0..4_usize, 1..100_u64, 0..4), 0..5),
    ) {
        const KEYS: [&str; 4] =
            ["conversations_days", "results_days", "logs_days", "audit_days"];
        let text = |file: &BTreeMap<usize, u64>| {
            let lines = file.iter().map(|(key, value)| format!("{} = {value}\n", KEYS[*key]));
            format!("[retention]\n{}", lines.collect::<String>())
        };
        let layers: Vec<_> = files.iter().map(|file| layer("user", LayerTrust::Own, &text(file))).collect();
        let retention = merge(&layers).0.retention;
        let found = [
            retention.conversations_days, retention.results_days,
            retention.logs_days, retention.audit_days,
        ];
        for (key, found) in found.into_iter().enumerate() {
            let expected = files.iter().find_map(|file| file.get(&key)).copied();
            prop_assert_eq!(found.map(|setting| setting.value), expected);
        }
    }
}
