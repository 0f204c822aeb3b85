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
fn a_secret_is_never_shown() {
    let mut after = entry();
    after
        .env
        .insert("TOKEN".to_owned(), Text::from("correct horse"));
    assert_eq!(
        between(&entry(), &after),
        "~ env.TOKEN = (changed, not shown)\n"
    );
    after
        .env
        .insert("TOKEN".to_owned(), Text::from("keyring:token"));
    after
        .env
        .insert("NEW".to_owned(), Text::from("correct horse"));
    after.env.remove("OTHER");
    let shown = between(&entry(), &after);
    assert_eq!(
        shown,
        "+ env.NEW = (not shown)\n- env.TOKEN = (not shown)\n+ env.TOKEN = \"keyring:token\"\n\
         - env.OTHER = \"keyring:other\"\n"
    );
    let difference = Difference::between(&entry().lines(), &after.lines());
    assert!(!format!("{difference:?}").contains("horse"));
    assert!(!format!("{difference:?}").contains("hunter2"));
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
    assert!(
        shown.contains("+ env.X\\u{a}+ fake = (not shown)\n"),
        "{shown}"
    );
}
