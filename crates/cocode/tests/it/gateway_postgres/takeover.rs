//! A conversation whose gateway is killed in the middle of a reply: it goes on at another, for whom it
//! belongs to and for nobody else.

use std::thread;
use std::time::Duration;

use cocode_testkit::{Gate, ModelFormat, ModelScript, ModelTurn, PostgresPeer, ScriptedModel};
use serde_json::{Value, json};

use super::Machine;
use crate::gateway::Running;
use crate::http::ByHand;

const BEGIN: &str = "mcp__cocode__cocode";
const REPLY: &str = "mcp__cocode__cocode-reply";

/// A gateway with an agent that works where all of them do.
fn gateway(machine: &Machine, model: &ScriptedModel, work: &Machine) -> Running {
    let words = ["gateway", "--listen", ":0", "--json", "--agent"];
    let mut command = machine.command(&words);
    command
        .current_dir(work.home.project())
        .env("ANTHROPIC_BASE_URL", model.base_url())
        .env("ANTHROPIC_API_KEY", "key");
    let mut gateway = Running::of(&mut command);
    gateway.until_ready(&["cocode"]);
    gateway
}

fn client(gateway: &Running, token: &str) -> ByHand {
    ByHand::new(gateway.url(), Some(token)).initialized()
}

#[track_caller]
fn response(answer: &Value) -> &str {
    let said = &answer["result"]["structuredContent"]["response"];
    said.as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// What a tool says instead of doing what it was asked.
#[track_caller]
fn refusal(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn system_a_conversation_goes_on_after_its_gateway_was_killed() {
    let peer = PostgresPeer::start();
    let machines = [Machine::new(&peer), Machine::new(&peer)];
    let [one, other] = &machines;
    let (ana, bob) = (one.token("ana"), other.token("bob"));
    let gate = Gate::new();
    let model = ModelScript::new()
        .turn(ModelTurn::new().text("Noted."))
        .turn(ModelTurn::new().text("It was ").hold(&gate).text("42."))
        .turn(ModelTurn::new().text("Still 42."))
        .start(ModelFormat::Anthropic);
    let first = gateway(one, &model, one);
    let second = gateway(other, &model, one);

    let at_first = client(&first, &ana);
    let begun = at_first.call(BEGIN, &json!({ "prompt": "remember 42" }));
    assert_eq!(response(&begun), "Noted.");
    let id = begun["result"]["structuredContent"]["session_id"].clone();
    let asked = |message: &str| json!({ "session_id": id, "message": message });
    let what = asked("what was it?");
    let waiting = thread::spawn(move || at_first.call(REPLY, &what));
    // It is in the middle of the reply, of which something is written down.
    while peer.sql("cocode", "SELECT count(*) FROM cocode.drafts") == "0" {
        thread::sleep(Duration::from_millis(20));
    }
    let (anas, bobs) = (client(&second, &ana), client(&second, &bob));
    let held = anas.call(REPLY, &asked("are you there?"));
    assert!(refusal(&held).contains("is in use"), "{held}");
    let foreign = bobs.call(REPLY, &asked("what did she say?"));
    assert!(
        refusal(&foreign).contains("there is no conversation"),
        "{foreign}"
    );

    let (code, _) = first.end("-KILL");
    assert_eq!(code, None);
    assert!(waiting.join().is_err(), "the call fails with its gateway");
    // The lock is free when the database has seen the end of the connection.
    let again = loop {
        let answer = anas.call(REPLY, &asked("once more"));
        if answer["result"]["isError"] != true {
            break answer;
        }
        assert!(refusal(&answer).contains("is in use"), "{answer}");
    };
    assert_eq!(response(&again), "Still 42.");
    let said = model.bodies().pop().unwrap()["messages"].to_string();
    for words in ["remember 42", "Noted.", "what was it?", "once more"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    model.assert_no_violations();
    whose_it_is(&machines, &bobs, &anas, &id);
    gate.open();
    other.end(second);
}

/// It is listed for its principal, and for who looks after the gateways.
fn whose_it_is(machines: &[Machine; 2], bobs: &ByHand, anas: &ByHand, id: &Value) {
    let listed = |client: &ByHand| {
        let listed = client.request("resources/list", &json!({}));
        listed.with_status(200).json()["result"].to_string()
    };
    let id = id.as_str().unwrap();
    assert!(listed(anas).contains(id));
    assert!(!listed(bobs).contains(id));
    let uri = format!("cocode://conversations/{id}");
    let read = bobs
        .request("resources/read", &json!({ "uri": uri }))
        .json();
    assert!(read["error"].is_object(), "{read}");
    for machine in machines {
        let kept = machine.run(&["sessions", "list", "--gateway", "--json"]);
        let kept: Value = serde_json::from_str(&kept.with_code(0).stdout).unwrap();
        assert_eq!(kept[0]["session_id"], id, "{kept}");
        assert_eq!(kept[0]["turns"], 3, "{kept}");
        assert_eq!(kept[0]["in_use"], false, "{kept}");
        let owner = kept[0]["owner"].as_str().unwrap();
        assert!(owner.starts_with("ana at the gateway in /"), "{owner}");
        let own = machine.run(&["sessions", "list", "--json"]).with_code(0);
        assert_eq!(own.stdout.trim(), "[]");
    }
    let [one, other] = machines;
    let shown = one.run(&["sessions", "show", "--gateway", id]).with_code(0);
    assert!(shown.stdout.contains("Still 42."), "{}", shown.stdout);
    other.run(&["sessions", "rm", "--gateway", id]).with_code(0);
    let gone = one.run(&["sessions", "show", "--gateway", id, "--json"]);
    assert_eq!(gone.with_code(2).error()["code"], "conversation-failed");
}
