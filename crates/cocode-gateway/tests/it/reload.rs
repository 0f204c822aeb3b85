//! What becomes of clients when other servers take the place of theirs.

use std::sync::Arc;

use cocode_client::{ServerSpec, StateKind};
use cocode_core::{Isolation, Verdict};
use cocode_gateway::{Gate, ViewOptions};
use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::merged::house::{House, result};
use crate::support::{RawClient, Server};

const UPDATED: &str = "notifications/resources/updated";
const LISTS: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
];

/// A server whose tool says that a resource has changed.
fn changing() -> Script {
    let params = json!({ "uri": "scripted://hello" });
    let script = Script::new().on("tools/call").notify(UPDATED, params);
    script.text_result("done")
}

/// A program, by the name that every server has here.
fn spec(server: &StdioServer) -> ServerSpec {
    let program = server.program().to_str().unwrap();
    ServerSpec::program("a".parse().unwrap(), program, server.args())
}

fn private(server: &StdioServer) -> ServerSpec {
    ServerSpec {
        isolation: Isolation::PerSession,
        ..spec(server)
    }
}

async fn house(server: &StdioServer) -> House {
    let house = House::of(&[]).await;
    house.view.apply([spec(server)]).await;
    house
}

/// A client of the server alone.
async fn client(house: &House) -> RawClient {
    house.raw_at(house.view.server("a").unwrap()).await
}

/// The next messages that are of these methods, each once, in any order.
async fn told(client: &mut RawClient, methods: &[&str]) {
    let mut missing = methods.to_vec();
    while !missing.is_empty() {
        let message = client.json().await;
        missing.retain(|method| message["method"] != *method);
    }
}

async fn all_ended(server: &StdioServer) {
    let n_runs = server.runs().all().len();
    assert!(n_runs > 0, "nothing ran");
    server.ends().wait_until(|ends| ends.len() == n_runs).await;
}

async fn listen(house: &House, notifications: Value) -> RawClient {
    let mut client = house.stateless_at(house.view.server("a").unwrap());
    let params = json!({ "notifications": notifications });
    let acknowledged = client.modern(1, "subscriptions/listen", params).await;
    assert_eq!(acknowledged["params"]["notifications"], notifications);
    client
}

#[tokio::test]
async fn a_session_hears_what_took_the_place_of_its_server() {
    let (first, second) = (Script::new().stdio(), changing().stdio());
    let house = house(&first).await;
    let mut client = client(&house).await;
    let wanted = json!({ "uri": "scripted://hello" });
    result(&mut client, "resources/subscribe", wanted.clone()).await;
    house.view.apply([spec(&second)]).await;
    told(&mut client, &LISTS).await;
    let subscribed = second.wait_for(|message| message.is("resources/subscribe"));
    assert_eq!(subscribed.await.params(), wanted);
    all_ended(&first).await;
    let call =
        json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": { "name": "echo" } });
    client.send(&call.to_string()).await;
    told(&mut client, &[UPDATED]).await;
}

#[tokio::test]
async fn a_session_hears_what_took_the_place_of_its_server_however_late_that_is() {
    let refusing = Script::new().on("initialize").nth(1);
    let refusing = refusing.unauthorized(&[("WWW-Authenticate", "Bearer")]);
    let (first, second) = (Script::new().stdio(), refusing.http());
    let house = house(&first).await;
    let mut client = client(&house).await;
    let wanted = json!({ "uri": "scripted://hello" });
    result(&mut client, "resources/subscribe", wanted.clone()).await;
    let name = "a".parse().unwrap();
    let remote = ServerSpec::remote("a".parse().unwrap(), second.url());
    house.view.apply([remote]).await;
    let manager = house.view.manager(&name).unwrap();
    let mut state = manager.watch_state(&name).unwrap();
    while manager.status()[0].state.kind() != StateKind::NeedsAuth {
        assert!(state.changed().await);
    }
    all_ended(&first).await;
    // Somebody has signed in.
    manager.restart(&name).await.unwrap();
    second
        .wait_for(|message| message.is("resources/subscribe"))
        .await;
    // It is given up as any other.
    result(&mut client, "resources/unsubscribe", wanted).await;
    second
        .wait_for(|message| message.is("resources/unsubscribe"))
        .await;
}

#[tokio::test]
async fn a_session_whose_server_was_away_hears_it_again() {
    let server = changing().stdio();
    let house = house(&server).await;
    let mut client = client(&house).await;
    let wanted = json!({ "uri": "scripted://hello" });
    result(&mut client, "resources/subscribe", wanted).await;
    house.view.apply([]).await;
    all_ended(&server).await;
    house.view.apply([spec(&server)]).await;
    told(&mut client, &LISTS).await;
    server
        .wait_for(|message| message.run == 2 && message.is("resources/subscribe"))
        .await;
    let call =
        json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": { "name": "echo" } });
    client.send(&call.to_string()).await;
    told(&mut client, &[UPDATED]).await;
}

#[tokio::test]
async fn a_subscription_moves_to_what_took_the_place_of_its_server() {
    let (first, second) = (Script::new().stdio(), changing().stdio());
    let house = house(&first).await;
    let wanted = json!({
        "toolsListChanged": true, "resourceSubscriptions": ["scripted://hello"],
    });
    let mut subscriber = listen(&house, wanted).await;
    house.view.apply([spec(&second)]).await;
    let changed = subscriber.json().await;
    assert_eq!(changed["method"], LISTS[0]);
    second
        .wait_for(|message| message.is("resources/subscribe"))
        .await;
    all_ended(&first).await;
    let mut caller = client(&house).await;
    result(&mut caller, "tools/call", json!({ "name": "echo" })).await;
    let updated = subscriber.json().await;
    assert_eq!(updated["params"]["uri"], "scripted://hello", "{updated}");
}

/// The answer to what was listened to.
async fn end(client: &mut RawClient) -> Value {
    loop {
        let message = client.json().await;
        if message["id"] == 1 {
            return message;
        }
    }
}

#[tokio::test]
async fn a_subscription_ends_in_order_with_its_server_or_its_view() {
    for is_view in [false, true] {
        let server = Script::new().stdio();
        let house = house(&server).await;
        let mut one = listen(&house, json!({ "toolsListChanged": true })).await;
        let mut all = house.stateless();
        let params = json!({ "notifications": { "toolsListChanged": true } });
        all.modern(1, "subscriptions/listen", params).await;
        if is_view {
            drop(house.view);
            assert_eq!(end(&mut all).await["result"]["resultType"], "complete");
        } else {
            house.view.apply([]).await;
        }
        let end = end(&mut one).await;
        assert_eq!(end["result"]["resultType"], "complete", "{end}");
        all_ended(&server).await;
    }
}

#[tokio::test]
async fn servers_of_one_client_go_with_the_server_that_they_stand_beside() {
    let (first, second) = (Script::new().stdio(), Script::new().stdio());
    let house = house(&first).await;
    house.view.apply([private(&first)]).await;
    let mut client = client(&house).await;
    let call = json!({ "name": "echo" });
    result(&mut client, "tools/call", call.clone()).await;
    // The shared one and its own.
    first.runs().wait_until(|runs| runs.len() == 2).await;
    house.view.apply([private(&second)]).await;
    all_ended(&first).await;
    result(&mut client, "tools/call", call).await;
    second.runs().wait_until(|runs| runs.len() == 2).await;
    house.view.apply([]).await;
    all_ended(&second).await;
}

#[tokio::test]
async fn who_leaves_a_server_of_its_own_ends_nobody_elses_subscription() {
    let server = Script::new().stdio();
    let house = house(&server).await;
    let mut shared = client(&house).await;
    let wanted = json!({ "uri": "scripted://hello" });
    result(&mut shared, "resources/subscribe", wanted.clone()).await;
    // From now on newcomers get one of their own; this view shares the server with the other one.
    let other = house.view_of([private(&server)]).await;
    let mut own = house.raw_at(other.server("a").unwrap()).await;
    result(&mut own, "resources/subscribe", wanted).await;
    server
        .wait_for(|message| message.run == 2 && message.is("resources/subscribe"))
        .await;
    drop(own);
    server.ends().wait_until(|ends| *ends == [2]).await;
    // Everything has been done by now that was to be done because it left.
    house.gateway.finish().await;
    result(&mut shared, "tools/call", json!({ "name": "echo" })).await;
    server.wait_for(|message| message.is("tools/call")).await;
    let given_up =
        |message: &cocode_testkit::Message| message.run == 1 && message.is("resources/unsubscribe");
    assert_eq!(server.received().count(given_up), 0);
}

#[tokio::test]
async fn a_resource_that_is_wanted_again_at_once_stays_subscribed() {
    let server = Script::new().stdio();
    let house = house(&server).await;
    let mut client = client(&house).await;
    let wanted = json!({ "uri": "scripted://hello" });
    result(&mut client, "resources/subscribe", wanted.clone()).await;
    let lines: Vec<_> = ["unsubscribe", "subscribe"]
        .iter()
        .enumerate()
        .map(|(id, what)| {
            let method = format!("resources/{what}");
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": wanted });
            message.to_string()
        })
        .collect();
    client.send(&lines.join("\n")).await;
    for _ in &lines {
        assert_eq!(client.json().await["result"], json!({}));
    }
    // Everything has been done by now that was to be done because it was given up.
    house.gateway.finish().await;
    result(&mut client, "tools/call", json!({ "name": "echo" })).await;
    server.wait_for(|message| message.is("tools/call")).await;
    let received = server.received().all();
    let mut about = received.iter().filter_map(|message| message.method());
    let last = about.rfind(|method| method.ends_with("subscribe"));
    assert_eq!(last, Some("resources/subscribe"));
}

#[tokio::test]
async fn a_subscription_leaves_out_what_cannot_be_followed() {
    let script = Script::new().on("resources/subscribe").nth(1);
    let server = script.error(-32002, "no such resource").stdio();
    let house = house(&server).await;
    let mut client = house.stateless_at(house.view.server("a").unwrap());
    let params = json!({ "notifications": {
        "resourceSubscriptions": ["x://nowhere", "scripted://hello"],
    }});
    let acknowledged = client.modern(1, "subscriptions/listen", params).await;
    let agreed = json!({ "resourceSubscriptions": ["scripted://hello"] });
    assert_eq!(acknowledged["params"]["notifications"], agreed);
}

/// Hides every tool but `echo`, and that one as soon as it is told to.
struct Closing(watch::Sender<u64>);

impl Gate for Closing {
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.0.subscribe())
    }

    fn decide(
        &self,
        _server: &cocode_core::ServerName,
        tool: &str,
        _annotations: cocode_client::Annotations,
    ) -> Verdict {
        if tool == "echo" && *self.0.borrow() == 0 {
            Verdict::Allow
        } else {
            Verdict::Deny
        }
    }
}

#[tokio::test]
async fn clients_of_one_server_are_told_when_other_tools_may_be_used() {
    let gate = Arc::new(Closing(watch::Sender::new(0)));
    let options = ViewOptions {
        gate: Arc::<Closing>::clone(&gate),
        ..ViewOptions::default()
    };
    let tools = json!({
        "resultType": "complete", "ttlMs": 9, "cacheScope": "public", "tools": [
            { "name": "echo", "inputSchema": { "type": "object" } },
            { "name": "hidden", "inputSchema": { "type": "object" } },
        ],
    });
    let script = Script::modern().on("tools/list").result(tools);
    let house = House::with(&[("a", script)], options, |_| {}).await;
    let mut client = client(&house).await;
    let listed = result(&mut client, "tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1);
    let mut stateless = house.stateless_at(house.view.server("a").unwrap());
    let listed = stateless.modern(2, "tools/list", json!({})).await;
    // It is not for everybody any more.
    assert_eq!(listed["result"]["cacheScope"], "private", "{listed}");
    gate.0.send_modify(|n_changes| *n_changes += 1);
    told(&mut client, &LISTS[..1]).await;
    let listed = result(&mut client, "tools/list", json!({})).await;
    assert_eq!(listed["tools"], json!([]));
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    // A filter of the configuration says so, too.
    let mut filtered = spec(server);
    filtered.tools.disabled = vec!["echo".to_owned()];
    house.view.apply([filtered]).await;
    told(&mut client, &LISTS[..1]).await;
    assert_eq!(server.runs().all().len(), 1, "the server went on");
}
