//! `edit` and `write`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use crate::House;

fn mode(house: &House, path: &str) -> u32 {
    fs::metadata(house.inside(path)).unwrap().mode() & 0o7777
}

fn chmod(house: &House, path: &str, mode: u32) {
    fs::set_permissions(house.inside(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn names(house: &House) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(house.inside("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_are_made_with_their_directories_and_replaced() {
    let house = House::new();
    let arguments = json!({ "path": "a/b/c.txt", "content": "one" });
    assert_eq!(
        house.text("write", arguments).await,
        "created a/b/c.txt (3 bytes)"
    );
    let output = house
        .call("write", json!({ "path": "a/b/c.txt", "content": "" }))
        .await
        .unwrap();
    assert_eq!(
        output.structured,
        Some(json!({ "path": "a/b/c.txt", "bytes": 0, "created": false }))
    );
    assert_eq!(fs::read(house.inside("a/b/c.txt")).unwrap(), b"");
    assert_eq!(fs::read_dir(house.inside("a/b")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_that_is_replaced_keeps_its_mode() {
    let house = House::new();
    for mode_before in [0o755, 0o600, 0o664] {
        house.file("a", "old");
        chmod(&house, "a", mode_before);
        house
            .text("write", json!({ "path": "a", "content": "new" }))
            .await;
        assert_eq!(mode(&house, "a"), mode_before);
        house
            .text(
                "edit",
                json!({ "path": "a", "old_string": "new", "new_string": "newer" }),
            )
            .await;
        assert_eq!(mode(&house, "a"), mode_before);
    }
    assert_eq!(names(&house), ["a"]);
}

#[tokio::test]
async fn a_file_that_is_replaced_lends_nobodys_rights() {
    let house = House::new();
    house.file("a", "old");
    chmod(&house, "a", 0o6755);
    house
        .text("write", json!({ "path": "a", "content": "new" }))
        .await;
    assert_eq!(mode(&house, "a"), 0o755);
}

#[tokio::test]
async fn what_is_read_only_or_no_file_is_not_replaced() {
    let house = House::new();
    house.file("locked", "old");
    chmod(&house, "locked", 0o444);
    fs::create_dir(house.inside("dir")).unwrap();
    for (path, expected) in [
        ("locked", "cannot write `locked`: permission denied"),
        ("dir", "cannot write `dir`: it is a directory"),
        (".", "cannot write `.`: it is a directory"),
        (
            "locked/a",
            "cannot open `locked/a`: a part of the path is not a directory",
        ),
    ] {
        let refusal = house
            .refusal("write", json!({ "path": path, "content": "new" }))
            .await;
        assert_eq!(refusal, expected);
    }
    assert_eq!(fs::read(house.inside("locked")).unwrap(), b"old");
    assert_eq!(names(&house), ["dir", "locked"]);
}

#[tokio::test]
async fn text_that_is_there_once_is_replaced() {
    let house = House::new();
    house.file("a.txt", b"one\ntwo\xff\nthree\n");
    let output = house
        .call(
            "edit",
            json!({ "path": "a.txt", "old_string": "e\ntwo", "new_string": "E 2" }),
        )
        .await
        .unwrap();
    assert_eq!(
        output.structured,
        Some(json!({ "path": "a.txt", "replacements": 1 }))
    );
    assert_eq!(
        fs::read(house.inside("a.txt")).unwrap(),
        b"onE 2\xff\nthree\n"
    );
}

#[tokio::test]
async fn text_that_is_not_there_once_changes_nothing() {
    let house = House::new();
    let content = "let a = 1;\n\tlet b = 1;\nlet a = 1;\n";
    house.file("a.rs", content);
    for (old, expected) in [
        (
            "let a = 1;",
            "`old_string` is 2 times in `a.rs`, at lines 1, 3; give more of its surroundings, or \
             set `replace_all`",
        ),
        ("let c", "`old_string` is not in `a.rs`"),
        (
            "let a = 1;\nlet b = 1;",
            "`old_string` is in `a.rs` only with other white space; read the file again and give \
             it exactly",
        ),
    ] {
        let arguments = json!({ "path": "a.rs", "old_string": old, "new_string": "x" });
        assert_eq!(house.refusal("edit", arguments).await, expected);
    }
    let arguments = json!({ "path": "b.rs", "old_string": "a", "new_string": "x" });
    assert_eq!(
        house.refusal("edit", arguments).await,
        "`b.rs` does not exist"
    );
    assert_eq!(fs::read_to_string(house.inside("a.rs")).unwrap(), content);
    assert_eq!(names(&house), ["a.rs"]);
}

#[tokio::test]
async fn all_places_are_replaced_when_asked_for() {
    let house = House::new();
    house.file("a", "aaa b aa");
    let arguments =
        json!({ "path": "a", "old_string": "a", "new_string": "aa", "replace_all": true });
    assert_eq!(
        house.text("edit", arguments).await,
        "edited a (5 replacements)"
    );
    assert_eq!(fs::read(house.inside("a")).unwrap(), b"aaaaaa b aaaa");
}

#[tokio::test]
async fn line_ends_of_a_file_are_kept() {
    let house = House::new();
    house.file("a", "one\r\ntwo\r\n");
    let arguments = json!({ "path": "a", "old_string": "one\ntwo", "new_string": "1\n2\n3" });
    house.text("edit", arguments).await;
    assert_eq!(fs::read(house.inside("a")).unwrap(), b"1\r\n2\r\n3\r\n");
    // Where line ends are mixed, the text is taken as it is.
    house.file("b", "one\r\ntwo\n");
    let arguments = json!({ "path": "b", "old_string": "two\n", "new_string": "2\n" });
    house.text("edit", arguments).await;
    assert_eq!(fs::read(house.inside("b")).unwrap(), b"one\r\n2\n");
}

#[tokio::test]
async fn many_edits_at_once_are_all_made() {
    let house = House::new();
    let lines = |before: char, after: char| -> Vec<String> {
        (0..32)
            .map(|number| format!("{before}{number}{after}\n"))
            .collect()
    };
    house.file("a", lines('<', '>').concat());
    let edits = (0..32).map(|number| {
        let arguments = json!({
            "path": "a",
            "old_string": format!("<{number}>"),
            "new_string": format!("[{number}]"),
        });
        house.text("edit", arguments)
    });
    futures_util::future::join_all(edits).await;
    let content = fs::read_to_string(house.inside("a")).unwrap();
    assert_eq!(content, lines('[', ']').concat());
}

#[tokio::test]
async fn what_is_too_large_is_not_written() {
    let house = House::new();
    house.file("a", "a".repeat(1_000_000));
    let arguments = json!({
        "path": "a", "old_string": "a", "new_string": "b".repeat(100), "replace_all": true,
    });
    let refusal = house.refusal("edit", arguments).await;
    assert!(refusal.ends_with("which is too large to edit"), "{refusal}");
    let content = "a".repeat(16 * 1024 * 1024 + 1);
    let message = house
        .wrong_arguments("write", json!({ "path": "b", "content": content }))
        .await;
    assert_eq!(message, "the content is longer than 16777216 bytes");
    assert_eq!(names(&house), ["a"]);
}
