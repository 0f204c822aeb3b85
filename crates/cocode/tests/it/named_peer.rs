//! Configured servers that nobody here wrote, used by their names: one of each era.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::home::Home;

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
