//! A client that speaks raw HTTP/1.1 and sees everything.

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// One connection.
pub(super) struct Wire {
    stream: BufReader<TcpStream>,
    chunked: bool,
    text: String,
    events: VecDeque<Event>,
}

/// A whole response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// An event of a stream. Comments are events without fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) data: String,
    pub(super) has_retry: bool,
    pub(super) is_comment: bool,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The code of the JSON-RPC error in the body.
    pub(super) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().expect("an error")
    }

    /// The JSON in the events of the body.
    pub(super) fn messages(&self) -> Vec<Value> {
        let mut events = VecDeque::new();
        let mut text = self.body.clone();
        cut(&mut text, &mut events);
        let data = events.into_iter().filter(|event| !event.data.is_empty());
        data.map(|event| event.json()).collect()
    }
}

impl Event {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.data).expect("JSON")
    }

    /// What a `said` notification says.
    pub(super) fn said(&self) -> String {
        let message = self.json();
        assert_eq!(message["method"], "said", "in {message}");
        message["params"]["text"].as_str().expect("text").to_owned()
    }
}

impl Wire {
    pub(super) async fn to(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("a server");
        Self {
            stream: BufReader::new(stream),
            chunked: false,
            text: String::new(),
            events: VecDeque::new(),
        }
    }

    pub(super) async fn write(&mut self, text: &str) {
        // The server may have closed already; what it said before is read all the same.
        drop(self.stream.get_mut().write_all(text.as_bytes()).await);
    }

    /// Sends a request with these headers, beside what every request has.
    pub(super) async fn send(&mut self, line: &str, headers: &[(&str, &str)], body: Option<&str>) {
        let mut text = format!("{line} HTTP/1.1\r\n");
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            text.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").expect("text");
        }
        if let Some(body) = body {
            write!(text, "Content-Length: {}\r\n", body.len()).expect("text");
        }
        text.push_str("\r\n");
        text.push_str(body.unwrap_or_default());
        self.write(&text).await;
    }

    pub(super) async fn ask(
        &mut self,
        line: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        self.send(line, headers, body).await;
        self.reply().await
    }

    /// Reads a whole response.
    pub(super) async fn reply(&mut self) -> Reply {
        let mut reply = self.head().await;
        let length = reply.header("content-length").map(str::parse::<usize>);
        if self.chunked {
            while let Some(chunk) = self.chunk().await {
                reply.body.push_str(&chunk);
            }
        } else if let Some(length) = length {
            let mut body = vec![0; length.expect("a length")];
            self.stream
                .read_exact(&mut body)
                .await
                .expect("a whole body");
            reply.body = String::from_utf8(body).expect("UTF-8");
        }
        reply
    }

    /// Reads a response up to its body.
    pub(super) async fn head(&mut self) -> Reply {
        let line = self.line().await.expect("a response");
        let status = line.split(' ').nth(1).expect("a status");
        let mut reply = Reply {
            status: status.parse().expect("a number"),
            headers: Vec::new(),
            body: String::new(),
        };
        loop {
            let line = self.line().await.expect("a whole head");
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            reply.headers.push((name.to_lowercase(), value.to_owned()));
        }
        self.chunked = reply.header("transfer-encoding") == Some("chunked");
        self.text.clear();
        self.events.clear();
        reply
    }

    /// The next event of a streamed body. `None` at its proper end.
    pub(super) async fn event(&mut self) -> Option<Event> {
        assert!(self.chunked, "not a stream");
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let chunk = self.chunk().await?;
            self.text.push_str(&chunk);
            cut(&mut self.text, &mut self.events);
        }
    }

    /// The next chunk. `None` at the proper end.
    async fn chunk(&mut self) -> Option<String> {
        let size = self.line().await.expect("a chunk");
        let size = usize::from_str_radix(&size, 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.stream
            .read_exact(&mut chunk)
            .await
            .expect("a whole chunk");
        chunk.truncate(size);
        (size > 0).then(|| String::from_utf8(chunk).expect("UTF-8"))
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).await;
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// Everything up to the end of the connection.
    pub(super) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // A reset is an end, too.
        drop(self.stream.read_to_end(&mut bytes).await);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn cut(text: &mut String, events: &mut VecDeque<Event>) {
    while let Some((event, rest)) = text.split_once("\n\n") {
        let mut parsed = Event::default();
        for line in event.lines() {
            let (name, value) = line.split_once(':').expect("a field");
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "event" => value.clone_into(&mut parsed.name),
                "id" => value.clone_into(&mut parsed.id),
                "data" => parsed.data.push_str(value),
                "retry" => parsed.has_retry = true,
                "" => parsed.is_comment = true,
                other => panic!("unknown field {other}"),
            }
        }
        events.push_back(parsed);
        *text = rest.to_owned();
    }
}

pub(super) const JSON: (&str, &str) = ("Content-Type", "application/json");
pub(super) const BOTH: (&str, &str) = ("Accept", "application/json, text/event-stream");
pub(super) const EVENTS: (&str, &str) = ("Accept", "text/event-stream");

pub(super) fn request(method: &str, params: Value) -> String {
    let mut message = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    message["params"] = params;
    message.to_string()
}

/// A request of no session, with what belongs to it.
pub(super) fn modern(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(method, params)
}

/// The headers of such a request.
pub(super) fn modern_headers(method: &str) -> [(&'static str, &str); 4] {
    let version = ("MCP-Protocol-Version", "2026-07-28");
    [JSON, BOTH, version, ("Mcp-Method", method)]
}

/// Opens a session of that revision at that path, and gives its id.
pub(super) async fn open_session(port: u16, path: &str, revision: &str) -> String {
    let body = request("initialize", json!({ "protocolVersion": revision }));
    let mut wire = Wire::to(port).await;
    let reply = wire
        .ask(&format!("POST {path}"), &[JSON, BOTH], Some(&body))
        .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply
        .header("mcp-session-id")
        .expect("a session")
        .to_owned()
}
