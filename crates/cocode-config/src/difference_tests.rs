//! What a difference shows, and what it never shows.

use super::*;
use crate::entry::{Entry, Text};

fn entry() -> Entry {
    Entry {
        command: Some("npx".to_owned()),
        args: vec!["-y".to_owned(), "server".to_owned()],
        env: BTreeMap::from([
            ("TOKEN".to_owned(), Text::from("hunter2")),
            ("OTHER".to_owned(), Text::from("keyring:other")),
        ]),
        ..Entry::default()
    }
}

fn between(before: &Entry, after: &Entry) -> String {
    Difference::between(&before.lines(), &after.lines()).to_string()
}

#[test]
fn the_same_has_no_difference() {
    let difference = Difference::between(&entry().lines(), &entry().lines());
    assert!(difference.is_empty());
    assert_eq!(difference.to_string(), "");
}

#[test]
fn what_changed_came_and_went_is_shown_by_line() {
    let mut after = entry();
    after.command = Some("sh".to_owned());
    after.args = Vec::new();
    after.cwd = Some("/srv".to_owned());
    assert_eq!(
        between(&entry(), &after),
        "- command = \"npx\"\n+ command = \"sh\"\n+ cwd = \"/srv\"\n- args = [\"-y\",\"server\"]\n"
    );
}

#[test]
fn values_are_shown_in_full_but_not_by_debugging() {
    let mut after = entry();
    after
        .env
        .insert("TOKEN".to_owned(), Text::from("x${cmd:touch p}"));
    after
        .env
        .insert("NODE_OPTIONS".to_owned(), Text::from("--require evil.js"));
    after.env.remove("OTHER");
    assert_eq!(
        between(&entry(), &after),
        "+ env.NODE_OPTIONS = \"--require evil.js\"\n- env.TOKEN = \"hunter2\"\n\
         + env.TOKEN = \"x${cmd:touch p}\"\n- env.OTHER = \"keyring:other\"\n"
    );
    let difference = Difference::between(&entry().lines(), &after.lines());
    let shown = format!("{difference:?}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("evil"),
        "{shown}"
    );
}

#[test]
fn of_what_was_kept_only_the_hash_is_compared_and_only_references_are_shown() {
    let mut before = entry();
    before
        .args
        .extend(["--token", "hunter2"].map(str::to_owned));
    let kept: Vec<EntryLine> = before.lines().into_iter().map(EntryLine::kept).collect();
    assert!(Difference::between(&kept, &before.lines()).is_empty());
    let mut after = before.clone();
    after.args.push("more".to_owned());
    after
        .env
        .insert("TOKEN".to_owned(), Text::from("swordfish"));
    assert_eq!(
        Difference::between(&kept, &after.lines()).to_string(),
        "- args = [\"-y\",\"server\",\"--token\",\"…\"]\n\
         + args = [\"-y\",\"server\",\"--token\",\"hunter2\",\"more\"]\n\
         - env.TOKEN = \"…\"\n+ env.TOKEN = \"swordfish\"\n"
    );
}

#[test]
fn what_would_steer_a_terminal_is_escaped() {
    let mut after = entry();
    after.command = Some("a\u{1b}[2K\u{202e}\u{9b}b".to_owned());
    after.env.insert("X\n+ fake".to_owned(), Text::from("s"));
    let shown = between(&entry(), &after);
    assert!(
        shown.contains(r#"+ command = "a\u001b[2K\u{202e}\u{9b}b""#),
        "{shown}"
    );
    assert!(shown.contains("+ env.X\\u{a}+ fake = \"s\"\n"), "{shown}");
}
