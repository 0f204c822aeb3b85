//! Somebody who writes messages by hand, and sees everything that comes back.

use std::sync::Arc;
use std::time::Duration;

use cocode_agent::serve::AgentServer;
use cocode_wire::serve::{LineOptions, serve_lines};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::task::JoinSet;

/// Nothing that is waited for takes so long, unless it never comes.
const PATIENCE: Duration = Duration::from_hours(2);

pub(crate) struct Hand {
    sink: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: u64,
    /// What a modern client says it can do; without it, this is one of the older era.
    modern: Option<Value>,
    /// Notifications so far.
    pub(crate) heard: Vec<Value>,
    tasks: JoinSet<()>,
}

impl Hand {
    fn connected(server: &Arc<AgentServer>, modern: Option<Value>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let server = Arc::clone(server);
        let (source, sink) = tokio::io::split(theirs);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let options = LineOptions::default();
            serve_lines(source, sink, &*server, options, std::future::pending()).await;
        });
        let (source, sink) = tokio::io::split(ours);
        Self {
            sink,
            lines: BufReader::new(source).lines(),
            next: 0,
            modern,
            heard: Vec::new(),
            tasks,
        }
    }

    /// One that has said nothing yet.
    pub(crate) fn silent(server: &Arc<AgentServer>) -> Self {
        Self::connected(server, None)
    }

    /// One of the stateless era.
    pub(crate) fn modern(server: &Arc<AgentServer>, capabilities: Value) -> Self {
        Self::connected(server, Some(capabilities))
    }

    /// One with a session.
    pub(crate) async fn legacy(server: &Arc<AgentServer>, capabilities: Value) -> Self {
        let mut hand = Self::silent(server);
        hand.open("2025-11-25", capabilities).await;
        hand
    }

    /// One of either era.
    pub(crate) async fn of(era: &str, server: &Arc<AgentServer>, capabilities: Value) -> Self {
        match era {
            "legacy" => Self::legacy(server, capabilities).await,
            _ => Self::modern(server, capabilities),
        }
    }

    pub(crate) async fn open(&mut self, revision: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "hand", "version": "1" },
        });
        let opened = self.ask("initialize", params).await;
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(told).await;
        opened
    }

    pub(crate) fn can_now(&mut self, capabilities: Value) {
        self.modern = Some(capabilities);
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.sink.write_all(line.as_bytes()).await.unwrap();
    }

    /// Sends a request, and gives its id.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        if let Some(capabilities) = &self.modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
        }
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(request).await;
        id
    }

    /// The next message, whatever it is.
    pub(crate) async fn message(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.unwrap().unwrap();
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    /// The next message that is no notification.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let message = self.message().await;
            if message.get("id").is_some() {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// The answer to a request; nothing else may come but notifications.
    pub(crate) async fn answer_to(&mut self, id: u64) -> Value {
        let message = self.next().await;
        assert_eq!(message["id"], id, "{message}");
        assert!(message.get("method").is_none(), "{message}");
        message
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer_to(id).await
    }

    pub(crate) async fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "_meta": { "progressToken": format!("token-{}", self.next + 1) },
        });
        self.begin("tools/call", params).await
    }

    /// The result of a call.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments).await;
        self.answer_to(id).await["result"].clone()
    }

    /// Comes back to a call with answers.
    pub(crate) async fn come_back(
        &mut self,
        tool: &str,
        arguments: Value,
        state: &Value,
        answers: Value,
    ) -> Value {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "requestState": state,
            "inputResponses": answers,
            "_meta": { "progressToken": format!("token-{}", self.next + 1) },
        });
        self.ask("tools/call", params).await
    }

    /// Answers a request of the server.
    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send(answer).await;
    }

    pub(crate) async fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id, "reason": "enough" });
        let told = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": params,
        });
        self.send(told).await;
    }

    /// What was said of the progress of requests.
    pub(crate) fn progress(&self) -> Vec<String> {
        let reports = self.heard.iter();
        let reports = reports.filter(|told| told["method"] == "notifications/progress");
        let words = reports.map(|told| told["params"]["message"].as_str().unwrap().to_owned());
        words.collect()
    }

    /// Waits until a report of progress says this.
    pub(crate) async fn until_progress(&mut self, words: &str) {
        while !self.progress().iter().any(|told| told.contains(words)) {
            let message = self.message().await;
            assert!(message.get("id").is_none(), "{message}");
            self.heard.push(message);
        }
    }

    /// Ends the connection, and waits until the server has noticed.
    pub(crate) async fn leave(self) {
        let Self {
            sink,
            lines,
            mut tasks,
            ..
        } = self;
        drop((sink, lines));
        while tasks.join_next().await.is_some() {}
    }
}

/// The conversation that a call returned.
pub(crate) fn session_of(result: &Value) -> Value {
    let id = result["structuredContent"]["session_id"].clone();
    assert!(id.is_string(), "{result}");
    id
}

/// The text of a result.
pub(crate) fn text_in(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
