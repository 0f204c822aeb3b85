//! Sessions: how they begin, who may use them, and how they end.

use std::time::Duration;

use cocode_wire::encode;
use serde_json::json;

use super::site::{Seen, Server};
use super::wire::{BOTH, EVENTS, JSON, Reply, Wire, open_session, request};

const VERSION: &str = "MCP-Protocol-Version";
const SESSION: &str = "Mcp-Session-Id";

async fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut wire = Wire::to(server.port).await;
    let headers: Vec<_> = [JSON, BOTH].iter().chain(headers).copied().collect();
    wire.ask(&format!("POST {path}"), &headers, Some(body))
        .await
}

async fn without_body(server: &Server, line: &str, headers: &[(&str, &str)]) -> Reply {
    let mut wire = Wire::to(server.port).await;
    wire.ask(line, headers, None).await
}

#[tokio::test]
async fn a_session_begins_with_its_first_answer() {
    let mut server = Server::start().await;
    let body = request("initialize", json!({ "protocolVersion": "2025-11-25" }));
    let reply = post(&server, "/mcp", &[], &body).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json()["result"]["at"], "all");
    let id = reply.header("mcp-session-id").expect("a session");
    assert!(id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_graphic()));
    assert_eq!(server.next().await, Seen::Converse("all".into()));
    assert_eq!(server.next().await, Seen::Request("initialize".into()));

    let other = open_session(server.port, "/mcp", "2025-11-25").await;
    assert_ne!(id, other);

    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, id)],
        &request("echo", json!({ "c": 3 })),
    )
    .await;
    assert_eq!(
        (reply.status, reply.json()["result"]["c"].as_i64()),
        (200, Some(3))
    );
    assert_eq!(reply.header("mcp-session-id"), None, "it is known already");
}

#[tokio::test]
async fn a_refused_session_never_was() {
    let mut server = Server::limited(|limits| limits.max_sessions = 1).await;
    for params in [json!({ "refuse": 1 }), json!({ "refuse": 1, "say": 1 })] {
        let reply = post(&server, "/mcp", &[], &request("initialize", params)).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("mcp-session-id"), None);
        server.until(&Seen::Ended).await;
    }
    // Its place is free again.
    open_session(server.port, "/mcp", "2025-11-25").await;
}

#[tokio::test]
async fn a_slow_session_begins_with_its_stream() {
    let server = Server::start().await;
    let mut wire = Wire::to(server.port).await;
    let params = json!({ "protocolVersion": "2025-11-25", "say": 1, "wait": 1 });
    wire.send(
        "POST /mcp",
        &[JSON, BOTH],
        Some(&request("initialize", params)),
    )
    .await;
    let head = wire.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let id = head.header("mcp-session-id").expect("a session").to_owned();
    assert_eq!(wire.event().await.expect("an event").said(), "before");
    server.open_gate();
    assert_eq!(
        wire.event().await.expect("an answer").json()["result"]["at"],
        "all"
    );
    assert_eq!(wire.event().await, None);
    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, &id)],
        &request("echo", json!({})),
    )
    .await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn who_leaves_before_the_session_began_has_none() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(server.port).await;
    let params = json!({ "protocolVersion": "2025-11-25", "wait": 1 });
    wire.send(
        "POST /mcp",
        &[JSON, BOTH],
        Some(&request("initialize", params)),
    )
    .await;
    server.until(&Seen::Request("initialize".into())).await;
    drop(wire);
    let mut ends = [server.next().await, server.next().await];
    ends.sort_by_key(|seen| *seen == Seen::Ended);
    assert_eq!(ends, [Seen::Dropped("initialize".into()), Seen::Ended]);
}

#[tokio::test]
async fn notifications_and_responses_are_accepted() {
    let mut server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    server.until(&Seen::Request("initialize".into())).await;
    let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let reply = post(&server, "/mcp", &[(SESSION, &id)], &body).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
    assert_eq!(
        server.next().await,
        Seen::Notification("notifications/initialized".into())
    );
    let body = json!({ "jsonrpc": "2.0", "id": 9, "result": {} }).to_string();
    // Nobody has asked, which is nothing that a client has to know; nobody hears it either.
    let unasked = json!({ "jsonrpc": "2.0", "id": 77, "result": {} }).to_string();
    let reply = post(&server, "/mcp", &[(SESSION, &id)], &unasked).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
    assert!(
        server
            .outlet()
            .send(encode::request(9, "ping", None).into())
    );
    // The second one comes late.
    for _ in 0..2 {
        let reply = post(&server, "/mcp", &[(SESSION, &id)], &body).await;
        assert_eq!((reply.status, reply.body.as_str()), (202, ""));
        assert_eq!(server.next().await, Seen::Response(body.clone()));
    }
}

#[tokio::test]
async fn only_the_session_that_was_given_is_known() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp/a", "2025-11-25").await;
    let guessed: String = id.chars().rev().collect();
    let echo = request("echo", json!({}));
    for (what, path, headers, status) in [
        ("none", "/mcp/a", vec![], 400),
        (
            "two",
            "/mcp/a",
            vec![(SESSION, id.as_str()), (SESSION, id.as_str())],
            400,
        ),
        (
            "a guessed one",
            "/mcp/a",
            vec![(SESSION, guessed.as_str())],
            404,
        ),
        (
            "that of another endpoint",
            "/mcp/b",
            vec![(SESSION, id.as_str())],
            404,
        ),
        (
            "that of the whole",
            "/mcp",
            vec![(SESSION, id.as_str())],
            404,
        ),
        (
            "an unknown version",
            "/mcp/a",
            vec![(SESSION, id.as_str()), (VERSION, "1999-01-01")],
            400,
        ),
        (
            "the right one",
            "/mcp/a",
            vec![(SESSION, id.as_str()), (VERSION, "2025-06-18")],
            200,
        ),
    ] {
        let reply = post(&server, path, &headers, &echo).await;
        assert_eq!(reply.status, status, "for {what}");
        if status == 200 {
            continue;
        }
        for line in [format!("GET {path}"), format!("DELETE {path}")] {
            let mut headers = headers.clone();
            headers.push(EVENTS);
            if what == "none" {
                headers.push((VERSION, "2025-11-25"));
            }
            let reply = without_body(&server, &line, &headers).await;
            assert_eq!(reply.status, status, "for {line} with {what}");
        }
    }
    let messages = format!("/messages?sessionId={id}");
    let reply = post(&server, &messages, &[], &echo).await;
    assert_eq!(reply.status, 404, "another transport");
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let mut server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut listener = Wire::to(server.port).await;
    listener
        .send("GET /mcp", &[EVENTS, (SESSION, &id)], None)
        .await;
    assert_eq!(listener.head().await.status, 200);

    let reply = without_body(&server, "DELETE /mcp", &[(SESSION, &id)]).await;
    assert_eq!((reply.status, reply.body.as_str()), (204, ""));
    server.until(&Seen::Ended).await;
    let primed = listener.event().await.expect("the priming event");
    assert_eq!(primed.data, "");
    assert_eq!(listener.event().await, None, "its streams end in order");

    assert_eq!(
        without_body(&server, "DELETE /mcp", &[(SESSION, &id)])
            .await
            .status,
        404
    );
    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, &id)],
        &request("echo", json!({})),
    )
    .await;
    assert_eq!(reply.status, 404);
    let reply = without_body(&server, "GET /mcp", &[EVENTS, (SESSION, &id)]).await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn there_are_only_so_many_sessions() {
    let server = Server::limited(|limits| limits.max_sessions = 2).await;
    let first = open_session(server.port, "/mcp", "2025-11-25").await;
    open_session(server.port, "/mcp", "2025-11-25").await;
    let body = request("initialize", json!({ "protocolVersion": "2025-11-25" }));
    let reply = post(&server, "/mcp", &[], &body).await;
    assert_eq!(reply.status, 503);
    assert!(reply.header("retry-after").is_some());
    assert_eq!(
        without_body(&server, "GET /sse", &[EVENTS]).await.status,
        503
    );
    without_body(&server, "DELETE /mcp", &[(SESSION, &first)]).await;
    open_session(server.port, "/mcp", "2025-11-25").await;
}

#[tokio::test]
async fn a_session_has_only_so_many_requests() {
    let mut server = Server::limited(|limits| limits.max_session_requests = 1).await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let headers = [JSON, BOTH, (SESSION, id.as_str())];
    let mut wire = Wire::to(server.port).await;
    wire.send("POST /mcp", &headers, Some(&request("wait", json!({}))))
        .await;
    server.until(&Seen::Request("wait".into())).await;
    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, &id)],
        &request("echo", json!({})),
    )
    .await;
    assert_eq!(reply.status, 503);
    server.open_gate();
    assert_eq!(wire.reply().await.status, 200);
    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, &id)],
        &request("echo", json!({})),
    )
    .await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn an_idle_session_ends_and_a_listening_one_does_not() {
    let mut server =
        Server::limited(|limits| limits.session_idle = Duration::from_millis(300)).await;
    let listening = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut listener = Wire::to(server.port).await;
    listener
        .send("GET /mcp", &[EVENTS, (SESSION, &listening)], None)
        .await;
    listener.head().await;
    let idle = open_session(server.port, "/mcp", "2025-11-25").await;
    server.until(&Seen::Ended).await;
    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, &idle)],
        &request("echo", json!({})),
    )
    .await;
    assert_eq!(reply.status, 404);
    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, &listening)],
        &request("echo", json!({})),
    )
    .await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn a_working_session_is_not_idle() {
    let mut server =
        Server::limited(|limits| limits.session_idle = Duration::from_millis(300)).await;
    let working = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut wire = Wire::to(server.port).await;
    let headers = [JSON, BOTH, (SESSION, working.as_str())];
    wire.send(
        "POST /mcp",
        &headers,
        Some(&request("wait", json!({ "d": 4 }))),
    )
    .await;
    server.until(&Seen::Request("wait".into())).await;
    // Another one ends meanwhile, which shows that the time has passed.
    open_session(server.port, "/mcp", "2025-11-25").await;
    server.until(&Seen::Ended).await;
    server.open_gate();
    assert_eq!(wire.reply().await.json()["result"]["d"], 4);
}

#[tokio::test]
async fn a_cancelled_request_has_no_answer() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let reply = post(
        &server,
        "/mcp",
        &[(SESSION, &id)],
        &request("none", json!({})),
    )
    .await;
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
}

#[tokio::test]
async fn a_handshake_is_one_whatever_version_it_claims() {
    let server = Server::start().await;
    let body = request("initialize", json!({ "protocolVersion": "2026-07-28" }));
    for version in ["2026-07-28", "1999-01-01", "2025-11-25"] {
        let reply = post(&server, "/mcp", &[(VERSION, version)], &body).await;
        assert_eq!(reply.status, 200, "for {version}");
        assert!(reply.header("mcp-session-id").is_some());
    }
}

#[tokio::test]
async fn without_streams_messages_go_to_the_stream_of_the_session() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-06-18").await;
    let mut listener = Wire::to(server.port).await;
    listener
        .send("GET /mcp", &[EVENTS, (SESSION, &id)], None)
        .await;
    listener.head().await;
    let mut wire = Wire::to(server.port).await;
    let headers = [JSON, ("Accept", "application/json"), (SESSION, id.as_str())];
    let reply = wire
        .ask("POST /mcp", &headers, Some(&request("say", json!({}))))
        .await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(listener.event().await.expect("an event").said(), "first");
}
