//! Conversations whose model is that of the client.

use std::sync::Arc;

use cocode_agent::providers::{ClientModel, ClientModelOptions};
use cocode_agent::{ChoiceError, Chosen, Model, ModelChoice, Providers, Sampler, Work};
use cocode_core::{ApprovalPolicy, SandboxMode};
use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, text_in};
use crate::puppet::Scene;

/// Asks whoever called, and has nothing else.
struct Borrowed;

impl Providers for Borrowed {
    fn choose<'a>(
        &'a self,
        _choice: &'a ModelChoice,
        sampler: Option<Arc<dyn Sampler>>,
    ) -> Work<'a, Result<Chosen, ChoiceError>> {
        Box::pin(async {
            let sampler = sampler.ok_or_else(|| ChoiceError {
                message: "the client lends no model".into(),
                hints: Vec::new(),
            })?;
            let model = Model {
                name: String::new(),
                context_window: 100_000,
                max_output_tokens: None,
                vision: false,
                tools: sampler.takes_tools(),
                price: None,
            };
            let provider = Arc::new(ClientModel::new(ClientModelOptions {
                name: "client".into(),
                sampler,
                hints: Vec::new(),
            }));
            Ok(Chosen { provider, model })
        })
    }
}

fn stage() -> Stage {
    let scene = Scene::with(None, |options| {
        options.providers = Arc::new(Borrowed);
        options.max_steps = 100;
    });
    Stage::of(scene, ApprovalPolicy::Never, SandboxMode::DangerFullAccess)
}

fn text(text: &str) -> Value {
    json!({
        "role": "assistant",
        "model": "lent-1",
        "content": { "type": "text", "text": text },
        "stopReason": "endTurn",
    })
}

fn shell(command: &str) -> Value {
    let input = json!({ "command": command });
    let content = json!({ "type": "tool_use", "id": "c", "name": "shell", "input": input });
    json!({ "role": "assistant", "model": "lent-1", "content": content, "stopReason": "toolUse" })
}

/// Calls, and lends a model that says these. Gives what it was asked, and the result.
async fn lending(era: &str, hand: &mut Hand, said: &[Value]) -> (Vec<Value>, Value) {
    let go = json!({ "prompt": "go" });
    let mut asked = Vec::new();
    let mut said = said.iter().cloned();
    let id = hand.begin_call("cocode", go.clone()).await;
    let mut message = hand.next().await;
    loop {
        if era == "legacy" {
            if message.get("method").is_none() {
                assert_eq!(message["id"], id);
                return (asked, message["result"].clone());
            }
            assert_eq!(message["method"], "sampling/createMessage");
            asked.push(message["params"].clone());
            hand.reply(&message, said.next().unwrap()).await;
            message = hand.next().await;
        } else {
            let result = message["result"].clone();
            if result["resultType"] != "input_required" {
                return (asked, result);
            }
            let requests = result["inputRequests"].as_object().unwrap().clone();
            let mut answers = json!({});
            for (key, request) in requests {
                assert_eq!(request["method"], "sampling/createMessage");
                asked.push(request["params"].clone());
                answers[key] = said.next().unwrap();
            }
            let state = result["requestState"].clone();
            message = hand.come_back("cocode", go.clone(), &state, answers).await;
        }
    }
}

fn tools_of(asked: &Value) -> usize {
    asked["tools"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn the_model_of_the_client_uses_tools_if_the_client_says_that_it_can() {
    for era in ["legacy", "modern"] {
        let stage = stage();
        let can = json!({ "sampling": { "tools": {} } });
        let mut hand = Hand::of(era, &stage.server, can).await;
        let said = [shell("echo found it"), text("It is there.")];
        let (asked, result) = lending(era, &mut hand, &said).await;
        assert_eq!(text_in(&result), "It is there.");
        assert_eq!(asked.len(), 2);
        assert!(tools_of(&asked[0]) > 0);
        let told = asked[1]["messages"].to_string();
        assert!(
            told.contains("found it") && told.contains("tool_result"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn the_model_of_the_client_gets_no_tools_otherwise() {
    for era in ["legacy", "modern"] {
        let stage = stage();
        let can = json!({ "sampling": {} });
        let mut hand = Hand::of(era, &stage.server, can).await;
        let (asked, result) = lending(era, &mut hand, &[text("By heart.")]).await;
        assert_eq!(text_in(&result), "By heart.");
        assert_eq!(tools_of(&asked[0]), 0);
    }
}

#[tokio::test]
async fn a_call_takes_as_many_rounds_as_a_turn_may_have_steps() {
    for era in ["legacy", "modern"] {
        let stage = stage();
        let can = json!({ "sampling": { "tools": {} } });
        let mut hand = Hand::of(era, &stage.server, can).await;
        let rounds = (0..60).map(|number| shell(&format!("echo {number}")));
        let said: Vec<Value> = rounds.chain([text("Counted.")]).collect();
        let (asked, result) = lending(era, &mut hand, &said).await;
        assert_eq!((asked.len(), text_in(&result)), (61, "Counted."));
        assert_eq!(result["_meta"]["cocode/usage"]["steps"], 61);
    }
}

#[tokio::test]
async fn a_client_that_lends_no_model_is_not_asked_for_one() {
    for era in ["legacy", "modern"] {
        let stage = stage();
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let result = hand.call("cocode", json!({ "prompt": "go" })).await;
        assert_eq!(result["isError"], true);
        assert_eq!(text_in(&result), "the client lends no model");
    }
}

#[tokio::test]
async fn a_client_that_refuses_ends_the_turn_with_its_words() {
    let stage = stage();
    let mut hand = Hand::legacy(&stage.server, json!({ "sampling": {} })).await;
    let id = hand.begin_call("cocode", json!({ "prompt": "go" })).await;
    let request = hand.next().await;
    let error = json!({ "code": -1, "message": "User rejected sampling request" });
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
    hand.send(answer).await;
    let answer = hand.answer_to(id).await;
    let result = &answer["result"];
    assert_eq!(result["isError"], true);
    assert!(text_in(result).contains("User rejected"), "{result}");
}

#[tokio::test]
async fn an_agent_goes_on_with_the_model_of_whoever_calls_next() {
    let stage = stage();
    let mut hand = Hand::legacy(&stage.server, json!({ "sampling": {} })).await;
    let (_, first) = lending("legacy", &mut hand, &[text("One.")]).await;
    let id = super::hand::session_of(&first);
    let mut other = Hand::modern(&stage.server, json!({ "sampling": {} }));
    let reply = json!({ "session_id": id, "message": "and?" });
    let asked = other.call("cocode-reply", reply.clone()).await;
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let state = &asked["requestState"];
    let answers = json!({ key: text("Two.") });
    let done = other.come_back("cocode-reply", reply, state, answers).await;
    assert_eq!(text_in(&done["result"]), "Two.");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_never_brought_back_interrupts_the_turn() {
    let stage = stage();
    let mut hand = Hand::modern(&stage.server, json!({ "sampling": {} }));
    let go = json!({ "prompt": "go" });
    let asked = hand.call("cocode", go.clone()).await;
    let key = asked["inputRequests"].as_object().unwrap().keys().next();
    let answers = json!({ key.unwrap(): text("Too late.") });
    tokio::time::sleep(std::time::Duration::from_mins(11)).await;
    let state = &asked["requestState"];
    let late = hand.come_back("cocode", go, state, answers).await;
    let late = &late["result"];
    assert_eq!(late["_meta"]["cocode/usage"]["ending"], "interrupted");
    assert!(!text_in(late).contains("Too late"), "{late}");
}
