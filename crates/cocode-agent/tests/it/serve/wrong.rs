//! What callers get wrong: names of conversations, arguments, messages.

use std::sync::Arc;

use cocode_agent::{Agent, Ending};
use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of, text_in};

async fn refused(hand: &mut Hand, tool: &str, arguments: Value) -> String {
    let result = hand.call(tool, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    text_in(&result).to_owned()
}

/// What is said of arguments that the schema of a tool does not allow.
async fn invalid(hand: &mut Hand, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = hand.ask("tools/call", params).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

fn reply(id: &Value) -> Value {
    json!({ "session_id": id, "message": "go on" })
}

#[tokio::test]
async fn names_of_conversations_that_do_not_fit_get_clear_errors() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        stage.puppet().says("Mine.");
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let begun = hand.call("cocode", json!({ "prompt": "hi" })).await;
        let id = session_of(&begun);
        let malformed = invalid(&mut hand, "cocode-reply", reply(&json!("nonsense"))).await;
        assert!(malformed.contains("`session_id`"), "{malformed}");
        let unknown = json!("0f8fad5b-d9cb-469f-a165-70867728950e");
        let told = refused(&mut hand, "cocode-reply", reply(&unknown)).await;
        assert!(
            told.contains("there is no conversation `0f8fad5b"),
            "{told}"
        );
        let other = stage.server_of("bob");
        let mut bob = Hand::of(era, &other, json!({})).await;
        let foreign = refused(&mut bob, "cocode-reply", reply(&id)).await;
        let hidden = id.as_str().unwrap();
        let same = told.replace(unknown.as_str().unwrap(), hidden);
        assert_eq!(foreign, same, "it is answered like one that does not exist");
        let read = |id: &str| json!({ "uri": format!("cocode://conversations/{id}") });
        let foreign = bob.ask("resources/read", read(hidden)).await;
        let none = bob
            .ask("resources/read", read(unknown.as_str().unwrap()))
            .await;
        let (foreign, none) = (foreign["error"].to_string(), none["error"].to_string());
        assert_eq!(foreign, none.replace(unknown.as_str().unwrap(), hidden));
        let parsed = id.as_str().unwrap().parse().unwrap();
        let held = stage.scene.agent.resume(&parsed, None).await.unwrap();
        let told = refused(&mut hand, "cocode-reply", reply(&id)).await;
        assert!(told.contains("is in use"), "{told}");
        held.close().await.unwrap();
        let finished = refused(&mut hand, "cocode-reply", reply(&id)).await;
        assert!(finished.contains("is finished"), "{finished}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_and_begin_nothing() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        for (arguments, told) in [
            (json!({}), "`prompt`"),
            (
                json!({ "prompt": 7 }),
                "`prompt` of `cocode` has to be a text",
            ),
            (json!({ "prompt": "p", "sandbox": "x" }), "`sandbox`"),
            (
                json!({ "prompt": "p", "aproval-policy": "x" }),
                "`approval-policy`?",
            ),
        ] {
            let text = invalid(&mut hand, "cocode", arguments).await;
            assert!(text.contains(told), "{text}");
        }
        for (arguments, told) in [
            (
                json!({ "prompt": "p", "profile": "x" }),
                "Profiles are in the configuration.",
            ),
            (
                json!({ "prompt": "p", "cwd": "missing" }),
                "cannot be worked in",
            ),
        ] {
            let text = refused(&mut hand, "cocode", arguments).await;
            assert!(text.contains(told), "{text}");
        }
        let text = invalid(&mut hand, "cocode-reply", json!({ "message": "m" })).await;
        assert!(text.contains("`session_id`"), "{text}");
        let listed = hand.ask("resources/list", json!({})).await;
        assert_eq!(listed["result"]["resources"], json!([]));
        assert!(stage.puppet().seen().is_empty());
    }
}

#[tokio::test]
async fn calls_that_are_no_calls_are_errors_of_the_protocol() {
    let stage = Stage::free();
    for era in ["legacy", "modern"] {
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        for (params, told) in [
            (json!({}), "no tool is named"),
            (json!({ "name": "codex" }), "Unknown tool: codex"),
            (
                json!({ "name": "cocode", "arguments": [] }),
                "no JSON object",
            ),
            (json!({ "name": 1 }), "do not fit"),
        ] {
            let answer = hand.ask("tools/call", params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(told), "{message}");
        }
    }
}

#[tokio::test]
async fn a_store_that_is_broken_is_an_error_of_the_server() {
    let stage = Stage::free();
    let directory = stage.scene.directory.path();
    std::fs::write(directory.join("state"), "in the way").unwrap();
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let id = hand.begin_call("cocode", json!({ "prompt": "hi" })).await;
    let answer = hand.answer_to(id).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("cannot be used"), "{message}");
}

#[tokio::test]
async fn a_model_that_is_not_there_is_told_with_what_to_do_and_leaves_nothing() {
    let stage = Stage::free();
    let mut options = stage.scene.agent.options().clone();
    options.providers = Arc::new(NoModels);
    let scene = crate::puppet::Scene {
        agent: Agent::new(options),
        ..stage.scene
    };
    let stage = Stage::of(
        scene,
        cocode_core::ApprovalPolicy::Never,
        cocode_core::SandboxMode::ReadOnly,
    );
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let text = refused(&mut hand, "cocode", json!({ "prompt": "hi" })).await;
    assert_eq!(text, "no model is configured\nConfigure one.");
    let listed = hand.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"], json!([]));
}

#[tokio::test]
async fn a_model_that_fails_ends_the_turn_with_its_words() {
    let stage = Stage::free();
    stage.puppet().then(|_, _| {
        Err(cocode_agent::ProviderError::Unauthorized {
            provider: "puppet".into(),
            status: 401,
            message: "no key".into(),
        })
    });
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let result = hand.call("cocode", json!({ "prompt": "hi" })).await;
    assert_eq!(result["isError"], true);
    assert!(text_in(&result).contains("no key"), "{result}");
    let word = Ending::Failed(String::new()).word();
    assert_eq!(result["_meta"]["cocode/usage"]["ending"], word);
}

struct NoModels;

impl cocode_agent::Providers for NoModels {
    fn choose<'a>(
        &'a self,
        _choice: &'a cocode_agent::ModelChoice,
        _sampler: Option<Arc<dyn cocode_agent::Sampler>>,
    ) -> cocode_agent::Work<'a, Result<cocode_agent::Chosen, cocode_agent::ChoiceError>> {
        Box::pin(async {
            Err(cocode_agent::ChoiceError {
                message: "no model is configured".into(),
                hints: vec!["Configure one.".into()],
            })
        })
    }
}
