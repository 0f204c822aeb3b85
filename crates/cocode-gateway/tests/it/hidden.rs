//! Tools that may not be used, at the endpoint of their server: nothing tells them from tools that never
//! were.

use std::sync::Arc;

use cocode_client::{Annotations, Protocol};
use cocode_core::{ServerName, ServerSpec, ToolFilter, Verdict};
use cocode_gateway::{Gate, ViewOptions};
use cocode_testkit::{Message, Script};
use serde_json::{Value, json};

use crate::merged::house::{House, ask, with_tools};
use crate::support::Server;

/// Hides `secret`.
struct Hiding;

impl Gate for Hiding {
    fn decide(&self, _server: &ServerName, tool: &str, _annotations: Annotations) -> Verdict {
        match tool {
            "secret" => Verdict::Deny,
            _ => Verdict::Allow,
        }
    }
}

fn hiding() -> ViewOptions {
    ViewOptions {
        gate: Arc::new(Hiding),
        ..ViewOptions::default()
    }
}

/// A server with two tools that says of every other name, in words of its own, that there is none.
fn talkative() -> Script {
    with_tools(Script::new(), &["echo", "secret"])
        .on("tools/call")
        .error(-32000, "What would that be?")
}

async fn call(house: &House, era: Protocol, tool: &str) -> Value {
    let endpoint = house.view.server("s").unwrap();
    let params = json!({ "name": tool });
    if era == Protocol::Modern {
        return house
            .stateless_at(endpoint)
            .modern(7, "tools/call", params)
            .await;
    }
    let mut client = house.raw_at(endpoint).await;
    let answer = ask(&mut client, "tools/call", &params.to_string()).await;
    serde_json::from_str(&answer).unwrap()
}

/// The tools that the server was called for, once it was called for this one.
async fn called(house: &House, last: &str) -> Vec<Value> {
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    let is_call = |message: &&Message| message.is("tools/call");
    let is_last = |message: &Message| is_call(&message) && message.params()["name"] == last;
    server.wait_for(is_last).await;
    let all = server.received().all();
    let calls = all.iter().filter(is_call);
    calls.map(|call| call.params()["name"].clone()).collect()
}

fn unknown(tool: &str) -> Value {
    json!({ "code": -32602, "message": format!("Unknown tool: {tool}") })
}

#[tokio::test]
async fn a_forbidden_tool_is_answered_like_one_that_is_none() {
    for era in [Protocol::Legacy, Protocol::Modern] {
        let house = House::with(&[("s", talkative())], hiding(), |_| {}).await;
        for tool in ["secret", "secrets", ""] {
            assert_eq!(call(&house, era, tool).await["error"], unknown(tool));
        }
        // What may be used is answered by the server, which has heard of nothing else.
        assert_eq!(call(&house, era, "echo").await["error"]["code"], -32000);
        assert_eq!(called(&house, "echo").await, ["echo"]);
    }
}

#[tokio::test]
async fn the_same_holds_for_what_the_entry_of_the_server_leaves_out() {
    let house = House::with(&[("s", talkative())], ViewOptions::default(), |spec| {
        spec.tools = ToolFilter {
            disabled: vec!["secret".to_owned()],
            ..ToolFilter::default()
        };
    })
    .await;
    for tool in ["secret", "secrets"] {
        let answer = call(&house, Protocol::Legacy, tool).await;
        assert_eq!(answer["error"], unknown(tool));
    }
    call(&house, Protocol::Legacy, "echo").await;
    assert_eq!(called(&house, "echo").await, ["echo"]);
}

#[tokio::test]
async fn where_everything_is_allowed_the_server_says_itself_what_it_has() {
    let house = House::with(&[("s", talkative())], ViewOptions::default(), |_| {}).await;
    let answer = call(&house, Protocol::Legacy, "unlisted").await;
    assert_eq!(answer["error"]["message"], "What would that be?");
    assert_eq!(called(&house, "unlisted").await, ["unlisted"]);
}

#[tokio::test]
async fn a_tool_that_the_server_has_since_a_moment_is_found() {
    let tools = |names: &[&str]| {
        let tools = names.iter();
        let tools = tools.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
        json!({ "tools": tools.collect::<Vec<_>>() })
    };
    // It does not say that its list has changed.
    let script = Script::new()
        .on("tools/list")
        .nth(1)
        .result(tools(&["echo"]))
        .on("tools/list")
        .result(tools(&["echo", "new", "secret"]))
        .on("tools/call")
        .text_result("done");
    let house = House::with(&[("s", script)], hiding(), |_| {}).await;
    let mut client = house.raw_at(house.view.server("s").unwrap()).await;
    let done = ask(&mut client, "tools/call", r#"{"name":"new"}"#).await;
    assert!(done.contains("done"), "{done}");
    let answer = call(&house, Protocol::Legacy, "secret").await;
    assert_eq!(answer["error"], unknown("secret"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_so_of_every_name() {
    let house = House::with(&[("s", Script::new())], hiding(), |spec| {
        *spec = ServerSpec::program(spec.name.clone(), "/nonexistent/server", [""; 0]);
    })
    .await;
    let mut answers = Vec::new();
    for tool in ["echo", "secret", "secrets"] {
        let answer = call(&house, Protocol::Modern, tool).await;
        answers.push(answer["error"]["code"].clone());
    }
    assert_eq!(answers, [-32603, -32603, -32603]);
}
