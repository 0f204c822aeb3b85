//! What clients hear of many servers.

use cocode_client::{Protocol, RequestOptions};
use cocode_testkit::Script;
use serde_json::json;

use super::house::{House, ask, result};
use crate::support::{Person, RawClient, Server};

const UPDATED: &str = "notifications/resources/updated";

/// A server whose tool says that a resource has changed.
fn changing(script: Script) -> Script {
    let script = script.on("resources/subscribe").result(json!({}));
    let script = script
        .on("tools/call")
        .notify(UPDATED, json!({ "uri": "scripted://hello" }));
    script.text_result("done")
}

/// The next message of this method.
async fn told(client: &mut RawClient, method: &str) -> serde_json::Value {
    loop {
        let message = client.json().await;
        if message["method"] == method {
            return message["params"].clone();
        }
    }
}

fn program(house: &House, number: usize) -> &cocode_testkit::StdioServer {
    match &house.servers[number] {
        Server::Stdio(server) => server,
        Server::Http(_) => panic!("a program"),
    }
}

#[tokio::test]
async fn changes_of_resources_are_told_by_the_uris_that_clients_know() {
    let house = House::of(&[
        ("a", changing(Script::new())),
        ("between", Script::new()),
        ("z", changing(Script::new())),
    ])
    .await;
    let mut client = house.raw().await;
    result(&mut client, "resources/list", json!({})).await;
    for (id, asked, tool) in [
        (1, "scripted://hello", "mcp__a__echo"),
        (2, "cocode://z/scripted://hello", "mcp__z__echo"),
    ] {
        result(&mut client, "resources/subscribe", json!({ "uri": asked })).await;
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool } });
        client.send(&call.to_string()).await;
        assert_eq!(told(&mut client, UPDATED).await, json!({ "uri": asked }));
    }
    // Who does not want to hear of it any more does not.
    let asked = json!({ "uri": "scripted://hello" });
    result(&mut client, "resources/unsubscribe", asked).await;
    program(&house, 0)
        .wait_for(|message| message.is("resources/unsubscribe"))
        .await;
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "mcp__a__echo" } });
    client.send(&call.to_string()).await;
    loop {
        let message = client.json().await;
        assert_ne!(message["method"], UPDATED);
        if message["id"] == 3 {
            break;
        }
    }
}

#[tokio::test]
async fn what_nobody_follows_any_more_is_given_up() {
    let house = House::of(&[("a", Script::new())]).await;
    let mut first = house.raw().await;
    let mut second = house.raw().await;
    let asked = json!({ "uri": "scripted://hello" });
    result(&mut first, "resources/subscribe", asked.clone()).await;
    result(&mut second, "resources/subscribe", asked.clone()).await;
    result(&mut second, "resources/unsubscribe", asked).await;
    let server = program(&house, 0);
    assert_eq!(
        server
            .received()
            .count(|message| message.is("resources/unsubscribe")),
        0
    );
    drop(first);
    server
        .wait_for(|message| message.is("resources/unsubscribe"))
        .await;
}

#[tokio::test]
async fn a_subscription_hears_of_all_servers_what_it_asked_for() {
    let extra = json!({ "name": "extra", "inputSchema": { "type": "object" } });
    let growing = |script: Script| {
        let script = script.on("tools/list").nth(2).result(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [extra],
        }));
        let script = script
            .on("tools/call")
            .notify("notifications/tools/list_changed", json!({}))
            .notify(UPDATED, json!({ "uri": "scripted://hello" }));
        script.text_result("done")
    };
    let house = House::of(&[("a", growing(Script::new())), ("b", Script::modern())]).await;
    let mut client = house.stateless();
    let listed = client.modern(1, "resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 2);
    client.modern(1, "tools/list", json!({})).await;
    let wanted = json!({ "notifications": {
        "toolsListChanged": true,
        "resourceSubscriptions": ["scripted://hello", "x://nowhere", "cocode://b/scripted://hello"],
    }});
    let acknowledged = client.modern(2, "subscriptions/listen", wanted).await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"],
        json!({
            "_meta": { "io.modelcontextprotocol/subscriptionId": 2 },
            "notifications": {
                "toolsListChanged": true,
                "resourceSubscriptions": ["scripted://hello", "cocode://b/scripted://hello"],
            },
        })
    );
    let mut caller = house.raw().await;
    let called = ask(&mut caller, "tools/call", r#"{"name":"mcp__a__echo"}"#).await;
    assert!(called.contains("done"), "{called}");
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": 2 });
    assert_eq!(
        told(&mut client, UPDATED).await,
        json!({ "_meta": meta, "uri": "scripted://hello" })
    );
    let changed = told(&mut client, "notifications/tools/list_changed").await;
    assert_eq!(changed, json!({ "_meta": meta }));
    let listed = client.modern(3, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "mcp__a__extra");
}

#[tokio::test]
async fn the_level_of_log_messages_is_set_at_every_server_that_logs() {
    let quiet = Script::new().on("initialize").result(json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "quiet", "version": "1" },
    }));
    let house = House::of(&[
        ("a", Script::new()),
        ("between", Script::new()),
        ("quiet", quiet),
    ])
    .await;
    let mut client = house.raw().await;
    result(&mut client, "tools/list", json!({})).await;
    result(
        &mut client,
        "logging/setLevel",
        json!({ "level": "warning" }),
    )
    .await;
    let server = program(&house, 0);
    let asked = server
        .wait_for(|message| message.is("logging/setLevel"))
        .await;
    assert_eq!(asked.params()["level"], "warning");
    let quiet = program(&house, 2);
    assert_eq!(
        quiet
            .received()
            .count(|message| message.is("logging/setLevel")),
        0
    );
    let answer = ask(&mut client, "logging/setLevel", r#"{"level":"loud"}"#).await;
    assert!(answer.contains("-32602"), "{answer}");
}

#[tokio::test]
async fn log_messages_of_no_request_reach_sessions_that_want_them() {
    let message = |level: &str| json!({ "level": level, "data": "news" });
    let script = Script::new()
        .on("notifications/news")
        .notify("notifications/message", message("info"))
        .notify("notifications/message", message("error"));
    let house = House::of(&[("a", script)]).await;
    let (eager, calm) = (Person::willing("Ada"), Person::willing("Ben"));
    let first = house.client(Protocol::Legacy, &eager).await;
    let second = house.client(Protocol::Legacy, &calm).await;
    let level = |level: &str| cocode_client::RawJson::of(&json!({ "level": level })).unwrap();
    for (client, wanted) in [(&first, "debug"), (&second, "error")] {
        let options = RequestOptions::default();
        client
            .request("logging/setLevel", Some(&level(wanted)), options)
            .await
            .unwrap();
    }
    let telling = house.view.server("a").unwrap();
    let mut telling = house.raw_at(telling).await;
    let news = json!({ "jsonrpc": "2.0", "method": "notifications/news" });
    telling.send(&news.to_string()).await;
    eager
        .hears(r#"{"logger":"a","data":"news","level":"error"}"#)
        .await;
    calm.hears(r#"{"logger":"a","data":"news","level":"error"}"#)
        .await;
    let of = |person: &Person, level: &str| {
        let heard = person.heard.lock().unwrap().clone();
        heard.iter().filter(|heard| heard.contains(level)).count()
    };
    assert_eq!((of(&eager, "info"), of(&calm, "info")), (1, 0));
}
