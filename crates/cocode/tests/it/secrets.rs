//! Secrets: taken from stdin or typed unseen, kept in a private file, and named but never shown.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json;

use crate::harness::{Finished, start};
use crate::home::Home;
use crate::terminal::{Reaction, open, pseudo_terminal, watch};

fn set(home: &Home, words: &[&str], stdin: &str) -> Finished {
    let mut command = home.command(["secret", "set"].iter().chain(words));
    let mut child = start(command.stdin(Stdio::piped()));
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(stdin.as_bytes()).unwrap();
    drop(pipe);
    Finished::of(child.wait_with_output().unwrap())
}

fn kept(home: &Home) -> String {
    std::fs::read_to_string(home.home().join("state/secrets.json")).unwrap()
}

#[test]
fn a_secret_from_stdin_is_kept_in_a_private_file_and_never_shown() {
    let home = Home::new();
    let finished = set(&home, &["token"], "s3cret value\n").with_code(0);
    assert!(finished.stdout.contains("kept `token` in the file "));
    assert!(finished.stdout.contains("because "), "{}", finished.stdout);
    assert!(kept(&home).contains("\"s3cret value\""));
    let file = home.home().join("state/secrets.json");
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let listed = home.run(["secret", "list"]).with_code(0);
    let all = format!(
        "{}{}{}{}",
        finished.stdout, finished.stderr, listed.stdout, listed.stderr
    );
    assert!(!all.contains("s3cret"), "{all}");
    assert_eq!(
        home.json(&["secret", "list"]),
        json!({"secrets": [{"name": "token", "place": "file"}]})
    );
    home.run(["secret", "remove", "token"]).clean();
    home.run(["secret", "remove", "token"]).with_code(2);
}

#[test]
fn a_secret_is_no_word_of_the_command_line_and_never_empty() {
    let home = Home::new();
    home.run(["secret", "set", "token", "s3cret"]).with_code(2);
    set(&home, &["token"], "").with_code(2);
    set(&home, &["token"], "\n").with_code(2);
    set(&home, &["bad name"], "x").with_code(2);
    assert_eq!(home.json(&["secret", "list"]), json!({"secrets": []}));
}

#[test]
fn the_store_is_chosen_by_the_option_before_the_configuration() {
    let home = Home::new();
    home.user_file("config.toml", "credential_store = \"keyring\"\n");
    let refused = set(&home, &["token", "--json"], "x").with_code(4);
    assert_eq!(refused.error()["code"], "secret-unavailable");
    let finished = set(&home, &["token", "--credential-store", "file"], "x").with_code(0);
    assert!(
        finished
            .stdout
            .contains("because `--credential-store` says so"),
        "{}",
        finished.stdout
    );
}

#[test]
fn a_secret_is_typed_at_the_terminal_unseen() {
    for (typed, code) in [("s3crex\u{7f}t\n", 0), ("s3cret\u{3}", 130)] {
        let home = Home::new();
        let (person, name) = pseudo_terminal();
        let mut command = home.command(["secret", "set", "token"]);
        command
            .stdin(open(&name))
            .stderr(open(&name))
            .stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        let reaction: Reaction = Box::new(move |person| {
            person.write_all(typed.as_bytes()).unwrap();
        });
        let seen = watch(person, vec![("(not shown): ", reaction)])
            .join()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{seen}");
        assert!(!seen.contains("s3c"), "{seen}");
        if code == 0 {
            assert!(kept(&home).contains("\"s3cret\""));
        }
    }
}
