//! A person at a terminal, played through a pseudo-terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use cocode_testkit::{Script, StdioServer};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::harness::command;

/// Runs the program with its stdin and stderr at a terminal where this was typed. Gives what was
/// printed to stdout, and what was seen at the terminal.
fn at_terminal(words: &[&str], server: &StdioServer, typed: &str) -> (String, String) {
    let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || File::options().read(true).write(true).open(&name).unwrap();
    let (stdin, stderr) = (terminal(), terminal());
    let mut person = File::from(person);
    // The terminal keeps lines until somebody reads them.
    person.write_all(typed.as_bytes()).unwrap();
    let mut command = command(words, server);
    command.stdin(stdin).stderr(stderr).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(command);
    let seeing = std::thread::spawn(move || {
        let mut seen = Vec::new();
        let mut chunk = [0; 4096];
        // When the last program at a terminal is gone, reading fails instead of ending.
        while let Ok(length @ 1..) = person.read(&mut chunk) {
            seen.extend_from_slice(&chunk[..length]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    });
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let status = child.wait().unwrap();
    let seen = seeing.join().unwrap();
    assert_eq!(status.code(), Some(0), "{stdout}\n{seen}");
    (stdout, seen)
}

fn asking(params: &str) -> StdioServer {
    Script::new()
        .on("tools/call")
        .ask("elicitation/create", params)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
        .stdio()
}

#[test]
fn forms_are_filled_in_at_the_terminal_and_stdout_stays_clean() {
    let form = r#"{"message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"age":{"type":"integer","default":3}}}}"#;
    for (typed, expected) in [
        (
            "\nAda\nold\n4\n",
            json!({"action": "accept", "content": {"name": "Ada", "age": 4}}),
        ),
        (
            "\nAda\n\n",
            json!({"action": "accept", "content": {"name": "Ada", "age": 3}}),
        ),
        ("d\n", json!({"action": "decline"})),
        ("\nAda\n\u{4}", json!({"action": "cancel"})),
    ] {
        let server = asking(form);
        let (stdout, seen) = at_terminal(&["call", "echo"], &server, typed);
        let answer: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(answer["result"], expected, "{typed:?}");
        assert!(seen.contains("Who are you?"), "{seen}");
        let hello = server
            .received()
            .wait_for_blocking(|message| message.is("initialize"));
        assert_eq!(
            hello.params()["capabilities"]["elicitation"],
            json!({"form": {}, "url": {}})
        );
    }
}

#[test]
fn urls_are_shown_and_confirmed() {
    let server = asking(
        r#"{"mode":"url","message":"Sign in","elicitationId":"1","url":"https://login.example/start"}"#,
    );
    let (stdout, seen) = at_terminal(&["call", "echo"], &server, "\n");
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["result"], json!({"action": "accept"}));
    assert!(seen.contains("https://login.example/start"), "{seen}");
}

#[test]
fn progress_is_a_bar_that_goes_away() {
    let server = Script::new()
        .on("tools/call")
        .progress(1, 2)
        .text_result("done")
        .stdio();
    let (stdout, seen) = at_terminal(&["call", "echo"], &server, "");
    assert_eq!(stdout, "done\n");
    assert_eq!(seen, "\r\u{1b}[K[############------------] 1/2\r\u{1b}[K");
    let (_, seen) = at_terminal(&["call", "echo", "-q"], &server, "");
    assert_eq!(seen, "");
}
