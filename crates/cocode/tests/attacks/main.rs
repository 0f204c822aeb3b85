//! Attacks on the sandbox by commands, servers, file tools and planted files, as root and as a user.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests only, which start the program as a user would"
)]

mod files;
mod harness;
#[expect(
    dead_code,
    reason = "shared with the other tests, which use more of it"
)]
#[path = "../it/http.rs"]
mod http;
mod planted;

use std::collections::BTreeMap;

use harness::{
    Identity, RunningGateway, Scene, identities, is_root, model, report, shell, with_model,
};
use serde_json::{Value, json};

/// What an attack is about, and for whom it works without a sandbox.
type Table = BTreeMap<String, (Vec<String>, String)>;

fn table(scene: &Scene) -> Table {
    let payloads = scene.path("payloads.py");
    let text = scene.run("/usr/bin/python3", &[payloads.to_str().unwrap(), "table"]);
    serde_json::from_str(&text).unwrap()
}

/// Runs all attacks on one surface, as everybody, and lists those that succeeded. Those with one of the allowed
/// tags have to succeed where the table says so, which shows that the attacks ran as they should.
fn nothing_else_succeeds(allowed: &[&str], run: impl Fn(&Scene) -> Value) {
    let mut found = Vec::new();
    for identity in identities() {
        let mut scene = Scene::new(identity);
        let report = run(&scene);
        let table = table(&scene);
        let is_allowed = |name: &str| {
            table
                .get(name)
                .is_some_and(|(tags, _)| tags.iter().any(|tag| allowed.contains(&&**tag)))
        };
        assert_eq!(report["count"], table.len(), "{report}");
        let hits = report["hits"].as_object().unwrap();
        for required in [
            "ro workspace_write",
            "net tcp_connect",
            "net udp_send",
            "net unix_stream",
        ] {
            let (tag, name) = required.split_once(' ').unwrap();
            assert_eq!(
                hits.contains_key(name),
                allowed.contains(&tag),
                "{identity:?} {name}: {report}"
            );
        }
        let hits = hits.iter().filter(|(name, _)| !is_allowed(name));
        found.extend(hits.map(|(name, what)| format!("{identity:?}: {name} {what}")));
        let evidence = scene.evidence();
        let sent = evidence.iter().filter(|what| {
            let is_connection = allowed.contains(&"net") && what.starts_with("connected");
            !is_connection && !what.split([' ', '/', '.']).any(&is_allowed)
        });
        found.extend(sent.map(|what| format!("{identity:?}: evidence {what}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

fn exec_report(scene: &Scene, words: &[&str], flags: &str) -> Value {
    let command = scene.attack_command(flags);
    let (output, bodies) = scene.exec(words, vec![shell("c1", &command)]);
    let found = bodies.iter().find_map(report);
    found.unwrap_or_else(|| panic!("{output:?}\n{:?}", bodies.get(1)))
}

#[test]
fn attacks_of_commands_in_read_only_fail() {
    nothing_else_succeeds(&["info"], |scene| {
        exec_report(scene, &["-s", "read-only"], "")
    });
}

#[test]
fn attacks_of_commands_in_read_only_with_network_fail() {
    let words = ["-s", "read-only", "--network"];
    nothing_else_succeeds(&["info", "net"], |scene| exec_report(scene, &words, ""));
}

#[test]
fn attacks_of_commands_in_workspace_write_fail() {
    let words = ["-s", "workspace-write"];
    nothing_else_succeeds(&["info", "ro"], |scene| exec_report(scene, &words, ""));
}

#[test]
fn attacks_of_commands_in_workspace_write_with_network_fail() {
    let words = ["-s", "workspace-write", "--network"];
    nothing_else_succeeds(&["info", "ro", "net"], |scene| {
        exec_report(scene, &words, "")
    });
}

/// The hostile server with this sandbox.
fn server_entry(scene: &Scene, sandbox: &str) -> String {
    let server = scene.path("server.py");
    let command = format!(
        "command = '/usr/bin/python3'\nargs = ['{}']",
        server.display()
    );
    format!("[mcp_servers.hostile]\n{command}\nsandbox = '{sandbox}'\n")
}

/// A call of the hostile server with this sandbox.
fn server_report(scene: &Scene, sandbox: &str) -> Value {
    let entry = server_entry(scene, sandbox);
    scene.config("mcp.toml", &entry);
    let command = format!("command={}", scene.attack_command(""));
    let mut call = scene.cocode(&["mcp", "call", "--json", "hostile", "attack", &command]);
    let output = call
        .env(
            "ANTHROPIC_API_KEY",
            format!("{}of-the-model", harness::MARK),
        )
        .output()
        .unwrap();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
    report(&answer).unwrap_or_else(|| panic!("{output:?}"))
}

#[test]
fn attacks_of_servers_in_read_only_fail() {
    nothing_else_succeeds(&["info", "net"], |scene| server_report(scene, "read-only"));
}

#[test]
fn attacks_of_servers_in_workspace_write_fail() {
    nothing_else_succeeds(&["info", "ro", "net"], |scene| {
        server_report(scene, "workspace-write")
    });
}

#[test]
fn attacks_of_agents_in_the_gateway_fail() {
    nothing_else_succeeds(&["info", "ro"], |scene| {
        let model = model(vec![shell("c1", &scene.attack_command(""))]);
        // Principals write nowhere near what the gateway obeys, so it is started elsewhere.
        let [root, extra, start] = ["ws", "ws/extra", "start"].map(|name| scene.path(name));
        scene.run(
            "mkdir",
            &["-p", extra.to_str().unwrap(), start.to_str().unwrap()],
        );
        let words = [
            "gateway",
            "--agent",
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--root",
        ];
        let mut command = scene.cocode(&words);
        command.arg(root).current_dir(start);
        let gateway = RunningGateway::start(with_model(&mut command, &model));
        let arguments = json!({ "prompt": "Go.", "sandbox": "workspace-write", "approval-policy": "never",
            "config": { "writable_roots": [extra] } });
        let output = gateway.client("cocode").call("cocode", &arguments);
        let found = model.bodies().iter().find_map(report);
        found.unwrap_or_else(|| panic!("{output} {:?}", model.bodies().get(1)))
    });
}

/// Attacks that cannot succeed anywhere would show nothing.
#[test]
fn attacks_succeed_without_the_sandbox() {
    for identity in identities() {
        let mut scene = Scene::new(identity);
        let words = ["-s", "danger-full-access"];
        let report = exec_report(&scene, &words, "control");
        let evidence = scene.evidence();
        let letter = if identity == Identity::Root { 'r' } else { 'u' };
        let table = table(&scene);
        let wanted = table
            .iter()
            .filter(|(_, (_, control))| control.contains(letter));
        let needs_root = ["setuid_program", "setgid_program", "capability_program"];
        let wanted = wanted.filter(|(name, _)| is_root() || !needs_root.contains(&&***name));
        let is_evident = |name: &str| evidence.iter().any(|what| what.ends_with(name));
        let idle =
            wanted.filter(|(name, _)| report["hits"].get(&***name).is_none() && !is_evident(name));
        let idle: Vec<_> = idle.map(|(name, _)| name).collect();
        assert!(
            idle.is_empty(),
            "{identity:?}: no success even without a sandbox: {idle:?}\n{evidence:#?}"
        );
        assert!(evidence.len() > 60, "{evidence:#?}");
    }
}
