//! A gateway that somebody has started is the daemon of `cocode mcp serve` as well.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use crate::fronts::{Site, wait_while};
use crate::harness::{Finished, received, start};
use crate::interrupting::signal;
use crate::status::entry;

/// Starts a gateway, and gives the address of all servers.
fn gateway(site: &Site) -> (Child, String) {
    let mut command = site.home.command(["gateway", "--listen", ":0", "--json"]);
    let mut child = start(&mut command);
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let first: Value = serde_json::from_str(&line).unwrap();
    let url = first["url"].as_str().unwrap_or_else(|| panic!("{line}"));
    let url = url.to_owned();
    // What nobody reads is lost, which disturbs nobody.
    drop(lines);
    (child, url)
}

#[test]
fn clients_of_the_gateway_and_of_fronts_share_servers() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let (mut child, url) = gateway(&site);
    let called = site
        .home
        .json(&["mcp", "call", "mcp__one__echo", "word=hello", "--url", &url]);
    assert!(called["content"].is_array(), "{called}");
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    assert_eq!(server.runs().all(), [1]);
    let status = site.status();
    assert_eq!(status["pid"], json!(child.id()), "{status}");
    assert_eq!(status["url"], json!(url), "{status}");
    assert_eq!(status["servers"].as_array().unwrap().len(), 1, "{status}");
    assert_eq!(status["servers"][0]["fronts"], json!([front.child().id()]));
    // The front outlives it, by a daemon that it starts.
    front.skip_notifications();
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(front.call_or_again(2, "echo"), r#"{"n":2}"#);
    received(&server, 2, "tools/call");
    assert_ne!(site.status()["pid"], status["pid"]);
}

#[test]
fn a_gateway_leaves_fronts_to_the_daemon_that_serves_them() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    let daemon = site.daemon();
    let (mut child, _url) = gateway(&site);
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    assert_eq!(site.daemon(), daemon);
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(front.call(2, "echo"), r#"{"n":2}"#);
}

#[test]
fn who_holds_the_place_of_the_daemon_is_said() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let said = || {
        let mut child = start(&mut site.home.command(["gateway", "--listen", ":0"]));
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        signal(&child, "-TERM");
        child.wait().unwrap();
        line
    };
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    let daemon = site.daemon();
    let line = said();
    let holder = format!("a daemon (process {daemon}) serves the clients");
    assert!(line.contains(&holder), "{line}");
    assert!(line.contains("`cocode mcp daemon stop`"), "{line}");
    front.leave();
    site.home.mcp(&["daemon", "stop"]).with_code(0);
    let (mut child, url) = gateway(&site);
    let line = said();
    let holder = format!("a gateway (process {}, at {url})", child.id());
    assert!(line.contains(&holder), "{line}");
    let run = site.home.mcp(&["daemon", "run"]).with_code(2);
    run.complains(&[&holder]);
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_gateway_ends_when_the_daemon_is_told_to() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let (mut child, _url) = gateway(&site);
    let stopped = site.home.json(&["mcp", "daemon", "stop"]);
    assert_eq!(stopped["stopped"], json!(child.id()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(site.status()["running"], json!(false));
}

#[test]
fn a_gateway_that_ends_keeps_no_front_waiting_and_is_not_disturbed() {
    let gate = Gate::new();
    let script = Script::new().on("tools/call").hold(&gate);
    let server = script.text_result("late, but there").stdio();
    let site = Site::new(&entry("one", &server));
    let (mut child, url) = gateway(&site);
    let url = format!("{url}/one");
    let mut caller = site.home.command(["mcp", "call", "echo", "--url", &url]);
    let caller = start(&mut caller);
    let messages = server.received();
    messages.wait_for_blocking(|message| message.is("tools/call"));
    signal(&child, "-TERM");
    // Its place is free although a request is under way.
    wait_while(|| site.status()["running"] != json!(false));
    let stopped = site.home.mcp(&["daemon", "stop"]).with_code(0);
    assert!(!stopped.stdout.contains("stopped"), "{stopped:?}");
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    assert_ne!(site.status()["pid"], json!(child.id()));
    assert_eq!(child.try_wait().unwrap(), None);
    gate.open();
    let called = Finished::of(caller.wait_with_output().unwrap()).clean();
    assert!(called.contains("late, but there"), "{called}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// cocode as a server of cocode, as it is imported from what other tools know.
fn itself(words: &str) -> String {
    let program = env!("CARGO_BIN_EXE_cocode");
    format!("[mcp_servers.loop]\ncommand = '{program}'\nargs = [{words}]\n")
}

#[test]
fn cocode_does_not_serve_itself() {
    let server = Script::new().stdio();
    for (words, how) in [
        ("'mcp', 'serve'", &["--server", "loop"][..]),
        (
            "'mcp', 'serve', '--standalone'",
            &["--server", "loop", "--standalone"][..],
        ),
    ] {
        let site = Site::new(&(itself(words) + &entry("one", &server)));
        let mut front = site.front(how);
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "agent", "version": "1" } });
        let answer = front.ask(0, "initialize", &params);
        assert_eq!(answer["error"]["data"]["code"], "server-exited", "{answer}");
        let logs = site.home.mcp(&["logs", "loop"]);
        assert!(logs.stdout.contains("is cocode itself"), "{}", logs.stdout);
        // The others are served all the same.
        let mut all = site.front(if how.len() > 2 {
            &["--standalone"]
        } else {
            &[]
        });
        all.open(&json!({}));
        all.skip_notifications();
        assert_eq!(all.call(1, "mcp__one__echo"), r#"{"n":1}"#);
    }
}

#[test]
fn a_gateway_is_no_server_of_its_own() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let (mut child, url) = gateway(&site);
    let added = site.home.mcp(&["add", "--scope", "user", "loop", &url]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let told = || site.status()["servers"].clone();
    wait_while(|| {
        let servers = told();
        let mut servers = servers.as_array().unwrap().iter();
        !servers.any(|server| server["name"] == "loop" && server["state"] == "failed")
    });
    let servers = told().to_string();
    assert!(servers.contains("is this gateway"), "{servers}");
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_fronts_have_done_in_a_gateway_is_written_down() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let settings = "[gateway.audit]\nenabled = true\n[gateway.limits]\ncalls_per_minute = 2\n";
    site.home.user_file("config.toml", settings);
    let (mut child, _url) = gateway(&site);
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    for id in [1, 2] {
        front.call(id, "echo");
    }
    // Limits are for them as well.
    let call = json!({ "name": "echo", "arguments": {} });
    let refused = front.ask(3, "tools/call", &call);
    assert_eq!(
        refused["error"]["data"]["reason"], "limit-reached",
        "{refused}"
    );
    front.leave();
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let shown = site.home.run(["audit", "show", "--json"]).with_code(0);
    let told: Vec<_> = shown
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|entry: &Value| entry["method"] != "audit")
        .map(|entry| ["principal", "server", "name", "outcome"].map(|key| entry[key].clone()))
        .collect();
    let line = |outcome: &str| ["local", "one", "echo", outcome].map(|word| json!(word));
    assert_eq!(
        told,
        [line("ok"), line("ok"), line("limited")],
        "{}",
        shown.stdout
    );
}
