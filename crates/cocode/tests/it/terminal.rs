//! A person at a terminal, played through a pseudo-terminal.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use cocode_testkit::{Gate, Script, StdioServer};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::harness::command;

/// A pseudo-terminal: the end of the person, and the name of the end of the program.
pub(crate) fn pseudo_terminal() -> (File, String) {
    let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    (File::from(person), name)
}

pub(crate) fn open(name: &str) -> File {
    File::options().read(true).write(true).open(name).unwrap()
}

/// What a person does about something that was seen.
pub(crate) type Reaction = Box<dyn FnOnce(&mut File) + Send>;

/// All that is seen at a terminal until the last program there is gone. Each reaction waits for
/// what is to be seen before it.
pub(crate) fn watch(
    mut person: File,
    reactions: Vec<(&'static str, Reaction)>,
) -> JoinHandle<String> {
    let mut reactions: VecDeque<(&str, Reaction)> = reactions.into();
    std::thread::spawn(move || {
        let (mut seen, mut looked_at) = (Vec::new(), 0);
        let mut chunk = [0; 4096];
        // When the last program at a terminal is gone, reading fails instead of ending.
        while let Ok(length @ 1..) = person.read(&mut chunk) {
            seen.extend_from_slice(&chunk[..length]);
            let text = String::from_utf8_lossy(&seen[looked_at..]).into_owned();
            let is_next = |(awaited, _): &(&str, Reaction)| text.contains(awaited);
            if reactions.front().is_some_and(is_next)
                && let Some((_, react)) = reactions.pop_front()
            {
                looked_at = seen.len();
                react(&mut person);
            }
        }
        String::from_utf8_lossy(&seen).into_owned()
    })
}

/// Runs the program with its stdin and stderr at a terminal where this is typed, before anybody
/// asks and when something is seen. Gives what was
/// printed to stdout, and what was seen at the terminal.
fn watched_at_terminal(
    words: &[&str],
    server: &StdioServer,
    beforehand: &str,
    reactions: Vec<(&'static str, Reaction)>,
) -> (String, String) {
    let (mut person, name) = pseudo_terminal();
    let (stdin, stderr) = (open(&name), open(&name));
    // The terminal keeps lines until somebody reads them.
    person.write_all(beforehand.as_bytes()).unwrap();
    let mut command = command(words, server);
    command.stdin(stdin).stderr(stderr).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(command);
    let seeing = watch(person, reactions);
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

/// Runs the program at a terminal where this was typed before anybody asked.
fn at_terminal(words: &[&str], server: &StdioServer, typed: &str) -> (String, String) {
    watched_at_terminal(words, server, typed, Vec::new())
}

/// Runs any command with its stdin and stderr at a terminal where this was typed before anybody
/// asked. Gives its exit code, what was printed to stdout, and what was seen at the terminal.
pub(crate) fn typed_at(mut command: Command, typed: &str) -> (Option<i32>, String, String) {
    let (mut person, name) = pseudo_terminal();
    command
        .stdin(open(&name))
        .stderr(open(&name))
        .stdout(Stdio::piped());
    person.write_all(typed.as_bytes()).unwrap();
    let child = command.spawn().unwrap();
    drop(command);
    let seeing = watch(person, Vec::new());
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let seen = seeing.join().unwrap().replace("\r\n", "\n");
    (output.status.code(), stdout, seen)
}

/// Runs any command with its stdin and stderr at a terminal where this is typed when it is asked for.
/// Gives its exit code, what was printed to stdout, and what was seen at the terminal.
pub(crate) fn answered_at(
    mut command: Command,
    question: &'static str,
    typed: &str,
) -> (Option<i32>, String, String) {
    let (person, name) = pseudo_terminal();
    command
        .stdin(open(&name))
        .stderr(open(&name))
        .stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let typed = typed.to_owned();
    let reaction: Reaction = Box::new(move |person| person.write_all(typed.as_bytes()).unwrap());
    let seeing = watch(person, vec![(question, reaction)]);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let seen = seeing.join().unwrap().replace("\r\n", "\n");
    (output.status.code(), stdout, seen)
}

/// What is seen of a program that has nothing but a terminal.
fn seen_of(words: &[&str], server: &StdioServer) -> String {
    let (person, name) = pseudo_terminal();
    let mut command = command(words, server);
    command
        .stdin(open(&name))
        .stderr(open(&name))
        .stdout(open(&name));
    let mut child = command.spawn().unwrap();
    drop(command);
    let seen = watch(person, Vec::new()).join().unwrap();
    child.wait().unwrap();
    seen
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
fn ctrl_c_at_a_question_ends_its_line_first() {
    let server =
        asking(r#"{"message":"Who are you?","requestedSchema":{"type":"object","properties":{}}}"#);
    let (person, name) = pseudo_terminal();
    let mut command = command(&["call", "echo", "--color", "never"], &server);
    command
        .stdin(open(&name))
        .stderr(open(&name))
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let pid = child.id().to_string();
    // The terminal is nobody's controlling terminal, so the key is played by a signal.
    let interrupt: Reaction = Box::new(move |_| {
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.unwrap().success());
    });
    let seen = watch(person, vec![("[Y/d] ", interrupt)]).join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        seen.contains("[Y/d] \r\nerror: interrupted\r\n"),
        "{seen:?}"
    );
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

#[test]
fn escape_sequences_of_a_server_do_not_reach_a_terminal() {
    let steering = "a\u{1b}]0;owned\u{7}\tb\nc\u{1b}[2J";
    let text = serde_json::to_string(steering).unwrap();
    let results = |is_error: bool| {
        Script::new()
            .on("tools/call")
            .result(format!(
                r#"{{"content":[{{"type":"text","text":{text}}}],"isError":{is_error}}}"#
            ))
            .on("resources/read")
            .result(format!(r#"{{"contents":[{{"uri":"a:","text":{text}}}]}}"#))
            .on("prompts/get")
            .result(format!(
                r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{text}}}}}]}}"#
            ))
            .stdio()
    };
    let (server, failing) = (results(false), results(true));
    for (words, server) in [
        (&["call", "echo"][..], &server),
        (&["call", "echo"], &failing),
        (&["read", "a:"], &server),
        (&["prompt", "greet"], &server),
    ] {
        let seen = seen_of(&[words, &["--color", "never"]].concat(), server);
        let tamed = "a\u{fffd}]0;owned\u{fffd}\tb\r\nc\u{fffd}[2J\r\n";
        assert!(seen.contains(tamed), "{words:?}: {seen:?}");
        assert!(!seen.contains(['\u{1b}', '\u{7}']), "{words:?}: {seen:?}");
        let piped = crate::harness::mcp(words, server);
        let all = format!("{}{}", piped.stdout, piped.stderr);
        assert!(all.contains(steering), "{words:?}: {all:?}");
    }
}

#[test]
fn a_withdrawn_question_leaves_the_next_line_to_the_next_question() {
    let gate = Arc::new(Gate::new());
    let withdraw = Arc::clone(&gate);
    let server = Script::new()
        .on("tools/call")
        .line(
            r#"{"jsonrpc":"2.0","id":"first","method":"elicitation/create","params":{"message":"First?","requestedSchema":{"type":"object","properties":{}}}}"#,
        )
        .hold(&gate)
        .notify("notifications/cancelled", r#"{"requestId":"first"}"#)
        .ask(
            "elicitation/create",
            r#"{"message":"Second?","requestedSchema":{"type":"object","properties":{}}}"#,
        )
        .result(r#"{"content":[],"structuredContent":$answer}"#)
        .stdio();
    let (stdout, seen) = watched_at_terminal(
        &["call", "echo"],
        &server,
        "",
        vec![
            ("First?", Box::new(move |_: &mut File| withdraw.open())),
            (
                "Second?",
                Box::new(|person| person.write_all(b"d\n").unwrap()),
            ),
        ],
    );
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["result"], json!({"action": "decline"}));
    assert!(seen.contains("First?"), "{seen}");
}
