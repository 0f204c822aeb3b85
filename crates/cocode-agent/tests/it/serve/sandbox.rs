//! What the sandbox of a client allows is the most that its conversations may do.

use cocode_agent::Store as _;
use cocode_agent::serve::SetupError;
use cocode_core::SandboxMode;
use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of, text_in};

fn state(word: &str) -> Value {
    json!({ "sandboxPolicy": { "type": word }, "sandboxCwd": "/work" })
}

/// What a conversation is held with now.
async fn mode_of(stage: &Stage, id: &Value) -> SandboxMode {
    let id = id.as_str().unwrap().parse().unwrap();
    let conversation = stage.scene.agent.resume(&id, None).await.unwrap();
    conversation.settings().sandbox
}

#[tokio::test]
async fn a_client_is_believed_about_its_sandbox_by_request_and_by_notification() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        stage.puppet().says("One.").says("Two.").says("Three.");
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let go = json!({ "prompt": "go" });
        let free = hand.call("cocode", go.clone()).await;
        let free = session_of(&free);
        assert_eq!(mode_of(&stage, &free).await, SandboxMode::DangerFullAccess);
        let method = "codex/sandbox-state/update";
        let taken = hand.ask(method, state("workspace-write")).await;
        assert!(taken["result"].is_object(), "{taken}");
        let confined = hand.call("cocode", go).await;
        let confined = session_of(&confined);
        assert_eq!(
            mode_of(&stage, &confined).await,
            SandboxMode::WorkspaceWrite
        );
        let told = json!({ "jsonrpc": "2.0", "method": method, "params": state("read-only") });
        hand.send(told).await;
        // Conversations that were begun with more lose it, too.
        let reply = json!({ "session_id": free, "message": "on" });
        hand.call("cocode-reply", reply).await;
        assert_eq!(mode_of(&stage, &free).await, SandboxMode::ReadOnly);
        let id = free.as_str().unwrap().parse().unwrap();
        let stored = stage.scene.store.load(&id).await.unwrap();
        assert_eq!(stored.summary.turns, 2);
    }
}

#[tokio::test]
async fn ceilings_that_came_later_hold_for_conversations_that_go_on() {
    let stage = Stage::free();
    stage.puppet().says("One.").says("Two.");
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let begun = hand.call("cocode", json!({ "prompt": "go" })).await;
    let id = session_of(&begun);
    *stage.setup.ceiling.lock().unwrap() = Some(Ok(SandboxMode::ReadOnly));
    let reply = json!({ "session_id": id, "message": "on" });
    let gone_on = hand.call("cocode-reply", reply.clone()).await;
    assert_eq!(gone_on["isError"], false);
    assert_eq!(mode_of(&stage, &id).await, SandboxMode::ReadOnly);
    let refusal = SetupError {
        message: "not here".into(),
        hints: vec!["Go there.".into()],
    };
    *stage.setup.ceiling.lock().unwrap() = Some(Err(refusal));
    let refused = hand.call("cocode-reply", reply).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(text_in(&refused), "not here\nGo there.");
}
