//! `read`, `list`, `find`, `grep`.

use std::fs;

use cocode_tools::{Block, NoProgress, Permissions, ToolError, Workspace};
use serde_json::{Value, json};

use crate::House;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[tokio::test]
async fn only_permitted_tools_are_offered_and_run() {
    let base = tempfile::tempdir().unwrap();
    for (permissions, expected) in [
        (Permissions::default(), vec!["read", "list", "find", "grep"]),
        (
            Permissions {
                write: true,
                shell: false,
            },
            vec!["read", "list", "find", "grep", "edit", "write"],
        ),
        (
            Permissions {
                write: false,
                shell: true,
            },
            vec!["read", "list", "find", "grep", "shell"],
        ),
    ] {
        let workspace = Workspace::open(base.path(), permissions).unwrap();
        let names: Vec<_> = workspace
            .definitions()
            .iter()
            .map(|definition| definition.name)
            .collect();
        assert_eq!(names, expected);
        for tool in ["edit", "write", "shell"] {
            let arguments = json!({ "path": "a", "content": "x", "command": "touch a" });
            let result = workspace.call(tool, &arguments, &NoProgress).await;
            let is_refused =
                matches!(&result, Err(ToolError::NotPermitted { tool: name, .. }) if *name == tool);
            assert_eq!(is_refused, !expected.contains(&tool), "{result:?}");
        }
        assert!(!base.path().join("a").exists());
    }
}

#[tokio::test]
async fn definitions_are_what_a_protocol_can_serve() {
    let house = House::new();
    for definition in house.workspace.definitions() {
        let schema = &definition.input_schema;
        jsonschema::meta::validate(schema).unwrap();
        assert_eq!(schema["type"], "object", "{}", definition.name);
        assert_eq!(schema["additionalProperties"], false, "{}", definition.name);
        if let Some(schema) = &definition.output_schema {
            jsonschema::meta::validate(schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", definition.name);
        }
        assert!(!(definition.read_only && definition.destructive));
    }
}

#[tokio::test]
async fn unknown_tools_and_arguments_are_errors_of_the_caller() {
    let house = House::new();
    let unknown = house.call("delete", json!({})).await;
    assert!(
        matches!(&unknown, Err(ToolError::Unknown { tool }) if tool == "delete"),
        "{unknown:?}"
    );
    for (tool, arguments, expected) in [
        ("read", json!({}), "missing field `path`"),
        (
            "read",
            json!({ "path": 1 }),
            "invalid type: integer `1`, expected a string",
        ),
        (
            "read",
            json!({ "path": "a", "lines": 1 }),
            "unknown field `lines`",
        ),
        ("read", json!(["a"]), "they must be a JSON object"),
        (
            "list",
            json!({ "limit": -1 }),
            "invalid value: integer `-1`",
        ),
        (
            "find",
            json!({ "glob": "*", "kind": "socket" }),
            "unknown variant `socket`",
        ),
        (
            "edit",
            json!({ "path": "a", "old_string": "", "new_string": "b" }),
            "`old_string` is empty",
        ),
        ("shell", json!({ "command": " \n" }), "`command` is empty"),
        (
            "shell",
            json!({ "command": "a\0b" }),
            "`command` contains a NUL character",
        ),
    ] {
        let message = house.wrong_arguments(tool, arguments).await;
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn calls_without_arguments_are_calls_with_none() {
    let house = House::new();
    house.file("a.txt", "x");
    assert_eq!(house.text("list", Value::Null).await, "a.txt (1 byte)\n");
}

#[tokio::test]
async fn text_is_read_by_lines() {
    let house = House::new();
    house.file("a.txt", "one\ntwo\r\nthree\nfour");
    for (arguments, expected) in [
        (json!({}), "one\ntwo\nthree\nfour\n"),
        (
            json!({ "offset": 2, "limit": 2 }),
            "two\nthree\n[lines 2 to 3 of 4; go on with offset 4]",
        ),
        (json!({ "offset": 4 }), "four\n[lines 4 to 4 of 4]"),
        (
            json!({ "limit": 1, "line_numbers": true }),
            "     1\tone\n[lines 1 to 1 of 4; go on with offset 2]",
        ),
    ] {
        let mut arguments = arguments;
        arguments["path"] = json!("a.txt");
        assert_eq!(house.text("read", arguments).await, expected);
    }
    assert_eq!(
        house
            .refusal("read", json!({ "path": "a.txt", "offset": 5 }))
            .await,
        "`a.txt` has only 4 lines; there is no line 5"
    );
}

#[tokio::test]
async fn what_cannot_be_shown_is_told() {
    let house = House::new();
    house.file("empty", "");
    house.file("binary", b"a\0b");
    house.file("latin", b"caf\xe9\n");
    assert_eq!(
        house.text("read", json!({ "path": "empty" })).await,
        "[the file is empty]"
    );
    assert_eq!(
        house.refusal("read", json!({ "path": "binary" })).await,
        "`binary` is a binary file of 3 bytes and is not shown"
    );
    assert_eq!(
        house.text("read", json!({ "path": "latin" })).await,
        "caf\u{fffd}\n[what is not UTF-8 is shown as \u{fffd}]"
    );
    assert_eq!(
        house.refusal("read", json!({ "path": "missing/a" })).await,
        "`missing/a` does not exist"
    );
    assert_eq!(
        house.refusal("read", json!({ "path": "." })).await,
        "cannot read `.`: it is a directory"
    );
    assert_eq!(
        house.refusal("read", json!({ "path": "latin/a" })).await,
        "cannot open `latin/a`: a part of the path is not a directory"
    );
}

#[tokio::test]
async fn long_lines_and_long_files_are_cut_and_said_to_be() {
    let house = House::new();
    house.file("line", format!("{}\nb\n", "a".repeat(3_000_000)));
    let text = house.text("read", json!({ "path": "line" })).await;
    assert_eq!(
        text,
        format!("{}…\nb\n[1 line cut after 2000 bytes]", "a".repeat(2000))
    );
    house.file("file", "0123456789abcdef\n".repeat(50_000));
    let text = house
        .text("read", json!({ "path": "file", "limit": 20_000 }))
        .await;
    assert!(text.len() < 300_000);
    let n_lines = text.lines().count() - 1;
    let note = format!(
        "[lines 1 to {n_lines} of 50000; go on with offset {}]",
        n_lines + 1
    );
    assert_eq!(text.lines().last(), Some(note.as_str()));
}

#[tokio::test]
async fn images_are_content_of_their_own() {
    let house = House::new();
    house.file("a.png", PNG);
    house.file("fake.png", "text\n");
    let output = house
        .call("read", json!({ "path": "a.png" }))
        .await
        .unwrap();
    assert_eq!(
        output.content,
        [Block::Image {
            data_base64: "iVBORw0KGgoAAAANSUhEUg==".to_owned(),
            mime: "image/png"
        }]
    );
    assert_eq!(
        house.text("read", json!({ "path": "fake.png" })).await,
        "text\n"
    );
    let mut large = PNG.to_vec();
    large.resize(4_000_000, 0);
    house.file("large.png", large);
    let refusal = house.refusal("read", json!({ "path": "large.png" })).await;
    assert!(
        refusal.starts_with("`large.png` is an image (image/png) of more than"),
        "{refusal}"
    );
}

#[tokio::test]
async fn directories_are_listed_by_name_with_kind_and_size() {
    let house = House::new();
    house.file("b.txt", "12345");
    house.file("dir/x", "");
    house.file("a\nb", "");
    house.link("b.txt", "link");
    let output = house.call("list", json!({})).await.unwrap();
    assert_eq!(
        crate::text(&output),
        "a\\nb (0 bytes)\nb.txt (5 bytes)\ndir/\nlink -> b.txt\n"
    );
    assert_eq!(
        output.structured,
        Some(json!({
            "path": ".",
            "entries": [
                { "name": "a\nb", "kind": "file", "size": 0 },
                { "name": "b.txt", "kind": "file", "size": 5 },
                { "name": "dir", "kind": "directory" },
                { "name": "link", "kind": "symlink", "target": "b.txt" },
            ],
            "total": 4,
            "truncated": false,
        }))
    );
    assert_eq!(
        house.text("list", json!({ "limit": 1 })).await,
        "a\\nb (0 bytes)\n[3 more entries are not shown]"
    );
    assert_eq!(
        house.refusal("list", json!({ "path": "b.txt" })).await,
        "`b.txt` is a file, not a directory"
    );
}

#[tokio::test]
async fn files_are_found_by_glob_and_ignored_ones_left_out() {
    let house = House::new();
    house.file(".gitignore", "target/\n*.log\n!keep.log\n");
    house.file("src/a.rs", "");
    house.file("src/deep/b.rs", "");
    house.file("src/deep/.gitignore", "c.rs\n");
    house.file("src/deep/c.rs", "");
    house.file("target/d.rs", "");
    house.file(".git/e.rs", "");
    house.file("x.log", "");
    house.file("keep.log", "");
    for (arguments, expected) in [
        (json!({ "glob": "*.rs" }), "src/a.rs\nsrc/deep/b.rs\n"),
        (json!({ "glob": "src/*.rs" }), "src/a.rs\n"),
        (json!({ "glob": "*.log" }), "keep.log\n"),
        (
            json!({ "glob": "*.rs", "path": "src/deep" }),
            "src/deep/b.rs\n",
        ),
        (
            json!({ "glob": "*.rs", "include_ignored": true }),
            "src/a.rs\nsrc/deep/b.rs\nsrc/deep/c.rs\ntarget/d.rs\n",
        ),
        (
            json!({ "glob": "*", "kind": "directory" }),
            "src\nsrc/deep\n",
        ),
        (
            json!({ "glob": "*.rs", "limit": 1 }),
            "src/a.rs\n[only the first 1 path is shown]",
        ),
        (json!({ "glob": "*.py" }), "[nothing matches `*.py`]"),
        // What is named is searched, as by git itself.
        (json!({ "glob": "*.rs", "path": "target" }), "target/d.rs\n"),
    ] {
        assert_eq!(
            house.text("find", arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
}

#[tokio::test]
async fn lines_are_found_with_their_surroundings() {
    let house = House::new();
    house.file("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    house.file("b/c.txt", "Three\r\n");
    house.file("binary", b"three\0");
    for (arguments, expected) in [
        (json!({ "pattern": "^three$" }), "a.txt:3:three\n"),
        (
            json!({ "pattern": "three$", "ignore_case": true }),
            "a.txt:3:three\nb/c.txt:1:Three\n",
        ),
        (
            json!({ "pattern": "three", "glob": "b/*" }),
            "[nothing matches]",
        ),
        (
            json!({ "pattern": "f.", "path": "a.txt" }),
            "a.txt:4:four\na.txt:5:five\n",
        ),
        (
            json!({ "pattern": "f.", "literal": true }),
            "[nothing matches]",
        ),
        (
            json!({ "pattern": "two|three|seven", "context": 1 }),
            "a.txt-1-one\na.txt:2:two\na.txt:3:three\na.txt-4-four\n--\na.txt-6-six\na.txt:7:seven\n",
        ),
        (
            json!({ "pattern": "two|four|seven", "context": 1, "limit": 2 }),
            "a.txt-1-one\na.txt:2:two\na.txt-3-three\na.txt:4:four\na.txt-5-five\n\
             [only the first 2 matches are shown]",
        ),
        (json!({ "pattern": "e\\s+f" }), "[nothing matches]"),
        (json!({ "pattern": "\\Atwo\\z" }), "a.txt:2:two\n"),
        (json!({ "pattern": "(?-m)^two$" }), "a.txt:2:two\n"),
    ] {
        assert_eq!(
            house.text("grep", arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
    let output = house
        .call("grep", json!({ "pattern": "two", "context": 1 }))
        .await
        .unwrap();
    assert_eq!(
        output.structured,
        Some(json!({
            "matches": [{
                "path": "a.txt", "line": 2, "text": "two", "before": ["one"], "after": ["three"],
            }],
            "truncated": false,
        }))
    );
}

#[tokio::test]
async fn bad_and_costly_patterns_are_refused_or_bounded() {
    let house = House::new();
    house.file("a", format!("{}\n", "a".repeat(100_000)));
    let refusal = house.refusal("grep", json!({ "pattern": "(" })).await;
    assert!(refusal.starts_with("invalid pattern: "), "{refusal}");
    let refusal = house
        .refusal("grep", json!({ "pattern": "(a{1000}){1000}" }))
        .await;
    assert!(refusal.starts_with("invalid pattern: "), "{refusal}");
    // The classic that takes exponential time where patterns are tried one after the other.
    let text = house.text("grep", json!({ "pattern": "(a*)*b" })).await;
    assert_eq!(text, "[nothing matches]");
}

#[tokio::test]
async fn long_matching_lines_are_cut_around_the_match() {
    let house = House::new();
    house.file(
        "min.js",
        format!("{}needle{}\n", "a".repeat(100_000), "b".repeat(100_000)),
    );
    let text = house.text("grep", json!({ "pattern": "needle" })).await;
    assert!(
        text.contains("needle") && text.len() < 2_100,
        "{}",
        text.len()
    );
    assert!(text.ends_with("[1 long line is cut]"), "{text}");
}

#[tokio::test]
async fn what_a_search_leaves_out_is_told() {
    let house = House::new();
    house.file(&format!("{}deep.txt", "d/".repeat(70)), "needle\n");
    let large = fs::File::create(house.inside("large.txt")).unwrap();
    large.set_len(33 * 1024 * 1024).unwrap();
    house.file("small.txt", "needle\n");
    let output = house
        .call("grep", json!({ "pattern": "needle" }))
        .await
        .unwrap();
    assert_eq!(
        crate::text(&output),
        "small.txt:1:needle\n[1 file is too large and was not searched]\n\
         [1 directory is too deep and not searched]"
    );
    assert_eq!(output.structured.unwrap()["truncated"], true);
    // Deep places are in reach from nearer by.
    let near = "d/".repeat(30);
    let text = house
        .text("grep", json!({ "pattern": "needle", "path": near }))
        .await;
    assert_eq!(text, format!("{}deep.txt:1:needle\n", "d/".repeat(70)));
}

#[tokio::test]
async fn many_matches_are_cut_and_said_to_be() {
    let house = House::new();
    house.file("a.txt", "needle needle\n".repeat(5_000));
    house.file("b.txt", "needle\n");
    let output = house
        .call("grep", json!({ "pattern": "needle" }))
        .await
        .unwrap();
    let text = crate::text(&output);
    assert_eq!(text.lines().count(), 101);
    assert!(
        text.ends_with("a.txt:100:needle needle\n[only the first 100 matches are shown]"),
        "{text}"
    );
    let output = house
        .call("grep", json!({ "pattern": "needle", "limit": 9_999 }))
        .await
        .unwrap();
    let structured = output.structured.unwrap();
    assert_eq!(structured["matches"].as_array().unwrap().len(), 1_000);
}

#[tokio::test]
async fn lines_keep_their_numbers_far_into_a_file() {
    let house = House::new();
    // Several times what is searched at once, with lines that end anywhere in it.
    let lines: Vec<String> = (1..=50_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    house.file("a.txt", lines.concat());
    for pattern in ["line 49999$", "(?i)LINE 49999\\z"] {
        let text = house.text("grep", json!({ "pattern": pattern })).await;
        assert_eq!(text, "a.txt:49999:line 49999\n");
    }
}

#[test]
fn calls_can_be_made_from_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync>(_: &T) {}
    let house = House::new();
    let arguments = json!({});
    is_shared(&house.workspace);
    is_send(&house.workspace.call("list", &arguments, &NoProgress));
}
