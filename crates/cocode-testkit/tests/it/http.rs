//! The scripted HTTP server, driven byte by byte.

use cocode_testkit::{Gate, HttpServer, Script, SseEvent};
use serde_json::{Value, json};

use crate::http_client::Client;

fn request(id: u32, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
}

fn modern_request(id: u32, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A connection that has initialized, and its session.
fn session(server: &HttpServer) -> (Client, String) {
    let mut client = Client::connect(server);
    let reply = client.call(&request(0, "initialize"), &[]);
    assert_eq!(reply.status, 200);
    let session = reply.header("Mcp-Session-Id").unwrap().to_owned();
    (client, session)
}

#[test]
fn a_legacy_server_keeps_sessions() {
    let server = Script::new().http();
    let (mut client, id) = session(&server);
    let header = [("Mcp-Session-Id", id.as_str())];
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(client.call(&note, &header).status, 202);
    let reply = client.call(&request(1, "tools/list"), &header);
    assert_eq!(reply.header("Content-Type"), Some("application/json"));
    assert_eq!(reply.json()["result"]["tools"][0]["name"], "echo");
    assert_eq!(client.call(&request(2, "ping"), &[]).status, 400);
    assert_eq!(
        client
            .call(&request(2, "ping"), &[("Mcp-Session-Id", "other")])
            .status,
        404
    );
    client.send("GET", "/mcp", &header, "");
    assert_eq!(client.reply().status, 405);
    client.send("DELETE", "/mcp", &header, "");
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.call(&request(3, "ping"), &header).status, 404);
    let deleted = server
        .requests()
        .wait_for_blocking(|request| request.method == "DELETE");
    assert_eq!(deleted.header("mcp-session-id"), Some(id.as_str()));
    assert_eq!(server.connections().all(), [1]);
}

#[test]
fn expired_sessions_are_not_found() {
    let server = Script::new().http();
    let (mut client, id) = session(&server);
    server.expire_sessions();
    assert_eq!(
        client
            .call(&request(1, "ping"), &[("Mcp-Session-Id", &id)])
            .status,
        404
    );
    assert_ne!(session(&server).1, id);
}

#[test]
fn a_post_without_both_media_types_is_not_acceptable() {
    let server = Script::new().http();
    let mut client = Client::connect(&server);
    client.send("POST", "/mcp", &[("Accept", "application/json")], "{}");
    assert_eq!(client.reply().status, 406);
    client.send("POST", "/elsewhere", &[], "{}");
    assert_eq!(client.reply().status, 404);
}

#[test]
fn a_modern_server_checks_headers_against_the_body() {
    let server = Script::modern().http();
    let mut client = Client::connect(&server);
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let call = modern_request(1, "tools/call", json!({"name": "echo", "arguments": {}}));
    let named = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let reply = client.call(&call, &named);
    assert_eq!((reply.status, reply.json()["id"].clone()), (200, json!(1)));
    assert_eq!(reply.header("Mcp-Session-Id"), None);
    for wrong in [
        &named[..2],
        &named[1..],
        &[version, ("Mcp-Method", "tools/list"), ("Mcp-Name", "echo")],
    ] {
        let reply = client.call(&call, wrong);
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].clone()),
            (400, json!(-32020))
        );
    }
    let removed = modern_request(2, "ping", json!({}));
    let reply = client.call(&removed, &[version, ("Mcp-Method", "ping")]);
    assert_eq!(
        (reply.status, reply.json()["error"]["code"].clone()),
        (404, json!(-32601))
    );
    client.send("GET", "/mcp", &[], "");
    assert_eq!(client.reply().status, 405);
}

#[tokio::test]
async fn a_test_pushes_into_the_get_stream() {
    let server = Script::new().get_stream().http();
    let (_, id) = session(&server);
    let mut client = Client::connect(&server);
    client.send("GET", "/mcp", &[("Mcp-Session-Id", &id)], "");
    assert_eq!(
        client.head().header("Content-Type"),
        Some("text/event-stream")
    );
    server.wait_for_streams(1).await;
    server.push(json!({"method": "notifications/tools/list_changed"}));
    let data = r#"data: {"method":"notifications/tools/list_changed"}"#;
    assert_eq!(
        client.chunk().unwrap(),
        format!("event: message\n{data}\n\n")
    );
    server.push_event(&SseEvent::empty().id("7").retry(50));
    assert_eq!(client.chunk().unwrap(), "id: 7\nretry: 50\n\n");
    server.end_streams();
    assert_eq!(client.chunk(), None);
}

#[tokio::test]
async fn a_subscription_is_acknowledged_and_stays_open() {
    let server = Script::modern().http();
    let mut client = Client::connect(&server);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    client.post(&modern_request(4, "subscriptions/listen", filter), &headers);
    assert_eq!(client.head().status, 200);
    assert!(
        client
            .chunk()
            .unwrap()
            .contains("notifications/subscriptions/acknowledged")
    );
    server.push("{}");
    assert_eq!(client.chunk().unwrap(), "event: message\ndata: {}\n\n");
    drop(client);
    server
        .abandoned()
        .wait_for(|request| request.is("subscriptions/listen"))
        .await;
}

#[test]
fn http_with_sse_answers_on_the_stream() {
    let server = Script::new()
        .http_sse()
        .on("ping")
        .nth(2)
        .error(-1, "no $more")
        .http();
    assert!(server.url().ends_with("/sse"));
    let mut stream = Client::connect(&server);
    stream.send("GET", "/sse", &[], "");
    assert_eq!(stream.head().status, 200);
    let endpoint = stream.chunk().unwrap();
    let path = endpoint
        .strip_prefix("event: endpoint\ndata: ")
        .unwrap()
        .trim_end();
    let mut client = Client::connect(&server);
    for expected in [
        r#""result":{}"#,
        r#""error":{"code":-1,"message":"no $more"}"#,
    ] {
        client.send("POST", path, &[], &request(5, "ping").to_string());
        assert_eq!(client.reply().status, 202);
        let answer =
            format!("event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":5,{expected}}}\n\n");
        assert_eq!(stream.chunk().unwrap(), answer);
    }
    client.send("POST", "/sse", &[], "{}");
    assert_eq!(client.reply().status, 405);
}

#[test]
fn any_response_can_be_scripted() {
    let server = Script::new()
        .on("a")
        .respond(500, &[("X-Reason", "because")], "broken $id")
        .on("b")
        .unauthorized(&[
            ("WWW-Authenticate", "Bearer"),
            ("Mcp-Auth-Server", "https://auth.test"),
        ])
        .on("c")
        .redirect(307, "http://elsewhere.test/mcp")
        .on("d")
        .html(200, "<p>hello</p>")
        .on_http("DELETE")
        .status(405)
        .on("e")
        .raw(b"\x00\xff")
        .http();
    let mut client = Client::connect(&server);
    let reply = client.call(&request(3, "a"), &[]);
    assert_eq!((reply.status, reply.body.as_str()), (500, "broken 3"));
    assert_eq!(reply.header("X-Reason"), Some("because"));
    let reply = client.call(&request(3, "b"), &[]);
    assert_eq!(
        (reply.status, reply.header("WWW-Authenticate")),
        (401, Some("Bearer"))
    );
    let reply = client.call(&request(3, "c"), &[]);
    assert_eq!(reply.header("Location"), Some("http://elsewhere.test/mcp"));
    assert_eq!(
        client.call(&request(3, "d"), &[]).header("Content-Type"),
        Some("text/html")
    );
    client.send("DELETE", "/mcp", &[], "");
    assert_eq!(client.reply().status, 405);
    client.post(&request(3, "e"), &[]);
    assert_eq!(client.rest(), b"\x00\xff");
}

#[test]
fn one_message_is_json_and_more_are_events() {
    let server = Script::new()
        .on("one")
        .echo()
        .on("two")
        .notify("notifications/message", "{}")
        .echo()
        .on("split")
        .stream()
        .comment("hi")
        .in_pieces(5)
        .event(SseEvent::data("a\nb"))
        .disconnect()
        .http();
    let mut client = Client::connect(&server);
    let reply = client.call(&request(1, "one"), &[]);
    assert_eq!(reply.header("Content-Type"), Some("application/json"));
    let reply = client.call(&request(1, "two"), &[]);
    assert_eq!(reply.header("Content-Type"), Some("text/event-stream"));
    assert_eq!(reply.body.matches("event: message").count(), 2);
    client.post(&request(1, "split"), &[]);
    client.head();
    let pieces: Vec<_> = std::iter::from_fn(|| client.chunk()).take(5).collect();
    assert_eq!(pieces, [": hi\n\n", "data:", " a\nda", "ta: b", "\n\n"]);
    assert_eq!(client.rest(), b"");
}

#[test]
fn answers_can_always_be_events() {
    let server = Script::new().event_answers().sessionless().http();
    let mut client = Client::connect(&server);
    let reply = client.call(&request(1, "ping"), &[]);
    assert_eq!(
        reply.body,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
    );
}

#[test]
fn a_question_on_the_stream_is_answered_by_another_post() {
    let server = Script::new()
        .sessionless()
        .on("tools/call")
        .ask("elicitation/create", r#"{"message":"?"}"#)
        .result(r#"{"asked":$answer}"#)
        .http();
    let mut client = Client::connect(&server);
    client.post(&request(1, "tools/call"), &[]);
    client.head();
    let asked = client.chunk().unwrap();
    let asked: Value = serde_json::from_str(asked.trim().rsplit_once("data: ").unwrap().1).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
    assert_eq!(Client::connect(&server).call(&answer, &[]).status, 202);
    assert!(
        client
            .chunk()
            .unwrap()
            .contains(r#""result":{"action":"decline"}"#)
    );
    assert_eq!(client.chunk(), None);
}

#[tokio::test]
async fn a_held_request_goes_on_as_usual_when_the_gate_opens() {
    let gate = Gate::new();
    let server = Script::new()
        .sessionless()
        .on("ping")
        .hold(&gate)
        .as_usual()
        .http();
    let mut client = Client::connect(&server);
    client.post(&request(1, "ping"), &[]);
    gate.reached().await;
    assert_eq!(
        Client::connect(&server)
            .call(&request(2, "tools/list"), &[])
            .status,
        200
    );
    gate.open();
    assert_eq!(client.reply().json()["id"], 1);
}

#[test]
fn a_request_that_is_never_answered_can_be_abandoned() {
    let server = Script::new()
        .on("tools/call")
        .ignore()
        .on("stream")
        .stream()
        .stall()
        .http();
    let mut client = Client::connect(&server);
    client.post(&request(1, "tools/call"), &[]);
    server
        .requests()
        .wait_for_blocking(|request| request.is("tools/call"));
    drop(client);
    server
        .abandoned()
        .wait_for_blocking(|request| request.is("tools/call"));
    let mut client = Client::connect(&server);
    client.post(&request(1, "stream"), &[]);
    assert_eq!(client.head().status, 200);
    assert_eq!(server.abandoned().count(|_| true), 1);
}

#[test]
fn a_connection_can_be_closed_without_an_answer() {
    let server = Script::new().on("ping").disconnect().http();
    let mut client = Client::connect(&server);
    client.post(&request(1, "ping"), &[]);
    assert_eq!(client.rest(), b"");
}

#[test]
fn chunked_bodies_are_understood() {
    let server = Script::new().on("ping").echo().http();
    let mut client = Client::connect(&server);
    let headers = [
        ("Transfer-Encoding", "chunked"),
        ("Content-Type", "application/json"),
    ];
    // The length that the client adds is void beside the encoding.
    client.send(
        "POST",
        "/mcp",
        &headers,
        "7\r\n{\"id\":1\r\n11\r\n,\"method\":\"ping\"}\r\n0\r\n\r\n",
    );
    assert_eq!(client.reply().json()["id"], 1);
}

#[test]
#[should_panic(expected = "this kind of server cannot do this")]
fn a_step_for_processes_is_refused() {
    drop(Script::new().on("ping").exit(1).http());
}

#[test]
#[should_panic(expected = "no stream is open")]
fn a_push_that_nobody_hears_fails_the_test() {
    Script::new().http().push("{}");
}
