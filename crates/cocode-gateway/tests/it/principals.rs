//! Views for different principals that share their servers: what one of them has waiting is not found
//! by another.

use cocode_client::ManagerOptions;
use cocode_gateway::{View, ViewOptions};
use cocode_testkit::{Message, Script};
use serde_json::{Value, json};

use crate::consent::Always;
use crate::support::{RawClient, Rig, Server, alone};

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

/// A view of the same gateway with the same server, for somebody.
async fn view_for(rig: &Rig, server: &Server, options: ViewOptions, who: Option<&str>) -> View {
    let view = rig.gateway.view(ViewOptions {
        manager: ManagerOptions::with_environment(std::env::vars_os()),
        principal: who.map(Into::into),
        ..options
    });
    view.apply([server.spec()]).await;
    assert_eq!(view.principal(), who);
    view
}

fn client(rig: &Rig, view: &View) -> RawClient {
    rig.raw_at(view.server("upstream").unwrap())
}

fn params() -> Value {
    json!({ "name": "echo", "arguments": { "word": "hello" } })
}

fn back(asked: &Value, key: &str) -> Value {
    let mut params = params();
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({ key: { "action": "accept", "content": {} } });
    params
}

#[tokio::test]
async fn the_handle_of_a_parked_request_is_unknown_to_others() {
    let script = Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .text_result("done");
    let script = script.stdio();
    let (runs, server) = (script.runs().clone(), Server::Stdio(script));
    let spec = server.spec();
    let rig = Rig::with(server, spec, ViewOptions::default()).await;
    let server = rig.server();
    let ann = view_for(&rig, server, ViewOptions::default(), Some("ann")).await;
    let bob = view_for(&rig, server, ViewOptions::default(), Some("bob")).await;
    let again = view_for(&rig, server, ViewOptions::default(), Some("ann")).await;
    let mut anns = client(&rig, &ann);
    let asked = anns.modern(1, "tools/call", params()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let unknown = "the `requestState` is unknown, was used before, has expired, or is of another gateway: make the call again without it";
    for other in [&bob, &rig.view] {
        let mut theirs = client(&rig, other);
        let params = back(&asked, "question-1");
        let refused = theirs.modern(2, "tools/call", params.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(refused["error"]["message"], unknown);
        // Also over HTTP, where requests have nothing in common.
        let endpoint = other.server("upstream").unwrap();
        let refused = alone(&*endpoint, "tools/call", params).await;
        assert_eq!(refused["error"]["message"], unknown);
    }
    // It is as good as before for whose it is, whichever view they come to.
    let mut anns = client(&rig, &again);
    let done = anns
        .modern(3, "tools/call", back(&asked, "question-1"))
        .await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
    assert_eq!(runs.all().len(), 1, "all of them share one process");
}

#[tokio::test]
async fn nobody_takes_the_places_of_requests_that_others_have_parked() {
    let script = Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .text_result("done");
    let server = Server::Http(script.http());
    let spec = server.spec();
    let rig = Rig::with(server, spec, ViewOptions::default()).await;
    let ann = view_for(&rig, rig.server(), ViewOptions::default(), Some("ann")).await;
    let bob = view_for(&rig, rig.server(), ViewOptions::default(), Some("bob")).await;
    let (mut anns, mut bobs) = (client(&rig, &ann), client(&rig, &bob));
    let asked = anns.modern(1, "tools/call", params()).await;
    // More than a server may have parked at all.
    for _ in 0..40 {
        let asked = bobs.modern(1, "tools/call", params()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
    let back = back(&asked, "question-1");
    let done = anns.modern(2, "tools/call", back).await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
}

#[tokio::test]
async fn nobody_keeps_others_from_asking_for_consent() {
    let server = Server::Stdio(Script::modern().stdio());
    let spec = server.spec();
    let rig = Rig::with(server, spec, ViewOptions::default()).await;
    let options = || ViewOptions {
        gate: std::sync::Arc::new(Always(cocode_core::Verdict::Ask)),
        ..ViewOptions::default()
    };
    let ann = view_for(&rig, rig.server(), options(), Some("ann")).await;
    let bob = view_for(&rig, rig.server(), options(), Some("bob")).await;
    let (mut anns, mut bobs) = (client(&rig, &ann), client(&rig, &bob));
    let mut n_asked = 0;
    let refused = loop {
        let answer = bobs.modern(1, "tools/call", params()).await;
        if answer["result"].is_null() {
            break answer;
        }
        n_asked += 1;
    };
    assert_eq!(n_asked, 256, "{refused}");
    let asked = anns.modern(1, "tools/call", params()).await;
    assert!(asked["result"]["inputRequests"]["consent"].is_object());
}

#[tokio::test]
async fn a_consent_is_good_for_whom_it_was_given() {
    // Allowed once, the call comes back for the server, with a state that anybody can guess.
    let question = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{FORM}}}}},"requestState":"1"}}"#
    );
    let script = Script::modern().on("tools/call").result(question);
    let script = script.stdio();
    let received = script.received().clone();
    let server = Server::Stdio(script);
    let spec = server.spec();
    let rig = Rig::with(server, spec, ViewOptions::default()).await;
    let options = || ViewOptions {
        gate: std::sync::Arc::new(Always(cocode_core::Verdict::Ask)),
        ..ViewOptions::default()
    };
    let ann = view_for(&rig, rig.server(), options(), Some("ann")).await;
    let bob = view_for(&rig, rig.server(), options(), Some("bob")).await;
    let (mut anns, mut bobs) = (client(&rig, &ann), client(&rig, &bob));
    let asked = anns.modern(1, "tools/call", params()).await;
    assert!(asked["result"]["inputRequests"]["consent"].is_object());
    // Another's answer to it is no answer.
    let refused = bobs.modern(1, "tools/call", back(&asked, "consent")).await;
    assert!(refused["result"]["inputRequests"]["consent"].is_object());
    assert_eq!(received.count(|message| message.is("tools/call")), 0);
    let allowed = anns.modern(2, "tools/call", back(&asked, "consent")).await;
    assert_eq!(allowed["result"]["requestState"], "1", "{allowed}");
    // Nor is what was allowed once allowed to another.
    let refused = bobs.modern(2, "tools/call", back(&allowed, "q")).await;
    assert!(refused["result"]["inputRequests"]["consent"].is_object());
    let calls = |all: &[Message]| all.iter().filter(|one| one.is("tools/call")).count();
    received.wait_until(|all| calls(all) == 1).await;
    let goes_on = anns.modern(3, "tools/call", back(&allowed, "q")).await;
    assert_eq!(goes_on["result"]["requestState"], "1", "{goes_on}");
    received.wait_until(|all| calls(all) == 2).await;
}

#[tokio::test]
async fn a_task_is_unknown_to_others() {
    let script = Script::modern()
        .on("tools/call")
        .result(json!({ "resultType": "task", "taskId": "7", "status": "working" }))
        .on("tasks/get")
        .result(json!({ "resultType": "complete", "taskId": "7", "status": "working" }))
        .on("tasks/cancel")
        .result(json!({ "resultType": "complete" }));
    let script = script.stdio();
    let received = script.received().clone();
    let server = Server::Stdio(script);
    let spec = server.spec();
    let rig = Rig::with(server, spec, ViewOptions::default()).await;
    let ann = view_for(&rig, rig.server(), ViewOptions::default(), Some("ann")).await;
    let bob = view_for(&rig, rig.server(), ViewOptions::default(), Some("bob")).await;
    let mut anns = client(&rig, &ann);
    let begun = anns.modern(1, "tools/call", params()).await;
    assert_eq!(begun["result"]["taskId"], "7", "{begun}");
    for other in [&bob, &rig.view] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            for (at, id) in [
                (other.server("upstream").unwrap(), "7"),
                (other.all(), "upstream:7"),
            ] {
                let mut theirs = rig.raw_at(at);
                let refused = theirs.modern(2, method, json!({ "taskId": id })).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
                assert_eq!(refused["error"]["message"], "Unknown task");
            }
        }
    }
    // Nor does one find out by guessing what nobody has begun here.
    let guessed = anns.modern(3, "tasks/get", json!({ "taskId": "8" })).await;
    assert_eq!(guessed["error"]["message"], "Unknown task");
    let asks_of_tasks = |message: &Message| {
        let method = message.method();
        method.is_some_and(|method| method.starts_with("tasks/"))
    };
    assert_eq!(received.count(asks_of_tasks), 0);
    let mut merged = rig.raw_at(ann.all());
    let known = merged.modern(4, "tasks/get", json!({ "taskId": "upstream:7" }));
    assert_eq!(known.await["result"]["taskId"], "upstream:7");
    let known = anns.modern(5, "tasks/get", json!({ "taskId": "7" })).await;
    assert_eq!(known["result"]["taskId"], "7", "{known}");
}
