//! Codex.

use std::collections::BTreeMap;

use cocode_config::{Entry, PlaceScope, Seconds, Tool};
use serde_json::json;

use crate::agent::{ADDRESS, Agent, address_entry, program_entry, servers};

#[test]
fn what_it_adds_is_read_as_it_was_meant() {
    let codex = Agent::new(Tool::Codex);
    codex.run(&[
        "mcp",
        "add",
        "files",
        "--env",
        "TOKEN=${API_TOKEN}",
        "--",
        "/bin/false",
        "two words",
    ]);
    let token = ["--bearer-token-env-var", "WEB_TOKEN"];
    codex.run(&[&["mcp", "add", "web", "--url", ADDRESS][..], &token].concat());
    codex.run(&["mcp", "add", "dotted.name", "--", "/bin/false"]);
    let web = Entry {
        bearer_token_env_var: Some("WEB_TOKEN".to_owned()),
        ..address_entry(&[])
    };
    // Codex expands nothing, so what looks like a reference is none.
    let files = program_entry(&["two words"], &[("TOKEN", "$${API_TOKEN}")]);
    let expected = servers([
        ("files", files),
        ("web", web),
        ("dotted.name", program_entry(&[], &[])),
    ]);
    assert_eq!(codex.read(PlaceScope::User), expected);
}

#[test]
fn what_is_written_for_it_is_listed_and_kept_by_it() {
    let codex = Agent::new(Tool::Codex);
    codex.run(&["mcp", "add", "own", "--", "/bin/false"]);
    let files = Entry {
        env_vars: vec!["PASSED".to_owned()],
        cwd: Some("/srv".to_owned()),
        enabled: Some(false),
        startup_timeout_sec: Some(Seconds(2.5)),
        tool_timeout_sec: Some(Seconds(30.0)),
        ..program_entry(
            &["a", "b c"],
            &[("ROOT", "${literally}".replace('$', "$$").as_str())],
        )
    };
    let web = Entry {
        bearer_token_env_var: Some("WEB_TOKEN".to_owned()),
        env_http_headers: BTreeMap::from([("X-Key".to_owned(), "KEY".to_owned())]),
        ..address_entry(&[("X-Kind", "plain")])
    };
    let written = servers([("files", files), ("web server", web)]);
    codex.write(PlaceScope::User, &written);
    codex.write(
        PlaceScope::User,
        &servers([("gone", program_entry(&[], &[]))]),
    );
    codex.remove(PlaceScope::User, "gone");
    codex.run(&["mcp", "add", "later", "--", "/bin/false"]);
    let kept = codex.read(PlaceScope::User);
    for (name, entry) in &written {
        assert_eq!(kept.get(name), Some(entry));
    }

    let listed = codex.json(&["mcp", "list", "--json"]);
    let listed: BTreeMap<_, _> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|server| (server["name"].as_str().expect("a name"), server))
        .collect();
    let names: Vec<_> = listed.keys().copied().collect();
    assert_eq!(names, ["files", "later", "own", "web server"]);
    let files = listed["files"];
    assert_eq!(files["enabled"], json!(false));
    assert_eq!(files["startup_timeout_sec"], json!(2.5));
    assert_eq!(files["tool_timeout_sec"], json!(30.0));
    let program = json!({
        "type": "stdio",
        "command": "/bin/false",
        "args": ["a", "b c"],
        "env": { "ROOT": "${literally}" },
        "env_vars": ["PASSED"],
        "cwd": "/srv",
    });
    assert_eq!(files["transport"], program);
    let web = &listed["web server"]["transport"];
    assert_eq!(web["url"], json!(ADDRESS));
    assert_eq!(web["bearer_token_env_var"], json!("WEB_TOKEN"));
    assert_eq!(web["http_headers"], json!({ "X-Kind": "plain" }));
    assert_eq!(web["env_http_headers"], json!({ "X-Key": "KEY" }));
}
