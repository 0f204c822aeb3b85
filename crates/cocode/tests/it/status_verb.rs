//! `cocode mcp status`: how all servers are, once, at a terminal, and for as long as somebody
//! watches.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use cocode_testkit::{Gate, Script};
use serde_json::Value;

use crate::harness::Finished;
use crate::home::Home;
use crate::interrupting::signal;
use crate::status::{entry, hostile};
use crate::terminal::{open, pseudo_terminal, watch};

#[track_caller]
fn server<'a>(report: &'a Value, name: &str) -> &'a Value {
    let servers = report["servers"].as_array().unwrap();
    let found = servers.iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {report}"))
}

#[test]
fn every_server_is_shown_in_its_state() {
    let home = Home::new();
    let good = Script::new().tools(3, 10).stdio();
    let modern = Script::modern().http();
    let closed = Script::new().on_http("POST").unauthorized(&[]).http();
    let trace = hostile(&home, &modern.url());
    let file = [
        entry("good", &good),
        "enabled_tools = ['tool-1']\n".to_owned(),
        format!("[mcp_servers.modern]\nurl = '{}'\n", modern.url()),
        format!("[mcp_servers.closed]\nurl = '{}'\n", closed.url()),
        "[mcp_servers.missing]\ncommand = 'no-such-program-here'\n".to_owned(),
        "[mcp_servers.off]\ncommand = 'true'\nenabled = false\n".to_owned(),
        "[mcp_servers.wrong]\ncommand = '${NO_SUCH_VARIABLE}'\n".to_owned(),
    ];
    home.user_file("mcp.toml", &file.concat());
    let finished = home.mcp(&["status", "--json"]).with_code(3);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    for (name, state) in [
        ("good", "ready"),
        ("modern", "ready"),
        ("closed", "needs-auth"),
        ("missing", "failed"),
        ("off", "disabled"),
        ("evil", "pending-trust"),
        ("wrong", "invalid"),
    ] {
        assert_eq!(server(&report, name)["state"], state, "{name}");
    }
    let good = server(&report, "good");
    assert_eq!(
        (&good["tools"], &good["hiddenTools"]),
        (&1.into(), &2.into())
    );
    assert_eq!(good["transport"], "stdio");
    assert!(good["readyMilliseconds"].is_u64());
    assert_eq!(server(&report, "modern")["era"], "modern");
    assert_eq!(server(&report, "closed")["error"]["code"], "auth-required");
    assert_eq!(server(&report, "missing")["error"]["code"], "spawn-failed");
    let shown = home.mcp(&["status"]).with_code(3);
    for part in [
        "LAST ERROR",
        "1 of 3",
        "is not in PATH",
        "cocode mcp trust evil",
    ] {
        assert!(shown.stdout.contains(part), "{}", shown.stdout);
    }
    assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.stdout);
    shown.complains(&["cocode mcp doctor missing"]);
    assert!(!trace.exists());
}

#[test]
fn the_exit_code_tells_what_is_missing() {
    let home = Home::new();
    let good = Script::new().stdio();
    let closed = Script::new().on_http("POST").unauthorized(&[]).http();
    hostile(&home, "http://127.0.0.1:1/mcp");
    let file = [
        entry("good", &good),
        format!("[mcp_servers.closed]\nurl = '{}'\n", closed.url()),
        "[mcp_servers.wrong]\ncommand = '${NO_SUCH_VARIABLE}'\n".to_owned(),
        "[mcp_servers.off]\ncommand = 'true'\nenabled = false\n".to_owned(),
    ];
    home.user_file("mcp.toml", &file.concat());
    for (names, code) in [
        (&["good"][..], 0),
        (&["good", "off"], 0),
        (&["closed", "good"], 4),
        (&["wrong"], 2),
        (&["good", "evil"], 6),
        (&["nobody"], 2),
        (&[], 4),
    ] {
        home.mcp(&[&["status"], names].concat()).with_code(code);
    }
    let required = format!(
        "{}{}required = true\n",
        entry("good", &good),
        "[mcp_servers.wrong]\ncommand = '${NO_SUCH_VARIABLE}'\n"
    );
    home.user_file("mcp.toml", &required);
    home.mcp(&["status"]).with_code(2);
}

#[test]
fn a_slow_server_is_given_up_after_the_time_that_is_asked_for() {
    let home = Home::new();
    let slow = Script::new()
        .on("initialize")
        .ignore()
        .on("server/discover")
        .ignore()
        .stdio();
    home.user_file("mcp.toml", &entry("slow", &slow));
    let words = ["status", "--timeout", "0.5", "--json"];
    let finished = home.mcp(&words).with_code(3);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(server(&report, "slow")["error"]["code"], "connect-timeout");
}

#[test]
fn at_a_terminal_the_table_is_drawn_in_place() {
    let home = Home::new();
    let gate = Gate::new();
    let held = Script::new()
        .on("initialize")
        .hold(&gate)
        .as_usual()
        .stdio();
    home.user_file("mcp.toml", &entry("held", &held));
    let (person, name) = pseudo_terminal();
    let mut command = home.command(["mcp", "status"]);
    command
        .stdin(open(&name))
        .stderr(open(&name))
        .stdout(open(&name));
    let mut child = command.spawn().unwrap();
    drop(command);
    let seeing = watch(
        person,
        vec![("starting", Box::new(move |_: &mut _| gate.open()))],
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let seen = seeing.join().unwrap();
    let (before, after) = seen.split_once("starting").unwrap();
    assert!(before.contains("NAME"), "{seen}");
    // The cursor goes up over what was there.
    assert!(
        after.contains("\u{1b}[2A") && after.contains("ready"),
        "{seen}"
    );
}

/// The lines of a program that watches, as they come.
pub(crate) struct Watched {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watched {
    pub(crate) fn start(home: &Home) -> Self {
        let mut command = home.command(["mcp", "status", "--watch", "--json"]);
        let spawned = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next event that is as wanted. The test runner ends a test that waits forever.
    #[track_caller]
    pub(crate) fn next(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it has ended");
            let event: Value = serde_json::from_str(&line).unwrap();
            if is_wanted(&event) {
                return event;
            }
        }
    }

    pub(crate) fn until_state(&mut self, name: &str, state: &str) -> Value {
        self.next(|event| {
            event["event"] == "state"
                && event["server"]["name"] == name
                && event["server"]["state"] == state
        })
    }
}

#[test]
fn who_watches_sees_states_and_changes_of_files_until_ctrl_c() {
    let home = Home::new();
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    home.user_file("mcp.toml", &entry("one", &one));
    let mut watched = Watched::start(&home);
    let ready = watched.until_state("one", "ready");
    assert_eq!(ready["server"]["tools"], 1);
    let both = format!("{}{}", entry("one", &one), entry("two", &two));
    home.user_file("mcp.toml", &both);
    watched.next(|event| event["changes"][0] == "server `two` is new");
    watched.until_state("two", "ready");
    // A bad edit changes nothing, and is said.
    home.user_file("mcp.toml", "[mcp_servers.one\n");
    let bad = watched.next(|event| event["event"] == "configuration");
    assert_eq!(bad["changes"], Value::Array(Vec::new()));
    assert_eq!(bad["kept"].as_array().unwrap().len(), 2, "{bad}");
    // So does one that is mended, and a server that is removed goes.
    home.user_file("mcp.toml", &entry("two", &two));
    let mended = watched.next(|event| event["changes"][0].is_string());
    assert_eq!(mended["changes"][0], "server `one` was removed");
    assert_eq!(one.runs().all().len(), 1);
    assert_eq!(two.runs().all().len(), 1);
    signal(&watched.child, "-INT");
    let finished = Finished::of(watched.child.wait_with_output().unwrap()).with_code(130);
    assert_eq!(finished.stderr, "");
}
