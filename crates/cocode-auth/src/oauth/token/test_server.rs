//! An authorization server for tests: gives prepared answers and remembers what it was asked.

use std::sync::{Arc, Mutex};

use cocode_wire::HttpClient;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use super::super::guard::Guard;
use super::super::http::Http;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

pub(crate) struct TestServer {
    pub(crate) url: Url,
    heard: Arc<Mutex<Vec<Heard>>>,
    /// Ends with the server.
    _tasks: JoinSet<()>,
}

impl TestServer {
    /// Gives these answers in turn, and then 418. Nothing at all is said for an empty one.
    pub(crate) async fn start<const N: usize>(answers: [String; N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let record = Arc::clone(&heard);
        tasks.spawn(async move {
            let mut answers = answers.into_iter();
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = read(&mut socket).await else {
                    continue;
                };
                record.lock().unwrap().push(request);
                let unexpected = || answer(418, &[], "");
                let answer = answers.next().unwrap_or_else(unexpected);
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self {
            url: format!("http://{address}/token?tenant=1").parse().unwrap(),
            heard,
            _tasks: tasks,
        }
    }

    pub(crate) fn http(&self) -> Http {
        Http::new(HttpClient::default(), Guard::for_server(&self.url))
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

async fn read(socket: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.unwrap() == 0 {
            return None;
        }
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let (line, fields) = head.split_once("\r\n").unwrap();
        let headers: HeaderMap = fields
            .lines()
            .map(|field| {
                let (name, value) = field.split_once(": ").unwrap();
                let name: HeaderName = name.parse().unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect();
        let length = headers.get(http::header::CONTENT_LENGTH);
        let length: usize = length.map_or(0, |length| length.to_str().unwrap().parse().unwrap());
        if body.len() == length {
            return Some(Heard {
                line: line.to_owned(),
                headers,
                body: body.to_owned(),
            });
        }
    }
}

/// An answer with a body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> String {
    let mut head = format!("HTTP/1.1 {status} Status\r\nConnection: close\r\n");
    for &(name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// An answer in JSON.
pub(crate) fn json(status: u16, body: &serde_json::Value) -> String {
    answer(
        status,
        &[("Content-Type", "application/json")],
        &body.to_string(),
    )
}
