//! Calls: arguments in, results out.

use cocode_testkit::Script;
use serde_json::Value;

use crate::harness::{Scratch, mcp, mcp_with_stdin, received};

const LIST: &str = r#"{"tools":[{"name":"demo","inputSchema":{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string"},"limit":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"any":{}}}},{"name":"bad"}]}"#;

/// A server whose tool answers with the arguments that it got.
fn demo() -> Script {
    Script::new()
        .on("tools/list")
        .result(LIST)
        .on("tools/call")
        .result(r#"{"content":[],"structuredContent":$arguments}"#)
}

#[test]
fn words_become_the_arguments_that_the_schema_asks_for() {
    let server = demo().stdio();
    let words = [
        "call",
        "demo",
        "path=5",
        "limit=12345678901234567890123",
        "tags=a",
        "tags=b",
        "any:= 1.10",
    ];
    assert_eq!(
        mcp(&words, &server).clean(),
        "{\"path\":\"5\",\"limit\":12345678901234567890123,\"tags\":[\"a\",\"b\"],\"any\": 1.10}\n"
    );
}

#[test]
fn objects_come_from_an_option_stdin_or_files() {
    let server = demo().stdio();
    let args = r#"{ "path" : "x", "any":1e400 }"#;
    assert_eq!(
        mcp(&["call", "demo", "--args", args], &server).clean(),
        format!("{args}\n")
    );
    let words = ["call", "demo", "--args", args, "path=y"];
    assert_eq!(
        mcp(&words, &server).clean(),
        "{\"path\":\"y\",\"any\":1e400}\n"
    );
    let words = ["call", "demo", "-", "limit=3"];
    assert_eq!(
        mcp_with_stdin(&words, &server, "{\"path\":\"in\",\n\"any\":1.10}\n").clean(),
        "{\"path\":\"in\",\"any\":1.10,\"limit\":3}\n"
    );
    let scratch = Scratch::new();
    let text = format!("path=@{}", scratch.file("text", "line\n"));
    let json = format!("any:=@{}", scratch.file("json", "[1.10]"));
    assert_eq!(
        mcp(&["call", "demo", &text, &json], &server).clean(),
        "{\"path\":\"line\\n\",\"any\":[1.10]}\n"
    );
}

#[test]
fn one_value_may_come_from_stdin() {
    let server = demo().stdio();
    assert_eq!(
        mcp_with_stdin(&["call", "demo", "path=@-"], &server, "a\nb").clean(),
        "{\"path\":\"a\\nb\"}\n"
    );
    let words = ["call", "demo", "path=x", "any:=@-"];
    assert_eq!(
        mcp_with_stdin(&words, &server, "[1.10]").clean(),
        "{\"path\":\"x\",\"any\":[1.10]}\n"
    );
    for twice in [["path=@-", "any=@-"], ["-", "path=@-"], ["path=@-", "-"]] {
        mcp(&[&["call", "demo"][..], &twice].concat(), &server)
            .with_code(2)
            .complains(&["stdin can be read only once"]);
    }
}

#[test]
fn what_does_not_fit_is_told_before_anything_is_called() {
    let server = demo().stdio();
    for (run, (words, parts)) in (1..).zip([
        (
            &["call", "demo"][..],
            &["tool `demo` needs `path`", "limit (integer)"][..],
        ),
        (
            &["call", "demo", "path=x", "limit=many"],
            &["argument `limit` of tool `demo` must be integer, not `many`"],
        ),
        (
            &["call", "demo", "path=x", "limti=1"],
            &["has no argument `limti`", "did you mean `limit`?"],
        ),
        (
            &["call", "dmeo"],
            &[
                "lists no tool `dmeo`",
                "did you mean `demo`?",
                "unknown-tool",
            ],
        ),
        (
            &["call", "bad"],
            &[
                "`bad` cannot be used: it has no inputSchema",
                "--no-check",
                "unusable-tool",
            ],
        ),
    ]) {
        mcp(words, &server).with_code(2).complains(parts);
        received(&server, run, "tools/list");
    }
    assert_eq!(
        server.received().count(|message| message.is("tools/call")),
        0
    );
}

#[test]
fn a_misspelled_optional_argument_is_not_sent_unless_somebody_insists() {
    let list = r#"{"tools":[{"name":"edit","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"dryRun":{"type":"boolean"}}}}]}"#;
    let server = Script::new()
        .on("tools/list")
        .result(list)
        .on("tools/call")
        .result(r#"{"content":[],"structuredContent":$arguments}"#)
        .stdio();
    for word in ["dryrun=true", "dryrun:=true"] {
        mcp(&["call", "edit", "path=x", word], &server)
            .with_code(2)
            .complains(&[
                "tool `edit` has no argument `dryrun`",
                "did you mean `dryRun`?",
                "path (string), dryRun (boolean)",
                "--no-check",
            ]);
    }
    received(&server, 2, "tools/list");
    let calls = |message: &cocode_testkit::Message| message.is("tools/call");
    assert_eq!(server.received().count(calls), 0);

    let finished = mcp(&["call", "edit", "--args", r#"{"dryrun":true}"#], &server).with_code(0);
    assert_eq!(finished.stdout, "{\"dryrun\":true}\n");
    finished.complains(&["warning:", "no argument `dryrun`; did you mean `dryRun`?"]);
    let words = ["call", "edit", "dryrun:=true", "--no-check"];
    assert_eq!(mcp(&words, &server).clean(), "{\"dryrun\":true}\n");
}

#[test]
fn mistakes_that_need_no_server_start_none() {
    let server = demo().stdio();
    for words in [
        &["call", "demo", "word"][..],
        &["call", "demo", "a:={"],
        &["call", "demo", "--args", "[]"],
        &["ping", "--root", "/no/such/directory"],
        &["ping", "--root", env!("CARGO_BIN_EXE_cocode")],
    ] {
        mcp(words, &server).with_code(2);
    }
    assert_eq!(server.runs().all(), [0_u32; 0]);
}

#[test]
fn unchecked_calls_ask_for_no_list_and_convert_nothing() {
    let server = demo().stdio();
    let words = ["call", "hidden", "--no-check", "limit=5", "limit2:=5"];
    assert_eq!(
        mcp(&words, &server).clean(),
        "{\"limit\":\"5\",\"limit2\":5}\n"
    );
    received(&server, 1, "tools/call");
    assert_eq!(
        server.received().count(|message| message.is("tools/list")),
        0
    );
}

#[test]
fn content_of_every_kind_is_shown_or_saved() {
    let server = Script::new()
        .on("tools/call")
        .result(r#"{"content":[{"type":"text","text":"one"},{"type":"image","data":"AQID","mimeType":"image/png"},{"type":"resource_link","uri":"a:b","name":"B"},{"type":"resource","resource":{"uri":"c:","text":"inside"}},{"type":"new","x":1.10}],"structuredContent":{"a":1}}"#)
        .stdio();
    assert_eq!(
        mcp(&["call", "echo"], &server).clean(),
        "one\n[image image/png, 3 B]\na:b (B)\ninside\n{\"type\":\"new\",\"x\":1.10}\n"
    );
    let scratch = Scratch::new();
    let directory = scratch.path().join("new");
    let saved = mcp(
        &["call", "echo", "--save", directory.to_str().unwrap()],
        &server,
    )
    .clean();
    let path = directory.join("echo-1.png");
    assert_eq!(saved.lines().nth(1), path.to_str());
    assert_eq!(std::fs::read(path).unwrap(), [1, 2, 3]);
}

#[test]
fn results_without_content_are_shown_for_what_they_are() {
    for (result, expected) in [
        (r#"{"content":[]}"#, "(the result is empty)\n"),
        (r#"{"toolResult":7}"#, "{\"toolResult\":7}\n"),
        (
            r#"{"content":[],"structuredContent":{"b":1,"a":2}}"#,
            "{\"b\":1,\"a\":2}\n",
        ),
    ] {
        let server = Script::new().on("tools/call").result(result).stdio();
        assert_eq!(mcp(&["call", "echo"], &server).clean(), expected);
    }
}

#[test]
fn a_tool_that_fails_says_so_on_stderr() {
    let server = Script::new()
        .on("tools/call")
        .result(r#"{"isError":true,"content":[{"type":"text","text":"no such file"}]}"#)
        .stdio();
    let finished = mcp(&["call", "echo"], &server).with_code(1);
    assert_eq!(finished.stdout, "");
    assert_eq!(
        finished.stderr,
        "no such file\nerror: the tool `echo` reported an error\n  code: tool-error (cocode explain tool-error)\n"
    );
    let finished = mcp(&["call", "echo", "--json"], &server).with_code(1);
    assert_eq!(
        finished.stdout,
        "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no such file\"}]}\n"
    );
    assert_eq!(finished.error()["code"], "tool-error");
}

#[test]
fn progress_is_shown_in_verbose_lines_where_there_is_no_terminal() {
    let script = Script::new()
        .on("tools/call")
        .progress(1, 2)
        .progress(2, 2)
        .text_result("done");
    let server = script.stdio();
    assert_eq!(mcp(&["call", "echo"], &server).clean(), "done\n");
    let finished = mcp(&["call", "echo", "-v"], &server).with_code(0);
    finished.complains(&["progress: 1/2\nprogress: 2/2\n"]);
    assert_eq!(finished.stdout, "done\n");
}

#[test]
fn a_server_that_wants_roots_at_once_has_them_before_anything_else_is_asked() {
    let script = Script::new()
        .on("notifications/initialized")
        .ask("roots/list", "{}")
        .on("tools/call")
        .text_result("done");
    let server = script.stdio();
    let scratch = Scratch::new();
    let words = [
        "call",
        "echo",
        "--no-check",
        "--root",
        scratch.path().to_str().unwrap(),
    ];
    assert_eq!(mcp(&words, &server).clean(), "done\n");
    received(&server, 1, "tools/call");
    let messages = server.received().all();
    let answered = messages
        .iter()
        .position(|message| message.json()["result"]["roots"].is_array());
    let called = messages.iter().position(|message| message.is("tools/call"));
    assert!(answered.unwrap() < called.unwrap(), "{messages:?}");
}

#[test]
fn files_are_saved_beside_json_as_well() {
    let result = r#"{"content":[{"type":"text","text":"x"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}]}"#;
    let server = Script::new().on("tools/call").result(result).stdio();
    let scratch = Scratch::new();
    let directory = scratch.path().join("out");
    let words = [
        "call",
        "echo",
        "--json",
        "--save",
        directory.to_str().unwrap(),
    ];
    let finished = mcp(&words, &server).with_code(0);
    assert_eq!(finished.stdout, format!("{result}\n"));
    let saved: Value = serde_json::from_str(&finished.stderr).unwrap();
    let path = saved["saved"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "hello");
}

#[test]
fn roots_are_offered_when_they_are_named() {
    let script = Script::new()
        .on("tools/call")
        .ask("roots/list", "{}")
        .result(r#"{"content":[],"structuredContent":$answer}"#);
    let server = script.stdio();
    let scratch = Scratch::new();
    let root = scratch.path().canonicalize().unwrap();
    let words = ["call", "echo", "--root", root.to_str().unwrap()];
    let answer: Value = serde_json::from_str(&mcp(&words, &server).clean()).unwrap();
    assert_eq!(
        answer["result"]["roots"][0]["uri"],
        format!("file://{}", root.display())
    );
    let refused: Value = serde_json::from_str(&mcp(&["call", "echo"], &server).clean()).unwrap();
    assert_eq!(refused["error"]["code"], -32601);
}
