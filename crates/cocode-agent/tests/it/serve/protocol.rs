//! Methods, codes and capabilities of both eras.

use serde_json::{Value, json};

use super::Stage;
use super::hand::Hand;

fn capabilities() -> Value {
    json!({
        "tools": {},
        "resources": {},
        "prompts": {},
        "experimental": { "codex/sandbox-state": {} },
    })
}

#[tokio::test]
async fn a_session_begins_with_its_revision_and_touches_no_disk() {
    for (requested, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let stage = Stage::free();
        let mut hand = Hand::silent(&stage.server);
        let opened = hand.open(requested, json!({})).await;
        let opened = &opened["result"];
        assert_eq!(opened["protocolVersion"], given);
        assert_eq!(opened["capabilities"], capabilities());
        assert_eq!(opened["serverInfo"]["name"], "cocode");
        assert!(opened["instructions"].is_string());
        hand.ask("tools/list", json!({})).await;
        assert!(!stage.scene.directory.path().join("state").exists());
    }
}

#[tokio::test]
async fn who_needs_no_session_is_told_everything_at_once() {
    let stage = Stage::free();
    let mut hand = Hand::modern(&stage.server, json!({}));
    let found = hand.ask("server/discover", json!({})).await;
    let found = &found["result"];
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["supportedVersions"].as_array().unwrap().len(), 5);
    assert_eq!(found["capabilities"], capabilities());
    assert_eq!(found["cacheScope"], "private");
    assert!(found["ttlMs"].is_u64());
    let info = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "cocode");
}

#[tokio::test]
async fn the_tools_have_schemas_for_what_they_take_and_give() {
    let stage = Stage::free();
    for era in ["legacy", "modern"] {
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let listed = hand.ask("tools/list", json!({})).await;
        let listed = &listed["result"];
        let tools = listed["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["cocode", "cocode-reply"]);
        assert_eq!(
            tools[0]["outputSchema"]["required"],
            json!(["session_id", "response"])
        );
        assert_eq!(tools[1]["outputSchema"]["required"], json!(["response"]));
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["prompt"]));
        assert_eq!(listed["ttlMs"].is_u64(), era == "modern");
    }
}

#[tokio::test]
async fn every_request_is_answered_as_its_era_wants_it() {
    let stage = Stage::free();
    let mut hand = Hand::silent(&stage.server);
    let early = hand.ask("tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32600, "{early}");
    assert_eq!(hand.ask("ping", json!({})).await["result"], json!({}));
    let lacking = hand.ask("initialize", json!({})).await;
    assert_eq!(lacking["error"]["code"], -32602);
    hand.open("2025-11-25", json!({})).await;
    for (method, params, code) in [
        ("server/discover", json!({}), -32601),
        ("logging/setLevel", json!({ "level": "info" }), -32601),
        ("tools/list", json!({ "cursor": "2" }), -32602),
        ("tools/list", json!([]), -32602),
        ("prompts/list", json!({ "cursor": "2" }), -32602),
        ("resources/templates/list", json!({ "cursor": "2" }), -32602),
    ] {
        let answer = hand.ask(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    let mut hand = Hand::modern(&stage.server, json!({}));
    for (method, code) in [
        ("ping", -32601),
        ("initialize", -32601),
        ("resources/subscribe", -32601),
    ] {
        let answer = hand.ask(method, json!({})).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
}

#[tokio::test]
async fn what_a_request_says_about_itself_has_to_fit() {
    let stage = Stage::free();
    let mut hand = Hand::silent(&stage.server);
    let of = |revision: &str, capabilities: Value| {
        json!({ "_meta": {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        } })
    };
    for unknown in ["2026-09-01", "2025-11-25"] {
        let answer = hand.ask("tools/list", of(unknown, json!({}))).await;
        assert_eq!(answer["error"]["code"], -32022, "{answer}");
        let data = &answer["error"]["data"];
        assert_eq!(data["requested"], unknown);
        assert_eq!(data["supported"][0], "2026-07-28");
    }
    for capabilities in [Value::Null, json!([])] {
        let answer = hand.ask("tools/list", of("2026-07-28", capabilities)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}
