//! What is passed on unchanged, and what belongs to a request on its way.

use std::sync::{Arc, Mutex};

use cocode_client::{Protocol, RawJson, RequestOptions};
use cocode_testkit::{Gate, Script};

use crate::support::{Person, Rig, Server, call, text_of};

/// Results that a decoder would spoil.
const ODD: [&str; 5] = [
    r#"{"content":[],"z":1,"a":2,"unknown":{"deep":[null,true]}}"#,
    r#"{"content":[],"big":123456789012345678901234567890,"float":1.10,"exp":1E+400,"neg":-0.0}"#,
    r#"{ "content" : [ { "type":"text" , "text":"\u00e9\/ é \ud83d\ude00" } ] , "isError":false }"#,
    r#"{"content":[{"type":"hologram","data":"AAECAwQ=","x":null}],"structuredContent":null}"#,
    r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],"_meta":{"a/b":{}}}"#,
];

#[tokio::test]
async fn odd_results_arrive_byte_for_byte() {
    for result in ODD {
        for server in Server::both(&Script::new().on("tools/call").result(result)) {
            let rig = Rig::new(server).await;
            let mut client = rig.raw();
            let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
            client.send(hello).await;
            client.line().await;
            let request =
                r#"{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"name":"echo"}}"#;
            client.send(request).await;
            let expected = format!(r#"{{"jsonrpc":"2.0","id":"é","result":{result}}}"#);
            assert_eq!(client.line().await, expected);
        }
    }
}

#[tokio::test]
async fn ten_mebibytes_arrive_whole_both_ways() {
    let text = "x\\n\\u00e9".repeat(10 * 1024 * 1024 / 9);
    let arguments = RawJson::parse(format!(r#"{{"text":"{text}"}}"#)).unwrap();
    let expected = format!(r#"{{"content":[],"structuredContent":{arguments}}}"#);
    let script = Script::new().on("tools/call");
    let script = script.result(r#"{"content":[],"structuredContent":$arguments}"#);
    for server in Server::both(&script) {
        let rig = Rig::new(server).await;
        let session = rig.client(Protocol::Legacy, &Person::willing("Ada")).await;
        let options = RequestOptions::default();
        let result = session.call_tool("echo", Some(&arguments), options).await;
        assert!(result.unwrap().raw.as_str() == expected);
    }
}

#[tokio::test]
async fn progress_keeps_its_order_and_comes_before_the_result() {
    let script = |script: Script| {
        let script = script.on("tools/call");
        let script = (1..=20).fold(script, |script, step| script.progress(step, 20));
        script.text_result("done")
    };
    for client in [Protocol::Legacy, Protocol::Modern] {
        for script in [script(Script::new()), script(Script::modern())] {
            for server in Server::both(&script) {
                let rig = Rig::new(server).await;
                let session = rig.client(client, &Person::willing("Ada")).await;
                let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
                let seeing = Arc::clone(&seen);
                let options = RequestOptions {
                    on_progress: Some(Arc::new(move |progress| {
                        seeing.lock().unwrap().push(progress.progress);
                    })),
                    ..RequestOptions::default()
                };
                let result = session.call_tool("echo", None, options).await.unwrap();
                assert_eq!(text_of(&result), "done");
                let expected: Vec<f64> = (1..=20).map(f64::from).collect();
                assert_eq!(*seen.lock().unwrap(), expected);
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_given_up_at_the_server() {
    let gate = Gate::new();
    for client in [Protocol::Legacy, Protocol::Modern] {
        let script = Script::new()
            .on("tools/call")
            .hold(&gate)
            .text_result("late");
        let server = script.stdio();
        let received = server.received().clone();
        let rig = Rig::new(Server::Stdio(server)).await;
        let session = rig.client(client, &Person::willing("Ada")).await;
        {
            let calling = call(&session);
            tokio::select! {
                _ = calling => panic!("nobody answers"),
                _ = received.wait_for(|message| message.is("tools/call")) => {}
            }
        }
        received
            .wait_for(|message| message.is("notifications/cancelled"))
            .await;
    }
}

#[tokio::test]
async fn what_a_server_refuses_is_refused_in_its_words() {
    let refusal = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-31999,"message":"no\nway","data":{"n":1.10}}}"#;
    for server in Server::both(&Script::new().on("tools/call").line(refusal)) {
        let rig = Rig::new(server).await;
        let session = rig.client(Protocol::Legacy, &Person::willing("Ada")).await;
        let error = call(&session).await.unwrap_err();
        let cocode_client::RequestError::Rpc { error, .. } = error else {
            panic!("an answer, not {error:?}");
        };
        assert_eq!((error.code, error.message.as_str()), (-31999, "no\nway"));
        assert_eq!(
            error.data.as_ref().map(RawJson::as_str),
            Some(r#"{"n":1.10}"#)
        );
    }
}

#[tokio::test]
async fn versions_are_negotiated_with_each_client_and_never_echoed() {
    let rig = Rig::new(Server::Stdio(Script::new().stdio())).await;
    for (asked, expected) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let mut client = rig.raw();
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{asked}","capabilities":{{}}}}}}"#
        );
        client.send(&hello).await;
        let answer = client.json().await;
        assert_eq!(answer["result"]["protocolVersion"], expected, "{answer}");
    }
}

#[tokio::test]
async fn a_subscription_ends_in_order_when_the_gateway_does() {
    let rig = Rig::new(Server::Stdio(Script::new().stdio())).await;
    for endpoint in [rig.endpoint(), rig.view.all()] {
        let mut client = rig.raw_at(endpoint);
        let params = serde_json::json!({ "notifications": { "toolsListChanged": true } });
        let acknowledged = client.modern(7, "subscriptions/listen", params).await;
        let method = "notifications/subscriptions/acknowledged";
        assert_eq!(acknowledged["method"], method, "{acknowledged}");
        rig.gateway.begin_end();
        let cancelled = client.json().await;
        assert_eq!(
            cancelled["method"], "notifications/cancelled",
            "{cancelled}"
        );
        assert_eq!(cancelled["params"]["requestId"], 7, "{cancelled}");
        let end = client.json().await;
        assert_eq!(end["id"], 7, "{end}");
        let meta = &end["result"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 7, "{end}");
    }
}

#[tokio::test]
async fn what_we_subscribed_to_is_acknowledged_to_us_alone() {
    let gate = Gate::new();
    let script = Script::modern().on("subscriptions/listen").hold(&gate);
    let script = script
        .as_usual()
        .notify("notifications/tools/list_changed", "{}");
    let rig = Rig::new(Server::Stdio(script.stdio())).await;
    let mut client = rig.raw();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    client.send(hello).await;
    assert_eq!(client.json().await["id"], 0);
    gate.open();
    let heard = client.json().await;
    assert_eq!(heard["method"], "notifications/tools/list_changed");
}
