//! The scripted model itself: what it says, what it refuses, and scripts from files.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{ModelFormat, ModelScript, ModelTurn, ScriptedModel};

/// Posts a request, and comes back with the whole answer.
fn post(server: &ScriptedModel, path: &str, body: &Value) -> String {
    let address = server.port.address();
    let mut connection = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    write!(
        connection,
        "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\nx-api-key: k\r\n\
         anthropic-version: 2023-06-01\r\nAuthorization: Bearer k\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    // The server keeps the connection; the end of the answer shows in its last bytes.
    while !answer.ends_with(b"0\r\n\r\n") && !answer.ends_with(b"}") {
        let n_read = connection.read(&mut buffer).unwrap();
        assert!(n_read > 0, "the connection ended early");
        answer.extend_from_slice(&buffer[..n_read]);
    }
    String::from_utf8(answer).unwrap()
}

fn request(format: ModelFormat, messages: &Value) -> Value {
    match format {
        ModelFormat::Anthropic => {
            json!({"model": "m", "stream": true, "max_tokens": 9, "messages": messages})
        }
        ModelFormat::Responses => {
            json!({"model": "m", "stream": true, "store": false, "input": messages})
        }
        ModelFormat::Chat => json!({"model": "m", "stream": true, "messages": messages}),
    }
}

#[test]
fn the_same_script_is_spoken_in_every_format() {
    for (format, messages, last) in [
        (
            ModelFormat::Anthropic,
            json!([{"role": "user", "content": "hi"}]),
            "message_stop",
        ),
        (
            ModelFormat::Responses,
            json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]),
            "response.completed",
        ),
        (
            ModelFormat::Chat,
            json!([{"role": "user", "content": "hi"}]),
            "[DONE]",
        ),
    ] {
        let script = r#"{"turns": [{"parts": [{"text": ["hel", "lo"]}, {"call": {"id": "c", "name": "t",
            "arguments": "{}"}}]}]}"#;
        let server = ModelScript::parse(script).unwrap().start(format);
        let answer = post(&server, format.path(), &request(format, &messages));
        server.assert_no_violations();
        assert!(
            answer.contains("hel") && answer.contains(last),
            "{format:?}: {answer}"
        );
        assert_eq!(server.bodies().len(), 1);
        let over = post(&server, format.path(), &request(format, &messages));
        assert!(over.starts_with("HTTP/1.1 500"), "{over}");
        assert_eq!(server.violations(), ["request 2: the script is over"]);
    }
}

#[test]
fn requests_that_break_rules_are_refused_and_remembered() {
    let calls = json!([{"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b"}]}]);
    for (format, messages, expected) in [
        (ModelFormat::Anthropic, calls, "immediately after: a"),
        (
            ModelFormat::Anthropic,
            json!([{"role": "assistant", "content": "hi"}]),
            "roles must alternate",
        ),
        (
            ModelFormat::Responses,
            json!([{"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"}]),
            "No tool output found for function call a.",
        ),
        (
            ModelFormat::Chat,
            json!([{"role": "tool", "tool_call_id": "x", "content": ""}]),
            "tool_call_id 'x' not found",
        ),
    ] {
        let server = ModelScript::new()
            .forever(ModelTurn::new().text("hi"))
            .start(format);
        let answer = post(&server, format.path(), &request(format, &messages));
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        let found = server.violations().join("\n");
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_script_with_words_that_do_not_exist_is_refused() {
    assert!(ModelScript::parse(r#"{"turns": [{"say": "hi"}]}"#).is_err());
}
