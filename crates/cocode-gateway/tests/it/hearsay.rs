//! What a server says without saying for whom, where several principals share it: nothing of one reaches
//! another.

use cocode_client::ManagerOptions;
use cocode_gateway::{View, ViewOptions};
use cocode_testkit::{Gate, Message, Script};
use serde_json::{Value, json};

use crate::support::{RawClient, Rig, Server};

const SECRET: &str = r#"{"level":"error","data":"finished the job of carl"}"#;
const CHANGED: &str = "notifications/tools/list_changed";

async fn view_for(rig: &Rig, who: &str) -> View {
    let view = rig.gateway.view(ViewOptions {
        manager: ManagerOptions::with_environment(std::env::vars_os()),
        principal: Some(who.into()),
        ..ViewOptions::default()
    });
    view.apply([rig.server().spec()]).await;
    view
}

async fn rig(script: Script) -> Rig {
    let server = Server::Stdio(script.stdio());
    let spec = server.spec();
    Rig::with(server, spec, ViewOptions::default()).await
}

/// A client with a session that can be asked to visit an address.
async fn client(rig: &Rig, view: &View) -> RawClient {
    let mut client = rig.raw_at(view.server("upstream").unwrap());
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": { "elicitation": { "url": {} } },
        "clientInfo": { "name": "raw", "version": "1" },
    }});
    client.send(&hello.to_string()).await;
    assert!(client.json().await["result"].is_object());
    client
}

async fn call(client: &mut RawClient) {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {},
    }});
    client.send(&request.to_string()).await;
}

/// What is heard up to a message that is about this.
async fn until(client: &mut RawClient, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        let message = client.json().await;
        if is_it(&message) {
            return heard;
        }
        heard.push(message);
    }
}

async fn answered(client: &mut RawClient) -> Vec<Value> {
    until(client, |message| message["id"] == 1).await
}

async fn changed(client: &mut RawClient) -> Vec<Value> {
    until(client, |message| message["method"] == CHANGED).await
}

/// A server that logs something after its first call was answered, and then that its tools are others.
fn late(gate: &Gate) -> Script {
    Script::new()
        .on("tools/call")
        .nth(1)
        .text_result("begun")
        .hold(gate)
        .notify("notifications/message", SECRET)
        .notify("notifications/vendor", r#"{"of":"carl"}"#)
        .notify(CHANGED, "{}")
}

#[tokio::test]
async fn what_is_logged_after_an_answer_is_not_told_to_another_principal() {
    let gate = Gate::new();
    let rig = rig(late(&gate)).await;
    let (carl, eve) = (view_for(&rig, "carl").await, view_for(&rig, "eve").await);
    let mut eves = client(&rig, &eve).await;
    let mut carls = client(&rig, &carl).await;
    call(&mut carls).await;
    assert_eq!(answered(&mut carls).await, [] as [Value; 0]);
    gate.open();
    // She has only listened, and it has worked for him alone.
    assert_eq!(changed(&mut eves).await, [] as [Value; 0]);
    let heard = changed(&mut carls).await;
    assert_eq!(heard.len(), 2, "{heard:?}");
}

#[tokio::test]
async fn nobody_is_told_what_may_be_about_any_of_several() {
    let gate = Gate::new();
    let rig = rig(late(&gate)).await;
    let (carl, eve) = (view_for(&rig, "carl").await, view_for(&rig, "eve").await);
    let mut eves = client(&rig, &eve).await;
    let mut carls = client(&rig, &carl).await;
    for client in [&mut carls, &mut eves] {
        call(client).await;
        answered(client).await;
    }
    gate.open();
    for client in [&mut carls, &mut eves] {
        assert_eq!(changed(client).await, [] as [Value; 0]);
    }
}

#[tokio::test]
async fn nor_what_comes_while_it_works_for_another() {
    let script = Script::new()
        .on("tools/call")
        .nth(1)
        .text_result("begun")
        .on("tools/call")
        .notify("notifications/message", SECRET)
        .notify("notifications/tasks/status", r#"{"taskId":"of carl"}"#)
        .text_result("done");
    let rig = rig(script).await;
    let (carl, eve) = (view_for(&rig, "carl").await, view_for(&rig, "eve").await);
    let mut carls = client(&rig, &carl).await;
    call(&mut carls).await;
    answered(&mut carls).await;
    let mut eves = client(&rig, &eve).await;
    call(&mut eves).await;
    assert_eq!(answered(&mut eves).await, [] as [Value; 0]);
}

#[tokio::test]
async fn notifications_of_a_principal_reach_no_server_that_serves_others() {
    let rig = rig(Script::new()).await;
    let carl = view_for(&rig, "carl").await;
    let mut client = client(&rig, &carl).await;
    for method in [
        "notifications/progress",
        "notifications/tasks/status",
        "notifications/x",
    ] {
        let told = json!({ "jsonrpc": "2.0", "method": method, "params": { "progressToken": 7 } });
        client.send(&told.to_string()).await;
    }
    call(&mut client).await;
    answered(&mut client).await;
    let Server::Stdio(server) = rig.server() else {
        panic!("a program");
    };
    let is_passed_on = |message: &Message| {
        let method = message.method().unwrap_or_default();
        method.starts_with("notifications/") && method != "notifications/initialized"
    };
    let passed = server.received().count(is_passed_on);
    assert_eq!(passed, 0);
}

#[tokio::test]
async fn one_principal_hears_what_there_is_in_all_sessions() {
    let gate = Gate::new();
    let rig = rig(late(&gate)).await;
    let carl = view_for(&rig, "carl").await;
    let mut one = client(&rig, &carl).await;
    let mut other = client(&rig, &carl).await;
    call(&mut one).await;
    answered(&mut one).await;
    gate.open();
    for client in [&mut one, &mut other] {
        let heard = changed(client).await;
        assert!(heard[0]["params"]["data"].is_string(), "{heard:?}");
    }
}

#[tokio::test]
async fn that_an_address_was_visited_is_told_to_whoever_was_asked_to() {
    let question = json!({
        "mode": "url", "message": "Pay", "url": "https://example.com/", "elicitationId": "e-1",
    });
    let gate = Gate::new();
    let script = Script::new()
        .on("tools/call")
        .nth(1)
        .text_result("first")
        .on("tools/call")
        .ask("elicitation/create", question)
        .text_result("begun")
        .hold(&gate)
        .notify(
            "notifications/elicitation/complete",
            r#"{"elicitationId":"e-1"}"#,
        )
        .notify(CHANGED, "{}");
    let rig = rig(script).await;
    let (carl, eve) = (view_for(&rig, "carl").await, view_for(&rig, "eve").await);
    let mut eves = client(&rig, &eve).await;
    call(&mut eves).await;
    answered(&mut eves).await;
    let mut carls = client(&rig, &carl).await;
    call(&mut carls).await;
    let asked = carls.json().await;
    assert_eq!(asked["params"]["elicitationId"], "e-1", "{asked}");
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
    carls.send(&answer.to_string()).await;
    answered(&mut carls).await;
    gate.open();
    let heard = changed(&mut carls).await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["params"]["elicitationId"], "e-1");
    assert_eq!(changed(&mut eves).await, [] as [Value; 0]);
}
