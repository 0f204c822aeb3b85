//! Turns: what is typed, what the model says and does, what the person allows.

use cocode_testkit::{Gate, ModelScript, Script};

use super::{Desk, calls_echo, says, status};
use crate::tmux::INPUT;

const KEYS: &str = "  y yes  a always  n no, and why  Esc stop the turn";

#[test]
fn system_what_is_typed_is_answered() {
    let script = ModelScript::new().turn(says(
        "# Hello\n\nThis is **bold** and `code`.\n\n1. one\n2. two",
    ));
    let server = Script::new().stdio();
    let desk = Desk::with_server(script, &server);
    let tmux = desk.sit_down_with_server();
    tmux.text("say helo");
    tmux.keys(&["Left", "l", "C-a", "M-d", "Delete"]);
    tmux.wait_for("> hello");
    tmux.keys(&["Enter"]);
    tmux.wait_for_end(&[
        "/help says what there is, Ctrl-C interrupts, Ctrl-D leaves",
        "",
        "> hello",
        "",
        "Hello",
        "",
        "This is bold and code.",
        "",
        "1. one",
        "2. two",
        "",
        INPUT,
        &status(" · context 0%"),
    ]);
    assert_eq!(desk.last_texts(0), ["hello"]);
    desk.model.assert_no_violations();
}

#[test]
fn system_calls_are_allowed_once_or_always_or_refused_with_a_reason() {
    let script = ModelScript::new()
        .turn(calls_echo("c1", "first"))
        .turn(says("First done."))
        .turn(calls_echo("c2", "second"))
        .turn(says("Second refused."))
        .turn(calls_echo("c3", "third"))
        .turn(says("Third done."))
        .turn(calls_echo("c4", "fourth"))
        .turn(says("Fourth done."));
    let server = Script::new().stdio();
    let desk = Desk::with_server(script, &server);
    let tmux = desk.sit_down_with_server();

    tmux.enter("one");
    let screen = tmux.wait_for(KEYS);
    assert!(
        screen.contains("? May mcp__one__echo be called?"),
        "{screen}"
    );
    tmux.keys(&["y"]);
    tmux.wait_for("— allowed");
    tmux.wait_for_answer("First done.");
    assert!(desk.result(1).contains("first"), "{}", desk.result(1));

    tmux.enter("two");
    tmux.wait_for(KEYS);
    tmux.keys(&["n"]);
    tmux.wait_for("What should the model be told?");
    tmux.text("not that one");
    tmux.wait_for("> not that one");
    tmux.keys(&["Enter"]);
    tmux.wait_for("— refused: not that one");
    tmux.wait_for_answer("Second refused.");
    assert!(
        desk.result(3).contains("not that one"),
        "{}",
        desk.result(3)
    );

    tmux.enter("three");
    tmux.wait_for(KEYS);
    tmux.keys(&["a"]);
    tmux.wait_for("— always allowed");
    tmux.wait_for_answer("Third done.");

    tmux.enter("four");
    let screen = tmux.wait_for_answer("Fourth done.");
    assert!(!screen.contains(KEYS), "{screen}");
    assert!(desk.result(7).contains("fourth"), "{}", desk.result(7));
    let called = server.received().count(|message| message.is("tools/call"));
    assert_eq!(called, 3);
    desk.model.assert_no_violations();
}

#[test]
fn system_a_turn_is_interrupted_and_the_conversation_goes_on() {
    let gate = Gate::new();
    let script = ModelScript::new()
        .turn(says("I think about it.").hold(&gate))
        .turn(says("Here we are again."));
    let desk = Desk::new(script);
    let tmux = desk.sit_down(&[]);
    tmux.enter("think");
    tmux.wait_for("I think about it.");
    tmux.keys(&["C-c"]);
    tmux.wait_for_answer("■ interrupted");
    gate.open();
    tmux.enter("go on");
    tmux.wait_for_answer("Here we are again.");
    let told = serde_json::to_string(&desk.told(1)).unwrap();
    for part in ["think", "I think about it.", "go on"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    desk.model.assert_no_violations();
}

#[test]
fn system_a_server_asks_the_person_during_a_call() {
    let form = r#"{"message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":3},"pet":{"type":"string","enum":["cat","dog"]},"sure":{"type":"boolean"}}}}"#;
    let server = Script::new()
        .on("tools/call")
        .ask("elicitation/create", form)
        .result(r#"{"content":[{"type":"text","text":"thanks"}],"structuredContent":$answer}"#)
        .stdio();
    let script = ModelScript::new()
        .turn(calls_echo("c1", "x"))
        .turn(says("It knows."))
        .turn(calls_echo("c2", "x"))
        .turn(says("It does not."));
    let desk = Desk::with_server(script, &server);
    let tmux = desk.sit_down_with_server();
    tmux.enter("ask me");
    tmux.wait_for(KEYS);
    tmux.keys(&["y"]);
    let screen = tmux.wait_for("› answer");
    assert!(
        screen.contains("? one asks you\n  Who are you?"),
        "{screen}"
    );
    tmux.keys(&["Enter"]);
    tmux.wait_for("name (required) — 1 of 3");
    tmux.text("Al");
    tmux.keys(&["Enter"]);
    tmux.wait_for("3 characters");
    tmux.text("an");
    tmux.wait_for("> Alan");
    tmux.keys(&["Enter"]);
    tmux.wait_for("› cat");
    tmux.keys(&["Down", "Enter"]);
    let screen = tmux.wait_for("› yes");
    assert!(screen.contains("sure (optional) — 3 of 3"), "{screen}");
    tmux.text("left");
    tmux.wait_for("› (left out)");
    tmux.keys(&["Enter"]);
    tmux.wait_for_answer("It knows.");
    let answer = answer_of(&server, 0);
    assert_eq!(
        answer,
        r#"{"action":"accept","content":{"name":"Alan","pet":"dog"}}"#
    );

    tmux.enter("again");
    tmux.wait_for(KEYS);
    tmux.keys(&["y"]);
    tmux.wait_for("› answer");
    tmux.keys(&["Down", "Enter"]);
    tmux.wait_for_answer("It does not.");
    assert_eq!(answer_of(&server, 1), r#"{"action":"decline"}"#);
    desk.model.assert_no_violations();
}

/// What the server was told when it asked for the nth time.
fn answer_of(server: &cocode_testkit::StdioServer, n: usize) -> String {
    let all = server.received().all();
    let answers: Vec<String> = all
        .iter()
        .map(cocode_testkit::Message::json)
        .filter(|message| message["result"]["action"].is_string())
        .map(|message| message["result"].to_string())
        .collect();
    answers.get(n).cloned().unwrap_or_default()
}

#[test]
fn system_files_resources_and_directories_reach_the_model() {
    let script = ModelScript::new()
        .turn(says("Read."))
        .turn(says("Still here."));
    let server = Script::new().stdio();
    let desk = Desk::with_server(script, &server);
    desk.home.project_file("src/parser.rs", "fn parse() {}\n");
    desk.home.project_file("ignored/parser.rs", "no\n");
    desk.home.project_file(".gitignore", "ignored\n");
    desk.remembers_lists();
    let tmux = desk.sit_down_with_server();
    tmux.text("compare @pars");
    let screen = tmux.wait_for("› @src/parser.rs");
    assert!(!screen.contains("ignored"), "{screen}");
    tmux.keys(&["Tab"]);
    tmux.wait_for("> compare @src/parser.rs");
    tmux.text("with @one:");
    tmux.wait_for("› @one:scripted://hello");
    tmux.keys(&["Tab"]);
    tmux.text("in @src, not @nowhere");
    tmux.wait_for("in @src, not @nowhere");
    tmux.keys(&["Enter"]);
    let screen = tmux.wait_for_answer("Read.");
    assert!(
        screen.contains("! @nowhere stays as it is typed"),
        "{screen}"
    );
    assert_eq!(
        desk.last_texts(0),
        [
            "compare @src/parser.rs with @one:scripted://hello in @src, not @nowhere",
            "<file path=\"src/parser.rs\">\nfn parse() {}\n\n</file>",
            "<resource server=\"one\" uri=\"scripted://hello\">\nhello\n</resource>",
            "<directory path=\"src\">\nparser.rs\n</directory>",
        ]
    );
    tmux.enter("thanks");
    tmux.wait_for_answer("Still here.");
    desk.model.assert_no_violations();
}

#[test]
fn system_prompts_are_commands() {
    let script = ModelScript::new()
        .turn(says("Hello."))
        .turn(says("Reviewed."));
    let server = Script::new()
        .on("prompts/get")
        .result(r#"{"messages":[{"role":"user","content":{"type":"text","text":"Say hello, and see @secret.txt."}}]}"#)
        .stdio();
    let desk = Desk::with_server(script, &server);
    desk.home.project_file("secret.txt", "a secret\n");
    desk.home.user_file(
        "prompts/review.md",
        "---\ndescription: Looks closely\n---\nReview {{what}} closely.\n",
    );
    desk.remembers_lists();
    let tmux = desk.sit_down_with_server();
    tmux.text("/gree");
    tmux.wait_for("› /mcp__one__greet");
    tmux.keys(&["Tab", "Enter"]);
    tmux.wait_for_answer("Hello.");
    // What a server writes is not taken for what the person mentions.
    assert_eq!(desk.last_texts(0), ["Say hello, and see @secret.txt."]);

    tmux.text("/rev");
    tmux.wait_for("› /review  Looks closely");
    tmux.keys(&["Tab"]);
    tmux.text("the parser");
    tmux.wait_for("> /review the parser");
    tmux.keys(&["Enter"]);
    tmux.wait_for_answer("Reviewed.");
    assert_eq!(desk.last_texts(1), ["Review the parser closely."]);
    desk.model.assert_no_violations();
}
