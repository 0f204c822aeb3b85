//! Calls that take long: what their clients hear, and what becomes of them at the end. The clock stands
//! still unless everything waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cocode_client::{
    Answer, Connector, ManagerOptions, ReachError, Reached, ServerSpec, memory_pair,
};
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_wire::limits::DRAIN_TIMEOUT;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::{RawClient, Visitors};

/// What a server does with its call of this number.
#[derive(Clone, Copy, Debug)]
enum Reaction {
    /// Sleeps, reports progress 1, sleeps, reports progress 2, and answers.
    Late {
        sleeps: Duration,
        reports: bool,
    },
    Never,
    Disconnect,
}

/// A server of one read-only tool, within the test.
struct OneTool {
    reactions: Vec<Reaction>,
    calls: Arc<AtomicUsize>,
    heard: mpsc::UnboundedSender<String>,
    tasks: Mutex<JoinSet<()>>,
}

impl Connector for OneTool {
    fn reach<'a>(&'a self, _spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        let (target, stream) = memory_pair(1024 * 1024);
        let (calls, heard) = (Arc::clone(&self.calls), self.heard.clone());
        let serving = serve(stream, self.reactions.clone(), calls, heard);
        self.tasks.lock().unwrap().spawn(serving);
        Box::pin(std::future::ready(Ok(Reached {
            target,
            sse_fallback: false,
        })))
    }
}

async fn serve(
    stream: DuplexStream,
    reactions: Vec<Reaction>,
    calls: Arc<AtomicUsize>,
    heard: mpsc::UnboundedSender<String>,
) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let method = message["method"].as_str().unwrap();
        heard.send(method.to_owned()).ok();
        let answer = match method {
            "initialize" => json!({ "result": {
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "one", "version": "1" },
            } }),
            "tools/list" => json!({ "result": { "tools": [{
                "name": "echo", "inputSchema": { "type": "object" },
                "annotations": { "readOnlyHint": true },
            }] } }),
            "ping" => json!({ "result": {} }),
            "tools/call" => match reactions[calls.fetch_add(1, Ordering::SeqCst)] {
                Reaction::Never => continue,
                Reaction::Disconnect => return,
                Reaction::Late { sleeps, reports } => {
                    for progress in 1..=2 {
                        sleep(sleeps).await;
                        let token = &message["params"]["_meta"]["progressToken"];
                        let params = json!({ "progressToken": token, "progress": progress });
                        let report = json!({
                            "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
                        });
                        if reports {
                            let report = format!("{report}\n");
                            write.write_all(report.as_bytes()).await.unwrap();
                        }
                    }
                    json!({ "result": { "content": [] } })
                }
            },
            _ if message.get("id").is_none() => continue,
            _ => json!({ "error": { "code": -32601, "message": "unknown" } }),
        };
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = message["id"].clone();
        if write
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// A gateway with that server, and a client with a session.
struct Scene {
    gateway: Gateway,
    _view: View,
    _visitors: Visitors,
    client: RawClient,
    /// The methods that the server has received.
    heard: mpsc::UnboundedReceiver<String>,
}

impl Scene {
    async fn new(reactions: &[Reaction]) -> Self {
        let (told, heard) = mpsc::unbounded_channel();
        let gateway = Gateway::new();
        let view = gateway.view(ViewOptions {
            manager: ManagerOptions {
                connector: Arc::new(OneTool {
                    reactions: reactions.to_vec(),
                    calls: Arc::default(),
                    heard: told,
                    tasks: Mutex::default(),
                }),
                ..ManagerOptions::default()
            },
            ..ViewOptions::default()
        });
        let spec = ServerSpec::program("upstream".parse().unwrap(), "any", [""; 0]);
        view.apply([spec]).await;
        let visitors = Visitors::default();
        let mut client = visitors.raw(view.server("upstream").unwrap());
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        client
            .send(
                &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })
                    .to_string(),
            )
            .await;
        assert!(client.json().await["result"].is_object());
        Self {
            gateway,
            _view: view,
            _visitors: visitors,
            client,
            heard,
        }
    }

    async fn call(&mut self, meta: Value) {
        let params = json!({ "name": "echo", "arguments": {}, "_meta": meta });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        self.client.send(&call.to_string()).await;
    }

    async fn server_hears(&mut self, method: &str) {
        while self.heard.recv().await.expect("a server") != method {}
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_client_gets_heartbeats_until_the_server_reports_progress() {
    let sleeps = Duration::from_secs(100);
    let reports = true;
    let mut scene = Scene::new(&[Reaction::Late { sleeps, reports }]).await;
    let begun = Instant::now();
    scene.call(json!({ "progressToken": "mine" })).await;
    let mut told = Vec::new();
    let answer = loop {
        let message = scene.client.json().await;
        if message.get("id").is_some() {
            break message;
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "mine", "{message}");
        let progress = message["params"]["progress"].as_f64().unwrap();
        told.push((begun.elapsed().as_secs(), progress));
    };
    assert!(answer["result"].is_object(), "{answer}");
    let expected = [
        (30, 0.0001),
        (60, 0.0002),
        (90, 0.0003),
        (100, 1.0),
        (200, 2.0),
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn client_without_a_progress_token_gets_no_heartbeat() {
    let sleeps = Duration::from_secs(100);
    let reports = false;
    let mut scene = Scene::new(&[Reaction::Late { sleeps, reports }]).await;
    scene.call(json!({})).await;
    let answer = scene.client.json().await;
    assert_eq!(answer["id"], 1, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn read_only_call_is_repeated_when_its_server_is_lost_or_silent() {
    let late = Reaction::Late {
        sleeps: Duration::ZERO,
        reports: false,
    };
    let mut scene = Scene::new(&[Reaction::Disconnect, Reaction::Never, late]).await;
    scene.call(json!({})).await;
    let answer = scene.client.json().await;
    assert!(answer["result"].is_object(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn call_that_is_never_answered_becomes_an_error_before_the_drain_ends() {
    let mut scene = Scene::new(&[Reaction::Never]).await;
    scene.call(json!({})).await;
    scene.server_hears("tools/call").await;
    let begun = Instant::now();
    scene.gateway.begin_drain();
    let answer = scene.client.json().await;
    assert!(begun.elapsed() < DRAIN_TIMEOUT, "{:?}", begun.elapsed());
    assert_eq!(answer["id"], 1, "{answer}");
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    scene.server_hears("notifications/cancelled").await;
}
