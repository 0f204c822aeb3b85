//! Calls that are made again, through [`Manager::call`] and [`Manager::relay`], and how long they may
//! take in all. The clock stands still unless everything waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cocode_client::{
    Answer, Behalf, CallContext, CallError, Connector, Deadlines, Manager, ManagerOptions,
    Notification, RawJson, ReachError, Reached, Relayed, RequestError, RpcError, Witness,
    memory_pair,
};
use cocode_core::ServerSpec;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

const IDLE: Duration = Duration::from_mins(1);
const TOTAL: Duration = Duration::from_mins(5);

/// What a server does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    Answer,
    Ignore,
    Disconnect,
    /// Reports progress every ten seconds, and never answers.
    Progress,
}

/// A server of one tool within the test, which does this with one call after the other.
struct OneTool {
    annotations: Value,
    reactions: &'static [Reaction],
    calls: Arc<AtomicUsize>,
    tasks: Mutex<JoinSet<()>>,
}

impl Connector for OneTool {
    fn reach<'a>(&'a self, _spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        let (target, stream) = memory_pair(1024 * 1024);
        let serving = serve(
            stream,
            self.annotations.clone(),
            self.reactions,
            Arc::clone(&self.calls),
        );
        self.tasks.lock().unwrap().spawn(serving);
        Box::pin(std::future::ready(Ok(Reached {
            target,
            sse_fallback: false,
        })))
    }
}

async fn serve(
    stream: DuplexStream,
    annotations: Value,
    reactions: &[Reaction],
    calls: Arc<AtomicUsize>,
) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "one", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [{
                "name": "echo", "inputSchema": { "type": "object" }, "annotations": annotations,
            }] }),
            "ping" => json!({}),
            "tools/call" => match reactions[calls.fetch_add(1, Ordering::SeqCst)] {
                Reaction::Answer => json!({ "content": [] }),
                Reaction::Ignore => continue,
                Reaction::Disconnect => return,
                Reaction::Progress => {
                    let token = &message["params"]["_meta"]["progressToken"];
                    for progress in 1.. {
                        tokio::time::sleep(Duration::from_secs(10)).await;
                        let params = json!({ "progressToken": token, "progress": progress });
                        let report = json!({
                            "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
                        });
                        if write
                            .write_all(format!("{report}\n").as_bytes())
                            .await
                            .is_err()
                        {
                            return;
                        }
                    }
                    return;
                }
            },
            _ if message.get("id").is_none() => continue,
            _ => {
                let error = json!({ "code": -32601, "message": "unknown" });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                write
                    .write_all(format!("{answer}\n").as_bytes())
                    .await
                    .unwrap();
                continue;
            }
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        if write
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

struct Deaf;

impl Witness for Deaf {
    fn progress(&self, _params: &RawJson) {}

    fn notified(&self, _notification: &Notification) {}

    fn asked(
        &self,
        _method: &str,
        _params: Option<RawJson>,
    ) -> Answer<'_, Result<RawJson, RpcError>> {
        Box::pin(std::future::ready(Err(RpcError::new(-32601, "nobody"))))
    }

    fn repeats(&self, _error: &RequestError) {}
}

/// How a call is made.
#[derive(Clone, Copy, Debug)]
enum By {
    Call,
    Relay,
}

/// The outcome of a call, how often the server got it, and how long it took.
async fn outcome(
    by: By,
    annotations: Value,
    reactions: &'static [Reaction],
    change: impl FnOnce(&mut ServerSpec, &mut ManagerOptions),
) -> (Result<(), CallError>, usize, Duration) {
    let calls = Arc::new(AtomicUsize::new(0));
    let mut options = ManagerOptions {
        connector: Arc::new(OneTool {
            annotations,
            reactions,
            calls: Arc::clone(&calls),
            tasks: Mutex::default(),
        }),
        ..ManagerOptions::default()
    };
    let name: cocode_core::ServerName = "one".parse().unwrap();
    let mut spec = ServerSpec::program(name.clone(), "any", [""; 0]);
    change(&mut spec, &mut options);
    let manager = Manager::new(options);
    manager.apply([spec]).await;
    manager.wait_for_startup().await;
    let begun = Instant::now();
    let outcome = match by {
        By::Call => {
            let called = manager.call("mcp__one__echo", None, CallContext::default());
            called.await.map(drop)
        }
        By::Relay => {
            let params = RawJson::parse(r#"{"name":"echo"}"#).unwrap();
            let relayed = Relayed {
                method: "tools/call",
                params: Some(&params),
                behalf: &Behalf::default(),
                wants_progress: false,
                deadlines: Deadlines {
                    idle: IDLE,
                    total: TOTAL,
                },
                witness: Arc::new(Deaf),
            };
            manager.relay(&name, Some("echo"), &relayed).await.map(drop)
        }
    };
    (outcome, calls.load(Ordering::SeqCst), begun.elapsed())
}

fn code(outcome: Result<(), CallError>) -> &'static str {
    outcome.map_or_else(|error| error.code(), |()| "ok")
}

#[tokio::test(start_paused = true)]
async fn harmless_call_is_made_again_after_its_connection_was_lost() {
    use Reaction::{Answer, Disconnect};
    for by in [By::Call, By::Relay] {
        for (annotations, expected) in [
            (json!({ "readOnlyHint": true }), ("ok", 2)),
            (json!({ "idempotentHint": true }), ("ok", 2)),
            (json!({}), ("connection-closed", 1)),
        ] {
            let reactions = &[Disconnect, Answer];
            let (outcome, calls, _) = outcome(by, annotations, reactions, |_, _| ()).await;
            assert_eq!((code(outcome), calls), expected, "{by:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn read_only_call_that_times_out_is_made_once_more() {
    use Reaction::{Answer, Ignore};
    for by in [By::Call, By::Relay] {
        for (annotations, expected) in [
            (json!({ "readOnlyHint": true }), ("ok", 2)),
            (json!({ "idempotentHint": true }), ("request-timeout", 1)),
        ] {
            let (outcome, calls, _) = outcome(by, annotations, &[Ignore, Answer], |_, _| ()).await;
            assert_eq!((code(outcome), calls), expected, "{by:?}");
        }
        let read_only = json!({ "readOnlyHint": true });
        let reactions = &[Ignore, Ignore, Answer];
        let (outcome, calls, took) = outcome(by, read_only, reactions, |_, _| ()).await;
        assert_eq!((code(outcome), calls), ("request-timeout", 2), "{by:?}");
        assert!(took < 3 * IDLE, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn total_timeout_ends_a_call_that_reports_progress() {
    let in_spec = Some(Duration::from_secs(95));
    let in_options = Some(Duration::from_secs(155));
    for (of_server, of_all, expected) in [
        (in_spec, in_options, in_spec),
        (None, in_options, in_options),
    ] {
        let (outcome, calls, took) = outcome(
            By::Call,
            json!({ "readOnlyHint": true }),
            &[Reaction::Progress],
            |spec, options| {
                spec.tool_total_timeout = of_server;
                options.tool_total_timeout = of_all;
            },
        )
        .await;
        assert_eq!((code(outcome), calls), ("request-timeout", 1));
        let late = Duration::from_secs(1);
        let expected = expected.unwrap();
        assert!(took >= expected && took < expected + late, "{took:?}");
    }
}
