//! Calls through `tool_call`: everything that a call by name can do.

use std::sync::Arc;

use cocode_client::{
    CallResult, ClientCapabilities, ManagerOptions, OutputLimits, Protocol, RawJson,
    RequestOptions, Session,
};
use cocode_core::{ServerName, Verdict};
use cocode_gateway::ViewOptions;
use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use super::house::{House, ask, result};
use super::search::searching;
use crate::support::{Person, Server, alone, text_of};

const BOTH: [Protocol; 2] = [Protocol::Legacy, Protocol::Modern];

/// Calls a tool through ours.
async fn call(client: &Session, tool: &str, options: RequestOptions) -> CallResult {
    let arguments = json!({ "name": tool, "arguments": { "word": "hello" } });
    let arguments = RawJson::of(&arguments).unwrap();
    let called = client.call_tool("tool_call", Some(&arguments), options);
    called.await.unwrap()
}

#[tokio::test]
async fn progress_is_heard_of_in_every_pair_of_eras() {
    for script in [Script::new(), Script::modern()] {
        let script = script.on("tools/call").progress(1, 2).text_result("done");
        let scripts = [("a", script.clone()), ("b", script)];
        let house = House::with(&scripts, searching(), |_| {}).await;
        for protocol in BOTH {
            let client = house.client(protocol, &Person::willing("Ada")).await;
            for tool in ["mcp__a__echo", "mcp__b__echo"] {
                let (told, hear) = std::sync::mpsc::channel();
                let options = RequestOptions {
                    on_progress: Some(Arc::new(move |progress| {
                        told.send(progress.progress).unwrap();
                    })),
                    ..RequestOptions::default()
                };
                assert_eq!(text_of(&call(&client, tool, options).await), "done");
                assert_eq!(hear.iter().collect::<Vec<_>>(), [1.0]);
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_at_its_server() {
    for protocol in BOTH {
        let gate = Gate::new();
        let script = Script::new().on("tools/call").hold(&gate).text_result("x");
        let house = House::with(&[("s", script)], searching(), |_| {}).await;
        let Server::Stdio(server) = &house.servers[0] else {
            panic!("a program");
        };
        let client = house.client(protocol, &Person::willing("Ada")).await;
        let options = RequestOptions::default();
        tokio::select! {
            _ = call(&client, "mcp__s__echo", options) => panic!("nobody answers"),
            _ = server.wait_for(|message| message.is("tools/call")) => {}
        }
        server
            .wait_for(|message| message.is("notifications/cancelled"))
            .await;
    }
}

fn asking() -> [(&'static str, Script); 2] {
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
    [("old", legacy), ("new", modern)]
}

#[tokio::test]
async fn questions_reach_the_client_in_every_pair_of_eras() {
    for protocol in BOTH {
        let house = House::with(&asking(), searching(), |_| {}).await;
        for tool in ["mcp__old__echo", "mcp__new__echo"] {
            let person = Person::willing("Ada");
            let client = house.client(protocol, &person).await;
            let called = call(&client, tool, RequestOptions::default()).await;
            let raw = called.raw.as_str();
            assert!(raw.contains(r#""name":"Ada""#), "{raw}");
            assert_eq!(*person.asked.lock().unwrap(), ["Name?"]);
        }
    }
}

#[tokio::test]
async fn who_comes_back_with_answers_comes_back_to_the_same_call() {
    let house = House::with(&asking(), searching(), |_| {}).await;
    let mut client = house.stateless();
    let params = |word: &str| {
        json!({ "name": "tool_call", "arguments": {
            "name": "mcp__old__echo", "arguments": { "word": word },
        }})
    };
    let asked = client.modern(1, "tools/call", params("a")).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let back = |mut params: Value| {
        params["requestState"] = asked["result"]["requestState"].clone();
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        params["inputResponses"] = json!({ "question-1": answer });
        params
    };
    let other = client.modern(2, "tools/call", back(params("b"))).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let done = client.modern(3, "tools/call", back(params("a"))).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert!(done.to_string().contains("Ada"), "{done}");
}

/// Wants everybody to be asked.
struct Asking;

impl cocode_gateway::Gate for Asking {
    fn decide(
        &self,
        _server: &ServerName,
        _tool: &str,
        _annotations: cocode_client::Annotations,
    ) -> Verdict {
        Verdict::Ask
    }
}

#[tokio::test]
async fn somebody_is_asked_about_the_tool_that_is_meant() {
    for protocol in BOTH {
        let options = ViewOptions {
            gate: Arc::new(Asking),
            ..searching()
        };
        let script = Script::dual().on("tools/call").text_result("done");
        let house = House::with(&[("s", script)], options, |_| {}).await;
        let person = Person::willing("Ada");
        let client = house.client(protocol, &person).await;
        let called = call(&client, "mcp__s__echo", RequestOptions::default()).await;
        assert_eq!(text_of(&called), "done");
        let asked = person.asked.lock().unwrap().clone();
        let expected = "May the tool `echo` of server `s` be called?\n  word: \"hello\"";
        assert_eq!(asked, [expected]);
        // Searching is nothing to be asked about.
        let query = RawJson::parse(r#"{"query":"echo"}"#).unwrap();
        let options = RequestOptions::default();
        let nobody = Person::able("Bob", ClientCapabilities::default());
        let client = house.client(protocol, &nobody).await;
        let found = client.call_tool("tool_search", Some(&query), options).await;
        assert!(!found.unwrap().is_error);
    }
}

#[tokio::test]
async fn everything_but_name_and_arguments_goes_on_as_it_came() {
    let script = Script::new().on("tools/call").echo();
    let house = House::with(&[("s", script)], searching(), |_| {}).await;
    let mut client = house.raw().await;
    let params = r#"{"z": 1.10,"name":"tool_call","arguments":{"arguments":{"n":1E+400,"s":"\u00e9"} , "name":"mcp__s__echo"},"x":[ ]}"#;
    let answer = ask(&mut client, "tools/call", params).await;
    let expected = r#""name":"echo","arguments":{"n":1E+400,"s":"\u00e9"},"z":1.10,"x":[ ]"#;
    assert!(answer.contains(expected), "{answer}");
}

#[tokio::test]
async fn arguments_are_checked_and_mistakes_are_explained_to_the_model() {
    let tools = json!({ "tools": [{ "name": "count", "inputSchema": {
        "type": "object", "properties": { "to": { "type": "integer" } }, "required": ["to"],
    }}]});
    let script = Script::new().on("tools/list").result(tools);
    let script = script.on("tools/call").error(-1, "called");
    let house = House::with(&[("files", script)], searching(), |_| {}).await;
    let mut client = house.raw().await;
    for (arguments, expected) in [
        (
            json!({ "name": "mcp__files__count", "arguments": {} }),
            "do not fit the tool `count`",
        ),
        (
            json!({ "name": "mcp__file__count" }),
            "Did you mean `mcp__files__count`?",
        ),
        (
            json!({ "name": "mcp__file__count" }),
            "`tool_search` finds tools",
        ),
        (
            json!({ "name": "mcp__files__count", "to": 1 }),
            "`to` is no argument of `tool_call`",
        ),
        (
            json!({ "name": "mcp__files__count", "arguments": "{}" }),
            "one object",
        ),
        (json!({ "name": "tool_call" }), "Unknown tool: tool_call"),
        (json!({ "arguments": {} }), "needs the `name`"),
        (json!({ "name": 7 }), "needs the `name`"),
    ] {
        let params = json!({ "name": "tool_call", "arguments": arguments });
        let refused = result(&mut client, "tools/call", params.clone()).await;
        assert_eq!(refused["isError"], true, "{params}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{text}");
    }
    let twice = r#"{"name":"tool_call","arguments":{"name":"mcp__files__count","name":"x"}}"#;
    let refused = ask(&mut client, "tools/call", twice).await;
    assert!(refused.contains("`name` is there twice"), "{refused}");
}

#[tokio::test]
async fn results_are_kept_within_limits() {
    let options = ViewOptions {
        manager: ManagerOptions {
            output: OutputLimits::with_cap(500),
            ..ManagerOptions::default()
        },
        ..searching()
    };
    let long = "word ".repeat(100);
    let tools = (0..20).map(|number| {
        json!({ "name": format!("t{number}"), "description": long, "inputSchema": { "type": "object" } })
    });
    let tools: Vec<_> = tools.collect();
    let script = Script::new()
        .on("tools/list")
        .result(json!({ "tools": tools }));
    let large = "word ".repeat(10_000);
    let script = script.on("tools/call").text_result(&large);
    let house = House::with(&[("s", script)], options, |_| {}).await;
    let mut client = house.raw().await;
    let params = json!({ "name": "tool_call", "arguments": { "name": "mcp__s__t1" } });
    let called = result(&mut client, "tools/call", params).await;
    assert!(
        called.to_string().contains("This result is shortened"),
        "{called}"
    );
    let query = json!({ "query": "word", "limit": 20 });
    let params = json!({ "name": "tool_search", "arguments": query });
    let found = result(&mut client, "tools/call", params).await;
    let content = &found["structuredContent"];
    assert_eq!(content["tools"].as_array().unwrap().len(), 20);
    let message = content["message"].as_str().unwrap();
    assert!(message.contains("by name only"), "{message}");
}

#[tokio::test]
async fn a_task_is_known_by_its_server() {
    let task = r#"{"resultType":"task","taskId":"7","status":"working"}"#;
    let script = Script::modern().on("tools/call").result(task);
    let house = House::with(&[("s", script)], searching(), |_| {}).await;
    let mut client = house.stateless();
    let params = json!({ "name": "tool_call", "arguments": { "name": "mcp__s__echo" } });
    let made = client.modern(1, "tools/call", params).await;
    assert_eq!(made["result"]["taskId"], "s:7", "{made}");
}

#[tokio::test]
async fn arguments_that_travel_as_headers_need_none_through_ours() {
    let tools = json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "tools": [{ "name": "echo", "inputSchema": { "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
        }}}],
    });
    let script = Script::modern().on("tools/list").result(tools);
    let script = script.on("tools/call").text_result("done");
    let house = House::with(&[("s", script)], searching(), |_| {}).await;
    let endpoint = house.view.all();
    alone(&*endpoint, "tools/list", json!({})).await;
    let direct = json!({ "name": "mcp__s__echo", "arguments": { "region": "eu" } });
    let refused = alone(&*endpoint, "tools/call", direct.clone()).await;
    assert!(refused["error"].is_object(), "{refused}");
    let through = json!({ "name": "tool_call", "arguments": direct });
    let called = alone(&*endpoint, "tools/call", through).await;
    assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
}
