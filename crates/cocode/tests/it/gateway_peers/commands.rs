//! Clients that are commands: the Inspector, and the one of `FastMCP`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::tours::{
    EVERYTHING_PROMPTS, PYTHON_PROMPT, PYTHON_RESOURCE, PYTHON_TOOLS, all_everything_tools,
    among_others, everything_tools,
};
use super::{EVERYTHING, NODE, PYTHON, Peers, each, installed, printed, text};
use crate::harness::{Finished, start};

/// What both are asked to add.
const SUM: &str = "The sum of 2 and 40 is 42.";

pub(crate) const INSPECTOR: &str =
    "clients/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// What the Inspector prints about an address.
#[track_caller]
fn inspect(peers: &Peers, path: &str, words: &[&str]) -> Value {
    let mut command = peers.client(NODE);
    command
        .arg(installed(INSPECTOR))
        .arg("--cli")
        .arg(peers.url(path));
    printed(Finished::of(command.args(words).output().unwrap()))
}

/// What `FastMCP` prints about an address.
#[track_caller]
fn fastmcp(peers: &Peers, verb: &str, path: &str, words: &[&str]) -> Value {
    let mut command = peers.client("python/bin/fastmcp");
    command
        .env("FASTMCP_CHECK_FOR_UPDATES", "off")
        .arg(verb)
        .arg(peers.url(path));
    let command = command.args(words).arg("--json");
    printed(Finished::of(command.output().unwrap()))
}

fn all_tools() -> Vec<String> {
    let everything = all_everything_tools();
    let everything = everything
        .into_iter()
        .map(|name| among_others(EVERYTHING, name));
    let python = PYTHON_TOOLS.map(|name| among_others(PYTHON, name));
    everything.chain(python).collect()
}

#[test]
fn the_inspector_uses_all_servers_in_either_era() {
    let peers = Peers::start();
    let sum = among_others(EVERYTHING, "get-sum");
    for era in ["legacy", "auto", "modern"] {
        let how = ["--transport", "http", "--protocol-era", era, "--method"];
        let inspect = |words: &[&str]| inspect(&peers, "/mcp", &[&how[..], words].concat());
        let listed = inspect(&["tools/list"]);
        assert_eq!(each(&listed["tools"], "name"), all_tools(), "{era}");
        let arguments = json!({ "a": 2, "b": 40 }).to_string();
        let words = ["--tool-name", &sum, "--tool-args-json", &arguments];
        let called = inspect(&[&["tools/call"], &words[..]].concat());
        assert_eq!(text(&called), SUM, "{era}");
        let read = inspect(&["resources/read", "--uri", PYTHON_RESOURCE]);
        let greeting = &read["contents"][0]["text"];
        assert_eq!(*greeting, "hello from python", "{era}");
    }
    peers.end();
}

#[test]
fn the_inspector_uses_one_server() {
    let peers = Peers::start();
    let path = format!("/mcp/{PYTHON}");
    for era in ["legacy", "modern"] {
        let how = ["--transport", "http", "--protocol-era", era, "--method"];
        let inspect = |words: &[&str]| inspect(&peers, &path, &[&how[..], words].concat());
        // It also judges the schemas of tools.
        let listed = inspect(&["tools/list", "--strict"]);
        assert_eq!(each(&listed["tools"], "name"), PYTHON_TOOLS, "{era}");
        let words = [
            "--prompt-name",
            PYTHON_PROMPT,
            "--prompt-args",
            "language=Rust",
        ];
        let prompt = inspect(&[&["prompts/get"], &words[..]].concat());
        let asked = &prompt["messages"][0]["content"]["text"];
        assert_eq!(*asked, "Review this Rust code.", "{era}");
    }
    peers.end();
}

#[test]
fn the_inspector_uses_http_with_sse() {
    let peers = Peers::start();
    let how = ["--transport", "sse", "--method"];
    let listed = inspect(&peers, "/sse", &[&how[..], &["tools/list"]].concat());
    assert_eq!(each(&listed["tools"], "name"), all_tools());
    let arguments = json!({ "a": 2, "b": 40 }).to_string();
    let words = ["--tool-name", "get-sum", "--tool-args-json", &arguments];
    let words = [&how[..], &["tools/call"], &words[..]].concat();
    let called = inspect(&peers, &format!("/sse/{EVERYTHING}"), &words);
    assert_eq!(text(&called), SUM);
    peers.end();
}

/// Lists what all servers have, and calls a tool.
#[track_caller]
fn fastmcp_with_all(path: &str, transport: &str) {
    let peers = Peers::start();
    let fastmcp = |verb: &str, words: &[&str]| {
        let how = ["--transport", transport];
        fastmcp(&peers, verb, path, &[words, &how].concat())
    };
    let listed = fastmcp("list", &["--resources", "--prompts"]);
    assert_eq!(each(&listed["tools"], "name"), all_tools());
    let prompts = EVERYTHING_PROMPTS.map(|name| among_others(EVERYTHING, name));
    let prompts = prompts.into_iter();
    let prompts = prompts.chain([among_others(PYTHON, PYTHON_PROMPT)]);
    assert_eq!(
        each(&listed["prompts"], "name"),
        prompts.collect::<Vec<_>>()
    );
    let resources = each(&listed["resources"], "uri");
    assert_eq!(resources.len(), 8, "{resources:?}");
    assert_eq!(resources.last(), Some(&PYTHON_RESOURCE));
    let sum = among_others(EVERYTHING, "get-sum");
    let called = fastmcp("call", &[&sum, "a=2", "b=40"]);
    assert_eq!(text(&called), SUM);
    assert_eq!(called["is_error"], false);
    peers.end();
}

#[test]
fn the_command_of_fastmcp_uses_all_servers() {
    fastmcp_with_all("/mcp", "http");
}

#[test]
fn the_command_of_fastmcp_uses_http_with_sse() {
    fastmcp_with_all("/sse", "sse");
}

#[test]
fn the_command_of_fastmcp_uses_one_server_that_asks() {
    let peers = Peers::start();
    let path = format!("/mcp/{EVERYTHING}");
    let listed = fastmcp(&peers, "list", &path, &[]);
    let tools = each(&listed["tools"], "name");
    for tool in everything_tools(&[]) {
        assert!(tools.contains(&tool), "{tool} is not in {tools:?}");
    }
    let mut command = peers.client("python/bin/fastmcp");
    command.env("FASTMCP_CHECK_FOR_UPDATES", "off");
    command
        .arg("call")
        .arg(peers.url(&format!("/mcp/{PYTHON}")));
    let mut child = start(command.arg("greet").stdin(Stdio::piped()));
    child.stdin.take().unwrap().write_all(b"Ada\n").unwrap();
    let finished = Finished::of(child.wait_with_output().unwrap()).with_code(0);
    let said = finished.stdout;
    assert!(said.contains("Server asks: Who is there?"), "{said}");
    assert!(said.contains("Hello, Ada!"), "{said}");
    peers.end();
}
