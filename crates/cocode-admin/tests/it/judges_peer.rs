//! What others have written to judge APIs: a parser of metrics, a validator of documents, and a program
//! that makes thousands of requests from the document. `cargo xtask peers` installs them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use cocode_admin::{
    AdminOptions, CallEnding, LONGEST_WAIT, NewCall, Question, QuestionKind, Reply, TurnedAway,
};
use cocode_testkit::{ApiJudge, admin_python};
use serde_json::Value;

use crate::client::Place;
use crate::house::raw;
use crate::served::{ADMIN_TOKEN, Served};

/// Runs a Python program over a text, and gives what it prints.
fn python(program: &str, text: &str) -> String {
    let mut child = Command::new(admin_python("bin/python"))
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Reads the text as Prometheus does, and prints what was found as JSON.
const METRICS: &str = "
import json, sys
from prometheus_client.parser import text_string_to_metric_families
print(json.dumps([
    {'name': family.name, 'type': family.type, 'help': family.documentation,
     'samples': [[sample.name, sample.labels, sample.value] for sample in family.samples]}
    for family in text_string_to_metric_families(sys.stdin.read())]))
";

/// What Prometheus has read.
struct Families(Vec<Value>);

impl Families {
    fn read(text: &str) -> Self {
        Self(serde_json::from_str(&python(METRICS, text)).unwrap())
    }

    /// That there is exactly one sample of that name with exactly these labels, of that value.
    fn check(&self, name: &str, labels: &[(&str, &str)], expected: f64) {
        let samples = self
            .0
            .iter()
            .flat_map(|one| one["samples"].as_array().unwrap());
        let fits = |sample: &&Value| {
            let same = |(key, value): &(&str, &str)| sample[1][*key] == **value;
            let n_labels = sample[1].as_object().unwrap().len();
            sample[0] == *name && n_labels == labels.len() && labels.iter().all(same)
        };
        let found: Vec<_> = samples.filter(fits).collect();
        let [sample] = found.as_slice() else {
            panic!("not one but {} of {name} {labels:?}", found.len());
        };
        let value = sample[2].as_f64().unwrap();
        assert!(
            (value - expected).abs() < 1e-9,
            "{name} {labels:?} is {value}"
        );
    }
}

/// A name that would end its label if it could.
const HOSTILE: &str = "a\"b\\c\nd é";

async fn place_with_calls() -> Place {
    let place = Place::new();
    for (server, milliseconds, ending) in [
        ("files", 2, CallEnding::Ok { bytes: 1 }),
        ("files", 300, CallEnding::ToolError { bytes: 1 }),
        ("files", 1, CallEnding::Denied("no".to_owned())),
        (HOSTILE, 70_000, CallEnding::Error("boom".to_owned())),
    ] {
        let call = place.desk.calls.begin(NewCall {
            principal: "ana".to_owned(),
            server: Some(server.to_owned()),
            method: "tools/call".to_owned(),
            name: "echo".to_owned(),
        });
        tokio::time::advance(Duration::from_millis(milliseconds)).await;
        call.end(ending);
    }
    place.desk.calls.turn_away(TurnedAway::Limit);
    place
}

#[tokio::test(start_paused = true)]
async fn prometheus_reads_the_metrics_peer() {
    let place = place_with_calls().await;
    let answer = place.get("/metrics").admin().send().await;
    assert_eq!(answer.kind(), "text/plain; version=0.0.4; charset=utf-8");
    assert!(!answer.text.contains("echo"), "tools are no labels");
    let families = Families::read(&answer.text);
    for (server, outcome, count) in [
        ("files", "ok", 1.0),
        ("files", "tool-error", 1.0),
        ("files", "denied", 1.0),
        ("files", "cancelled", 0.0),
        (HOSTILE, "error", 1.0),
    ] {
        let labels = [("server", server), ("outcome", outcome)];
        families.check("cocode_calls_total", &labels, count);
    }
    for (server, le, count) in [
        ("files", "0.001", 0.0),
        ("files", "0.005", 1.0),
        ("files", "0.5", 2.0),
        ("files", "+Inf", 2.0),
        (HOSTILE, "60", 0.0),
        (HOSTILE, "+Inf", 1.0),
    ] {
        let labels = [("server", server), ("le", le)];
        families.check("cocode_call_seconds_bucket", &labels, count);
    }
    for (name, labels, value) in [
        ("cocode_call_seconds_count", &[("server", "files")][..], 2.0),
        ("cocode_call_seconds_sum", &[("server", "files")], 0.302),
        ("cocode_servers", &[("state", "needs-auth")], 1.0),
        ("cocode_servers", &[("state", "slow")], 0.0),
        ("cocode_sessions", &[("transport", "http")], 1.0),
        ("cocode_refused_total", &[("reason", "limit")], 1.0),
        ("cocode_processes", &[], 2.0),
        ("cocode_calls_in_flight", &[], 0.0),
        ("cocode_build_info", &[("version", "1.2.3")], 1.0),
    ] {
        families.check(name, labels, value);
    }
    for family in &families.0 {
        assert_ne!(family["type"], "unknown", "{family}");
        assert_ne!(family["help"], "", "{family}");
    }
}

#[tokio::test]
async fn the_document_is_what_openapi_wants_peer() {
    let place = Place::new();
    let document = place.get("/api/v1/openapi.json").admin().send().await.text;
    let program = "
import json, sys
from openapi_spec_validator import OpenAPIV31SpecValidator
document = json.load(sys.stdin)
errors = list(OpenAPIV31SpecValidator(document).iter_errors())
print(len(errors), *errors, sep='\\n')
";
    let said = python(program, &document);
    assert_eq!(said.trim(), "0", "{said}");
    // And the judge is awake: the same without its operations' answers is refused.
    let broken = document.replace("\"responses\":", "\"answers\":");
    assert_ne!(python(program, &broken).trim(), "0");
}

fn question() -> Question {
    let schema = r#"{"type":"object","properties":{"age":{"type":"integer"}}}"#;
    Question {
        server: "files".to_owned(),
        principal: None,
        tool: None,
        message: "How old?".to_owned(),
        consent: None,
        kind: QuestionKind::Form(raw(schema)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_that_the_document_suggests_breaks_the_api_peer() {
    let place = Place::with(AdminOptions {
        // Streams of events are read to their end.
        stream_lifetime: Duration::from_millis(20),
        ..AdminOptions::default()
    });
    place.house.be_restless();
    let served = Served::start(place.admin.clone());
    let asked = place.desk.inbox.ask(question(), LONGEST_WAIT).unwrap();
    let id = place.desk.inbox.pending().remove(0).id;
    let judge = ApiJudge {
        directory: Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis"),
        document: format!("http://{}/api/v1/openapi.json", served.address),
        token: ADMIN_TOKEN.to_owned(),
        settings: include_str!("schemathesis.toml").replace("QUESTION", &id),
        examples: 8,
        request_seconds: 10,
    };
    let said = tokio::task::spawn_blocking(move || judge.content());
    let said = said.await.unwrap();
    // What it tested is what there is, but for the document, which it has read already.
    let document = crate::document::document(&place).await;
    let count = crate::document::operations(&document).len() - 1;
    assert!(said.contains(&format!("Tested: {count}")), "{said}");
    // The question of the house was answered on the way, in some way that fits.
    assert_ne!(asked.reply().await, Reply::Expired);
}
