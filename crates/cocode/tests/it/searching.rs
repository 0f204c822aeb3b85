//! `mcp search`: tools are found in what was listed before, or in a file, and nothing is started.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};

use crate::harness::{Finished, Scratch, start};
use crate::home::Home;
use crate::status::entry;

/// A server with these tools: names and descriptions.
fn server(tools: &[(&str, &str)]) -> StdioServer {
    let tools = tools.iter().map(|(name, about)| {
        json!({"name": name, "description": about, "inputSchema": {"type": "object"}})
    });
    let list = json!({"tools": tools.collect::<Vec<_>>()});
    Script::new()
        .on("tools/list")
        .result(list.to_string())
        .stdio()
}

fn files() -> StdioServer {
    server(&[
        ("read_file", "Reads a file"),
        ("write_file", "Writes a file"),
        ("remove_file", "Removes a file for ever"),
    ])
}

const CATALOG: &str = r#"[
    {"server": "files", "name": "read_file", "description": "Reads a file", "inputSchema": {"type": "object"}},
    {"server": "mail", "name": "send", "description": "Sends a letter", "color": "red"},
    {"server": "mail", "name": "fetch"}
]"#;

/// The program in a directory, without any variables.
fn bare(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cocode"));
    command
        .args(["mcp", "search"])
        .args(words)
        .env_clear()
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

fn with_stdin(mut command: Command, stdin: &str) -> Finished {
    let mut child = start(command.stdin(Stdio::piped()));
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(stdin.as_bytes()).unwrap();
    drop(pipe);
    Finished::of(child.wait_with_output().unwrap())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn tools_are_found_in_what_was_listed_before() {
    let (files, mail) = (files(), server(&[("send", "Sends a letter")]));
    let home = Home::new();
    let text = format!("{}{}", entry("files", &files), entry("mail", &mail));
    home.user_file("mcp.toml", &text);
    let unknown = home.mcp(&["search", "read", "--json"]).with_code(2);
    assert_eq!(unknown.error()["code"], "not-cached");
    unknown.complains(&["`--refresh` asks them all now", "`cocode mcp tools files`"]);
    home.mcp(&["tools", "files"]).with_code(0);
    let runs = files.runs().all().len();

    let found = home.mcp(&["search", "read", "a", "file"]).with_code(0);
    let first = found.stdout.lines().next().unwrap();
    assert!(first.starts_with("1  "), "{first}");
    assert!(first.contains("files.read_file"), "{first}");
    assert!(first.ends_with("Reads a file"), "{first}");
    found.complains(&[
        "warning: nothing is remembered of the tools of mail",
        "`cocode mcp tools mail` one",
    ]);
    // The name is one that can be called.
    home.mcp(&["tools", "files.read_file"]).with_code(0);
    let runs = runs + 1;
    assert_eq!(files.runs().all().len(), runs, "nothing is started");
    assert!(mail.runs().all().is_empty());

    let found = home
        .mcp(&["search", "letter", "--refresh", "--json", "-n", "1"])
        .clean();
    let found = parsed(&found);
    assert_eq!(found[0]["name"], "mail.send");
    assert_eq!(found[0]["server"], "mail");
    assert_eq!(found[0]["tool"], "send");
    assert_eq!(found[0]["description"], "Sends a letter");
    assert!(found[0]["score"].as_f64().unwrap() > 0.0);
    assert_eq!(found[0].get("parts"), None);
    assert_eq!(found.as_array().unwrap().len(), 1);
    home.mcp(&["search", "letter"]).clean();
    let explained = home.json(&["mcp", "search", "letter", "--explain"]);
    assert!(explained[0]["parts"].is_array(), "{explained}");
}

#[test]
fn a_server_that_cannot_be_asked_is_a_warning_and_what_is_remembered_counts() {
    let files = files();
    let home = Home::new();
    let broken = "[mcp_servers.gone]\ncommand = '/nonexistent'\n";
    let text = format!("{}{broken}", entry("files", &files));
    home.user_file("mcp.toml", &text);
    let found = home.mcp(&["search", "file", "--refresh"]).with_code(0);
    assert!(found.stdout.contains("files.read_file"), "{}", found.stdout);
    found.complains(&["server `gone`:", "`cocode mcp doctor gone`"]);
    home.user_file("mcp.toml", broken);
    home.mcp(&["search", "file", "--refresh"])
        .with_code(2)
        .complains(&["no server could be asked for its tools"]);
    home.user_file("mcp.toml", "");
    home.mcp(&["search", "file"]).with_code(2).complains(&[
        "no server is ready, so there are no tools",
        "`--catalog FILE` needs none",
    ]);
}

#[test]
fn hidden_tools_and_servers_that_are_off_are_not_found() {
    let (files, other) = (files(), files());
    let home = Home::new();
    let text = format!(
        "{}disabled_tools = ['write_*']\n{}",
        entry("files", &files),
        entry("other", &other)
    );
    home.user_file("mcp.toml", &text);
    home.project_file(
        ".mcp.json",
        r#"{"mcpServers": {"pending": {"command": "true"}}}"#,
    );
    home.mcp(&["tools"]).with_code(0);
    home.mcp(&["disable", "other"]).with_code(0);
    home.run(["permissions", "deny", "mcp__files__remove_file"])
        .with_code(0);
    let found = home.mcp(&["search", "file", "--json"]).with_code(0);
    let found = parsed(&found.stdout);
    let names = found.as_array().unwrap().iter().map(|one| &one["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["files.read_file"], "{found}");
    home.mcp(&["search", "file"])
        .with_code(0)
        .complains(&["left out: pending (pending); `cocode mcp list` says why"]);
    let none = home.mcp(&["search", "xyzzy"]).with_code(1);
    assert_eq!(none.stdout, "");
    none.complains(&["none of the 1 tools that are known fits `xyzzy`"]);
    let none = home.mcp(&["search", "xyzzy", "--json"]).with_code(1);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("[]\n", ""));
}

#[test]
fn a_catalog_needs_no_configuration_and_no_home() {
    let scratch = Scratch::new();
    scratch.file("tools.json", CATALOG);
    // What would stop any other command.
    scratch.file(".cocode.local.toml", "][");
    let words = ["send a letter", "--catalog", "tools.json", "--json"];
    let command = &mut bare(scratch.path(), &words);
    let found = parsed(&Finished::of(command.output().unwrap()).clean());
    assert_eq!(found[0]["name"], "mail.send");
    let command = bare(scratch.path(), &["fetch", "--catalog", "-", "--json"]);
    let found = parsed(&with_stdin(command, CATALOG).clean());
    assert_eq!(found[0]["tool"], "fetch");
    assert_eq!(found[0]["description"], Value::Null);
    let strict = ["read", "--catalog", "tools.json", "--strict-config"];
    let found = Finished::of(bare(scratch.path(), &strict).output().unwrap()).clean();
    assert!(found.contains("files.read_file  Reads a file"), "{found}");
    // Whatever a file says, it steers no terminal.
    let escape = r#"[{"server": "a", "name": "x\u001b[31m", "description": "x\u001b]0;t\u0007"}]"#;
    let command = bare(scratch.path(), &["x", "--catalog", "-"]);
    let found = with_stdin(command, escape).clean();
    assert!(!found.contains('\u{1b}'), "{found:?}");
}

#[test]
fn a_batch_is_one_list_for_every_query() {
    let scratch = Scratch::new();
    scratch.file("tools.json", CATALOG);
    let queries = r#"["read", "nothing like it", "", "mail"]"#;
    scratch.file("queries.json", queries);
    let words = ["--catalog", "tools.json", "--batch", "queries.json"];
    let printed = Finished::of(bare(scratch.path(), &words).output().unwrap()).clean();
    let found = parsed(&printed);
    let lists: Vec<usize> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|list| list.as_array().unwrap().len())
        .collect();
    assert_eq!(lists.len(), 4, "{found}");
    assert_eq!(found[0][0]["tool"], "read_file");
    assert_eq!(found[3].as_array().unwrap().len(), 2);
    let keys: Vec<&String> = found[0][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["score", "server", "tool"]);
    let again = [words.as_slice(), &["--json", "--limit", "1"]].concat();
    let found = Finished::of(bare(scratch.path(), &again).output().unwrap()).clean();
    assert_eq!(parsed(&found)[3].as_array().unwrap().len(), 1);
    let stdin = ["--catalog", "tools.json", "--batch", "-"];
    let piped = with_stdin(bare(scratch.path(), &stdin), queries).clean();
    assert_eq!(piped, printed);
    let none = with_stdin(bare(scratch.path(), &stdin), "[]").clean();
    assert_eq!(none, "[]\n");

    let files = files();
    let home = Home::new();
    home.user_file("mcp.toml", &entry("files", &files));
    home.mcp(&["tools"]).with_code(0);
    let file = scratch.path().join("queries.json");
    let found = home.mcp(&["search", "--batch", file.to_str().unwrap()]);
    assert_eq!(parsed(&found.clean())[0][0]["server"], "files");
}

#[test]
fn what_is_wrong_with_a_command_or_file_is_said() {
    let scratch = Scratch::new();
    scratch.file("tools.json", CATALOG);
    scratch.file(
        "bad.json",
        r#"[{"server": "a", "name": "x"}, {"server": "a", "name": 7}]"#,
    );
    scratch.file("not.json", "tools");
    let check = |words: &[&str], parts: &[&str]| {
        let finished = Finished::of(bare(scratch.path(), words).output().unwrap());
        let finished = finished.with_code(2);
        assert_eq!(finished.stdout, "", "{words:?}");
        finished.complains(parts);
    };
    check(&[], &["<QUERY>..."]);
    check(&["  ", "--catalog", "tools.json"], &["the query is empty"]);
    for limit in ["0", "101", "-1", "many"] {
        let limit = format!("--limit={limit}");
        check(&["x", &limit], &["--limit <K>"]);
    }
    check(&["x", "--limit=0"], &["0 is not in 1..=100"]);
    check(
        &["--catalog", "-", "--batch", "-"],
        &["`--catalog -` and `--batch -` both want stdin"],
    );
    check(&["x", "--batch", "q.json"], &["cannot be used with"]);
    check(
        &["x", "--catalog", "none.json"],
        &["cannot read `none.json`", "code: file-error"],
    );
    check(
        &["x", "--catalog", "bad.json"],
        &[
            "`bad.json` is no catalog of tools",
            "[1].name is a number, and must be a text",
            "hint: a catalog is a list of items such as",
        ],
    );
    check(
        &["x", "--catalog", "not.json"],
        &["it is not JSON: expected", "line 1 column"],
    );
    check(
        &["--catalog", "tools.json", "--batch", "tools.json"],
        &[
            "`tools.json` is no batch of queries",
            "[0] is an object, and must be a text",
            "a batch is a list of texts",
        ],
    );
    check(
        &["x", "--catalog", "tools.json", "--refresh"],
        &["cannot be used with"],
    );
    check(&["x", "--timeout", "3"], &["--refresh"]);
    let nope = bare(scratch.path(), &["x", "--nope"]).output().unwrap();
    let nope = Finished::of(nope).with_code(2);
    assert!(
        !nope.stderr.contains("that is the server"),
        "{}",
        nope.stderr
    );
}

/// A server that `cargo xtask peers` installed.
fn peer(path: &str) -> PathBuf {
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let program = root.join(path);
    assert!(
        program.is_file(),
        "{path} is missing: run `cargo xtask peers`"
    );
    program
}

#[test]
fn tools_of_a_peer_are_found_after_they_were_listed_once_peer() {
    let home = Home::new();
    let add = |name: &str, command: &[PathBuf]| {
        let words = ["mcp", "add", "--scope", "user", name, "--"].map(Into::into);
        home.run(words.iter().chain(command)).with_code(0);
    };
    let node = peer("npm/node_modules/node/bin/node");
    let memory = peer("npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js");
    add("clock", &[peer("python/bin/mcp-server-time")]);
    add("memory", &[node, memory]);
    home.mcp(&["tools"]).with_code(0);
    let check = |query: &str, expected: &str| {
        let found = home.json(&["mcp", "search", query, "-n", "3"]);
        assert_eq!(found[0]["name"], expected, "{query}: {found}");
    };
    check("current time in a timezone", "clock.get_current_time");
    check("read_graph", "memory.read_graph");
    let budget = home.json(&["mcp", "budget"]);
    assert_eq!(budget["total"]["servers"], 2);
    assert_eq!(budget["servers"][0]["name"], "memory");
}
