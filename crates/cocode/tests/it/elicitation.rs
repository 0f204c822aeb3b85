//! Questions of a server, answered beforehand or not at all.

use cocode_testkit::Script;
use serde_json::{Value, json};

use crate::harness::{mcp, received};

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"age":{"type":"integer","default":3},"ok":{"type":"boolean"}}}}"#;

fn legacy() -> Script {
    Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
}

/// A stateless server asks in its result, and is asked again with the answer.
fn modern() -> Script {
    Script::modern()
        .on("tools/call")
        .nth(1)
        .result(format!(
            r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{FORM}}}}},"requestState":"s"}}"#
        ))
        .on("tools/call")
        .result(r#"{"resultType":"complete","content":[],"structuredContent":$params}"#)
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn answers_given_beforehand_fill_the_form_in_both_eras() {
    let content = json!({"name": "Ada", "age": 3, "ok": true});
    let words = ["call", "echo", "--answer", "name=Ada", "--answer", "ok=yes"];
    let answer = json(&mcp(&words, &legacy().stdio()).clean());
    assert_eq!(
        answer["result"],
        json!({"action": "accept", "content": content})
    );
    let answer = json(&mcp(&words, &modern().stdio()).clean());
    assert_eq!(
        answer["inputResponses"]["q"],
        json!({"action": "accept", "content": content})
    );
    assert_eq!(answer["requestState"], "s");
}

#[test]
fn answers_that_do_not_fit_decline() {
    let finished = mcp(&["call", "echo", "--answer", "age=4"], &legacy().stdio()).with_code(0);
    assert_eq!(
        json(&finished.stdout)["result"],
        json!({"action": "decline"})
    );
    finished.complains(&["declined a question", "the form needs `name`"]);
    let words = [
        "call", "echo", "--answer", "name=Ada", "--answer", "age=old",
    ];
    let finished = mcp(&words, &legacy().stdio()).with_code(0);
    assert_eq!(
        json(&finished.stdout)["result"],
        json!({"action": "decline"})
    );
    finished.complains(&["`--answer age`: this must be a whole number"]);
}

#[test]
fn answers_that_nobody_asked_for_are_told() {
    let words = ["call", "echo", "--answer", "nam=Ada", "--answer", "x=1"];
    let finished = mcp(&words, &legacy().stdio()).with_code(0);
    finished.complains(&[
        "the form needs `name`",
        "`nam` was not asked for; did you mean `name`?",
        "`x` was not asked for\n",
    ]);
}

#[test]
fn questions_are_offered_only_when_they_can_be_answered() {
    let server = legacy().stdio();
    let refused = json(&mcp(&["call", "echo"], &server).clean());
    assert_eq!(refused["error"]["code"], -32601);
    mcp(&["call", "echo", "--answer", "name=Ada"], &server).with_code(0);
    let offered = [1, 2].map(|run| {
        let hello = received(&server, run, "initialize");
        hello.params()["capabilities"].clone()
    });
    assert_eq!(offered, [json!({}), json!({"elicitation": {"form": {}}})]);
    mcp(&["call", "echo"], &modern().stdio())
        .with_code(3)
        .complains(&["hint: the server has a question", "--answer KEY=VALUE"]);
}

#[test]
fn pages_that_have_to_be_visited_first_are_named() {
    let server = Script::new()
        .on("tools/call")
        .line(r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32042,"message":"Sign in first","data":{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://login.example/x","message":"Sign in"}]}}}"#)
        .stdio();
    mcp(&["call", "echo"], &server).with_code(1).complains(&[
        "Sign in first (code -32042)",
        "hint: visit https://login.example/x if you trust it, then try again",
    ]);
}
