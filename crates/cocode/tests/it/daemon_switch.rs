//! Fronts that go on with another daemon: what their clients notice of it, and what not.

use std::process::Child;
use std::thread;

use cocode_testkit::{Gate, Script, StdioServer};
use serde_json::json;

use crate::fronts::{Client, Site, kill, wait_while};
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
    assert!(stopping.wait().unwrap().success());
    assert_eq!(front.call(4, "echo"), r#"{"n":4}"#);
    // An answer may be there before what was asked is written down.
    let n_calls = || server.received().count(|message| message.is("tools/call"));
    wait_while(|| n_calls() < 3);
    assert_eq!(n_calls(), 3, "nothing is repeated");
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

#[test]
fn ten_fronts_that_lose_their_daemon_at_once_share_the_next() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut fronts: Vec<Client> = (0..10).map(|_| site.front(ONE)).collect();
    for front in &mut fronts {
        front.open(&json!({}));
        assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
        front.skip_notifications();
    }
    kill(site.daemon());
    thread::scope(|scope| {
        for front in &mut fronts {
            scope.spawn(|| assert_eq!(front.call_or_again(2, "echo"), r#"{"n":2}"#));
        }
    });
    assert_eq!(site.n_daemons(), 2);
    assert_eq!(server.runs().all(), [1, 2]);
    let status = site.status();
    assert_eq!(status["fronts"].as_array().unwrap().len(), 10, "{status}");
    for front in fronts {
        let (code, told) = front.leave();
        assert_eq!(code, Some(0));
        assert!(told.contains("another one goes on"), "{told}");
    }
}

#[test]
fn a_client_of_all_servers_goes_on_with_the_next_daemon() {
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    let site = Site::new(&format!("{}{}", entry("one", &one), entry("two", &two)));
    let mut front = site.front(&[]);
    front.open(&json!({}));
    front.skip_notifications();
    for (id, tool) in [(1, "mcp__one__echo"), (2, "mcp__two__echo")] {
        assert_eq!(front.call(id, tool), format!(r#"{{"n":{id}}}"#));
    }
    let listed = front.ask(3, "resources/list", &json!({}));
    let resources = listed["result"]["resources"].as_array().unwrap().iter();
    for (id, resource) in (10..).zip(resources) {
        let wanted = json!({"uri": resource["uri"]});
        let subscribed = front.ask(id, "resources/subscribe", &wanted);
        assert!(subscribed["result"].is_object(), "{subscribed}");
    }
    kill(site.daemon());
    for (id, tool) in [(5, "mcp__one__echo"), (6, "mcp__two__echo")] {
        assert_eq!(front.call_or_again(id, tool), format!(r#"{{"n":{id}}}"#));
    }
    for server in [&one, &two] {
        received(server, 2, "resources/subscribe");
        assert_eq!(server.runs().all(), [1, 2]);
    }
    assert_eq!(site.n_daemons(), 2);
    assert_eq!(front.leave().0, Some(0));
}

#[test]
fn a_client_that_lost_its_daemon_goes_on_alone_where_no_other_can_be_had() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let (daemon, socket) = (site.daemon(), socket(&site));
    // Nobody can listen there once more.
    std::fs::remove_file(&socket).unwrap();
    std::fs::create_dir(&socket).unwrap();
    front.skip_notifications();
    kill(daemon);
    assert_eq!(front.call_or_again(1, "echo"), r#"{"n":1}"#);
    received(&server, 2, "tools/call");
    std::fs::remove_dir(&socket).unwrap();
    assert_eq!(site.status()["running"], json!(false));
    let (code, told) = front.leave();
    assert_eq!(code, Some(0));
    let alone = "this client goes on with servers of its own";
    assert!(told.contains(alone), "{told}");
}

fn socket(site: &Site) -> std::path::PathBuf {
    site.status()["socket"].as_str().unwrap().into()
}

#[test]
fn a_script_that_has_said_everything_gets_all_answers_though_its_daemon_is_lost() {
    let gate = Gate::new();
    let held = Script::new().on("tools/call").run(1).hold(&gate);
    let server = held.on("prompts/get").run(1).hold(&gate).stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let daemon = site.daemon();
    front.skip_notifications();
    call(&mut front, 1);
    received(&server, 1, "tools/call");
    front.request(2, "prompts/get", &json!({"name": "greet"}));
    received(&server, 1, "prompts/get");
    front.say_no_more();
    kill(daemon);
    let answer = front.receive();
    assert_eq!(answer["id"], json!(1), "{answer}");
    assert_eq!(answer["error"]["data"]["code"], json!("daemon-lost"));
    let answer = front.receive();
    assert_eq!(answer["id"], json!(2), "{answer}");
    assert!(answer["result"]["messages"].is_array(), "{answer}");
    assert_eq!(front.wait().0, Some(0));
}
