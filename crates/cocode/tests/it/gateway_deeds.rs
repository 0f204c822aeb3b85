//! What is done at a gateway: counted, limited and written down whoever does it, and nothing of it tells
//! what one may not know.

use std::collections::BTreeMap;

use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::home::Home;
use crate::http::{Answer, ByHand, ask};
use crate::status::entry;

/// A server with two tools that has words of its own for every call.
fn talkative() -> StdioServer {
    let tools =
        ["echo", "secret"].map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
    Script::new()
        .on("tools/list")
        .result(json!({ "tools": tools }))
        .on("tools/call")
        .error(-32000, "who knows")
        .stdio()
}

struct Place {
    home: Home,
    gateway: Running,
    root: String,
    others: BTreeMap<&'static str, String>,
}

impl Place {
    /// A gateway with one server, `s`, whose administrator is `root`.
    fn new(server: &StdioServer, entry_more: &str, config: &str) -> Self {
        let home = Home::new();
        home.user_file("mcp.toml", &format!("{}{entry_more}", entry("s", server)));
        home.user_file("config.toml", config);
        let token = |words: &[&str]| {
            let made = home.run(["gateway", "token", "add"].iter().chain(words));
            made.with_code(0).stdout.trim().to_owned()
        };
        let root = token(&["root", "--admin"]);
        let others = ["bob", "eve"].map(|name| (name, token(&[name])));
        let mut gateway = Running::start(&home, &[]);
        gateway.until_state("s", "ready");
        Self {
            home,
            gateway,
            root,
            others: others.into(),
        }
    }

    /// A client of `s` with a session, or of all servers.
    fn client(&self, name: &str, at: &str) -> ByHand {
        let url = format!("{}{at}", self.gateway.url());
        ByHand::new(&url, Some(&self.others[name])).initialized()
    }

    fn api(&self, method: &str, path: &str, body: &str) -> Answer {
        let url = self.gateway.url().strip_suffix("/mcp").unwrap();
        let token = format!("Bearer {}", self.root);
        let headers = [
            ("Authorization", &*token),
            ("Content-Type", "application/json"),
        ];
        ask(&format!("{url}{path}"), method, &headers, body)
    }

    fn get(&self, path: &str) -> Value {
        self.api("GET", path, "").with_status(200).json()
    }

    /// Who, what and what came of it, the oldest first.
    fn audit(&self) -> Vec<[String; 4]> {
        let told = self.get("/api/v1/audit");
        let entries = told["entries"].as_array().unwrap().iter().rev();
        let entries = entries.filter(|entry| entry["method"] != "audit");
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or("-").to_owned();
        let keys = ["principal", "method", "name", "outcome"];
        entries
            .map(|entry| keys.map(|key| text(entry, key)))
            .collect()
    }
}

fn same(one: &Value, other: &Value, names: [&str; 2]) {
    let one = one.to_string().replace(names[0], "X");
    let other = other.to_string().replace(names[1], "X");
    assert_eq!(one, other);
}

#[test]
fn a_forbidden_tool_is_told_from_none_neither_by_words_nor_by_limits_and_both_are_written_down() {
    let server = talkative();
    let deny = "[gateway.principals.bob]\ndeny = [\"mcp__s__secret\"]\ncalls_per_minute = 2\n\
                [gateway.principals.eve]\ndeny = [\"mcp__s__secret\"]\ncalls_per_minute = 2\n";
    let place = Place::new(&server, "", deny);
    for (at, names) in [
        ("/s", ["secret", "secrit"]),
        ("", ["mcp__s__secret", "mcp__s__secrit"]),
    ] {
        let whose = if at.is_empty() { "bob" } else { "eve" };
        let client = place.client(whose, at);
        let answers = names.map(|name| client.call(name, &json!({})));
        same(&answers[0], &answers[1], names);
        assert_eq!(answers[0]["error"]["code"], -32602, "{answers:?}");
        // Both have counted.
        let third = client.call(names[1], &json!({}));
        let message = third["error"]["message"].as_str().unwrap();
        assert!(message.contains("2 calls per minute"), "{third}");
        let told = place.audit();
        let lines = told.iter().filter(|line| line[0] == whose);
        let lines: Vec<_> = lines.map(|line| [&*line[2], &*line[3]]).collect();
        let absent = names[1];
        assert_eq!(
            lines,
            [["secret", "denied"], [absent, "error"], [absent, "limited"]]
        );
    }
    let n_calls = server.received().count(|message| message.is("tools/call"));
    assert_eq!(n_calls, 0);
    // All of it is to be seen.
    let calls = place.get("/api/v1/calls");
    let calls = calls["calls"].as_array().unwrap().iter();
    let states: Vec<_> = calls.map(|call| call["state"].as_str().unwrap()).collect();
    let expected = ["denied", "error", "denied"];
    assert_eq!(states, [expected, expected].concat());
}

#[test]
fn what_administrators_do_is_theirs_and_limits_say_when_to_come_again() {
    let server = Script::new().stdio();
    let limit = "[gateway.principals.root]\ncalls_per_minute = 1\n";
    let place = Place::new(&server, "", limit);
    let call = |tool: &str| {
        let body = json!({ "tool": tool }).to_string();
        place.api("POST", "/api/v1/servers/s/call", &body)
    };
    call("echo").with_status(200);
    let limited = call("echo").with_status(429);
    let wait = limited.header("retry-after").unwrap().parse::<u64>();
    assert!(
        wait.is_ok_and(|wait| (1..=60).contains(&wait)),
        "{limited:?}"
    );
    // A guess, and somebody who signs in and out.
    let url = place.gateway.url().strip_suffix("/mcp").unwrap();
    let json = [("Content-Type", "application/json")];
    let sign_in = format!("{url}/api/v1/sign-in");
    ask(&sign_in, "POST", &json, r#"{"code":"guess"}"#).with_status(401);
    let made = place.api("POST", "/api/v1/sign-in/code", "{}");
    let code = json!({ "code": made.with_status(201).json()["code"] });
    ask(&sign_in, "POST", &json, &code.to_string()).with_status(200);
    place.api("POST", "/api/v1/sign-out", "{}").with_status(204);
    let lines = place.audit();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| line.each_ref().map(|part| &**part))
        .collect();
    assert_eq!(
        lines,
        [
            ["root", "tools/call", "echo", "ok"],
            ["root", "tools/call", "echo", "limited"],
            ["-", "gateway/sign-in", "-", "error"],
            ["root", "gateway/sign-in/code", "-", "ok"],
            ["operator", "gateway/sign-in", "-", "ok"],
            ["root", "gateway/sign-out", "-", "ok"],
        ]
    );
    let shown = place.home.run(["audit", "show", "--principal", "root"]);
    assert!(shown.with_code(0).stdout.contains("tools/call"));
}

#[test]
fn a_server_is_restarted_and_disconnected_with_the_processes_of_all_principals() {
    let server = Script::new().stdio();
    let place = Place::new(&server, "isolation = \"per-session\"\n", "");
    let clients = ["bob", "eve"].map(|name| place.client(name, "/s"));
    let call = || {
        for client in &clients {
            let called = client.call("echo", &json!({}));
            assert!(called["result"].is_object(), "{called}");
        }
    };
    call();
    let processes = || {
        let metrics = place.api("GET", "/metrics", "").body;
        let mut lines = metrics.lines();
        let number = lines.find_map(|line| line.strip_prefix("cocode_processes "));
        number.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(processes(), 3);
    let n_ends = || server.ends().all().len();
    let switch = |how: &str| {
        let path = format!("/api/v1/servers/s/{how}");
        place.api("POST", &path, "{}").with_status(200).json()
    };
    assert_eq!(n_ends(), 0);
    assert_eq!(switch("restart")["state"], "ready");
    while n_ends() < 3 {}
    call();
    assert_eq!(processes(), 3);
    assert_eq!(switch("disconnect")["state"], "stopped");
    while n_ends() < 6 {}
    assert_eq!(processes(), 0);
    call();
    assert!(processes() >= 2);
}

#[test]
fn unknown_method_that_is_passed_to_a_server_is_in_the_audit_log() {
    let server = Script::new()
        .on("vendor/run")
        .result(json!({ "done": true }))
        .stdio();
    let place = Place::new(&server, "", "");
    let client = place.client("bob", "/s");
    let answer = client.request("vendor/run", &json!({ "program": "rm" }));
    assert_eq!(answer.with_status(200).json()["result"]["done"], true);
    client.request("vendor/none", &json!({})).with_status(200);
    client.request("tools/list", &json!({})).with_status(200);
    let lines = place.audit();
    let lines: Vec<_> = lines.iter().filter(|line| line[0] == "bob").collect();
    assert_eq!(
        lines,
        [
            &["bob", "vendor/run", "-", "ok"],
            &["bob", "vendor/none", "-", "error"],
        ]
    );
}
