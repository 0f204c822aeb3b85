//! What a request of no session says twice, in its headers and in its body: both must agree.

use serde_json::{Value, json};

use super::site::Server;
use super::wire::{BOTH, JSON, Reply, Wire, modern, request};

type Headers<'a> = &'a [(&'a str, &'a str)];

const VERSION: &str = "MCP-Protocol-Version";
const NEW: (&str, &str) = (VERSION, "2026-07-28");
const ECHO: (&str, &str) = ("Mcp-Method", "echo");
const CALL: (&str, &str) = ("Mcp-Method", "tools/call");

async fn post(server: &Server, headers: Headers<'_>, body: &str) -> Reply {
    let headers: Vec<_> = [JSON, BOTH].iter().chain(headers).copied().collect();
    let mut wire = Wire::to(server.port).await;
    wire.ask("POST /mcp", &headers, Some(body)).await
}

async fn refused(server: &Server, headers: Headers<'_>, body: &str, code: i64) {
    let reply = post(server, headers, body).await;
    let got = (reply.status, reply.code());
    assert_eq!(got, (400, code), "for {headers:?} and {body}: {reply:?}");
    assert_eq!(reply.json()["id"], 1, "for {headers:?} and {body}");
}

fn echo() -> String {
    modern("echo", json!({}))
}

fn named(method: &str, key: &str, name: &str) -> String {
    modern(method, json!({ key: name }))
}

/// A request whose `_meta` lacks that key.
fn without(key: &str) -> String {
    let mut body: Value = serde_json::from_str(&echo()).expect("JSON");
    let meta = body["params"]["_meta"].as_object_mut();
    let key = format!("io.modelcontextprotocol/{key}");
    meta.expect("an object").remove(&key).expect("a key");
    body.to_string()
}

#[tokio::test]
async fn the_version_is_in_both() {
    let server = Server::start().await;
    let unknown = echo().replace("2026-07-28", "v999");
    let bare = request("echo", json!({}));
    refused(&server, &[ECHO], &echo(), -32020).await;
    refused(&server, &[NEW, ECHO], &unknown, -32020).await;
    refused(&server, &[NEW, NEW, ECHO], &echo(), -32020).await;
    refused(&server, &[(VERSION, "2025-11-25"), ECHO], &echo(), -32020).await;
    refused(&server, &[(VERSION, "v999"), ECHO], &echo(), -32020).await;
    refused(&server, &[(VERSION, "v999"), ECHO], &unknown, -32022).await;
    refused(&server, &[(VERSION, "v999"), ECHO], &bare, -32022).await;
    refused(&server, &[NEW, ECHO], &bare, -32602).await;
    refused(&server, &[NEW, ECHO], &request("echo", json!([])), -32602).await;
    refused(&server, &[NEW, ECHO], &without("protocolVersion"), -32602).await;
    refused(
        &server,
        &[NEW, ECHO],
        &without("clientCapabilities"),
        -32602,
    )
    .await;
}

#[tokio::test]
async fn the_method_is_in_both() {
    let server = Server::start().await;
    refused(&server, &[NEW], &echo(), -32020).await;
    refused(&server, &[NEW, ("Mcp-Method", "ping")], &echo(), -32020).await;
    refused(&server, &[NEW, ("Mcp-Method", "ECHO")], &echo(), -32020).await;
    refused(&server, &[NEW, ("Mcp-Method", "")], &echo(), -32020).await;
    refused(&server, &[NEW, ECHO, ECHO], &echo(), -32020).await;
}

#[tokio::test]
async fn the_name_is_in_both() {
    let server = Server::start().await;
    let call = named("tools/call", "name", "t");
    let accented = named("tools/call", "name", "t\u{e9}");
    let twice = call.replace("\"name\":", "\"name\":\"x\",\"name\":");
    let unnamed = modern("tools/call", json!({}));
    let name = |name| [NEW, CALL, ("Mcp-Name", name)];
    refused(&server, &[NEW, CALL], &call, -32020).await;
    refused(&server, &name("u"), &call, -32020).await;
    refused(&server, &name("T"), &call, -32020).await;
    refused(&server, &name("t"), &unnamed, -32020).await;
    refused(&server, &name("=?base64?dA?="), &call, -32020).await;
    refused(&server, &name("=?base64?!!?="), &call, -32020).await;
    refused(&server, &name("=?BASE64?dA==?="), &call, -32020).await;
    refused(&server, &name("t\u{e9}"), &accented, -32020).await;
    // Who reads which of the two is anybody's guess.
    refused(&server, &name("t"), &twice, -32602).await;
    let task = [NEW, ("Mcp-Method", "tasks/get"), ("Mcp-Name", "u")];
    refused(&server, &task, &named("tasks/get", "taskId", "t"), -32020).await;
    let resource = [NEW, ("Mcp-Method", "resources/read"), ("Mcp-Name", "a:c")];
    let read = named("resources/read", "uri", "a:b");
    refused(&server, &resource, &read, -32020).await;
}

#[tokio::test]
async fn what_agrees_is_served() {
    let server = Server::start().await;
    let call = named("tools/call", "name", "t");
    let method = |method| ("Mcp-Method", method);
    let name = |name| ("Mcp-Name", name);
    let blanks = [("mcp-method", " \ttools/call \t"), ("MCP-NAME", "  t  ")];
    let session = [("Mcp-Session-Id", "nonsense"), CALL, name("t")];
    let accented = named("tools/call", "name", "t\u{e9}");
    let read = named("resources/read", "uri", "a:b");
    let cancel = named("tasks/cancel", "taskId", "t");
    let result = named("tasks/result", "taskId", "t");
    let fine: [(Headers<'_>, &str); 9] = [
        (&[CALL, name("t")], &call),
        (&[CALL, name("=?base64?dA==?=")], &call),
        (&blanks, &call),
        (&[CALL, name("=?base64?dMOp?=")], &accented),
        (&[method("resources/read"), name("a:b")], &read),
        (&[method("tasks/cancel"), name("t")], &cancel),
        // Only some methods have names.
        (&[method("tasks/result")], &result),
        (&[method("echo"), name("anything")], &echo()),
        // There are no sessions in this revision.
        (&session, &call),
    ];
    for (headers, body) in fine {
        let headers: Vec<_> = [NEW].iter().chain(headers).copied().collect();
        let reply = post(&server, &headers, body).await;
        assert_eq!(reply.status, 200, "for {headers:?} and {body}: {reply:?}");
    }
}
