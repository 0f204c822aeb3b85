//! HTTP+SSE: one stream for everything, and a session that ends with it.

use serde_json::json;

use super::site::{Seen, Server};
use super::wire::{EVENTS, JSON, Reply, Wire, request};

/// Opens the stream and gives the path for messages.
async fn open(server: &Server, path: &str) -> (Wire, String) {
    let mut wire = Wire::to(server.port).await;
    wire.send(&format!("GET {path}"), &[EVENTS], None).await;
    let head = wire.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let event = wire.event().await.expect("the first event");
    assert_eq!(event.name, "endpoint");
    (wire, event.data)
}

async fn post(server: &Server, path: &str, body: &str) -> Reply {
    let mut wire = Wire::to(server.port).await;
    wire.ask(&format!("POST {path}"), &[JSON], Some(body)).await
}

#[tokio::test]
async fn answers_come_on_the_stream() {
    let mut server = Server::start().await;
    for (path, name) in [
        ("/sse", "all"),
        ("/sse/a", "a"),
        ("/mcp", "all"),
        ("/mcp/b", "b"),
    ] {
        let (mut wire, messages) = open(&server, path).await;
        assert_eq!(server.next().await, Seen::Converse(name.into()));
        let body = request("initialize", json!({ "protocolVersion": "2024-11-05" }));
        let reply = post(&server, &messages, &body).await;
        assert_eq!((reply.status, reply.body.as_str()), (202, ""));
        let answer = wire.event().await.expect("an answer");
        assert_eq!((answer.name.as_str(), answer.id.as_str()), ("message", ""));
        assert_eq!(answer.json()["result"]["at"], name);
        assert_eq!(server.next().await, Seen::Request("initialize".into()));

        post(&server, &messages, &request("say", json!({}))).await;
        assert_eq!(wire.event().await.expect("an event").said(), "first");
        assert_eq!(wire.event().await.expect("an answer").json()["id"], 1);
        assert_eq!(server.next().await, Seen::Request("say".into()));

        let body = json!({ "jsonrpc": "2.0", "method": "n" }).to_string();
        assert_eq!(post(&server, &messages, &body).await.status, 202);
        assert_eq!(server.next().await, Seen::Notification("n".into()));
        let body = json!({ "jsonrpc": "2.0", "id": 5, "result": {} }).to_string();
        assert_eq!(post(&server, &messages, &body).await.status, 202);
        assert_eq!(server.next().await, Seen::Response(body));

        assert!(server.outlet().send(r#"{"method":"aside"}"#.into()));
        assert_eq!(
            wire.event().await.expect("an event").json()["method"],
            "aside"
        );

        drop(wire);
        assert_eq!(server.next().await, Seen::Ended);
        assert_eq!(post(&server, &messages, &body_of_echo()).await.status, 404);
    }
}

fn body_of_echo() -> String {
    request("echo", json!({}))
}

#[tokio::test]
async fn slow_requests_do_not_hold_up_others_and_end_with_the_stream() {
    let mut server = Server::start().await;
    let (mut wire, messages) = open(&server, "/sse").await;
    post(&server, &messages, &request("wait", json!({}))).await;
    post(&server, &messages, &request("echo", json!({ "e": 5 }))).await;
    assert_eq!(
        wire.event().await.expect("an answer").json()["result"]["e"],
        5
    );
    server.until(&Seen::Request("echo".into())).await;
    drop(wire);
    let mut ends = [server.next().await, server.next().await];
    ends.sort_by_key(|seen| *seen == Seen::Ended);
    assert_eq!(ends, [Seen::Dropped("wait".into()), Seen::Ended]);
}

#[tokio::test]
async fn messages_need_a_session_and_sense() {
    let server = Server::start().await;
    let (_wire, messages) = open(&server, "/sse").await;
    let guessed: String = messages.chars().take(messages.len() - 4).collect();
    assert_eq!(
        post(&server, "/messages", &body_of_echo()).await.status,
        400
    );
    assert_eq!(
        post(&server, &format!("{guessed}xxxx"), &body_of_echo())
            .await
            .status,
        404
    );
    assert_eq!(post(&server, &messages, "{").await.code(), -32700);
    assert_eq!(post(&server, &messages, "[]").await.code(), -32600);
    let mut wire = Wire::to(server.port).await;
    let line = format!("POST {messages}");
    let reply = wire
        .ask(&line, &[("Content-Type", "text/plain")], Some("{}"))
        .await;
    assert_eq!(reply.status, 415);
    assert_eq!(wire.ask("GET /messages", &[], None).await.status, 405);
    assert_eq!(wire.ask("POST /sse", &[JSON], Some("{}")).await.status, 405);
    assert_eq!(
        wire.ask("GET /sse/nowhere", &[EVENTS], None).await.status,
        404
    );

    // The id of such a session is no good elsewhere.
    let (_, id) = messages.split_once('=').expect("an id");
    let headers = [JSON, ("Mcp-Session-Id", id)];
    let reply = wire.ask("POST /mcp", &headers, Some(&body_of_echo())).await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn requests_under_way_are_counted() {
    let mut server = Server::limited(|limits| limits.max_session_requests = 1).await;
    let (mut wire, messages) = open(&server, "/sse").await;
    post(&server, &messages, &request("wait", json!({}))).await;
    assert_eq!(post(&server, &messages, &body_of_echo()).await.status, 503);
    server.until(&Seen::Request("wait".into())).await;
    server.open_gate();
    assert_eq!(wire.event().await.expect("an answer").json()["id"], 1);
}
