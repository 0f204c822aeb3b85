//! Questions that a client can put to nobody: they go to the inbox of its view, if somebody reads it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use cocode_client::{ClientCapabilities, Protocol, RequestOptions};
use cocode_core::{Isolation, Verdict};
use cocode_gateway::{Inbox, Question, QuestionMode, ViewOptions};
use cocode_testkit::{Message, Script};
use cocode_wire::{RawJson, RpcError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::consent::Always;
use crate::support::{Person, Rig, Server, call, text_of};

const BOTH: [Protocol; 2] = [Protocol::Legacy, Protocol::Modern];
const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#;
const URL: &str =
    r#"{"mode":"url","message":"Sign in","url":"https://a.example/in","elicitationId":"7"}"#;
const SAMPLING: &str = r#"{"messages":[],"maxTokens":9}"#;

/// What somebody at an inbox does about every question.
#[derive(Clone, Copy)]
pub(crate) enum Does {
    Accept,
    Decline,
    Nothing,
}

/// An inbox, and somebody who reads it.
pub(crate) struct Desk {
    is_open: AtomicBool,
    does: Does,
    pub(crate) asked: Mutex<Vec<Question>>,
    pub(crate) taken_back: Arc<Notify>,
    was_asked: Notify,
}

impl Desk {
    pub(crate) fn of(does: Does) -> Arc<Self> {
        Arc::new(Self {
            is_open: AtomicBool::new(true),
            does,
            asked: Mutex::default(),
            taken_back: Arc::default(),
            was_asked: Notify::new(),
        })
    }

    pub(crate) fn view(self: &Arc<Self>) -> ViewOptions {
        ViewOptions {
            principal: Some("ann".into()),
            inbox: Some(Arc::clone(self) as Arc<dyn Inbox>),
            ..ViewOptions::default()
        }
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|one| one.message.clone()).collect()
    }
}

struct TakenBack(Arc<Notify>);

impl Drop for TakenBack {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Inbox for Desk {
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    fn ask(
        &self,
        question: Question,
    ) -> futures_util::future::BoxFuture<'static, Result<RawJson, RpcError>> {
        self.asked.lock().unwrap().push(question);
        self.was_asked.notify_one();
        let answer = match self.does {
            Does::Accept => json!({ "action": "accept", "content": { "name": "Desk" } }),
            Does::Decline => json!({ "action": "decline" }),
            Does::Nothing => {
                let taken_back = TakenBack(Arc::clone(&self.taken_back));
                return Box::pin(async move {
                    let _until_dropped = taken_back;
                    std::future::pending().await
                });
            }
        };
        Box::pin(async move { Ok(RawJson::of(&answer).unwrap()) })
    }
}

fn nobody() -> Arc<Person> {
    Person::able("Ada", ClientCapabilities::default())
}

async fn rig(server: Server, options: ViewOptions) -> Rig {
    let spec = server.spec();
    Rig::with(server, spec, options).await
}

/// A server of the older era that asks, and tells what it was answered.
fn legacy(method: &str, params: &str) -> Script {
    Script::new()
        .on("tools/call")
        .ask(method, params)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
}

/// The result that asks for these, and gives that state.
fn required(questions: &[(&str, &str, &str)], state: &str) -> String {
    let questions: Vec<_> = questions
        .iter()
        .map(|(key, method, params)| {
            format!(r#""{key}":{{"method":"{method}","params":{params}}}"#)
        })
        .collect();
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{state}"}}"#,
        questions.join(",")
    )
}

/// A stateless server that asks, and tells what it was sent with the next attempt.
fn modern(method: &str, params: &str) -> Script {
    Script::modern()
        .on("tools/call")
        .nth(1)
        .result(required(&[("q", method, params)], "s"))
        .on("tools/call")
        .result(r#"{"resultType":"complete","content":[],"structuredContent":$params}"#)
}

#[tokio::test]
async fn questions_are_answered_by_the_inbox_in_every_pair_of_eras() {
    let expected = json!({ "action": "accept", "content": { "name": "Desk" } });
    for (params, mode) in [(FORM, QuestionMode::Form), (URL, QuestionMode::Url)] {
        for client in BOTH {
            let servers = [
                (Server::both(&legacy("elicitation/create", params)), false),
                (Server::both(&modern("elicitation/create", params)), true),
            ];
            for (server, is_modern) in servers.into_iter().flat_map(|(servers, is_modern)| {
                servers.into_iter().map(move |server| (server, is_modern))
            }) {
                let desk = Desk::of(Does::Accept);
                let rig = rig(server, desk.view()).await;
                let session = rig.client(client, &nobody()).await;
                let told = call(&session).await.unwrap().structured().unwrap();
                let told: Value = told.decode().unwrap();
                let answer = if is_modern {
                    assert_eq!(told["requestState"], "s");
                    assert_eq!(told["arguments"], json!({ "word": "hello" }));
                    &told["inputResponses"]["q"]
                } else {
                    &told["result"]
                };
                assert_eq!(*answer, expected, "{client:?}, modern server: {is_modern}");
                let asked = desk.asked.lock().unwrap();
                let [question] = &asked[..] else {
                    panic!("one question, not {asked:?}");
                };
                assert_eq!(question.principal.as_deref(), Some("ann"));
                assert_eq!(question.server.as_str(), "upstream");
                assert_eq!(question.tool.as_deref(), Some("echo"));
                assert_eq!(question.mode, mode);
                assert!(question.consent.is_none());
                assert!(question.deadline > SystemTime::now());
                let schema = question.requested_schema.as_ref().map(RawJson::as_str);
                match mode {
                    QuestionMode::Form => {
                        assert_eq!(question.message, "Who?");
                        assert!(schema.unwrap().contains("name"));
                        assert_eq!(question.url, None);
                    }
                    QuestionMode::Url => {
                        assert_eq!(question.message, "Sign in");
                        assert_eq!(schema, None);
                        assert_eq!(question.url.as_deref(), Some("https://a.example/in"));
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_can_be_asked_is_asked_itself() {
    for client in BOTH {
        for script in [
            legacy("elicitation/create", FORM),
            modern("elicitation/create", FORM),
        ] {
            let desk = Desk::of(Does::Accept);
            let rig = rig(Server::Stdio(script.stdio()), desk.view()).await;
            let person = Person::willing("Ada");
            let session = rig.client(client, &person).await;
            let told = call(&session).await.unwrap();
            assert!(told.raw.as_str().contains("Ada"), "{}", told.raw);
            assert!(desk.asked.lock().unwrap().is_empty());
        }
    }
}

/// The capabilities that a server was told with a call.
fn told_capabilities(message: &Message) -> Value {
    message.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
}

#[tokio::test]
async fn nobody_is_asked_by_way_of_an_inbox_that_is_closed() {
    for client in BOTH {
        let desk = Desk::of(Does::Accept);
        desk.is_open.store(false, Ordering::Relaxed);
        let script = legacy("elicitation/create", FORM);
        let rig = rig(Server::Stdio(script.stdio()), desk.view()).await;
        let session = rig.client(client, &nobody()).await;
        let told = call(&session).await.unwrap().structured().unwrap();
        let told: Value = told.decode().unwrap();
        assert_eq!(told["error"]["code"], -32601, "{told}");
        assert!(desk.asked.lock().unwrap().is_empty());
    }
    for client in BOTH {
        let desk = Desk::of(Does::Accept);
        let server = Script::modern().stdio();
        let received = server.received().clone();
        let rig = rig(Server::Stdio(server), desk.view()).await;
        let session = rig.client(client, &nobody()).await;
        for is_open in [true, false] {
            desk.is_open.store(is_open, Ordering::Relaxed);
            call(&session).await.unwrap();
        }
        let calls = |all: &[Message]| -> Vec<Value> {
            let calls = all.iter().filter(|message| message.is("tools/call"));
            calls.map(told_capabilities).collect()
        };
        received.wait_until(|all| calls(all).len() == 2).await;
        let told = calls(&received.all());
        assert_eq!(told[0]["elicitation"], json!({ "form": {}, "url": {} }));
        assert!(told[1]["elicitation"].is_null(), "{told:?}");
    }
}

#[tokio::test]
async fn what_is_wanted_of_a_model_or_of_folders_never_goes_to_the_inbox() {
    for (method, params) in [("sampling/createMessage", SAMPLING), ("roots/list", "{}")] {
        for client in BOTH {
            let desk = Desk::of(Does::Accept);
            let server = Server::Stdio(legacy(method, params).stdio());
            let rig = rig(server, desk.view()).await;
            let session = rig.client(client, &nobody()).await;
            let told = call(&session).await.unwrap().structured().unwrap();
            let told: Value = told.decode().unwrap();
            assert_eq!(told["error"]["code"], -32601, "{told}");
            assert!(desk.asked.lock().unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn what_the_client_can_answer_is_left_to_it() {
    let (form, url) = (
        ("f", "elicitation/create", FORM),
        ("u", "elicitation/create", URL),
    );
    let script = Script::modern()
        .on("tools/call")
        .nth(1)
        .result(required(&[form, url], "one"))
        .on("tools/call")
        .nth(2)
        .result(required(&[form], "two"))
        .on("tools/call")
        .result(r#"{"resultType":"complete","content":[],"structuredContent":$params}"#);
    let server = script.stdio();
    let received = server.received().clone();
    let desk = Desk::of(Does::Accept);
    let rig = rig(Server::Stdio(server), desk.view()).await;
    let mut client = rig.raw();
    let only_forms = json!({
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} }, "x": 1 },
    });
    let mut params = json!({ "name": "echo" });
    let asked = client.modern_with(1, "tools/call", params.clone(), only_forms.clone());
    let asked = asked.await;
    assert_eq!(asked["result"]["requestState"], "two", "{asked}");
    assert_eq!(desk.messages(), ["Sign in"]);
    let second = |all: &[Message]| {
        let mut calls = all.iter().filter(|message| message.is("tools/call"));
        calls.nth(1).cloned()
    };
    received.wait_until(|all| second(all).is_some()).await;
    let second = second(&received.all()).unwrap();
    let answers = &second.params()["inputResponses"];
    assert_eq!(answers.as_object().unwrap().len(), 1);
    assert_eq!(answers["u"]["action"], "accept");
    assert_eq!(second.params()["requestState"], "one");
    assert_eq!(
        told_capabilities(&second),
        json!({ "x": 1, "elicitation": { "form": {}, "url": {} } })
    );
    params["requestState"] = "two".into();
    params["inputResponses"] = json!({ "f": { "action": "decline" } });
    let done = client
        .modern_with(2, "tools/call", params, only_forms)
        .await;
    let came = &done["result"]["structuredContent"];
    assert_eq!(came["inputResponses"]["f"]["action"], "decline", "{done}");
    assert_eq!(desk.messages().len(), 1);
}

#[tokio::test]
async fn addresses_that_an_error_names_are_visited_by_way_of_the_inbox() {
    let refusal = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","message":"Sign in","url":"https://a.example/in","elicitationId":"7"}]}}}"#;
    let script = Script::new()
        .on("tools/call")
        .nth(1)
        .line(refusal)
        .on("tools/call")
        .text_result("done");
    for client in BOTH {
        for does in [Does::Accept, Does::Decline] {
            for server in Server::both(&script) {
                let desk = Desk::of(does);
                let rig = rig(server, desk.view()).await;
                let session = rig.client(client, &nobody()).await;
                let called = call(&session).await;
                match does {
                    Does::Accept => assert_eq!(text_of(&called.unwrap()), "done"),
                    _ => {
                        called.unwrap_err();
                    }
                }
                assert_eq!(desk.messages(), ["Sign in"]);
            }
        }
    }
}

fn asking(desk: &Arc<Desk>) -> ViewOptions {
    ViewOptions {
        gate: Arc::new(Always(Verdict::Ask)),
        ..desk.view()
    }
}

#[tokio::test]
async fn somebody_at_the_inbox_allows_a_call_or_does_not() {
    for client in BOTH {
        for does in [Does::Accept, Does::Decline] {
            let desk = Desk::of(does);
            let server = Script::dual().on("tools/call").text_result("done").stdio();
            let received = server.received().clone();
            let rig = rig(Server::Stdio(server), asking(&desk)).await;
            let session = rig.client(client, &nobody()).await;
            let called = call(&session).await;
            if matches!(does, Does::Accept) {
                assert_eq!(text_of(&called.unwrap()), "done");
            } else {
                let error = called.unwrap_err().to_string();
                assert!(error.contains("tools/call"), "{error}");
                assert_eq!(received.count(|message| message.is("tools/call")), 0);
            }
            let asked = desk.asked.lock().unwrap();
            assert_eq!(asked.len(), 1);
            assert_eq!(asked[0].tool.as_deref(), Some("echo"));
            // Whoever allows it sees what exactly, for whom and why.
            let consent = asked[0].consent.as_ref().unwrap();
            let arguments = consent.arguments.as_ref().unwrap();
            assert_eq!(arguments.as_str(), r#"{"word":"hello"}"#);
            assert!(consent.client.is_some());
            let reason = consent.reason.as_deref().unwrap();
            assert!(reason.starts_with("a rule of the test asks"), "{reason}");
        }
    }
}

#[tokio::test]
async fn a_call_that_was_allowed_there_is_not_asked_about_again_when_it_comes_back() {
    let script = Script::modern()
        .on("tools/call")
        .nth(1)
        .result(required(&[("u", "elicitation/create", URL)], "s"))
        .on("tools/call")
        .text_result("done");
    let desk = Desk::of(Does::Accept);
    let rig = rig(Server::Stdio(script.stdio()), asking(&desk)).await;
    let mut client = rig.raw();
    let only_urls = json!({
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "url": {} } },
    });
    let mut params = json!({ "name": "echo" });
    let asked = client.modern_with(1, "tools/call", params.clone(), only_urls.clone());
    assert_eq!(asked.await["result"]["requestState"], "s");
    params["requestState"] = "s".into();
    params["inputResponses"] = json!({ "u": { "action": "accept" } });
    let done = client.modern_with(2, "tools/call", params.clone(), only_urls.clone());
    assert_eq!(done.await["result"]["content"][0]["text"], "done");
    assert_eq!(desk.messages().len(), 1);
    // That was once.
    client.modern_with(3, "tools/call", params, only_urls).await;
    assert_eq!(desk.messages().len(), 2);
}

#[tokio::test]
async fn nobody_waits_for_ever_for_an_answer() {
    let desk = Desk::of(Does::Nothing);
    let rig = rig(Server::Stdio(Script::new().stdio()), asking(&desk)).await;
    let mut client = rig.raw();
    let none = json!({ "io.modelcontextprotocol/clientCapabilities": {} });
    // Everything has started by then.
    client.modern(1, "tools/list", json!({})).await;
    tokio::time::pause();
    let begun = Instant::now();
    let params = json!({ "name": "echo" });
    let answer = client.modern_with(2, "tools/call", params, none).await;
    let what = answer["error"]["message"].as_str().unwrap();
    assert!(what.contains("in time"), "{what}");
    assert!(begun.elapsed() >= Duration::from_mins(10));
    desk.taken_back.notified().await;
}

#[tokio::test]
async fn a_question_is_taken_back_with_its_call() {
    for script in [
        legacy("elicitation/create", FORM),
        modern("elicitation/create", FORM),
    ] {
        for (client, server) in BOTH.into_iter().flat_map(|client| {
            let servers = Server::both(&script);
            servers.into_iter().map(move |server| (client, server))
        }) {
            let desk = Desk::of(Does::Nothing);
            let rig = rig(server, desk.view()).await;
            let session = rig.client(client, &nobody()).await;
            let options = RequestOptions::default();
            tokio::select! {
                _ = session.call_tool("echo", None, options) => panic!("nobody answers"),
                () = desk.was_asked.notified() => {}
            }
            desk.taken_back.notified().await;
        }
    }
}

#[tokio::test]
async fn a_server_of_ones_own_asks_by_way_of_the_inbox_too() {
    let desk = Desk::of(Does::Accept);
    let server = legacy("elicitation/create", FORM).stdio();
    let received = server.received().clone();
    let server = Server::Stdio(server);
    let mut spec = server.spec();
    spec.isolation = Isolation::PerSession;
    let rig = Rig::with(server, spec, desk.view()).await;
    let session = rig.client(Protocol::Legacy, &nobody()).await;
    let told = call(&session).await.unwrap();
    assert!(told.raw.as_str().contains("Desk"), "{}", told.raw);
    let is_hello = |message: &Message| message.is("initialize") && message.run == 1;
    let hello = received.wait_for(is_hello).await;
    let can = &hello.params()["capabilities"]["elicitation"];
    assert!(can.is_object(), "{}", hello.params());
}
