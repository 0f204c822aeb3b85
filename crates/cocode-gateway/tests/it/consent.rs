//! Tools that rules hide, and tools that somebody has to allow first.

use std::sync::Arc;

use cocode_client::{Annotations, ClientCapabilities, Protocol};
use cocode_core::{ServerName, Verdict};
use cocode_gateway::{Gate, ViewOptions};
use cocode_testkit::Script;
use serde_json::json;

use crate::support::{Person, Rig, Server, call, text_of};

pub(crate) struct Always(pub(crate) Verdict);

impl Gate for Always {
    fn decide(&self, _server: &ServerName, _tool: &str, _annotations: Annotations) -> Verdict {
        self.0
    }

    fn reason(&self, server: &ServerName, tool: &str, _annotations: Annotations) -> Option<String> {
        Some(format!("a rule of the test asks about {server}, {tool}"))
    }
}

async fn rig(verdict: Verdict) -> (Rig, cocode_testkit::Recorder<cocode_testkit::Message>) {
    let server = Script::new().on("tools/call").text_result("done").stdio();
    let received = server.received().clone();
    let server = Server::Stdio(server);
    let spec = server.spec();
    let options = ViewOptions {
        gate: Arc::new(Always(verdict)),
        ..ViewOptions::default()
    };
    (Rig::with(server, spec, options).await, received)
}

#[tokio::test]
async fn a_tool_that_is_denied_does_not_exist() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (rig, received) = rig(Verdict::Deny).await;
        let session = rig.client(protocol, &Person::willing("Ada")).await;
        assert!(session.tools().await.unwrap().items.is_empty());
        let error = call(&session).await.unwrap_err().to_string();
        assert!(error.contains("tools/call"), "{error}");
        assert_eq!(received.count(|message| message.is("tools/call")), 0);
    }
}

#[tokio::test]
async fn a_call_is_made_after_somebody_said_yes() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (rig, _) = rig(Verdict::Ask).await;
        let person = Person::willing("Ada");
        let session = rig.client(protocol, &person).await;
        for times in 1..=2 {
            assert_eq!(text_of(&call(&session).await.unwrap()), "done");
            assert_eq!(person.asked.lock().unwrap().len(), times, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn a_question_about_a_call_lists_every_argument() {
    let (rig, _) = rig(Verdict::Ask).await;
    let mut client = rig.raw();
    let arguments = json!({ "a": "\n".repeat(50_000), "path": "x", "other": "y\u{202e}z" });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let params = json!({ "name": "echo", "arguments": arguments, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    // Which of two equal names counts is up to the server.
    let request = request.to_string().replace("\"other\"", "\"path\"");
    client.send(&request).await;
    let asked = client.json().await;
    let message = &asked["result"]["inputRequests"]["consent"]["params"]["message"];
    let lines: Vec<&str> = message.as_str().unwrap().lines().collect();
    assert!(lines[0].starts_with("May the tool `echo` of server"));
    assert!(
        lines[1].starts_with("  a: \"\\n") && lines[1].len() < 2_000,
        "{}",
        lines[1]
    );
    assert_eq!(lines[2..], ["  path: \"y\\u{202e}z\"", "  path: \"x\""]);
}

#[tokio::test]
async fn a_call_is_not_made_where_nobody_can_be_asked() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (rig, received) = rig(Verdict::Ask).await;
        let nobody = Person::able("Ada", ClientCapabilities::default());
        let session = rig.client(protocol, &nobody).await;
        call(&session).await.unwrap_err();
        assert_eq!(received.count(|message| message.is("tools/call")), 0);
    }
}

#[tokio::test]
async fn an_answer_that_was_no_or_is_forged_allows_nothing() {
    let (rig, received) = rig(Verdict::Ask).await;
    let mut client = rig.raw();
    let params = json!({ "name": "echo", "arguments": { "word": "x" } });
    let asked = client.modern(1, "tools/call", params.clone()).await;
    let state = asked["result"]["requestState"].clone();
    assert!(
        asked["result"]["inputRequests"]["consent"].is_object(),
        "{asked}"
    );
    let yes = json!({ "consent": { "action": "accept", "content": {} } });
    let no = json!({ "consent": { "action": "decline" } });
    let mut other = params.clone();
    other["arguments"]["word"] = "y".into();
    for (mut params, state, answer) in [
        (params.clone(), json!("guessed"), &yes),
        (other, state.clone(), &yes),
        (params.clone(), state.clone(), &no),
        // The handle is used up by now.
        (params, state, &yes),
    ] {
        params["requestState"] = state;
        params["inputResponses"] = answer.clone();
        let answer = client.modern(2, "tools/call", params).await;
        let is_asked_again = answer["result"]["resultType"] == "input_required";
        assert!(is_asked_again || answer["error"].is_object(), "{answer}");
    }
    assert_eq!(received.count(|message| message.is("tools/call")), 0);
}

#[tokio::test]
async fn a_request_without_an_id_gets_past_nobody() {
    let (rig, received) = rig(Verdict::Deny).await;
    let mut client = rig.raw();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    client.send(hello).await;
    client.line().await;
    let params = r#"{"name":"echo","arguments":{"word":"x"}}"#;
    let call = format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{params}}}"#);
    client.send(&call).await;
    // What is told in the right way arrives, and after what came before it.
    let told = r#"{"jsonrpc":"2.0","method":"notifications/custom"}"#;
    client.send(told).await;
    received
        .wait_for(|message| message.is("notifications/custom"))
        .await;
    assert_eq!(received.count(|message| message.is("tools/call")), 0);
}
