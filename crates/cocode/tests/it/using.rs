//! A server that is used is the one that was meant: its program, its helpers, and its entry.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cocode_testkit::Script;

use crate::harness::Finished;
use crate::home::Home;
use crate::status::entry;

/// A program that leaves a mark where it starts.
fn script(path: &Path, mark: &str, prints: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!("#!/bin/sh\n: > {mark}\necho '{prints}'\n");
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// `cocode mcp ping NAME` in a directory of the project.
fn ping(home: &Home, name: &str, directory: &str) -> Finished {
    let mut command = home.command(["mcp", "ping", name]);
    command.current_dir(home.project().join(directory));
    Finished::of(command.output().unwrap())
}

#[test]
fn a_plugin_runs_its_own_program_wherever_the_user_is() {
    let home = Home::new();
    let plugin = home.home().join("plugin");
    script(&plugin.join("run.sh"), "right", "");
    script(&home.project().join("run.sh"), "wrong", "");
    home.user_file(
        "plugin/.mcp.json",
        r#"{"mcpServers": {"path": {"command": "./run.sh"}, "shell": {"command": "sh", "args": ["run.sh"]}}}"#,
    );
    let folder = plugin.to_str().unwrap();
    home.run(["plugin", "add", folder, "--yes"]).with_code(0);
    for name in ["path", "shell"] {
        ping(&home, name, "").with_code(3);
        std::fs::remove_file(plugin.join("right")).unwrap();
        assert!(!home.project().join("wrong").exists(), "{name}");
        let found = home.mcp(&["doctor", "--offline", name]).with_code(0);
        assert!(!found.stdout.contains("project/run.sh"), "{}", found.stdout);
    }
}

#[test]
fn a_relative_path_in_a_users_file_is_beside_that_file() {
    let home = Home::new();
    script(&home.home().join("bin/run.sh"), "right", "");
    script(&home.project().join("bin/run.sh"), "wrong", "");
    home.user_file("mcp.toml", "[mcp_servers.s]\ncommand = 'bin/run.sh'\n");
    ping(&home, "s", "").with_code(3);
    // It starts where the user is.
    assert!(home.project().join("right").exists());
    assert!(!home.project().join("wrong").exists());
    let found = home.mcp(&["doctor", "--offline", "s"]).with_code(0);
    assert!(found.stdout.contains("home/bin/run.sh"), "{}", found.stdout);
}

#[test]
fn commands_for_secrets_run_where_the_server_starts() {
    let home = Home::new();
    for (file, prints) in [("token.sh", "secret"), ("helper.sh", r#"{"X-More": "y"}"#)] {
        script(&home.project().join(file), &format!("{file}-ran"), prints);
        script(&home.project().join("sub").join(file), "wrong", prints);
        script(&home.project().join("deep").join(file), "deep-ran", prints);
    }
    home.project_file(
        ".mcp.toml",
        "[mcp_servers.header]\nurl = 'http://127.0.0.1:1/'\n\
         headers = { Authorization = 'cmd:./token.sh' }\n\n\
         [mcp_servers.helper]\nurl = 'http://127.0.0.1:1/'\nheaders_helper = './helper.sh'\n\n\
         [mcp_servers.program]\ncommand = 'false'\ncwd = 'deep'\n\
         env = { TOKEN = 'cmd:./token.sh' }\n",
    );
    home.mcp(&["trust", "--yes"]).with_code(0);
    for (name, mark) in [
        ("header", "token.sh-ran"),
        ("helper", "helper.sh-ran"),
        ("program", "deep/deep-ran"),
    ] {
        ping(&home, name, "sub").with_code(3);
        assert!(home.project().join(mark).exists(), "{name}");
    }
    assert!(!home.project().join("sub/wrong").exists());
}

#[test]
fn nothing_is_used_instead_of_a_broken_entry_of_ones_own() {
    let home = Home::new();
    let production = Script::new().stdio();
    home.user_file("mcp.toml", &entry("db", &production));
    home.mcp(&["add", "db", "--scope", "local", "--", "test-database"])
        .with_code(0);
    let file = home.project().join(".cocode.local.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("command", "comand")).unwrap();
    for verb in ["ping", "tools", "inspect"] {
        let refused = home.mcp(&[verb, "db"]).with_code(2);
        refused.complains(&[
            "server `db` cannot be used as it is written",
            ".cocode.local.toml:",
            "home/mcp.toml:1",
            "remove it",
        ]);
    }
    home.mcp(&["doctor", "db"]).with_code(2);
    let listed = home.json(&["mcp", "list"]);
    assert_eq!(listed["servers"][0]["state"], "invalid", "{listed}");
    assert!(production.runs().all().is_empty());
}

#[test]
fn a_broken_entry_of_a_stranger_is_passed_over_with_a_warning() {
    let home = Home::new();
    let server = Script::new().stdio();
    home.user_file("mcp.toml", &entry("db", &server));
    home.project_file(".mcp.toml", "[mcp_servers.db]\ncomand = 'x'\n");
    for words in [&["ping", "db"][..], &["tools", "db"], &["tools"]] {
        let used = home.mcp(words).with_code(0);
        used.complains(&[
            "warning: ",
            ".mcp.toml:2",
            "passed over",
            "home/mcp.toml:1 counts",
        ]);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_said_whenever_a_server_is_used_or_missing() {
    let home = Home::new();
    let server = Script::new().stdio();
    home.user_file("mcp.toml", &entry("db", &server));
    home.project_file(".cocode.local.toml", "[mcp_servers\n");
    let parts = [".cocode.local.toml:1", "servers in this file are missing"];
    for words in [&["ping", "db"][..], &["tools", "db"], &["tools"]] {
        home.mcp(words).with_code(0).complains(&parts);
    }
    for words in [
        &["mcp", "ping", "other"][..],
        &["mcp", "doctor", "other"],
        &["policy", "check", "other"],
    ] {
        let unknown = home.run(words).with_code(2);
        unknown.complains(&["there is no server `other`"]);
        unknown.complains(&parts);
    }
}
