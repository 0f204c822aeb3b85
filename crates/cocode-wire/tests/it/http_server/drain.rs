//! The end of a server: what has begun is finished, what waits for nothing is ended in order.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpStream;

use super::links::{Client, socket};
use super::site::{Seen, Server};
use super::wire::{BOTH, EVENTS, JSON, Wire, modern, modern_headers, open_session, request};

const SESSION: &str = "Mcp-Session-Id";

#[tokio::test]
async fn requests_are_finished_and_nobody_new_is_let_in() {
    let mut server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut alone = Wire::to(server.port).await;
    let body = modern("wait", json!({ "f": 6 }));
    alone
        .send("POST /mcp", &modern_headers("wait"), Some(&body))
        .await;
    server.until(&Seen::Request("wait".into())).await;
    let mut streaming = Wire::to(server.port).await;
    let body = request("say", json!({ "steps": 1 }));
    streaming
        .send("POST /mcp", &[JSON, BOTH, (SESSION, &id)], Some(&body))
        .await;
    streaming.head().await;
    streaming.event().await.expect("the priming event");
    streaming.event().await.expect("an event");
    let mut idle = Wire::to(server.port).await;
    assert_eq!(idle.ask("GET /", &[], None).await.status, 200);

    server.shut_down();
    // An idle connection is closed at once, which shows that the end has begun.
    assert_eq!(idle.rest().await, "");
    assert!(
        TcpStream::connect(("127.0.0.1", server.port))
            .await
            .is_err()
    );
    server.open_gate();
    let reply = alone.reply().await;
    assert_eq!(
        (reply.status, reply.json()["result"]["f"].as_i64()),
        (200, Some(6))
    );
    assert_eq!(alone.rest().await, "");
    assert_eq!(streaming.event().await.expect("an event").said(), "step 0");
    assert_eq!(streaming.event().await.expect("an answer").json()["id"], 1);
    assert_eq!(streaming.event().await, None);
    server.until(&Seen::Ended).await;
    server.ended().await;
}

#[tokio::test]
async fn streams_that_wait_for_nothing_end_in_order() {
    let mut server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-06-18").await;
    let mut listening = Wire::to(server.port).await;
    listening
        .send("GET /mcp", &[EVENTS, (SESSION, &id)], None)
        .await;
    listening.head().await;
    let mut old = Wire::to(server.port).await;
    old.send("GET /sse", &[EVENTS], None).await;
    old.head().await;
    old.event().await.expect("the first event");
    server.shut_down();
    assert_eq!(listening.event().await, None);
    assert_eq!(old.event().await, None);
    server.until(&Seen::Ended).await;
    server.until(&Seen::Ended).await;
    server.ended().await;
}

#[tokio::test]
async fn requests_on_sockets_are_finished() {
    let mut server = Server::start().await;
    let mut client = Client::open(&socket(server.port, "/ws")).await;
    let id = client.send("wait", &json!({})).await;
    server.until(&Seen::Request("wait".into())).await;
    let mut idle = Wire::to(server.port).await;
    assert_eq!(idle.ask("GET /", &[], None).await.status, 200);
    server.shut_down();
    assert_eq!(idle.rest().await, "");
    server.open_gate();
    assert_eq!(client.frame().await["id"], id);
    server.until(&Seen::Ended).await;
    server.ended().await;
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let mut server = Server::limited(|limits| limits.drain = Duration::from_millis(20)).await;
    let id = open_session(server.port, "/mcp", "2025-06-18").await;
    let mut streams = Vec::new();
    let body = request("say", json!({ "steps": 1 }));
    let modern_body = modern("say", json!({ "steps": 1 }));
    for (headers, body) in [
        (&[JSON, BOTH, (SESSION, id.as_str())][..], &body),
        (&modern_headers("say")[..], &modern_body),
    ] {
        let mut wire = Wire::to(server.port).await;
        wire.send("POST /mcp", headers, Some(body)).await;
        wire.head().await;
        assert_eq!(wire.event().await.expect("an event").said(), "first");
        streams.push(wire);
    }
    let mut waiting = Wire::to(server.port).await;
    waiting
        .send(
            "POST /mcp",
            &modern_headers("wait"),
            Some(&modern("wait", json!({}))),
        )
        .await;
    server.until(&Seen::Request("wait".into())).await;
    server.shut_down();
    for mut wire in streams {
        assert_eq!(wire.event().await, None, "streams end in order");
    }
    assert_eq!(waiting.reply().await.status, 503);
    let mut seen = Vec::new();
    while let Some(one) = server.seen.recv().await {
        seen.push(one);
    }
    assert_eq!(
        seen.iter()
            .filter(|one| matches!(one, Seen::Dropped(_)))
            .count(),
        3
    );
    assert!(seen.contains(&Seen::Ended));
    server.ended().await;
}
