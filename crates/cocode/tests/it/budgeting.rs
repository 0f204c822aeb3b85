//! `mcp budget`, and the count of calls that it reads.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::harness::{Finished, Scratch, mcp, mcp_at, start};
use crate::home::Home;
use crate::status::entry;

/// A server with the tools `one`, `two` and `three`, which are all alike but for a long description.
fn server() -> StdioServer {
    let tools = [("one", 4_000), ("two", 2_000), ("three", 8)];
    let tools = tools.map(|(name, length)| {
        let about = "abcdefg ".repeat(length / 8);
        json!({"name": name, "description": about, "inputSchema": {"type": "object"}})
    });
    Script::new()
        .on("tools/list")
        .result(json!({"tools": tools}).to_string())
        .on("tools/call")
        .text_result("done")
        .stdio()
}

fn home(servers: &[(&str, &StdioServer)]) -> Home {
    let home = Home::new();
    let entries = servers.iter().map(|(name, server)| entry(name, server));
    home.user_file("mcp.toml", &entries.collect::<String>());
    home
}

fn calls_file(home: &Home) -> PathBuf {
    home.home().join("state/usage/calls.json")
}

/// What is counted of a server's tools.
fn counted(home: &Home, server: &str) -> Value {
    let text = std::fs::read_to_string(calls_file(home)).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let tools = file["servers"][server].as_object().unwrap();
    let calls = tools
        .iter()
        .map(|(tool, usage)| (tool.clone(), usage["calls"].clone()));
    Value::Object(calls.collect())
}

fn sum(list: &Value, key: &str) -> u64 {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one[key].as_u64().unwrap()).sum()
}

#[test]
fn numbers_add_up_and_say_what_they_are_compared_with() {
    let (one, other) = (server(), server());
    let home = home(&[("a", &one), ("b", &other)]);
    home.mcp(&["budget"]).with_code(2);
    home.mcp(&["tools"]).with_code(0);
    let runs = one.runs().all().len();
    let budget = home.json(&["mcp", "budget"]);
    assert_eq!(
        budget["window"],
        json!({"tokens": 200_000, "from": "default"})
    );
    for key in ["tokens", "characters"] {
        assert_eq!(budget["total"][key], sum(&budget["servers"], key));
        for server in budget["servers"].as_array().unwrap() {
            assert_eq!(server[key], sum(&server["tools"], key));
        }
    }
    // "mcp__a__one", its description, and {"type":"object"}.
    let first = &budget["servers"][0]["tools"][0];
    assert_eq!(
        (&first["name"], &first["tokens"]),
        (&json!("one"), &json!(3 + 1_000 + 5))
    );
    assert_eq!(first["characters"], 11 + 4_000 + 17);
    assert_eq!(budget["total"]["tools"], 6);
    let total = budget["total"]["tokens"].as_u64().unwrap();
    let search = &budget["search"];
    assert_eq!(search["searches"], false);
    let saved = total - search["tokens"].as_u64().unwrap();
    assert_eq!(search["savedTokens"], saved);
    assert_eq!(budget["usage"]["since"], Value::Null);
    let advice = budget["suggestions"].to_string();
    assert!(advice.contains("would save"), "{advice}");

    let narrow = home.json(&["mcp", "budget", "--window", "32000"]);
    assert_eq!(narrow["search"]["searches"], true);
    let why = narrow["search"]["why"].as_str().unwrap();
    assert!(why.contains("10% of 32000 tokens"), "{why}");
    home.user_file(
        "config.toml",
        "model = 'small'\n[models.small]\ncontext_window = 40000\n",
    );
    let named = home.json(&["mcp", "budget"]);
    assert_eq!(
        named["window"],
        json!({"tokens": 40_000, "from": "model small"})
    );
    let mut command = home.command(["mcp", "budget", "--json"]);
    let off = Finished::of(command.env("ENABLE_TOOL_SEARCH", "false").output().unwrap());
    assert!(off.clean().contains("tool search is switched off"));
    let wrong = Finished::of(command.env("ENABLE_TOOL_SEARCH", "maybe").output().unwrap());
    wrong
        .with_code(2)
        .complains(&["ENABLE_TOOL_SEARCH", "auto:N"]);
    assert_eq!(one.runs().all().len(), runs, "nothing is started");

    let shown = home.json(&["mcp", "budget", "--server", "b"]);
    assert_eq!(shown["servers"].as_array().unwrap().len(), 1);
    assert_eq!(shown["shown"]["tokens"], total / 2);
    assert_eq!(shown["total"]["tokens"], total);
    home.mcp(&["budget", "--server", "c"])
        .with_code(2)
        .complains(&["there is no server `c`", "configured servers: a, b"]);
}

#[test]
fn servers_that_are_always_shown_cost_the_same_with_search() {
    let (one, other) = (server(), server());
    let home = Home::new();
    let text = format!(
        "{}always_load = true\n{}",
        entry("a", &one),
        entry("b", &other)
    );
    home.user_file("mcp.toml", &text);
    home.mcp(&["tools"]).with_code(0);
    let budget = home.json(&["mcp", "budget"]);
    let servers = budget["servers"].as_array().unwrap();
    let always = servers.iter().find(|server| server["name"] == "a").unwrap();
    assert_eq!(always["alwaysLoad"], true);
    let search = budget["search"]["tokens"].as_u64().unwrap();
    assert!(search > always["tokens"].as_u64().unwrap());
    assert!(search < budget["total"]["tokens"].as_u64().unwrap());
    let text = home.mcp(&["budget"]).clean();
    assert!(text.contains("a (always)"), "{text}");
}

#[test]
fn the_chart_is_plain_text_that_fits() {
    let one = server();
    let home = home(&[("a", &one)]);
    home.mcp(&["tools"]).with_code(0);
    let text = home.mcp(&["budget", "--tools"]).clean();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("SERVER "), "{text}");
    assert!(text.is_ascii(), "{text}");
    assert!(lines.iter().all(|line| line.len() <= 100), "{text}");
    let bar = |name: &str| {
        let mut lines = lines.iter();
        let line = lines.find(|line| line.trim_start().starts_with(name));
        line.unwrap().matches('#').count()
    };
    assert_eq!(bar("a "), 40);
    assert!(
        bar("one ") > bar("two ") && bar("two ") > bar("three "),
        "{text}"
    );
    assert_eq!((bar("three "), bar("total ")), (1, 0));
    for part in [
        "window  ",
        "search  ",
        "saving  ",
        "no call was counted yet",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn calls_of_the_command_line_are_counted_and_nothing_else_of_them_is_kept() {
    let (one, other) = (server(), server());
    let home = home(&[("a", &one), ("b", &other)]);
    home.mcp(&["tools"]).with_code(0);
    assert!(!calls_file(&home).exists(), "nothing was called");
    home.mcp(&["call", "a", "one", "secret=hunter2"])
        .with_code(0);
    home.mcp(&["call", "a.one"]).with_code(0);
    home.mcp(&["call", "a", "none"]).with_code(2);
    // A server that stands in no file has no name to be counted under.
    mcp(&["call", "one"], &one).with_code(0);
    assert_eq!(counted(&home, "a"), json!({"one": 2}));
    let text = std::fs::read_to_string(calls_file(&home)).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let mode = std::fs::metadata(calls_file(&home)).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);

    let budget = home.json(&["mcp", "budget"]);
    let usage = &budget["usage"];
    assert!(usage["since"].is_u64(), "{usage}");
    assert_eq!(
        usage["neverUsed"],
        json!(["a.two", "a.three", "b.one", "b.two", "b.three"])
    );
    assert_eq!(usage["unusedServers"], json!(["b"]));
    assert_eq!(budget["servers"][0]["calls"], 2);
    let text = home.mcp(&["budget"]).clean();
    for part in [
        "5 of 6 tools were never called (",
        "unused      nothing was called of b",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("cocode mcp disable"), "too soon: {text}");
}

/// Calls that were counted for five days.
fn has_called(home: &Home, servers: &Value) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let since = now.as_secs() - 5 * 24 * 60 * 60 - 60;
    let file = json!({"version": 1, "since": since, "servers": servers});
    home.user_file("state/usage/calls.json", &file.to_string());
}

#[test]
fn suggestions_follow_from_what_was_called_and_from_what_models_are_shown() {
    let (one, other) = (server(), server());
    let home = home(&[("a", &one), ("b", &other)]);
    home.mcp(&["tools"]).with_code(0);
    let usage = json!({"a": {"one": {"calls": 25, "last": 1_700_000_000}}});
    has_called(&home, &usage);
    let check = |expected: &[&str]| {
        let budget = home.json(&["mcp", "budget"]);
        let found = budget["suggestions"].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            let found = found.as_str().unwrap();
            assert!(found.contains(expected), "{found}");
        }
    };
    check(&[
        "`enabled = true` in [tool_search] of config.toml would save ",
        "`b`: none of its 3 tools was called in 5 days: `cocode mcp disable b` saves 1527 tokens",
        "`a`: 2 of its 3 tools were not called in 5 days: named in `disabled_tools` of its entry, \
         they save 519 tokens",
    ]);
    // Models that search are shown none of these.
    home.user_file("config.toml", "[tool_search]\nenabled = true\n");
    let often = "`a`: 25 calls in 5 days, for 1527 tokens: `always_load = true` in its entry \
                 spares models the search for its tools";
    check(&[often]);
    let (a, b) = (entry("a", &one), entry("b", &other));
    home.user_file("mcp.toml", &format!("{a}{b}always_load = true\n"));
    check(&[
        "`b`: models are always shown its 3 tools, and none was called in 5 days: without \
         `always_load` in its entry, 1527 tokens are saved",
        often,
    ]);
}

#[test]
fn calls_through_a_gateway_are_counted() {
    let one = server();
    let home = home(&[("a", &one)]);
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["a"]);
    mcp_at(&["call", "one"], &gateway.server("a")).with_code(0);
    mcp_at(&["call", "mcp__a__two"], gateway.url()).with_code(0);
    mcp_at(&["call", "mcp__a__two"], gateway.url()).with_code(0);
    let (code, complaints) = gateway.end("-INT");
    assert_eq!(code, Some(0), "{complaints}");
    assert_eq!(counted(&home, "a"), json!({"one": 1, "two": 2}));
}

#[test]
fn processes_that_call_at_once_lose_no_count() {
    const PROCESSES: usize = 8;
    let one = server();
    let home = home(&[("a", &one)]);
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|_| start(&mut home.command(["mcp", "call", "a", "one"])))
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(counted(&home, "a"), json!({"one": PROCESSES}));
}

#[test]
fn counting_can_be_switched_off_and_a_damaged_file_harms_no_call() {
    let one = server();
    let home = home(&[("a", &one)]);
    home.user_file("config.toml", "[retention]\nrecord_usage = false\n");
    home.mcp(&["call", "a", "one"]).with_code(0);
    assert!(!calls_file(&home).exists());
    let text = home.mcp(&["budget"]).clean();
    assert!(text.contains("calls are not counted"), "{text}");
    home.user_file("config.toml", "");
    home.user_file("state/usage/calls.json", "{broken");
    let told = home.mcp(&["budget"]).with_code(0);
    told.complains(&["nobody knows which tools were called", "is damaged"]);
    home.mcp(&["call", "a", "one"]).with_code(0);
    assert_eq!(counted(&home, "a"), json!({"one": 1}));
    let aside = calls_file(&home).with_extension("json.damaged");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{broken");
}

#[test]
fn a_catalog_is_weighed_without_configuration() {
    let scratch = Scratch::new();
    scratch.file(
        "tools.json",
        r#"[{"server": "a", "name": "t", "description": "12345678", "inputSchema": { "type": "object" }},
            {"server": "b", "name": "u"}]"#,
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_cocode"));
    command
        .args(["mcp", "budget", "--catalog", "tools.json", "--json"])
        .env_clear()
        .current_dir(scratch.path());
    let printed = Finished::of(command.output().unwrap()).clean();
    let budget: Value = serde_json::from_str(&printed).unwrap();
    // "mcp__a__t" and "mcp__b__u" are three tokens each.
    assert_eq!(budget["total"]["tokens"], 3 + 2 + 5 + 3);
    assert_eq!(budget["usage"]["counted"], false);
    assert!(budget["search"]["savedTokens"].as_i64().unwrap() < 0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_cocode"));
    command
        .args(["mcp", "budget", "--catalog", "tools.json"])
        .env_clear()
        .current_dir(scratch.path());
    let text = Finished::of(command.output().unwrap()).clean();
    assert!(text.contains("none: with search it would be"), "{text}");
}
