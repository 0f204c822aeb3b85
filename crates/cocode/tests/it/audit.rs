//! The audit log: written by a gateway whose clients say who they are, shown and checked from the command
//! line.

use std::fs;
use std::path::PathBuf;

use cocode_testkit::Script;
use serde_json::Value;

use crate::gateway::Running;
use crate::harness::{Finished, mcp_at};
use crate::home::Home;
use crate::status::entry;

/// Calls the tool of a gateway's only server, as the one with this token.
fn call(url: &str, token: &str, message: &str) -> Finished {
    let header = format!("Authorization: Bearer {}", token.trim());
    let message = format!("message={message}");
    mcp_at(
        &["call", "mcp__one__echo", &message, "--header", &header],
        url,
    )
}

/// A home in which two people have made calls through a gateway.
fn used() -> Home {
    let home = Home::new();
    let server = Script::new().stdio();
    home.user_file("mcp.toml", &entry("one", &server));
    let tokens =
        ["ana", "ci"].map(|name| home.run(["gateway", "token", "add", name, "-q"]).clean());
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["one"]);
    for (token, message) in [
        (&tokens[0], "hunter2"),
        (&tokens[1], "b"),
        (&tokens[0], "c"),
    ] {
        call(gateway.url(), token, message).with_code(0);
    }
    assert_eq!(gateway.end("-TERM").0, Some(0));
    home
}

fn directory(home: &Home) -> PathBuf {
    home.home().join("state/audit")
}

/// The lines of the log, with the file that they are in.
fn written(home: &Home) -> (PathBuf, Vec<String>) {
    let files = fs::read_dir(directory(home)).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "jsonl"));
    let [file] = files.as_slice() else {
        panic!("{files:?}");
    };
    let text = fs::read_to_string(file).unwrap();
    (file.clone(), text.lines().map(str::to_owned).collect())
}

fn shown(home: &Home, words: &[&str]) -> Vec<Value> {
    let words = ["audit", "show", "--json"].iter().chain(words);
    let text = home.run(words).clean();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn who_called_what_is_written_down_without_what_they_said() {
    let home = used();
    let all = shown(&home, &[]);
    let (started, entries) = all.split_first().unwrap();
    assert_eq!(
        started["method"], "audit",
        "what writes the log says so first"
    );
    let who: Vec<_> = entries.iter().map(|entry| &entry["principal"]).collect();
    assert_eq!(who, ["ana", "ci", "ana"], "the newest is the last");
    for entry in entries {
        assert_eq!(entry["method"], "tools/call");
        assert_eq!(
            (&entry["server"], &entry["name"]),
            (&"one".into(), &"echo".into())
        );
        assert_eq!(entry["outcome"], "ok");
    }
    let (_, lines) = written(&home);
    assert!(
        !lines.concat().contains("hunter2"),
        "arguments are not written"
    );
    assert_eq!(shown(&home, &["--principal", "ci"]).len(), 1);
    assert_eq!(shown(&home, &["--limit", "2"]).len(), 2);
    assert_eq!(shown(&home, &["--server", "two"]).len(), 0);
    let table = home.run(["audit", "show"]).clean();
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.contains("tools/call echo"), "{table}");
}

#[test]
fn a_log_that_is_as_it_was_written_is_intact() {
    let home = used();
    let checked = home.run(["audit", "verify"]).with_code(0);
    assert_eq!(checked.stdout, "intact: 4 entries in 1 file\n");
    let known = checked
        .stderr
        .split("--expect ")
        .nth(1)
        .unwrap()
        .trim()
        .to_owned();
    let report = home.json(&["audit", "verify", "--expect", &known]);
    assert_eq!(report["intact"], true);
    assert_eq!(
        (&report["entries"], &report["last"]["entry"]),
        (&4.into(), &4.into())
    );
    // As a copy, too, and by whatever path.
    let copy = home.project().join("copy");
    fs::create_dir(&copy).unwrap();
    let (file, _) = written(&home);
    fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    let checked = home.run(["audit", "verify", "copy"]).with_code(0);
    assert!(
        checked.stdout.starts_with("intact: 4 entries"),
        "{}",
        checked.stdout
    );
    for (words, code) in [
        (&["audit", "verify", "nowhere"][..], "file-error"),
        (&["audit", "verify", "--expect", "3"], "invalid-usage"),
        (&["audit", "show", "--limit", "0"], "invalid-usage"),
    ] {
        let refused = home.run(words.iter().chain(&["--json"])).with_code(2);
        assert_eq!(refused.error()["code"], code, "{words:?}");
    }
}

#[test]
fn whatever_is_done_to_a_log_is_noticed() {
    let home = used();
    let (file, lines) = written(&home);
    let whole = format!("{}\n", lines.join("\n"));
    let head = home.json(&["audit", "verify"])["last"].clone();
    let known = format!("{}:{}", head["entry"], head["hash"].as_str().unwrap());
    let changed = whole.replacen("\"ci\"", "\"bob\"", 1);
    let of = |places: &[usize]| {
        let lines = places.iter().map(|place| format!("{}\n", lines[*place]));
        lines.collect::<String>()
    };
    let removed = of(&[0, 1, 3]);
    let swapped = of(&[0, 2, 1, 3]);
    let put_in = of(&[0, 0, 1, 2, 3]);
    let cut = of(&[0, 1, 2]);
    for (text, part) in [
        (&changed, "is not what was written"),
        (&removed, "is missing"),
        (&swapped, "not in its place"),
        (&put_in, "was put in"),
        (&cut, "is known to have been there"),
    ] {
        fs::write(&file, text).unwrap();
        let found = home
            .run(["audit", "verify", "--expect", &known])
            .with_code(1);
        found.complains(&["audit-broken"]);
        assert!(found.stdout.contains(part), "{part}: {}", found.stdout);
        let report = home.run(["audit", "verify", "--expect", &known, "--json"]);
        let report = report.with_code(1);
        assert_eq!(report.error()["code"], "audit-broken");
        let report: Value = serde_json::from_str(&report.stdout).unwrap();
        assert_eq!(report["intact"], false);
        assert!(!report["problems"].as_array().unwrap().is_empty());
    }
    fs::write(&file, whole).unwrap();
    home.run(["audit", "verify", "--expect", &known])
        .with_code(0);
}

#[test]
fn where_nothing_was_written_nothing_is_wrong() {
    let home = Home::new();
    home.run(["audit", "show"])
        .with_code(0)
        .complains(&["nothing was written down"]);
    let checked = home.run(["audit", "verify"]).with_code(0);
    assert_eq!(checked.stdout, "intact: 0 entries in 0 files\n");
}
