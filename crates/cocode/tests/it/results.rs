//! Results that were kept: listed, shown page by page, searched, filtered and removed.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use cocode_client::{RawJson, ResultHandle, ResultStore, ResultStoreOptions};
use serde_json::{Value, json};

use crate::home::Home;
use crate::terminal::{open, pseudo_terminal, watch};

fn directory(home: &Home) -> PathBuf {
    home.home().join("state/results")
}

fn keep_raw(home: &Home, tool: &str, raw: &str) -> String {
    let store = ResultStore::open(ResultStoreOptions::new(directory(home)));
    let raw = RawJson::parse(raw.to_owned()).unwrap();
    store.keep("files", tool, &raw).unwrap().to_string()
}

fn keep(home: &Home, tool: &str, result: &Value) -> String {
    keep_raw(home, tool, &result.to_string())
}

fn of_text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// `line 1`, `line 2` and so on.
fn numbered(lines: usize) -> String {
    let lines: Vec<String> = (1..=lines).map(|line| format!("line {line}\n")).collect();
    lines.concat()
}

fn make_older(home: &Home, handle: &str, age: Duration) {
    let path = directory(home).join(format!("{handle}.result"));
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn results_are_listed_newest_first_and_removed() {
    let home = Home::new();
    let empty = home.mcp(&["result", "list"]).with_code(0);
    assert_eq!(empty.stdout, "");
    assert!(
        empty.stderr.contains("no results are kept"),
        "{}",
        empty.stderr
    );
    assert!(!directory(&home).exists());
    let old = keep(&home, "read", &of_text("one"));
    make_older(&home, &old, Duration::from_mins(5));
    let new = keep(&home, "evil\u{1b}[31m", &of_text("two"));
    let listed = home.mcp(&["result", "ls"]).clean();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].starts_with("HANDLE       SERVER  TOOL"),
        "{listed}"
    );
    assert!(
        lines[1].starts_with(&new) && lines[1].ends_with("just now"),
        "{listed}"
    );
    assert!(
        lines[2].starts_with(&old) && lines[2].ends_with("5 minutes ago"),
        "{listed}"
    );
    assert!(!listed.contains('\u{1b}'), "{listed:?}");
    let listed = home.json(&["mcp", "result", "list"]);
    assert_eq!(listed["results"][1]["handle"], old.as_str());
    assert_eq!(listed["results"][1]["tool"], "read");
    assert!(listed["results"][1]["kept_at"].is_u64());
    assert_eq!(
        home.mcp(&["result", "rm", &old]).clean(),
        "removed 1 result\n"
    );
    let gone = home.mcp(&["result", "rm", &new, &old]).with_code(2);
    gone.complains(&["no result is kept as", "unknown-result"]);
    // Nothing was removed, because not everything could be.
    assert_eq!(
        home.json(&["mcp", "result", "list"])["results"][0]["handle"],
        new.as_str()
    );
    let all = home.mcp(&["result", "rm", "--all"]).clean();
    assert!(all.starts_with("removed 1 result ("), "{all}");
    home.mcp(&["result", "rm"]).with_code(2);
    assert_eq!(
        home.json(&["mcp", "result", "rm", "--all"]),
        json!({"removed": 0})
    );
}

#[test]
fn settings_say_how_long_results_are_kept() {
    let home = Home::new();
    home.user_file("config.toml", "[retention]\nresults_days = 1\n");
    let old = keep(&home, "read", &of_text("one"));
    let new = keep(&home, "read", &of_text("two"));
    make_older(&home, &old, Duration::from_hours(25));
    make_older(&home, &new, Duration::from_hours(23));
    let listed = home.json(&["mcp", "result", "list"]);
    let listed = listed["results"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["handle"], new.as_str());
    let mode = directory(&home).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_result_is_shown_page_by_page() {
    let home = Home::new();
    let handle = keep(&home, "read", &of_text(&numbered(10)));
    assert_eq!(home.mcp(&["result", "show", &handle]).clean(), numbered(10));
    let first = home
        .mcp(&["result", "show", &handle, "--lines", "4"])
        .with_code(0);
    assert_eq!(first.stdout, numbered(4));
    assert_eq!(
        first.stderr,
        "page 1 of 3: lines 1 to 4 of 10, go on with --page 2\n"
    );
    let last = home
        .mcp(&["result", "show", &handle, "--lines", "4", "--page", "3"])
        .with_code(0);
    assert_eq!(last.stdout, "line 9\nline 10\n");
    assert_eq!(last.stderr, "page 3 of 3: lines 9 to 10 of 10\n");
    let none = home
        .mcp(&["result", "show", &handle, "--lines", "4", "--page", "4"])
        .with_code(2);
    none.complains(&["there is no page 4: the last is 3"]);
    let page = home.json(&["mcp", "result", "show", &handle, "-n", "4", "-p", "2"]);
    assert_eq!(
        page,
        json!({
            "handle": handle, "page": 2, "pages": 3, "first_line": 5, "last_line": 8, "lines": 10,
            "text": "line 5\nline 6\nline 7\nline 8\n",
        })
    );
}

#[test]
fn what_is_shown_at_once_is_bounded_unless_all_is_asked_for() {
    let home = Home::new();
    let text = numbered(20_000);
    let handle = keep(&home, "read", &of_text(&text));
    let first = home.mcp(&["result", "show", &handle]).with_code(0);
    assert!(first.stdout.len() <= 20_000 && text.starts_with(&first.stdout));
    assert!(
        first.stderr.contains("go on with --page 2"),
        "{}",
        first.stderr
    );
    assert_eq!(
        home.mcp(&["result", "show", &handle, "--all"]).clean(),
        text
    );
}

#[test]
fn what_the_server_sent_is_printed_byte_for_byte() {
    let home = Home::new();
    let raw = r#"{"x":1.50, "content":[{"type":"text","text":"{\"b\":1}"}]}"#;
    let handle = keep_raw(&home, "read", raw);
    let printed = home.mcp(&["result", "show", &handle, "--raw"]).clean();
    assert_eq!(printed, format!("{raw}\n"));
    let printed = home
        .run(["mcp", "result", "show", &handle, "--json"])
        .clean();
    assert_eq!(printed, format!("{raw}\n"));
    let text = home.mcp(&["result", "show", &handle]).clean();
    assert_eq!(text, "{\n  \"b\": 1\n}\n");
}

#[test]
fn a_terminal_does_not_obey_what_a_result_says() {
    let home = Home::new();
    let handle = keep(&home, "read", &of_text("red \u{1b}[31m and loud \u{7}"));
    for words in [&["show"][..], &["show", "--all"], &["grep"]] {
        let (verb, options) = words.split_first().unwrap();
        let mut command = home.command(["mcp", "result", verb, &handle].iter().chain(options));
        if *verb == "grep" {
            command.arg("red");
        }
        let (person, name) = pseudo_terminal();
        command
            .args(["--color", "never"])
            .stdin(Stdio::null())
            .stdout(open(&name))
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        let seen = watch(person, Vec::new()).join().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{seen}");
        assert!(
            seen.contains("red \u{fffd}[31m and loud \u{fffd}"),
            "{seen:?}"
        );
    }
}

#[test]
fn lines_are_found_in_the_text_that_is_shown() {
    let home = Home::new();
    let handle = keep(
        &home,
        "read",
        &of_text(r#"{"names":["Anna","bert","ANNA"]}"#),
    );
    let found = home.mcp(&["result", "grep", &handle, "Ann"]).clean();
    assert_eq!(found, "3:    \"Anna\",\n");
    let found = home
        .mcp(&["result", "grep", &handle, "^ +\"anna", "-i", "-C", "1"])
        .clean();
    assert_eq!(
        found,
        "2-  \"names\": [\n3:    \"Anna\",\n4-    \"bert\",\n5:    \"ANNA\"\n6-  ]\n"
    );
    let nothing = home.mcp(&["result", "grep", &handle, "carl"]).with_code(1);
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("", ""));
    let json = home.json(&["mcp", "result", "grep", &handle, "bert"]);
    assert_eq!(
        json,
        json!({"handle": handle, "matches": 1, "lines": [
            {"line": 4, "text": "    \"bert\",", "matches": true},
        ]})
    );
    let bad = home.mcp(&["result", "grep", &handle, "a("]).with_code(2);
    bad.complains(&["the pattern is no regular expression", "invalid-usage"]);
}

#[test]
fn groups_of_found_lines_are_apart_and_not_without_end() {
    let home = Home::new();
    let handle = keep(&home, "read", &of_text(&numbered(1_000)));
    let found = home
        .mcp(&["result", "grep", &handle, "[15]00$", "-C", "1"])
        .clean();
    assert_eq!(
        found,
        "99-line 99\n100:line 100\n101-line 101\n--\n\
         499-line 499\n500:line 500\n501-line 501\n"
    );
    let found = home.mcp(&["result", "grep", &handle, "line"]).with_code(0);
    assert_eq!(found.stdout.lines().count(), 200);
    found.complains(&["only the first 200 of 1000 lines are shown"]);
    let found = home
        .mcp(&["result", "grep", &handle, "line", "-m", "2"])
        .with_code(0);
    assert_eq!(found.stdout, "1:line 1\n2:line 2\n");
    let found = home
        .mcp(&["result", "grep", &handle, "[15]00$", "-C", "1", "-m", "1"])
        .with_code(0);
    assert_eq!(found.stdout, "99-line 99\n100:line 100\n101-line 101\n");
}

#[test]
fn json_is_filtered_wherever_the_result_has_it() {
    let home = Home::new();
    let structured = json!({
        "content": [{"type": "text", "text": "2 items"}],
        "structuredContent": {"items": [{"n": 1, "name": "a"}, {"n": 2, "name": "b"}]},
        "_meta": {"x": 1},
    });
    let handle = keep(&home, "read", &structured);
    let jq = |words: &[&str]| {
        let verb = ["result", "jq", handle.as_str()];
        home.mcp(&[&verb, words].concat())
    };
    assert_eq!(jq(&[".items[].name"]).clean(), "\"a\"\n\"b\"\n");
    assert_eq!(jq(&["-r", ".items[].name"]).clean(), "a\nb\n");
    assert_eq!(
        jq(&["-c", ".items[0]"]).clean(),
        "{\"n\":1,\"name\":\"a\"}\n"
    );
    assert_eq!(
        jq(&[".items[1]"]).clean(),
        "{\n  \"n\": 2,\n  \"name\": \"b\"\n}\n"
    );
    assert_eq!(jq(&["--whole", "._meta.x"]).clean(), "1\n");
    assert_eq!(
        jq(&[".items[0]", "--json"]).clean(),
        "{\"n\":1,\"name\":\"a\"}\n"
    );
    assert_eq!(jq(&["empty"]).clean(), "");
    assert!(jq(&[]).clean().starts_with("{\n  \"items\": ["));
    let handle = keep(&home, "read", &of_text("[1, 2, 3]"));
    assert_eq!(home.mcp(&["result", "jq", &handle, "add"]).clean(), "6\n");
    let handle = keep(&home, "read", &of_text("no json"));
    let kind = home
        .mcp(&["result", "jq", &handle, ".content[0].type"])
        .clean();
    assert_eq!(kind, "\"text\"\n");
}

#[test]
fn a_filter_that_cannot_be_used_says_why() {
    let home = Home::new();
    let handle = keep(&home, "read", &of_text("[1, 2, 3]"));
    let jq = |filter: &str| home.mcp(&["result", "jq", &handle, filter]).with_code(2);
    jq(".a |").complains(&[
        "the filter is not understood",
        "term is expected at its end",
        "invalid-filter",
    ]);
    jq("nosuch").complains(&["there is no filter `nosuch`"]);
    let failed = jq(".[0], .a");
    assert_eq!(failed.stdout, "1\n");
    failed.complains(&["the filter failed", "cannot index"]);
    let error = home
        .run(["mcp", "result", "jq", &handle, ".a", "--json"])
        .with_code(2)
        .error();
    assert_eq!(error["code"], "invalid-filter");
}

#[test]
fn a_handle_is_known_by_its_beginning() {
    let home = Home::new();
    let handle = keep(&home, "read", &of_text("one"));
    let beginning: String = handle.chars().take(6).collect();
    assert_eq!(home.mcp(&["result", "show", &beginning]).clean(), "one\n");
    for other in ["rab00000001", "rab00000002"] {
        let other: ResultHandle = other.parse().unwrap();
        let from = directory(&home).join(format!("{handle}.result"));
        std::fs::copy(from, directory(&home).join(format!("{other}.result"))).unwrap();
    }
    home.mcp(&["result", "show", "rab"])
        .with_code(2)
        .complains(&[
            "several results begin with `rab`",
            "did you mean `rab00000001` or `rab00000002`?",
            "unknown-result",
        ]);
    for wrong in ["rffff", "../../config.toml", "nonsense"] {
        for verb in ["show", "grep", "jq", "rm"] {
            let mut words = vec!["result", verb, wrong];
            if verb == "grep" {
                words.push("x");
            }
            if wrong == "rffff" && handle.starts_with(wrong) {
                continue;
            }
            home.mcp(&words).with_code(2).complains(&["unknown-result"]);
        }
    }
}

#[test]
fn a_damaged_result_is_told_and_hides_no_other() {
    let home = Home::new();
    let handle = keep(&home, "read", &of_text("one"));
    std::fs::write(directory(&home).join("r0000000000.result"), "half").unwrap();
    let listed = home.json(&["mcp", "result", "list"]);
    assert_eq!(listed["results"].as_array().unwrap().len(), 1);
    assert_eq!(listed["results"][0]["handle"], handle.as_str());
    let damaged = home.mcp(&["result", "show", "r0000000000"]).with_code(2);
    damaged.complains(&["the result `r0000000000` is damaged", "file-error"]);
}
