//! `cocode gateway`: started as a user would, and used by our own client.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use cocode_testkit::{Gate, Script};
use serde_json::Value;

use crate::harness::{Finished, mcp_at, mcp_by, program, start};
use crate::home::Home;
use crate::interrupting::signal;
use crate::status::{entry, hostile};

/// A gateway that runs, and what it says.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<Box<dyn Read + Send>>,
    /// The address of all servers.
    pub(crate) url: String,
    /// What it said first.
    pub(crate) first: Value,
}

impl Running {
    pub(crate) fn start(home: &Home, words: &[&str]) -> Self {
        let mut command = home.command(["gateway", "--listen", ":0", "--json"]);
        Self::of(command.args(words))
    }

    /// A command that is one, with its words.
    pub(crate) fn of(command: &mut std::process::Command) -> Self {
        let mut child = start(command);
        let said: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        let lines = BufReader::new(said);
        let mut running = Self {
            child,
            lines,
            url: String::new(),
            first: Value::Null,
        };
        let first = running.next(|_| true);
        assert_eq!(first["event"], "listening", "{first}");
        first["url"].as_str().unwrap().clone_into(&mut running.url);
        running.first = first;
        running
    }

    /// The next event that is as wanted. The test runner ends a test that waits forever.
    #[track_caller]
    pub(crate) fn next(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                let mut stderr = String::new();
                let said = self.child.stderr.as_mut().unwrap();
                said.read_to_string(&mut stderr).unwrap();
                panic!("it has ended: {stderr}");
            }
            let event: Value = serde_json::from_str(&line).unwrap();
            if is_wanted(&event) {
                return event;
            }
        }
    }

    #[track_caller]
    pub(crate) fn until_state(&mut self, name: &str, state: &str) -> Value {
        self.next(|event| {
            event["event"] == "state"
                && event["server"]["name"] == name
                && event["server"]["state"] == state
        })
    }

    /// Waits until all these servers are ready, in whatever order.
    #[track_caller]
    pub(crate) fn until_ready(&mut self, names: &[&str]) {
        let mut missing: BTreeSet<&str> = names.iter().copied().collect();
        while !missing.is_empty() {
            let event = self.next(|event| event["server"]["state"] == "ready");
            missing.remove(event["server"]["name"].as_str().unwrap());
        }
    }

    /// From now on somebody else reads what it says: all of it, to the end.
    pub(crate) fn overheard(&mut self) -> JoinHandle<String> {
        let nothing: Box<dyn Read + Send> = Box::new(std::io::empty());
        let mut lines = std::mem::replace(&mut self.lines, BufReader::new(nothing));
        std::thread::spawn(move || {
            let mut said = String::new();
            lines.read_to_string(&mut said).unwrap();
            said
        })
    }

    /// From now on somebody reads what it complains about: all of it, to the end.
    pub(crate) fn complaints(&mut self) -> JoinHandle<String> {
        let mut stderr = self.child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut said = String::new();
            stderr.read_to_string(&mut said).unwrap();
            said
        })
    }

    /// The address of all servers.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The address of one server.
    pub(crate) fn server(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    /// The token that it has created.
    #[track_caller]
    pub(crate) fn token(&self) -> String {
        let token = self.first["token"]["token"].as_str();
        token
            .unwrap_or_else(|| panic!("{}", self.first["event"]))
            .to_owned()
    }

    /// The names of the tools at an address.
    #[track_caller]
    pub(crate) fn tools(url: &str) -> Vec<String> {
        let listed = mcp_at(&["tools", "--json"], url).clean();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let tools = listed["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    /// What is said to somebody who asks for a page.
    fn get(&self, path: &str, host: &str) -> String {
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address.strip_suffix("/mcp").unwrap()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ends it by a signal, and gives its exit code and what it complained about.
    pub(crate) fn end(mut self, name: &str) -> (Option<i32>, String) {
        signal(&self.child, name);
        self.wait()
    }

    /// Waits until it has ended, and gives its exit code and what it complained about.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        let mut stderr = String::new();
        if let Some(said) = self.child.stderr.as_mut() {
            said.read_to_string(&mut stderr).unwrap();
        }
        (self.child.wait().unwrap().code(), stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a test that has failed leaves one behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

fn good() -> (Option<i32>, String) {
    (Some(0), String::new())
}

#[test]
fn with_nothing_configured_the_tools_of_the_workspace_are_served() {
    let home = Home::new();
    home.project_file("hello.txt", "good morning\n");
    let mut gateway = Running::start(&home, &[]);
    let ready = gateway.until_state("workspace", "ready");
    assert_eq!(ready["server"]["tools"], 4);
    assert_eq!(ready["url"], gateway.server("workspace"));
    let alone = gateway.server("workspace");
    assert_eq!(Running::tools(&alone), ["read", "list", "find", "grep"]);
    for protocol in ["modern", "legacy"] {
        let words = ["call", "read", "path=hello.txt", "--protocol", protocol];
        let read = mcp_at(&words, &alone).clean();
        assert!(read.contains("good morning"), "{read}");
    }
    let words = ["call", "mcp__workspace__grep", "pattern=morning"];
    let found = mcp_at(&words, &gateway.url).clean();
    assert!(found.contains("hello.txt"), "{found}");
    let outside = mcp_at(&["call", "read", "path=../home"], &alone).with_code(1);
    outside.complains(&["outside the workspace"]);
    assert_eq!(gateway.end("-TERM"), good());
}

#[test]
fn people_are_told_where_it_listens_and_what_to_paste() {
    let home = Home::new();
    let mut command = home.command(["gateway", "--listen", "localhost:0"]);
    let mut child = start(&mut command);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let first = next();
    let url = first.strip_prefix("listening at ").unwrap();
    let url = url.split(',').next().unwrap().to_owned();
    for part in [
        "claude mcp add",
        "codex mcp add",
        "mcpServers",
        "code --add-mcp",
    ] {
        let line = next();
        assert!(line.contains(part) && line.contains(&url), "{line}");
    }
    let dashboard = next();
    let address = url.strip_suffix("mcp").unwrap();
    let told = format!("dashboard at {address}, sign in with ");
    assert!(dashboard.starts_with(&told), "{dashboard}");
    let search = next();
    assert!(
        search.starts_with("tool search: auto (the default)"),
        "{search}"
    );
    let ready = next();
    assert!(ready.starts_with("workspace ready: modern"), "{ready}");
    signal(&child, "-INT");
    drop(lines);
    let finished = Finished::of(child.wait_with_output().unwrap()).with_code(0);
    finished.complains(&["no servers are configured", "built-in tools for"]);
}

#[test]
fn configured_servers_of_both_eras_are_served_alone_and_as_one() {
    let home = Home::new();
    let legacy = Script::new().stdio();
    let modern = Script::modern().http();
    let address = format!("[mcp_servers.modern]\nurl = '{}'\n", modern.url());
    home.user_file("mcp.toml", &(entry("legacy", &legacy) + &address));
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["legacy", "modern"]);
    let all = ["mcp__legacy__echo", "mcp__modern__echo"];
    for url in [gateway.server("legacy"), gateway.server("modern")] {
        assert_eq!(Running::tools(&url), ["echo"]);
        for protocol in ["modern", "legacy"] {
            let words = ["call", "echo", "text=hi", "--protocol", protocol];
            assert!(mcp_at(&words, &url).clean().contains("hi"));
        }
    }
    assert_eq!(Running::tools(&gateway.url), all);
    assert_eq!(legacy.runs().all().len(), 1, "everybody shares it");
    // The built-in tools are for those who have nothing else, or ask for them.
    mcp_at(&["tools"], &gateway.server("workspace")).with_code(3);
    assert_eq!(gateway.end("-INT"), good());
}

#[test]
fn the_built_in_tools_join_configured_servers_if_a_root_is_given() {
    let home = Home::new();
    let one = Script::new().stdio();
    home.user_file("mcp.toml", &entry("one", &one));
    let words = ["--root", "sub", "--allow-write", "--allow-shell"];
    let mut gateway = Running::start(&home, &words);
    let ready = gateway.until_state("workspace", "ready");
    assert_eq!(ready["server"]["tools"], 7);
    let words = ["call", "write", "path=new.txt", "content=text"];
    mcp_by(&gateway.token(), &words, &gateway.server("workspace")).with_code(0);
    let written = std::fs::read_to_string(home.project().join("sub/new.txt")).unwrap();
    assert_eq!(written, "text");
    let listed = mcp_by(&gateway.token(), &["tools"], &gateway.server("one"));
    assert!(listed.clean().starts_with("echo"));
    assert_eq!(gateway.end("-TERM"), good());
    let refused = home
        .run(["gateway", "--allow-write", "--json"])
        .with_code(2);
    assert_eq!(refused.error()["code"], "invalid-usage");
}

#[test]
fn changes_of_the_files_are_applied_while_it_runs() {
    let home = Home::new();
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    home.user_file("mcp.toml", &entry("one", &one));
    let mut gateway = Running::start(&home, &[]);
    gateway.until_state("one", "ready");
    home.user_file("mcp.toml", &(entry("one", &one) + &entry("two", &two)));
    gateway.next(|event| event["changes"][0] == "server `two` is new");
    gateway.until_state("two", "ready");
    assert_eq!(Running::tools(&gateway.server("two")), ["echo"]);
    // A bad edit changes nothing, and is said.
    home.user_file("mcp.toml", "[mcp_servers.one\n");
    let bad = gateway.next(|event| event["event"] == "configuration");
    assert_eq!(bad["kept"].as_array().unwrap().len(), 2, "{bad}");
    assert_eq!(Running::tools(&gateway.server("one")), ["echo"]);
    home.user_file("mcp.toml", &entry("two", &two));
    gateway.next(|event| event["changes"][0] == "server `one` was removed");
    let gone = mcp_at(&["tools"], &gateway.server("one")).with_code(3);
    gone.complains(&["no such endpoint"]);
    assert_eq!(Running::tools(&gateway.url), ["mcp__two__echo"]);
    assert_eq!(two.runs().all().len(), 1, "what stays is not started anew");
    assert_eq!(gateway.end("-TERM"), good());
}

#[test]
fn a_rule_hides_tools_and_counts_at_once() {
    let home = Home::new();
    let one = Script::new().tools(2, 10).stdio();
    home.user_file("mcp.toml", &entry("one", &one));
    home.user_file(
        "config.toml",
        "[permissions]\ndeny = ['mcp__one__tool-1']\n",
    );
    let mut gateway = Running::start(&home, &[]);
    let ready = gateway.until_state("one", "ready");
    let counts = (&ready["server"]["tools"], &ready["server"]["hiddenTools"]);
    assert_eq!(counts, (&1.into(), &1.into()));
    let alone = gateway.server("one");
    assert_eq!(Running::tools(&alone), ["tool-0"]);
    assert_eq!(Running::tools(&gateway.url), ["mcp__one__tool-0"]);
    let call = ["call", "tool-1", "--no-check"];
    mcp_at(&call, &alone).complains(&["Unknown tool"]);
    home.user_file("config.toml", "");
    gateway.until_state("one", "ready");
    assert_eq!(Running::tools(&alone), ["tool-0", "tool-1"]);
    mcp_at(&call, &alone).with_code(0);
    assert_eq!(gateway.end("-TERM"), good());
}

#[test]
fn servers_that_nobody_approved_are_not_started_and_that_is_said() {
    let home = Home::new();
    let one = Script::new().stdio();
    home.user_file("mcp.toml", &entry("one", &one));
    let trace = hostile(&home, "http://127.0.0.1:1/mcp");
    let mut gateway = Running::start(&home, &[]);
    let said = gateway.until_state("evil", "pending-trust");
    let reason = said["server"]["reason"].as_str().unwrap();
    assert!(reason.contains("cocode mcp trust evil"), "{reason}");
    assert_eq!(Running::tools(&gateway.url), ["mcp__one__echo"]);
    mcp_at(&["tools"], &gateway.server("evil")).with_code(3);
    assert_eq!(gateway.end("-TERM"), good());
    assert!(!trace.exists());
}

#[test]
fn how_servers_are_shared_is_said_and_why() {
    let asks = Script::new().on("notifications/initialized");
    let asks = asks.ask("roots/list", serde_json::json!({})).stdio();
    let (plain, own) = (Script::new().stdio(), Script::new().stdio());
    let home = Home::new();
    let own = format!("{}isolation = \"per-session\"\n", entry("own", &own));
    let entries = [entry("asks", &asks), own, entry("plain", &plain)];
    home.user_file("mcp.toml", &entries.concat());
    let mut running = Running::start(&home, &[]);
    for (name, sharing, reason) in [
        ("plain", "shared", Value::Null),
        (
            "own",
            "per-session",
            "its entry says `isolation = \"per-session\"`".into(),
        ),
        (
            "asks",
            "one-at-a-time",
            "it asks its clients for roots without saying which of them".into(),
        ),
    ] {
        // Events come in any order: each server is looked at by a gateway of its own.
        let mut only = Running::start(&home, &["--servers", name]);
        let event = only.next(|event| event["server"]["sharing"] == sharing);
        assert_eq!(event["server"]["name"], name, "{event}");
        assert_eq!(event["server"]["sharingReason"], reason, "{event}");
        assert_eq!(only.end("-TERM"), good());
    }
    let event = running.next(|event| event["server"]["sharing"] == "one-at-a-time");
    assert_eq!(event["server"]["name"], "asks");
    assert_eq!(running.end("-TERM"), good());
    // And to people.
    let mut command = home.command(["gateway", "--listen", ":0", "--servers", "asks"]);
    let mut child = start(&mut command);
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = said.map(Result::unwrap);
    let told = said.find(|line| line.contains("one-at-a-time because it asks its clients"));
    assert!(told.unwrap().starts_with("asks ready: "));
    signal(&child, "-TERM");
    drop(said);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_selection_is_named_on_the_command_line_or_in_a_profile() {
    let home = Home::new();
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    home.user_file("mcp.toml", &(entry("one", &one) + &entry("two", &two)));
    let profile = "[gateway.profiles.work]\nservers = ['two']\nprefix = 'never'\n";
    home.user_file("config.toml", profile);
    let mut gateway = Running::start(&home, &["--servers", "one"]);
    gateway.until_state("one", "ready");
    assert_eq!(Running::tools(&gateway.url), ["mcp__one__echo"]);
    assert_eq!(gateway.end("-TERM"), good());
    let mut gateway = Running::start(&home, &["--profile", "work"]);
    gateway.until_state("two", "ready");
    assert_eq!(Running::tools(&gateway.url), ["echo"]);
    mcp_at(&["tools"], &gateway.server("one")).with_code(3);
    assert_eq!(gateway.end("-TERM"), good());
    assert_eq!(one.runs().all().len(), 1);
    for (words, code, hint) in [
        (["--servers", "three"], "unknown-server", ""),
        (
            ["--profile", "wrok"],
            "invalid-usage",
            "did you mean `work`?",
        ),
    ] {
        let refused = home.run([&["gateway", "--json"], &words[..]].concat());
        let error = refused.with_code(2).error();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["hints"].to_string().contains(hint), "{error}");
    }
    let shown = home.json(&["config", "show"]);
    let settings = shown["settings"].as_array().unwrap();
    let shown = settings
        .iter()
        .find(|row| row["key"] == "gateway.profiles.work");
    assert_eq!(shown.unwrap()["value"]["servers"][0], "two");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let home = Home::new();
    let server = Script::new().stdio();
    home.user_file("mcp.toml", &entry("one", &server));
    let refused = |words: &[&str], parts: &[&str]| {
        let refused = home.run(["gateway"].iter().chain(words)).with_code(2);
        refused.complains(parts);
    };
    refused(
        &["--allow-origin", "foo"],
        &["'foo'", "https://example.com"],
    );
    refused(&["--allow-host", "http://foo/"], &["'http://foo/'"]);
    home.user_file(
        "config.toml",
        "[gateway]\nlisten = \"everywhere\"\n[gateway.profiles.review]\nservers = []\n",
    );
    refused(
        &[],
        &["config.toml:2", "nothing to listen at", "`--listen ADDR`"],
    );
    refused(
        &["--listen", ":0", "--profile", "other"],
        &["there is no profile `other`", "profiles: review"],
    );
    // What the command line says counts more, and what is wrong is said once.
    let mut running = Running::start(&home, &["--servers", " one, one"]);
    running.until_ready(&["one"]);
    let (code, told) = running.end("-TERM");
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told.matches("nothing to listen at").count(), 1, "{told}");
}

#[test]
fn who_wants_quiet_hears_only_where_it_listens() {
    let home = Home::new();
    let server = Script::new().stdio();
    home.user_file("mcp.toml", &entry("one", &server));
    let mut child = start(&mut home.command(["gateway", "--listen", ":0", "-q"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.starts_with("listening at http://"), "{first}");
    let url = first
        .split_whitespace()
        .nth(2)
        .unwrap()
        .trim_end_matches(',');
    // Until it is known of all servers how they are.
    assert_eq!(Running::tools(url), ["mcp__one__echo"]);
    signal(&child, "-TERM");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_name_that_two_servers_have_is_shown_once_and_that_is_said() {
    let home = Home::new();
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    home.user_file("mcp.toml", &(entry("one", &one) + &entry("two", &two)));
    let mut gateway = Running::start(&home, &["--prefix", "never"]);
    let said = gateway.next(|event| event["problems"][0].is_string());
    let said = said["problems"][0].as_str().unwrap();
    assert_eq!(
        said,
        "`echo` of server `two` is not shown at /mcp: `one` has one too"
    );
    assert_eq!(Running::tools(&gateway.url), ["echo"]);
    assert_eq!(gateway.end("-TERM"), good());
    let mut gateway = Running::start(&home, &["--prefix", "on-conflict"]);
    gateway.until_ready(&["one", "two"]);
    let both = ["mcp__one__echo", "mcp__two__echo"];
    assert_eq!(Running::tools(&gateway.url), both);
    assert_eq!(gateway.end("-TERM"), good());
}

#[test]
fn an_address_that_others_could_reach_is_refused() {
    let home = Home::new();
    let refused = home.run(["gateway", "--listen", "0.0.0.0:0", "--json"]);
    assert_eq!(refused.with_code(2).error()["code"], "listen-refused");
    home.user_file("config.toml", "[gateway]\nlisten = '[::]:7777'\n");
    let refused = home.run(["gateway"]).with_code(2);
    refused.complains(&["listen-refused", "config.toml:2", "ssh -L"]);
    assert_eq!(refused.stdout, "");
}

#[test]
fn a_port_that_is_taken_is_said_and_by_whom() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = home.run(["gateway", "--listen", &address]).with_code(2);
    refused.complains(&["address-in-use", &address, "--listen :0"]);
    if cfg!(target_os = "linux") {
        refused.complains(&[&format!("process {}", std::process::id())]);
    }
}

#[test]
fn requests_under_way_finish_before_the_end_and_no_process_is_left() {
    let home = Home::new();
    let gate = Gate::new();
    let script = Script::new().on("tools/call").hold(&gate);
    let one = script.text_result("late, but there").stdio();
    home.user_file("mcp.toml", &entry("one", &one));
    let mut gateway = Running::start(&home, &[]);
    let url = gateway.server("one");
    let mut caller = program(["mcp", "call", "echo", "--url", &url]);
    let caller = start(&mut caller);
    let received = one.received();
    received.wait_for_blocking(|message| message.is("tools/call"));
    signal(&gateway.child, "-TERM");
    gateway.next(|event| event["event"] == "ending");
    gate.open();
    let called = Finished::of(caller.wait_with_output().unwrap()).clean();
    assert!(called.contains("late, but there"), "{called}");
    assert_eq!(gateway.wait(), good());
    #[cfg(target_os = "linux")]
    assert!(!crate::interrupting::is_running(&one));
}

#[test]
fn clients_are_served_although_nobody_reads_what_it_says() {
    let home = Home::new();
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    home.user_file("mcp.toml", &entry("one", &one));
    let mut child = start(&mut home.command(["gateway", "--listen", ":0", "--json"]));
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    drop(lines);
    let first: Value = serde_json::from_str(&line).unwrap();
    let url = first["url"].as_str().unwrap();
    home.user_file("mcp.toml", &(entry("one", &one) + &entry("two", &two)));
    two.received()
        .wait_for_blocking(|message| message.is("tools/list"));
    assert_eq!(Running::tools(&format!("{url}/two")), ["echo"]);
    signal(&child, "-TERM");
    Finished::of(child.wait_with_output().unwrap()).clean();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let home = Home::new();
    let gate = Gate::new();
    let script = Script::new().on("tools/call").hold(&gate);
    let one = script.text_result("never").stdio();
    home.user_file("mcp.toml", &entry("one", &one));
    let mut gateway = Running::start(&home, &[]);
    let url = gateway.server("one");
    let mut caller = program(["mcp", "call", "echo", "--url", &url]);
    let mut caller = start(&mut caller);
    let received = one.received();
    received.wait_for_blocking(|message| message.is("tools/call"));
    signal(&gateway.child, "-TERM");
    gateway.next(|event| event["event"] == "ending");
    assert_eq!(gateway.end("-TERM").0, Some(143));
    assert_ne!(caller.wait().unwrap().code(), Some(0));
}

#[test]
fn pages_tell_what_is_there_to_those_who_call_it_by_its_name() {
    let home = Home::new();
    let mut gateway = Running::start(&home, &[]);
    gateway.until_state("workspace", "ready");
    let index = gateway.get("/", "localhost");
    assert!(index.starts_with("HTTP/1.1 200"), "{index}");
    assert!(index.contains("<!doctype html>"), "{index}");
    assert!(
        index.contains("content-security-policy: default-src 'none'"),
        "{index}"
    );
    let healthy = gateway.get("/healthz", "127.0.0.1");
    assert!(healthy.ends_with("\r\n\r\nok\n"), "{healthy}");
    assert!(
        gateway
            .get("/other", "localhost")
            .starts_with("HTTP/1.1 404")
    );
    let nowhere = gateway.get("/mcp/nope", "localhost");
    assert!(nowhere.starts_with("HTTP/1.1 404"), "{nowhere}");
    assert!(nowhere.contains("there is one for workspace"), "{nowhere}");
    let plain = gateway.get("/mcp", "localhost");
    assert!(plain.starts_with("HTTP/1.1 405"), "{plain}");
    assert!(plain.contains("sent here by POST"), "{plain}");
    let foreign = gateway.get("/mcp/nope", "evil.example");
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    assert!(!foreign.contains("workspace"), "{foreign}");
    let foreign = gateway.get("/", "evil.example");
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    assert_eq!(gateway.end("-TERM"), good());
    // Whoever gives it the name of somebody else means that others come.
    let words = ["gateway", "--listen", ":0", "--allow-host", "my.example"];
    let refused = home.run(words).with_code(2);
    refused.complains(&["listen-refused", "--allow-host my.example", "token add"]);
    home.run(["gateway", "token", "add", "ana"]).with_code(0);
    let gateway = Running::start(&home, &["--allow-host", "my.example"]);
    let named = gateway.get("/healthz", "my.example");
    assert!(named.starts_with("HTTP/1.1 200"), "{named}");
    assert_eq!(gateway.end("-TERM"), good());
}

#[test]
fn with_a_certificate_it_speaks_tls() {
    let home = Home::new();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    home.user_file("cert.pem", &made.cert.pem());
    home.user_file("key.pem", &made.signing_key.serialize_pem());
    let settings = "[gateway]\ntls_certificate = 'cert.pem'\ntls_key = 'key.pem'\n";
    home.user_file("config.toml", settings);
    let mut gateway = Running::start(&home, &[]);
    gateway.until_state("workspace", "ready");
    assert!(
        gateway.url.starts_with("https://127.0.0.1:"),
        "{}",
        gateway.url
    );
    let mut ping = program(["mcp", "ping", "--url", &gateway.url]);
    ping.env("COCODE_CA_FILE", home.home().join("cert.pem"));
    Finished::of(ping.stdout(Stdio::piped()).output().unwrap()).with_code(0);
    mcp_at(&["ping"], &gateway.url).with_code(3);
    assert_eq!(gateway.end("-TERM"), good());
    home.user_file("config.toml", "[gateway]\ntls_key = 'key.pem'\n");
    let refused = home.run(["gateway", "--listen", ":0", "--json"]);
    assert_eq!(refused.with_code(2).error()["code"], "invalid-config");
}

#[test]
fn other_tools_are_told_of_a_gateway() {
    let home = Home::new();
    let url = "http://127.0.0.1:7777/mcp";
    let lines = home.mcp(&["export", "--gateway", url]).clean();
    assert_eq!(lines.lines().count(), 4);
    assert!(lines.lines().all(|line| line.contains(url)), "{lines}");
    let paste = home
        .mcp(&["export", "cursor", "--gateway", url])
        .with_code(0);
    let pasted: Value = serde_json::from_str(&paste.stdout).unwrap();
    assert_eq!(pasted["mcpServers"]["cocode"]["url"], url, "{pasted}");
    let paste = home
        .mcp(&["export", "codex", "--gateway", url])
        .with_code(0);
    assert!(paste.stdout.contains("[mcp_servers.cocode]"), "{paste:?}");
    paste.complains(&["codex mcp add cocode"]);
    // Nothing was written until now, and what is written is what was shown.
    let file = home.project().join("their.toml");
    let words = ["export", "codex", "--gateway", url, "--file", "their.toml"];
    home.mcp(&words).with_code(0);
    assert!(!file.exists());
    home.mcp(&[&words[..], &["--write"]].concat()).with_code(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), paste.stdout);
    let wrong = home.mcp(&["export", "--gateway", "127.0.0.1:7777", "--json"]);
    assert_eq!(wrong.with_code(2).error()["code"], "invalid-usage");
}

#[test]
fn printed_addresses_are_percent_encoded() {
    let home = Home::new();
    let server = Script::new().stdio();
    let entry = entry("odd", &server).replace("mcp_servers.odd", "mcp_servers.\"odd name\"");
    home.user_file("mcp.toml", &entry);
    let mut gateway = Running::start(&home, &[]);
    let ready = gateway.until_state("odd name", "ready");
    let url = ready["url"].as_str().unwrap();
    assert!(url.ends_with("/mcp/odd%20name"), "{url}");
    assert_eq!(Running::tools(url), ["echo"]);
}
