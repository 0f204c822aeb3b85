//! All servers at once: `list --status`, and `tools` without a server.

use std::path::PathBuf;
use std::process::Command;

use cocode_testkit::{Gate, Script, StdioServer};
use serde_json::{Value, json};

use crate::harness::{Finished, start};
use crate::home::Home;

/// An entry of a user's file for a scripted server.
pub(crate) fn entry(name: &str, server: &StdioServer) -> String {
    let command = json!(server.program()).to_string();
    let args = json!(server.args()).to_string();
    format!("[mcp_servers.{name}]\ncommand = {command}\nargs = {args}\n")
}

/// A project file whose servers leave a trace if they are ever started, or contact an address.
pub(crate) fn hostile(home: &Home, url: &str) -> PathBuf {
    let trace = home.project().join("trace");
    let program = json!({"command": "/bin/sh", "args": ["-c", "touch \"$0\"", trace]});
    let secret = json!({"command": "true", "env": {"A": format!("cmd:touch {}", trace.display())}});
    let helper = json!({"url": url, "headers_helper": format!("touch {}", trace.display())});
    let servers = json!({"evil": program, "secret": secret, "helper": helper});
    let file = json!({"mcpServers": servers});
    home.project_file(".mcp.json", &file.to_string());
    trace
}

#[track_caller]
fn parsed(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", finished.stdout, finished.stderr))
}

#[track_caller]
fn server<'a>(report: &'a Value, name: &str) -> &'a Value {
    let servers = report["servers"].as_array().unwrap();
    servers.iter().find(|one| one["name"] == name).unwrap()
}

#[test]
fn nothing_of_a_hostile_project_is_run_or_contacted() {
    let home = Home::new();
    let remote = Script::new().http();
    let trace = hostile(&home, &remote.url());
    for (words, code) in [
        (&["list"][..], 0),
        (&["list", "--status"], 0),
        (&["list", "--status", "--json"], 0),
        (&["doctor"], 0),
        (&["doctor", "--offline"], 0),
        (&["doctor", "evil", "secret", "helper"], 6),
        (&["doctor", "helper", "--json"], 6),
        (&["tools"], 0),
        (&["tools", "--json"], 0),
    ] {
        home.mcp(words).with_code(code);
        assert!(!trace.exists(), "{words:?}");
        assert!(remote.connections().all().is_empty(), "{words:?}");
    }
}

#[test]
fn every_server_is_shown_as_it_is() {
    let home = Home::new();
    let good = Script::new().tools(3, 10).stdio();
    let modern = Script::modern().http();
    let closed = Script::new().on_http("POST").unauthorized(&[]).http();
    let broken = Script::new()
        .on("tools/list")
        .error(-32603, "out of paper")
        .stdio();
    hostile(&home, &modern.url());
    let file = [
        entry("good", &good),
        "enabled_tools = ['tool-1']\n".to_owned(),
        entry("broken", &broken),
        format!("[mcp_servers.modern]\nurl = '{}'\n", modern.url()),
        format!("[mcp_servers.closed]\nurl = '{}'\n", closed.url()),
        "[mcp_servers.missing]\ncommand = 'no-such-program-here'\n".to_owned(),
        "[mcp_servers.off]\ncommand = 'true'\nenabled = false\n".to_owned(),
        "[mcp_servers.wrong]\ncommand = '${NO_SUCH_VARIABLE}'\n".to_owned(),
    ];
    home.user_file("mcp.toml", &file.concat());
    let finished = home.mcp(&["list", "--status", "--json"]).with_code(3);
    let report = parsed(&finished);
    let of = |name: &str| server(&report, name)["connection"].clone();
    assert_eq!(of("good")["status"], "connected");
    assert_eq!(of("good")["era"], "legacy");
    assert_eq!(of("good")["tools"], 1);
    assert_eq!(of("good")["hiddenTools"], 2);
    assert_eq!(of("modern")["era"], "modern");
    assert_eq!(of("broken")["status"], "connected");
    assert_eq!(of("broken")["unlisted"][0]["list"], "tools");
    assert_eq!(of("closed")["status"], "needs-auth");
    assert_eq!(of("closed")["error"]["code"], "auth-required");
    assert_eq!(of("missing")["error"]["code"], "spawn-failed");
    for (name, state) in [
        ("evil", "pending"),
        ("off", "disabled"),
        ("wrong", "invalid"),
    ] {
        assert_eq!(of(name), Value::Null, "{name}");
        assert_eq!(server(&report, name)["state"], state);
    }
    let shown = home.mcp(&["list", "--status"]).with_code(3).stdout;
    for part in [
        "1 of 3",
        "needs-auth",
        "tools could not be listed: the server refused `tools/list`: out of paper",
        "program `no-such-program-here` is not in PATH",
        "not approved: `cocode mcp trust evil`",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
}

#[test]
fn missing_credentials_alone_have_a_code_of_their_own() {
    let home = Home::new();
    let closed = Script::new().on_http("POST").unauthorized(&[]).http();
    let good = Script::new().stdio();
    let remote = format!("[mcp_servers.closed]\nurl = '{}'\n", closed.url());
    home.user_file("mcp.toml", &format!("{}{remote}", entry("good", &good)));
    home.mcp(&["list", "--status"]).with_code(4);
    home.mcp(&["list", "--status", "--scope", "project"])
        .with_code(0);
}

#[test]
fn a_server_that_never_answers_has_its_own_deadline() {
    let home = Home::new();
    let slow = Script::new()
        .on("initialize")
        .ignore()
        .on("server/discover")
        .ignore()
        .stdio();
    let good = Script::new().stdio();
    let file = format!("{}{}", entry("good", &good), entry("slow", &slow));
    home.user_file("mcp.toml", &file);
    let words = ["list", "--status", "--timeout", "1", "--json"];
    let report = parsed(&home.mcp(&words).with_code(3));
    assert_eq!(server(&report, "good")["connection"]["status"], "connected");
    let slow = &server(&report, "slow")["connection"];
    assert_eq!(slow["status"], "timed-out");
    assert_eq!(slow["error"]["exit"], 5);
}

#[test]
fn ctrl_c_ends_all_servers() {
    let home = Home::new();
    let gate = Gate::new();
    let held = Script::new()
        .on("tools/list")
        .hold(&gate)
        .as_usual()
        .stdio();
    let other = Script::new().stdio();
    let file = format!("{}{}", entry("held", &held), entry("other", &other));
    home.user_file("mcp.toml", &file);
    let child = start(&mut home.command(["mcp", "list", "--status", "--timeout", "50"]));
    held.received()
        .wait_for_blocking(|message| message.is("tools/list"));
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let finished = Finished::of(child.wait_with_output().unwrap()).with_code(130);
    assert_eq!(finished.stdout, "");
    finished.complains(&["error: interrupted"]);
}

#[test]
fn tools_of_all_servers_are_listed_together() {
    let home = Home::new();
    let one = Script::new().tools(2, 10).stdio();
    let two = Script::new().tools(2, 10).stdio();
    hostile(&home, "http://127.0.0.1:1/mcp");
    let file = [
        entry("one", &one),
        "disabled_tools = ['tool-1']\n".to_owned(),
        entry("two", &two),
        "[mcp_servers.missing]\ncommand = 'no-such-program-here'\n".to_owned(),
    ];
    home.user_file("mcp.toml", &file.concat());
    let finished = home.mcp(&["tools"]).with_code(0);
    let names: Vec<&str> = finished
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names.len(), 3, "{}", finished.stdout);
    assert!(names.contains(&"two.tool-1"), "{names:?}");
    assert!(!names.contains(&"one.tool-1"), "{names:?}");
    finished.complains(&[
        "warning: server `missing`: program `no-such-program-here` is not in PATH",
        "wait for approval: evil, helper, secret",
    ]);
    let report = parsed(&home.mcp(&["tools", "--json"]).with_code(0));
    assert_eq!(server(&report, "one")["tools"].as_array().unwrap().len(), 1);
    assert_eq!(
        server(&report, "two")["tools"][1]["inputSchema"]["type"],
        "object"
    );
    assert_eq!(server(&report, "missing")["error"]["code"], "spawn-failed");
    assert_eq!(
        report["notContacted"][0],
        json!({"name": "evil", "state": "pending"})
    );
}

#[test]
fn tools_fail_only_if_no_server_has_any_answer() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.missing]\ncommand = 'no-such-program-here'\n",
    );
    home.mcp(&["tools"]).with_code(3);
    let finished = home.mcp(&["tools", "--root", "/"]).with_code(2);
    finished.complains(&["`--root` is for one server"]);
}
