//! `doctor`: every failure with its step, its cause and the way out, and an exit code for scripts.

use std::os::unix::fs::PermissionsExt as _;

use cocode_testkit::Script;
use serde_json::Value;

use crate::home::Home;
use crate::status::{entry, hostile};

/// What the doctor says about one server.
#[track_caller]
fn examined(home: &Home, words: &[&str], code: i32) -> Value {
    let words: Vec<&str> = ["doctor", "--json"].iter().chain(words).copied().collect();
    let finished = home.mcp(&words).with_code(code);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["exit"], code);
    report
}

#[track_caller]
fn stage<'a>(report: &'a Value, server: &str, stage: &str) -> &'a Value {
    let servers = report["servers"].as_array().unwrap();
    let server = servers.iter().find(|one| one["name"] == server).unwrap();
    let stages = server["stages"].as_array().unwrap();
    let found = stages.iter().find(|one| one["stage"] == stage);
    found.unwrap_or_else(|| panic!("no {stage} in {server}"))
}

#[test]
fn a_healthy_server_passes_every_step() {
    let home = Home::new();
    let server = Script::new().tools(2, 10).stdio();
    home.user_file("mcp.toml", &entry("good", &server));
    let report = examined(&home, &[], 0);
    for name in [
        "config",
        "command",
        "policy",
        "trust",
        "variables",
        "connect",
        "handshake",
    ] {
        assert_eq!(stage(&report, "good", name)["outcome"], "ok", "{name}");
    }
    assert_eq!(stage(&report, "good", "secrets")["outcome"], "skipped");
    assert_eq!(stage(&report, "good", "tools")["message"], "2 usable");
    let shown = home.mcp(&["doctor"]).clean();
    assert!(shown.contains("\ngood\n  ok    config"), "{shown}");
    assert!(shown.ends_with("\n1 server: 1 ok\n"), "{shown}");
}

#[test]
fn offline_starts_nothing() {
    let home = Home::new();
    let server = Script::new().stdio();
    home.user_file("mcp.toml", &entry("good", &server));
    let report = examined(&home, &["--offline"], 0);
    assert_eq!(stage(&report, "good", "command")["outcome"], "ok");
    for name in ["connect", "handshake", "tools"] {
        assert_eq!(stage(&report, "good", name)["outcome"], "skipped");
    }
    assert!(server.runs().all().is_empty());
}

#[test]
fn servers_that_wait_stop_at_trust() {
    let home = Home::new();
    hostile(&home, "https://no-such-host.invalid/mcp");
    let report = examined(&home, &[], 0);
    assert_eq!(stage(&report, "evil", "command")["outcome"], "ok");
    assert_eq!(stage(&report, "evil", "trust")["outcome"], "warning");
    assert_eq!(stage(&report, "evil", "variables")["outcome"], "skipped");
    assert_eq!(stage(&report, "evil", "connect")["outcome"], "skipped");
    // Looking up the name would tell its owner that somebody is there.
    assert_eq!(stage(&report, "helper", "address")["outcome"], "ok");
    examined(&home, &["evil"], 6);
}

#[test]
fn a_missing_command_names_what_to_install() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.web]\ncommand = 'npx'\nenv = { PATH = '/nowhere' }\n",
    );
    let report = examined(&home, &[], 3);
    let failed = stage(&report, "web", "command");
    assert_eq!(
        failed["error"]["message"],
        "the program `npx` is not in PATH"
    );
    let hint = failed["error"]["hints"][0].as_str().unwrap();
    assert!(hint.contains("install Node.js"), "{hint}");
    assert_eq!(stage(&report, "web", "connect")["outcome"], "skipped");
}

#[test]
fn each_server_fails_alone_at_its_own_step() {
    let home = Home::new();
    let good = Script::new().stdio();
    let closed = Script::new().on_http("POST").unauthorized(&[]).http();
    let file = [
        entry("good", &good),
        "[mcp_servers.dies]\ncommand = '/bin/sh'\nargs = ['-c', 'echo no license >&2; exit 7']\n"
            .to_owned(),
        format!("[mcp_servers.closed]\nurl = '{}'\n", closed.url()),
        "[mcp_servers.nobody]\nurl = 'http://127.0.0.1:1/mcp'\n".to_owned(),
    ];
    home.user_file("mcp.toml", &file.concat());
    let report = examined(&home, &[], 3);
    assert_eq!(stage(&report, "good", "tools")["outcome"], "ok");
    let dies = stage(&report, "dies", "handshake");
    assert_eq!(dies["error"]["code"], "server-exited");
    assert_eq!(dies["error"]["stderr"][0], "no license");
    assert_eq!(stage(&report, "dies", "connect")["outcome"], "ok");
    assert_eq!(
        stage(&report, "closed", "handshake")["error"]["code"],
        "auth-required"
    );
    assert_eq!(
        stage(&report, "nobody", "connect")["error"]["code"],
        "unreachable"
    );
    examined(&home, &["closed", "good"], 4);
    let shown = home.mcp(&["doctor", "dies"]).with_code(3).stdout;
    assert!(shown.contains("  FAIL  handshake"), "{shown}");
    assert!(shown.contains("| no license"), "{shown}");
}

#[test]
fn a_server_that_never_answers_times_out() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.slow]\ncommand = 'sleep'\nargs = ['600']\n",
    );
    let report = examined(&home, &["--timeout", "0.5"], 5);
    let failed = stage(&report, "slow", "handshake");
    assert_eq!(failed["error"]["code"], "connect-timeout");
    assert!(
        failed["error"]["hints"][0]
            .as_str()
            .unwrap()
            .contains("--timeout")
    );
}

#[test]
fn variables_that_are_missing_are_named() {
    let home = Home::new();
    let file = "[mcp_servers.one]\ncommand = 'true'\nenv = { A = '${NO_SUCH_TOKEN}' }\n\
                [mcp_servers.two]\nurl = 'http://127.0.0.1:1/'\nbearer_token_env_var = 'NO_BEARER'\n\
                [mcp_servers.three]\ncommand = 'true'\nenv_vars = ['NO_SUCH_EXTRA']\n";
    home.user_file("mcp.toml", file);
    let report = examined(&home, &["one"], 2);
    let failed = stage(&report, "one", "variables");
    assert_eq!(failed["message"], "the variable `NO_SUCH_TOKEN` is not set");
    assert_eq!(stage(&report, "one", "config")["outcome"], "ok");
    let report = examined(&home, &["two"], 4);
    assert_eq!(
        stage(&report, "two", "variables")["message"],
        "the variable `NO_BEARER` is not set"
    );
    assert_eq!(stage(&report, "two", "connect")["outcome"], "skipped");
    let report = examined(&home, &["three", "--offline"], 0);
    assert_eq!(stage(&report, "three", "variables")["outcome"], "warning");
}

#[test]
fn secrets_are_looked_up_only_online_and_never_shown() {
    let home = Home::new();
    let server = Script::new().stdio();
    let file = format!(
        "{}env = {{ A = 'cmd:echo hunter2', B = 'keyring:no-such' }}\n",
        entry("s", &server)
    );
    home.user_file("mcp.toml", &file);
    let offline = home.mcp(&["doctor", "--offline"]).with_code(0).stdout;
    assert!(
        offline.contains("not looked up offline: cmd:echo …, keyring:no-such"),
        "{offline}"
    );
    let report = examined(&home, &[], 4);
    let failed = stage(&report, "s", "secrets");
    assert_eq!(failed["error"]["code"], "secret-unavailable");
    assert!(!report.to_string().contains("hunter2"));
    assert!(server.runs().all().is_empty());
}

#[test]
fn odd_tools_and_idle_filters_are_warnings() {
    let home = Home::new();
    let tools = r#"{"tools":[
        {"name":"read_file","inputSchema":{"type":"object"}},
        {"name":"read_file","inputSchema":{"type":"object"}},
        {"name":"list","inputSchema":{"type":"array"}},
        {"name":"no schema"},
        {"name":"a name/with more than models like","inputSchema":{"type":"object"}}]}"#;
    let server = Script::new()
        .on("tools/list")
        .result(tools.replace('\n', ""))
        .stdio();
    let filters = "enabled_tools = ['*', 'read_fiel']\ndisabled_tools = ['zzz*']\n";
    home.user_file("mcp.toml", &format!("{}{filters}", entry("odd", &server)));
    let report = examined(&home, &[], 0);
    let odd = stage(&report, "odd", "tools");
    assert_eq!(odd["outcome"], "warning");
    let details = odd["details"].to_string();
    for part in [
        "`no schema` cannot be used: it has no inputSchema",
        "`read_file` is listed more than once",
        "the inputSchema of `list` describes",
        "models see `a name/with more than models like` as `mcp__odd__a_name_with",
        "`read_fiel` in `enabled_tools` matches no tool; did you mean `read_file`?",
        "`zzz*` in `disabled_tools` matches no tool",
    ] {
        assert!(details.contains(part), "{part:?} is not in {details}");
    }
}

#[test]
fn broken_files_and_open_secrets_are_found() {
    let home = Home::new();
    home.project_file(".mcp.toml", "[mcp_servers\n");
    let file = home.user_file(
        "mcp.toml",
        "[mcp_servers.s]\ncommand = 'true'\nenv = { API_TOKEN = 'hunter2' }\n",
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let shown = home.mcp(&["doctor", "--offline"]).with_code(2).stdout;
    for part in [
        "FAIL  file",
        ".mcp.toml:1: ",
        "warn  privacy",
        "`env.API_TOKEN` of server `s`",
        "by COCODE_HOME",
        "cocode itself has trouble",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let shown = home.mcp(&["doctor", "--offline"]).with_code(2).stdout;
    assert!(!shown.contains("privacy"), "{shown}");
}

#[test]
fn a_name_that_is_not_there_is_a_mistake() {
    let home = Home::new();
    home.user_file("mcp.toml", "[mcp_servers.files]\ncommand = 'true'\n");
    let finished = home.mcp(&["doctor", "flies"]).with_code(2);
    finished.complains(&["there is no server `flies`", "did you mean `files`?"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_entry_of_a_server_in_a_sandbox_is_told_as_such() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.s]\ncommand = 'true'\nsandbox = 'read-only'\n",
    );
    let report = examined(&home, &["s", "--offline"], 0);
    let config = stage(&report, "s", "config");
    let message = config["message"].as_str().unwrap();
    assert!(message.ends_with("(user scope), in a sandbox"), "{config}");
}

#[test]
fn a_program_behind_a_link_is_looked_for_where_it_would_be_started() {
    let home = Home::new();
    let real = home.user_file("real/.mcp.toml", "[mcp_servers.s]\ncommand = './run.sh'\n");
    let program = home.user_file("real/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(real, home.project().join(".mcp.toml")).unwrap();
    let report = examined(&home, &["--offline"], 0);
    let found = stage(&report, "s", "command")["message"].as_str().unwrap();
    assert!(found.ends_with("real/./run.sh"), "{found}");
}
