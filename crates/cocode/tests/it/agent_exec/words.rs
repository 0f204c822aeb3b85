//! What `cocode exec` is told on its command line and by pipes, and what it writes.

use cocode_testkit::{Gate, ModelFormat, ModelScript, ModelTurn};

use super::{Running, Stage, assert_contains, beginning, says};
use crate::harness::Finished;

fn stage(turns: &[&str]) -> Stage {
    let mut script = ModelScript::new();
    for text in turns {
        script = script.turn(says(text));
    }
    Stage::new(ModelFormat::Anthropic, script)
}

#[test]
fn what_is_piped_in_is_the_prompt_or_added_to_it() {
    let stage = stage(&["One.", "Two.", "Three."]);
    stage.run_with_stdin(&[], "Only this.\n").with_code(0);
    stage.run_with_stdin(&["-"], "This as well.\n").with_code(0);
    let words = ["Sum this up:"];
    stage.run_with_stdin(&words, "a\nb\n").with_code(0);
    let bodies = stage.bodies();
    assert_contains(&bodies[0].to_string(), "Only this.");
    assert_contains(&bodies[1].to_string(), "This as well.");
    let last = bodies[2].to_string();
    assert_contains(&last, r"Sum this up:\n\n<stdin>\na\nb\n\n</stdin>");
}

#[test]
fn without_a_prompt_nothing_begins() {
    let stage = stage(&[]);
    for words in [&[][..], &["-"], &["  "]] {
        let finished = stage.run(words).with_code(2);
        finished.complains(&["the prompt is empty", "code: invalid-usage"]);
    }
    let finished = stage.run(&["--image", "missing.png", "What?"]).with_code(2);
    finished.complains(&["missing.png", "code: file-error"]);
    stage.home.project_file("no.png", "text");
    let finished = stage.run(&["--image", "no.png", "What?"]).with_code(2);
    finished.complains(&["no PNG, JPEG, GIF or WebP"]);
    assert_eq!(
        stage.home.json(&["sessions", "list"]),
        serde_json::json!([])
    );
}

#[test]
fn the_last_words_are_written_to_a_file_too() {
    let stage = stage(&["Good day.", "Good night."]);
    let file = stage.home.project().join("answer.txt");
    let finished = stage.run(&["-o", "answer.txt", "Hello."]).with_code(0);
    assert_eq!(finished.stdout, "Good day.\n");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Good day.");
    let finished = stage.run(&["-o", "missing/answer.txt", "Hello."]);
    finished
        .with_code(2)
        .complains(&["missing/answer.txt", "code: file-error"]);
}

#[test]
fn the_last_conversation_of_a_directory_goes_on() {
    let stage = stage(&["One.", "Elsewhere.", "Two.", "Three."]);
    let finished = stage.run(&["--last", "And?"]).with_code(2);
    finished.complains(&["there is no conversation in", "code: conversation-failed"]);
    let id = stage.events(&["First."], 0).id();
    let elsewhere = stage.events(&["-C", "sub", "Something else."], 0).id();
    assert_ne!(id, elsewhere);
    let events = stage.events(&["--last", "Second."], 0);
    assert_eq!(events.id(), id);
    let body = stage.bodies()[2].to_string();
    assert_contains(&body, "First.");
    assert_contains(&body, "Second.");
    assert!(!body.contains("Something else."), "{body}");
    let events = stage.events(&["--last", "-C", "sub", "And here?"], 0);
    assert_eq!(events.id(), elsewhere);
    let both = stage.run(&["--last", "--resume", &id, "No."]).with_code(2);
    both.complains(&["cannot be used with"]);
}

#[test]
fn a_conversation_is_found_by_the_beginning_of_its_id() {
    let stage = stage(&["One.", "Two."]);
    let id = stage.events(&["First."], 0).id();
    let events = stage.events(&["--resume", beginning(&id, 8), "Second."], 0);
    assert_eq!(events.id(), id);
    for unknown in ["zzzz", "00000000-0000-4000-8000-000000000000"] {
        let finished = stage.run(&["--resume", unknown, "No."]).with_code(2);
        finished.complains(&["there is no conversation", "code: conversation-failed"]);
    }
}

#[test]
fn a_conversation_that_is_in_use_is_not_used_twice() {
    let gate = Gate::new();
    let held = ModelTurn::new().text("I th").hold(&gate).text("ink.");
    let script = ModelScript::new()
        .turn(says("One."))
        .turn(held)
        .turn(says("Three."));
    let stage = Stage::new(ModelFormat::Chat, script);
    let id = stage.events(&["First."], 0).id();
    let words = ["--json", "--resume", &id, "Second."];
    let mut running = Running::start(&mut stage.exec(&words));
    running.until("text");
    let finished = stage.run(&["--resume", &id, "Meanwhile."]).with_code(2);
    finished.complains(&["is in use", "code: conversation-failed"]);
    assert_eq!(stage.shown(&id)["in_use"], true);
    stage.home.run(["sessions", "rm", &id]).with_code(2);
    gate.open();
    let (code, events) = running.finish();
    assert_eq!((code, &events.end()["ending"]), (Some(0), &"done".into()));
    assert_eq!(stage.shown(&id)["in_use"], false);
    stage.run(&["--resume", &id, "Third."]).with_code(0);
}

#[test]
fn quiet_prints_the_last_words_and_nothing_else() {
    let stage = stage(&["Good day."]);
    assert_eq!(stage.run(&["--quiet", "Hello."]).clean(), "Good day.\n");
}

#[test]
fn who_reads_no_more_loses_nothing() {
    let stage = stage(&["Good day."]);
    let mut child = crate::harness::start(&mut stage.exec(&["Hello."]));
    drop(child.stdout.take());
    let code = Finished::of(child.wait_with_output().unwrap()).code;
    assert_eq!(code, Some(0));
    let listed = stage.home.json(&["sessions", "list"]);
    assert_eq!(listed[0]["turns"], 1);
    let id = listed[0]["session_id"].as_str().unwrap();
    assert_eq!(stage.records(id, "ended")[0]["how"], "done");
}
