//! What an organization fixes and allows, and that nothing gets around it.

use std::path::Path;
use std::process::Command;

use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};

use crate::harness::{SystemFiles, with_system_files};
use crate::home::Home;

#[test]
fn without_a_policy_everything_is_allowed() {
    let home = Home::new();
    home.user_file("mcp.toml", "[mcp_servers.a]\ncommand = \"a\"\n");
    let checked = home.run(["policy", "check"]).with_code(0);
    checked.complains(&["there is no policy"]);
    assert!(checked.stdout.contains("allowed"), "{}", checked.stdout);
    home.run(["policy", "check", "b"]).with_code(2);
}

fn checked(system: &SystemFiles, home: &Home, words: &[&str], code: i32) -> Value {
    let words = ["policy", "check", "--json"].iter().chain(words);
    let finished = system.run(&home.command(words)).with_code(code);
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn system_a_policy_names_the_rule_that_blocks() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.good]\ncommand = \"good\"\n\n[mcp_servers.bad]\ncommand = \"good\"\n\n\
         [mcp_servers.other]\nurl = \"https://other.example/\"\n",
    );
    let policy = "[[denied]]\nname = \"bad\"\nreason = \"we had trouble\"\n\n\
                  [[allowed]]\ncommand = [\"good\"]\n";
    let system = with_system_files(&[("policy.toml", policy)]);
    let report = checked(&system, &home, &[], 6);
    assert_eq!(report["policy"], "present");
    let of = |name: &str| {
        let servers = report["servers"].as_array().unwrap();
        servers
            .iter()
            .find(|one| one["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(of("good")["verdict"], "allowed");
    assert_eq!(of("bad")["verdict"], "blocked");
    assert_eq!(
        (&of("bad")["file"], &of("bad")["line"]),
        (&json!("/etc/cocode/policy.toml"), &json!(1))
    );
    assert!(
        of("bad")["reason"]
            .as_str()
            .unwrap()
            .contains("we had trouble")
    );
    assert_eq!(of("other")["verdict"], "blocked");
    checked(&system, &home, &["good"], 0);
    checked(&system, &home, &["--url", "https://other.example/"], 6);
    checked(&system, &home, &["--", "good"], 0);
    let refused = system.run(&home.command(["mcp", "ping", "--json", "--", "other"]));
    assert_eq!(refused.with_code(6).error()["code"], "blocked-by-policy");
}

#[test]
fn system_programs_by_name_alone_are_warned_of() {
    let home = Home::new();
    let policy = "[[allowed]]\ncommand = [\"true\"]\n\n[[allowed]]\ncommand = [\"/bin/true\"]\n";
    let managed = "[mcp_servers.corp]\ncommand = \"true\"\n";
    let system = with_system_files(&[("policy.toml", policy), ("managed-mcp.toml", managed)]);
    let report = checked(&system, &home, &[], 0);
    let warnings: Vec<&str> = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    let [rule, server] = warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(rule.starts_with("/etc/cocode/policy.toml:1: "), "{rule}");
    assert!(
        server.contains("managed-mcp.toml:2: server `corp`"),
        "{server}"
    );
    let shown = system.run(&home.command(["policy", "check"])).with_code(0);
    shown.complains(&["warning: ", "user's PATH", "absolute path"]);
    let shown = system.run(&home.command(["mcp", "doctor", "--offline"]));
    let shown = shown.with_code(0).stdout;
    for part in ["warn  policy", "policy.toml:1: ", "managed-mcp.toml:2: "] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
}

#[test]
fn system_a_broken_policy_blocks_everything() {
    let home = Home::new();
    home.user_file("mcp.toml", "[mcp_servers.a]\ncommand = \"a\"\n");
    let system = with_system_files(&[("policy.toml", "[[denied]]\nnmae = \"x\"\n")]);
    let report = checked(&system, &home, &["a"], 6);
    assert_eq!(report["policy"], "broken");
    assert_eq!(report["servers"][0]["verdict"], "blocked");
    let shown = system.run(&home.command(["policy", "check"])).with_code(6);
    shown.complains(&["/etc/cocode/policy.toml:2", "every server is blocked"]);
    system.run(&home.command(["config", "check"])).with_code(2);
}

/// A user under an organization that fixes all servers, who tries to run something of their own.
struct Escape {
    home: Home,
    system: SystemFiles,
    /// Made by the program that must not run.
    mark: String,
}

impl Escape {
    fn new(corporate: &StdioServer) -> Self {
        let home = Home::new();
        let mark = home.home().join("mark").to_str().unwrap().to_owned();
        let words = std::iter::once(corporate.program().display().to_string());
        let words: Vec<String> = words
            .chain(corporate.args().iter().cloned())
            .map(|word| serde_json::to_string(&word).unwrap())
            .collect();
        let (program, args) = words.split_first().unwrap();
        let managed = format!(
            "[mcp_servers.corp]\ncommand = {program}\nargs = [{}]\n",
            args.join(", ")
        );
        let system = with_system_files(&[("managed-mcp.toml", &managed)]);
        Self { home, system, mark }
    }

    fn toml(&self) -> String {
        format!(
            "[mcp_servers.evil]\ncommand = \"touch\"\nargs = [\"{}\"]\n",
            self.mark
        )
    }

    fn json(&self) -> String {
        json!({"mcpServers": {"evil": {"command": "touch", "args": [self.mark]}}}).to_string()
    }

    /// The user's command, changed as the user likes, where the organization's file is.
    fn run(&self, words: &[&str], change: impl Fn(&mut Command)) -> crate::harness::Finished {
        let mut command = self.home.command(words);
        change(&mut command);
        self.system.run(&command)
    }

    /// Fails unless the organization's server is all there is, and nothing else ran.
    #[track_caller]
    fn holds(&self, before: &[&str], change: impl Fn(&mut Command)) {
        let words = [before, &["mcp", "list", "--json"]].concat();
        let listed = self.run(&words, &change).with_code(0);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let names: Vec<&Value> = listed["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|server| &server["name"])
            .collect();
        assert_eq!(names, ["corp"], "{listed}");
        for verb in [
            &["ping", "evil"][..],
            &["tools", "evil"],
            &["call", "evil", "x"],
        ] {
            let words = [before, &["mcp"], verb].concat();
            self.run(&words, &change).with_code(2);
        }
        assert!(!Path::new(&self.mark).exists(), "it ran");
    }
}

#[test]
fn system_nothing_adds_a_server_where_the_organization_fixes_them() {
    let corporate = Script::new().stdio();
    let escape = Escape::new(&corporate);
    let unchanged = |_: &mut Command| {};
    let (home, mark) = (&escape.home, escape.mark.as_str());
    escape.run(&["mcp", "ping", "corp"], unchanged).with_code(0);
    escape.holds(&[], unchanged);

    // By commands that write.
    for scope in ["local", "project", "user"] {
        let add = ["mcp", "add", "evil", "--scope", scope, "--", "touch", mark];
        escape.run(&add, unchanged).with_code(6);
        let add = [
            "mcp",
            "add",
            "evil",
            "--scope",
            scope,
            "--force",
            "http://localhost:1/",
        ];
        escape.run(&add, unchanged).with_code(6);
        let entry = json!({"command": "touch", "args": [mark]}).to_string();
        let add = ["mcp", "add-json", "evil", &entry, "--scope", scope];
        escape.run(&add, unchanged).with_code(6);
    }
    escape.holds(&[], unchanged);

    // By a server of the command line.
    for verb in ["ping", "tools", "inspect"] {
        escape
            .run(&["mcp", verb, "--", "touch", mark], unchanged)
            .with_code(6);
        escape
            .run(&["mcp", verb, "--url", "http://localhost:1/"], unchanged)
            .with_code(6);
    }

    // By files of the work tree, approved or not.
    home.project_file(".mcp.toml", &escape.toml());
    home.project_file(".mcp.json", &escape.json());
    home.project_file(".cocode.local.toml", &escape.toml());
    home.project_file("sub/.mcp.json", &escape.json());
    escape.holds(&[], unchanged);
    escape.run(&["mcp", "trust", "--yes"], unchanged);
    escape.run(&["mcp", "enable", "evil"], unchanged);
    escape.holds(&[], |command| {
        command.current_dir(home.project().join("sub"));
    });
    // Approved where the organization's file is not, as on another machine.
    home.mcp(&["trust", "--yes"]).with_code(0);
    escape.holds(&[], unchanged);
    let import = ["mcp", "import", "mcp-json", "--write", "--force"];
    escape.run(&import, unchanged).with_code(6);
    escape.holds(&[], unchanged);

    // By files of the user, wherever the user says they are.
    home.user_file("mcp.toml", &escape.toml());
    escape.holds(&[], unchanged);
    let elsewhere = home.home().join("elsewhere");
    for place in ["cocode", ".config/cocode"] {
        home.user_file(&format!("elsewhere/{place}/mcp.toml"), &escape.toml());
    }
    escape.holds(&[], |command| {
        command.env("COCODE_HOME", elsewhere.join("cocode"));
    });
    escape.holds(&[], |command| {
        command
            .env_remove("COCODE_HOME")
            .env("XDG_CONFIG_HOME", &elsewhere)
            .env("XDG_STATE_HOME", &elsewhere);
    });
    escape.holds(&[], |command| {
        command.env_remove("COCODE_HOME").env("HOME", &elsewhere);
    });

    // By a file of the command line.
    let file = home.user_file("given.toml", &escape.toml());
    let file = file.to_str().unwrap();
    escape.holds(&["--config", file], unchanged);
    let add = ["mcp", "--config", file, "add", "more", "--", "touch", mark];
    escape.run(&add, unchanged).with_code(6);

    // By a plugin, added there or before.
    home.user_file("plugin/.mcp.json", &escape.json());
    let plugin = home.home().join("plugin");
    let plugin = plugin.to_str().unwrap();
    escape
        .run(&["plugin", "add", plugin, "--yes"], unchanged)
        .with_code(6);
    home.run(["plugin", "add", plugin, "--yes"]).with_code(0);
    escape.holds(&[], unchanged);
    policy_names_the_file(&escape);
}

#[track_caller]
fn policy_names_the_file(escape: &Escape) {
    let (home, mark) = (&escape.home, escape.mark.as_str());
    let report = checked(&escape.system, home, &[], 0);
    assert_eq!(report["managedBy"], "/etc/cocode/managed-mcp.toml");
    checked(&escape.system, home, &["--", "touch", mark], 6);
}
