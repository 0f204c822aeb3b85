//! What clients have servers do, under the eyes of an overseer: each thing once, whatever the way.

use std::sync::{Arc, Mutex};

use cocode_client::{Annotations, ClientCapabilities, Protocol, RequestOptions, Session};
use cocode_core::{ServerName, Verdict};
use cocode_gateway::{Deed, Gate, Ongoing, Outcome, Overseer, Unwatched, ViewOptions};
use cocode_testkit::Script;
use cocode_wire::{RawJson, RpcError};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::merged::house::{House, ask, with_tools};
use crate::merged::search::searching;
use crate::support::{Person, Rig, Server, call};

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Legacy, Protocol::Modern];

/// Writes everything down, and refuses what is about `forbidden`.
#[derive(Default)]
pub(crate) struct Ledger {
    lines: Mutex<Vec<String>>,
    more: Notify,
}

impl Ledger {
    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
        self.more.notify_waiters();
    }

    /// What was written down since somebody asked last.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    pub(crate) async fn wait_for(&self, line: &str) {
        loop {
            let more = self.more.notified();
            if self.lines.lock().unwrap().iter().any(|one| one == line) {
                return;
            }
            more.await;
        }
    }
}

struct Book(Arc<Ledger>);

impl Overseer for Book {
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        let line = format!(
            "{} {} {} {} {} {}",
            deed.principal.unwrap_or("-"),
            deed.client.unwrap_or("-"),
            deed.method,
            deed.server.map_or("-", ServerName::as_str),
            deed.name,
            deed.arguments.map_or("-", RawJson::as_str),
        );
        if deed.name == "forbidden" {
            self.0.write(format!("refused {line}"));
            return Err(RpcError {
                code: -32050,
                message: "not so often".into(),
                data: RawJson::of(&json!({ "retryAfter": 3 })).ok(),
            });
        }
        self.0.write(line);
        Ok(Box::new(Entry(Arc::clone(&self.0), false)))
    }
}

struct Entry(Arc<Ledger>, bool);

impl Ongoing for Entry {
    fn progress(&self, params: &RawJson) {
        let params: Value = params.decode().unwrap();
        self.0.write(format!("progress {}", params["progress"]));
    }

    fn ended(mut self: Box<Self>, outcome: Outcome) {
        self.1 = true;
        let line = match outcome {
            Outcome::Ok { bytes } | Outcome::ToolError { bytes } if bytes < 2 => "empty".into(),
            Outcome::Ok { .. } => "ok".to_owned(),
            Outcome::ToolError { .. } => "failed".to_owned(),
            Outcome::Error { code, .. } => format!("error {code}"),
            Outcome::AsksForInput => "asks".to_owned(),
            Outcome::Denied => "denied".to_owned(),
        };
        self.0.write(line);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.1 {
            self.0.write("given up".into());
        }
    }
}

pub(crate) fn watched(options: ViewOptions) -> (ViewOptions, Arc<Ledger>) {
    let ledger = Arc::<Ledger>::default();
    let options = ViewOptions {
        principal: Some("ann".into()),
        overseer: Arc::new(Book(Arc::clone(&ledger))),
        ..options
    };
    (options, ledger)
}

/// A request of either era, and its answer.
pub(crate) async fn request(
    house: &House,
    at: &str,
    era: Protocol,
    method: &str,
    params: Value,
) -> Value {
    let endpoint = match at {
        "" => house.view.all(),
        name => house.view.server(name).unwrap(),
    };
    if era == Protocol::Modern {
        let mut client = house.stateless_at(endpoint);
        return client.modern(7, method, params).await;
    }
    let mut client = house.raw_at(endpoint).await;
    let answer = ask(&mut client, method, &params.to_string()).await;
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn every_deed_is_begun_and_ended_once_in_both_rooms_and_all_eras() {
    let (options, ledger) = watched(ViewOptions::default());
    let scripts = [("old", Script::new()), ("new", Script::modern())];
    let house = House::with(&scripts, options, |_| {}).await;
    let listed = request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
    assert!(listed["result"].is_object(), "{listed}");
    assert_eq!(ledger.take(), [""; 0], "lists are no deeds");
    for era in BOTH {
        for server in ["old", "new"] {
            for at in ["", server] {
                let shown = |name: &str| match at {
                    "" => format!("mcp__{server}__{name}"),
                    _ => name.to_owned(),
                };
                let uri = match at {
                    "" => format!("cocode://{server}/scripted://hello"),
                    _ => "scripted://hello".to_owned(),
                };
                let word = json!({ "word": "é" });
                for (method, params, expected) in [
                    (
                        "tools/call",
                        json!({ "name": shown("echo"), "arguments": word }),
                        r#"echo {"word":"é"}"#.to_owned(),
                    ),
                    (
                        "resources/read",
                        json!({ "uri": uri }),
                        "scripted://hello -".to_owned(),
                    ),
                    (
                        "prompts/get",
                        json!({ "name": shown("greet"), "arguments": {} }),
                        "greet {}".to_owned(),
                    ),
                    (
                        "completion/complete",
                        json!({
                            "ref": { "type": "ref/prompt", "name": shown("greet") },
                            "argument": { "name": "a", "value": "b" },
                        }),
                        r#"greet {"name":"a","value":"b"}"#.to_owned(),
                    ),
                ] {
                    let answer = request(&house, at, era, method, params).await;
                    assert!(answer["result"].is_object(), "{answer}");
                    let begun = format!("ann raw {method} {server} {expected}");
                    assert_eq!(ledger.take(), [begun, "ok".to_owned()], "{era:?} at `{at}`");
                }
            }
        }
    }
}

#[tokio::test]
async fn unknown_method_that_is_passed_on_is_begun_and_ended_once() {
    let (options, ledger) = watched(ViewOptions::default());
    let script = || {
        Script::dual()
            .on("vendor/run")
            .result(json!({ "resultType": "complete" }))
    };
    let house = House::with(&[("s", script())], options, |_| {}).await;
    for era in BOTH {
        let params = json!({ "program": "rm" });
        let answer = request(&house, "s", era, "vendor/run", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        let [begun, ended] = &ledger.take()[..] else {
            panic!("{era:?}");
        };
        assert!(begun.starts_with("ann raw vendor/run s  {"), "{begun}");
        assert!(begun.contains(r#""program":"rm""#), "{begun}");
        assert_eq!(ended, "ok");
    }
}

#[tokio::test]
async fn failures_of_tools_and_of_servers_are_told_apart() {
    let failing = || {
        with_tools(Script::new(), &["fails", "breaks"])
            .on("tools/call")
            .nth(1)
            .result(json!({ "content": [], "isError": true }))
            .on("tools/call")
            .error(-32000, "broken")
    };
    for at in ["", "s"] {
        let (options, ledger) = watched(ViewOptions::default());
        let house = House::with(&[("s", failing())], options, |_| {}).await;
        request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
        let prefix = if at.is_empty() { "mcp__s__" } else { "" };
        for (tool, outcome) in [("fails", "failed"), ("breaks", "error -32000")] {
            let params = json!({ "name": format!("{prefix}{tool}") });
            request(&house, at, Protocol::Modern, "tools/call", params).await;
            let begun = format!("ann raw tools/call s {tool} -");
            assert_eq!(ledger.take(), [begun, outcome.to_owned()]);
        }
    }
}

/// Hides `hidden`.
pub(crate) struct Hiding;

impl Gate for Hiding {
    fn decide(&self, _server: &ServerName, tool: &str, _annotations: Annotations) -> Verdict {
        match tool {
            "hidden" => Verdict::Deny,
            _ => Verdict::Allow,
        }
    }
}

#[tokio::test]
async fn a_denied_tool_reads_as_unknown_and_both_are_written_down() {
    let (options, ledger) = watched(ViewOptions {
        gate: Arc::new(Hiding),
        ..searching()
    });
    let script = with_tools(Script::new(), &["echo", "hidden"]);
    let house = House::with(&[("s", script)], options, |_| {}).await;
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
    for era in BOTH {
        for (tool, merged, single) in [
            (
                "hidden",
                ["ann raw tools/call s hidden -", "denied"],
                ["ann raw tools/call s hidden -", "denied"],
            ),
            (
                "nowhere",
                ["ann raw tools/call - mcp__s__nowhere -", "error -32602"],
                ["ann raw tools/call s nowhere -", "error -32602"],
            ),
        ] {
            let shown = format!("mcp__s__{tool}");
            let params = json!({ "name": shown });
            let answer = request(&house, "", era, "tools/call", params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            let what = answer["error"]["message"].as_str().unwrap();
            assert!(
                what.starts_with(&format!("Unknown tool: {shown}")),
                "{what}"
            );
            assert_eq!(ledger.take(), merged, "{era:?}");
            let params = json!({ "name": "tool_call", "arguments": { "name": shown } });
            let answer = request(&house, "", era, "tools/call", params).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert_eq!(ledger.take(), merged, "{era:?}");
            let params = json!({ "name": tool });
            let answer = request(&house, "s", era, "tools/call", params).await;
            let expected = json!({ "code": -32602, "message": format!("Unknown tool: {tool}") });
            assert_eq!(answer["error"], expected);
            assert_eq!(ledger.take(), single, "{era:?}");
        }
    }
    let n_calls = server.received().count(|message| message.is("tools/call"));
    assert_eq!(n_calls, 0);
}

#[tokio::test]
async fn who_asks_for_what_nobody_has_is_written_down() {
    let (options, ledger) = watched(searching());
    let scripts = [("s", Script::new()), ("t", Script::new())];
    let house = House::with(&scripts, options, |_| {}).await;
    let prompt = json!({ "type": "ref/prompt", "name": "none" });
    let template = json!({ "type": "ref/resource", "uri": "none:{x}" });
    let argument = json!({ "name": "a", "value": "b" });
    for (era, no_resource) in [(Protocol::Legacy, -32002), (Protocol::Modern, -32602)] {
        for (method, params, name, code) in [
            ("tools/call", json!({}), " -", -32602),
            ("tools/call", json!({ "name": "none" }), "none -", -32602),
            ("prompts/get", json!({ "name": "none" }), "none -", -32602),
            (
                "resources/read",
                json!({ "uri": "none:x" }),
                "none:x -",
                no_resource,
            ),
            (
                "completion/complete",
                json!({ "ref": prompt, "argument": argument }),
                r#"none {"name":"a","value":"b"}"#,
                -32602,
            ),
            (
                "completion/complete",
                json!({ "ref": template, "argument": argument }),
                r#"none:{x} {"name":"a","value":"b"}"#,
                no_resource,
            ),
        ] {
            let answer = request(&house, "", era, method, params).await;
            assert_eq!(answer["error"]["code"], code, "{method} {answer}");
            let begun = format!("ann raw {method} - {name}");
            assert_eq!(ledger.take(), [begun, format!("error {code}")], "{era:?}");
        }
        let params = json!({ "name": "tool_call", "arguments": { "tool": "none" } });
        request(&house, "", era, "tools/call", params).await;
        let begun = r#"ann raw tools/call - tool_call {"tool":"none"}"#;
        assert_eq!(ledger.take(), [begun, "error -32602"]);
    }
}

/// Lets nothing through but what is served.
struct Exhausted;

impl Overseer for Exhausted {
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        if deed.is_served {
            return Unwatched.begin(deed);
        }
        Err(RpcError::new(-32050, "no more today"))
    }

    fn count(&self, deed: &Deed<'_>) -> Result<(), RpcError> {
        Err(RpcError::new(-32050, format!("no more {}", deed.method)))
    }
}

#[tokio::test]
async fn a_denied_tool_and_one_that_is_none_use_up_the_same() {
    let options = ViewOptions {
        gate: Arc::new(Hiding),
        overseer: Arc::new(Exhausted),
        ..searching()
    };
    let script = with_tools(Script::new(), &["echo", "hidden"]);
    let house = House::with(&[("s", script)], options, |_| {}).await;
    request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
    for era in BOTH {
        for name in ["mcp__s__hidden", "mcp__s__nowhere"] {
            for params in [
                json!({ "name": name }),
                json!({ "name": "tool_call", "arguments": { "name": name } }),
            ] {
                let answer = request(&house, "", era, "tools/call", params).await;
                let expected = json!({ "code": -32050, "message": "no more today" });
                assert_eq!(answer["error"], expected);
            }
        }
    }
}

#[tokio::test]
async fn what_else_is_passed_on_to_a_server_is_counted_first() {
    let options = ViewOptions {
        overseer: Arc::new(Exhausted),
        ..ViewOptions::default()
    };
    let house = House::with(&[("s", Script::new())], options, |_| {}).await;
    // All servers as one have lists of their own.
    for method in ["tools/list", "prompts/list", "resources/list"] {
        let listed = request(&house, "", Protocol::Legacy, method, json!({})).await;
        assert!(listed["result"].is_object(), "{listed}");
    }
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    // What it is asked for by the gateway itself is heard of a moment later.
    for list in ["tools", "prompts", "resources", "resources/templates"] {
        let list = format!("{list}/list");
        server.wait_for(move |message| message.is(&list)).await;
    }
    let before = server.received().all().len();
    let uri = json!({ "uri": "scripted://hello" });
    let task = json!({ "taskId": "s:1" });
    let listen = json!({ "notifications": {} });
    for (at, era, method, params) in [
        ("s", Protocol::Legacy, "tools/list", json!({})),
        ("s", Protocol::Modern, "prompts/list", json!({})),
        ("s", Protocol::Modern, "resources/templates/list", json!({})),
        ("s", Protocol::Modern, "subscriptions/listen", json!({})),
        ("s", Protocol::Legacy, "resources/subscribe", uri.clone()),
        ("s", Protocol::Legacy, "tasks/get", task.clone()),
        ("", Protocol::Modern, "tasks/get", task),
        ("", Protocol::Legacy, "resources/subscribe", uri),
        (
            "",
            Protocol::Legacy,
            "logging/setLevel",
            json!({ "level": "info" }),
        ),
        ("", Protocol::Modern, "subscriptions/listen", listen),
    ] {
        let answer = request(&house, at, era, method, params).await;
        let expected = json!({ "code": -32050, "message": format!("no more {method}") });
        assert_eq!(answer["error"], expected, "at `{at}`");
    }
    assert_eq!(
        server.received().all().len(),
        before,
        "nothing came through"
    );
}

#[tokio::test]
async fn what_the_overseer_refuses_is_not_done_and_answered_in_its_words() {
    let (options, ledger) = watched(searching());
    let script = with_tools(Script::new(), &["forbidden"]);
    let house = House::with(&[("s", script)], options, |_| {}).await;
    request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
    let through = json!({ "name": "tool_call", "arguments": { "name": "mcp__s__forbidden" } });
    for era in BOTH {
        for (at, params) in [
            ("", json!({ "name": "mcp__s__forbidden" })),
            ("", through.clone()),
            ("s", json!({ "name": "forbidden" })),
        ] {
            let answer = request(&house, at, era, "tools/call", params).await;
            let expected = json!({
                "code": -32050, "message": "not so often", "data": { "retryAfter": 3 },
            });
            assert_eq!(answer["error"], expected);
            assert_eq!(ledger.take(), ["refused ann raw tools/call s forbidden -"]);
        }
    }
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    let n_calls = server.received().count(|message| message.is("tools/call"));
    assert_eq!(n_calls, 0);
}

#[tokio::test]
async fn a_call_through_the_tool_that_calls_tools_is_one_deed_of_the_tool_that_is_meant() {
    let (options, ledger) = watched(searching());
    let house = House::with(&[("s", Script::new())], options, |_| {}).await;
    for era in BOTH {
        let query = json!({ "name": "tool_search", "arguments": { "query": "arguments" } });
        request(&house, "", era, "tools/call", query).await;
        let begun = r#"ann raw tools/call - tool_search {"query":"arguments"}"#;
        assert_eq!(ledger.take(), [begun, "ok"]);
        let params = json!({ "name": "tool_call", "arguments": {
            "name": "mcp__s__echo", "arguments": { "word": "x" },
        }});
        let answer = request(&house, "", era, "tools/call", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        let begun = r#"ann raw tools/call s echo {"word":"x"}"#;
        assert_eq!(ledger.take(), [begun, "ok"]);
    }
}

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

/// Servers of either era that ask.
fn asking() -> [Script; 2] {
    let question = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"question-1":{{"method":"elicitation/create","params":{FORM}}}}},"requestState":"s"}}"#
    );
    [
        Script::new()
            .on("tools/call")
            .ask("elicitation/create", FORM)
            .progress(2, 2)
            .text_result("done"),
        Script::modern()
            .on("tools/call")
            .nth(1)
            .result(question)
            .on("tools/call")
            .progress(2, 2)
            .text_result("done"),
    ]
}

#[tokio::test]
async fn a_call_that_comes_back_with_answers_is_one_deed_for_each_attempt() {
    for script in asking() {
        let (options, ledger) = watched(ViewOptions::default());
        let house = House::with(&[("s", script)], options, |_| {}).await;
        let mut client = house.stateless_at(house.view.server("s").unwrap());
        let mut params = json!({ "name": "echo" });
        let meta = json!({ "progressToken": "mine" });
        let asked = client.modern_with(1, "tools/call", params.clone(), meta.clone());
        let asked = asked.await;
        let begun = "ann raw tools/call s echo -";
        assert_eq!(ledger.take(), [begun, "asks"], "{asked}");
        params["requestState"] = asked["result"]["requestState"].clone();
        let answer = json!({ "action": "accept", "content": {} });
        params["inputResponses"] = json!({ "question-1": answer });
        let told = client.modern_with(2, "tools/call", params, meta).await;
        assert_eq!(told["method"], "notifications/progress", "{told}");
        assert!(client.json().await["result"].is_object());
        // The progress belongs to the attempt that hears of it.
        assert_eq!(ledger.take(), [begun, "progress 2", "ok"]);
    }
}

#[tokio::test]
async fn a_client_with_a_session_is_asked_within_one_deed() {
    for script in asking() {
        let server = Server::Stdio(script.stdio());
        let spec = server.spec();
        let (options, ledger) = watched(ViewOptions::default());
        let rig = Rig::with(server, spec, options).await;
        let client = rig.client(Protocol::Legacy, &Person::willing("Ada")).await;
        call(&client).await.unwrap();
        let seen = ledger.take();
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert!(seen[0].ends_with(r#" tools/call upstream echo {"word":"hello"}"#));
        assert_eq!(seen[1..], ["progress 2", "ok"]);
    }
}

/// Wants everybody to be asked.
struct Asking;

impl Gate for Asking {
    fn decide(&self, _server: &ServerName, _tool: &str, _annotations: Annotations) -> Verdict {
        Verdict::Ask
    }
}

#[tokio::test]
async fn a_call_that_somebody_has_to_allow_first_is_watched_from_the_beginning() {
    for at in ["", "s"] {
        let (options, ledger) = watched(ViewOptions {
            gate: Arc::new(Asking),
            ..ViewOptions::default()
        });
        let house = House::with(&[("s", Script::new())], options, |_| {}).await;
        request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
        let name = if at.is_empty() {
            "mcp__s__echo"
        } else {
            "echo"
        };
        let params = json!({ "name": name });
        let asked = request(&house, at, Protocol::Modern, "tools/call", params.clone()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let begun = "ann raw tools/call s echo -";
        assert_eq!(ledger.take(), [begun, "asks"]);
        // A client that can put it to nobody is refused.
        request(&house, at, Protocol::Legacy, "tools/call", params).await;
        assert_eq!(ledger.take(), [begun, "denied"]);
    }
}

async fn give_up(client: &Session, server: &cocode_testkit::StdioServer) {
    let options = RequestOptions::default();
    tokio::select! {
        _ = client.call_tool("echo", None, options) => panic!("nobody answers"),
        _ = server.wait_for(|message| message.is("tools/call")) => {}
    }
}

#[tokio::test]
async fn a_call_that_its_client_gives_up_ends_without_an_outcome() {
    for era in BOTH {
        let gate = cocode_testkit::Gate::new();
        let script = Script::new().on("tools/call").hold(&gate).text_result("x");
        let (options, ledger) = watched(ViewOptions::default());
        let house = House::with(&[("s", script)], options, |_| {}).await;
        let Server::Stdio(server) = &house.servers[0] else {
            panic!("a program");
        };
        let nobody = Person::able("Ada", ClientCapabilities::default());
        let endpoint = house.view.server("s").unwrap();
        let client = house.client_at(endpoint, era, &nobody).await;
        give_up(&client, server).await;
        ledger.wait_for("given up").await;
        assert_eq!(ledger.take().len(), 2);
    }
}
