//! The built-in tools, asked by our own client and by hand.

use std::sync::Arc;

use cocode_client::{
    DEFAULT_MAX_FRAME_BYTES, Protocol, RawJson, RequestOptions, Session, SessionOptions, Tool,
    memory_pair,
};
use cocode_tools::{Permissions, Workspace};
use cocode_wire::serve::{LineOptions, serve_lines};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::task::JoinSet;

use super::ToolServer;

fn server(permissions: Permissions) -> (tempfile::TempDir, Arc<ToolServer>) {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a.txt"), "alpha\nbeta\n").unwrap();
    let tools = Workspace::open(root.path(), permissions).unwrap();
    (root, Arc::new(ToolServer::new(tools)))
}

fn serve(server: Arc<ToolServer>, stream: DuplexStream, tasks: &mut JoinSet<()>) {
    let (source, sink) = tokio::io::split(stream);
    tasks.spawn(async move {
        let options = LineOptions::default();
        serve_lines(source, sink, &*server, options, std::future::pending()).await;
    });
}

/// Somebody who writes lines by hand.
struct Hand {
    sink: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    _tasks: JoinSet<()>,
}

impl Hand {
    fn new(server: Arc<ToolServer>) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let mut tasks = JoinSet::new();
        serve(server, theirs, &mut tasks);
        let (source, sink) = tokio::io::split(ours);
        Self {
            sink,
            lines: BufReader::new(source).lines(),
            _tasks: tasks,
        }
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.sink.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params });
        self.send(request).await;
        self.receive().await
    }

    async fn open(&mut self, revision: &str) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": { "name": "hand", "version": "1" },
        });
        self.ask("initialize", params).await
    }
}

fn meta(revision: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[tokio::test]
async fn our_client_lists_and_calls_the_tools_in_both_eras() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (root, server) = server(Permissions::default());
        let (target, theirs) = memory_pair(DEFAULT_MAX_FRAME_BYTES);
        let mut tasks = JoinSet::new();
        serve(server, theirs, &mut tasks);
        let options = SessionOptions {
            protocol,
            ..SessionOptions::default()
        };
        let session = Session::connect(target, options).await.unwrap();
        let facts = session.server();
        assert_eq!(facts.name.as_deref(), Some("cocode-workspace"));
        let told = facts.instructions.clone().unwrap();
        let root = root.path().canonicalize().unwrap();
        assert!(told.contains(root.to_str().unwrap()), "{told}");
        let tools = session.tools().await.unwrap().items;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["read", "list", "find", "grep"]);
        let is_read_only = |tool: &Tool| tool.annotations.read_only == Some(true);
        assert!(tools.iter().all(is_read_only));
        let arguments = RawJson::parse(r#"{"path":"a.txt"}"#).unwrap();
        let called = session
            .call_tool("read", Some(&arguments), RequestOptions::default())
            .await
            .unwrap();
        assert!(called.raw.as_str().contains("beta"), "{}", called.raw);
        session.close().await;
    }
}

#[tokio::test]
async fn every_request_is_answered_as_its_era_wants_it() {
    let (_root, server) = server(Permissions::default());
    let mut hand = Hand::new(server);
    let early = hand.ask("tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32600);
    assert_eq!(hand.ask("ping", json!({})).await["result"], json!({}));
    // The stateless era needs no handshake, and has other rules.
    let modern = |extra: Value| {
        let mut params = json!({ "_meta": meta("2026-07-28") });
        let members = extra.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(members);
        params
    };
    let found = hand.ask("server/discover", modern(json!({}))).await;
    assert_eq!(found["result"]["resultType"], "complete");
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["result"]["capabilities"], json!({ "tools": {} }));
    let listed = hand.ask("tools/list", modern(json!({}))).await;
    assert_eq!(listed["result"]["cacheScope"], "private");
    assert!(listed["result"]["ttlMs"].is_u64(), "{listed}");
    for (method, params, code) in [
        ("ping", modern(json!({})), -32601),
        ("initialize", modern(json!({})), -32601),
        ("resources/list", modern(json!({})), -32601),
        ("tools/list", modern(json!({ "cursor": "x" })), -32602),
        ("tools/call", modern(json!({ "name": "shell" })), -32602),
        ("tools/call", modern(json!({ "name": "none" })), -32602),
        ("tools/call", modern(json!({})), -32602),
        ("tools/list", json!({ "_meta": meta("2099-01-01") }), -32022),
        ("initialize", json!({}), -32602),
    ] {
        let answer = hand.ask(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    // Sessions get the revision they ask for, if it has sessions.
    for (asked, given) in [
        ("2025-03-26", "2025-03-26"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        assert_eq!(hand.open(asked).await["result"]["protocolVersion"], given);
    }
    let listed = hand.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"].as_object().unwrap().len(), 1, "{listed}");
    for method in ["server/discover", "resources/list"] {
        let answer = hand.ask(method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_for_the_model_to_mend() {
    let (_root, server) = server(Permissions::default());
    let mut hand = Hand::new(server);
    hand.open("2025-11-25").await;
    let params = json!({ "name": "read", "arguments": { "paht": "a.txt" } });
    let answer = hand.ask("tools/call", params).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[tokio::test]
async fn a_call_that_is_canceled_is_not_answered() {
    let permissions = Permissions {
        write: false,
        shell: true,
    };
    let (root, server) = server(permissions);
    let mut hand = Hand::new(server);
    hand.open("2025-11-25").await;
    let command = "echo begun > begun; sleep 600";
    let params = json!({ "name": "shell", "arguments": { "command": command } });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    hand.send(call).await;
    while !root.path().join("begun").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let cancel = json!({ "requestId": 7 });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel });
    hand.send(cancel).await;
    // The next answer is that of the next request.
    assert_eq!(hand.ask("ping", json!({})).await["id"], "q");
}
