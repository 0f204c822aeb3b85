//! Rules for tools: written, listed, tested, asked about, and obeyed.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use cocode_testkit::{Script, StdioServer};
use serde_json::json;

use crate::harness::{Finished, with_system_files};
use crate::home::Home;
use crate::terminal::{Reaction, open, pseudo_terminal, watch};

/// A server that says of one tool that it changes nothing.
fn server() -> StdioServer {
    Script::new()
        .on("tools/list")
        .result(
            r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"change","inputSchema":{"type":"object"}}]}"#,
        )
        .on("tools/call")
        .text_result("done")
        .stdio()
}

/// Configures the server under a name, for the user.
fn add(home: &Home, name: &str, server: &StdioServer) {
    let mut command = home.command(["mcp", "add", name, "--scope", "user", "--"]);
    command.arg(server.program()).args(server.args());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Runs a command at a terminal where this is typed once it asks. Gives the exit code, stdout, and
/// what was seen.
pub(crate) fn asked(mut command: Command, typed: &'static str) -> (Option<i32>, String, String) {
    let (person, name) = pseudo_terminal();
    command
        .stdin(open(&name))
        .stderr(open(&name))
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(command);
    let reaction: Reaction = Box::new(move |person| {
        person.write_all(typed.as_bytes()).unwrap();
    });
    let seeing = watch(person, vec![("[n] ", reaction)]);
    let mut stdout = String::new();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_to_string(&mut stdout).unwrap();
    let status = child.wait().unwrap();
    (status.code(), stdout, seeing.join().unwrap())
}

#[test]
fn rules_are_listed_in_the_order_in_which_they_decide() {
    let home = Home::new();
    home.run(["permissions", "allow", "mcp__a__*"]).with_code(0);
    home.run(["permissions", "ask", "mcp__*", "--read-only", "false"])
        .with_code(0);
    home.run([
        "permissions",
        "deny",
        "mcp__a__delete_*",
        "--scope",
        "project",
    ])
    .with_code(0);
    let listing = home.json(&["permissions", "list"]);
    let rules: Vec<_> = listing["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| {
            let file = rule["file"].as_str().unwrap().rsplit('/').next().unwrap();
            (
                rule["kind"].as_str().unwrap(),
                rule["rule"].as_str().unwrap(),
                rule["scope"].as_str().unwrap(),
                file,
                rule["line"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        rules,
        [
            ("deny", "mcp__a__delete_*", "project", "config.toml", 2),
            ("ask", "mcp__*", "user", "config.toml", 3),
            ("allow", "mcp__a__*", "user", "config.toml", 2),
        ]
    );
    assert_eq!(listing["rules"][1]["readOnly"], json!(false));
    assert_eq!(
        listing["defaults"],
        json!([{"verdict": "allow", "organization": false}])
    );
    // What we wrote into the work tree needs no approval.
    assert_eq!(listing["pendingFiles"], json!([]));
}

#[test]
fn a_settings_file_that_came_with_the_work_tree_is_not_added_to_unseen() {
    let home = Home::new();
    let text = "[permissions]\nallow = [\"mcp__*\"]\n";
    let file = home.project_file(".cocode/config.toml", text);
    let words = ["permissions", "deny", "mcp__x", "--scope", "project"];
    let refused = home.run(words.iter().chain(&["--json"])).with_code(6);
    assert_eq!(refused.error()["code"], "pending-trust");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    home.mcp(&["trust", "--yes", "config.toml"]).with_code(0);
    home.run(words).with_code(0);
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["pendingFiles"], json!([]));
    assert_eq!(listing["rules"].as_array().unwrap().len(), 2);
}

#[test]
fn what_somebody_else_writes_meanwhile_is_not_approved_along_with_a_rule() {
    let home = Home::new();
    let words = ["permissions", "deny", "mcp__x", "--scope", "project"];
    home.run(words).with_code(0);
    let file = home.project().join(".cocode/config.toml");
    let locks = home.home().join("state/locks");
    let context = cocode_config::EditContext::new(&locks);
    let child = cocode_config::with_lock(&context, &file, || {
        let words = ["permissions", "deny", "mcp__y", "--scope", "project"];
        let mut command = home.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It has read the configuration as soon as it holds the lock's file in its hands.
        let open = format!("/proc/{}/fd", child.id());
        let has_lock = || {
            let mut open = std::fs::read_dir(&open).unwrap();
            open.any(|one| {
                let target = std::fs::read_link(one.unwrap().path());
                target.is_ok_and(|target| target.starts_with(&locks))
            })
        };
        while !has_lock() {
            assert_eq!(child.try_wait().unwrap(), None, "it should wait");
            std::thread::yield_now();
        }
        let text = "[permissions]\nallow = [\"mcp__*\"]\n";
        std::fs::write(&file, text).unwrap();
        Ok::<_, cocode_config::LockError>(child)
    });
    let output = child.unwrap().wait_with_output().unwrap();
    let finished = Finished::of(output).with_code(0);
    finished.complains(&["changed by somebody else", "cocode mcp trust config.toml"]);
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("mcp__y"), "{written}");
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["pendingFiles"].as_array().unwrap().len(), 1);
}

#[test]
fn rules_are_checked_before_they_are_written_and_taken_back() {
    let home = Home::new();
    for bad in ["", "mcp__", "mcp__a__", " x"] {
        home.run(["permissions", "allow", bad]).with_code(2);
    }
    assert!(!home.home().join("config.toml").exists());
    home.run(["permissions", "deny", "mcp__a__b", "--destructive"])
        .with_code(0);
    home.run(["permissions", "remove", "mcp__a__b"])
        .with_code(2);
    home.run(["permissions", "remove", "mcp__a__b", "--destructive"])
        .with_code(0);
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["rules"], json!([]));
}

#[test]
fn a_rule_that_a_stricter_one_defeats_is_said_so() {
    let home = Home::new();
    add(&home, "a", &server());
    home.run(["permissions", "deny", "mcp__a__b"]).clean();
    let finished = home.run(["permissions", "allow", "mcp__a__b"]).with_code(0);
    finished.complains(&["under `deny` too", "config.toml:2"]);
}

#[test]
fn a_test_names_the_rule_and_knows_configured_names() {
    let home = Home::new();
    let server = server();
    add(&home, "a__b", &server);
    home.run(["permissions", "deny", "mcp__a__b__look"])
        .with_code(0);
    let tested = home.json(&["permissions", "test", "mcp__a__b__look"]);
    assert_eq!(tested["verdict"], "deny");
    assert_eq!(tested["server"], "a__b");
    assert_eq!(tested["rule"], "mcp__a__b__look");
    assert_eq!(tested["line"], 2);
    let tested = home.json(&["permissions", "test", "mcp__c__d__e"]);
    assert_eq!(tested["verdict"], "allow");
    assert_eq!(tested["server"], "c");
    let shown = home.run(["permissions", "test", "mcp__a__b__look"]);
    assert!(shown.with_code(0).stdout.starts_with("deny: "));
    home.run(["permissions", "test", "mcp__nothing"])
        .with_code(2);
}

#[test]
fn annotations_are_conditions() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    home.run(["permissions", "deny", "mcp__s__*", "--read-only", "false"])
        .with_code(0);
    let looked = home.mcp(&["call", "s", "look"]).with_code(0);
    assert_eq!(looked.stdout, "done\n");
    let refused = home.mcp(&["call", "s", "change", "--json"]).with_code(6);
    assert_eq!(refused.error()["code"], "permission-denied");
    let tools = home.mcp(&["tools", "s"]).with_code(0).stdout;
    assert!(
        tools.contains("look") && !tools.contains("change"),
        "{tools}"
    );
    let as_if = ["permissions", "test", "mcp__s__new", "--read-only"];
    assert_eq!(home.json(&as_if)["verdict"], "allow");
    assert_eq!(home.json(&as_if[..3])["verdict"], "deny");
}

#[test]
fn without_a_terminal_to_ask_means_to_deny() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    home.run(["permissions", "ask", "mcp__s__*"]).with_code(0);
    let refused = home.mcp(&["call", "s", "look", "--json"]).with_code(6);
    assert_eq!(refused.error()["code"], "permission-denied");
    refused.complains(&[
        "cocode permissions allow 'mcp__s__look'",
        "ask rules are stronger",
        "the ask rule `mcp__s__*` in ",
        "config.toml:2",
    ]);
    // What the hint says does help.
    home.run(["permissions", "allow", "mcp__s__look"])
        .with_code(0);
    home.mcp(&["call", "s", "look"]).with_code(6);
    home.run(["permissions", "remove", "mcp__s__*"])
        .with_code(0);
    home.mcp(&["call", "s", "look"]).with_code(0);
}

#[test]
fn a_default_to_ask_needs_an_allow_rule_without_a_terminal() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    home.user_file("config.toml", "[permissions]\ndefault = \"ask\"\n");
    let refused = home.mcp(&["call", "s", "look"]).with_code(6);
    refused.complains(&["cocode permissions allow 'mcp__s__look'"]);
    assert!(!refused.stderr.contains("stronger"), "{}", refused.stderr);
    home.run(["permissions", "allow", "mcp__s__look"])
        .with_code(0);
    home.mcp(&["call", "s", "look"]).with_code(0);
}

#[test]
fn a_rule_that_could_match_nothing_is_refused_and_a_dotted_one_understood() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    add(&home, "s.t", &server);
    let refused = home.run(["permissions", "deny", "look", "--json"]);
    let refused = refused.with_code(2);
    assert_eq!(refused.error()["code"], "invalid-usage");
    refused.complains(&["mcp__*__look"]);
    assert!(!home.home().join("config.toml").exists());
    let written = home.json(&["permissions", "deny", "s.lo*"]);
    assert_eq!(written["rule"], "mcp__s__lo*");
    let written = home.json(&["permissions", "ask", "s.t.look"]);
    assert_eq!(written["rule"], "mcp__s.t__look");
    home.mcp(&["call", "s", "look"]).with_code(6);
    home.run(["permissions", "remove", "s.lo*"]).with_code(0);
    home.mcp(&["call", "s", "look"]).with_code(0);
    home.run(["permissions", "deny", "mcp__s.u__*"])
        .with_code(0)
        .complains(&["no server `s.u` is configured", "did you mean", "`s.t`"]);
    // What somebody wrote by hand can still be taken back.
    home.user_file("config.toml", "[permissions]\ndeny = [\"s.look\", \"x\"]\n");
    home.run(["permissions", "remove", "x"]).with_code(0);
    home.run(["permissions", "remove", "s.look"]).with_code(0);
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["rules"], json!([]));
}

#[test]
fn a_test_wants_the_full_name_of_a_tool() {
    let home = Home::new();
    let refused = home.run(["permissions", "test", "write_file"]).with_code(2);
    refused.complains(&["not the full name", "mcp__SERVER__write_file"]);
    let tested = home.json(&["permissions", "test", "shell"]);
    assert_eq!(tested["verdict"], "allow");
}

#[test]
fn help_names_the_files_that_rules_are_written_to() {
    let home = Home::new();
    for (scope, file) in [
        ("local", ".cocode/config.local.toml"),
        ("project", ".cocode/config.toml"),
        ("user", "config.toml"),
    ] {
        let help = home.run(["permissions", "deny", "--help"]).with_code(0);
        let line = help.stdout.lines().find(|line| {
            let line = line.trim_start().trim_start_matches("- ");
            line.starts_with(scope) && line.contains(':')
        });
        assert!(line.unwrap().ends_with(file), "{}", help.stdout);
        let written = home.json(&["permissions", "deny", "mcp__*", "--scope", scope]);
        assert!(written["file"].as_str().unwrap().ends_with(file));
    }
}

#[test]
fn something_broken_is_no_rule_of_the_user() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    home.user_file(
        "config.toml",
        "[permissions]\ndefault = \"alow\"\nallow = [\"*\"]\n",
    );
    let refused = home.mcp(&["call", "s", "look"]).with_code(6);
    refused.complains(&["is broken in", "config.toml:2", "cocode config check"]);
    assert!(!refused.stderr.contains("your rule"), "{}", refused.stderr);
    let tested = home.json(&["permissions", "test", "mcp__s__look"]);
    assert_eq!(tested["verdict"], "ask");
    assert_eq!(tested["broken"], json!(true));
    assert_eq!(tested["rule"], json!(null));
    assert_eq!(tested["line"], 2);
    let listing = home.json(&["permissions", "list"]);
    let rules = listing["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1, "{listing}");
    assert_eq!(rules[0]["kind"], "allow");
    assert_eq!(listing["brokenPlaces"][0]["line"], 2);
    let table = home.run(["permissions", "list"]).with_code(0).stdout;
    let line = table.lines().find(|line| line.contains("config.toml:2"));
    let line = line.unwrap();
    assert!(line.contains("(every tool)"), "{table}");
    assert!(!line.contains("yours"), "{table}");
}

#[test]
fn rules_of_a_file_that_is_not_approved_are_the_projects() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    home.project_file(
        ".cocode/config.toml",
        "[permissions]\ndefault = \"ask\"\ndeny = [\"mcp__s__look\"]\n",
    );
    let whose = || {
        let table = home.run(["permissions", "list"]).with_code(0).stdout;
        let lines = table.lines().filter(|line| line.contains("(project)"));
        let whose = lines.map(|line| line.contains("the project's"));
        whose.collect::<Vec<_>>()
    };
    assert_eq!(whose(), [true, true]);
    let refused = home.mcp(&["call", "s", "look"]).with_code(6);
    refused.complains(&["denied because of the project's rule `mcp__s__look`"]);
    let refused = home.mcp(&["call", "s", "change"]).with_code(6);
    refused.complains(&["the project's default is to ask"]);
    home.mcp(&["trust", "--yes", "config.toml"]).with_code(0);
    assert_eq!(whose(), [false, false]);
}

#[test]
fn answers_at_the_terminal_hold_once_or_for_good() {
    for (typed, code, later) in [
        ("y\n", 0, "ask"),
        ("n\n", 6, "ask"),
        ("a\n", 0, "allow"),
        ("never\n", 6, "deny"),
    ] {
        // Also for a server whose name could be read as a server and a tool.
        for name in ["s", "odd__name"] {
            let home = Home::new();
            let server = server();
            add(&home, name, &server);
            home.run(["permissions", "ask", "*"]).with_code(0);
            let (found, stdout, seen) = asked(home.command(["mcp", "call", name, "look"]), typed);
            assert_eq!(found, Some(code), "{typed:?}: {seen}");
            assert_eq!(stdout == "done\n", code == 0, "{typed:?}: {stdout}");
            let full = format!("mcp__{name}__look");
            let tested = home.json(&["permissions", "test", &full]);
            assert_eq!(tested["verdict"], later, "{typed:?} {name}: {tested}");
            home.run(["config", "check"]).with_code(0);
            if later == "allow" {
                home.mcp(&["call", name, "look"]).with_code(0);
            } else {
                home.mcp(&["call", name, "look"]).with_code(6);
            }
            let remembered = home.json(&["permissions", "list"])["remembered"].clone();
            let n_remembered = usize::from(later != "ask");
            assert_eq!(remembered.as_array().unwrap().len(), n_remembered);
            let forgotten = home.json(&["permissions", "forget", &full]);
            assert_eq!(forgotten["changed"], json!(later != "ask"));
            let tested = home.json(&["permissions", "test", &full]);
            assert_eq!(tested["verdict"], "ask", "{tested}");
        }
    }
}

#[test]
fn all_answers_can_be_forgotten_at_once() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[permissions]\nask = [\"*\"]\n\n[permissions.remembered]\nmcp__a__b = \"allow\"\n\n\
         [permissions.remembered.c__d]\ne = \"deny\"\n",
    );
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["remembered"].as_array().unwrap().len(), 2);
    assert_eq!(
        home.json(&["permissions", "forget"])["changed"],
        json!(true)
    );
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["remembered"], json!([]));
    assert_eq!(listing["rules"].as_array().unwrap().len(), 1);
}

#[test]
fn answers_about_a_server_without_a_name_hold_once() {
    let home = Home::new();
    home.run(["permissions", "ask", "*"]).with_code(0);
    let server = server();
    let mut command = home.command(["mcp", "call", "look", "--"]);
    command.arg(server.program()).args(server.args());
    let (code, _, seen) = asked(command, "a\n");
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("counts once"), "{seen}");
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["remembered"], json!([]));
}

#[test]
fn answers_about_a_server_of_a_work_tree_hold_once() {
    let home = Home::new();
    home.run(["permissions", "ask", "*"]).with_code(0);
    let server = server();
    let mut command = home.command(["mcp", "add", "s", "--scope", "local", "--"]);
    command.arg(server.program()).args(server.args());
    assert!(command.output().unwrap().status.success());
    let (code, _, seen) = asked(home.command(["mcp", "call", "s", "look"]), "a\n");
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("counts once"), "{seen}");
    let listing = home.json(&["permissions", "list"]);
    assert_eq!(listing["remembered"], json!([]));
    // What was answered about another server of this name does not count either.
    home.user_file(
        "config.toml",
        "[permissions]\nask = [\"*\"]\n\n[permissions.remembered]\nmcp__s__look = \"allow\"\n",
    );
    home.mcp(&["call", "s", "look"]).with_code(6);
    let tested = home.json(&["permissions", "test", "mcp__s__look"]);
    assert_eq!(tested["verdict"], "ask", "{tested}");
    home.mcp(&["remove", "s", "--scope", "local"]).with_code(0);
    add(&home, "s", &server);
    home.mcp(&["call", "s", "look"]).with_code(0);
}

#[test]
fn system_a_broken_rule_of_the_organization_denies() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    let settings = "[permissions]\ndefault = \"deny\"\nallow = [\"mcp__s__*\"]\nakss = []\n";
    let system = with_system_files(&[("config.toml", settings)]);
    let call = system.command(&home.command(["mcp", "call", "s", "look"]));
    let (code, stdout, seen) = asked(call, "y\n");
    assert_eq!((code, stdout.as_str()), (Some(6), ""), "{seen}");
    assert!(seen.contains("/etc/cocode/config.toml:4"), "{seen}");
}

#[test]
fn system_what_the_organization_wants_asked_is_asked_every_time() {
    let home = Home::new();
    let server = server();
    add(&home, "s", &server);
    let policy = "[permissions]\nask = [\"mcp__s__*\"]\n";
    let system = with_system_files(&[("policy.toml", policy)]);
    let call = || system.command(&home.command(["mcp", "call", "s", "look"]));
    for _ in 0..2 {
        let (code, stdout, seen) = asked(call(), "a\n");
        assert_eq!((code, stdout.as_str()), (Some(0), "done\n"), "{seen}");
        assert!(seen.contains("asked every time"), "{seen}");
    }
    assert!(!home.home().join("config.toml").exists());
    home.run(["permissions", "allow", "*"]).with_code(0);
    let tested = system.run(&home.command(["permissions", "test", "mcp__s__look", "--json"]));
    let tested: serde_json::Value = serde_json::from_str(&tested.with_code(0).stdout).unwrap();
    assert_eq!(tested["verdict"], "ask");
    assert_eq!(tested["organization"], json!(true));
    assert_eq!(tested["file"], "/etc/cocode/policy.toml");
    assert_eq!(tested["line"], 2);
    let refused = Command::output(&mut call()).unwrap();
    assert_eq!(refused.status.code(), Some(6));
}
