//! What counts among what goes on: calls, also while nobody looks at them, and the tasks that they began.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cocode_core::Isolation;
use cocode_gateway::{Counted, Deed, Ongoing, Outcome, Overseer, ViewOptions};
use cocode_testkit::{Gate, Script};
use cocode_wire::RpcError;
use serde_json::{Value, json};

use crate::support::{RawClient, Rig, Server};

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

/// Counts what goes on.
#[derive(Default)]
struct Counter {
    going_on: Arc<()>,
    n_begun_again: AtomicUsize,
}

impl Counter {
    fn n_going_on(&self) -> usize {
        Arc::strong_count(&self.going_on) - 1
    }
}

struct Watching(Arc<Counter>);

struct One(Option<Arc<()>>);

impl Overseer for Watching {
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        if deed.goes_on {
            self.0.n_begun_again.fetch_add(1, Ordering::Relaxed);
            return Ok(Box::new(One(None)));
        }
        Ok(Box::new(One(Some(Arc::clone(&self.0.going_on)))))
    }
}

impl Ongoing for One {
    fn keep_counting(&mut self) -> Option<Counted> {
        self.0.take().map(|counted| Box::new(counted) as Counted)
    }

    fn ended(self: Box<Self>, _outcome: Outcome) {}
}

async fn rig(script: Script) -> (Rig, Arc<Counter>) {
    let server = Server::Stdio(script.stdio());
    let spec = server.spec();
    let counter = Arc::<Counter>::default();
    let options = ViewOptions {
        principal: Some("ann".into()),
        overseer: Arc::new(Watching(Arc::clone(&counter))),
        ..ViewOptions::default()
    };
    (Rig::with(server, spec, options).await, counter)
}

fn params() -> Value {
    json!({ "name": "echo", "arguments": {} })
}

async fn park(client: &mut RawClient) -> Value {
    let asked = client.modern(1, "tools/call", params()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut params = params();
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({ "question-1": { "action": "accept", "content": {} } });
    params
}

#[tokio::test]
async fn a_parked_call_counts_until_its_server_is_done() {
    let script = Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .ask("elicitation/create", FORM)
        .text_result("done");
    let (rig, counter) = rig(script).await;
    let mut client = rig.raw();
    let back = park(&mut client).await;
    assert_eq!(counter.n_going_on(), 1);
    // Another call that names the same handle is another call.
    let mut other = back.clone();
    other["arguments"]["other"] = true.into();
    let refused = client.modern(2, "tools/call", other).await;
    assert!(refused["error"].is_object(), "{refused}");
    assert_eq!(counter.n_going_on(), 1);
    assert_eq!(counter.n_begun_again.load(Ordering::Relaxed), 0);
    let asked = client.modern(3, "tools/call", back).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(counter.n_going_on(), 1);
    let mut back = params();
    back["requestState"] = asked["result"]["requestState"].clone();
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    let answers = questions.keys().map(|key| {
        let answer = json!({ "action": "accept", "content": {} });
        (key.clone(), answer)
    });
    back["inputResponses"] = answers.collect::<serde_json::Map<_, _>>().into();
    let done = client.modern(4, "tools/call", back).await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
    assert_eq!(counter.n_begun_again.load(Ordering::Relaxed), 2);
    assert_eq!(counter.n_going_on(), 0);
}

#[tokio::test]
async fn a_parked_call_that_nobody_comes_back_to_counts_until_it_is_given_up() {
    let gate = Gate::new();
    let script = Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .hold(&gate)
        .text_result("done");
    let (rig, counter) = rig(script).await;
    park(&mut rig.raw()).await;
    assert_eq!(counter.n_going_on(), 1);
    rig.gateway.finish().await;
    assert_eq!(counter.n_going_on(), 0);
}

#[tokio::test]
async fn a_task_counts_until_it_is_known_to_be_over() {
    let task = |status: &str| json!({ "resultType": "task", "taskId": "7", "status": status });
    let script = Script::modern()
        .on("tools/call")
        .result(task("working"))
        .on("tasks/get")
        .nth(1)
        .result(task("working"))
        .on("tasks/get")
        .result(task("completed"));
    let (rig, counter) = rig(script).await;
    let mut client = rig.raw();
    let begun = client.modern(1, "tools/call", params()).await;
    assert_eq!(begun["result"]["taskId"], "7", "{begun}");
    for (id, expected) in [(2, 1), (3, 0)] {
        let told = client.modern(id, "tasks/get", json!({ "taskId": "7" }));
        assert!(told.await["result"].is_object());
        assert_eq!(counter.n_going_on(), expected);
    }
}

#[tokio::test]
async fn who_asks_about_a_task_needs_no_second_place() {
    let task = |status: &str| json!({ "taskId": "7", "status": status });
    let script = Script::new()
        .on("tools/call")
        .result(json!({ "task": task("working") }))
        .on("tasks/result")
        .result(json!({ "content": [] }));
    let (rig, counter) = rig(script).await;
    let mut client = rig.raw();
    let begun = client.modern(1, "tools/call", params()).await;
    assert_eq!(begun["result"]["task"]["taskId"], "7", "{begun}");
    assert_eq!(counter.n_going_on(), 1);
    let had = client.modern(2, "tasks/result", json!({ "taskId": "7" }));
    assert!(had.await["result"].is_object());
    assert_eq!(counter.n_begun_again.load(Ordering::Relaxed), 1);
    assert_eq!(counter.n_going_on(), 0);
}

#[tokio::test]
async fn every_process_of_every_view_is_known_and_can_be_begun_anew() {
    let script = Script::new().stdio();
    let runs = script.runs().clone();
    let server = Server::Stdio(script);
    let mut spec = server.spec();
    spec.isolation = Isolation::PerSession;
    let rig = Rig::with(server, spec.clone(), ViewOptions::default()).await;
    let other = rig.gateway.view(ViewOptions {
        manager: cocode_client::ManagerOptions::with_environment(std::env::vars_os()),
        principal: Some("ann".into()),
        ..ViewOptions::default()
    });
    other.apply([spec]).await;
    let mut clients = Vec::new();
    for view in [&rig.view, &other] {
        let mut client = rig.raw_at(view.server("upstream").unwrap());
        let called = client.modern(1, "tools/call", params()).await;
        assert!(called["result"].is_object(), "{called}");
        clients.push(client);
    }
    assert_eq!(rig.view.running().len(), 2);
    let running = rig.gateway.running();
    assert_eq!(running.len(), 3, "{running:?}");
    let before = runs.all().len();
    for running in &running {
        running.restart().await.unwrap();
    }
    runs.wait_until(|all| all.len() == before + 3).await;
    drop(clients);
}
