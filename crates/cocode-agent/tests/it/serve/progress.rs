//! What whoever waits is told meanwhile.

use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of};

#[tokio::test]
async fn every_step_is_told_in_order_and_nothing_after_the_answer() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        stage
            .puppet()
            .calls(&[("1", "shell", json!({ "command": "true" }))])
            .calls(&[("2", "shell", json!({ "command": "false" }))])
            .says("That was it.\nMore.");
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let result = hand.call("cocode", json!({ "prompt": "go" })).await;
        let told = hand.progress();
        let id = session_of(&result);
        let id = id.as_str().unwrap();
        let expected = [
            format!("began conversation {id}").as_str(),
            "thinking (step 1)",
            "calls shell: true",
            "shell done in",
            "thinking (step 2)",
            "calls shell: false",
            "shell",
            "thinking (step 3)",
            "writes: That was it.",
        ]
        .map(str::to_owned);
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, expected) in told.iter().zip(&expected) {
            assert!(told.starts_with(expected), "{told} / {expected}");
        }
        let mut last = 0;
        for report in &hand.heard {
            let params = &report["params"];
            let number = params["progress"].as_u64().unwrap();
            assert!(number > last, "{report}");
            last = number;
            let token = params["progressToken"].as_str().unwrap();
            assert!(token.starts_with("token-"), "{report}");
        }
        hand.ask("tools/list", json!({})).await;
        assert_eq!(hand.progress().len(), expected.len());
    }
}

#[tokio::test]
async fn who_does_not_want_to_know_is_told_nothing() {
    let stage = Stage::free();
    stage.puppet().says("Done.");
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    for token in [Value::Null, json!({}), json!(1.5)] {
        stage.puppet().says("Done.");
        let params = json!({
            "name": "cocode",
            "arguments": { "prompt": "go" },
            "_meta": { "progressToken": token },
        });
        hand.ask("tools/call", params).await;
    }
    let params = json!({ "name": "cocode", "arguments": { "prompt": "go" } });
    hand.ask("tools/call", params).await;
    assert!(hand.heard.is_empty(), "{:?}", hand.heard);
}

#[tokio::test]
async fn who_comes_back_hears_of_what_follows_under_its_own_token() {
    let stage = Stage::asking();
    let command = json!({ "command": "true" });
    stage
        .puppet()
        .calls(&[("1", "shell", command)])
        .says("Done.");
    let mut hand = Hand::modern(&stage.server, json!({ "elicitation": {} }));
    let go = json!({ "prompt": "go" });
    let asked = hand.call("cocode", go.clone()).await;
    let before = hand.heard.len();
    let last = hand.progress().last().unwrap().clone();
    assert_eq!(last, "waiting for approval: shell: true");
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let yes = json!({ "action": "accept", "content": { "decision": "once" } });
    let state = &asked["requestState"];
    hand.come_back("cocode", go, state, json!({ key: yes }))
        .await;
    let tokens: Vec<&str> = hand
        .heard
        .iter()
        .map(|report| report["params"]["progressToken"].as_str().unwrap())
        .collect();
    assert!(
        tokens[..before].iter().all(|token| *token == "token-1"),
        "{tokens:?}"
    );
    assert!(tokens.len() > before, "{tokens:?}");
    assert!(
        tokens[before..].iter().all(|token| *token == "token-2"),
        "{tokens:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_told_to_be_still_at_it() {
    let stage = Stage::free();
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    hand.begin_call("cocode", json!({ "prompt": "go" })).await;
    hand.until_progress("still at it: writes: I am think").await;
}
