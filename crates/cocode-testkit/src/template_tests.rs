//! What the variables become.

use serde_json::json;

use super::*;

fn filled(template: impl Into<Template>) -> String {
    let message = Message::parse(
        3,
        r#"{"id":"a-1","method":"tools/call","params":{ "arguments":{"x":1.0},"_meta":{"progressToken":7}}}"#,
    );
    Scope::of(&message, 2).fill(&template.into())
}

#[test]
fn variables_are_replaced_verbatim() {
    let check = |template: &str, expected: &str| assert_eq!(filled(template), expected);
    check("$id", r#""a-1""#);
    check(
        "$params",
        r#"{ "arguments":{"x":1.0},"_meta":{"progressToken":7}}"#,
    );
    check("[$arguments,$token,$n,$run]", r#"[{"x":1.0},7,2,3]"#);
    check("$method$answer$pids", r#""tools/call"null[]"#);
}

#[test]
fn a_quoted_variable_loses_its_quotes() {
    let text = filled(json!({"id": "$id", "page": "page-$n"}));
    assert_eq!(text, r#"{"id":"a-1","page":"page-2"}"#);
}

#[test]
fn other_dollars_stay() {
    assert_eq!(filled("$name $ $$id $1 $"), "$name $ $id $1 $");
}
