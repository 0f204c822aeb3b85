//! From entries to specifications: what is refused, and where.

use std::collections::BTreeMap;

use super::*;
use crate::check_entry;

fn variables(name: &str) -> Option<String> {
    (name == "HOME").then(|| "/h".to_owned())
}

fn program() -> Entry {
    Entry {
        command: Some("x".to_owned()),
        ..Entry::default()
    }
}

/// The keys that problems are about.
fn refused(name: &str, entry: &Entry) -> Vec<String> {
    let problems = check_entry(name, entry, &variables).unwrap_err();
    assert!(problems.iter().all(Problem::is_error));
    let keys = problems.into_iter().map(|problem| problem.key);
    keys.map(Option::unwrap_or_default).collect()
}

#[test]
fn times_of_single_tools_go_along() {
    let entry = Entry {
        tool_timeouts_sec: BTreeMap::from([("a*".to_owned(), Seconds(1.5))]),
        ..program()
    };
    let spec = check_entry("x", &entry, &variables).unwrap();
    assert_eq!(spec.timeout_of("ab"), Duration::from_millis(1500));
    assert_eq!(spec.timeout_of("b"), DEFAULT_TOOL_TIMEOUT);
}

#[test]
fn annotations_are_trusted_only_if_the_entry_says_so() {
    for (given, is_trusted) in [(None, false), (Some(false), false), (Some(true), true)] {
        let entry = Entry {
            trust_annotations: given,
            ..program()
        };
        let spec = check_entry("x", &entry, &variables).unwrap();
        assert_eq!(spec.trust_annotations, is_trusted);
    }
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a table of everything that is refused"
)]
fn whatever_cannot_be_used_is_named() {
    let text = |text: &str| Some(text.to_owned());
    let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), Text::from(value))]);
    let remote = || Entry {
        url: text("https://h"),
        ..Entry::default()
    };
    assert_eq!(refused("", &program()), [""]);
    assert_eq!(refused("a\u{1b}", &program()), [""]);
    for (entry, key) in vec![
        (Entry::default(), "command"),
        (
            Entry {
                url: text("https://h"),
                ..program()
            },
            "url",
        ),
        (
            Entry {
                protocol: text("x"),
                ..program()
            },
            "protocol",
        ),
        (
            Entry {
                isolation: text("x"),
                ..program()
            },
            "isolation",
        ),
        (
            Entry {
                sandbox: text("read-onyl"),
                ..program()
            },
            "sandbox",
        ),
        (
            Entry {
                command: text("${X}"),
                ..Entry::default()
            },
            "command",
        ),
        (
            Entry {
                command: text("a\0"),
                ..Entry::default()
            },
            "command",
        ),
        (
            Entry {
                args: vec!["a".to_owned(), "${X}".to_owned()],
                ..program()
            },
            "args[1]",
        ),
        (
            Entry {
                args: vec!["keyring:x".to_owned()],
                ..program()
            },
            "args[0]",
        ),
        (
            Entry {
                cwd: text("${X}"),
                ..program()
            },
            "cwd",
        ),
        (
            Entry {
                env: map("A", "a\0"),
                ..program()
            },
            "env.A",
        ),
        (
            Entry {
                env: map("A=B", "a"),
                ..program()
            },
            "env.A=B",
        ),
        (
            Entry {
                env_vars: vec!["sk-123".to_owned()],
                ..program()
            },
            "env_vars",
        ),
        (
            Entry {
                headers: map("A", "a\r\nB: c"),
                ..remote()
            },
            "headers.A",
        ),
        (
            Entry {
                headers: map("A B", "a"),
                ..remote()
            },
            "headers.A B",
        ),
        (
            Entry {
                bearer_token_env_var: text("${X}"),
                ..remote()
            },
            "bearer_token_env_var",
        ),
        (
            Entry {
                url: text("nowhere"),
                ..Entry::default()
            },
            "url",
        ),
        (
            Entry {
                url: text("ftp://h"),
                ..Entry::default()
            },
            "url",
        ),
        (
            Entry {
                url: text("https://${keyring:x}"),
                ..Entry::default()
            },
            "url",
        ),
        (
            Entry {
                url: text("ws://h"),
                transport: Some(Transport::Sse),
                ..Entry::default()
            },
            "url",
        ),
    ] {
        assert_eq!(refused("s", &entry), [key], "{entry:?}");
    }
}

#[test]
fn the_home_directory_is_filled_in_where_paths_are() {
    let entry = Entry {
        command: Some("~/bin/x".to_owned()),
        args: vec!["~/y".to_owned()],
        cwd: Some("~/z".to_owned()),
        ..Entry::default()
    };
    let spec = check_entry("s", &entry, &variables).unwrap();
    let Reach::Program(program) = spec.reach else {
        panic!("it is a program");
    };
    assert_eq!(program.command, "/h/bin/x");
    assert_eq!(program.args, ["~/y"]);
    assert_eq!(program.cwd.as_deref(), Some(Path::new("/h/z")));
    let problems = check_entry(
        "s",
        &Entry {
            command: Some("x".to_owned()),
            ..entry
        },
        &|_| None,
    );
    let problems = problems.unwrap_err();
    assert_eq!(
        problems.first().and_then(|problem| problem.key.as_deref()),
        Some("cwd")
    );
}
