//! What only chat completions have: their exact requests, and servers that do it differently.

use cocode_agent::providers::{Chat, ChatOptions, OutputLimit};
use cocode_agent::{Arguments, Block, Delta, Provider as _, Stop, ToolCall, Usage};
use cocode_testkit::{ModelFormat, ModelScript, ModelTurn};
use cocode_wire::{HttpClient, Url};
use serde_json::{Value, json};

use super::support::{Peer, after, call, image, result, user};

const FORMAT: ModelFormat = ModelFormat::Chat;

/// A chunk with this delta.
fn chunk(delta: &Value, finish: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).to_string()
}

/// A turn of exactly these chunks.
fn chunks(deltas: &[Value], finish: &str) -> ModelTurn {
    let turn = deltas.iter().fold(ModelTurn::new(), |turn, delta| {
        turn.raw("", &chunk(delta, &Value::Null))
    });
    turn.raw("", &chunk(&json!({}), &json!(finish)))
        .ends_early()
}

#[tokio::test]
async fn a_conversation_is_sent_exactly_as_documented() {
    let thinking = ModelTurn::new()
        .thinking("Easy.", "")
        .call("call_1", "add", &json!({"a": 3, "b": 4}))
        .call("call_2", "add", &json!({"a": 0, "b": 0}));
    let script = ModelScript::new()
        .turn(thinking)
        .turn(ModelTurn::new().text("7"));
    let peer = Peer::start(FORMAT, script).with_tool();
    let reply = peer.reply(&[user("hi")]).await;
    let next = vec![
        result("call_1", vec![Block::text("7"), image()]),
        result("call_2", vec![Block::text("no")]),
        Block::text("Go on."),
    ];
    peer.reply(&after(reply.content, next)).await;
    let function = |arguments: &str| json!({"name": "add", "arguments": arguments});
    let expected = json!({
        "model": "some-model",
        "max_tokens": 4096,
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [peer.tools[0].chat_definition()],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "reasoning_content": "Easy.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": function("{\"a\":3,\"b\":4}")},
                {"id": "call_2", "type": "function", "function": function("{\"a\":0,\"b\":0}")},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "7"},
            {"role": "tool", "tool_call_id": "call_2", "content": "no"},
            {"role": "user", "content": [
                {"type": "text", "text": "What the call call_1 shows:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                {"type": "text", "text": "Go on."},
            ]},
        ],
    });
    assert_eq!(peer.server.bodies()[1], expected);
    assert_eq!(peer.server.requests().all()[1].path, "/v1/chat/completions");
}

#[tokio::test]
async fn a_server_on_this_machine_needs_no_key() {
    let peer = Peer::saying(FORMAT, ModelTurn::new().text("hi"));
    let url = Url::parse(&peer.server.base_url()).unwrap();
    let mut options = ChatOptions::new("local", url, None, HttpClient::default());
    options.limit = OutputLimit::MaxCompletionTokens;
    let messages = [user("hi")];
    let request = peer.request(&messages);
    Chat::new(options)
        .reply(request, &mut |_| {})
        .await
        .unwrap();
    peer.server.assert_no_violations();
    assert_eq!(
        peer.server.requests().all()[0].header("authorization"),
        None
    );
    assert_eq!(peer.server.bodies()[0]["max_completion_tokens"], 4096);
}

#[tokio::test]
async fn thoughts_before_a_final_answer_are_not_given_back() {
    let turn = ModelTurn::new().thinking("Hm.", "").text("Yes.");
    let script = ModelScript::new()
        .turn(turn)
        .turn(ModelTurn::new().text("ok"));
    let peer = Peer::start(FORMAT, script);
    let reply = peer.reply(&[user("hi")]).await;
    peer.reply(&after(reply.content, vec![Block::text("Well?")]))
        .await;
    let given_back = &peer.server.bodies()[1]["messages"][2];
    assert_eq!(*given_back, json!({"role": "assistant", "content": "Yes."}));
}

#[tokio::test]
async fn thoughts_are_read_from_either_member_and_not_twice() {
    let both = json!({"reasoning": "Hm.", "reasoning_content": "Hm."});
    for delta in [
        json!({"reasoning": "Hm."}),
        json!({"reasoning_content": "Hm."}),
        both,
    ] {
        let peer = Peer::saying(
            FORMAT,
            chunks(&[delta.clone(), json!({"content": "Yes."})], "stop"),
        );
        let (outcome, deltas) = peer.ask(&[user("hi")]).await;
        let expected = [Delta::Reasoning("Hm.".into()), Delta::Text("Yes.".into())];
        assert_eq!(deltas, expected, "{delta}");
        assert_eq!(outcome.unwrap().content.len(), 2);
    }
}

#[tokio::test]
async fn whole_calls_without_ids_and_numbers_are_calls_whatever_the_reason_to_stop_is() {
    let calls = json!({"tool_calls": [
        {"function": {"name": "add", "arguments": "{\"a\": 1, \"b\": 2}"}},
        {"function": {"name": "add", "arguments": {"a": 3, "b": 4}}},
    ]});
    let peer = Peer::saying(FORMAT, chunks(&[calls], "stop")).with_tool();
    let reply = peer.reply(&[user("hi")]).await;
    assert_eq!(reply.stop, Stop::ToolCalls);
    let calls: Vec<&ToolCall> = cocode_agent::tool_calls(&reply.content).collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].arguments, Arguments::Json(json!({"a": 1, "b": 2})));
    assert_eq!(calls[1].arguments, Arguments::Json(json!({"a": 3, "b": 4})));
    assert_ne!(calls[0].id, calls[1].id);
    assert!(calls.iter().all(|call| call.id.starts_with("call_")));
}

#[tokio::test]
async fn a_stream_that_ends_after_its_reason_to_stop_is_whole() {
    let peer = Peer::saying(FORMAT, chunks(&[json!({"content": "hi"})], "stop"));
    let reply = peer.reply(&[user("hi")]).await;
    assert_eq!(
        (reply.content, reply.usage),
        (vec![Block::text("hi")], Usage::default())
    );
}

#[tokio::test]
async fn usage_may_be_absent() {
    let peer = Peer::saying(FORMAT, ModelTurn::new().text("hi").no_usage());
    assert_eq!(peer.reply(&[user("hi")]).await.usage, Usage::default());
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood_too() {
    let message = json!({"role": "assistant", "content": "hi", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]});
    let body = json!({"model": "m", "choices": [{"message": message, "finish_reason": "tool_calls"}],
                      "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    let peer = Peer::saying(
        FORMAT,
        ModelTurn::status(200, "", "").body(&body.to_string()),
    );
    let (outcome, deltas) = peer.ask(&[user("hi")]).await;
    let reply = outcome.unwrap();
    assert_eq!(
        reply.content,
        [Block::text("hi"), call("call_1", json!({}))]
    );
    assert_eq!(
        reply.usage,
        Usage {
            input: 3,
            output: 4,
            ..Usage::default()
        }
    );
    assert_eq!(deltas.len(), 2);
}

#[tokio::test]
async fn content_in_parts_is_text() {
    let parts = json!({"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]});
    let peer = Peer::saying(FORMAT, chunks(&[parts], "stop"));
    assert_eq!(peer.reply(&[user("hi")]).await.content, [Block::text("hi")]);
}
