//! What a model does, in every format that one speaks.

use cocode_testkit::{Gate, ModelFormat, ModelScript, ModelTurn, Script};
use serde_json::json;

use super::{FORMATS, Running, Stage, assert_contains, calls, says, shell};

#[test]
fn what_a_model_says_is_printed_alone_in_every_format() {
    for format in FORMATS {
        let turn = ModelTurn::new().texts(&["Good", " ", "day", "."]);
        let stage = Stage::new(format, ModelScript::new().turn(turn.in_pieces(7)));
        let finished = stage.run(&["Say good day."]).with_code(0);
        assert_eq!(finished.stdout, "Good day.\n", "{format:?}");
        finished.complains(&["to go on: cocode exec --resume "]);
        let body = stage.bodies()[0].to_string();
        assert_contains(&body, "Say good day.");
        assert_contains(&body, &format!("\"model\":\"{}\"", stage.model_name()));
    }
}

#[test]
fn events_tell_the_whole_turn_in_every_format() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(
                ModelTurn::new()
                    .text("I look.")
                    .call("call_1", "list", &json!({}))
                    .usage(100, 20, 0, 0),
            )
            .turn(
                ModelTurn::new()
                    .texts(&["Nothing", " there."])
                    .usage(130, 7, 0, 0),
            );
        let stage = Stage::new(format, script);
        let events = stage.events(&["What is here?"], 0);
        let kinds: Vec<&str> = events
            .0
            .iter()
            .map(|one| one["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "conversation",
                "asking",
                "text",
                "replied",
                "call_begun",
                "call_ended",
                "asking",
                "text",
                "text",
                "replied",
                "ended",
            ],
            "{format:?}"
        );
        assert_eq!(events.0[0]["sandbox"], "read-only");
        assert_eq!(events.0[0]["approval_policy"], "never");
        assert_eq!(events.of("asking")[1]["step"], 2);
        assert_eq!(events.of("replied")[0]["usage"]["input"], 100);
        assert_eq!(events.of("replied")[0]["context"]["tokens"], 120);
        let begun = events.of("call_begun")[0];
        assert_eq!(
            (&begun["tool"], &begun["id"]),
            (&json!("list"), &json!("call_1"))
        );
        assert_eq!(begun["server"], json!(null));
        assert_eq!(events.of("call_ended")[0]["is_error"], false);
        let end = events.end();
        assert_eq!(end["ending"], "done");
        assert_eq!(end["response"], "Nothing there.");
        assert_eq!(end["steps"], 2);
        assert_eq!(
            (&end["usage"]["input"], &end["usage"]["output"]),
            (&json!(230), &json!(27))
        );
        let shown = stage.shown(&events.id());
        assert_eq!(
            (&shown["turns"], &shown["title"]),
            (&json!(1), &json!("What is here?"))
        );
        assert_eq!(shown["usage"]["input"], 230);
    }
}

#[test]
fn a_task_of_many_steps_is_done_with_tools_of_our_own_in_every_format() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(calls("c1", "read", &json!({"path": "poem.txt"})))
            .turn(calls("c2", "grep", &json!({"pattern": "blue"})))
            .turn(calls(
                "c3",
                "edit",
                &json!({"path": "poem.txt", "old_string": "blue", "new_string": "green"}),
            ))
            .turn(shell("c4", "cat poem.txt && wc -l < poem.txt"))
            .turn(calls(
                "c5",
                "write",
                &json!({"path": "new.txt", "content": "done\n"}),
            ))
            .turn(says("It is green now."));
        let stage = Stage::new(format, script);
        let poem = stage.home.project_file("poem.txt", "red\nblue\n");
        let words = ["--sandbox", "workspace-write", "Make blue green."];
        let finished = stage.run(&words).with_code(0);
        assert_eq!(finished.stdout, "It is green now.\n");
        assert_eq!(std::fs::read_to_string(poem).unwrap(), "red\ngreen\n");
        let new = stage.home.project().join("new.txt");
        assert_eq!(std::fs::read_to_string(new).unwrap(), "done\n");
        assert_contains(&stage.results(1)[0], "blue");
        assert_contains(&stage.results(2)[0], "poem.txt");
        assert_contains(&stage.results(4)[0], "green\n2");
        finished.complains(&["→ "]);
    }
}

#[test]
fn calls_that_only_read_are_made_side_by_side_in_every_format() {
    for format in FORMATS {
        let gate = Gate::new();
        let listing = r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
        let server = Script::new()
            .on("tools/list")
            .result(listing)
            .on("tools/call")
            .hold(&gate)
            .text_result("seen")
            .http();
        let three = ModelTurn::new()
            .call("p1", "mcp__web__look", &json!({"n": 1}))
            .call("p2", "mcp__web__look", &json!({"n": 2}))
            .call("p3", "mcp__web__look", &json!({"n": 3}));
        let script = ModelScript::new()
            .turn(calls("w", "wait_for_servers", &json!({})))
            .turn(three)
            .turn(says("All seen."));
        let stage = Stage::new(format, script);
        stage.home.user_file(
            "mcp.toml",
            &format!("[mcp_servers.web]\nurl = '{}'\n", server.url()),
        );
        let running = Running::start(&mut stage.exec(&["--json", "Look thrice."]));
        // All come although none of them has an answer.
        for n in 1..=3 {
            server.requests().wait_for_blocking(|request| {
                request.is("tools/call") && request.json()["params"]["arguments"]["n"] == n
            });
        }
        gate.open();
        let (code, events) = running.finish();
        assert_eq!(code, Some(0), "{format:?}");
        let servers = events.of("call_ended");
        let servers: Vec<_> = servers.iter().map(|event| &event["server"]).collect();
        assert_eq!(
            servers,
            [&json!(null), &json!("web"), &json!("web"), &json!("web")]
        );
        assert_eq!(stage.results(2), ["seen", "seen", "seen"], "{format:?}");
    }
}

#[test]
fn arguments_that_are_no_json_and_tools_that_are_not_there_are_told_to_the_model() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(ModelTurn::new().malformed_call("m1", "read", r#"{"path": "a"#))
            .turn(ModelTurn::new().malformed_call("m2", "read", "[1, 2]"))
            .turn(calls("m3", "read", &json!({"pth": "a"})))
            .turn(calls("m4", "raed", &json!({"path": "a"})))
            .turn(says("I give up."));
        let stage = Stage::new(format, script);
        stage.home.project_file("a", "text");
        let events = stage.events(&["Read a."], 0);
        assert_eq!(events.end()["response"], "I give up.", "{format:?}");
        let ended = events.of("call_ended");
        assert_eq!(ended.len(), 4);
        assert!(
            ended.iter().all(|one| one["is_error"] == true),
            "{ended:#?}"
        );
        assert_contains(&stage.results(1)[0], "are no JSON");
        assert!(!stage.results(2)[0].is_empty());
        assert_contains(&stage.results(3)[0], "pth");
        assert_contains(&stage.results(4)[0], "raed");
        assert_contains(&stage.results(4)[0], "read");
    }
}

#[test]
fn a_conversation_goes_on_in_another_process_and_with_another_provider() {
    let first = ModelScript::new()
        .turn(
            ModelTurn::new()
                .thinking("A fruit.", "signature-1")
                .text("I note it.")
                .call("functions.list:0", "list", &json!({})),
        )
        .turn(says("Noted."));
    let stage = Stage::new(ModelFormat::Anthropic, first);
    let id = stage.events(&["Remember KIWI."], 0).id();
    for format in [ModelFormat::Responses, ModelFormat::Chat] {
        let script = ModelScript::new().turn(says("KIWI it was."));
        let other = Stage::new(format, script);
        let mut command = other.exec(&["--resume", &id, "Which word?"]);
        command.env("COCODE_HOME", stage.home.home());
        command.current_dir(stage.home.project());
        let finished = crate::harness::Finished::of(command.output().unwrap()).with_code(0);
        assert_eq!(finished.stdout, "KIWI it was.\n");
        let body = other.bodies()[0].to_string();
        for part in ["Remember KIWI.", "I note it.", "Noted.", "Which word?"] {
            assert_contains(&body, part);
        }
        assert!(!body.contains("signature-1"), "{body}");
    }
    assert_eq!(stage.shown(&id)["turns"], 3);
}

#[test]
fn images_are_shown_to_models_that_see_and_left_out_for_others() {
    for format in FORMATS {
        let stage = Stage::new(format, ModelScript::new().turn(says("A dot.")));
        let image = stage.home.project().join("dot.png");
        std::fs::write(&image, b"\x89PNG\r\n\x1a\nnot much of a picture").unwrap();
        let words = ["--image", image.to_str().unwrap(), "What is this?"];
        stage.run(&words).with_code(0);
        let body = stage.bodies()[0].to_string();
        let is_seen = body.contains("iVBORw0KGgp");
        assert_eq!(is_seen, format != ModelFormat::Chat, "{body}");
        if !is_seen {
            assert_contains(&body, "was left out: this model cannot see");
        }
    }
}
