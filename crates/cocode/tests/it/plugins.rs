//! Plugins: added with what they bring, pending when they change, started from their own folder.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};

use crate::home::Home;
use crate::terminal::typed_at;

/// A plugin folder beside the project.
fn folder(home: &Home, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = home.project().with_file_name(name);
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn plugins(home: &Home) -> Vec<Value> {
    let listing = home.json(&["plugin", "list"]);
    listing["plugins"].as_array().unwrap().clone()
}

const SERVERS: &str = r#"{"mcpServers": {"tool": {"command": "some-program", "args": ["1"]}}}"#;

#[test]
fn a_plugin_is_not_added_without_anybody_who_approves_it() {
    let home = Home::new();
    let folder = folder(&home, "helper", &[(".mcp.json", SERVERS)]);
    let folder = folder.to_str().unwrap();
    let refused = home.run(["plugin", "add", folder, "--json"]).with_code(6);
    assert_eq!(refused.error()["code"], "pending-trust");
    assert_eq!(plugins(&home), [] as [Value; 0]);
    let added = home.json(&["plugin", "add", folder, "--yes"]);
    assert_eq!(added["name"], "helper");
    assert_eq!(
        added["servers"],
        json!([{"name": "tool", "state": "ready"}])
    );
    let list = fs::read_to_string(home.home().join("plugins.toml")).unwrap();
    let real = fs::canonicalize(folder).unwrap();
    assert_eq!(
        list,
        format!("[[plugins]]\npath = \"{}\"\n", real.display())
    );
    let again = home.run(["plugin", "add", folder, "--yes", "--json"]);
    assert_eq!(again.with_code(2).error()["code"], "already-there");
}

#[test]
fn folders_that_are_no_plugins_are_refused() {
    let home = Home::new();
    let empty = folder(&home, "empty", &[]);
    let bare = folder(&home, "bare", &[("plugin.json", r#"{"name": "bare"}"#)]);
    let broken = folder(&home, "broken", &[(".mcp.json", "{")]);
    let wrong = folder(
        &home,
        "wrong",
        &[(".mcp.json", r#"{"mcpServers": {"a": {"command": 3}}}"#)],
    );
    for folder in [empty, bare, broken, wrong] {
        let folder = folder.to_str().unwrap();
        let refused = home.run(["plugin", "add", folder, "--yes", "--json"]);
        assert_eq!(
            refused.with_code(2).error()["code"],
            "invalid-config",
            "{folder}"
        );
    }
    home.run(["plugin", "add", "not-there", "--yes"])
        .with_code(2);
    assert!(!home.home().join("plugins.toml").exists());
}

#[test]
fn a_changed_plugin_is_pending_again() {
    let home = Home::new();
    let folder = folder(&home, "helper", &[(".mcp.json", SERVERS)]);
    home.run(["plugin", "add", folder.to_str().unwrap(), "--yes"])
        .with_code(0);
    fs::write(folder.join(".mcp.json"), SERVERS.replace('1', "2")).unwrap();
    assert_eq!(plugins(&home)[0]["servers"][0]["state"], "pending");
    home.mcp(&["ping", "tool"]).with_code(6);
    home.mcp(&["trust", "tool", "--yes"]).with_code(0);
    assert_eq!(plugins(&home)[0]["servers"][0]["state"], "ready");
}

#[test]
fn plugins_are_switched_off_and_on_and_removed_with_their_approvals() {
    let home = Home::new();
    let folder = folder(
        &home,
        "helper",
        &[
            (".mcp.json", SERVERS),
            (
                ".claude-plugin/plugin.json",
                r#"{"name": "nice", "version": "1.2"}"#,
            ),
        ],
    );
    home.run(["plugin", "add", folder.to_str().unwrap(), "--yes"])
        .with_code(0);
    let one = plugins(&home).remove(0);
    assert_eq!(
        (&one["name"], &one["version"]),
        (&json!("nice"), &json!("1.2"))
    );
    home.run(["plugin", "disable", "nice"]).clean();
    assert_eq!(plugins(&home)[0]["enabled"], json!(false));
    assert_eq!(home.json(&["mcp", "list"])["servers"], json!([]));
    // By its folder as well as by its name.
    home.run(["plugin", "enable", folder.to_str().unwrap()])
        .clean();
    assert_eq!(plugins(&home)[0]["servers"][0]["state"], "ready");
    let list = home.home().join("plugins.toml");
    let text = fs::read_to_string(&list).unwrap();
    home.run(["plugin", "remove", "nice"]).clean();
    assert_eq!(plugins(&home), [] as [Value; 0]);
    // Who writes it back by hand has not approved it.
    fs::write(&list, text).unwrap();
    assert_eq!(plugins(&home)[0]["servers"][0]["state"], "pending");
    home.run(["plugin", "remove", "unknown"]).with_code(2);
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[test]
fn servers_of_a_plugin_are_started_from_its_folder() {
    let server: StdioServer = Script::new().on("tools/call").text_result("hello").stdio();
    let words = std::iter::once(server.program().display().to_string())
        .chain(server.args().iter().cloned());
    let words: Vec<String> = words.map(|word| quoted(&word)).collect();
    let script = format!(
        "#!/bin/sh\n[ \"$ROOT/run.sh\" = \"$0\" ] || exit 9\n[ \"$1\" = \"$ROOT\" ] || exit 8\nexec {}\n",
        words.join(" ")
    );
    let home = Home::new();
    let servers = r#"{"mcpServers": {"tool": {
        "command": "${CLAUDE_PLUGIN_ROOT}/run.sh",
        "args": ["${COCODE_PLUGIN_ROOT}"],
        "env": {"ROOT": "${COCODE_PLUGIN_ROOT}"}}}}"#;
    let folder = folder(
        &home,
        "helper",
        &[("run.sh", &script), ("plugin.json", servers)],
    );
    let program = folder.join("run.sh");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    home.run(["plugin", "add", folder.to_str().unwrap(), "--yes"])
        .with_code(0);
    let called = home
        .mcp(&["call", "tool", "echo", "--no-check"])
        .with_code(0);
    assert_eq!(called.stdout, "hello\n");
}

#[test]
fn everything_a_plugin_brings_is_shown_before_it_is_added() {
    let home = Home::new();
    let servers = r#"{"mcpServers": {"tool": {
        "command": "node",
        "args": ["--token", "${X}"],
        "env": {"NODE_OPTIONS": "--require evil.js", "A\nB": "x${cmd:touch p}"}}}}"#;
    let folder = folder(&home, "helper", &[(".mcp.json", servers)]);
    let add = || home.command(["plugin", "add", folder.to_str().unwrap()]);
    for typed in ["\u{4}", "\n", "n\n"] {
        let (code, _, seen) = typed_at(add(), typed);
        assert_eq!(code, Some(6), "{seen}");
        for line in [
            r#"    env.NODE_OPTIONS = "--require evil.js""#,
            r#"    env.A\u{a}B = "x${cmd:touch p}""#,
        ] {
            assert!(seen.lines().any(|one| one == line), "{line}\n{seen}");
        }
        assert_eq!(plugins(&home), [] as [Value; 0]);
    }
    let (code, _, seen) = typed_at(add(), "y\n");
    assert_eq!(code, Some(0), "{seen}");
    // By its name, what a plugin brought is taken back anywhere.
    let said = home.json(&["mcp", "trust", "--revoke"]);
    assert_eq!(said["revoked"], json!([]));
    let said = home.json(&["mcp", "trust", "--revoke", "tool"]);
    assert_eq!(said["revoked"][0]["name"], "tool");
    assert_eq!(plugins(&home)[0]["servers"][0]["state"], "pending");
}
