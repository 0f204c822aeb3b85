//! Commands: servers, settings, other conversations, the end.

use cocode_testkit::{ModelScript, Script};

use super::{Desk, says};
use crate::tmux::{INPUT, Tmux};

/// Leaves, and gives the id of the conversation.
#[track_caller]
fn leave(tmux: &Tmux) -> String {
    tmux.enter("/quit");
    tmux.wait_for("ended with 0");
    let seen = tmux.scrollback();
    let hint = seen.rsplit_once("to go on: cocode --resume ");
    let (_, rest) = hint.unwrap_or_else(|| panic!("no hint: {seen}"));
    rest.lines().next().unwrap().trim().to_owned()
}

#[test]
fn system_servers_are_seen_restarted_and_switched_off_and_on() {
    let server = Script::new().stdio();
    let desk = Desk::with_server(ModelScript::new(), &server);
    let tmux = desk.sit_down_with_server();
    tmux.enter("/mcp");
    tmux.wait_for("› one  ready, 1 tool");
    tmux.keys(&["Enter"]);
    tmux.wait_for("one: ready, 1 tool");
    tmux.text("rest");
    tmux.wait_for("› restart");
    tmux.keys(&["Enter"]);
    tmux.wait_for_answer("one was restarted: ready, 1 tool");
    assert_eq!(server.runs().all().len(), 2);

    tmux.enter("/mcp tools one");
    tmux.wait_for_answer("echo  Answers with its arguments.");
    tmux.enter("/tools");
    tmux.wait_for_answer("one: echo");
    let screen = tmux.screen();
    assert!(screen.contains("workspace: read, list,"), "{screen}");

    tmux.enter("/mcp disable one");
    tmux.wait_for("switched `one` off");
    tmux.wait_until("no server in the status", |screen| {
        screen.ends_with("claude-scripted · workspace-write · on-request")
    });
    tmux.enter("/mcp enable one");
    tmux.wait_for("switched `one` on");
    tmux.wait_for("servers: 1 ready");
    tmux.enter("/mcp restart two");
    tmux.wait_for("✗ there is no server `two`");
}

#[test]
fn system_a_server_that_fails_is_told_of() {
    let desk = Desk::new(ModelScript::new());
    desk.home.user_file(
        "mcp.toml",
        "[mcp_servers.broken]\ncommand = \"sh\"\nargs = [\"-c\", \"echo out of paper >&2; exit 3\"]\n",
    );
    let tmux = desk.sit_down(&[]);
    tmux.wait_for("! broken failed: ");
    tmux.wait_for("its last words: out of paper (/mcp restart broken)");
    tmux.wait_for("servers: 1 failed");
}

#[test]
fn system_settings_are_changed_and_another_conversation_is_begun() {
    let script = ModelScript::new()
        .turn(says("One."))
        .turn(says("Two."))
        .turn(says("A summary of everything."))
        .turn(says("Three."));
    let desk = Desk::new(script);
    let tmux = desk.sit_down(&[]);
    tmux.enter("first");
    tmux.wait_for_answer("One.");
    tmux.enter("/cost");
    tmux.wait_for_end(&[
        "> /cost",
        "",
        "model    claude-scripted",
        "read     10 tokens",
        "written  5 tokens",
        "cost     no price known",
        "context  15 of 100,000 tokens, 0%",
        "turn 1   10 read, 5 written, no price known",
        "",
        INPUT,
        "claude-scripted · context 0% · workspace-write · on-request",
    ]);
    tmux.enter("/sandbox read-only");
    tmux.wait_for("· read-only · on-request");
    tmux.enter("/approval");
    tmux.wait_for("When are you to be asked?");
    tmux.text("never");
    tmux.wait_for("› never");
    tmux.keys(&["Enter"]);
    tmux.wait_for("· read-only · never");
    tmux.enter("/model claude-other");
    tmux.wait_for("claude-other of anthropic answers");
    tmux.enter("/aproval");
    tmux.wait_for("did you mean `/approval`?");

    tmux.enter("/clear");
    tmux.wait_until("an empty screen", |screen| screen.starts_with(INPUT));
    tmux.enter("second");
    tmux.wait_for_answer("Two.");
    assert_eq!(desk.told(1).len(), 1);
    assert_eq!(desk.model.bodies()[1]["model"], "claude-other");

    tmux.enter("/compact");
    tmux.wait_for_answer("summed up: about");
    tmux.enter("third");
    tmux.wait_for_answer("Three.");
    let told = serde_json::to_string(&desk.told(3)).unwrap();
    assert!(told.contains("A summary of everything."), "{told}");
    assert!(!told.contains("Two."), "{told}");
    desk.model.assert_no_violations();
}

#[test]
fn system_a_conversation_goes_on_in_another_process() {
    let script = ModelScript::new()
        .turn(says("The answer is **42**."))
        .turn(says("I said 42."))
        .turn(says("Still 42."));
    let desk = Desk::new(script);
    desk.home.project_file("notes.txt", "many notes\n");
    let tmux = desk.sit_down(&[]);
    tmux.enter("what is the answer in @notes.txt");
    tmux.wait_for_answer("The answer is 42.");
    let id = leave(&tmux);

    let tmux = desk.run(&["--resume", &id]);
    let screen = tmux.wait_for_answer("The answer is 42.");
    assert!(
        screen.contains("> what is the answer in @notes.txt"),
        "{screen}"
    );
    assert!(!screen.contains("many notes"), "{screen}");
    tmux.enter("what did you say?");
    tmux.wait_for_answer("I said 42.");
    assert_eq!(desk.told(1).len(), 3);

    // As long as it is held, nobody else can have it.
    let other = desk.run(&["--resume", &id]);
    other.wait_for("error: the conversation");
    other.wait_for("ended with ");
    drop(other);
    assert_eq!(leave(&tmux), id);

    let tmux = desk.run(&["--resume"]);
    tmux.wait_for("Which conversation is to go on?");
    tmux.wait_for("› what is the answer in @notes.txt");
    tmux.keys(&["Enter"]);
    tmux.wait_for_answer("I said 42.");
    assert_eq!(leave(&tmux), id);

    let tmux = desk.run(&["--continue", "--prompt", "and now?"]);
    tmux.wait_for_answer("Still 42.");
    assert_eq!(desk.told(2).len(), 5);
    desk.model.assert_no_violations();

    let tmux = desk.run(&["--resume", "nonsense"]);
    tmux.wait_for("error: there is no conversation `nonsense`");
    tmux.wait_for("ended with 2");
}

#[test]
fn system_it_fits_every_size_and_ends_by_a_signal() {
    let script = ModelScript::new().turn(says("A reply."));
    let desk = Desk::new(script);
    let tmux = desk.sit_down(&[]);
    tmux.enter("hello");
    tmux.wait_for_answer("A reply.");
    tmux.text("not sent yet");
    tmux.wait_for("> not sent yet");
    tmux.resize(50, 15);
    tmux.wait_until("the input in a small terminal", |screen| {
        screen.ends_with("> not sent yet\nclaude-scripted · context 0% · workspace-write")
    });
    tmux.resize(100, 40);
    tmux.wait_until("the input in a large terminal", |screen| {
        screen.ends_with(
            "> not sent yet\nclaude-scripted · context 0% · workspace-write · on-request",
        )
    });
    let programs = tmux.programs();
    let killed = std::process::Command::new("kill")
        .arg("-TERM")
        .args(&programs)
        .status()
        .unwrap();
    assert!(killed.success(), "{programs:?}");
    tmux.wait_for("to go on: cocode --resume ");
    tmux.wait_for("ended with 143");
    // The terminal is as it was: what is typed is shown, and Enter ends a line.
    tmux.text("still");
    tmux.keys(&["Enter"]);
    tmux.wait_for("still\nstill");
    let history = desk.home.home().join("state/history.jsonl");
    let facts = std::fs::metadata(&history).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&facts.permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&history).unwrap(), "\"hello\"\n");
}
