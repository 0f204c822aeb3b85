//! What is reported of a turn, and when.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::serve::Sink;
use serde_json::{Value, json};

use super::{Reporter, Way};
use crate::company::{Listener as _, Notice};
use crate::content::{Arguments, ToolCall};

#[derive(Default)]
struct Heard(Mutex<Vec<Value>>);

impl Sink for Heard {
    fn send(&self, message: Bytes) -> bool {
        let message: Value = serde_json::from_slice(&message).unwrap();
        self.0.lock().unwrap().push(message["params"].clone());
        true
    }
}

impl Heard {
    fn words(&self) -> Vec<String> {
        let heard = self.0.lock().unwrap();
        let words = heard
            .iter()
            .map(|params| params["message"].as_str().unwrap().to_owned());
        words.collect()
    }
}

fn reporter(token: Option<Value>) -> (Arc<Heard>, Reporter) {
    let heard = Arc::new(Heard::default());
    let stream: Arc<dyn Sink> = Arc::clone(&heard) as _;
    (heard, Reporter::new(Way { stream, token }))
}

fn call() -> ToolCall {
    ToolCall {
        id: "c".into(),
        name: "shell".into(),
        arguments: Arguments::Json(json!({ "command": "ls" })),
    }
}

#[tokio::test(start_paused = true)]
async fn every_step_is_told_in_a_few_words_with_growing_numbers() {
    let (heard, reporter) = reporter(Some(json!("t")));
    reporter.hear(&Notice::Asking {
        step: 2,
        model: "m".into(),
    });
    reporter.hear(&Notice::CallBegun(call()));
    reporter.hear(&Notice::CallEnded {
        id: "c".into(),
        tool: "shell".into(),
        content: Vec::new(),
        is_error: false,
        took: Duration::from_millis(210),
    });
    assert_eq!(
        heard.words(),
        [
            "thinking (step 2)",
            "calls shell: ls",
            "shell done in 0.2 s"
        ]
    );
    let heard = heard.0.lock().unwrap();
    for (place, params) in heard.iter().enumerate() {
        assert_eq!(params["progressToken"], "t");
        assert_eq!(params["progress"], place + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_model_writes_is_told_twice_a_second_at_most() {
    let (heard, reporter) = reporter(Some(json!(1)));
    for _ in 0..20 {
        reporter.hear(&Notice::Text("some words\nmore ".into()));
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    let words = heard.words();
    assert_eq!(words.len(), 4, "{words:?}");
    assert_eq!(words[0], "writes: some words");
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_before_clients_give_up() {
    let (heard, reporter) = reporter(Some(json!(1)));
    reporter.say("waiting for approval: shell: ls");
    let minute = Duration::from_secs(61);
    assert!(
        tokio::time::timeout(minute, reporter.keep_alive())
            .await
            .is_err()
    );
    let words = heard.words();
    assert_eq!(words.len(), 4, "{words:?}");
    assert_eq!(words[3], "still at it: waiting for approval: shell: ls");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_to_who_does_not_want_it_or_has_its_answer() {
    let (heard, silent) = reporter(None);
    silent.say("a");
    assert!(heard.words().is_empty());
    let (heard, reporter) = reporter(Some(json!(1)));
    reporter.close();
    reporter.say("a");
    assert!(heard.words().is_empty());
}
