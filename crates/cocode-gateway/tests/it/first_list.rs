//! The first lists of all servers as one, while some servers are still starting. The clock stands still
//! unless everything waits for it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cocode_client::{
    Answer, Connector, ListCache, ManagerOptions, ReachError, Reached, ServerSpec, memory_pair,
};
use cocode_gateway::{Gateway, View, ViewOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{RawClient, Visitors};

/// Servers within the test. The one named `late` answers nothing before its gate is open.
struct InMemory {
    gate: watch::Receiver<bool>,
    tasks: Mutex<JoinSet<()>>,
}

impl Connector for InMemory {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        let (target, stream) = memory_pair(1024 * 1024);
        let gate = (spec.name.as_str() == "late").then(|| self.gate.clone());
        self.tasks.lock().unwrap().spawn(serve(stream, gate));
        let sse_fallback = false;
        Box::pin(std::future::ready(Ok(Reached {
            target,
            sse_fallback,
        })))
    }
}

async fn serve(stream: DuplexStream, gate: Option<watch::Receiver<bool>>) {
    if let Some(mut gate) = gate {
        gate.wait_for(|is_open| *is_open).await.unwrap();
    }
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
                "serverInfo": { "name": "one", "version": "1" },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            "resources/list" => json!({ "resources": [{ "uri": "x://one", "name": "one" }] }),
            "resources/templates/list" => json!({ "resourceTemplates": [] }),
            "prompts/list" => json!({ "prompts": [{ "name": "greet" }] }),
            "tools/call" => json!({ "content": [] }),
            _ if message.get("id").is_none() => continue,
            _ => json!({}),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let answer = format!("{answer}\n");
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A gateway just started with these servers, and a client of all of them.
struct Started {
    _gateway: Gateway,
    _view: View,
    _visitors: Visitors,
    gate: watch::Sender<bool>,
    client: RawClient,
    since: Instant,
}

impl Started {
    async fn new(servers: &[&str], cache: Option<&Path>, is_open: bool) -> Self {
        let gate = watch::Sender::new(is_open);
        let gateway = Gateway::new();
        let view = gateway.view(ViewOptions {
            manager: ManagerOptions {
                connector: Arc::new(InMemory {
                    gate: gate.subscribe(),
                    tasks: Mutex::default(),
                }),
                cache: cache.map_or_else(ListCache::off, ListCache::open),
                ..ManagerOptions::default()
            },
            ..ViewOptions::default()
        });
        view.apply(servers.iter().map(|name| spec(name))).await;
        let visitors = Visitors::default();
        let client = visitors.raw(view.all());
        let mut started = Self {
            _gateway: gateway,
            _view: view,
            _visitors: visitors,
            gate,
            client,
            since: Instant::now(),
        };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        started.ask("initialize", hello).await;
        started
    }

    async fn send(&mut self, method: &str, params: Value) {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.client.send(&request.to_string()).await;
    }

    async fn ask(&mut self, method: &str, params: Value) -> String {
        self.send(method, params).await;
        loop {
            let line = self.client.line().await;
            if line.contains(r#""id":7"#) {
                return line;
            }
        }
    }
}

fn spec(name: &str) -> ServerSpec {
    ServerSpec::program(name.parse().unwrap(), "any", [""; 0])
}

#[tokio::test(start_paused = true)]
async fn first_lists_wait_two_seconds_and_late_servers_are_announced() {
    let mut started = Started::new(&["late", "quick"], None, false).await;
    for (method, of) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
        let answer = started.ask(method, json!({})).await;
        assert!(answer.contains("mcp__quick__"), "{of}: {answer}");
        assert!(!answer.contains("mcp__late__"), "{of}: {answer}");
        // The second list does not wait again.
        assert_eq!(started.since.elapsed().as_secs(), 2, "{of}");
    }
    started.gate.send_replace(true);
    let mut announced = Vec::new();
    while announced.len() < 3 {
        let told = started.client.json().await;
        announced.push(told["method"].as_str().unwrap().to_owned());
    }
    announced.sort();
    let of = |list: &str| format!("notifications/{list}/list_changed");
    assert_eq!(announced, [of("prompts"), of("resources"), of("tools")]);
    let answer = started.ask("tools/list", json!({})).await;
    assert!(answer.contains("mcp__late__echo"), "{answer}");
    let answer = started.ask("prompts/list", json!({})).await;
    assert!(answer.contains("mcp__late__greet"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn cached_list_is_given_at_once_and_a_call_waits_for_its_server() {
    let cache = tempfile::tempdir().unwrap();
    let mut earlier = Started::new(&["late"], Some(cache.path()), true).await;
    earlier.ask("prompts/list", json!({})).await;
    let key = ListCache::key_for(&spec("late").fingerprint(), &[]);
    while ListCache::open(cache.path()).load(&key).is_none() {
        tokio::task::yield_now().await;
    }
    drop(earlier);
    let mut started = Started::new(&["late"], Some(cache.path()), false).await;
    for method in ["tools/list", "prompts/list", "resources/list"] {
        let answer = started.ask(method, json!({})).await;
        assert!(
            answer.contains("one") || answer.contains("mcp__late__"),
            "{answer}"
        );
    }
    assert_eq!(started.since.elapsed(), Duration::ZERO);
    started
        .send("tools/call", json!({ "name": "mcp__late__echo" }))
        .await;
    let opening = async {
        tokio::time::sleep(Duration::from_secs(8)).await;
        started.gate.send_replace(true);
    };
    let (answer, ()) = tokio::join!(started.client.json(), opening);
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert_eq!(started.since.elapsed().as_secs(), 8);
}
