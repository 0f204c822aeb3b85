//! Conversations that are begun and go on, in both eras, and several at once.

use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of, text_in};

fn texts(seen: &crate::puppet::Seen) -> Vec<String> {
    let messages = seen.messages.iter();
    messages
        .map(|message| cocode_agent::text_of(&message.content))
        .collect()
}

#[tokio::test]
async fn a_conversation_has_two_turns_in_either_era() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        stage.puppet().says("Hello.").says("Still here.");
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let first = hand.call("cocode", json!({ "prompt": "hi" })).await;
        assert_eq!(text_in(&first), "Hello.");
        assert_eq!(first["structuredContent"]["response"], "Hello.");
        assert_eq!(first["isError"], false);
        let usage = &first["_meta"]["cocode/usage"];
        assert_eq!(
            (&usage["steps"], &usage["ending"]),
            (&json!(1), &json!("done"))
        );
        assert_eq!(usage["input_tokens"], 100);
        assert_eq!(usage["output_tokens"], 10);
        assert!(usage["cost_usd"].as_f64().unwrap() > 0.0, "{usage}");
        let id = session_of(&first);
        let reply = json!({ "session_id": id, "message": "there?" });
        let second = hand.call("cocode-reply", reply).await;
        assert_eq!(text_in(&second), "Still here.");
        assert_eq!(
            second["structuredContent"],
            json!({ "response": "Still here." })
        );
        assert_eq!(texts(&stage.puppet().seen()[1]), ["hi", "Hello.", "there?"]);
        let kind = if era == "modern" {
            json!("complete")
        } else {
            Value::Null
        };
        assert_eq!(second["resultType"], kind);
    }
}

#[tokio::test]
async fn a_conversation_goes_on_with_another_server_after_a_restart() {
    let stage = Stage::free();
    stage.puppet().says("One.").says("Two.");
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let first = hand.call("cocode", json!({ "prompt": "hi" })).await;
    hand.leave().await;
    stage.server.shutdown().await;
    let after = stage.server_of("ann");
    let mut hand = Hand::modern(&after, json!({}));
    let reply = json!({ "session_id": session_of(&first), "message": "on" });
    let second = hand.call("cocode-reply", reply).await;
    assert_eq!(text_in(&second), "Two.");
    assert_eq!(texts(&stage.puppet().seen()[1]), ["hi", "One.", "on"]);
}

#[tokio::test]
async fn what_is_asked_for_reaches_whoever_knows_the_configuration() {
    let stage = Stage::free();
    std::fs::create_dir(stage.scene.work().join("inner")).unwrap();
    stage
        .puppet()
        .calls(&[("1", "shell", json!({ "command": "pwd" }))])
        .says("There.");
    let mut hand = Hand::modern(&stage.server, json!({}));
    let arguments = json!({
        "prompt": "where?",
        "cwd": "inner",
        "model": "m",
        "config": { "a": 1 },
        "developer-instructions": "be kind",
    });
    hand.call("cocode", arguments).await;
    let asked = stage.setup.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.model.as_deref(), Some("m"));
    assert_eq!(asked.config.get("a"), Some(&json!(1)));
    assert_eq!(asked.developer_instructions.as_deref(), Some("be kind"));
    let where_it_was = stage.puppet().seen()[1].results()[0].clone();
    assert!(where_it_was.contains("work/inner"), "{where_it_was}");
}

#[tokio::test]
async fn several_conversations_go_on_at_once_on_one_connection() {
    let stage = Stage::free();
    let wait = |mine: &str, other: &str| {
        let command = format!("touch {mine}; while ! test -e {other}; do sleep 0.01; done");
        json!({ "command": command })
    };
    // Each waits for what the other does, so neither is done if they take turns.
    stage
        .puppet()
        .calls(&[("1", "shell", wait("a", "b"))])
        .calls(&[("2", "shell", wait("b", "a"))])
        .says("Done.")
        .says("Done.");
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let first = hand.begin_call("cocode", json!({ "prompt": "one" })).await;
    let second = hand.begin_call("cocode", json!({ "prompt": "two" })).await;
    let mut answered = Vec::new();
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let answer = hand.next().await;
        assert_eq!(text_in(&answer["result"]), "Done.");
        answered.push(answer["id"].as_u64().unwrap());
        sessions.push(session_of(&answer["result"]));
    }
    answered.sort_unstable();
    assert_eq!(answered, [first, second]);
    assert_ne!(sessions[0], sessions[1]);
}

#[tokio::test]
async fn a_turn_that_is_not_done_is_an_error_that_can_be_gone_on_from() {
    let stage = Stage::free();
    for number in 0..20 {
        let command = json!({ "command": format!("echo {number}") });
        stage.puppet().calls(&[("1", "shell", command)]);
    }
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let result = hand.call("cocode", json!({ "prompt": "go" })).await;
    assert_eq!(result["isError"], true);
    assert_eq!(result["_meta"]["cocode/usage"]["ending"], "too_many_steps");
    let id = session_of(&result);
    assert!(text_in(&result).contains(id.as_str().unwrap()), "{result}");
    stage.puppet().says("Done after all.");
    let reply = json!({ "session_id": id, "message": "go on" });
    let second = hand.call("cocode-reply", reply).await;
    assert_eq!(text_in(&second), "Done after all.");
}
