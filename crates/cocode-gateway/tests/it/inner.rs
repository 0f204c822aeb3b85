//! A client inside of the gateway: the same gate, the same eyes, and the inbox for its questions.

use std::sync::{Arc, Mutex};

use cocode_core::{Isolation, Verdict};
use cocode_gateway::{Deed, Hearing, InnerClient, Ongoing, Outcome, Overseer, ViewOptions};
use cocode_testkit::{Gate, Message, Script};
use cocode_wire::{RawJson, RpcError};
use serde_json::{Value, json};

use crate::consent::Always;
use crate::inbox::{Desk, Does};
use crate::merged::house::House;
use crate::support::Server;

async fn ask(
    client: &InnerClient,
    server: Option<&str>,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    let server = server.map(|server| server.parse().unwrap());
    let params = RawJson::of(&params).unwrap();
    let answer = client.request(method, Some(&params), server.as_ref(), None);
    answer.await.map(|result| result.decode().unwrap())
}

#[tokio::test]
async fn it_reaches_single_servers_and_all_of_them_as_one() {
    let scripts = [("old", Script::new()), ("new", Script::modern())];
    let house = House::of(&scripts).await;
    let client = house.view.caller("dashboard");
    for server in ["old", "new"] {
        let params = json!({ "name": "echo", "arguments": { "word": "x" }, "_meta": { "a": 1 } });
        let called = ask(&client, Some(server), "tools/call", params).await;
        assert_eq!(called.unwrap()["structuredContent"]["word"], "x");
        let name = format!("mcp__{server}__echo");
        let called = ask(&client, None, "tools/call", json!({ "name": name })).await;
        assert_eq!(called.unwrap()["resultType"], "complete");
        let params = json!({ "uri": "scripted://hello" });
        let read = ask(&client, Some(server), "resources/read", params).await;
        assert_eq!(read.unwrap()["contents"][0]["text"], "hello");
        let listed = ask(&client, Some(server), "tools/list", json!({})).await;
        assert_eq!(listed.unwrap()["tools"][0]["name"], "echo");
    }
    let error = ask(&client, Some("nowhere"), "tools/list", json!({})).await;
    assert!(error.unwrap_err().message.contains("`nowhere`"));
    let odd = RawJson::parse("[]").unwrap();
    let error = client.request("tools/call", Some(&odd), None, None).await;
    assert_eq!(error.unwrap_err().code, -32602);
}

#[tokio::test]
async fn it_hears_of_progress_and_log_messages_before_the_answer() {
    for script in [Script::new(), Script::modern()] {
        let script = script
            .on("tools/call")
            .progress(1, 2)
            .notify(
                "notifications/message",
                r#"{"level":"info","data":"so far"}"#,
            )
            .text_result("done");
        let house = House::of(&[("s", script)]).await;
        let client = house.view.caller("dashboard");
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let hearing: Hearing = {
            let heard = Arc::clone(&heard);
            Arc::new(move |method, params| {
                let params: Value = params.unwrap().decode().unwrap();
                let what = [&params["progress"], &params["data"]];
                let what = what.into_iter().find(|what| !what.is_null()).unwrap();
                heard.lock().unwrap().push(format!("{method} {what}"));
            })
        };
        let server = "s".parse().unwrap();
        let params = RawJson::parse(r#"{"name":"echo"}"#).unwrap();
        let called = client.request("tools/call", Some(&params), Some(&server), Some(hearing));
        called.await.unwrap();
        assert_eq!(
            *heard.lock().unwrap(),
            [
                "notifications/progress 1",
                "notifications/message \"so far\"",
            ]
        );
    }
}

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

#[tokio::test]
async fn what_servers_and_rules_ask_it_goes_to_the_inbox() {
    let legacy = Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .text_result("done");
    let question = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{FORM}}}}}}}"#
    );
    let modern = Script::modern()
        .on("tools/call")
        .nth(1)
        .result(question)
        .on("tools/call")
        .text_result("done");
    for script in [legacy, modern] {
        let desk = Desk::of(Does::Accept);
        let options = ViewOptions {
            gate: Arc::new(Always(Verdict::Ask)),
            ..desk.view()
        };
        let house = House::with(&[("s", script)], options, |_| {}).await;
        let client = house.view.caller("dashboard");
        let params = json!({ "name": "echo" });
        let called = ask(&client, Some("s"), "tools/call", params).await.unwrap();
        assert_eq!(called["content"][0]["text"], "done", "{called}");
        let consent = "May the tool `echo` of server `s` be called?";
        assert_eq!(desk.messages(), [consent, "Who?"]);
    }
}

/// Refuses everything, and tells whom.
struct Refusing(Mutex<Vec<String>>);

impl Overseer for Refusing {
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        let who = format!("{:?} {:?}", deed.principal, deed.client);
        self.0.lock().unwrap().push(who);
        Err(RpcError::new(-32050, "enough"))
    }
}

#[tokio::test]
async fn it_passes_the_gate_and_the_overseer_as_everybody_does() {
    let options = ViewOptions {
        gate: Arc::new(Always(Verdict::Deny)),
        ..ViewOptions::default()
    };
    let house = House::with(&[("s", Script::new())], options, |_| {}).await;
    let client = house.view.caller("dashboard");
    let called = ask(&client, Some("s"), "tools/call", json!({ "name": "echo" })).await;
    assert_eq!(called.unwrap_err().message, "Unknown tool: echo");
    let overseer = Arc::new(Refusing(Mutex::default()));
    let options = ViewOptions {
        principal: Some("ann".into()),
        overseer: Arc::clone(&overseer) as Arc<dyn Overseer>,
        ..ViewOptions::default()
    };
    let house = House::with(&[("s", Script::new())], options, |_| {}).await;
    let client = house.view.caller("dashboard");
    let called = ask(&client, Some("s"), "tools/call", json!({ "name": "echo" })).await;
    assert_eq!(called.unwrap_err().code, -32050);
    assert_eq!(
        *overseer.0.lock().unwrap(),
        [r#"Some("ann") Some("dashboard")"#]
    );
    // Somebody else may answer for what it does.
    let other = Arc::new(Refusing(Mutex::default()));
    let client = house.view.caller("dashboard of bob");
    let client = client.watched_by(Arc::clone(&other) as Arc<dyn Overseer>);
    for server in [Some("s"), None] {
        let name = server.map_or("mcp__s__echo", |_| "echo");
        let called = ask(&client, server, "tools/call", json!({ "name": name })).await;
        assert_eq!(called.unwrap_err().code, -32050);
    }
    assert_eq!(other.0.lock().unwrap().len(), 2);
    assert_eq!(overseer.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_that_is_dropped_is_cancelled_at_its_server() {
    let gate = Gate::new();
    let script = Script::new().on("tools/call").hold(&gate).text_result("x");
    let house = House::of(&[("s", script)]).await;
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    let client = house.view.caller("dashboard");
    tokio::select! {
        _ = ask(&client, Some("s"), "tools/call", json!({ "name": "echo" })) => {
            panic!("nobody answers")
        }
        _ = server.wait_for(|message| message.is("tools/call")) => {}
    }
    let cancelled = server.wait_for(|message| message.is("notifications/cancelled"));
    cancelled.await;
}

#[tokio::test]
async fn it_has_a_server_of_its_own_where_sessions_do_not_share_and_lets_go_of_it() {
    let house = House::with(&[("s", Script::new())], ViewOptions::default(), |spec| {
        spec.isolation = Isolation::PerSession;
    })
    .await;
    let Server::Stdio(server) = &house.servers[0] else {
        panic!("a program");
    };
    let client = house.view.caller("dashboard");
    for _ in 0..2 {
        let called = ask(&client, Some("s"), "tools/call", json!({ "name": "echo" })).await;
        assert!(called.is_ok(), "{called:?}");
    }
    let runs = |all: &[Message]| -> Vec<u32> {
        let calls = all.iter().filter(|message| message.is("tools/call"));
        calls.map(|message| message.run).collect()
    };
    let received = server.received();
    received.wait_until(|all| runs(all).len() == 2).await;
    let runs = runs(&received.all());
    assert_eq!(runs[0], runs[1], "both calls are at the same process");
    drop(client);
    // What was its own ends with it, and this waits for that.
    house.gateway.finish().await;
}

/// Says nothing, and must not be heard of.
struct Silent;

impl Ongoing for Silent {
    fn ended(self: Box<Self>, outcome: Outcome) {
        panic!("nobody watches, and yet: {outcome:?}");
    }
}

impl Overseer for Silent {
    fn is_watching(&self) -> bool {
        false
    }

    fn begin(&self, _deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        Ok(Box::new(Self))
    }
}

#[tokio::test]
async fn an_overseer_that_does_not_look_is_never_asked() {
    let options = ViewOptions {
        overseer: Arc::new(Silent),
        ..ViewOptions::default()
    };
    let house = House::with(&[("s", Script::new())], options, |_| {}).await;
    let client = house.view.caller("dashboard");
    let called = ask(&client, Some("s"), "tools/call", json!({ "name": "echo" })).await;
    assert!(called.is_ok());
}
