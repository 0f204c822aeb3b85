//! Lists of many servers as one list.

use cocode_client::Protocol;
use cocode_core::{Isolation, ServerName, ToolFilter, Verdict};
use cocode_gateway::{Gate as Allowing, ViewOptions};
use cocode_testkit::{Gate, Script};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

use super::house::{House, ask, keys, remembered, result, with_tools};
use crate::support::{Person, Server};

/// Descriptions that a decoder would spoil.
const ODD: &str = r#"{"unknown":[1.10,1E+400],"name" : "odd" , "inputSchema":{"z":{},"type":"object","a":123456789012345678901234567890},"description":"\u00e9\/é"}"#;

#[tokio::test]
async fn a_tool_is_described_as_its_server_does_but_for_its_name() {
    let list = format!(r#"{{"tools":[{ODD}]}}"#);
    let house = House::of(&[("s", Script::new().on("tools/list").result(list))]).await;
    let mut client = house.raw().await;
    let answer = ask(&mut client, "tools/list", "{}").await;
    let expected = ODD.replace("\"odd\"", "\"mcp__s__odd\"");
    let expected = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"tools":[{expected}]}}}}"#);
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn nobody_waits_for_slow_servers_to_be_welcomed() {
    let gate = Gate::new();
    let slow = Script::new().on("initialize").hold(&gate).as_usual();
    let house = House::of(&[("slow", slow)]).await;
    let (_, told) = house.raw_of("2025-06-18").await;
    assert_eq!(told["serverInfo"]["name"], "cocode");
    assert_eq!(told["protocolVersion"], "2025-06-18");
    assert_eq!(told["capabilities"]["tools"]["listChanged"], true);
    assert!(told["instructions"].is_null(), "{told}");
    let mut stateless = house.stateless();
    let told = stateless.modern(1, "server/discover", json!({})).await;
    let info = &told["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "cocode");
    assert_eq!(told["result"]["ttlMs"], 0);
}

#[tokio::test]
async fn what_servers_say_about_their_use_is_told_under_their_names() {
    let house = House::of(&[("b", Script::new()), ("a", Script::modern())]).await;
    let mut client = house.raw().await;
    result(&mut client, "tools/list", json!({})).await;
    let (_, told) = house.raw_of("2025-11-25").await;
    let told = told["instructions"].as_str().unwrap();
    let (_, told) = told.split_once('`').unwrap();
    let (line, told) = told.split_once('`').unwrap();
    for name in ["a", "b"] {
        let section = format!("\n\n{line} begin {name}\nA scripted server.\n{line} end {name}");
        assert!(told.contains(&section), "{told}");
    }
}

#[tokio::test]
async fn a_list_waits_for_servers_that_are_starting() {
    let gate = Gate::new();
    let slow = Script::new().on("initialize").hold(&gate).as_usual();
    let house = House::of(&[("slow", slow), ("quick", Script::new())]).await;
    let mut client = house.raw().await;
    gate.reached().await;
    let answer = tokio::join!(ask(&mut client, "tools/list", "{}"), async {
        gate.open();
    });
    assert!(answer.0.contains("mcp__slow__echo"), "{}", answer.0);
    assert!(answer.0.contains("mcp__quick__echo"), "{}", answer.0);
}

#[tokio::test]
async fn a_server_that_takes_too_long_comes_later_and_is_told_of() {
    let gate = Gate::new();
    let slow = Script::new().on("initialize").hold(&gate).as_usual();
    let scripts = [("slow", slow), ("quick", Script::new())];
    let house = House::with(&scripts, ViewOptions::default(), |spec| {
        if spec.name.as_str() == "slow" {
            spec.startup_timeout = Duration::from_millis(50);
        }
    })
    .await;
    let person = Person::willing("Ada");
    let client = house.client(Protocol::Legacy, &person).await;
    let names = |tools: Vec<cocode_client::Tool>| -> Vec<String> {
        tools.into_iter().map(|tool| tool.name).collect()
    };
    let tools = client.tools().await.unwrap().items;
    assert_eq!(names(tools), ["mcp__quick__echo"]);
    gate.open();
    person.hears("notifications/tools/list_changed").await;
    let tools = client.tools().await.unwrap().items;
    assert_eq!(names(tools), ["mcp__quick__echo", "mcp__slow__echo"]);
}

#[tokio::test]
async fn tools_of_servers_that_failed_are_not_listed() {
    let broken = Script::new().on_start().exit(1);
    let house = House::of(&[("broken", broken), ("fine", Script::new())]).await;
    let mut client = house.raw().await;
    let tools = result(&mut client, "tools/list", json!({})).await;
    assert_eq!(keys(&tools["tools"], "name"), ["mcp__fine__echo"]);
}

#[tokio::test]
async fn a_restart_changes_nothing_and_is_not_told_of() {
    let house = House::of(&[("a", Script::new()), ("b", Script::new())]).await;
    let person = Person::willing("Ada");
    let client = house.client(Protocol::Legacy, &person).await;
    let before = client.tools().await.unwrap().pages;
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    server.kill();
    server
        .wait_for(|message| message.run == 2 && message.is("prompts/list"))
        .await;
    let call = client.call_tool(
        "mcp__a__echo",
        None,
        cocode_client::RequestOptions::default(),
    );
    call.await.unwrap();
    let after = client.tools().await.unwrap().pages;
    assert_eq!(before, after);
    let told = person.heard.lock().unwrap().clone();
    assert!(
        told.iter().all(|told| !told.contains("tools/list_changed")),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_change_is_told_once_and_only_if_it_is_one() {
    let one = json!({ "name": "one", "inputSchema": { "type": "object" } });
    let two = json!({ "name": "two", "inputSchema": { "type": "object" } });
    let changed = "notifications/tools/list_changed";
    // The first call announces a change that is none, the second a real one.
    let script = Script::new()
        .on("tools/list")
        .nth(1)
        .result(json!({ "tools": [one] }))
        .on("tools/list")
        .nth(2)
        .result(json!({ "tools": [one] }))
        .on("tools/list")
        .result(json!({ "tools": [one, two] }))
        .on("tools/call")
        .notify_times(5, changed, json!({}))
        .text_result("done");
    let house = House::of(&[("a", script), ("b", Script::new())]).await;
    let person = Person::willing("Ada");
    let client = house.client(Protocol::Legacy, &person).await;
    assert_eq!(client.tools().await.unwrap().items.len(), 2);
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    let call = || async {
        let options = cocode_client::RequestOptions::default();
        client
            .call_tool("mcp__a__one", None, options)
            .await
            .unwrap();
    };
    call().await;
    let lists = |count: usize| {
        server.received().wait_until(move |all| {
            all.iter()
                .filter(|message| message.is("tools/list"))
                .count()
                >= count
        })
    };
    lists(2).await;
    call().await;
    lists(3).await;
    person.hears(changed).await;
    assert_eq!(client.tools().await.unwrap().items.len(), 3);
    // Whatever is told by now was told because of what happened before.
    call().await;
    let told = person.heard.lock().unwrap().clone();
    let told = told.iter().filter(|told| told.contains(changed)).count();
    assert_eq!(told, 1);
}

#[tokio::test]
async fn filtered_tools_do_not_exist() {
    let script = with_tools(Script::new(), &["read", "write"]);
    let house = House::with(&[("s", script)], ViewOptions::default(), |spec| {
        spec.tools = ToolFilter {
            enabled: None,
            disabled: vec!["wri*".into()],
        };
    })
    .await;
    let mut client = house.raw().await;
    let tools = result(&mut client, "tools/list", json!({})).await;
    assert_eq!(keys(&tools["tools"], "name"), ["mcp__s__read"]);
    let answer = ask(&mut client, "tools/call", r#"{"name":"mcp__s__write"}"#).await;
    assert!(answer.contains("Unknown tool: mcp__s__write"), "{answer}");
}

/// Denies what it is told to.
struct Denying {
    changes: watch::Sender<u64>,
    denied: std::sync::Mutex<String>,
}

impl Allowing for Denying {
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn decide(
        &self,
        server: &ServerName,
        tool: &str,
        _annotations: cocode_client::Annotations,
    ) -> Verdict {
        if format!("{server}.{tool}") == *self.denied.lock().unwrap() {
            return Verdict::Deny;
        }
        Verdict::Allow
    }
}

#[tokio::test]
async fn a_gate_that_changes_its_mind_changes_the_list() {
    let gate = Arc::new(Denying {
        changes: watch::Sender::default(),
        denied: std::sync::Mutex::new("s.write".into()),
    });
    let options = ViewOptions {
        gate: Arc::<Denying>::clone(&gate),
        ..ViewOptions::default()
    };
    let script = with_tools(Script::new(), &["read", "write"]);
    let house = House::with(&[("s", script)], options, |_| {}).await;
    let person = Person::willing("Ada");
    let client = house.client(Protocol::Legacy, &person).await;
    let listed = || async {
        let tools = client.tools().await.unwrap().items;
        tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, ["mcp__s__read"]);
    let called = client.call_tool(
        "mcp__s__write",
        None,
        cocode_client::RequestOptions::default(),
    );
    let refusal = cocode_client::chain(&called.await.unwrap_err());
    assert!(refusal.contains("Unknown tool: mcp__s__write"), "{refusal}");
    *gate.denied.lock().unwrap() = "s.read".into();
    gate.changes.send_modify(|count| *count += 1);
    person.hears("notifications/tools/list_changed").await;
    assert_eq!(listed().await, ["mcp__s__write"]);
}

#[tokio::test]
async fn servers_come_and_go_with_the_view() {
    let house = House::of(&[("a", Script::new()), ("b", Script::new())]).await;
    let person = Person::willing("Ada");
    let client = house.client(Protocol::Legacy, &person).await;
    assert_eq!(client.tools().await.unwrap().items.len(), 2);
    house.view.apply([house.servers[1].spec_as("c")]).await;
    person.hears("notifications/tools/list_changed").await;
    let tools = client.tools().await.unwrap().items;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mcp__c__echo"]);
}

#[tokio::test]
async fn a_server_of_every_session_is_listed_once() {
    let house = House::with(&[("s", Script::new())], ViewOptions::default(), |spec| {
        spec.isolation = Isolation::PerSession;
    })
    .await;
    let mut client = house.raw().await;
    let tools = result(&mut client, "tools/list", json!({})).await;
    assert_eq!(keys(&tools["tools"], "name"), ["mcp__s__echo"]);
    let called = json!({ "name": "mcp__s__echo", "arguments": { "x": 1 } });
    let called = result(&mut client, "tools/call", called).await;
    assert_eq!(called["structuredContent"], json!({ "x": 1 }));
}

#[tokio::test]
async fn lists_hold_as_long_as_the_server_says_that_says_the_least() {
    let lasting = |ttl: u64, scope: &str, name: &str| {
        let tools = json!({
            "resultType": "complete", "ttlMs": ttl, "cacheScope": scope,
            "tools": [{ "name": name, "inputSchema": { "type": "object" } }],
        });
        Script::modern().on("tools/list").result(tools)
    };
    let hour = 3_600_000;
    let house = House::of(&[
        ("a", lasting(hour, "public", "x")),
        ("b", lasting(hour * 2, "public", "y")),
    ])
    .await;
    let mut client = house.stateless();
    let listed = client.modern(1, "tools/list", json!({})).await;
    let ttl = listed["result"]["ttlMs"].as_u64().unwrap();
    assert!((1..=hour).contains(&ttl), "{listed}");
    assert_eq!(listed["result"]["cacheScope"], "public");
    assert_eq!(listed["result"]["resultType"], "complete");

    let house = House::of(&[("a", lasting(hour, "public", "x")), ("b", Script::new())]).await;
    let mut client = house.stateless();
    let listed = client.modern(1, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["ttlMs"], 0);
    assert_eq!(listed["result"]["cacheScope"], "private");
}

#[tokio::test]
async fn what_is_remembered_of_a_server_is_there_at_once() {
    let directory = tempfile::TempDir::new().unwrap();
    let options = || ViewOptions {
        manager: cocode_client::ManagerOptions {
            cache: cocode_client::ListCache::open(directory.path()),
            ..cocode_client::ManagerOptions::default()
        },
        ..ViewOptions::default()
    };
    let house = House::with(&[("s", Script::new())], options(), |_| {}).await;
    let mut client = house.raw().await;
    let before = ask(&mut client, "tools/list", "{}").await;
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    server.wait_for(|message| message.is("prompts/list")).await;
    remembered(&house.servers[0], "s", directory.path()).await;
    // From now on it does not get up.
    let gate = Gate::new();
    server.restart(&Script::new().on("*").hold(&gate).as_usual());
    let again = House::again(&house.servers[0], "s", options()).await;
    let mut client = again.raw().await;
    assert_eq!(ask(&mut client, "tools/list", "{}").await, before);
}
