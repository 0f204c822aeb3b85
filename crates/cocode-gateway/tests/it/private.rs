//! Servers that run for one client alone, and what stays between a client and its server.

use cocode_client::Protocol;
use cocode_core::Isolation;
use cocode_gateway::ViewOptions;
use cocode_testkit::{Gate, Message, Script};
use serde_json::{Value, json};

use crate::merged::house::{House, ask, result};
use crate::support::{Person, RawClient, Server, alone, alone_in_session};

async fn private_house(script: Script) -> House {
    House::with(&[("a", script)], ViewOptions::default(), |spec| {
        spec.isolation = Isolation::PerSession;
    })
    .await
}

fn program(house: &House) -> &cocode_testkit::StdioServer {
    match &house.servers[0] {
        Server::Stdio(server) => server,
        Server::Http(_) => panic!("a program"),
    }
}

#[tokio::test]
async fn who_was_there_before_its_server_asked_gets_one_of_its_own() {
    let script = Script::new().on("notifications/initialized");
    let house = House::of(&[("a", script.ask("roots/list", json!({})))]).await;
    let server = program(&house);
    let person = Person::willing("Ada");
    let client = house
        .client_at(house.view.server("a").unwrap(), Protocol::Legacy, &person)
        .await;
    let answered = |run: u32, with: &'static str| {
        move |message: &Message| message.run == run && message.raw.contains(with)
    };
    // Nobody had a request that this could be about.
    server.wait_for(answered(1, r#""roots":[]"#)).await;
    crate::support::call(&client).await.unwrap();
    server.wait_for(answered(2, "file:///Ada")).await;
}

#[tokio::test]
async fn what_runs_for_each_session_is_not_shared_by_the_stateless_era() {
    for endpoint in ["a", ""] {
        let house = private_house(Script::new()).await;
        let at = |house: &House| match endpoint {
            "" => house.view.all(),
            name => house.view.server(name).unwrap(),
        };
        let call = match endpoint {
            "" => json!({ "name": "mcp__a__echo" }),
            _ => json!({ "name": "echo" }),
        };
        let server = program(&house);
        // A connection stands for a session.
        let mut clients = [
            house.stateless_at(at(&house)),
            house.stateless_at(at(&house)),
        ];
        for client in &mut clients {
            for id in [1, 2] {
                let answer = client.modern(id, "tools/call", call.clone()).await;
                assert!(answer["error"].is_null(), "{answer}");
            }
        }
        let runs_of_calls = |all: &[Message]| -> Vec<u32> {
            let calls = all.iter().filter(|message| message.is("tools/call"));
            calls.map(|message| message.run).collect()
        };
        server
            .received()
            .wait_until(|all| runs_of_calls(all).len() == 4)
            .await;
        let runs = runs_of_calls(&server.received().all());
        assert!(runs[0] == runs[1] && runs[2] == runs[3], "{runs:?}");
        assert_ne!(runs[0], runs[2]);
        // Where there is no connection, there is none.
        let methods: &[&str] = match endpoint {
            "" => &["tools/call"],
            _ => &["tools/call", "tools/list", "server/discover"],
        };
        for method in methods {
            let answer = alone(&*at(&house), method, call.clone()).await;
            assert_eq!(answer["error"]["code"], -32022, "{answer}");
            let supported = &answer["error"]["data"]["supported"];
            assert_eq!(supported[0], "2025-11-25");
        }
    }
}

#[tokio::test]
async fn nobody_lists_the_tasks_of_others() {
    let script = || {
        let capabilities = json!({ "tools": {}, "tasks": { "list": {}, "cancel": {} } });
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": { "name": "tasks", "version": "1" },
        });
        let script = Script::new().on("initialize").result(hello);
        script.on("tasks/list").result(json!({ "tasks": [] }))
    };
    let shared = House::of(&[("a", script())]).await;
    let (mut client, told) = shared
        .greeted(shared.view.server("a").unwrap(), "2025-11-25")
        .await;
    assert_eq!(told["capabilities"]["tasks"], json!({ "cancel": {} }));
    let answer = ask(&mut client, "tasks/list", "{}").await;
    assert!(answer.contains("-32601"), "{answer}");
    let private = private_house(script()).await;
    let (mut client, told) = private
        .greeted(private.view.server("a").unwrap(), "2025-11-25")
        .await;
    assert_eq!(told["capabilities"]["tasks"]["list"], json!({}));
    let listed = result(&mut client, "tasks/list", json!({})).await;
    assert_eq!(listed, json!({ "tasks": [] }));
}

#[tokio::test]
async fn what_a_client_tells_keeps_its_order_and_is_bounded() {
    let house = House::of(&[("a", Script::new())]).await;
    let server = program(&house);
    let mut client = house.raw_at(house.view.server("a").unwrap()).await;
    let gate = Gate::new();
    server.restart(&Script::new().on("initialize").hold(&gate).as_usual());
    gate.reached().await;
    for n in 0..500 {
        let news =
            json!({ "jsonrpc": "2.0", "method": "notifications/news", "params": { "n": n } });
        client.send(&news.to_string()).await;
    }
    // When this is answered, all of it was read.
    result(&mut client, "ping", json!({})).await;
    gate.open();
    let is_news = |message: &&Message| message.is("notifications/news");
    server
        .received()
        .wait_until(|all| all.iter().filter(is_news).count() >= 60)
        .await;
    result(&mut client, "tools/call", json!({ "name": "echo" })).await;
    server.wait_for(|message| message.is("tools/call")).await;
    let received = server.received().all();
    let numbers = received.iter().filter(is_news);
    let numbers: Vec<u64> = numbers
        .map(|message| message.params()["n"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!(numbers.len() <= 66, "{numbers:?}");
}

async fn send_together(client: &mut RawClient, messages: &[Value]) {
    let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
    client.send(&lines.join("\n")).await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_together_with_it_is_not_made() {
    let house = House::of(&[("a", Script::new())]).await;
    let mut client = house.raw_at(house.view.server("a").unwrap()).await;
    let call =
        json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "name": "echo" } });
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 },
    });
    send_together(&mut client, &[call.clone(), cancel]).await;
    let read = json!({ "uri": "scripted://hello" });
    result(&mut client, "resources/read", read).await;
    let server = program(&house);
    server
        .wait_for(|message| message.is("resources/read"))
        .await;
    assert_eq!(
        server.received().count(|message| message.is("tools/call")),
        0
    );
    // Its id is free again.
    client.send(&call.to_string()).await;
    let answer = client.json().await;
    assert_eq!(answer["id"], 5, "{answer}");
    assert!(answer["error"].is_null(), "{answer}");
}

#[tokio::test]
async fn a_session_that_was_given_up_while_it_was_opened_can_be_opened() {
    let house = House::of(&[("a", Script::new())]).await;
    let mut client = house.stateless_at(house.view.server("a").unwrap());
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "raw", "version": "1" },
    });
    let open = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params });
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    send_together(&mut client, &[open(1), cancel]).await;
    result(&mut client, "ping", json!({})).await;
    // What follows the beginning of a session in the same breath belongs to it.
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    send_together(&mut client, &[open(2), list]).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = client.json().await;
        assert!(answer["result"].is_object(), "{answer}");
        ids.push(answer["id"].as_u64());
    }
    ids.sort_unstable();
    assert_eq!(ids, [Some(2), Some(3)]);
}

#[tokio::test]
async fn what_is_told_about_a_task_is_told_to_whose_it_is() {
    let status = |task: &str| json!({ "taskId": task, "status": "working" });
    let script = Script::new()
        .on("tools/call")
        .result(json!({ "task": status("mine") }))
        .on("notifications/news")
        .notify("notifications/tasks/status", status("of nobody"))
        .notify("notifications/tasks/status", status("mine"))
        .on("resources/read")
        .result(json!({ "contents": [] }));
    let house = House::of(&[("a", script)]).await;
    let endpoint = || house.view.server("a").unwrap();
    let mut owner = house.raw_at(endpoint()).await;
    let mut other = house.raw_at(endpoint()).await;
    let call = json!({ "name": "echo", "task": {} });
    result(&mut owner, "tools/call", call).await;
    let news = json!({ "jsonrpc": "2.0", "method": "notifications/news" });
    other.send(&news.to_string()).await;
    let heard = owner.json().await;
    assert_eq!(heard["params"]["taskId"], "mine", "{heard}");
    let read = json!({
        "jsonrpc": "2.0", "id": 9, "method": "resources/read", "params": { "uri": "x" },
    });
    other.send(&read.to_string()).await;
    let heard = other.json().await;
    assert_eq!(heard["id"], 9, "{heard}");
}

#[tokio::test]
async fn a_session_over_http_takes_no_requests_that_stand_alone() {
    let house = House::of(&[("a", Script::new())]).await;
    let endpoint = house.view.server("a").unwrap();
    let answer = alone_in_session(&*endpoint, "tools/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
}

#[tokio::test]
async fn a_server_that_is_not_there_keeps_nothing_from_others() {
    let gate = Gate::new();
    let mut slow = Script::new();
    // What it offers is asked of one, and the client has another.
    for run in [3, 4] {
        slow = slow.on("initialize").run(run).hold(&gate).as_usual();
    }
    let own = |spec: &mut cocode_client::ServerSpec| spec.isolation = Isolation::PerSession;
    let scripts = [("a", slow), ("b", Script::new())];
    let house = House::with(&scripts, ViewOptions::default(), own).await;
    let Server::Http(other) = &house.servers[1] else {
        panic!("over HTTP");
    };
    let mut client = house.raw().await;
    for tool in ["mcp__a__echo", "mcp__b__echo"] {
        result(&mut client, "tools/call", json!({ "name": tool })).await;
    }
    let server = program(&house);
    server.kill();
    for run in [3, 4] {
        server
            .wait_for(move |message: &Message| message.run == run && message.is("initialize"))
            .await;
    }
    let changed = "notifications/roots/list_changed";
    let news = json!({ "jsonrpc": "2.0", "method": changed });
    client.send(&news.to_string()).await;
    other.wait_for(move |message| message.is(changed)).await;
    gate.open();
    server.wait_for(move |message| message.is(changed)).await;
}

#[tokio::test]
async fn nobody_has_more_servers_of_their_own_than_they_may() {
    let options = ViewOptions {
        max_own_servers: 2,
        ..ViewOptions::default()
    };
    let script = [("a", Script::new())];
    let house = House::with(&script, options, |spec| {
        spec.isolation = Isolation::PerSession;
    })
    .await;
    let call = json!({ "name": "echo" });
    let client = || house.stateless_at(house.view.server("a").unwrap());
    let (mut first, mut second, mut third) = (client(), client(), client());
    for client in [&mut first, &mut second] {
        let answer = client.modern(1, "tools/call", call.clone()).await;
        assert!(answer["error"].is_null(), "{answer}");
    }
    let refused = third.modern(1, "tools/call", call.clone()).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("runs 2 times for you"), "{refused}");
    // Those who have one go on, and whoever leaves makes room.
    let answer = first.modern(2, "tools/call", call.clone()).await;
    assert!(answer["error"].is_null(), "{answer}");
    drop(second);
    for id in 2.. {
        let answer = third.modern(id, "tools/call", call.clone()).await;
        if answer["error"].is_null() {
            break;
        }
        tokio::task::yield_now().await;
    }
}
