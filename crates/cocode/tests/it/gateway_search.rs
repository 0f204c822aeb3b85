//! Clients that search for tools: at a gateway, and behind `cocode mcp serve`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use cocode_testkit::{Script, StdioServer};
use serde_json::{Value, json};

use crate::fronts::Site;
use crate::gateway::Running;
use crate::harness::{Finished, received, start};
use crate::home::Home;
use crate::interrupting::signal;
use crate::status::entry;

/// A server whose tool is described at a length that is 10% of 200,000 tokens.
fn talkative() -> StdioServer {
    let tool = json!({
        "name": "measure_rain", "description": "rain ".repeat(12_000), "inputSchema": { "type": "object" },
    });
    let script = Script::new()
        .on("tools/list")
        .result(json!({ "tools": [tool] }));
    let told = r#"{"content":[{"type":"text","text":"wet"}],"structuredContent":$params}"#;
    script.on("tools/call").result(told).stdio()
}

/// A gateway with that server, which is there.
fn gateway(home: &Home, server: &StdioServer, words: &[&str]) -> Running {
    home.user_file("mcp.toml", &entry("weather", server));
    let mut gateway = Running::start(home, words);
    gateway.until_state("weather", "ready");
    gateway
}

const ALL: [&str; 1] = ["mcp__weather__measure_rain"];
const SEARCH: [&str; 2] = ["tool_search", "tool_call"];

/// The answer to an `initialize` that is posted to this path with these headers.
fn post(gateway: &Running, path: &str, headers: &str) -> String {
    let address = gateway.url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_client_announces_its_window_by_address_or_header() {
    let (home, server) = (Home::new(), talkative());
    let gateway = gateway(&home, &server, &[]);
    let url = gateway.url.clone();
    let at = |query: &str| Running::tools(&format!("{url}{query}"));
    assert_eq!(at(""), ALL);
    assert_eq!(at("?context_window=200000"), SEARCH);
    assert_eq!(at("?context_window=1000000"), ALL);
    assert_eq!(at("?context_window=1000000&tool_search=auto%3A1"), SEARCH);
    assert_eq!(at("?tool_search=true"), SEARCH);
    // One server by itself is as it is.
    assert_eq!(at("/weather?tool_search=true"), ["measure_rain"]);
    let header = |header: &str| {
        let words = ["tools", "--json", "--header", header];
        let listed = crate::harness::mcp_at(&words, &url).clean();
        listed.contains("tool_search")
    };
    assert!(header("Cocode-Context-Window: 200000"));
    assert!(!header("Cocode-Context-Window: 1000000"));
    assert!(header("Cocode-Tool-Search: true"));
    let called = home.json(&[
        "mcp",
        "call",
        "tool_call",
        "name=mcp__weather__measure_rain",
        "--url",
        &format!("{url}?tool_search=true"),
    ]);
    assert_eq!(
        called["structuredContent"]["name"], "measure_rain",
        "{called}"
    );
    assert_eq!(gateway.end("-TERM"), (Some(0), String::new()));
}

#[test]
fn what_a_client_announces_wrongly_is_refused_with_what_is_allowed() {
    let (home, server) = (Home::new(), talkative());
    let gateway = gateway(&home, &server, &[]);
    for (path, headers, expected) in [
        (
            "/mcp?context_window=much",
            "",
            "a number of tokens above zero",
        ),
        (
            "/mcp?tool_search=yes",
            "",
            "auto, auto:N with N from 1 to 100, true, false",
        ),
        (
            "/mcp",
            "Cocode-Context-Window: 0\r\n",
            "a number of tokens above zero",
        ),
        (
            "/mcp",
            "Cocode-Tool-Search: maybe\r\n",
            "`maybe` is not one of auto",
        ),
    ] {
        let answer = post(&gateway, path, headers);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
    assert!(post(&gateway, "/mcp", "Cocode-Tool-Search: true\r\n").contains("200 OK"));
    let one = post(&gateway, "/mcp/weather?tool_search=yes", "");
    assert!(one.contains("200 OK"), "{one}");
    assert_eq!(gateway.end("-TERM"), (Some(0), String::new()));
}

#[test]
fn who_runs_a_gateway_decides_and_switched_off_is_off() {
    let server = talkative();
    for (config, words, at, expected) in [
        ("", &["--tool-search"][..], "", &SEARCH[..]),
        ("", &["--tool-search"], "?tool_search=false", &ALL),
        ("", &["--tool-search=false"], "?tool_search=true", &ALL),
        ("", &["--context-window", "200000"], "", &SEARCH),
        (
            "",
            &["--tool-search=auto:99", "--context-window", "200000"],
            "",
            &ALL,
        ),
        ("[tool_search]\nenabled = true\n", &[], "", &SEARCH),
        (
            "[tool_search]\nenabled = true\n",
            &["--tool-search=auto"],
            "",
            &ALL,
        ),
        (
            "[gateway.profiles.small]\ncontext_window = 200000\n",
            &["--profile", "small"],
            "",
            &SEARCH,
        ),
        (
            "[gateway.profiles.small]\ntool_search = true\n",
            &["--profile", "small"],
            "",
            &SEARCH,
        ),
    ] {
        let home = Home::new();
        home.user_file("config.toml", config);
        let gateway = gateway(&home, &server, words);
        let tools = Running::tools(&format!("{}{at}", gateway.url));
        assert_eq!(tools, expected, "{config} {words:?} {at}");
        assert_eq!(gateway.end("-TERM"), (Some(0), String::new()));
    }
}

#[test]
fn the_environment_counts_and_a_gateway_says_what_holds() {
    let (home, server) = (Home::new(), talkative());
    home.user_file("mcp.toml", &entry("weather", &server));
    let said = |value: &str| {
        let mut command = home.command(["gateway", "--listen", ":0"]);
        let mut child = start(command.env("ENABLE_TOOL_SEARCH", value));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("tool search"));
        signal(&child, "-TERM");
        let rest: Vec<_> = lines.collect();
        assert!(line.is_some(), "{rest:?}");
        child.wait().unwrap();
        line.unwrap_or_default()
    };
    assert_eq!(
        said("true"),
        "tool search: true (ENABLE_TOOL_SEARCH), clients search unless they say otherwise"
    );
    let mut command = home.command(["gateway", "--listen", ":0"]);
    let refused = Finished::of(command.env("ENABLE_TOOL_SEARCH", "yes").output().unwrap());
    refused.complains(&["ENABLE_TOOL_SEARCH", "`yes` is not one of auto"]);
    let refused = home.run(["gateway", "--tool-search=yes"]);
    refused.complains(&["`yes` is not one of auto"]);
}

/// The names of the tools that an agent sees.
fn tools(front: &mut crate::fronts::Client) -> Vec<String> {
    let listed = front.ask(1, "tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_agent_that_searches_shares_the_daemon_with_those_that_do_not() {
    let server = talkative();
    let site = Site::new(&entry("weather", &server));
    let mut all = site.front(&[]);
    all.open(&json!({}));
    all.skip_notifications();
    assert_eq!(tools(&mut all), ALL);
    for words in [&["--tool-search"][..], &["--context-window", "200000"]] {
        let mut searches = site.front(words);
        searches.open(&json!({}));
        searches.skip_notifications();
        assert_eq!(tools(&mut searches), SEARCH);
        let query = json!({ "name": "tool_search", "arguments": { "query": "rain" } });
        let found = searches.ask(2, "tools/call", &query);
        let found = &found["result"]["structuredContent"]["tools"][0]["name"];
        assert_eq!(*found, ALL[0]);
        let call = json!({ "name": "tool_call", "arguments": { "name": ALL[0] } });
        let called = searches.ask(3, "tools/call", &call);
        assert_eq!(called["result"]["content"][0]["text"], "wet", "{called}");
        let status = site.status();
        assert_eq!(status["fronts"].as_array().unwrap().len(), 2, "{status}");
        let mode = &status["fronts"][1]["toolSearch"];
        let expected = if words.len() == 1 {
            json!("true")
        } else {
            Value::Null
        };
        assert_eq!(*mode, expected, "{status}");
        searches.leave();
        crate::fronts::wait_while(|| site.status()["fronts"].as_array().unwrap().len() > 1);
    }
    // Said in the hello of a client, it travels, too.
    let mut hello = site.front(&[]);
    hello.open(&json!({ "experimental": { "cocode/toolSearch": { "contextWindow": 200_000 } } }));
    hello.skip_notifications();
    assert_eq!(tools(&mut hello), SEARCH);
    assert_eq!(server.runs().all(), [1]);
    // A server as it is cannot be searched.
    let refused = site
        .home
        .run(["mcp", "serve", "--server", "weather", "--tool-search"]);
    refused.complains(&["--server", "--tool-search"]);
}

#[test]
fn a_daemon_searches_what_it_remembers_without_starting_a_server() {
    // What is remembered is not read again for an hour.
    let tool = json!({ "name": "measure_rain", "inputSchema": { "type": "object" } });
    let list = json!({
        "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public", "tools": [tool],
    });
    let empty = |member: &str| json!({ "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public", member: [] });
    let script = Script::modern()
        .on("tools/list")
        .result(list)
        .on("prompts/list")
        .result(empty("prompts"))
        .on("resources/list")
        .result(empty("resources"))
        .on("resources/templates/list")
        .result(empty("resourceTemplates"))
        .on("tools/call")
        .text_result("wet");
    let server = script.stdio();
    let site = Site::new(&entry("weather", &server));
    let mut first = site.front(&[]);
    first.open(&json!({}));
    first.skip_notifications();
    assert_eq!(tools(&mut first), ALL);
    received(&server, 1, "prompts/list");
    first.leave();
    site.home.mcp(&["daemon", "stop"]).with_code(0);
    let mut searches = site.front(&["--tool-search"]);
    searches.open(&json!({}));
    searches.skip_notifications();
    assert_eq!(tools(&mut searches), SEARCH);
    let query = json!({ "name": "tool_search", "arguments": { "query": "rain" } });
    let found = searches.ask(2, "tools/call", &query);
    assert!(found.to_string().contains(ALL[0]), "{found}");
    assert_eq!(server.runs().all(), [1], "a server was started");
    let call = json!({ "name": "tool_call", "arguments": { "name": ALL[0] } });
    let called = searches.ask(3, "tools/call", &call);
    assert_eq!(called["result"]["content"][0]["text"], "wet", "{called}");
    assert_eq!(server.runs().all(), [1, 2]);
}
