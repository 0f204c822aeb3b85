//! How the daemon is found, and what those who are not served by it do to it.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use cocode_testkit::Script;
use serde_json::{Value, json};

use crate::fronts::{Client, Site, is_alive, wait_while};
use crate::harness::Finished;
use crate::status::entry;

const ONE: &[&str] = &["--server", "one"];

#[test]
fn whoever_only_asks_ends_no_daemon_of_another_build() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let daemon = site.daemon();
    assert_eq!(front.leave().0, Some(0));
    wait_while(|| site.status()["fronts"] != json!([]));
    let socket = site.status()["socket"].as_str().map(PathBuf::from).unwrap();
    let say = |wants: &Value| -> Value {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let hello = json!({"channel": 1, "build": "another", "wants": wants});
        stream.write_all(format!("{hello}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    for ask in ["status", "watch"] {
        let refused = say(&json!({"control": ask}));
        assert_eq!(refused["refused"], json!("other-build"), "{refused}");
    }
    assert_eq!(site.daemon(), daemon);
    // A front is served by its own, whatever else its build may say.
    let refused = say(&json!({"front": {"unheard": "of"}}));
    assert_eq!(refused["refused"], json!("stepping-aside"), "{refused}");
    wait_while(|| is_alive(daemon));
}

#[test]
fn nobody_connects_where_others_could_have_put_another_socket() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let runtime = site.home.home().join("runtime");
    let directory = runtime.join("cocode");
    std::fs::create_dir_all(&directory).unwrap();
    let protect = |mode| std::fs::set_permissions(&directory, Permissions::from_mode(mode));
    protect(0o700).unwrap();
    let front = || Client::start(site.command(ONE).env("XDG_RUNTIME_DIR", &runtime));
    let mut first = front();
    first.open(&json!({}));
    assert_eq!(first.call(1, "echo"), r#"{"n":1}"#);
    protect(0o777).unwrap();
    let mut second = front();
    second.open(&json!({}));
    assert_eq!(server.runs().all(), [1, 2], "it does not share");
    let (code, told) = second.leave();
    assert_eq!(code, Some(0));
    assert!(told.contains("can be changed by other users"), "{told}");
    protect(0o700).unwrap();
    let mut third = front();
    third.open(&json!({}));
    assert_eq!(third.leave(), (Some(0), String::new()));
    assert_eq!(server.runs().all(), [1, 2]);
    // It would start another daemon.
    drop(first);
    let mut stop = site.home.command(["mcp", "daemon", "stop"]);
    let stopped = stop.env("XDG_RUNTIME_DIR", &runtime).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn a_home_that_is_given_from_here_is_the_same_to_the_daemon() {
    let server = Script::new().stdio();
    let site = Site::new("");
    let own = site
        .home
        .project_file("own/mcp.toml", &entry("one", &server));
    let there = |words: &[&str]| {
        let mut command = site.home.command(words);
        command.env("COCODE_HOME", "own");
        command
    };
    let mut front = Client::start(&mut there(&["mcp", "serve", "--server", "one"]));
    front.open(&json!({}));
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    let status = Finished::of(
        there(&["mcp", "daemon", "status", "--json"])
            .output()
            .unwrap(),
    );
    let status: Value = serde_json::from_str(&status.with_code(0).stdout).unwrap();
    assert_eq!(
        status["fronts"][0]["pid"],
        json!(front.child().id()),
        "{status}"
    );
    let log = own
        .parent()
        .map(|own| own.join("state/daemon.log"))
        .unwrap();
    assert!(log.exists());
    assert!(!Path::new("/own").exists(), "another home was made");
    assert_eq!(front.leave(), (Some(0), String::new()));
    Finished::of(there(&["mcp", "daemon", "stop"]).output().unwrap()).with_code(0);
}

#[test]
fn built_in_tools_are_served_on_stdio_as_by_the_gateway() {
    let tools = |words: &[&str]| {
        let site = Site::new("");
        std::fs::write(site.home.project().join("note.txt"), "hello").unwrap();
        let mut front = site.front(words);
        front.open(&json!({}));
        let listed = front.ask(2, "tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let call = json!({"name": "mcp__workspace__read", "arguments": {"path": "note.txt"}});
        let read = front.ask(3, "tools/call", &call);
        assert!(read.to_string().contains("hello"), "{read}");
        names
    };
    let has = |names: &[String], tool: &str| names.contains(&format!("mcp__workspace__{tool}"));
    for more in [&[][..], &["--standalone"]] {
        let read_only = tools(more);
        assert!(has(&read_only, "read"), "{read_only:?}");
        assert!(
            !has(&read_only, "write") && !has(&read_only, "shell"),
            "{read_only:?}"
        );
        let mut words = vec!["--root", ".", "--allow-write", "--allow-shell"];
        words.extend(more);
        let all = tools(&words);
        assert!(has(&all, "write") && has(&all, "shell"), "{all:?}");
    }
    // Beside servers they are served if that is wanted.
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut refused = site.command(&["--allow-write"]);
    let refused = crate::harness::Finished::of(refused.output().unwrap());
    refused
        .with_code(2)
        .complains(&["`--root DIR` serves them as well"]);
    let mut front = site.front(&["--root", "."]);
    front.open(&json!({}));
    front.skip_notifications();
    let listed = front.ask(2, "tools/list", &json!({})).to_string();
    assert!(listed.contains("mcp__one__echo"), "{listed}");
    assert!(listed.contains("mcp__workspace__read"), "{listed}");
}
