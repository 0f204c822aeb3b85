//! A server for tests that answers each path with a text that was fixed beforehand, and tells what it
//! was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cocode_wire::HttpClient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use super::{Guard, Http};

/// Answers until it is dropped.
pub(super) struct Responder {
    pub(super) origin: String,
    requests: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

/// `GET /path` and the answer to it: a status, headers in lines of their own, an empty line, a body.
/// `ORIGIN` in an answer stands for the server itself. Answers to the same request are given in turn,
/// and the last one stays.
pub(super) type Route<'a> = (&'a str, &'a str);

impl Responder {
    pub(super) async fn start(routes: &[Route<'_>]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let mut answers: Vec<(String, VecDeque<String>)> = Vec::new();
        for (request, answer) in routes {
            let answer = answer.replace("ORIGIN", &origin);
            match answers.iter_mut().find(|(known, _)| known == request) {
                Some((_, known)) => known.push_back(answer),
                None => answers.push(((*request).to_owned(), VecDeque::from([answer]))),
            }
        }
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read(&mut socket).await;
                let line = request.lines().next().unwrap_or_default();
                let line = line.strip_suffix(" HTTP/1.1").unwrap_or(line).to_owned();
                seen.lock().unwrap().push(request);
                let known = answers.iter_mut().find(|(known, _)| *known == line);
                let answer = match known {
                    Some((_, answers)) if answers.len() > 1 => answers.pop_front().unwrap(),
                    Some((_, answers)) => answers[0].clone(),
                    None => "404 Not Found\n\nnothing here".to_owned(),
                };
                socket.write_all(raw(&answer).as_bytes()).await.unwrap();
            }
        });
        Self {
            origin,
            requests,
            _serving: serving,
        }
    }

    /// All requests so far, whole.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The methods and paths of all requests so far.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = |request: &String| {
            let line = request.lines().next().unwrap_or_default();
            line.trim_end_matches(" HTTP/1.1").to_owned()
        };
        self.requests().iter().map(lines).collect()
    }

    pub(super) fn url(&self, path: &str) -> Url {
        format!("{}{path}", self.origin).parse().unwrap()
    }
}

/// Goes where a server at this address may lead.
pub(super) fn http_for(server: &Url) -> Http {
    Http::new(HttpClient::default(), Guard::for_server(server))
}

/// The body of a request.
pub(super) fn body_of(request: &str) -> &str {
    request.split_once("\r\n\r\n").unwrap().1
}

fn raw(answer: &str) -> String {
    let (head, body) = answer.split_once("\n\n").unwrap_or((answer, ""));
    let head = head.replace('\n', "\r\n");
    let length = body.len();
    format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

async fn read(socket: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&heard);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        assert!(socket.read_buf(&mut heard).await.unwrap() > 0);
    }
}
