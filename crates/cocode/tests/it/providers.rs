//! `tools --for`: tools as the providers of models take them.

use cocode_testkit::{Script, StdioServer, violations};
use serde_json::{Value, json};

use crate::harness::{Finished, mcp};
use crate::home::Home;
use crate::status::entry;

const PROVIDERS: [&str; 5] = ["openai", "openai-strict", "anthropic", "gemini", "plain"];

fn lists(tools: &Value) -> StdioServer {
    let listed = json!({ "tools": tools }).to_string();
    Script::new().on("tools/list").result(listed).stdio()
}

/// Tools that all can be given, one of them not strictly.
fn good() -> StdioServer {
    let post = json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "format": "uri"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    });
    let add = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]});
    lists(&json!([
        {"name": "post", "description": "Posts.", "inputSchema": post},
        {"name": "add", "title": "Adds", "inputSchema": add},
    ]))
}

/// Tools of which one can be given.
fn bad() -> StdioServer {
    let object = json!({"type": "object"});
    lists(&json!([
        {"name": "text", "inputSchema": {"allOf": [{"type": "string"}]}},
        {"name": "none"},
        {"name": "twice", "inputSchema": object},
        {"name": "twice", "inputSchema": object},
    ]))
}

#[track_caller]
fn parsed(finished: &Finished) -> Value {
    let text = &finished.stdout;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn names(definitions: &Value) -> Vec<&str> {
    let all = definitions.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn every_provider_gets_a_list_that_it_takes() {
    let home = Home::new();
    let server = good();
    home.user_file("mcp.toml", &entry("web", &server));
    for provider in PROVIDERS {
        let written = parsed(&home.mcp(&["tools", "web", "--for", provider]).with_code(0));
        assert_eq!(names(&written), ["mcp__web__post", "mcp__web__add"]);
        for definition in written.as_array().unwrap() {
            let dialect = if definition["strict"] == false {
                "openai"
            } else {
                provider
            };
            let found = violations(dialect, definition);
            assert!(found.is_empty(), "{provider}: {found:?} in {definition}");
        }
    }
}

#[test]
fn changes_are_told_to_people_and_listed_for_scripts() {
    let server = good();
    let gemini = mcp(&["tools", "--for", "gemini"], &server).with_code(0);
    assert_eq!(
        gemini.stderr,
        "post: /properties/headers: the value is given as JSON text; \
         /properties/url: `format` cannot be expressed\n"
    );
    assert_eq!(gemini.stdout.lines().count(), 4, "{}", gemini.stdout);
    // A server that has no name adds none.
    assert_eq!(names(&parsed(&gemini)), ["post", "add"]);
    let quiet = mcp(&["tools", "--for", "gemini", "-q"], &server).clean();
    assert_eq!(quiet, gemini.stdout);

    let report = mcp(&["tools", "--for", "openai-strict", "--json"], &server).clean();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["provider"], "openai-strict");
    assert_eq!(report["quarantined"], json!([]));
    let [post, add] = [&report["tools"][0], &report["tools"][1]];
    assert_eq!(
        (&post["tool"], &add["tool"]),
        (&json!("post"), &json!("add"))
    );
    assert_eq!(post["definition"]["strict"], false);
    let reason = post["notStrict"].as_str().unwrap();
    assert!(reason.contains("`/properties/headers`"), "{reason}");
    assert_eq!(add["definition"]["strict"], true);
    assert_eq!(add.get("notStrict"), None);
    let closed = json!([{"place": "", "change": "keys that are not listed cannot be given"}]);
    assert_eq!(add["notes"], closed);
    let strict = mcp(&["tools", "--for", "openai-strict"], &server).with_code(0);
    strict.complains(&["post: cannot be strict: the object takes keys that are not listed"]);
}

#[test]
fn one_tool_is_a_list_of_one() {
    let server = good();
    let one = mcp(&["tools", "add", "--for", "anthropic"], &server).clean();
    let one: Value = serde_json::from_str(&one).unwrap();
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]});
    let expected = json!([{"name": "add", "description": "Adds", "input_schema": schema}]);
    assert_eq!(one, expected);
    let unknown = mcp(&["tools", "ad", "--for", "anthropic"], &server).with_code(2);
    unknown.complains(&["lists no tool `ad`", "did you mean `add`?"]);
    let wrong = mcp(&["tools", "--for", "gpt"], &server).with_code(2);
    wrong.complains(&["'gpt'", "openai-strict", "code: invalid-usage"]);
}

#[test]
fn tools_that_cannot_be_given_are_left_out_with_the_reason_and_an_error() {
    let server = bad();
    let finished = mcp(&["tools", "--for", "plain"], &server).with_code(2);
    assert_eq!(names(&parsed(&finished)), ["twice"]);
    finished.complains(&[
        "warning: the tool `text` cannot be given to plain: inputSchema takes no object",
        "warning: the tool `none` cannot be given to plain: it has no inputSchema",
        "warning: the tool `twice` cannot be given to plain: its server lists another one",
        "error: 3 of 4 tools cannot be given to plain",
        "code: unusable-tool",
    ]);
    let finished = mcp(&["tools", "--for", "openai-strict", "--json"], &server).with_code(2);
    assert_eq!(finished.error()["code"], "unusable-tool");
    let report = parsed(&finished);
    assert_eq!(report["tools"].as_array().unwrap().len(), 1);
    let left_out = report["quarantined"].as_array().unwrap();
    let left_out: Vec<&Value> = left_out.iter().map(|one| &one["tool"]).collect();
    assert_eq!(left_out, ["none", "text", "twice"]);

    for tool in ["text", "none"] {
        let one = mcp(&["tools", tool, "--for", "gemini"], &server).with_code(2);
        assert_eq!(one.stdout, "");
        one.complains(&["inputSchema", "code: unusable-tool"]);
    }
}

#[test]
fn tools_of_all_servers_are_one_list_of_what_is_remembered_too() {
    let home = Home::new();
    let (web, odd) = (good(), bad());
    let file = [
        entry("web", &web),
        "disabled_tools = ['add']\n".to_owned(),
        entry("odd", &odd),
        "[mcp_servers.missing]\ncommand = 'no-such-program-here'\n".to_owned(),
    ];
    home.user_file("mcp.toml", &file.concat());
    let asked = home.mcp(&["tools", "--for", "openai"]).with_code(2);
    assert_eq!(
        names(&parsed(&asked)),
        ["mcp__odd__twice", "mcp__web__post"]
    );
    asked.complains(&[
        "warning: server `missing`: program `no-such-program-here` is not in PATH",
        "warning: server `odd`: the tool `none` cannot be given to openai",
        "server `web`: 1 of 2 tools are hidden",
        "mcp__web__post: /properties/url: `format` cannot be expressed",
        "error: 3 of 5 tools cannot be given to openai",
    ]);
    let remembered = home.mcp(&["tools", "--for", "openai", "--cached"]);
    assert_eq!(remembered.with_code(2).stdout, asked.stdout);
    let one = home.mcp(&["tools", "web", "--for", "openai", "--cached"]);
    assert_eq!(names(&parsed(&one.with_code(0))), ["mcp__web__post"]);

    let report = home
        .mcp(&["tools", "--for", "gemini", "--json"])
        .with_code(2);
    let report = parsed(&report);
    let servers = report["servers"].as_array().unwrap();
    let of = |name: &str| servers.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(of("missing")["error"]["code"], "spawn-failed");
    assert_eq!(of("odd")["quarantined"].as_array().unwrap().len(), 3);
    let post = &of("web")["tools"][0];
    assert_eq!(post["definition"]["name"], "mcp__web__post");
    assert_eq!(post["notes"].as_array().unwrap().len(), 2);

    let file = [
        entry("odd", &odd),
        "disabled_tools = ['text', 'none', 'twice']\n".to_owned(),
    ];
    let config = home.user_file("other.toml", &file.concat());
    let words = ["--config", config.to_str().unwrap(), "mcp", "tools"];
    let none = home.run(words.iter().chain(&["odd", "--for", "plain"]));
    assert_eq!(none.with_code(0).stdout, "[]\n");

    let shown = home.mcp(&["doctor", "odd"]).with_code(0).stdout;
    let line =
        "`text` cannot be given to openai, anthropic, gemini, plain: inputSchema takes no object";
    assert!(shown.contains(line), "{shown}");
}
