//! Turns that somebody interrupts: what was begun ends, and the conversation goes on.

use cocode_testkit::{Gate, ModelScript, ModelTurn};

use super::{FORMATS, Running, Stage, assert_contains, says, shell};
use crate::interrupting::signal;

#[test]
fn ctrl_c_while_the_model_speaks_ends_the_turn_and_keeps_what_was_said() {
    for (format, name, code) in [
        (FORMATS[0], "-INT", 130),
        (FORMATS[1], "-TERM", 143),
        (FORMATS[2], "-HUP", 129),
        (FORMATS[0], "-QUIT", 130),
    ] {
        let gate = Gate::new();
        let held = ModelTurn::new().text("I am about").hold(&gate).text(" to.");
        let script = ModelScript::new().turn(held).turn(says("Go on, then."));
        let stage = Stage::new(format, script);
        let mut running = Running::start(&mut stage.exec(&["--json", "Well?"]));
        running.until("text");
        signal(&running.child, name);
        let (ended, events) = running.finish();
        assert_eq!(ended, Some(code), "{format:?}");
        assert_eq!(events.end()["ending"], "interrupted");
        stage.model.abandoned().wait_for_blocking(|_| true);
        let id = events.id();
        let kept = stage.records(&id, "broke_off");
        assert_eq!(kept[0]["content"][0]["text"], "I am about");
        let finished = stage.run(&["--resume", &id, "Again."]).with_code(0);
        assert_eq!(finished.stdout, "Go on, then.\n");
        assert_contains(&stage.bodies()[1].to_string(), "I am about");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_during_a_command_ends_it_with_all_that_it_started() {
    for format in FORMATS {
        let mark = format!("6{}.125", std::process::id());
        let script = ModelScript::new()
            .turn(
                ModelTurn::new()
                    .call(
                        "c1",
                        "shell",
                        &serde_json::json!({ "command": format!("sleep {mark} & echo begun > begun; wait") }),
                    )
                    .call("c2", "shell", &serde_json::json!({ "command": "touch never" })),
            )
            .turn(says("All right."));
        let stage = Stage::new(format, script);
        let words = ["--json", "--sandbox", "workspace-write", "Sleep."];
        let mut running = Running::start(&mut stage.exec(&words));
        running.until("call_begun");
        let begun = stage.home.project().join("begun");
        crate::fronts::wait_while(|| !begun.exists());
        assert!(super::killed::is_anybody_called(&mark));
        signal(&running.child, "-INT");
        let (code, events) = running.finish();
        assert_eq!(code, Some(130), "{format:?}");
        // The guard ends the command, also after its owner.
        crate::fronts::wait_while(|| super::killed::is_anybody_called(&mark));
        assert!(!stage.home.project().join("never").exists());
        // Both calls have an end, so that the conversation goes on.
        assert_eq!(events.of("call_ended").len(), 2);
        let finished = stage.run(&["--resume", &events.id(), "Never mind."]);
        assert_eq!(finished.with_code(0).stdout, "All right.\n");
        assert_contains(&stage.results(1)[0], "Interrupted by the user");
    }
}

#[test]
fn ctrl_c_while_a_provider_is_waited_for_does_not_wait() {
    let storm = ModelTurn::status(429, "rate_limit_error", "slow down");
    let script = ModelScript::new().turn(storm.header("retry-after", "100"));
    let stage = Stage::new(FORMATS[0], script);
    let mut running = Running::start(&mut stage.exec(&["--json", "Well?"]));
    running.until("restarting");
    signal(&running.child, "-INT");
    let (code, events) = running.finish();
    assert_eq!(code, Some(130));
    assert_eq!(events.end()["ending"], "interrupted");
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_the_turn() {
    let script = ModelScript::new().turn(shell("c1", "trap '' TERM INT; echo; sleep 1000"));
    let stage = Stage::new(FORMATS[2], script);
    let mut running = Running::start(&mut stage.exec(&["--json", "Sleep."]));
    running.until("call_begun");
    signal(&running.child, "-INT");
    // It may be gone already when the second one comes.
    let second = std::process::Command::new("kill")
        .args(["-INT", &running.child.id().to_string()])
        .output();
    drop(second);
    let (code, _events) = running.finish();
    assert_eq!(code, Some(130));
}
