//! Calls that are taken back, connections that end, servers that end: no child is left.

use std::path::PathBuf;
use std::time::Duration;

use cocode_wire::serve::{Asked, Endpoint as _, Sink};
use cocode_wire::{Frame, HeaderMap};
use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of, text_in};

/// A model that wants a command which does not end by itself.
pub(super) fn endless(stage: &Stage) {
    let command = json!({ "command": "sleep 600 & echo $! > pid; wait" });
    stage.puppet().calls(&[("1", "shell", command)]);
}

/// The process of that command, when it is there.
pub(super) async fn process(stage: &Stage) -> PathBuf {
    let file = stage.scene.work().join("pid");
    loop {
        let pid = std::fs::read_to_string(&file).unwrap_or_default();
        if !pid.trim().is_empty() {
            let process = PathBuf::from(format!("/proc/{}", pid.trim()));
            assert!(process.exists());
            return process;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) async fn gone(process: PathBuf) {
    while process.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_call_that_is_taken_back_gets_no_answer_and_leaves_no_child() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        endless(&stage);
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let call = hand.begin_call("cocode", json!({ "prompt": "go" })).await;
        let process = process(&stage).await;
        // The next answer is that to the next request; and who goes on waits for what was taken back.
        stage.puppet().says("What was that?");
        let listed = hand.ask("resources/list", json!({})).await;
        let uri = listed["result"]["resources"][0]["uri"].clone();
        let id = uri.as_str().unwrap().rsplit('/').next().unwrap();
        let reply = json!({ "session_id": id, "message": "again" });
        let used = hand.call("cocode-reply", reply.clone()).await;
        assert!(text_in(&used).contains("is in use"), "{used}");
        hand.cancel(call).await;
        let result = hand.call("cocode-reply", reply).await;
        assert_eq!(text_in(&result), "What was that?");
        gone(process).await;
        let told = stage.puppet().seen()[1].results()[0].clone();
        assert!(told.contains("Interrupted by the user"), "{told}");
    }
}

#[tokio::test]
async fn a_model_that_is_asked_is_let_go_when_its_call_is_taken_back() {
    let stage = Stage::free();
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let id = hand.begin_call("cocode", json!({ "prompt": "go" })).await;
    hand.until_progress("writes: I am think").await;
    hand.cancel(id).await;
    let pong = hand.ask("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
}

#[tokio::test]
async fn a_question_is_taken_back_with_the_call() {
    let stage = Stage::asking();
    let command = json!({ "command": "touch a" });
    stage.puppet().calls(&[("1", "shell", command)]);
    let mut hand = Hand::legacy(&stage.server, json!({ "elicitation": {} })).await;
    let id = hand.begin_call("cocode", json!({ "prompt": "go" })).await;
    let question = hand.next().await;
    assert_eq!(question["method"], "elicitation/create");
    hand.cancel(id).await;
    let told = loop {
        let message = hand.message().await;
        if message["method"] == "notifications/cancelled" {
            break message;
        }
    };
    assert_eq!(told["params"]["requestId"], question["id"]);
    // An answer that comes too late harms nobody.
    let yes = json!({ "action": "accept", "content": { "decision": "once" } });
    hand.reply(&question, yes).await;
    hand.ask("ping", json!({})).await;
    assert!(!stage.scene.work().join("a").exists());
}

#[tokio::test]
async fn the_end_of_a_connection_ends_its_turns() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        endless(&stage);
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        hand.begin_call("cocode", json!({ "prompt": "go" })).await;
        let process = process(&stage).await;
        hand.leave().await;
        gone(process).await;
    }
}

#[tokio::test]
async fn a_request_that_stands_alone_ends_with_whoever_waits_for_it() {
    struct Nobody;
    impl Sink for Nobody {
        fn send(&self, _message: bytes::Bytes) -> bool {
            true
        }
    }
    let stage = Stage::free();
    endless(&stage);
    let request = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "cocode",
            "arguments": { "prompt": "go" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let serving = stage.server.stateless().request(Asked {
        frame: Frame::parse(request.to_string().into()).unwrap(),
        headers: HeaderMap::new(),
        stream: std::sync::Arc::new(Nobody),
    });
    let process = tokio::select! {
        answer = serving => panic!("{answer:?}"),
        process = process(&stage) => process,
    };
    // Over HTTP, this is how the end of the stream is told.
    gone(process).await;
}

#[tokio::test]
async fn a_server_that_ends_answers_its_calls_and_leaves_no_child() {
    let stage = Stage::free();
    endless(&stage);
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let id = hand.begin_call("cocode", json!({ "prompt": "go" })).await;
    let process = process(&stage).await;
    stage.server.shutdown().await;
    let answer = hand.answer_to(id).await;
    let result = &answer["result"];
    assert_eq!(result["_meta"]["cocode/usage"]["ending"], "interrupted");
    session_of(result);
    gone(process).await;
    let refused = hand.ask("tools/call", call()).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("is ending"), "{message}");
}

#[tokio::test]
async fn more_turns_than_are_held_at_once_are_refused_until_one_ends() {
    let stage = Stage::free();
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let mut last = 0;
    for _ in 0..64 {
        last = hand.begin("tools/call", call()).await;
    }
    let refused = hand.ask("tools/call", call()).await;
    let refused = &refused["result"];
    assert_eq!(refused["isError"], true);
    assert!(text_in(refused).contains("64 conversations"), "{refused}");
    while stage.puppet().seen().len() < 64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.puppet().says("There is room.");
    hand.cancel(last).await;
    let held = loop {
        let answer = hand.ask("tools/call", call()).await;
        if answer["result"]["isError"] == false {
            break answer;
        }
    };
    assert_eq!(text_in(&held["result"]), "There is room.");
}

fn call() -> Value {
    json!({ "name": "cocode", "arguments": { "prompt": "go" } })
}
