//! Commands on servers, as the one manager of the program carries them out: what is sent, what is
//! remembered, what is checked, and how much is shown.

use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};

use crate::harness::{Finished, received};
use crate::home::Home;
use crate::status::entry;

/// A user with one server, `s`.
fn home(server: &StdioServer) -> Home {
    let home = Home::new();
    home.user_file("mcp.toml", &entry("s", server));
    home
}

/// What a run of the server was asked, up to a method.
fn asked(server: &StdioServer, run: u32, last: &str) -> Vec<String> {
    received(server, run, last);
    let messages = server.received().all();
    let of_run = messages.iter().filter(|message| message.run == run);
    let methods = of_run.filter_map(|message| message.method().map(str::to_owned));
    methods.collect()
}

/// A server with one tool, whose arguments have this schema at its first run and another later.
fn two_faced(first: &Value, later: &Value) -> StdioServer {
    let list =
        |schema: &Value| json!({"tools": [{"name": "t", "inputSchema": schema}]}).to_string();
    Script::new()
        .on("tools/list")
        .run(1)
        .result(list(first))
        .on("tools/list")
        .result(list(later))
        .on("tools/call")
        .text_result("done")
        .stdio()
}

#[test]
fn a_call_asks_for_nothing_it_does_not_need_and_less_the_next_time() {
    let server = Script::new().stdio();
    let home = home(&server);
    home.mcp(&["call", "s", "echo", "a=1"]).clean();
    assert_eq!(
        asked(&server, 1, "tools/call"),
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call"
        ]
    );
    home.mcp(&["call", "s", "echo", "a=1"]).clean();
    assert_eq!(
        asked(&server, 2, "tools/call"),
        ["initialize", "notifications/initialized", "tools/call"]
    );
    home.mcp(&["ping", "s"]).with_code(0);
    assert_eq!(
        asked(&server, 3, "ping"),
        ["initialize", "notifications/initialized", "ping"]
    );
    // Who asks for the list gets that of the server.
    home.mcp(&["tools", "s"]).clean();
    assert!(asked(&server, 4, "tools/list").contains(&"tools/list".to_owned()));
}

#[test]
fn nothing_is_refused_for_what_is_only_remembered() {
    let old = json!({"type": "object", "required": ["a"], "properties": {"a": {}}, "additionalProperties": false});
    let new = json!({"type": "object", "required": ["b"], "properties": {"b": {"type": "integer", "maximum": 9}}, "additionalProperties": false});
    let server = two_faced(&old, &new);
    let home = home(&server);
    home.mcp(&["call", "s", "t", "a=1"]).clean();
    assert_eq!(home.mcp(&["call", "s", "t", "b=5"]).clean(), "done\n");
    // What the server says now is remembered, and refuses.
    let refused = home.mcp(&["call", "s", "t", "b=10", "--json"]).with_code(2);
    assert_eq!(refused.error()["code"], "invalid-arguments");
    let calls = server.received().count(|message| message.is("tools/call"));
    assert_eq!(calls, 2);
}

#[test]
fn arguments_are_checked_against_the_whole_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"filters": {"type": "array", "items": {
            "type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}
        }}}
    });
    let server = two_faced(&schema, &schema);
    let home = home(&server);
    let words = [
        "call",
        "s",
        "t",
        "--args",
        r#"{"filters":[{"size":3},{"size":12}]}"#,
    ];
    let refused = home.mcp(&words).with_code(2);
    refused.complains(&[
        "error: the arguments do not fit the tool `t`",
        "`filters[1].size`",
        "--no-check",
        "code: invalid-arguments",
    ]);
    assert_eq!(
        server.received().count(|message| message.is("tools/call")),
        0
    );
    let unchecked = [&words[..], &["--no-check"]].concat();
    assert_eq!(home.mcp(&unchecked).clean(), "done\n");
}

#[test]
fn a_result_that_is_too_large_is_previewed_and_kept() {
    let lines: Vec<String> = (0..2000).map(|line| format!("line {line}\n")).collect();
    let text = lines.concat();
    let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let server = Script::new()
        .on("tools/call")
        .result(result.as_str())
        .stdio();
    let home = home(&server);
    let limited = |words: &[&str]| {
        let mut command = home.command(["mcp"].iter().chain(words));
        command.env("MAX_MCP_OUTPUT_TOKENS", "1000");
        Finished::of(command.output().unwrap())
    };
    let shown = limited(&["call", "s", "echo"]).with_code(0);
    assert!(shown.stdout.contains("line 0\n") && shown.stdout.contains("line 1999\n"));
    assert!(!shown.stdout.contains("line 1000\n"));
    shown.complains(&[
        "warning: the result is too large to be shown",
        "cocode mcp result show ",
    ]);
    let (_, rest) = shown.stderr.split_once("result show ").unwrap();
    let handle = rest.split('`').next().unwrap();
    let found = home
        .mcp(&["result", "grep", handle, "line 1000"])
        .with_code(0);
    assert!(found.stdout.contains("line 1000"), "{}", found.stdout);
    // Scripts get everything, byte for byte.
    let whole = limited(&["call", "s", "echo", "--json"]).clean();
    assert_eq!(whole, format!("{result}\n"));
    // Without the variable it is large, but not too large.
    let all = home.mcp(&["call", "s", "echo"]).with_code(0);
    assert!(all.stdout.contains("line 1000\n"));
    let mut command = home.command(["mcp", "call", "s", "echo"]);
    command.env("MAX_MCP_OUTPUT_TOKENS", "lots");
    let refused = Finished::of(command.output().unwrap()).with_code(2);
    refused.complains(&["MAX_MCP_OUTPUT_TOKENS is `lots`"]);
}

#[test]
fn the_variable_for_timeouts_of_tools_wins_over_files() {
    let server = Script::new().on("tools/call").ignore().stdio();
    let home = Home::new();
    let file = format!("{}tool_timeout_sec = 300\n", entry("s", &server));
    home.user_file("mcp.toml", &file);
    let with = |value: &str| {
        let mut command = home.command(["mcp", "call", "s", "echo", "--json"]);
        command.env("MCP_TOOL_TIMEOUT", value);
        Finished::of(command.output().unwrap())
    };
    assert_eq!(with("200").with_code(5).error()["code"], "request-timeout");
    let refused = with("soon").with_code(2).error();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("MCP_TOOL_TIMEOUT is `soon`"), "{message}");
}

#[test]
fn structured_content_that_is_not_as_promised_is_warned_of() {
    let tools = json!({"tools": [{
        "name": "t",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}}
    }]});
    let server = Script::new()
        .on("tools/list")
        .result(tools.to_string())
        .on("tools/call")
        .result(r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"size":"big"}}"#)
        .stdio();
    let called = home(&server).mcp(&["call", "s", "t"]).with_code(0);
    assert_eq!(called.stdout, "x\n");
    called.complains(&[
        "warning: the structured content is not what the tool promises",
        "size",
    ]);
}

#[test]
fn lists_are_answered_from_memory_without_starting_anything() {
    let server = Script::new().stdio();
    let home = home(&server);
    for verb in ["tools", "resources", "prompts"] {
        let unknown = home.mcp(&[verb, "s", "--cached", "--json"]).with_code(2);
        assert_eq!(unknown.error()["code"], "not-cached");
    }
    home.mcp(&["tools", "--cached"]).with_code(2);
    assert!(server.runs().all().is_empty());
    let asked = home.mcp(&["tools", "s", "--json"]).clean();
    home.mcp(&["prompts", "s"]).clean();
    let runs = server.runs().all().len();
    let recalled = home.mcp(&["tools", "s", "--cached", "--json"]).with_code(0);
    assert_eq!(recalled.stdout, asked);
    let note: Value = serde_json::from_str(&recalled.stderr).unwrap();
    assert_eq!(note["cached"]["fresh"], true);
    assert!(note["cached"]["ageSeconds"].is_u64());
    let shown = home.mcp(&["tools", "s", "echo", "--cached"]).with_code(0);
    assert!(shown.stdout.starts_with("echo"), "{}", shown.stdout);
    shown.complains(&["as it was listed ", " ago"]);
    let all = home.json(&["mcp", "prompts", "--cached"]);
    assert_eq!(all["servers"][0]["prompts"][0]["name"], "greet");
    assert!(all["servers"][0]["ageSeconds"].is_u64());
    assert_eq!(server.runs().all().len(), runs);
    home.mcp(&["tools", "--cached", "--", "true"]).with_code(2);
}

#[test]
fn resources_and_prompts_are_found_by_what_models_call_them() {
    let prompts = json!({"prompts": [{"name": "review", "arguments": [
        {"name": "branch", "required": true}, {"name": "focus"}
    ]}]});
    let server = Script::new()
        .on("prompts/list")
        .result(prompts.to_string())
        .on("prompts/get")
        .result(r#"{"messages":[{"role":"user","content":{"type":"text","text":"Look."}}]}"#)
        .stdio();
    let home = home(&server);
    assert_eq!(home.mcp(&["read", "@s:scripted://hello"]).clean(), "hello");
    home.mcp(&["read", "@t:scripted://hello"])
        .with_code(2)
        .complains(&["there is no server `t`"]);
    home.mcp(&["read", "@s"]).with_code(2);
    let words = ["prompt", "/mcp__s__review", "main branch", "focus=speed"];
    let got = home.mcp(&words).clean();
    assert!(got.contains("Look."), "{got}");
    let get = received(&server, 2, "prompts/get");
    assert_eq!(get.params()["name"], "review");
    assert_eq!(
        get.params()["arguments"],
        json!({"branch": "main branch", "focus": "speed"})
    );
    let missing = home.mcp(&["prompt", "/mcp__s__review"]).with_code(2);
    missing.complains(&["`branch` is not given", "/mcp__s__review BRANCH [FOCUS]"]);
    let unknown = home.mcp(&["prompt", "/mcp__s__reviw", "main"]).with_code(2);
    unknown.complains(&["did you mean `/mcp__s__review`?", "code: unknown-prompt"]);
    home.mcp(&["prompt", "s", "review", "branch=main"]).clean();
}

#[test]
fn resources_and_prompts_of_all_servers_are_listed_side_by_side() {
    let one = Script::new().stdio();
    let two = Script::new()
        .on("prompts/list")
        .error(-32603, "no prompts today")
        .stdio();
    let home = Home::new();
    let file = [
        entry("one", &one),
        entry("two", &two),
        "[mcp_servers.missing]\ncommand = 'no-such-program-here'\n".to_owned(),
    ];
    home.user_file("mcp.toml", &file.concat());
    let resources = home.mcp(&["resources"]).with_code(0);
    for part in ["@one:scripted://hello", "@two:scripted://hello"] {
        assert!(resources.stdout.contains(part), "{}", resources.stdout);
    }
    resources.complains(&["warning: server `missing`: program `no-such-program-here`"]);
    let prompts = home.mcp(&["prompts"]).with_code(0);
    assert_eq!(prompts.stdout.trim_end(), "one.greet");
    prompts.complains(&["server `two`: ", "no prompts today"]);
    let report = home.json(&["mcp", "resources", "--templates"]);
    let servers = report["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 3);
    assert_eq!(servers[0]["error"]["code"], "spawn-failed");
    assert_eq!(servers[1]["resourceTemplates"], json!([]));
    home.user_file("mcp.toml", &file[2]);
    home.mcp(&["resources"]).with_code(3);
}

#[test]
fn what_became_of_a_server_is_in_its_log() {
    let server = Script::new().stdio();
    let home = home(&server);
    home.mcp(&["ping", "s"]).with_code(0);
    let log = home.mcp(&["logs", "s"]).with_code(0).stdout;
    for part in [" state starting\n", " state ready\n", " state stopped\n"] {
        assert!(log.contains(part), "{log}");
    }
}

#[test]
fn a_call_that_does_no_harm_is_made_again() {
    let tools = json!({"tools": [{
        "name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}
    }]});
    let server = Script::new()
        .on("tools/list")
        .result(tools.to_string())
        .on("tools/call")
        .run(1)
        .exit(9)
        .on("tools/call")
        .text_result("done")
        .stdio();
    let called = home(&server).mcp(&["call", "s", "t"]).with_code(0);
    assert_eq!(called.stdout, "done\n");
}
