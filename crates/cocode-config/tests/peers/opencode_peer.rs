//! `OpenCode`.

use cocode_config::{Entry, PlaceScope, Seconds, Tool};
use serde_json::json;

use crate::agent::{ADDRESS, Agent, address_entry, program_entry, servers};

#[test]
fn what_it_adds_is_read_as_it_was_meant() {
    let opencode = Agent::new(Tool::OpenCode);
    opencode.run(&[
        "mcp",
        "add",
        "files",
        "--env",
        "TOKEN={env:API_TOKEN}",
        "--env",
        "ROOT=/srv",
        "--",
        "/bin/false",
        "two words",
    ]);
    let header = ["--header", "Authorization=Bearer {env:TOKEN}"];
    opencode.run(&[&["mcp", "add", "web", "--url", ADDRESS][..], &header].concat());
    let expected = servers([
        (
            "files",
            program_entry(
                &["two words"],
                &[("TOKEN", "${API_TOKEN}"), ("ROOT", "/srv")],
            ),
        ),
        (
            "web",
            address_entry(&[("Authorization", "Bearer ${TOKEN}")]),
        ),
    ]);
    assert_eq!(opencode.read(PlaceScope::User), expected);
}

#[test]
fn what_is_written_for_it_is_listed_and_kept_by_it() {
    let opencode = Agent::new(Tool::OpenCode);
    for scope in [PlaceScope::User, PlaceScope::Project] {
        let named = |name: &str| format!("{name}-{}", scope.as_str());
        let (files, web) = (named("files"), named("web"));
        let off = Entry {
            enabled: Some(false),
            tool_timeout_sec: Some(Seconds(5.0)),
            cwd: Some("/srv".to_owned()),
            ..program_entry(&["a", "b c"], &[("ROOT", "/srv")])
        };
        let on = address_entry(&[("X-Key", "${KEY}")]);
        opencode.write(scope, &servers([(&files, off), (&web, on)]));
        opencode.write(scope, &servers([("gone", program_entry(&[], &[]))]));
        opencode.remove(scope, "gone");
    }
    // A server of its own beside ours leaves ours alone.
    let before = opencode.read(PlaceScope::User);
    opencode.run(&["mcp", "add", "own", "--url", ADDRESS]);
    let after = opencode.read(PlaceScope::User);
    for (name, entry) in &before {
        assert_eq!(after.get(name), Some(entry));
    }
    assert_eq!(after.len(), before.len() + 1);

    let listed = opencode.run(&["mcp", "list"]);
    assert!(listed.contains("5 server(s)"), "{listed}");
    let shown = opencode.json(&["debug", "config"]);
    for scope in ["user", "project"] {
        for name in ["files", "web"] {
            let name = format!("{name}-{scope}");
            assert!(listed.contains(&name), "{name} in {listed}");
        }
        let mut files = shown["mcp"][format!("files-{scope}")].clone();
        // It shows no values of variables.
        files["environment"]["ROOT"] = json!("/srv");
        let expected = json!({
            "type": "local",
            "command": ["/bin/false", "a", "b c"],
            "environment": { "ROOT": "/srv" },
            "cwd": "/srv",
            "enabled": false,
            "timeout": 5000,
        });
        assert_eq!(files, expected);
        let web = &shown["mcp"][format!("web-{scope}")];
        assert_eq!(web["url"], json!(ADDRESS));
        assert!(web["headers"].get("X-Key").is_some(), "{web}");
    }
}
