//! Importing from other tools and exporting to them, with files as those tools write them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Finished;
use crate::home::Home;

/// The directory that the tools take for the user's home.
fn tools_home(home: &Home) -> PathBuf {
    home.home().parent().unwrap().to_owned()
}

/// Writes a file of a tool, below the user's home.
fn tool_file(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = tools_home(home).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// `.claude.json` with servers for everywhere and for the project.
fn claude(home: &Home) -> PathBuf {
    let project = home.project().canonicalize().unwrap();
    let text = json!({
        "numStartups": 7,
        "mcpServers": {
            "files": {
                "type": "stdio",
                "command": "files-server",
                "args": ["--root", "/srv"],
                "env": {"API_TOKEN": "hunter2-plain"}
            },
            "broken": 3,
            "web": {
                "type": "http",
                "url": "https://web.example/mcp",
                "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}
            }
        },
        "projects": {
            project.to_str().unwrap(): {
                "mcpServers": {
                    "here": {"type": "stdio", "command": "here-server", "args": [], "env": {}}
                }
            }
        }
    });
    tool_file(
        home,
        ".claude.json",
        &serde_json::to_string_pretty(&text).unwrap(),
    )
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parsed(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", finished.stdout, finished.stderr))
}

/// What was done with each server, by name and tool.
fn actions(report: &Value) -> Vec<(String, String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = report["servers"].as_array().unwrap().iter();
    rows.map(|row| (text(row, "name"), text(row, "tool"), text(row, "action")))
        .collect()
}

#[track_caller]
fn assert_actions(report: &Value, expected: &[(&str, &str, &str)]) {
    let owned = |text: &str| text.to_owned();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, tool, action)| (owned(name), owned(tool), owned(action)))
        .collect();
    assert_eq!(actions(report), expected, "{report:#}");
}

#[test]
fn a_dry_run_shows_everything_and_writes_nothing() {
    let home = Home::new();
    claude(&home);
    tool_file(
        &home,
        ".codex/config.toml",
        "model = \"x\"\n\n[mcp_servers.files]\ncommand = \"another\"\n",
    );
    let finished = home.mcp(&["import"]).with_code(0);
    for part in ["files-server --root /srv", ".claude.json:", "here-server"] {
        assert!(finished.stdout.contains(part), "{}", finished.stdout);
    }
    finished.complains(&["env.API_TOKEN", "plain text", "nothing was written yet"]);
    assert!(
        !finished
            .stderr
            .contains("headers.Authorization`: it is in plain")
    );
    for printed in [&finished.stdout, &finished.stderr] {
        assert!(!printed.contains("hunter2"), "{printed}");
    }
    assert!(!home.home().join("mcp.toml").exists());
    assert!(!home.project().join(".cocode.local.toml").exists());
    let report = home.json(&["mcp", "import"]);
    assert_eq!(report["written"], false);
    assert!(!report.to_string().contains("hunter2"));
    assert_actions(
        &report,
        &[
            ("here", "claude-code", "add"),
            ("files", "claude-code", "add"),
            ("web", "claude-code", "add"),
            ("broken", "claude-code", "broken"),
            ("files", "codex", "duplicate"),
        ],
    );
}

#[test]
fn cocode_does_not_import_itself() {
    let home = Home::new();
    let servers = json!({"mcpServers": {
        "front": {"command": "/usr/bin/cocode", "args": ["mcp", "serve"]},
        "gate": {"url": "http://localhost:7801/mcp"},
        "usual": {"url": "http://127.0.0.1:7777/sse"},
        "web": {"url": "https://web.example/mcp"},
    }});
    tool_file(&home, ".cursor/mcp.json", &servers.to_string());
    let profile = "[gateway.profiles.review]\nlisten = \"127.0.0.1:7801\"\n";
    home.user_file("config.toml", profile);
    let report = home.json(&["mcp", "import", "cursor", "--write"]);
    assert_actions(
        &report,
        &[
            ("front", "cursor", "itself"),
            ("gate", "cursor", "itself"),
            ("usual", "cursor", "itself"),
            ("web", "cursor", "add"),
        ],
    );
    let reason = report["servers"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("cocode itself"), "{report}");
    assert!(!read(&home.home().join("mcp.toml")).contains("7777"));
}

#[test]
fn whoever_mixes_up_tool_and_gateway_is_told_the_order() {
    let home = Home::new();
    let refused = home.mcp(&["export", "--gateway", "claude"]).with_code(2);
    refused.complains(&["`cocode mcp export claude-code --gateway http://127.0.0.1:7777/mcp`"]);
    let refused = home.mcp(&["serve", "time"]).with_code(2);
    refused.complains(&["`--server time`", "`--servers time`"]);
}

#[test]
fn what_is_imported_is_used_and_says_where_it_comes_from() {
    let home = Home::new();
    let source = claude(&home);
    let before = read(&source);
    home.mcp(&["import", "--write"]).with_code(0);
    assert_eq!(read(&source), before);
    let listed = home.json(&["mcp", "get", "files"]);
    assert_eq!(listed["state"], "ready");
    assert_eq!(listed["scope"], "user");
    let from = listed["importedFrom"].as_str().unwrap();
    assert!(from.starts_with("claude-code, "), "{from}");
    assert!(from.ends_with(".claude.json"), "{from}");
    let explained = home.json(&["mcp", "explain", "here"]);
    assert_eq!(explained["scope"], "local");
    assert_eq!(explained["state"], "ready");
    assert_eq!(explained["importedFrom"], listed["importedFrom"]);
    let told = home.mcp(&["explain", "files"]).with_code(0).stdout;
    assert!(told.contains(", imported from claude-code, "), "{told}");
    let text = read(&home.home().join("mcp.toml"));
    assert!(text.contains("Bearer ${WEB_TOKEN}"), "{text}");
    // Again, and nothing changes.
    let again = home.json(&["mcp", "import", "--write"]);
    assert_actions(
        &again,
        &[
            ("here", "claude-code", "same"),
            ("files", "claude-code", "same"),
            ("web", "claude-code", "same"),
            ("broken", "claude-code", "broken"),
        ],
    );
    assert_eq!(read(&home.home().join("mcp.toml")), text);
    // The comment goes with the server.
    home.mcp(&["remove", "files"]).with_code(0);
    home.mcp(&["remove", "web"]).with_code(0);
    let rest = read(&home.home().join("mcp.toml"));
    assert!(!rest.contains("imported from"), "{rest}");
}

#[test]
fn a_server_that_is_there_and_differs_needs_force() {
    let home = Home::new();
    tool_file(
        &home,
        ".codex/config.toml",
        "[mcp_servers.files]\ncommand = \"theirs\"\n",
    );
    let own = "# mine\n[mcp_servers.files]\ncommand = \"mine\"\n";
    let file = home.user_file("mcp.toml", own);
    let refused = home
        .mcp(&["import", "codex", "--write", "--json"])
        .with_code(2);
    assert_actions(&parsed(&refused), &[("files", "codex", "differs")]);
    assert_eq!(read(&file), own);
    let words = ["import", "codex", "--write", "--force", "--json"];
    let replaced = home.mcp(&words).with_code(0);
    assert_actions(&parsed(&replaced), &[("files", "codex", "replace")]);
    let text = read(&file);
    assert!(text.contains("# mine\n# imported from codex, "), "{text}");
    assert!(text.contains("command = \"theirs\""), "{text}");
    // A second time there is one line about it still.
    tool_file(
        &home,
        ".codex/config.toml",
        "[mcp_servers.files]\ncommand = \"newer\"\n",
    );
    home.mcp(&words).with_code(0);
    assert_eq!(read(&file).matches("imported from").count(), 1);
}

#[test]
fn servers_of_the_work_tree_are_never_approved_by_importing_them() {
    let home = Home::new();
    home.project_file(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"hostile": {"command": "rm", "args": ["-rf", "/srv"]}}}"#,
    );
    home.project_file(
        ".mcp.json",
        r#"{"mcpServers": {"shared": {"command": "x"}}}"#,
    );
    // For everywhere, it has to be meant.
    let words = ["import", "--scope", "user", "--write", "--json"];
    let refused = home.mcp(&words).with_code(2);
    assert_actions(
        &parsed(&refused),
        &[
            ("shared", "claude-code", "in-use"),
            ("hostile", "cursor", "unnamed"),
        ],
    );
    assert!(!home.home().join("mcp.toml").exists());
    // Here, it waits.
    home.mcp(&["import", "--write"]).with_code(0);
    let listed = home.json(&["mcp", "get", "hostile"]);
    assert_eq!(listed["scope"], "local");
    assert_eq!(listed["state"], "pending");
    // By name, it is the user's own.
    let named = ["import", "--scope", "user", "--only", "hostile", "--write"];
    home.mcp(&named).with_code(0);
    assert_eq!(home.json(&["mcp", "get", "hostile"])["scope"], "user");
}

#[test]
fn a_named_file_of_the_work_tree_is_no_more_trusted_than_one_that_is_found() {
    for (tool, text) in [
        ("cursor", r#"{"mcpServers": {"hostile": {"command": "x"}}}"#),
        (
            "claude-code",
            r#"{"mcpServers": {"hostile": {"command": "x"}}}"#,
        ),
        ("codex", "[mcp_servers.hostile]\ncommand = 'x'\n"),
    ] {
        let home = Home::new();
        home.project_file("setup/servers", text);
        let outside = tool_file(&home, "elsewhere", text);
        let link = home.project().join("link");
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        for file in ["setup/servers", "sub/../setup/servers", "link"] {
            let words = ["import", tool, "--file", file, "--scope", "user", "--write"];
            let refused = home.mcp(&[&words[..], &["--json"]].concat()).with_code(2);
            assert_actions(&parsed(&refused), &[("hostile", tool, "unnamed")]);
            assert!(!home.home().join("mcp.toml").exists(), "{file}");
        }
        home.mcp(&["import", tool, "--file", "setup/servers", "--write"])
            .with_code(0);
        let listed = home.json(&["mcp", "get", "hostile"]);
        assert_eq!([&listed["scope"], &listed["state"]], ["local", "pending"]);
        // By name, or from elsewhere, it is the user's own.
        let named = ["--only", "hostile", "--scope", "user", "--write"];
        let words = ["import", tool, "--file", "setup/servers"];
        home.mcp(&[&words[..], &named].concat()).with_code(0);
        assert_eq!(home.json(&["mcp", "get", "hostile"])["scope"], "user");
        let other = Home::new();
        let outside = outside.to_str().unwrap();
        other
            .mcp(&["import", tool, "--file", outside, "--write"])
            .with_code(0);
        let listed = other.json(&["mcp", "get", "hostile"]);
        assert_eq!([&listed["scope"], &listed["state"]], ["user", "ready"]);
    }
}

#[test]
fn the_own_file_of_a_tool_is_the_users_also_if_the_home_is_a_work_tree() {
    let home = Home::new();
    let file = tool_file(
        &home,
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    );
    let mut command = home.command(["mcp", "import", "cursor", "--write", "--file"]);
    command.arg(&file).current_dir(tools_home(&home));
    Finished::of(command.output().unwrap()).with_code(0);
    assert_eq!(home.json(&["mcp", "get", "a"])["scope"], "user");
}

#[test]
fn an_export_follows_no_link_out_of_the_work_tree() {
    let home = with_servers();
    let outside = tool_file(&home, "elsewhere.json", "{}");
    std::os::unix::fs::symlink(&outside, home.project().join(".mcp.json")).unwrap();
    for place in [&["--project"][..], &["--file", ".mcp.json"]] {
        let words = [&["export", "claude-code", "--write", "--json"], place].concat();
        let refused = home.mcp(&words).with_code(2);
        assert_eq!(refused.error()["code"], "file-error");
        refused.complains(&["leads out of the work tree", "elsewhere.json"]);
    }
    assert_eq!(read(&outside), "{}");
}

#[test]
fn a_broken_file_of_one_tool_does_not_stop_the_others() {
    let home = Home::new();
    tool_file(&home, ".gemini/settings.json", "{ \"mcpServers\": {\n oops");
    tool_file(&home, ".cursor/mcp.json", "{\"mcpServers\": \u{0}}");
    std::fs::create_dir_all(tools_home(&home).join(".codex/config.toml")).unwrap();
    claude(&home);
    let finished = home.mcp(&["import", "--write"]).with_code(0);
    finished.complains(&[
        ".gemini/settings.json:",
        ".cursor/mcp.json",
        ".codex/config.toml",
    ]);
    assert_eq!(home.json(&["mcp", "get", "files"])["state"], "ready");
    // Named, it is the error.
    let file = tools_home(&home).join(".gemini/settings.json");
    let words = [
        "import",
        "gemini",
        "--file",
        file.to_str().unwrap(),
        "--json",
    ];
    assert_eq!(
        home.mcp(&words).with_code(2).error()["code"],
        "invalid-config"
    );
}

#[test]
fn unknown_tools_and_servers_are_answered_with_the_nearest() {
    let home = Home::new();
    claude(&home);
    let finished = home.mcp(&["import", "cluade-code"]).with_code(2);
    finished.complains(&["did you mean `claude-code`?", "opencode"]);
    let finished = home.mcp(&["export", "vs-code"]).with_code(2);
    finished.complains(&["did you mean `vscode`?"]);
    let finished = home.mcp(&["import", "--only", "fiels"]).with_code(2);
    finished.complains(&["did you mean `files`?"]);
    let finished = home
        .mcp(&["export", "codex", "--only", "fiels"])
        .with_code(2);
    finished.complains(&["there is no server `fiels`"]);
    let finished = home.mcp(&["import", "--file", "x.json"]).with_code(2);
    finished.complains(&["--file"]);
}

/// A user with servers of each kind.
fn with_servers() -> Home {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        r#"
[mcp_servers.files]
command = "files-server"
args = ["a b"]
env = { FROM = "${PLACE}", KEPT = "keyring:kept" }
[mcp_servers.web]
url = "https://web.example/mcp"
headers = { Authorization = "Bearer ${WEB_TOKEN}" }
[mcp_servers.off]
command = "off-server"
enabled = false
"#,
    );
    home.project_file(
        ".mcp.toml",
        "[mcp_servers.waiting]\ncommand = \"waiting-server\"\n",
    );
    home
}

fn exported(home: &Home, words: &[&str]) -> Value {
    parsed(&home.mcp(&[words, &["--json"]].concat()).with_code(0))
}

fn action_of(report: &Value, name: &str) -> String {
    let rows = report["servers"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name).unwrap();
    row["action"].as_str().unwrap().to_owned()
}

#[test]
fn an_export_keeps_the_rest_of_the_file_and_can_be_undone() {
    let home = with_servers();
    let before = "// mine\n{\n  \"theme\": \"dark\", // nice\n  \"mcp\": {}\n}\n";
    let file = tool_file(&home, ".config/opencode/opencode.json", before);
    let dry = exported(&home, &["export", "opencode"]);
    assert_eq!(dry["written"], false);
    assert_eq!(read(&file), before);
    let report = exported(&home, &["export", "opencode", "--write"]);
    assert_eq!(action_of(&report, "files"), "add");
    assert_eq!(action_of(&report, "off"), "add");
    assert_eq!(action_of(&report, "waiting"), "withheld");
    let after = read(&file);
    for part in [
        "// mine",
        "// nice",
        "{env:PLACE}",
        "Bearer {env:WEB_TOKEN}",
        "\"enabled\": false",
    ] {
        assert!(after.contains(part), "{part} is not in {after}");
    }
    for part in ["keyring", "KEPT", "waiting-server"] {
        assert!(!after.contains(part), "{part} is in {after}");
    }
    let backup = PathBuf::from(report["backup"].as_str().unwrap());
    assert_eq!(read(&backup.join("before")), before);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&backup), 0o700);
    assert_eq!(mode(&backup.join("before")), 0o600);
    // Again, and nothing is to be done.
    let again = exported(&home, &["export", "opencode", "--write"]);
    assert_eq!(action_of(&again, "files"), "same");
    assert_eq!(again.get("backup"), None);
    assert_eq!(read(&file), after);
    home.mcp(&["export", "opencode", "--undo"]).with_code(0);
    assert_eq!(read(&file), before);
    let finished = home.mcp(&["export", "opencode", "--undo"]).with_code(2);
    finished.complains(&["there is no export"]);
}

#[test]
fn exports_are_undone_one_after_the_other_down_to_no_file() {
    let home = with_servers();
    let file = tools_home(&home).join(".codex/config.toml");
    home.mcp(&["export", "codex", "--only", "web", "--write"]);
    let first = read(&file);
    home.mcp(&["export", "codex", "--only", "off", "--write"])
        .with_code(0);
    assert_ne!(read(&file), first);
    home.mcp(&["export", "codex", "--undo"]).with_code(0);
    assert_eq!(read(&file), first);
    // What somebody changed since is not lost.
    let changed = format!("{first}\nmodel = \"other\"\n");
    std::fs::write(&file, &changed).unwrap();
    let refused = home.mcp(&["export", "codex", "--undo"]).with_code(2);
    refused.complains(&["changed since the export", "--force"]);
    assert_eq!(read(&file), changed);
    let report = exported(&home, &["export", "codex", "--undo", "--force"]);
    assert_eq!(report["exists"], false);
    assert!(!file.exists());
    assert_eq!(read(Path::new(report["kept"].as_str().unwrap())), changed);
}

#[test]
fn only_the_last_backups_of_a_file_are_kept() {
    let home = Home::new();
    let backups = home.home().join("state/backups");
    for number in 0..12 {
        let name = format!("server-{number}");
        home.mcp(&["add", &name, "--scope", "user", "--", "x"])
            .with_code(0);
        home.mcp(&["export", "cursor", "--write"]).with_code(0);
    }
    assert_eq!(std::fs::read_dir(&backups).unwrap().count(), 10);
}

#[test]
fn what_the_tool_has_otherwise_is_replaced_by_force_only() {
    let home = with_servers();
    let before = "# mine\n[mcp_servers.off]\ncommand = \"theirs\"\n";
    let file = tool_file(&home, ".codex/config.toml", before);
    let words = ["export", "codex", "--only", "off", "--write", "--json"];
    let refused = home.mcp(&words).with_code(2);
    assert_eq!(action_of(&parsed(&refused), "off"), "differs");
    assert_eq!(read(&file), before);
    let words = ["export", "codex", "--only", "off", "--write", "--force"];
    let replaced = exported(&home, &words);
    assert_eq!(action_of(&replaced, "off"), "replace");
    assert!(read(&file).contains("# mine"));
    assert!(read(&file).contains("off-server"));
    // A server that waits for approval goes nowhere.
    let words = ["export", "codex", "--only", "waiting", "--write"];
    home.mcp(&words).with_code(6);
    assert!(!read(&file).contains("waiting"));
    // A file that cannot be understood is left alone.
    std::fs::write(&file, "oops = [").unwrap();
    let words = ["export", "codex", "--write", "--force", "--json"];
    assert_eq!(
        home.mcp(&words).with_code(2).error()["code"],
        "invalid-config"
    );
    assert_eq!(read(&file), "oops = [");
}

#[test]
fn every_tool_reads_back_what_was_exported_to_it() {
    for tool in [
        "claude-code",
        "claude-desktop",
        "codex",
        "cursor",
        "vscode",
        "opencode",
        "zed",
        "gemini",
        "mcp-json",
    ] {
        let from = Home::new();
        let words = ["add", "plain", "--scope", "user", "--", "server", "a b"];
        from.mcp(&words).with_code(0);
        let file = from.home().join("exported");
        let file = file.to_str().unwrap();
        from.mcp(&["export", tool, "--file", file, "--write"])
            .with_code(0);
        let to = Home::new();
        to.mcp(&["import", tool, "--file", file, "--write"])
            .with_code(0);
        let entry = to.json(&["mcp", "get", "plain"])["entry"].clone();
        let expected = json!({"command": "server", "args": ["a b"]});
        assert_eq!(entry, expected, "{tool}");
    }
}
