//! A session that goes on at another gateway: the servers there know what its client has set.

use std::sync::Arc;
use std::time::Duration;

use cocode_testkit::{Script, StdioServer};
use cocode_wire::serve::{
    Endpoint, HttpServer, HttpServerOptions, MemorySessionStore, SessionKey, SessionStore, Site,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{Rig, Server};

const RESOURCE: &str = "scripted://hello";
const UPDATED: &str = "notifications/resources/updated";

/// All servers of a gateway, and each by its name.
struct Everything(cocode_gateway::View);

impl Site for Everything {
    fn endpoint(&self, name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        match name {
            Some(name) => self.0.server(name),
            None => Some(self.0.all()),
        }
    }
}

/// A gateway over HTTP with one server of its own.
struct House {
    rig: Rig,
    port: u16,
    _serving: JoinSet<()>,
}

impl House {
    async fn with(store: &Arc<dyn SessionStore>) -> Self {
        let script = Script::new().on("resources/subscribe").result(json!({}));
        let script = script
            .on("tools/call")
            .notify(UPDATED, json!({ "uri": RESOURCE }));
        let rig = Rig::new(Server::Stdio(script.text_result("done").stdio())).await;
        let mut options = HttpServerOptions::new(([127, 0, 0, 1], 0).into());
        options.sessions = Some(Arc::clone(store));
        let site = Arc::new(Everything(rig.view.clone()));
        let server = HttpServer::bind(options, site).unwrap();
        let port = server.local_addr().port();
        let mut serving = JoinSet::new();
        serving.spawn(server.serve(std::future::pending()));
        Self {
            rig,
            port,
            _serving: serving,
        }
    }

    fn upstream(&self) -> &StdioServer {
        match self.rig.server() {
            Server::Stdio(server) => server,
            Server::Http(_) => panic!("a program"),
        }
    }

    /// Sends a request. Gives the head of the answer, and the message in it.
    async fn post(&self, path: &str, session: Option<&str>, message: Value) -> (String, Value) {
        let body = message.to_string();
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        let session = session.unwrap_or_default();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let message = serde_json::from_str(body);
        (
            head.to_owned(),
            message.unwrap_or_else(|_| panic!("{answer}")),
        )
    }

    async fn ask(&self, path: &str, session: &str, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let (head, answer) = self.post(path, Some(session), message).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head} {answer}");
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Reads the stream of a session until it has that.
    async fn hears(&self, path: &str, session: &str, wanted: &[&str]) {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut heard = String::new();
        let mut piece = [0; 4096];
        while !wanted.iter().all(|wanted| heard.contains(wanted)) {
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(piece.get(..read).unwrap()));
        }
    }
}

#[tokio::test]
async fn log_level_and_subscriptions_come_over() {
    let store: Arc<dyn SessionStore> = Arc::new(MemorySessionStore::new());
    let (one, other) = (House::with(&store).await, House::with(&store).await);
    for path in ["/mcp/upstream", "/mcp"] {
        let hello = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "moving", "version": "1" },
            },
        });
        let (head, _answer) = one.post(path, None, hello).await;
        let id = head.split("mcp-session-id: ").nth(1).unwrap();
        let id = id.lines().next().unwrap();
        one.ask(path, id, "tools/list", json!({})).await;
        one.ask(path, id, "logging/setLevel", json!({ "level": "error" }))
            .await;
        let followed = json!({ "uri": RESOURCE });
        one.ask(path, id, "resources/subscribe", followed).await;
        let key = SessionKey::of(id);
        let is_kept = || async {
            let found = store.find(&key, Duration::from_mins(1)).await.unwrap();
            found.unwrap().told.len() == 3
        };
        while !is_kept().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The other gateway knows nothing of it but what is in the store.
        let tool = if path == "/mcp" {
            "mcp__upstream__echo"
        } else {
            "echo"
        };
        let call = json!({ "name": tool, "arguments": {} });
        other.ask(path, id, "tools/call", call).await;
        let upstream = other.upstream();
        let level = json!({ "level": "error" });
        upstream
            .wait_for(|message| message.is("logging/setLevel") && message.params() == level)
            .await;
        upstream
            .wait_for(|message| message.is("resources/subscribe"))
            .await;
        let promised = "notifications/tools/list_changed";
        other.hears(path, id, &[promised, UPDATED]).await;
    }
}
