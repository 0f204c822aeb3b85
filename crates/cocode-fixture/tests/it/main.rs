//! The fixture over standard input and output, in the eras that no suite can drive it in.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "tests start the fixture, and fail by panicking"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A running fixture, and its client.
struct Fixture {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Fixture {
    fn start(era: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cocode-fixture"))
            .args(["stdio", "--era", era])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the fixture starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("standard output"));
        Self {
            child,
            input,
            output,
        }
    }

    fn initialized(era: &str) -> Self {
        let mut fixture = Self::start(era);
        let answer = fixture.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        fixture.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        fixture
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("standard input is open");
        writeln!(input, "{message}").expect("the fixture reads");
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("the fixture writes");
        serde_json::from_str(&line).expect("a message")
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": "r", "method": method, "params": params }));
        self.receive()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // It ends when its input does.
        self.input.take();
        self.child.wait().expect("the fixture ends");
    }
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    params
}

fn answer_to(question: &Value) -> Value {
    let result = match question["method"].as_str() {
        Some("elicitation/create") => {
            json!({ "action": "accept", "content": { "name": "Alice" } })
        }
        Some("sampling/createMessage") => {
            json!({ "role": "assistant", "content": { "type": "text", "text": "Hello" }, "model": "m" })
        }
        Some("roots/list") => json!({ "roots": [{ "uri": "file:///root" }] }),
        other => panic!("asked {other:?}"),
    };
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

/// All questions are there before the first answer, so that a gateway can ask them together.
#[test]
fn a_legacy_client_is_sent_all_questions_at_once() {
    for era in ["legacy", "both"] {
        let mut fixture = Fixture::initialized(era);
        let name = "test_input_required_result_multiple_inputs";
        fixture.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": name } }));
        let questions = [fixture.receive(), fixture.receive(), fixture.receive()];
        for question in &questions {
            fixture.send(&answer_to(question));
        }
        assert_eq!(
            fixture.receive()["result"]["content"][0]["text"],
            "Hello Alice of file:///root"
        );
    }
}

#[test]
fn a_modern_client_gets_the_questions_as_the_result() {
    for era in ["modern", "both"] {
        let mut fixture = Fixture::start(era);
        let call =
            || modern(json!({ "name": "test_elicitation", "arguments": { "message": "m" } }));
        let answer = fixture.request("tools/call", &call());
        assert_eq!(
            answer["result"]["inputRequests"]["user"]["method"],
            "elicitation/create"
        );
        let mut again = call();
        again["inputResponses"] = json!({ "user": { "action": "decline" } });
        assert_eq!(
            fixture.request("tools/call", &again)["result"]["content"][0]["text"],
            "User response: action=decline, content=null"
        );
    }
}

#[test]
fn a_client_that_cannot_be_asked_is_told() {
    let mut fixture = Fixture::start("modern");
    let call = modern(json!({ "name": "test_missing_capability" }));
    let error = fixture.request("tools/call", &call)["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"],
        json!({ "requiredCapabilities": { "sampling": {} } })
    );
}

#[test]
fn each_era_refuses_the_beginning_of_the_other() {
    let mut fixture = Fixture::start("legacy");
    let answer = fixture.request("server/discover", &modern(json!({})));
    assert_eq!(answer["error"]["code"], -32601);
    let mut fixture = Fixture::start("modern");
    let answer = fixture.request("initialize", &json!({ "protocolVersion": "2025-11-25" }));
    assert_eq!(answer["error"]["code"], -32601);
    let answer = fixture.request("server/discover", &modern(json!({})));
    assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]));
}

#[test]
fn a_subscriber_is_told_of_updates_until_it_unsubscribes() {
    let mut fixture = Fixture::initialized("legacy");
    let watched = || json!({ "uri": "test://watched-resource" });
    assert_eq!(
        fixture.request("resources/subscribe", &watched())["result"],
        json!({})
    );
    let trigger = || json!({ "name": "test_trigger_resource_update" });
    fixture
        .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": trigger() }));
    // The answer and the notification come in any order.
    let mut received = [fixture.receive(), fixture.receive()];
    received.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(received[0]["method"], "notifications/resources/updated");
    assert_eq!(received[0]["params"], watched());
    assert_eq!(received[1]["result"]["content"][0]["text"], "Announced");

    fixture.request("resources/unsubscribe", &watched());
    let answer = fixture.request("tools/call", &trigger());
    assert_eq!(answer["result"]["content"][0]["text"], "Announced");
    let answer = fixture.request("ping", &json!({}));
    assert_eq!(answer["result"], json!({}), "nothing came in between");
}
