//! What only the Messages interface has: its exact requests, caches, signatures, its reasons to stop.

use cocode_agent::providers::{Anthropic, AnthropicOptions, ApiKey, Thinking};
use cocode_agent::{Block, Provider as _, Stop, ToolResult, Usage};
use cocode_testkit::{ModelFormat, ModelScript, ModelTurn};
use cocode_wire::{HttpClient, Url};
use serde_json::json;

use super::support::{KEY, Peer, after, call, image, result, user};

const FORMAT: ModelFormat = ModelFormat::Anthropic;

#[tokio::test]
async fn a_conversation_is_sent_exactly_as_documented() {
    let peer = Peer::saying(FORMAT, ModelTurn::new().text("7")).with_tool();
    let thought = Block::Reasoning {
        text: "Easy.".into(),
        provider: "anthropic".into(),
        opaque: Some(json!({"type": "thinking", "signature": "c2ln"})),
    };
    let failed = Block::ToolResult(ToolResult {
        id: "toolu_2".into(),
        content: vec![Block::text("no")],
        is_error: true,
    });
    let messages = after(
        vec![
            thought,
            Block::text("Both."),
            call("toolu_1", json!({"a": 3, "b": 4})),
            call("toolu_2", json!({"a": 0, "b": 0})),
        ],
        // The interface wants the results first, wherever they are.
        vec![
            Block::text("Go on."),
            result("toolu_1", vec![Block::text("7"), image()]),
            failed,
        ],
    );
    peer.reply(&messages).await;
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png",
                         "data": "iVBORw0KGgo="}});
    let expected = json!({
        "model": "some-model",
        "max_tokens": 4096,
        "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{
            "name": "add",
            "description": "Adds two numbers.",
            "input_schema": peer.tools[0].parameters,
            "cache_control": {"type": "ephemeral"},
        }],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Easy.", "signature": "c2ln"},
                {"type": "text", "text": "Both."},
                {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 3, "b": 4}},
                {"type": "tool_use", "id": "toolu_2", "name": "add", "input": {"a": 0, "b": 0}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1",
                 "content": [{"type": "text", "text": "7"}, picture]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true,
                 "content": [{"type": "text", "text": "no"}]},
                {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    });
    assert_eq!(peer.server.bodies(), [expected]);
    let request = &peer.server.requests().all()[0];
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn signatures_and_hidden_thoughts_come_back_as_they_were() {
    let turn = ModelTurn::new()
        .thinking("Hm.", "c2ln")
        .redacted("aGlkZGVu")
        .text("Yes.");
    let script = ModelScript::new()
        .turn(turn)
        .turn(ModelTurn::new().text("ok"));
    let peer = Peer::start(FORMAT, script);
    let reply = peer.reply(&[user("hi")]).await;
    peer.reply(&after(reply.content, vec![Block::text("Well?")]))
        .await;
    let given_back = &peer.server.bodies()[1]["messages"][1]["content"];
    let expected = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
        {"type": "text", "text": "Yes."},
    ]);
    assert_eq!(*given_back, expected);
}

#[tokio::test]
async fn reasons_to_stop_are_told_apart() {
    for (word, expected) in [
        ("stop_sequence", Stop::Done),
        ("pause_turn", Stop::Other("pause_turn".into())),
        ("model_context_window_exceeded", Stop::MaxTokens),
        ("new_reason", Stop::Other("new_reason".into())),
    ] {
        let peer = Peer::saying(FORMAT, ModelTurn::new().text("hi").stops(word));
        assert_eq!(peer.reply(&[user("hi")]).await.stop, expected, "{word}");
    }
}

#[tokio::test]
async fn the_four_kinds_of_tokens_are_counted_apart() {
    let peer = Peer::saying(FORMAT, ModelTurn::new().text("hi").usage(1, 2, 3, 4));
    let usage = Usage {
        input: 1,
        output: 2,
        cache_read: 3,
        cache_write: 4,
    };
    assert_eq!(peer.reply(&[user("hi")]).await.usage, usage);
}

#[tokio::test]
async fn names_of_calls_from_elsewhere_are_made_to_fit() {
    let peer = Peer::saying(FORMAT, ModelTurn::new().text("ok")).with_tool();
    let messages = after(
        vec![call("functions.add:0", json!({}))],
        vec![result("functions.add:0", Vec::new())],
    );
    peer.reply(&messages).await;
    let sent = &peer.server.bodies()[0]["messages"];
    assert_eq!(sent[1]["content"][0]["id"], "functions_add_0");
    assert_eq!(sent[2]["content"][0]["tool_use_id"], "functions_add_0");
}

#[tokio::test]
async fn thinking_is_asked_for_as_configured() {
    for (thinking, expected) in [
        (Thinking::Unsaid, json!(null)),
        (Thinking::Adaptive, json!({"type": "adaptive"})),
        (
            Thinking::Budget(2000),
            json!({"type": "enabled", "budget_tokens": 2000}),
        ),
        (
            Thinking::Budget(1),
            json!({"type": "enabled", "budget_tokens": 1024}),
        ),
        (
            Thinking::Budget(1_000_000),
            json!({"type": "enabled", "budget_tokens": 4095}),
        ),
    ] {
        let peer = Peer::saying(FORMAT, ModelTurn::new().text("hi"));
        let url = Url::parse(&format!("{}/v1/", peer.server.base_url())).unwrap();
        let key = ApiKey::new(KEY).unwrap();
        let mut options = AnthropicOptions::new("a", url, Some(key), HttpClient::default());
        options.thinking = thinking;
        let messages = [user("hi")];
        let request = peer.request(&messages);
        Anthropic::new(options)
            .reply(request, &mut |_| {})
            .await
            .unwrap();
        peer.server.assert_no_violations();
        assert_eq!(
            peer.server.bodies()[0]["thinking"],
            expected,
            "{thinking:?}"
        );
    }
}

#[tokio::test]
async fn a_call_of_another_model_without_a_thought_does_not_end_the_conversation() {
    let peer = Peer::saying(FORMAT, ModelTurn::new().text("3")).with_tool();
    let url = Url::parse(&peer.server.base_url()).unwrap();
    let key = ApiKey::new(KEY).unwrap();
    let mut options = AnthropicOptions::new("a", url, Some(key), HttpClient::default());
    options.thinking = Thinking::Budget(2000);
    let messages = after(
        vec![call("call_1", json!({"a": 1, "b": 2}))],
        vec![result("call_1", vec![Block::text("3")])],
    );
    let request = peer.request(&messages);
    Anthropic::new(options)
        .reply(request, &mut |_| {})
        .await
        .unwrap();
    peer.server.assert_no_violations();
    assert_eq!(peer.server.bodies()[0].get("thinking"), None);
}
