//! A person is asked by the client, in both eras.

use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of, text_in};

fn elicitation() -> Value {
    json!({ "elicitation": {} })
}

fn decision(word: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": word } })
}

fn write(name: &str) -> Value {
    json!({ "command": format!("touch {name}") })
}

/// Calls, and answers what is asked in the way of the era. Gives the questions and the result.
async fn answering(
    era: &str,
    hand: &mut Hand,
    tool: &str,
    arguments: Value,
    answers: &[Value],
) -> (Vec<Value>, Value) {
    let mut questions = Vec::new();
    let mut answers = answers.iter().cloned();
    let id = hand.begin_call(tool, arguments.clone()).await;
    let mut message = hand.next().await;
    loop {
        if era == "legacy" {
            if message["id"] == id && message.get("method").is_none() {
                return (questions, message["result"].clone());
            }
            assert_eq!(message["method"], "elicitation/create", "{message}");
            questions.push(message["params"].clone());
            let answer = answers.next().unwrap();
            hand.reply(&message, answer).await;
            message = hand.next().await;
        } else {
            let result = message["result"].clone();
            if result["resultType"] != "input_required" {
                return (questions, result);
            }
            let requests = result["inputRequests"].as_object().unwrap().clone();
            let mut responses = json!({});
            for (key, request) in requests {
                assert_eq!(request["method"], "elicitation/create", "{request}");
                questions.push(request["params"].clone());
                responses[key] = answers.next().unwrap();
            }
            let state = result["requestState"].clone();
            message = hand
                .come_back(tool, arguments.clone(), &state, responses)
                .await;
        }
    }
}

#[tokio::test]
async fn once_means_this_time_only() {
    for era in ["legacy", "modern"] {
        let stage = Stage::asking();
        stage
            .puppet()
            .calls(&[("1", "shell", write("a"))])
            .calls(&[("2", "shell", write("a"))])
            .says("Done.");
        let mut hand = Hand::of(era, &stage.server, elicitation()).await;
        let answers = [decision("once"), decision("once")];
        let prompt = json!({ "prompt": "go" });
        let (asked, result) = answering(era, &mut hand, "cocode", prompt, &answers).await;
        assert_eq!(text_in(&result), "Done.", "{result}");
        assert_eq!(asked.len(), 2);
        let message = asked[0]["message"].as_str().unwrap();
        assert!(message.contains("shell: touch a"), "{message}");
        assert!(message.contains("because the approval policy"), "{message}");
        assert_eq!(asked[0]["mode"], "form");
        assert!(stage.scene.work().join("a").exists());
    }
}

#[tokio::test]
async fn always_lasts_for_the_conversation_and_for_no_other() {
    for era in ["legacy", "modern"] {
        let stage = Stage::asking();
        stage
            .puppet()
            .calls(&[("1", "shell", write("a"))])
            .calls(&[("2", "shell", write("a"))])
            .says("Done.")
            .calls(&[("3", "shell", write("a"))])
            .says("Again.")
            .calls(&[("4", "shell", write("a"))])
            .says("Not here.");
        let mut hand = Hand::of(era, &stage.server, elicitation()).await;
        let always = [decision("always")];
        let prompt = json!({ "prompt": "go" });
        let (asked, result) = answering(era, &mut hand, "cocode", prompt.clone(), &always).await;
        assert_eq!((asked.len(), text_in(&result)), (1, "Done."));
        let reply = json!({ "session_id": session_of(&result), "message": "again" });
        let (asked, result) = answering(era, &mut hand, "cocode-reply", reply, &[]).await;
        assert_eq!((asked.len(), text_in(&result)), (0, "Again."));
        let refuse = [decision("refuse")];
        let (asked, _) = answering(era, &mut hand, "cocode", prompt, &refuse).await;
        assert_eq!(asked.len(), 1);
    }
}

#[tokio::test]
async fn a_refusal_is_told_to_the_model_with_its_reason() {
    for era in ["legacy", "modern"] {
        let with_reason = json!({
            "action": "accept",
            "content": { "decision": "refuse", "reason": "not on a Friday" },
        });
        let declined = json!({ "action": "decline" });
        for (answer, told) in [(with_reason, "not on a Friday"), (declined, "said no")] {
            let stage = Stage::asking();
            let calls = [("1", "shell", write("a"))];
            stage.puppet().calls(&calls).says("As you like.");
            let mut hand = Hand::of(era, &stage.server, elicitation()).await;
            let prompt = json!({ "prompt": "go" });
            let (_, result) = answering(era, &mut hand, "cocode", prompt, &[answer]).await;
            assert_eq!(text_in(&result), "As you like.");
            let results = stage.puppet().seen()[1].results();
            assert!(results[0].contains(told), "{results:?}");
            assert!(!stage.scene.work().join("a").exists());
        }
    }
}

#[tokio::test]
async fn who_stops_or_turns_away_ends_the_turn() {
    for era in ["legacy", "modern"] {
        for answer in [decision("stop"), json!({ "action": "cancel" })] {
            let stage = Stage::asking();
            stage.puppet().calls(&[("1", "shell", write("a"))]);
            let mut hand = Hand::of(era, &stage.server, elicitation()).await;
            let prompt = json!({ "prompt": "go" });
            let (_, result) = answering(era, &mut hand, "cocode", prompt, &[answer]).await;
            assert_eq!(result["isError"], true);
            assert_eq!(result["_meta"]["cocode/usage"]["ending"], "interrupted");
            assert!(text_in(&result).contains("cocode-reply"), "{result}");
            assert!(!stage.scene.work().join("a").exists());
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_who_cannot_be() {
    let url_only = json!({ "elicitation": { "url": {} } });
    let cases = [
        ("legacy", "2025-11-25", json!({})),
        ("legacy", "2025-11-25", url_only.clone()),
        ("legacy", "2025-03-26", elicitation()),
        ("modern", "", json!({})),
        ("modern", "", url_only),
    ];
    for (era, revision, capabilities) in cases {
        let stage = Stage::asking();
        stage
            .puppet()
            .calls(&[("1", "shell", write("a"))])
            .says("Then not.");
        let mut hand = if era == "legacy" {
            let mut hand = Hand::silent(&stage.server);
            hand.open(revision, capabilities).await;
            hand
        } else {
            Hand::modern(&stage.server, capabilities)
        };
        let result = hand.call("cocode", json!({ "prompt": "go" })).await;
        assert_eq!(text_in(&result), "Then not.");
        let results = stage.puppet().seen()[1].results();
        assert!(results[0].contains("nobody can be asked"), "{results:?}");
    }
}

#[tokio::test]
async fn forms_have_names_for_choices_where_the_revision_knows_no_titles() {
    let stage = Stage::asking();
    stage
        .puppet()
        .calls(&[("1", "shell", write("a"))])
        .says("Done.");
    let mut hand = Hand::silent(&stage.server);
    let opened = hand.open("2025-06-18", elicitation()).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    let prompt = json!({ "prompt": "go" });
    let once = [decision("once")];
    let (asked, _) = answering("legacy", &mut hand, "cocode", prompt, &once).await;
    let form = &asked[0]["requestedSchema"]["properties"]["decision"];
    assert!(
        form["enumNames"].is_array() && form.get("oneOf").is_none(),
        "{form}"
    );
}

#[tokio::test]
async fn a_client_that_answers_with_an_error_could_not_ask() {
    let stage = Stage::asking();
    stage
        .puppet()
        .calls(&[("1", "shell", write("a"))])
        .says("Then not.");
    let mut hand = Hand::legacy(&stage.server, elicitation()).await;
    let id = hand.begin_call("cocode", json!({ "prompt": "go" })).await;
    let request = hand.next().await;
    let error = json!({ "code": -32603, "message": "no screen" });
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
    hand.send(answer).await;
    let answer = hand.answer_to(id).await;
    assert_eq!(text_in(&answer["result"]), "Then not.");
    let results = stage.puppet().seen()[1].results();
    assert!(results[0].contains("nobody can be asked"), "{results:?}");
}
