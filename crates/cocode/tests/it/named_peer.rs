//! Configured servers that nobody here wrote, used by their names: one of each era.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::gateway::Running;
use crate::home::Home;
use crate::http::ByHand;

/// A server that `cargo xtask peers` installed.
fn peer(path: &str) -> PathBuf {
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let program = root.join(path);
    assert!(
        program.is_file(),
        "{path} is missing: run `cargo xtask peers`"
    );
    program
}

#[test]
fn peers_of_both_eras_are_kept_examined_and_called_by_name() {
    let home = Home::new();
    let time = peer("python/bin/mcp-server-time");
    let everything = peer("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let node = peer("npm/node_modules/node/bin/node");
    let words = |name: &str, command: &[&Path]| {
        let mut words = vec!["mcp".into(), "add".into(), name.to_owned(), "--".into()];
        words.extend(command.iter().map(|word| word.to_str().unwrap().to_owned()));
        words
    };
    home.run(words("old", &[&node, &everything])).with_code(0);
    home.run(words("new", &[&time])).with_code(0);
    let listed = home.json(&["mcp", "list", "--status", "--timeout", "60"]);
    let servers = listed["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 2, "{listed}");
    let text = listed.to_string();
    assert!(text.contains("legacy") && text.contains("modern"), "{text}");
    let called = home
        .mcp(&["call", "old.get-sum", "a=2", "b=40"])
        .with_code(0);
    assert_eq!(called.stdout, "The sum of 2 and 40 is 42.\n");
    home.mcp(&["doctor", "new", "--timeout", "60"]).with_code(0);
    home.run(["permissions", "deny", "old.get-*"]).with_code(0);
    let denied = home
        .mcp(&["call", "old", "get-sum", "a=2", "b=40", "--json"])
        .with_code(6);
    assert_eq!(denied.error()["code"], json!("permission-denied"));
}

/// Python ends a line of its standard input at a carriage return, too.
#[test]
fn carriage_returns_in_a_call_are_no_messages_of_their_own() {
    let home = Home::new();
    let time = peer("python/bin/mcp-server-time");
    home.user_file(
        "mcp.toml",
        &format!("[mcp_servers.time]\ncommand = {time:?}\n"),
    );
    home.run(["permissions", "deny", "time.convert_time"])
        .with_code(0);
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["time"]);
    let denied = r#"{"name":"convert_time","arguments":{"source_timezone":"UTC","time":"10:00","target_timezone":"UTC"}}"#;
    let denied = |id: u32| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{denied}}}"#)
    };
    // Whatever id the gateway uses at the server, one of these answers has it.
    let smuggled: Vec<String> = (0..100).map(denied).collect();
    let smuggled = smuggled.join("\r,\r");
    for (url, name) in [
        (gateway.url().to_owned(), "mcp__time__get_current_time"),
        (gateway.server("time"), "get_current_time"),
    ] {
        let client = ByHand::new(&url, None).initialized();
        let arguments = format!("{{\"timezone\":\"UTC\",\"more\":[\r{smuggled}\r]}}");
        let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        let answer = client.send("POST", &body).with_status(200);
        assert!(answer.body.contains("day_of_week"), "{}", answer.body);
        assert!(!answer.body.contains("time_difference"), "{}", answer.body);
    }
}
