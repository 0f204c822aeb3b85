//! Fronts that go on with another daemon: what their clients notice of it, and what not.

use std::process::Child;

use cocode_testkit::{Gate, Script, StdioServer};
use serde_json::json;

use crate::fronts::{Client, Site, wait_while};
use crate::harness::{received, start};
use crate::status::entry;

const ONE: &[&str] = &["--server", "one"];

fn site(server: &StdioServer) -> Site {
    Site::new(&entry("one", server))
}

/// Tells the daemon to end, and comes back when so many fronts know it.
fn begin_to_stop(site: &Site, n_fronts: usize) -> Child {
    let stopping = start(&mut site.home.command(["mcp", "daemon", "stop"]));
    wait_while(|| site.n_logged("a front asks for nothing more") < n_fronts);
    stopping
}

fn call(front: &mut Client, id: u64) {
    let params = json!({"name": "echo", "arguments": {"n": id}});
    front.request(id, "tools/call", &params);
}

#[test]
fn what_is_asked_while_a_daemon_ends_is_answered_by_the_next() {
    let gate = Gate::new();
    let held = Script::new().on("tools/call").run(1).hold(&gate);
    let server = held.as_usual().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    call(&mut front, 1);
    received(&server, 1, "tools/call");
    let mut stopping = begin_to_stop(&site, 1);
    call(&mut front, 2);
    call(&mut front, 3);
    // Nobody is asked what the client does not want any more.
    let params = json!({"requestId": 3});
    front.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    gate.open();
    front.skip_notifications();
    for id in [1, 2] {
        let answer = front.receive();
        assert_eq!(answer["id"], json!(id), "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
    received(&server, 2, "tools/call");
    assert!(stopping.wait().unwrap().success());
    assert_eq!(front.call(4, "echo"), r#"{"n":4}"#);
    let calls = server.received().count(|message| message.is("tools/call"));
    assert_eq!(calls, 3, "nothing is repeated");
}

#[test]
fn what_a_call_asks_while_its_daemon_ends_is_answered_yet() {
    let gate = Gate::new();
    let form = r#"{"message":"Go on?","requestedSchema":{"type":"object","properties":{}}}"#;
    let asking = Script::new().on("tools/call").run(1).hold(&gate);
    let server = asking.ask("elicitation/create", form).as_usual().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({"elicitation": {}}));
    call(&mut front, 1);
    received(&server, 1, "tools/call");
    let mut stopping = begin_to_stop(&site, 1);
    // It waits for the next daemon, and nothing else waits for it.
    call(&mut front, 2);
    gate.open();
    front.skip_notifications();
    let question = front.receive();
    assert_eq!(question["method"], json!("elicitation/create"));
    let said = json!({"action": "accept", "content": {}});
    front.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": said}));
    for id in [1, 2] {
        let answer = front.receive();
        assert_eq!(answer["id"], json!(id), "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert!(stopping.wait().unwrap().success());
}
