//! Who shares a server, and whose questions reach whom.

use cocode_client::Protocol;
use cocode_testkit::{Gate, Message, Script};
use serde_json::{Value, json};

use crate::support::{Person, Rig, Server, alone, call};

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

/// A server that asks whoever it thinks is there, and tells who answered.
fn asking(gate: &Gate) -> Script {
    Script::new()
        .on("tools/call")
        .nth(1)
        .hold(gate)
        .ask("elicitation/create", FORM)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
        .on("tools/call")
        .nth(2)
        .text_result("not asked")
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
}

fn name_in(result: &cocode_client::CallResult) -> String {
    let told: Value = result.structured().unwrap().decode().unwrap();
    let name = told["result"]["content"]["name"].as_str();
    name.unwrap_or_else(|| panic!("a name in {told}"))
        .to_owned()
}

#[tokio::test]
async fn clients_share_one_process() {
    let server = Script::new().stdio();
    let starts = server.received().clone();
    let rig = Rig::new(Server::Stdio(server)).await;
    let person = Person::willing("Ada");
    for client in [Protocol::Legacy, Protocol::Modern, Protocol::Legacy] {
        let session = rig.client(client, &person).await;
        call(&session).await.unwrap();
    }
    let calls = |all: &[Message]| all.iter().filter(|one| one.is("tools/call")).count();
    starts.wait_until(|all| calls(all) == 3).await;
    assert_eq!(starts.count(|message| message.is("initialize")), 1);
}

#[tokio::test]
async fn a_question_reaches_the_client_whose_call_it_is_about() {
    for client in [Protocol::Legacy, Protocol::Modern] {
        let gate = Gate::new();
        let server = asking(&gate).stdio();
        let received = server.received().clone();
        let rig = Rig::new(Server::Stdio(server)).await;
        let (ada, bob) = (Person::willing("Ada"), Person::willing("Bob"));
        let one = rig.client(client, &ada).await;
        let other = rig.client(client, &bob).await;
        let first = call(&one);
        let rest = async {
            received.wait_for(|message| message.is("tools/call")).await;
            gate.open();
            call(&other).await.unwrap();
            ada.wait_until_asked().await;
            name_in(&call(&other).await.unwrap())
        };
        let (first, last) = tokio::join!(first, rest);
        assert_eq!(name_in(&first.unwrap()), "Ada", "{client:?}");
        assert_eq!(last, "Bob", "{client:?}");
    }
}

#[tokio::test]
async fn a_client_that_comes_to_a_server_that_asks_gets_one_of_its_own() {
    let gate = Gate::new();
    gate.open();
    let server = asking(&gate).stdio();
    let received = server.received().clone();
    let rig = Rig::new(Server::Stdio(server)).await;
    let (ada, bob) = (Person::willing("Ada"), Person::willing("Bob"));
    let one = rig.client(Protocol::Legacy, &ada).await;
    assert_eq!(name_in(&call(&one).await.unwrap()), "Ada");
    let other = rig.client(Protocol::Legacy, &bob).await;
    assert_eq!(name_in(&call(&other).await.unwrap()), "Bob");
    let hellos = |all: &[Message]| all.iter().filter(|one| one.is("initialize")).count();
    received.wait_until(|all| hellos(all) == 2).await;
    // Its first client keeps what it has.
    call(&one).await.unwrap();
    assert_eq!(received.count(|message| message.is("initialize")), 2);
}

#[tokio::test]
async fn two_questions_that_could_be_for_either_reach_nobody_wrong() {
    let gate = Gate::new();
    let script = Script::new()
        .on("tools/call")
        .hold(&gate)
        .ask("elicitation/create", FORM)
        .result(r#"{"content":[],"structuredContent":$answer}"#);
    let server = script.stdio();
    let received = server.received().clone();
    let rig = Rig::new(Server::Stdio(server)).await;
    let (ada, bob) = (Person::willing("Ada"), Person::willing("Bob"));
    let one = rig.client(Protocol::Legacy, &ada).await;
    let other = rig.client(Protocol::Legacy, &bob).await;
    let calls = |all: &[Message]| all.iter().filter(|one| one.is("tools/call")).count();
    let opening = async {
        received.wait_until(|all| calls(all) == 2).await;
        gate.open();
    };
    let (ada_is_told, bob_is_told, ()) = tokio::join!(call(&one), call(&other), opening);
    let told = |result: cocode_client::CallResult| -> Value {
        result.structured().unwrap().decode().unwrap()
    };
    let answers = [told(ada_is_told.unwrap()), told(bob_is_told.unwrap())];
    // Which of the two is refused depends on which question came first.
    let refused = answers.iter().filter(|answer| answer["error"].is_object());
    assert_eq!(refused.count(), 1, "{answers:?}");
    for (answer, name) in answers.iter().zip(["Ada", "Bob"]) {
        let content = &answer["result"]["content"];
        assert!(content.is_null() || content["name"] == name, "{answers:?}");
    }
}

#[tokio::test]
async fn what_is_asked_for_a_call_that_was_given_up_reaches_nobody_else() {
    let (first, second) = (Gate::new(), Gate::new());
    let script = Script::new()
        .on("tools/call")
        .nth(1)
        .hold(&first)
        .ask("elicitation/create", FORM)
        .on("tools/call")
        .nth(2)
        .hold(&second)
        .text_result("fine");
    let server = script.stdio();
    let received = server.received().clone();
    let rig = Rig::new(Server::Stdio(server)).await;
    let (ada, bob) = (Person::willing("Ada"), Person::willing("Bob"));
    let one = rig.client(Protocol::Legacy, &ada).await;
    let other = rig.client(Protocol::Legacy, &bob).await;
    tokio::select! {
        answer = call(&one) => panic!("{answer:?}"),
        _ = received.wait_for(|message| message.is("tools/call")) => {}
    }
    received
        .wait_for(|message| message.is("notifications/cancelled"))
        .await;
    let rest = async {
        let calls = |all: &[Message]| all.iter().filter(|one| one.is("tools/call")).count();
        received.wait_until(|all| calls(all) == 2).await;
        first.open();
        let refused = received.wait_for(|message| message.json()["error"].is_object());
        refused.await;
        second.open();
    };
    let (answer, ()) = tokio::join!(call(&other), rest);
    assert_eq!(crate::support::text_of(&answer.unwrap()), "fine");
    assert_eq!(*bob.asked.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_view_is_in_use_while_somebody_without_a_session_waits() {
    let gate = Gate::new();
    let script = Script::modern().on("tools/call").hold(&gate);
    let server = script.text_result("done").stdio();
    let received = server.received().clone();
    let rig = Rig::new(Server::Stdio(server)).await;
    let endpoint = rig.endpoint();
    assert!(!rig.view.is_in_use());
    let call = || Box::pin(alone(&*endpoint, "tools/call", json!({ "name": "echo" })));
    let mut waiting = call();
    tokio::select! {
        answer = &mut waiting => panic!("{answer}"),
        _held = received.wait_for(|message| message.is("tools/call")) => {}
    }
    assert!(rig.view.is_in_use() && !rig.view.has_sessions());
    gate.open();
    waiting.await;
    assert!(!rig.view.is_in_use());
    // One that is given up waits for nothing, nor does one that is not begun.
    drop(call());
    assert!(!rig.view.is_in_use());
}
