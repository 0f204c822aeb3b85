//! Calls of tools, each at its server.

use cocode_client::{
    OutputLimits, Protocol, RawJson, RequestOptions, ResultStore, ResultStoreOptions,
};
use cocode_gateway::ViewOptions;
use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use super::house::{House, ask, result};
use crate::support::{Person, text_of};

/// A tool that wants a number.
fn counting(script: Script) -> Script {
    let tools = json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "tools": [{ "name": "count", "inputSchema": {
            "type": "object", "properties": { "to": { "type": "integer" } }, "required": ["to"],
        }}],
    });
    script.on("tools/list").result(tools)
}

#[tokio::test]
async fn a_call_reaches_its_server_with_another_name_and_nothing_else_changed() {
    for script in [Script::new(), Script::dual()] {
        let script = script.on("tools/call").echo();
        let house = House::of(&[("a", script.clone()), ("b", script)]).await;
        let mut client = house.raw().await;
        for server in ["a", "b"] {
            let params = format!(
                r#"{{"z": 1.10,"name":"mcp__{server}__echo", "arguments":{{"n":1E+400,"s":"\u00e9"}}}}"#
            );
            let answer = ask(&mut client, "tools/call", &params).await;
            let expected = r#""z": 1.10,"name":"echo", "arguments":{"n":1E+400,"s":"\u00e9"}"#;
            assert!(answer.contains(expected), "{answer}");
        }
    }
}

#[tokio::test]
async fn results_come_back_byte_for_byte() {
    let odd = r#"{ "content" : [ { "type":"text" , "text":"\u00e9\/é" } ] , "big":123456789012345678901234567890,"x":1.10}"#;
    let script = Script::new().on("tools/call").result(odd);
    let house = House::of(&[("s", script)]).await;
    let mut client = house.raw().await;
    let answer = ask(&mut client, "tools/call", r#"{"name":"mcp__s__echo"}"#).await;
    assert_eq!(
        answer,
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{odd}}}"#)
    );
}

#[tokio::test]
async fn every_pair_of_eras_can_call_and_hear_of_progress() {
    for script in [Script::new(), Script::modern()] {
        let script = script.on("tools/call").progress(1, 2).text_result("done");
        let house = House::of(&[("a", script.clone()), ("b", script)]).await;
        for protocol in [Protocol::Legacy, Protocol::Modern] {
            let client = house.client(protocol, &Person::willing("Ada")).await;
            for tool in ["mcp__a__echo", "mcp__b__echo"] {
                let (told, hear) = std::sync::mpsc::channel();
                let options = RequestOptions {
                    on_progress: Some(std::sync::Arc::new(move |progress| {
                        told.send(progress.progress).unwrap();
                    })),
                    ..RequestOptions::default()
                };
                let called = client.call_tool(tool, None, options).await.unwrap();
                assert_eq!(text_of(&called), "done");
                assert_eq!(hear.iter().collect::<Vec<_>>(), [1.0]);
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_name_is_an_error_that_names_its_neighbors() {
    let house = House::of(&[("files", Script::new())]).await;
    let mut client = house.raw().await;
    let answer = ask(&mut client, "tools/call", r#"{"name":"mcp__file__echo"}"#).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["error"]["code"], -32602);
    let expected = "Unknown tool: mcp__file__echo. Did you mean `mcp__files__echo`?";
    assert_eq!(answer["error"]["message"], expected);
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_is_starting() {
    let gate = Gate::new();
    let slow = Script::new().on("initialize").hold(&gate).as_usual();
    let house = House::of(&[("slow", slow)]).await;
    let mut client = house.raw().await;
    gate.reached().await;
    gate.open();
    let called = json!({ "name": "mcp__slow__echo", "arguments": { "a": 1 } });
    let called = result(&mut client, "tools/call", called).await;
    assert_eq!(called["structuredContent"], json!({ "a": 1 }));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_in_the_way_of_the_era() {
    let house = House::of(&[(
        "s",
        counting(Script::new()).on("tools/call").error(-1, "called"),
    )])
    .await;
    let params = r#"{"name":"mcp__s__count","arguments":{"to":"many"}}"#;
    let (mut client, _) = house.raw_of("2025-11-25").await;
    let answer = ask(&mut client, "tools/call", params).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("do not fit the tool `count`"), "{text}");

    let mut client = house.stateless();
    let params = json!({ "name": "mcp__s__count", "arguments": { "to": "many" } });
    let answer = client.modern(1, "tools/call", params.clone()).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");

    let (mut client, _) = house.raw_of("2025-06-18").await;
    let answer = ask(&mut client, "tools/call", &params.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn arguments_that_are_there_twice_are_refused() {
    let script = counting(Script::new()).on("tools/call").text_result("made");
    let house = House::of(&[("s", script)]).await;
    let mut client = house.raw().await;
    let twice = r#"{"name":"mcp__s__count","arguments":{"to":1},"arguments":{"to":"many"}}"#;
    let answer = ask(&mut client, "tools/call", twice).await;
    assert!(answer.contains("-32602"), "{answer}");
}

#[tokio::test]
async fn results_that_are_too_large_are_shortened() {
    let options = ViewOptions {
        manager: cocode_client::ManagerOptions {
            output: OutputLimits::with_cap(500),
            ..cocode_client::ManagerOptions::default()
        },
        ..ViewOptions::default()
    };
    let large = "word ".repeat(10_000);
    let script = Script::modern().on("tools/call").text_result(&large);
    let house = House::with(&[("s", script)], options, |_| {}).await;
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let client = house.client(protocol, &Person::willing("Ada")).await;
        let options = RequestOptions::default();
        let called = client
            .call_tool("mcp__s__echo", None, options)
            .await
            .unwrap();
        assert!(called.raw.as_bytes().len() < 5_000);
        assert!(
            called.raw.as_str().contains("This result is shortened"),
            "{}",
            called.raw
        );
    }
}

#[tokio::test]
async fn a_shortened_result_that_should_have_structured_content_is_one_that_strict_clients_take() {
    let directory = tempfile::TempDir::new().unwrap();
    let store = ResultStore::open(ResultStoreOptions::new(directory.path()));
    let options = ViewOptions {
        manager: cocode_client::ManagerOptions {
            output: OutputLimits::with_cap(500),
            results: Some(store.clone()),
            ..cocode_client::ManagerOptions::default()
        },
        ..ViewOptions::default()
    };
    let large = "word ".repeat(10_000);
    let whole = json!({ "content": [{ "type": "text", "text": large }], "structuredContent": {} });
    let tools = json!({ "tools": [{
        "name": "promising", "inputSchema": { "type": "object" }, "outputSchema": { "type": "object" },
    }]});
    let script = Script::new().on("tools/list").result(tools);
    let script = script.on("tools/call").result(whole.clone());
    let house = House::with(&[("s", script)], options, |_| {}).await;
    let mut client = house.raw().await;
    let params = json!({ "name": "mcp__s__promising" });
    let called = result(&mut client, "tools/call", params).await;
    assert_eq!(called["isError"], true);
    assert_eq!(called["structuredContent"], Value::Null);
    // All of it can still be had.
    let text = called.to_string();
    let handle = text
        .split_once("kept as ")
        .unwrap()
        .1
        .split_once('.')
        .unwrap()
        .0;
    let kept = store.read(&handle.parse().unwrap()).unwrap();
    assert_eq!(kept.raw.as_str(), whole.to_string());
}

#[tokio::test]
async fn questions_of_a_tool_reach_the_client_in_every_pair_of_eras() {
    let question = json!({
        "message": "Name?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    });
    let legacy = Script::new()
        .on("tools/call")
        .ask("elicitation/create", question.clone())
        .result(r#"{"content":[],"structuredContent":$answer}"#);
    let modern = Script::modern()
        .on("tools/call")
        .nth(1)
        .result(json!({
            "resultType": "input_required",
            "inputRequests": { "q": { "method": "elicitation/create", "params": question } },
            "requestState": "state",
        }))
        .on("tools/call")
        .result(r#"{"resultType":"complete","content":[],"structuredContent":$params}"#);
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let house = House::of(&[("old", legacy.clone()), ("new", modern.clone())]).await;
        for tool in ["mcp__old__echo", "mcp__new__echo"] {
            let person = Person::willing("Ada");
            let client = house.client(protocol, &person).await;
            let options = RequestOptions::default();
            let called = client.call_tool(tool, None, options).await.unwrap();
            assert!(
                called.raw.as_str().contains(r#""name":"Ada""#),
                "{}",
                called.raw
            );
            assert_eq!(*person.asked.lock().unwrap(), ["Name?"]);
        }
    }
}

#[tokio::test]
async fn log_messages_say_which_server_they_are_of() {
    let message = json!({ "level": "error", "logger": "db", "data": "oh" });
    let script = Script::new()
        .on("tools/call")
        .notify("notifications/message", message)
        .text_result("done");
    let house = House::of(&[("a", script.clone()), ("b", script)]).await;
    for (protocol, level) in [(Protocol::Legacy, None), (Protocol::Modern, Some("debug"))] {
        let person = Person::willing("Ada");
        let client = house.client(protocol, &person).await;
        let meta = level.map(|level| {
            let meta = json!({ "io.modelcontextprotocol/logLevel": level });
            RawJson::of(&meta).unwrap()
        });
        for server in ["a", "b"] {
            let options = RequestOptions {
                meta: meta.clone(),
                ..RequestOptions::default()
            };
            let tool = format!("mcp__{server}__echo");
            client.call_tool(&tool, None, options).await.unwrap();
            person.hears(&format!(r#""logger":"{server}/db""#)).await;
        }
    }
}

/// Wants everybody to be asked.
struct Asking;

impl cocode_gateway::Gate for Asking {
    fn decide(
        &self,
        _server: &cocode_core::ServerName,
        _tool: &str,
        _annotations: cocode_client::Annotations,
    ) -> cocode_core::Verdict {
        cocode_core::Verdict::Ask
    }
}

#[tokio::test]
async fn somebody_is_asked_about_a_call_where_that_is_wanted_unless_it_would_be_refused_anyway() {
    let options = || ViewOptions {
        gate: std::sync::Arc::new(Asking),
        ..ViewOptions::default()
    };
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let script = counting(Script::dual())
            .on("tools/call")
            .text_result("done");
        let house = House::with(&[("s", script)], options(), |_| {}).await;
        let person = Person::willing("Ada");
        let client = house.client(protocol, &person).await;
        assert_eq!(client.tools().await.unwrap().items.len(), 1);
        for (arguments, is_error, n_asked) in
            [(r#"{"to":"x"}"#, true, 0), (r#"{"to":1}"#, false, 1)]
        {
            let arguments = RawJson::parse(arguments).unwrap();
            let options = RequestOptions::default();
            let called = client
                .call_tool("mcp__s__count", Some(&arguments), options)
                .await;
            assert_eq!(called.unwrap().is_error, is_error);
            assert_eq!(person.asked.lock().unwrap().len(), n_asked, "{protocol:?}");
        }
    }
}
