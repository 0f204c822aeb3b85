//! Listing servers starts and contacts nothing, as the system itself sees it.

use std::process::Command;

use serde_json::json;

use crate::home::Home;

/// Fifty servers in five files, ten of them with an address.
fn fifty(home: &Home) {
    let toml = |file: usize| -> String {
        let entry = |number: usize| match number {
            0 | 1 => format!("[mcp_servers.s{file}{number}]\nurl = 'https://a.example/mcp'\n"),
            _ => format!("[mcp_servers.s{file}{number}]\ncommand = 'touch'\nargs = ['trace']\n"),
        };
        (0..10).map(entry).collect()
    };
    let json = |file: usize| {
        let entry = |number: usize| match number {
            0 | 1 => json!({"type": "http", "url": "https://a.example/mcp"}),
            _ => json!({"command": "touch", "args": ["trace"]}),
        };
        let servers: serde_json::Map<_, _> = (0..10)
            .map(|number| (format!("s{file}{number}"), entry(number)))
            .collect();
        json!({"mcpServers": servers}).to_string()
    };
    home.project_file(".cocode.local.toml", &toml(0));
    home.project_file(".mcp.toml", &toml(1));
    home.project_file(".mcp.json", &json(2));
    home.user_file("mcp.toml", &toml(3));
    let plugin = home.project_file("plugin/.mcp.json", &json(4));
    let folder = plugin.parent().unwrap().display();
    home.user_file("plugins.toml", &format!("[[plugins]]\npath = '{folder}'\n"));
}

#[test]
fn system_listing_fifty_servers_starts_no_process_and_opens_no_socket() {
    let home = Home::new();
    fifty(&home);
    let program = home.command(["mcp", "list", "--json"]);
    let log = home.project().join("calls");
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-e", "trace=process,network", "-o"])
        .arg(&log);
    traced.arg(program.get_program()).args(program.get_args());
    traced.current_dir(program.get_current_dir().unwrap());
    for (name, value) in program.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    let output = traced.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["servers"].as_array().unwrap().len(), 50);
    let calls = std::fs::read_to_string(log).unwrap();
    let count = |call: &str| calls.lines().filter(|line| line.contains(call)).count();
    // The program itself is the one that is started.
    assert_eq!(count("execve("), 1, "{calls}");
    for call in [
        "clone(", "clone3(", "fork(", "socket(", "connect(", "sendto(",
    ] {
        assert_eq!(count(call), 0, "{calls}");
    }
}
