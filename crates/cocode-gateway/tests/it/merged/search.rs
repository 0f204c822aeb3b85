//! Clients that search for tools instead of being shown all of them: what they see and find.

use std::sync::{Arc, Mutex};

use cocode_client::{Annotations, ListCache, ManagerOptions, Protocol, RawJson, RequestOptions};
use cocode_core::{SearchPolicy, ServerName, ToolFilter, ToolSearchMode, Verdict};
use cocode_gateway::{Announced, Gate, Prefix, SearchOptions, ViewOptions};
use cocode_testkit::Script;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::house::{House, ask, keys, remembered, result, with_tools};
use crate::support::{Person, RawClient, Server};

/// Everybody searches, unless they say otherwise.
pub(crate) fn searching() -> ViewOptions {
    with_mode(ToolSearchMode::On)
}

fn with_mode(mode: ToolSearchMode) -> ViewOptions {
    ViewOptions {
        search: SearchOptions {
            policy: SearchPolicy {
                mode,
                ..SearchPolicy::default()
            },
            ..SearchOptions::default()
        },
        ..ViewOptions::default()
    }
}

fn two() -> [(&'static str, Script); 2] {
    let files = with_tools(Script::dual(), &["read_file", "write_file"]);
    let mail = with_tools(Script::dual(), &["send_message"]);
    [("files", telling(files)), ("mail", telling(mail))]
}

/// A server whose tools tell what they were called with.
fn telling(script: Script) -> Script {
    let told = r#"{"resultType":"complete","content":[],"structuredContent":$params}"#;
    script.on("tools/call").result(told)
}

/// What a session finds.
async fn find(client: &mut RawClient, arguments: Value) -> Value {
    let params = json!({ "name": "tool_search", "arguments": arguments });
    let found = result(client, "tools/call", params).await;
    let text = found["content"][0]["text"].as_str().unwrap();
    let as_text: Value = serde_json::from_str(text).unwrap_or_default();
    assert!(
        found["isError"] == true || as_text == found["structuredContent"],
        "{found}"
    );
    found
}

async fn found(client: &mut RawClient, query: &str) -> Vec<String> {
    let found = find(client, json!({ "query": query })).await;
    keys(&found["structuredContent"]["tools"], "name")
}

async fn listed(client: &mut RawClient) -> Vec<String> {
    let tools = result(client, "tools/list", json!({})).await;
    keys(&tools["tools"], "name")
}

#[tokio::test]
async fn who_searches_is_shown_two_tools_and_those_that_are_always_shown() {
    let house = House::with(&two(), searching(), |spec| {
        spec.always_load = spec.name.as_str() == "mail";
    })
    .await;
    let expected = ["tool_search", "tool_call", "mcp__mail__send_message"];
    let mut client = house.raw().await;
    assert_eq!(listed(&mut client).await, expected);
    let mut stateless = house.stateless();
    let tools = stateless.modern(1, "tools/list", json!({})).await;
    assert_eq!(keys(&tools["result"]["tools"], "name"), expected);
    assert_eq!(tools["result"]["cacheScope"], "private");
    let search = &tools["result"]["tools"][0];
    let about = search["description"].as_str().unwrap();
    assert!(
        about.ends_with("Servers:\n- files: A scripted server."),
        "{about}"
    );
    assert_eq!(search["annotations"]["readOnlyHint"], true);
    assert_eq!(search["outputSchema"]["type"], "object");
    // What is one server by itself is as it is.
    let mut one = house.raw_at(house.view.server("files").unwrap()).await;
    assert_eq!(listed(&mut one).await, ["read_file", "write_file"]);
}

#[tokio::test]
async fn what_the_user_says_of_a_server_counts_more_than_its_own_words() {
    let house = House::with(&two(), searching(), |spec| {
        spec.description = Some("Everything for \"paper\". More.".to_owned());
    })
    .await;
    let mut client = house.raw().await;
    let tools = result(&mut client, "tools/list", json!({})).await;
    let about = tools["tools"][0]["description"].as_str().unwrap();
    let expected = "\n- files: Everything for \"paper\".\n- mail: Everything for \"paper\".";
    assert!(about.ends_with(expected), "{about}");
}

#[tokio::test]
async fn what_is_found_is_described_as_its_server_does() {
    let odd = r#"{"unknown":[1.10],"name" : "odd" , "inputSchema":{"z":{},"type":"object","a":123456789012345678901234567890},"annotations":{"readOnlyHint" : true},"description":"\u00e9\/é odd"}"#;
    let list = format!(r#"{{"tools":[{odd}]}}"#);
    let script = Script::new().on("tools/list").result(list);
    let house = House::with(&[("s", script)], searching(), |_| {}).await;
    let mut client = house.raw().await;
    let params = r#"{"name":"tool_search","arguments":{"query":"odd"}}"#;
    let answer = ask(&mut client, "tools/call", params).await;
    let expected = r#""structuredContent":{"tools":[{"name":"mcp__s__odd","server":"s","description":"\u00e9\/é odd","inputSchema":{"z":{},"type":"object","a":123456789012345678901234567890},"annotations":{"readOnlyHint" : true}}]}"#;
    assert!(answer.contains(expected), "{answer}");
}

#[tokio::test]
async fn what_was_found_can_be_called_in_both_ways_and_eras() {
    let house = House::with(&two(), searching(), |_| {}).await;
    let mut client = house.raw().await;
    assert_eq!(
        found(&mut client, "read_file").await[0],
        "mcp__files__read_file"
    );
    let arguments = json!({ "path": "/x" });
    let direct = json!({ "name": "mcp__files__read_file", "arguments": arguments });
    let through = json!({ "name": "tool_call", "arguments": direct });
    for params in [direct.clone(), through.clone()] {
        let called = result(&mut client, "tools/call", params.clone()).await;
        assert_eq!(
            called["structuredContent"]["arguments"], arguments,
            "{params}"
        );
    }
    let mut stateless = house.stateless();
    let search = json!({ "name": "tool_search", "arguments": { "query": "send_message" } });
    let answer = stateless.modern(1, "tools/call", search).await;
    assert_eq!(answer["result"]["resultType"], "complete");
    let tools = &answer["result"]["structuredContent"]["tools"];
    assert_eq!(keys(tools, "name")[0], "mcp__mail__send_message");
    for params in [direct, through] {
        let called = stateless.modern(2, "tools/call", params.clone()).await;
        assert_eq!(
            called["result"]["structuredContent"]["arguments"], arguments,
            "{params}"
        );
    }
}

#[tokio::test]
async fn a_search_can_be_narrowed_and_says_when_nothing_fits() {
    let house = House::with(&two(), searching(), |_| {}).await;
    let mut client = house.raw().await;
    let only = find(&mut client, json!({ "query": "file", "limit": 1 })).await;
    assert_eq!(
        only["structuredContent"]["tools"].as_array().unwrap().len(),
        1
    );
    let names = find(
        &mut client,
        json!({ "query": "send_message", "detail": "names" }),
    )
    .await;
    let expected = json!([{ "name": "mcp__mail__send_message", "server": "mail" }]);
    assert_eq!(names["structuredContent"]["tools"], expected);
    let of_mail = find(
        &mut client,
        json!({ "query": "read_file", "server": "mail" }),
    )
    .await;
    let message = of_mail["structuredContent"]["message"].as_str().unwrap();
    assert!(
        message.contains("These servers have tools: files, mail"),
        "{message}"
    );
    assert!(of_mail["isError"].is_null());
    let wrong = find(&mut client, json!({ "query": "x", "server": "mails" })).await;
    assert_eq!(wrong["isError"], true);
    let text = wrong["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Did you mean `mail`?"), "{text}");
    for bad in [json!({}), json!({ "query": "x", "limit": 21 })] {
        assert_eq!(find(&mut client, bad).await["isError"], true);
    }
}

/// Denies the tool of this name, which can be another.
struct Denying {
    denied: Mutex<String>,
    changes: watch::Sender<u64>,
}

impl Gate for Denying {
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn decide(&self, _server: &ServerName, tool: &str, _annotations: Annotations) -> Verdict {
        if *self.denied.lock().unwrap() == tool {
            Verdict::Deny
        } else {
            Verdict::Allow
        }
    }
}

#[tokio::test]
async fn what_is_forbidden_is_neither_found_nor_called() {
    let gate = Arc::new(Denying {
        denied: Mutex::new("write_file".to_owned()),
        changes: watch::Sender::new(0),
    });
    let options = ViewOptions {
        gate: Arc::<Denying>::clone(&gate),
        ..searching()
    };
    let house = House::with(&two(), options, |spec| {
        if spec.name.as_str() == "mail" {
            spec.tools = ToolFilter {
                enabled: None,
                disabled: vec!["send_message".to_owned()],
            };
        }
    })
    .await;
    let mut client = house.raw().await;
    assert_eq!(
        found(&mut client, "file message").await,
        ["mcp__files__read_file"]
    );
    for name in ["mcp__files__write_file", "mcp__mail__send_message"] {
        let call = json!({ "name": "tool_call", "arguments": { "name": name } });
        let refused = result(&mut client, "tools/call", call).await;
        assert_eq!(refused["isError"], true);
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("Unknown tool: {name}")), "{text}");
        assert!(text.contains("`tool_search` finds tools"), "{text}");
    }
    *gate.denied.lock().unwrap() = "read_file".to_owned();
    gate.changes.send_modify(|count| *count += 1);
    assert_eq!(
        found(&mut client, "file message").await,
        ["mcp__files__write_file"]
    );
}

#[tokio::test]
async fn a_change_of_tools_is_found_and_told_only_to_those_who_see_it() {
    let changing = Script::new()
        .on("tools/list")
        .nth(1)
        .result(json!({ "tools": [{ "name": "alpha", "inputSchema": { "type": "object" } }] }))
        .on("tools/list")
        .result(json!({ "tools": [{ "name": "omega", "inputSchema": { "type": "object" } }] }))
        .on("tools/call")
        .notify("notifications/tools/list_changed", json!({}))
        .text_result("changed");
    let house = House::with(&[("s", changing)], with_mode(ToolSearchMode::Auto), |_| {}).await;
    let person = Person::willing("Ada");
    let all = house.client(Protocol::Legacy, &person).await;
    all.tools().await.unwrap();
    let on = Announced::parse(None, Some("true")).unwrap();
    let searcher = Person::willing("Bob");
    let endpoint = house.view.all_for(on);
    let searches = house.client_at(endpoint, Protocol::Legacy, &searcher).await;
    assert_eq!(searches.tools().await.unwrap().items.len(), 2);
    let query = RawJson::parse(r#"{"query":"alpha omega"}"#).unwrap();
    let find = async || {
        let options = RequestOptions::default();
        let found = searches
            .call_tool("tool_search", Some(&query), options)
            .await;
        found.unwrap().raw.as_str().to_owned()
    };
    assert!(find().await.contains("mcp__s__alpha"));
    let options = RequestOptions::default();
    all.call_tool("mcp__s__alpha", None, options).await.unwrap();
    person.hears("notifications/tools/list_changed").await;
    let now = find().await;
    assert!(
        now.contains("mcp__s__omega") && !now.contains("mcp__s__alpha"),
        "{now}"
    );
    // What it is shown is the same as before.
    let heard = searcher.heard.lock().unwrap().clone();
    let told = heard
        .iter()
        .any(|heard| heard.contains("tools/list_changed"));
    assert!(!told, "{heard:?}");
    house.view.apply([house.servers[0].spec_as("other")]).await;
    searcher.hears("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn a_session_is_decided_about_anew_when_tools_change_if_that_is_wanted() {
    let long = "x".repeat(60_000);
    let small = json!({ "tools": [{ "name": "alpha", "inputSchema": { "type": "object" } }] });
    let large = json!({ "tools": [
        { "name": "alpha", "inputSchema": { "type": "object" }, "description": long },
    ]});
    for (on_list_changed, expected) in [(true, "tool_search"), (false, "mcp__s__alpha")] {
        let changing = Script::new()
            .on("tools/list")
            .nth(1)
            .result(small.clone())
            .on("tools/list")
            .result(large.clone())
            .on("tools/call")
            .notify("notifications/tools/list_changed", json!({}))
            .text_result("changed");
        let mut options = with_mode(ToolSearchMode::Auto);
        options.search.on_list_changed = on_list_changed;
        options.search.context_window = Some(200_000);
        let house = House::with(&[("s", changing)], options, |_| {}).await;
        let person = Person::willing("Ada");
        let client = house.client(Protocol::Legacy, &person).await;
        assert_eq!(client.tools().await.unwrap().items[0].name, "mcp__s__alpha");
        let options = RequestOptions::default();
        client
            .call_tool("mcp__s__alpha", None, options)
            .await
            .unwrap();
        person.hears("notifications/tools/list_changed").await;
        let tools = client.tools().await.unwrap().items;
        assert_eq!(tools[0].name, expected);
    }
}

#[tokio::test]
async fn a_client_says_in_many_ways_what_its_model_can_see() {
    let long = "x".repeat(60_000);
    let tools = json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "tools": [{ "name": "a", "inputSchema": { "type": "object" }, "description": long }],
    });
    let script = Script::dual().on("tools/list").result(tools);
    let house = House::with(&[("s", script)], ViewOptions::default(), |_| {}).await;
    // Who says nothing is shown all.
    assert_eq!(listed(&mut house.raw().await).await, ["mcp__s__a"]);
    for (said, is_search) in [
        (json!({ "contextWindow": 200_000 }), true),
        (json!({ "contextWindow": 1_000_000 }), false),
        (
            json!({ "contextWindow": 1_000_000, "mode": "auto:1" }),
            true,
        ),
        (json!({ "contextWindow": 200_000, "mode": "false" }), false),
        (json!({ "mode": "true" }), true),
    ] {
        let expected = if is_search {
            "tool_search"
        } else {
            "mcp__s__a"
        };
        let experimental = json!({ "experimental": { "cocode/toolSearch": said } });
        let mut client = house.raw_with(house.view.all(), &experimental).await.0;
        assert_eq!(listed(&mut client).await[0], expected, "{said}");
        let mut stateless = house.stateless();
        for meta in [
            json!({ "cocode/toolSearch": said }),
            json!({ "io.modelcontextprotocol/clientCapabilities": experimental }),
        ] {
            let answer = stateless
                .modern_with(1, "tools/list", json!({}), meta)
                .await;
            assert_eq!(answer["result"]["tools"][0]["name"], expected, "{said}");
        }
        let text = |key: &str| {
            let said = &said[key];
            said.as_str()
                .map_or_else(|| said.to_string(), str::to_owned)
        };
        let window = said.get("contextWindow").map(|_| text("contextWindow"));
        let mode = said.get("mode").map(|_| text("mode"));
        let announced = Announced::parse(window.as_deref(), mode.as_deref()).unwrap();
        let endpoint = house.view.all_for(announced);
        let mut client = house.raw_at(Arc::clone(&endpoint)).await;
        assert_eq!(listed(&mut client).await[0], expected, "{said}");
        let alone = crate::support::alone(&*endpoint, "tools/list", json!({})).await;
        assert_eq!(alone["result"]["tools"][0]["name"], expected, "{said}");
    }
}

#[tokio::test]
async fn what_is_said_wrongly_is_refused() {
    let house = House::with(&two(), ViewOptions::default(), |_| {}).await;
    let said = json!({ "contextWindow": "much" });
    let experimental = json!({ "experimental": { "cocode/toolSearch": said } });
    let (_, refused) = house.raw_with(house.view.all(), &experimental).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("a number of tokens above zero"),
        "{message}"
    );
    let mut stateless = house.stateless();
    let meta = json!({ "cocode/toolSearch": { "mode": "sometimes" } });
    let refused = stateless
        .modern_with(1, "tools/list", json!({}), meta)
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // A server by itself is not searched, and takes anything.
    let one = house.view.server("files").unwrap();
    let (_, told) = house.raw_with(one, &experimental).await;
    assert!(told["result"].is_object(), "{told}");
}

#[tokio::test]
async fn nobody_searches_where_that_is_switched_off() {
    let house = House::with(&two(), with_mode(ToolSearchMode::Off), |_| {}).await;
    let on = Announced::parse(Some("200000"), Some("true")).unwrap();
    let mut client = house.raw_at(house.view.all_for(on)).await;
    assert_eq!(listed(&mut client).await.len(), 3);
    let params = r#"{"name":"tool_search","arguments":{"query":"file"}}"#;
    let answer = ask(&mut client, "tools/call", params).await;
    assert!(answer.contains("Unknown tool: tool_search"), "{answer}");
}

#[tokio::test]
async fn a_tool_that_has_one_of_our_names_is_called_through_ours() {
    let tools = ["tool_search", "tool_call", "plain"];
    let script = with_tools(Script::new(), &tools).on("tools/call").echo();
    let own = [("s", script)];
    let options = |mode| ViewOptions {
        prefix: Prefix::Never,
        ..with_mode(mode)
    };
    let house = House::with(&own, options(ToolSearchMode::On), |spec| {
        spec.always_load = true;
    })
    .await;
    // With nothing to search, all is shown as it is.
    let mut client = house.raw().await;
    assert_eq!(
        listed(&mut client).await,
        ["plain", "tool_call", "tool_search"]
    );
    let two = [own[0].clone(), ("t", with_tools(Script::new(), &["other"]))];
    let house = House::with(&two, options(ToolSearchMode::On), |spec| {
        spec.always_load = spec.name.as_str() == "s";
    })
    .await;
    let mut client = house.raw().await;
    assert_eq!(
        listed(&mut client).await,
        ["tool_search", "tool_call", "plain"]
    );
    let call = json!({ "name": "tool_call", "arguments": {
        "name": "tool_search", "arguments": { "mine": 1 },
    }});
    let called = result(&mut client, "tools/call", call).await;
    assert_eq!(called["arguments"], json!({ "mine": 1 }), "{called}");
    // Who does not search means the server's own.
    let off = Announced::parse(None, Some("false")).unwrap();
    let mut client = house.raw_at(house.view.all_for(off)).await;
    assert_eq!(listed(&mut client).await.len(), 4);
    let call = json!({ "name": "tool_search", "arguments": { "mine": 2 } });
    let called = result(&mut client, "tools/call", call).await;
    assert_eq!(called["arguments"], json!({ "mine": 2 }), "{called}");
}

#[tokio::test]
async fn lists_that_are_remembered_are_searched_while_every_server_is_stopped() {
    let directory = tempfile::TempDir::new().unwrap();
    let options = || ViewOptions {
        manager: ManagerOptions {
            cache: ListCache::open(directory.path()),
            start: cocode_client::Start {
                when: cocode_client::When::OnlyNeeded,
                ..cocode_client::Start::default()
            },
            ..ManagerOptions::default()
        },
        ..searching()
    };
    let script = telling(with_tools(Script::new(), &["read_file"]));
    let server = Server::Stdio(script.stdio());
    let Server::Stdio(program) = &server else {
        unreachable!("a program");
    };
    {
        let first = House::again(&server, "files", options()).await;
        let mut client = first.raw().await;
        let call = json!({ "name": "mcp__files__read_file" });
        result(&mut client, "tools/call", call).await;
        remembered(&server, "files", directory.path()).await;
        first.gateway.finish().await;
    }
    let runs = |n_runs: u32| program.received().count(|message| message.run > n_runs);
    assert_eq!(runs(1), 0);
    let house = House::again(&server, "files", options()).await;
    let mut client = house.raw().await;
    assert_eq!(listed(&mut client).await, ["tool_search", "tool_call"]);
    assert_eq!(
        found(&mut client, "read_file").await,
        ["mcp__files__read_file"]
    );
    assert_eq!(runs(1), 0, "a server was started");
    let call = json!({ "name": "tool_call", "arguments": {
        "name": "mcp__files__read_file", "arguments": { "path": "/x" },
    }});
    let called = result(&mut client, "tools/call", call).await;
    assert_eq!(
        called["structuredContent"]["arguments"],
        json!({ "path": "/x" })
    );
    // An answer may be there before what was asked is written down.
    program.received().wait_for(|message| message.run > 1).await;
}
