//! The scripted server as a process, driven by hand over its pipes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use cocode_testkit::{Era, Gate, Message, Script, StdioServer};
use serde_json::{Value, json};

struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(server: &StdioServer) -> Self {
        let mut child = Command::new(server.program())
            .args(server.args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn call(&mut self, request: &Value) -> Value {
        self.send(request);
        self.json()
    }

    fn end(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn a_legacy_server_initializes_lists_and_calls() {
    let server = Script::new().stdio();
    let mut running = Running::start(&server);
    let answer = running.call(&request(
        1,
        "initialize",
        &json!({"protocolVersion": "2025-06-18"}),
    ));
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    running.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let answer = running.call(&request(2, "tools/list", &json!({})));
    assert_eq!(answer["result"]["tools"][0]["name"], "echo");
    let answer = running.call(&request(
        3,
        "tools/call",
        &json!({"name": "echo", "arguments": {"a": 1}}),
    ));
    assert_eq!(answer["id"], 3);
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"a":1}"#);
    assert_eq!(answer["result"]["structuredContent"], json!({"a": 1}));
    let answer = running.call(&request(
        4,
        "server/discover",
        &json!({"_meta": modern_meta()}),
    ));
    assert_eq!(answer["error"]["code"], -32601);
    assert!(running.end().success());
    let last = server
        .received()
        .wait_for_blocking(|message| message.is("server/discover"));
    assert_eq!((last.run, last.id()), (1, Some("4")));
    assert_eq!(server.received().all().len(), 5);
}

#[test]
fn a_modern_server_discovers_and_wants_meta() {
    let server = Script::modern().stdio();
    let mut running = Running::start(&server);
    let answer = running.call(&request(
        1,
        "server/discover",
        &json!({"_meta": modern_meta()}),
    ));
    assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(answer["result"]["ttlMs"].is_u64() && answer["result"]["cacheScope"].is_string());
    let answer = running.call(&request(2, "tools/list", &json!({})));
    assert_eq!(answer["error"]["code"], -32602);
    let mut other = modern_meta();
    other["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let answer = running.call(&request(3, "tools/list", &json!({"_meta": other})));
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]));
    let answer = running.call(&request(4, "initialize", &json!({})));
    assert_eq!(answer["error"]["code"], -32601);
    let listen = json!({"_meta": modern_meta(), "notifications": {"toolsListChanged": true}});
    let answer = running.call(&request(5, "subscriptions/listen", &listen));
    assert_eq!(answer["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        answer["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        5
    );
}

#[test]
fn a_dual_server_goes_by_the_meta_of_each_request() {
    let server = Script::new().era(Era::Dual).stdio();
    let mut running = Running::start(&server);
    let answer = running.call(&request(1, "initialize", &json!({})));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let answer = running.call(&request(2, "tools/list", &json!({})));
    assert_eq!(answer["result"]["resultType"], Value::Null);
    let answer = running.call(&request(3, "tools/list", &json!({"_meta": modern_meta()})));
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[test]
fn tools_come_in_pages() {
    let server = Script::new().tools(5, 2).stdio();
    let mut running = Running::start(&server);
    let (mut cursor, mut names) = (Value::Null, Vec::new());
    loop {
        let page = running.call(&request(1, "tools/list", &json!({"cursor": cursor})));
        let tools = page["result"]["tools"].as_array().unwrap();
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(names, ["tool-0", "tool-1", "tool-2", "tool-3", "tool-4"]);
}

#[test]
fn rules_override_by_occurrence() {
    let script = Script::new()
        .on("tools/list")
        .nth(1)
        .error(-32000, "not \"yet\"")
        .on("tools/list")
        .nth(3)
        .endless_cursor()
        .on("ping")
        .echo();
    let server = script.stdio();
    let mut running = Running::start(&server);
    let mut list = || running.call(&request(1, "tools/list", &json!({})));
    assert_eq!(list()["error"]["message"], "not \"yet\"");
    assert_eq!(list()["result"]["tools"][0]["name"], "echo");
    assert_eq!(list()["result"]["nextCursor"], "page-3");
    running.send(&request(2, "ping", &json!({})));
    assert_eq!(
        running.line(),
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n"
    );
}

#[test]
fn broken_output_is_sent_as_written() {
    let script = Script::new()
        .on("tools/call")
        .line("just a log line")
        .line(r#"{"id":$id,"result":{}}"#)
        .line(r#"{"id":$id,"result":{}}"#)
        .raw(b"\xff\xfe\n")
        .fill(3)
        .text("[$n")
        .exit(7);
    let server = script.stdio();
    let mut running = Running::start(&server);
    running.send(&request(9, "tools/call", &json!({})));
    let mut output = Vec::new();
    running.stdout.read_to_end(&mut output).unwrap();
    let answer = b"{\"id\":9,\"result\":{}}\n";
    assert_eq!(
        output,
        [
            b"just a log line\n",
            &answer[..],
            answer,
            b"\xff\xfe\nxxx[1"
        ]
        .concat()
    );
    assert_eq!(running.end().code(), Some(7));
}

#[test]
fn a_server_can_die_by_a_signal_before_the_handshake() {
    let server = Script::new().on_start().kill_self(9).stdio();
    let running = Running::start(&server);
    assert_eq!(running.end().signal(), Some(9));
}

#[test]
fn stderr_can_be_flooded() {
    let server = Script::new()
        .on_start()
        .stderr(300_001)
        .on("ping")
        .result("{}")
        .stdio();
    let mut running = Running::start(&server);
    let mut flood = running.child.stderr.take().unwrap();
    let mut bytes = vec![0; 300_001];
    flood.read_exact(&mut bytes).unwrap();
    assert_eq!(running.call(&request(1, "ping", &json!({})))["id"], 1);
}

#[test]
fn progress_comes_before_the_answer_and_the_answer_holds_what_was_asked() {
    let script = Script::new()
        .on("tools/call")
        .progress(1, 2)
        .ask("roots/list", "{}")
        .result(r#"{"asked":$answer}"#);
    let server = script.stdio();
    let mut running = Running::start(&server);
    running.send(&request(
        1,
        "tools/call",
        &json!({"_meta": {"progressToken": "t"}}),
    ));
    assert_eq!(
        running.json()["params"],
        json!({"progressToken": "t", "progress": 1, "total": 2})
    );
    let asked = running.json();
    assert_eq!(asked["method"], "roots/list");
    // A rule that waits does not keep the server from answering others.
    assert_eq!(running.call(&request(2, "ping", &json!({})))["id"], 2);
    running.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}));
    let answer = running.json();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["asked"]["result"], json!({"roots": []}));
}

#[test]
fn a_rule_can_wait_for_another_message() {
    let server = Script::new()
        .on("tools/call")
        .wait_for("notifications/cancelled")
        .echo()
        .stdio();
    let mut running = Running::start(&server);
    running.send(&request(1, "tools/call", &json!({"name": "echo"})));
    assert_eq!(running.call(&request(2, "ping", &json!({})))["id"], 2);
    running.send(&json!({"method": "notifications/cancelled", "params": {"requestId": 1}}));
    assert_eq!(running.json()["id"], 1);
}

#[tokio::test]
async fn a_gate_holds_a_rule_until_it_opens() {
    let gate = Gate::new();
    let server = Script::new().on("tools/call").hold(&gate).echo().stdio();
    let mut running = Running::start(&server);
    running.send(&request(1, "tools/call", &json!({})));
    gate.reached().await;
    assert_eq!(running.call(&request(2, "ping", &json!({})))["id"], 2);
    gate.open();
    assert_eq!(running.json()["id"], 1);
    let call = server.wait_for(|message| message.is("tools/call")).await;
    assert_eq!(call.params(), json!({}));
}

#[test]
fn runs_are_told_apart() {
    let server = Script::new().on("ping").run(1).exit(1).stdio();
    let mut first = Running::start(&server);
    first.send(&request(1, "ping", &json!({})));
    assert_eq!(first.end().code(), Some(1));
    let mut second = Running::start(&server);
    assert_eq!(
        second.call(&request(2, "ping", &json!({})))["result"],
        json!({})
    );
    let seen = server
        .received()
        .wait_for_blocking(|message| message.id() == Some("2"));
    assert_eq!(seen.run, 2);
    assert_eq!(server.runs().all(), [1, 2]);
}

#[test]
fn a_slow_reader_lets_the_pipe_fill_up() {
    let server = Script::new().on("ping").stop_reading().stdio();
    let mut running = Running::start(&server);
    running.send(&request(1, "ping", &json!({})));
    let mut stdin = running.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        // Far more than a pipe holds, so that only the death of the reader ends this.
        let mut outcome = Ok(());
        for _ in 0..1024 {
            outcome = stdin.write_all(&[b'x'; 8192]);
            if outcome.is_err() {
                break;
            }
        }
        outcome
    });
    server
        .received()
        .wait_for_blocking(|message| message.is("ping"));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert_eq!(
        writer.join().unwrap().unwrap_err().kind(),
        std::io::ErrorKind::BrokenPipe
    );
    assert_eq!(server.received().all().len(), 1);
}

#[test]
fn children_outlive_sigterm() {
    let script = Script::new()
        .ignore_sigterm()
        .on("tools/call")
        .fork()
        .result("$pids");
    let server = script.stdio();
    let mut running = Running::start(&server);
    let answer = running.call(&request(1, "tools/call", &json!({})));
    let pids: Vec<u64> = answer["result"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pid| pid.as_u64().unwrap())
        .collect();
    assert_eq!(pids.len(), 3);
    for pid in pids.iter().copied().chain([u64::from(running.child.id())]) {
        assert!(kill("TERM", pid));
    }
    assert_eq!(running.call(&request(2, "ping", &json!({})))["id"], 2);
    for pid in &pids {
        assert!(kill("0", *pid), "{pid} is gone");
        assert!(kill("KILL", *pid));
    }
    assert!(running.end().success());
}

fn kill(signal: &str, pid: u64) -> bool {
    let script = format!("kill -{signal} {pid}");
    Command::new("sh")
        .args(["-c", &script])
        .status()
        .unwrap()
        .success()
}

#[test]
fn text_that_is_no_json_is_recorded_too() {
    let server = Script::new().stdio();
    let mut running = Running::start(&server);
    running
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"not \"json\"\n")
        .unwrap();
    assert!(running.end().success());
    let message = server.received().wait_for_blocking(|_| true);
    assert_eq!(
        (message.raw.as_str(), message.method()),
        ("not \"json\"", None)
    );
}

#[test]
fn the_log_can_be_a_file() {
    let log = std::env::temp_dir().join(format!("cocode-scripted-{}.log", std::process::id()));
    let (program, arguments) = Script::new().command();
    let mut child = Command::new(program)
        .args(arguments)
        .args(["--era", "modern", "--log"])
        .arg(&log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let sent = "{\"id\":1, \"method\":\"ping\"}\nhello\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(sent.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let logged = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert_eq!(logged, "{\"id\":1, \"method\":\"ping\"}\n\"hello\"\n");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn a_wrong_script_is_refused() {
    let output = Command::new(cocode_testkit::program())
        .args(["--script", "{\"rules\":7}"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a script"));
}

#[test]
fn a_killed_process_dies_of_the_signal_and_the_next_run_starts_as_usual() {
    let server = Script::new().on("ping").run(2).error(1, "second").stdio();
    let mut first = Running::start(&server);
    assert_eq!(first.call(&request(1, "ping", &json!({})))["id"], 1);
    server.kill();
    assert_eq!(first.line(), "");
    assert_eq!(first.end().signal(), Some(9));
    let mut second = Running::start(&server);
    let answer = second.call(&request(2, "ping", &json!({})));
    assert_eq!(answer["error"]["message"], "second");
    assert!(second.end().success());
}

#[test]
fn a_restarted_process_follows_the_new_script() {
    let server = Script::new().stdio();
    let mut first = Running::start(&server);
    first.call(&request(1, "ping", &json!({})));
    server.restart(&Script::new().tools(2, 10));
    assert_eq!(first.end().signal(), Some(9));
    let mut second = Running::start(&server);
    let answer = second.call(&request(2, "tools/list", &json!({})));
    assert_eq!(answer["result"]["tools"][1]["name"], "tool-1");
    assert_eq!(server.runs().all(), [1, 2]);
}

#[test]
fn a_process_that_hangs_answers_only_when_it_is_resumed() {
    let server = Script::new().stdio();
    let mut running = Running::start(&server);
    running.call(&request(1, "ping", &json!({})));
    server.hang();
    running.send(&request(2, "ping", &json!({})));
    let second = |message: &Message| message.id() == Some("2");
    assert_eq!(server.received().count(second), 0);
    server.resume();
    assert_eq!(running.json()["id"], 2);
    server.received().wait_for_blocking(second);
}
