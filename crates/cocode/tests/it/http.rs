//! Requests as they are on the wire, for what no client would send.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a test waits for the next byte; what never comes is a failure.
const BYTE_WITHIN: Duration = Duration::from_secs(30);

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        // An answer may come as the one event of a stream.
        let mut data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let text = data.next_back().unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn with_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

/// A stream that goes on, after its head was read.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) answer: Answer,
    lines: BufReader<TcpStream>,
}

impl Open {
    /// The fields of the next event: their names, and what they say. The pieces in which it comes are no
    /// part of it.
    pub(crate) fn next_event(&mut self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            assert!(length > 0, "the stream has ended");
            let is_piece = line.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit());
            match line.trim_end_matches(['\r', '\n']).split_once(':') {
                Some((name, text)) => fields.push((name.to_owned(), text.trim_start().to_owned())),
                None if line == "\n" && !fields.is_empty() => return fields,
                None => assert!(is_piece, "{line:?} after {fields:?}"),
            }
        }
    }

    /// What the next event says.
    pub(crate) fn next_data(&mut self) -> String {
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            assert!(length > 0, "the stream has ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return data.trim_end().to_owned();
            }
        }
    }

    /// Everything until the other side ends it.
    pub(crate) fn rest(mut self) -> String {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// Sends a request, and reads the head of the answer.
pub(crate) fn open(url: &str, method: &str, headers: &[(&str, &str)], body: &str) -> Open {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BYTE_WITHIN)).unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if line.trim_end().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let status = head.split(' ').nth(1).unwrap_or_default();
    let status = status
        .parse()
        .unwrap_or_else(|_| panic!("no answer: {head:?}"));
    let body = String::new();
    Open {
        answer: Answer { status, head, body },
        lines,
    }
}

/// Sends a request, and reads the whole answer.
pub(crate) fn ask(url: &str, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let Open {
        mut answer,
        mut lines,
    } = open(url, method, headers, body);
    lines.read_to_string(&mut answer.body).unwrap();
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = unchunked(&answer.body);
    }
    answer
}

fn unchunked(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        let (chunk, after) = after.split_at(size);
        whole.push_str(chunk);
        rest = after.strip_prefix("\r\n").unwrap();
    }
    whole
}

/// A client that shows a token, and speaks MCP by hand.
#[derive(Clone, Debug)]
pub(crate) struct ByHand {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) session: Option<String>,
}

impl ByHand {
    pub(crate) fn new(url: &str, token: Option<&str>) -> Self {
        Self {
            url: url.to_owned(),
            token: token.map(str::to_owned),
            session: None,
        }
    }

    /// Sends something with everything that this client has to show.
    pub(crate) fn send(&self, method: &str, body: &str) -> Answer {
        let headers = self.headers();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (*k, &**v)).collect();
        ask(&self.url, method, &headers, body)
    }

    /// The stream of the session.
    pub(crate) fn listen(&self) -> Open {
        let headers = self.headers();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (*k, &**v)).collect();
        open(&self.url, "GET", &headers, "")
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let both = "application/json, text/event-stream".to_owned();
        let mut headers = vec![
            ("Content-Type", "application/json".to_owned()),
            ("Accept", both),
        ];
        let token = self.token.as_ref();
        headers.extend(token.map(|token| ("Authorization", format!("Bearer {token}"))));
        headers.extend(self.session.clone().map(|id| ("Mcp-Session-Id", id)));
        headers
    }

    /// Opens a session.
    #[track_caller]
    pub(crate) fn initialized(self) -> Self {
        self.initialized_as("by-hand")
    }

    /// Opens a session as a client of this name.
    #[track_caller]
    pub(crate) fn initialized_as(mut self, name: &str) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": name, "version": name },
        });
        let answer = self.request("initialize", &params).with_status(200);
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.send("POST", told).with_status(202);
        self
    }

    /// Asks for something.
    pub(crate) fn request(&self, method: &str, params: &Value) -> Answer {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send("POST", &message.to_string())
    }

    /// The names of the tools.
    #[track_caller]
    pub(crate) fn tools(&self) -> Vec<String> {
        let listed = self
            .request("tools/list", &json!({}))
            .with_status(200)
            .json();
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    /// The answer to a call.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", &params).with_status(200).json()
    }
}
