//! What a server sends comes out of `--json` byte for byte.

use cocode_testkit::Script;

use crate::harness::{mcp, mcp_at};

/// Unknown fields, odd key order and blanks, numbers that no float holds, escapes of every kind.
const ODD: &str = concat!(
    r#"{ "zeta":1e400 ,"unknown":{"b":[1.10,-0,1E+2],"a":12345678901234567890123456789},"#,
    r#""text":"é\u00e9\ud83d\ude00\/\u0000","content":[{"type":"text","text":"x","#,
    r#""extra":0.1000000000000000055511151231257827}],"dup":1,"dup":2,"alpha":null }"#
);

fn script() -> Script {
    // Lists and other results, with the members that each method promises put in front.
    let list = |member: &str| format!(r#"{{"{member}":[{ODD}],{}"#, ODD.trim_start_matches('{'));
    Script::new()
        .on("tools/list")
        .result(list("tools"))
        .on("tools/call")
        .result(ODD)
        .on("resources/list")
        .result(list("resources"))
        .on("resources/templates/list")
        .result(list("resourceTemplates"))
        .on("resources/read")
        .result(list("contents"))
        .on("prompts/list")
        .result(list("prompts"))
        .on("prompts/get")
        .result(ODD)
        .on("completion/complete")
        .result(format!(
            r#"{{"completion":{{"values":[],"x":1.10}},{}"#,
            ODD.trim_start_matches('{')
        ))
}

fn expected(member: &str) -> String {
    format!("{{\"{member}\":[{ODD}],{}\n", ODD.trim_start_matches('{'))
}

#[test]
fn every_verb_prints_what_the_server_sent_byte_for_byte() {
    let server = script().stdio();
    let http = script().http();
    let streamed = script().event_answers().http();
    for (words, expected) in [
        (&["call", "demo", "--no-check"][..], format!("{ODD}\n")),
        (&["tools", "-q"], expected("tools")),
        (&["resources", "-q"], expected("resources")),
        (
            &["resources", "--templates", "-q"],
            expected("resourceTemplates"),
        ),
        (&["read", "x:"], expected("contents")),
        (&["prompts", "-q"], expected("prompts")),
        (&["prompt", "greet", "--no-check"], format!("{ODD}\n")),
        (
            &["complete", "--prompt", "greet", "a", ""],
            format!(
                "{{\"completion\":{{\"values\":[],\"x\":1.10}},{}\n",
                ODD.trim_start_matches('{')
            ),
        ),
    ] {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        assert_eq!(
            mcp(&words, &server).clean(),
            expected,
            "{words:?} over stdio"
        );
        assert_eq!(
            mcp_at(&words, &http.url()).clean(),
            expected,
            "{words:?} over HTTP"
        );
        assert_eq!(
            mcp_at(&words, &streamed.url()).clean(),
            expected,
            "{words:?} as events"
        );
    }
}

#[test]
fn arguments_reach_the_tool_byte_for_byte() {
    let server = Script::new()
        .on("tools/call")
        .result(r#"{"content":[],"structuredContent":$arguments}"#)
        .stdio();
    let words = ["call", "echo", "--args", ODD, "--json"];
    let result = mcp(&words, &server).clean();
    assert!(
        result.contains(&format!(r#""structuredContent":{ODD}"#)),
        "{result}"
    );
}

#[test]
fn the_data_of_an_error_comes_out_as_it_is() {
    let server = Script::new()
        .on("tools/call")
        .line(format!(
            r#"{{"jsonrpc":"2.0","id":$id,"error":{{"code":-32000,"message":"no","data":{ODD}}}}}"#
        ))
        .stdio();
    let finished = mcp(&["call", "echo", "--json"], &server).with_code(1);
    assert_eq!(finished.stdout, "");
    let whole = format!(r#""rpc":{{"code":-32000,"message":"no","data":{ODD}}}"#);
    finished.complains(&[&whole]);
}
