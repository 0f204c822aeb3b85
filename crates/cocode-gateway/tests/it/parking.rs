//! Requests that wait for their clients: who may come back, with what, and how often.

use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use crate::support::{RawClient, Rig, Server};

const FORM: &str =
    r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}},"n":1.10}"#;

fn asking() -> Script {
    Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
}

fn params() -> Value {
    json!({ "name": "echo", "arguments": { "word": "hello" } })
}

/// Calls the tool, and gives the handle under which the call waits.
async fn park(client: &mut RawClient) -> String {
    let answer = client.modern(1, "tools/call", params()).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let questions = answer["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions["question-1"]["method"], "elicitation/create");
    answer["result"]["requestState"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn with_answer(mut params: Value, state: &str) -> Value {
    params["requestState"] = state.into();
    params["inputResponses"] = json!({
        "question-1": { "action": "accept", "content": {} },
        "something-else": { "action": "accept" },
    });
    params
}

#[tokio::test]
async fn a_client_comes_back_on_another_connection_and_gets_the_result() {
    let rig = Rig::new(Server::Stdio(asking().stdio())).await;
    let (mut one, mut other) = (rig.raw(), rig.raw());
    let state = park(&mut one).await;
    let answer = other.modern(2, "tools/call", with_answer(params(), &state));
    let answer = answer.await;
    let told = &answer["result"]["structuredContent"]["result"];
    assert_eq!(told["action"], "accept", "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_question_goes_out_as_it_came() {
    let rig = Rig::new(Server::Stdio(asking().stdio())).await;
    let mut client = rig.raw();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}"#;
    client.send(request).await;
    let line = client.line().await;
    assert!(line.contains(&format!(r#""params":{FORM}"#)), "{line}");
}

#[tokio::test]
async fn a_handle_is_good_once() {
    let rig = Rig::new(Server::Stdio(asking().stdio())).await;
    let mut client = rig.raw();
    let state = park(&mut client).await;
    let first = client.modern(2, "tools/call", with_answer(params(), &state));
    assert!(first.await["result"].is_object());
    let second = client.modern(3, "tools/call", with_answer(params(), &state));
    let second = second.await;
    assert_eq!(second["error"]["code"], -32602, "{second}");
}

#[tokio::test]
async fn a_handle_is_good_for_its_own_request_only_and_stays_good_for_that() {
    let rig = Rig::new(Server::Stdio(asking().stdio())).await;
    let mut client = rig.raw();
    let state = park(&mut client).await;
    let other = json!({ "name": "echo", "arguments": { "word": "other" } });
    let forged = client.modern(2, "tools/call", with_answer(other, &state));
    let forged = forged.await;
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    let right = client.modern(3, "tools/call", with_answer(params(), &state));
    assert!(right.await["result"].is_object());
}

#[tokio::test]
async fn a_forged_handle_is_refused_and_nothing_is_called() {
    let server = asking().stdio();
    let received = server.received().clone();
    let rig = Rig::new(Server::Stdio(server)).await;
    let mut client = rig.raw();
    for forged in ["", "0", "0123456789abcdef0123456789abcdef0123456789abcdef"] {
        let answer = client.modern(2, "tools/call", with_answer(params(), forged));
        let answer = answer.await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(received.count(|message| message.is("tools/call")), 0);
}

#[tokio::test]
async fn who_comes_back_without_an_answer_is_asked_again() {
    let rig = Rig::new(Server::Stdio(asking().stdio())).await;
    let mut client = rig.raw();
    let state = park(&mut client).await;
    let mut empty = params();
    empty["requestState"] = state.as_str().into();
    let again = client.modern(2, "tools/call", empty).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let state = again["result"]["requestState"].as_str().unwrap().to_owned();
    let last = client.modern(3, "tools/call", with_answer(params(), &state));
    assert!(last.await["result"]["structuredContent"].is_object());
}

/// A question with an id of its own, which the server does not wait for.
fn question(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"elicitation/create","params":{FORM}}}"#)
}

#[tokio::test]
async fn all_questions_of_a_call_reach_its_client() {
    let script = Script::new()
        .on("tools/call")
        .nth(1)
        .line(question("q1"))
        .ask("elicitation/create", FORM)
        .text_result("asked twice")
        .on("tools/call")
        .text_result("not asked");
    let rig = Rig::new(Server::Stdio(script.stdio())).await;
    let (mut one, mut other) = (rig.raw(), rig.raw());
    let asking = async {
        let mut answer = one.modern(1, "tools/call", params()).await;
        loop {
            let result = &answer["result"];
            let state = result["requestState"].as_str().unwrap().to_owned();
            let mut again = params();
            if result["inputRequests"]["question-2"].is_object() {
                again = with_answer(again, &state);
                again["inputResponses"]["question-2"] = json!({ "action": "decline" });
                return one.modern(3, "tools/call", again).await;
            }
            // Its client looks whether there is more.
            again["requestState"] = state.into();
            answer = one.modern(2, "tools/call", again).await;
        }
    };
    let asked = asking.await;
    let unasked = other.modern(1, "tools/call", params()).await;
    assert_eq!(unasked["result"]["content"][0]["text"], "not asked");
    assert_eq!(asked["result"]["content"][0]["text"], "asked twice");
}

#[tokio::test]
async fn a_server_that_takes_its_question_back_is_done_without_the_client() {
    let gate = Gate::new();
    let script = Script::new()
        .on("tools/call")
        .nth(1)
        .line(question("q1"))
        .hold(&gate)
        .notify("notifications/cancelled", r#"{"requestId":"q1"}"#)
        .text_result("done anyway")
        .on("tools/call")
        .text_result("the next");
    let rig = Rig::new(Server::Stdio(script.stdio())).await;
    let (mut one, mut other) = (rig.raw(), rig.raw());
    let state = park(&mut one).await;
    gate.open();
    // It is not in the way of others, although its client never came back.
    let answer = other.modern(1, "tools/call", params()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "the next");
    let late = one.modern(2, "tools/call", with_answer(params(), &state));
    assert_eq!(late.await["result"]["content"][0]["text"], "done anyway");
}

#[tokio::test]
async fn calls_that_wait_leave_room_for_others() {
    let script = Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .result(r#"{"content":[]}"#);
    let rig = Rig::new(Server::Http(script.http())).await;
    let mut client = rig.raw();
    let first = park(&mut client).await;
    let mut last = String::new();
    for _ in 0..32 {
        last = park(&mut client).await;
    }
    // The oldest made room.
    let gone = client.modern(1, "tools/call", with_answer(params(), &first));
    assert_eq!(gone.await["error"]["code"], -32602);
    let kept = client.modern(1, "tools/call", with_answer(params(), &last));
    assert_eq!(kept.await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_call_that_waits_ends_with_the_connection_of_its_client() {
    let server = asking().stdio();
    let received = server.received().clone();
    let rig = Rig::new(Server::Stdio(server)).await;
    let mut one = rig.raw();
    park(&mut one).await;
    drop(one);
    let cancelled = received.wait_for(|message| message.is("notifications/cancelled"));
    cancelled.await;
}
