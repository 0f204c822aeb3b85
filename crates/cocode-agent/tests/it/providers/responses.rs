//! What only the Responses interface has: its exact requests, encrypted thoughts, items.

use cocode_agent::providers::{ApiKey, OutputImages, Responses, ResponsesOptions};
use cocode_agent::{Block, Provider as _, Reply};
use cocode_testkit::{ModelFormat, ModelScript, ModelTurn};
use cocode_wire::{HttpClient, Url};
use serde_json::{Value, json};

use super::support::{KEY, Peer, after, call, image, result, user};

const FORMAT: ModelFormat = ModelFormat::Responses;

#[tokio::test]
async fn a_conversation_is_sent_exactly_as_documented() {
    let thinking = ModelTurn::new()
        .thinking("Easy.", "encrypted")
        .call("call_1", "add", &json!({"a": 3, "b": 4}))
        .call("call_2", "add", &json!({"a": 0, "b": 0}));
    let script = ModelScript::new()
        .turn(thinking)
        .turn(ModelTurn::new().text("7"));
    let peer = Peer::start(FORMAT, script).with_tool();
    let reply = peer.reply(&[user("hi")]).await;
    let next = vec![
        result("call_1", vec![Block::text("7"), image()]),
        result("call_2", vec![Block::text("no"), Block::text("really")]),
        Block::text("Go on."),
    ];
    peer.reply(&after(reply.content, next)).await;
    let picture = json!({"type": "input_image", "detail": "auto",
                         "image_url": "data:image/png;base64,iVBORw0KGgo="});
    let expected = json!({
        "model": "some-model",
        "instructions": "Be brief.",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
        "prompt_cache_key": "conversation-1",
        "max_output_tokens": 4096,
        "tools": [peer.tools[0].definition()],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "id": "rs_1_0", "encrypted_content": "encrypted",
             "summary": [{"type": "summary_text", "text": "Easy."}]},
            {"type": "function_call", "call_id": "call_1", "name": "add",
             "arguments": "{\"a\":3,\"b\":4}"},
            {"type": "function_call", "call_id": "call_2", "name": "add",
             "arguments": "{\"a\":0,\"b\":0}"},
            {"type": "function_call_output", "call_id": "call_1",
             "output": [{"type": "input_text", "text": "7"}, picture]},
            {"type": "function_call_output", "call_id": "call_2", "output": "no\nreally"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
        ],
    });
    assert_eq!(peer.server.bodies()[1], expected);
    assert_eq!(expected["tools"][0]["strict"], true);
    let request = &peer.server.requests().all()[1];
    assert_eq!(request.path, "/v1/responses");
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
}

#[tokio::test]
async fn images_follow_where_outputs_are_text() {
    let peer = Peer::saying(FORMAT, ModelTurn::new().text("a cat")).with_tool();
    let url = Url::parse(&peer.server.base_url()).unwrap();
    let key = ApiKey::new(KEY).unwrap();
    let mut options = ResponsesOptions::new("openai", url, Some(key), HttpClient::default());
    options.output_images = OutputImages::Following;
    options.reasoning = None;
    let messages = after(
        vec![call("call_1", json!({}))],
        vec![result("call_1", vec![Block::text("here"), image()])],
    );
    let request = peer.request(&messages);
    Responses::new(options)
        .reply(request, &mut |_| {})
        .await
        .unwrap();
    peer.server.assert_no_violations();
    let sent = &peer.server.bodies()[0];
    assert_eq!(sent["input"][2]["output"], "here");
    let told = &sent["input"][3]["content"];
    assert_eq!(told[0]["text"], "What the call call_1 shows:");
    assert_eq!(told[1]["image_url"], "data:image/png;base64,iVBORw0KGgo=");
    assert_eq!((sent.get("include"), sent.get("reasoning")), (None, None));
}

#[tokio::test]
async fn a_thought_that_led_nowhere_is_not_given_back() {
    let cut = ModelTurn::new().thinking("Hm.", "encrypted").max_tokens();
    let script = ModelScript::new()
        .turn(cut)
        .turn(ModelTurn::new().text("ok"));
    let peer = Peer::start(FORMAT, script);
    let reply = peer.reply(&[user("hi")]).await;
    peer.reply(&after(reply.content, vec![Block::text("Well?")]))
        .await;
    let items = peer.server.bodies()[1]["input"].as_array().unwrap().len();
    assert_eq!(items, 2);
}

#[tokio::test]
async fn an_error_event_is_an_error() {
    let event = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down",
                       "param": null, "sequence_number": 3});
    let turn = ModelTurn::new().text("I").raw("error", &event.to_string());
    let peer = Peer::saying(FORMAT, turn);
    let error = peer.error(&[user("hi")]).await;
    assert_eq!(
        error.to_string(),
        "openai takes no more requests for now: slow down"
    );
}

#[tokio::test]
async fn items_that_only_the_last_event_has_are_read_from_there() {
    let message = json!({"type": "message", "role": "assistant",
                         "content": [{"type": "output_text", "text": "hi", "annotations": []}]});
    let end: Value = json!({"type": "response.completed", "response":
        {"status": "completed", "model": "m", "output": [message]}});
    let turn = ModelTurn::new().raw("response.completed", &end.to_string());
    let peer = Peer::saying(FORMAT, turn);
    let Reply { content, model, .. } = peer.reply(&[user("hi")]).await;
    assert_eq!(
        (content, model.as_deref()),
        (vec![Block::text("hi")], Some("m"))
    );
}
