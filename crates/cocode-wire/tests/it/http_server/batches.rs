//! Several messages in one body, which only some revisions allow.

use cocode_wire::encode;
use serde_json::{Value, json};

use super::site::{Seen, Server};
use super::wire::{BOTH, EVENTS, JSON, Reply, Wire, modern, modern_headers, open_session, request};

async fn post(server: &Server, id: &str, body: &Value) -> Reply {
    let mut wire = Wire::to(server.port).await;
    let headers = [JSON, BOTH, ("Mcp-Session-Id", id)];
    wire.ask("POST /mcp", &headers, Some(&body.to_string()))
        .await
}

fn member(id: u32, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "n": id } })
}

#[tokio::test]
async fn old_sessions_take_batches_and_answer_them_together() {
    let mut server = Server::start().await;
    for revision in ["2024-11-05", "2025-03-26"] {
        let id = open_session(server.port, "/mcp", revision).await;
        server.until(&Seen::Request("initialize".into())).await;
        let note = json!({ "jsonrpc": "2.0", "method": "n" });
        let response = json!({ "jsonrpc": "2.0", "id": 8, "result": {} });
        let body =
            json!([member(1, "echo"), note, member(2, "fail"), { "foo": 1 }, member(3, "none")]);
        let body = body.as_array().expect("an array");
        let mut body = body.clone();
        body[2]["params"] = json!({ "code": -5 });
        let reply = post(&server, &id, &Value::Array(body)).await;
        assert_eq!(reply.status, 200);
        let answers = reply.json();
        assert_eq!(answers[0]["result"]["n"], 1);
        assert_eq!(answers[1]["error"]["code"], -5);
        assert_eq!(answers[2]["error"]["code"], -32600);
        assert_eq!(answers.as_array().expect("an array").len(), 3);
        server.until(&Seen::Notification("n".into())).await;

        // Nobody has asked, which is nothing that a client has to know.
        let unasked = json!({ "jsonrpc": "2.0", "id": 77, "result": {} });
        let reply = post(&server, &id, &json!([note, unasked])).await;
        assert_eq!((reply.status, reply.body.as_str()), (202, ""));
        assert!(
            server
                .outlet()
                .send(encode::request(8, "ping", None).into())
        );
        let reply = post(&server, &id, &json!([note, response])).await;
        assert_eq!((reply.status, reply.body.as_str()), (202, ""));
        server.until(&Seen::Response(response.to_string())).await;
        let reply = post(&server, &id, &json!([member(1, "none")])).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    }
}

#[tokio::test]
async fn members_of_a_batch_count_and_are_checked_like_any_message() {
    let mut server = Server::limited(|limits| limits.max_session_requests = 2).await;
    let id = open_session(server.port, "/mcp", "2025-03-26").await;
    let nameless = json!({ "jsonrpc": "2.0", "id": [], "method": "echo" });
    let reply = post(&server, &id, &json!([nameless, member(2, "echo")])).await;
    assert_eq!(reply.json()[0]["error"]["code"], -32600, "{reply:?}");
    assert_eq!(reply.json()[1]["id"], 2);

    let three = json!([member(1, "echo"), member(2, "echo"), member(3, "echo")]);
    assert_eq!(post(&server, &id, &three).await.status, 503);
    let two = json!([member(1, "wait"), member(2, "wait")]);
    let headers = [JSON, BOTH, ("Mcp-Session-Id", id.as_str())];
    let mut wire = Wire::to(server.port).await;
    wire.send("POST /mcp", &headers, Some(&two.to_string()))
        .await;
    server.until(&Seen::Request("wait".into())).await;
    server.until(&Seen::Request("wait".into())).await;
    assert_eq!(post(&server, &id, &member(3, "echo")).await.status, 503);
    server.open_gate();
    assert_eq!(wire.reply().await.status, 200);
    assert_eq!(post(&server, &id, &member(4, "echo")).await.status, 200);
}

#[tokio::test]
async fn a_batch_that_says_something_is_a_stream() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-03-26").await;
    let reply = post(&server, &id, &json!([member(1, "say"), member(2, "echo")])).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let messages = reply.messages();
    assert_eq!(messages[0]["params"]["text"], "first");
    assert_eq!(
        (messages[1][0]["id"].as_i64(), messages[1][1]["id"].as_i64()),
        (Some(1), Some(2))
    );
}

#[tokio::test]
async fn other_batches_are_refused() {
    let server = Server::limited(|limits| limits.max_batch = 2).await;
    let old = open_session(server.port, "/mcp", "2025-03-26").await;
    for body in [
        json!([]),
        json!([member(1, "echo"), member(2, "echo"), member(3, "echo")]),
        json!([member(1, "initialize")]),
    ] {
        let reply = post(&server, &old, &body).await;
        assert_eq!((reply.status, reply.code()), (400, -32600), "for {body}");
    }
    for revision in ["2025-06-18", "2025-11-25"] {
        let id = open_session(server.port, "/mcp", revision).await;
        let reply = post(&server, &id, &json!([member(1, "echo")])).await;
        assert_eq!(
            (reply.status, reply.code()),
            (400, -32600),
            "for {revision}"
        );
    }
    let mut wire = Wire::to(server.port).await;
    let body = format!("[{}]", modern("echo", json!({})));
    let reply = wire
        .ask("POST /mcp", &modern_headers("echo"), Some(&body))
        .await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
    let body = format!("[{}]", request("echo", json!({})));
    let reply = wire.ask("POST /mcp", &[JSON, EVENTS], Some(&body)).await;
    assert_eq!(reply.status, 400, "without a session");
}
