//! Requests that stand alone: how they are told from others, what they must say twice, and how
//! they are answered.

use serde_json::json;

use super::site::{Seen, Server};
use super::wire::{BOTH, EVENTS, JSON, Reply, Wire, modern, modern_headers, open_session, request};

const VERSION: &str = "MCP-Protocol-Version";

async fn post(server: &Server, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut wire = Wire::to(server.port).await;
    wire.ask("POST /mcp", headers, Some(body)).await
}

#[tokio::test]
async fn a_quick_answer_is_one_document() {
    let mut server = Server::start().await;
    let body = modern("echo", json!({ "a": 1 }));
    let reply = post(&server, &modern_headers("echo"), &body).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("mcp-session-id"), None);
    assert_eq!(reply.json()["id"], 1);
    assert_eq!(reply.json()["result"]["a"], 1);
    assert_eq!(server.next().await, Seen::Request("echo".into()));
}

#[tokio::test]
async fn whatever_is_said_before_the_answer_makes_a_stream() {
    let server = Server::start().await;
    let body = modern("say", json!({ "steps": 1 }));
    let mut wire = Wire::to(server.port).await;
    wire.send("POST /mcp", &modern_headers("say"), Some(&body))
        .await;
    let head = wire.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("cache-control"), Some("no-cache"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let event = wire.event().await.expect("an event");
    assert_eq!(event.said(), "first");
    assert_eq!(event.id, "", "such streams are not resumable");
    server.open_gate();
    assert_eq!(wire.event().await.expect("an event").said(), "step 0");
    let answer = wire.event().await.expect("an answer");
    assert_eq!(answer.json()["result"]["steps"], 1);
    assert_eq!(wire.event().await, None);
    // The connection is as good as new.
    let reply = wire
        .ask(
            "POST /mcp",
            &modern_headers("echo"),
            Some(&modern("echo", json!({}))),
        )
        .await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn an_answer_right_behind_a_message_comes_after_it() {
    let server = Server::start().await;
    let body = modern("say", json!({}));
    let reply = post(&server, &modern_headers("say"), &body).await;
    let messages = reply.messages();
    assert_eq!(messages[0]["params"]["text"], "first");
    assert_eq!(messages[1]["id"], 1);
    assert_eq!(messages.len(), 2);
}

#[tokio::test]
async fn a_slow_answer_makes_a_stream_and_silence_is_filled() {
    let server = Server::limited(|limits| {
        limits.stream_after = std::time::Duration::from_millis(1);
        limits.comment_interval = std::time::Duration::from_millis(1);
    })
    .await;
    let mut wire = Wire::to(server.port).await;
    let body = modern("wait", json!({ "b": 2 }));
    wire.send("POST /mcp", &modern_headers("wait"), Some(&body))
        .await;
    let head = wire.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert!(wire.event().await.expect("a comment").is_comment);
    server.open_gate();
    let answer = loop {
        let event = wire.event().await.expect("an answer");
        if !event.is_comment {
            break event;
        }
    };
    assert_eq!(answer.json()["result"]["b"], 2);
}

#[tokio::test]
async fn the_form_of_an_answer_is_one_that_the_client_takes() {
    let server = Server::start().await;
    let body = modern("echo", json!({}));
    let [json_type, _, version, method] = modern_headers("echo");
    let with = |accept| [json_type, ("Accept", accept), version, method];

    let reply = post(&server, &with("text/event-stream"), &body).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.messages()[0]["id"], 1);

    let reply = post(&server, &with("application/json"), &body).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let reply = post(&server, &with("*/*"), &body).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let reply = post(&server, &with("text/html"), &body).await;
    assert_eq!(reply.status, 406);

    // Without streams, there is nobody to say things to, and the answer is waited for.
    let [_, _, _, method] = modern_headers("flood");
    let headers = [json_type, ("Accept", "application/json"), version, method];
    let reply = post(&server, &headers, &modern("flood", json!({}))).await;
    assert_eq!(reply.json()["result"]["taken"], 0);
}

#[tokio::test]
async fn a_stream_takes_only_so_much_ahead_of_its_client() {
    let server = Server::limited(|limits| limits.max_queued = 10_000).await;
    let reply = post(
        &server,
        &modern_headers("flood"),
        &modern("flood", json!({})),
    )
    .await;
    let messages = reply.messages();
    let n_taken = messages.last().expect("an answer")["result"]["taken"].as_u64();
    assert_eq!(n_taken, Some(10));
    assert_eq!(messages.len(), 11);
}

#[tokio::test]
async fn who_goes_away_has_cancelled() {
    let mut server = Server::start().await;
    // Before anything came, and after the stream has begun.
    for (method, streams) in [("wait", false), ("say", true)] {
        let mut wire = Wire::to(server.port).await;
        let body = modern(method, json!({ "steps": 1 }));
        wire.send("POST /mcp", &modern_headers(method), Some(&body))
            .await;
        assert_eq!(server.next().await, Seen::Request(method.into()));
        if streams {
            wire.head().await;
            assert_eq!(wire.event().await.expect("an event").said(), "first");
        }
        drop(wire);
        assert_eq!(server.next().await, Seen::Dropped(method.into()));
    }
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_known_ones() {
    let server = Server::start().await;
    let body = modern("echo", json!({})).replace("2026-07-28", "v999");
    let headers = [JSON, BOTH, (VERSION, "v999"), ("Mcp-Method", "echo")];
    let reply = post(&server, &headers, &body).await;
    let data = json!({
        "supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        "requested": "v999",
    });
    assert_eq!(reply.json()["error"]["data"], data);
}

#[tokio::test]
async fn some_errors_have_a_status_of_their_own() {
    let server = Server::start().await;
    for (code, status) in [
        (-32601, 404),
        (-32700, 400),
        (-32600, 400),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32602, 200),
        (-32603, 200),
        (7, 200),
    ] {
        let body = modern("fail", json!({ "code": code }));
        for accept in [BOTH, EVENTS] {
            let [json_type, _, version, method] = modern_headers("fail");
            let reply = post(&server, &[json_type, accept, version, method], &body).await;
            assert_eq!(reply.status, status, "for {code}");
            if reply.header("content-type") == Some("application/json") {
                assert_eq!(reply.code(), code);
            } else {
                assert_eq!(reply.messages()[0]["error"]["code"], code);
            }
        }
    }
    // In a session, an error is an answer like any other.
    let session = open_session(server.port, "/mcp", "2025-11-25").await;
    let headers = [JSON, BOTH, ("Mcp-Session-Id", session.as_str())];
    let reply = post(
        &server,
        &headers,
        &request("fail", json!({ "code": -32601 })),
    )
    .await;
    assert_eq!((reply.status, reply.code()), (200, -32601));
}

#[tokio::test]
async fn notifications_are_accepted_and_responses_are_not() {
    let mut server = Server::start().await;
    let headers = [JSON, BOTH, (VERSION, "2026-07-28")];
    let body = json!({ "jsonrpc": "2.0", "method": "n" }).to_string();
    let reply = post(&server, &headers, &body).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
    assert_eq!(server.next().await, Seen::Notification("n".into()));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "result": {} }).to_string();
    assert_eq!(post(&server, &headers, &body).await.status, 400);
}

#[tokio::test]
async fn what_is_no_message_is_told_what_is_wrong_with_it() {
    let server = Server::start().await;
    for (body, code, id) in [
        ("", -32700, json!(null)),
        ("{", -32700, json!(null)),
        (r#"{"jsonrpc":"2.0"} x"#, -32700, json!(null)),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{]"#,
            -32700,
            json!("a"),
        ),
        ("42", -32600, json!(null)),
        (r#"{"foo":1}"#, -32600, json!(null)),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
            -32600,
            json!(null),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, json!(1)),
        (
            r#"{"jsonrpc":"1.0","id":2,"method":"echo"}"#,
            -32600,
            json!(2),
        ),
        (r#"{"id":3,"method":"echo"}"#, -32600, json!(3)),
        ("[", -32700, json!(null)),
    ] {
        let reply = post(&server, &[JSON, BOTH], body).await;
        assert_eq!((reply.status, reply.code()), (400, code), "for {body}");
        assert_eq!(reply.json()["id"], id, "for {body}");
    }
    let plain = ("Content-Type", "text/plain");
    let reply = post(&server, &[plain, BOTH], &request("echo", json!({}))).await;
    assert_eq!(reply.status, 415);
    let mut wire = Wire::to(server.port).await;
    let reply = wire
        .ask(
            "POST /mcp/nowhere",
            &modern_headers("echo"),
            Some(&modern("echo", json!({}))),
        )
        .await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn methods_of_other_revisions_are_not_allowed() {
    let server = Server::start().await;
    let version = (VERSION, "2026-07-28");
    for (line, status) in [("GET /mcp", 405), ("DELETE /mcp", 405), ("PUT /mcp", 405)] {
        let mut wire = Wire::to(server.port).await;
        let reply = wire.ask(line, &[version, EVENTS], None).await;
        assert_eq!(reply.status, status, "for {line}");
        assert!(reply.header("allow").is_some());
    }
}

#[tokio::test]
async fn headers_reach_the_endpoint() {
    let server = Server::start().await;
    let [json_type, accept, version, method] = modern_headers("headers");
    let headers = [json_type, accept, version, method, ("Mcp-Param-X", "y")];
    let reply = post(&server, &headers, &modern("headers", json!({}))).await;
    assert_eq!(reply.json()["result"]["x"], "y");
}

#[tokio::test]
async fn who_takes_no_events_cannot_listen() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(server.port).await;
    let mut headers = modern_headers("subscriptions/listen");
    headers[1] = ("Accept", "application/json");
    let body = modern("subscriptions/listen", json!({}));
    let reply = wire.ask("POST /mcp", &headers, Some(&body)).await;
    assert_eq!(reply.status, 406);
    assert!(server.seen.try_recv().is_err());
}
