//! Calls that become tasks: it is written down that they began, and how they ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cocode_client::Protocol;
use cocode_gateway::{Deed, Ongoing, Outcome, Overseer, Unwatched, ViewOptions};
use cocode_testkit::Script;
use cocode_wire::RpcError;
use serde_json::{Value, json};

use crate::merged::house::House;
use crate::watched::{request, watched};

fn task(status: &str) -> Value {
    json!({ "taskId": "7", "status": status })
}

/// A server of the older era with the tasks of that.
fn old() -> Script {
    Script::new()
        .on("tools/call")
        .result(json!({ "task": task("working") }))
        .on("tasks/get")
        .nth(1)
        .result(task("working"))
}

#[tokio::test]
async fn in_the_older_era_it_is_told_by_the_result_and_by_what_says_that_it_is_over() {
    let script = old()
        .on("tasks/get")
        .result(task("failed"))
        .on("tasks/result")
        .result(json!({ "content": [], "isError": true }));
    let (options, ledger) = watched(ViewOptions::default());
    let house = House::with(&[("s", script)], options, |_| {}).await;
    let about = json!({ "taskId": "7" });
    for (method, params, expected) in [
        (
            "tools/call",
            json!({ "name": "echo", "task": {} }),
            vec!["ann raw tools/call s echo -", "ok"],
        ),
        ("tasks/get", about.clone(), vec![]),
        (
            "tasks/get",
            about.clone(),
            vec![r#"ann raw tasks/get s echo "7""#, "empty"],
        ),
        ("tasks/get", about.clone(), vec![]),
        (
            "tasks/result",
            about.clone(),
            vec![r#"ann raw tasks/result s echo "7""#, "failed"],
        ),
        ("tasks/get", about, vec![]),
    ] {
        let answer = request(&house, "s", Protocol::Legacy, method, params).await;
        assert!(answer["result"].is_object(), "{method} {answer}");
        assert_eq!(ledger.take(), expected, "{method}");
    }
}

#[tokio::test]
async fn whoever_has_the_result_or_cancels_is_not_told_of_again() {
    for (method, result, outcome) in [
        ("tasks/result", json!({ "content": [] }), "ok"),
        ("tasks/cancel", task("cancelled"), "ok"),
    ] {
        let script = old()
            .on(method)
            .result(result)
            .on("tasks/get")
            .result(task("completed"));
        let (options, ledger) = watched(ViewOptions::default());
        let house = House::with(&[("s", script)], options, |_| {}).await;
        let call = json!({ "name": "echo", "task": {} });
        request(&house, "s", Protocol::Legacy, "tools/call", call).await;
        ledger.take();
        let about = json!({ "taskId": "7" });
        request(&house, "s", Protocol::Legacy, method, about.clone()).await;
        let begun = format!(r#"ann raw {method} s echo "7""#);
        assert_eq!(ledger.take(), [begun, outcome.to_owned()]);
        for _ in 0..2 {
            request(&house, "s", Protocol::Legacy, "tasks/get", about.clone()).await;
        }
        assert_eq!(ledger.take(), [""; 0]);
    }
}

#[tokio::test]
async fn in_the_stateless_era_it_is_told_by_the_first_answer_that_has_the_end() {
    let part = |key: &str, value: Value| {
        let status = if key == "error" {
            "failed"
        } else {
            "completed"
        };
        json!({ "resultType": "complete", "taskId": "7", "status": status, key: value })
    };
    for (end, outcome) in [
        (part("result", json!({ "content": [] })), "ok"),
        (part("result", json!({ "isError": true })), "failed"),
        (
            part("error", json!({ "code": -5, "message": "x" })),
            "error -5",
        ),
        (
            json!({ "resultType": "complete", "taskId": "7", "status": "cancelled" }),
            "given up",
        ),
    ] {
        for (at, tool, id) in [("", "mcp__s__echo", "s:7"), ("s", "echo", "7")] {
            let script = Script::modern()
                .on("tools/call")
                .result(json!({ "resultType": "task", "taskId": "7", "status": "working" }))
                .on("tasks/cancel")
                .result(json!({ "resultType": "complete" }))
                .on("tasks/get")
                .result(end.clone());
            let (options, ledger) = watched(ViewOptions::default());
            let house = House::with(&[("s", script)], options, |_| {}).await;
            request(&house, "", Protocol::Legacy, "tools/list", json!({})).await;
            let call = json!({ "name": tool });
            let answer = request(&house, at, Protocol::Modern, "tools/call", call).await;
            assert_eq!(answer["result"]["taskId"], id, "{answer}");
            assert_eq!(ledger.take(), ["ann raw tools/call s echo -", "ok"]);
            let about = json!({ "taskId": id });
            // To be cancelled is a wish: it may end in another way.
            request(&house, at, Protocol::Modern, "tasks/cancel", about.clone()).await;
            let begun = format!(r#"ann raw tasks/cancel s echo "{id}""#);
            assert_eq!(ledger.take(), [begun.as_str(), "ok"]);
            for expected in [vec![r#"ann raw tasks/get s echo "7""#, outcome], Vec::new()] {
                let answer = request(&house, at, Protocol::Modern, "tasks/get", about.clone());
                assert_eq!(answer.await["result"]["taskId"], id);
                assert_eq!(ledger.take(), expected);
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_says_by_itself_how_it_ended_is_believed() {
    let script = old().on("tasks/get").nth(2).result(task("completed"));
    let script = script
        .on("prompts/list")
        .notify("notifications/tasks/status", task("failed"))
        .result(json!({ "prompts": [] }));
    let (options, ledger) = watched(ViewOptions::default());
    let house = House::with(&[("s", script)], options, |_| {}).await;
    let call = json!({ "name": "echo", "task": {} });
    request(&house, "s", Protocol::Legacy, "tools/call", call).await;
    ledger.take();
    request(&house, "s", Protocol::Legacy, "prompts/list", json!({})).await;
    ledger.wait_for("empty").await;
    let begun = r#"ann raw notifications/tasks/status s echo "7""#;
    assert_eq!(ledger.take(), [begun, "empty"]);
    for _ in 0..2 {
        let about = json!({ "taskId": "7" });
        request(&house, "s", Protocol::Legacy, "tasks/get", about).await;
    }
    assert_eq!(ledger.take(), [""; 0]);
}

#[tokio::test]
async fn who_asks_for_the_result_of_a_task_that_is_none_is_written_down() {
    let (options, ledger) = watched(ViewOptions::default());
    let house = House::with(&[("s", Script::modern())], options, |_| {}).await;
    for (at, id, begun) in [
        ("", "x:9", r#"ann raw tasks/cancel - x:9 "x:9""#),
        ("", "s:9", r#"ann raw tasks/cancel s 9 "s:9""#),
        ("s", "9", r#"ann raw tasks/cancel s 9 "9""#),
    ] {
        let params = json!({ "taskId": id });
        let answer = request(&house, at, Protocol::Modern, "tasks/cancel", params).await;
        assert_eq!(answer["error"]["message"], "Unknown task", "{answer}");
        assert_eq!(ledger.take(), [begun, "error -32602"]);
    }
}

/// Has no room for the first end that it is told of.
#[derive(Default)]
struct Busy {
    n_told: AtomicUsize,
    n_ended: Arc<AtomicUsize>,
}

struct End(Arc<AtomicUsize>);

impl Overseer for Busy {
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        if deed.method != "tasks/get" {
            return Unwatched.begin(deed);
        }
        if self.n_told.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err(RpcError::new(-32050, "not now"));
        }
        assert!(deed.goes_on, "it counts for nothing more");
        Ok(Box::new(End(Arc::clone(&self.n_ended))))
    }
}

impl Ongoing for End {
    fn ended(self: Box<Self>, _outcome: Outcome) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn an_end_that_could_not_be_written_down_is_told_the_next_time() {
    let overseer = Arc::new(Busy::default());
    let options = ViewOptions {
        overseer: Arc::<Busy>::clone(&overseer),
        ..ViewOptions::default()
    };
    let script = old().on("tasks/get").result(task("completed"));
    let house = House::with(&[("s", script)], options, |_| {}).await;
    let call = json!({ "name": "echo", "task": {} });
    request(&house, "s", Protocol::Legacy, "tools/call", call).await;
    for n_ended in [0, 0, 1, 1] {
        let about = json!({ "taskId": "7" });
        let answer = request(&house, "s", Protocol::Legacy, "tasks/get", about).await;
        assert_eq!(answer["result"]["taskId"], "7", "{answer}");
        assert_eq!(overseer.n_ended.load(Ordering::Relaxed), n_ended);
    }
}
