//! Requests with members that some servers take for those that decide: nobody gets past a rule, or into
//! the log as somebody else, by writing `Name` beside `name`.

use std::sync::Arc;

use cocode_client::Protocol;
use cocode_gateway::ViewOptions;
use cocode_testkit::{Message, Script};
use serde_json::{Value, json};

use crate::merged::house::{House, ask, with_tools};
use crate::support::Server;
use crate::watched::{BOTH, Hiding, Ledger, request, watched};

/// A server one of whose tools may not be used, and who writes down what is done.
async fn house() -> (House, Arc<Ledger>) {
    let (options, ledger) = watched(ViewOptions {
        gate: Arc::new(Hiding),
        ..ViewOptions::default()
    });
    let script = with_tools(Script::new(), &["echo", "hidden"]);
    let house = House::with(&[("s", script)], options, |_| {}).await;
    request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
    request(&house, "", Protocol::Legacy, "prompts/list", json!({})).await;
    (house, ledger)
}

/// What the server has heard, once it has heard of a call that may pass.
async fn heard(house: &House) -> Vec<Message> {
    let params = json!({ "name": "echo", "arguments": { "last": true } });
    request(house, "s", Protocol::Legacy, "tools/call", params).await;
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    server.wait_for(is_last).await;
    server.received().all()
}

/// How much of that is about something, the call that may pass included.
async fn n_heard(house: &House) -> usize {
    let heard = heard(house).await;
    heard.iter().filter(|one| is_about_something(one)).count()
}

fn is_last(message: &Message) -> bool {
    message.params()["arguments"]["last"] == true
}

fn is_about_something(message: &Message) -> bool {
    let method = message.method().unwrap_or_default();
    let area = method.split_once('/').map(|(area, _)| area);
    !method.ends_with("list") && !matches!(area, None | Some("notifications" | "server"))
}

/// Requests that can be read in two ways, by the names that a client sees.
fn two_faced(shown: impl Fn(&str) -> String, uri: &str, task: &str) -> Vec<(&'static str, Value)> {
    let echo = shown("echo");
    let prompt = json!({ "type": "ref/prompt", "name": shown("greet") });
    let mut other = prompt.clone();
    other["Name"] = json!("hidden");
    let mut both = prompt.clone();
    both["uri"] = json!("scripted://hello");
    let argument = json!({ "name": "a", "value": "b" });
    vec![
        ("tools/call", json!({ "name": echo, "Name": "hidden" })),
        ("tools/call", json!({ "name": echo, "NAME": "hidden" })),
        ("tools/call", json!({ "name": echo, "name\0": "hidden" })),
        ("tools/call", json!({ "name": echo, "na\0me": "hidden" })),
        ("tools/call", json!({ "name": echo, "Arguments": {} })),
        ("tools/call", json!({ "name": echo, "ta\u{17f}k": {} })),
        ("tools/call", json!({ "name": echo, "tas\u{212a}": {} })),
        ("tools/call", json!({ "name": echo, "RequestState": "x" })),
        ("tools/call", json!({ "Name": "hidden" })),
        (
            "prompts/get",
            json!({ "name": shown("greet"), "nAme": "hidden" }),
        ),
        ("resources/read", json!({ "uri": uri, "URI": "other:x" })),
        ("resources/read", json!({ "Uri": "other:x" })),
        (
            "completion/complete",
            json!({ "ref": prompt, "Ref": other, "argument": argument }),
        ),
        (
            "completion/complete",
            json!({ "ref": other, "argument": argument }),
        ),
        (
            "completion/complete",
            json!({ "ref": both, "argument": argument }),
        ),
        ("tasks/get", json!({ "taskId": task, "TaskId": "8" })),
        (
            "tasks/cancel",
            json!({ "taskId": task, "tas\u{212a}Id": "8" }),
        ),
        ("tools/list", json!({ "_Meta": { "progressToken": 1 } })),
        ("vendor/anything", json!({ "_meta\0": {} })),
    ]
}

#[tokio::test]
async fn a_member_that_servers_may_take_for_another_is_passed_on_to_none() {
    let (house, _ledger) = house().await;
    for era in BOTH {
        let merged = two_faced(
            |name| format!("mcp__s__{name}"),
            "cocode://s/scripted://hello",
            "s:7",
        );
        let single = two_faced(str::to_owned, "scripted://hello", "7");
        for (at, requests) in [("", merged), ("s", single)] {
            for (method, params) in requests {
                let told = params.to_string();
                let answer = request(&house, at, era, method, params).await;
                assert_eq!(answer["error"]["code"], -32602, "{method} {told} {answer}");
                let what = answer["error"]["message"].as_str().unwrap();
                let is_said = what.contains("may take for") || what.contains("names both");
                assert!(is_said, "{method} {told} {what}");
            }
        }
    }
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        for at in ["", "s"] {
            let params = json!({ "uri": "scripted://hello", "Uri": "other:x" });
            let answer = request(&house, at, Protocol::Legacy, method, params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
    let heard = heard(&house).await;
    let heard: Vec<_> = heard.iter().filter(|one| is_about_something(one)).collect();
    assert!(heard.iter().all(|one| is_last(one)), "{heard:?}");
}

#[tokio::test]
async fn nor_is_what_says_how_a_request_is_made() {
    let (house, _ledger) = house().await;
    let mut session = house.raw_at(house.view.server("s").unwrap()).await;
    let mut stateless = house.stateless_at(house.view.server("s").unwrap());
    for (key, value) in [
        ("ProgressToken", json!(1)),
        ("progressToken\0", json!(1)),
        (
            "io.modelcontextprotocol/ClientCapabilities",
            json!({ "sampling": {} }),
        ),
        (
            "io.modelcontextprotocol/protocolVer\u{17f}ion",
            json!("2025-11-25"),
        ),
    ] {
        let params = json!({ "name": "echo", "_meta": { key: value } }).to_string();
        let answer = ask(&mut session, "tools/call", &params).await;
        assert!(answer.contains("`_meta` has a member"), "{answer}");
        let params = json!({ "name": "echo" });
        let answer = stateless.modern_with(1, "tools/call", params, json!({ key: value }));
        assert_eq!(answer.await["error"]["code"], -32602);
    }
    assert_eq!(n_heard(&house).await, 1);
}

#[tokio::test]
async fn what_is_there_twice_or_is_no_object_is_refused_wherever_it_is_read() {
    let (house, ledger) = house().await;
    for at in [house.view.all(), house.view.server("s").unwrap()] {
        let mut client = house.raw_at(at).await;
        for (method, params) in [
            ("tools/call", r#"{"name":"echo","name":"hidden"}"#),
            ("tools/call", r#"{"name":"echo","n\u0061me":"hidden"}"#),
            (
                "tools/call",
                r#"{"name":"echo","arguments":{},"arguments":{"a":1}}"#,
            ),
            (
                "prompts/get",
                r#"{"name":"greet","arguments":{},"arguments":{"a":1}}"#,
            ),
            ("resources/read", r#"{"uri":"a:","uri":"b:"}"#),
            ("resources/read", r#"{"uri":"a:","\ud800":1}"#),
            ("resources/read", r#"["a:"]"#),
            ("tasks/cancel", r#"{"taskId":"7","taskId":"8"}"#),
        ] {
            ledger.take();
            let answer = ask(&mut client, method, params).await;
            assert!(answer.contains("-32602"), "{method} {params} {answer}");
            let written = ledger.take();
            assert_eq!(written[1..], ["error -32602"], "{written:?}");
            assert!(written[0].starts_with(&format!("ann raw {method} - ")));
        }
    }
    assert_eq!(n_heard(&house).await, 1);
}

#[tokio::test]
async fn who_tries_it_is_written_down() {
    let (house, ledger) = house().await;
    for era in BOTH {
        for (at, echo) in [("", "mcp__s__echo"), ("s", "echo")] {
            let params = json!({ "name": echo, "Name": "hidden" });
            request(&house, at, era, "tools/call", params).await;
            let begun = format!("ann raw tools/call - {echo} -");
            assert_eq!(ledger.take(), [begun, "error -32602".to_owned()]);
        }
    }
}

#[tokio::test]
async fn what_stands_beside_the_parameters_reaches_no_server() {
    let (house, _ledger) = house().await;
    let mut client = house.raw_at(house.view.server("s").unwrap()).await;
    let others = r#""Method":"tools/call","Params":{"name":"hidden"},"method\u0000":"x","ID":9"#;
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"prompts/list","params":{{"mine":1}},{others}}}"#
        ))
        .await;
    assert!(client.json().await["result"].is_object());
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    let passed = server.wait_for(move |one| one.params()["mine"] == 1);
    let passed = passed.await.json();
    let keys = passed.as_object().unwrap().keys();
    let is_known = |key: &String| matches!(key.as_str(), "jsonrpc" | "id" | "method" | "params");
    assert!(keys.clone().all(is_known), "{passed}");
}
