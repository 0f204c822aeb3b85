//! An issuer of access tokens on a port of this machine that publishes what a test wants, and counts
//! who asks.

mod signing;

use std::collections::BTreeMap;
use std::net::TcpListener as StdListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::background::{Background, accept_all};

pub use signing::{Signer, encoded, now};

/// An issuer; it ends when it is dropped.
#[derive(Debug)]
pub struct Issuer {
    url: String,
    shared: Arc<Mutex<Shared>>,
    _server: Background,
}

#[derive(Debug, Default)]
struct Shared {
    answers: BTreeMap<String, Answer>,
    asked: Vec<String>,
    is_down: bool,
}

#[derive(Clone, Debug)]
struct Answer {
    status: u16,
    location: Option<String>,
    body: String,
}

impl Issuer {
    /// Where its metadata is.
    pub const METADATA: &str = "/.well-known/oauth-authorization-server";
    /// Where its keys are.
    pub const KEYS: &str = "/keys";

    /// An issuer with metadata and these keys.
    pub fn start(keys: &[&Signer]) -> Self {
        let issuer = Self::empty();
        let metadata = json!({
            "issuer": issuer.url,
            "jwks_uri": format!("{}{}", issuer.url, Self::KEYS),
        });
        issuer.publish(Self::METADATA, &metadata);
        issuer.publish_keys(keys);
        issuer
    }

    /// An issuer that publishes nothing.
    pub fn empty() -> Self {
        let listener = StdListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let set = listener.set_nonblocking(true);
        set.expect("a listener can be that");
        let shared = Arc::new(Mutex::new(Shared::default()));
        let serving = Arc::clone(&shared);
        let server = Background::start(move || async move {
            let listener = TcpListener::from_std(listener).expect("a runtime is there");
            let accept = || async {
                let (socket, _) = listener.accept().await.expect("connections come");
                socket
            };
            accept_all(accept, |_, socket| answer(socket, Arc::clone(&serving))).await;
        });
        Self {
            url: format!("http://{address}"),
            shared,
            _server: server,
        }
    }

    /// Its name, which is its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers with this at a path.
    pub fn publish(&self, path: &str, document: &Value) {
        self.answer(path, 200, None, document.to_string());
    }

    /// Has these keys from now on, and no others.
    pub fn publish_keys(&self, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        self.publish(Self::KEYS, &json!({ "keys": keys }));
    }

    /// Sends whoever asks for a path elsewhere.
    pub fn redirect(&self, path: &str, location: &str) {
        self.answer(path, 302, Some(location.to_owned()), String::new());
    }

    /// Answers like this at a path.
    pub fn answer(&self, path: &str, status: u16, location: Option<String>, body: String) {
        let answer = Answer {
            status,
            location,
            body,
        };
        lock(&self.shared).answers.insert(path.to_owned(), answer);
    }

    /// Whether connections are ended without an answer.
    pub fn set_down(&self, is_down: bool) {
        lock(&self.shared).is_down = is_down;
    }

    /// How often a path was asked for.
    pub fn asked(&self, path: &str) -> usize {
        let shared = lock(&self.shared);
        shared.asked.iter().filter(|asked| *asked == path).count()
    }

    /// What an honest token of this issuer for somebody says.
    pub fn claims(&self, audience: &str, subject: &str) -> Value {
        json!({
            "iss": self.url, "aud": audience, "sub": subject,
            "iat": now(), "exp": now() + 600, "scope": "mcp:basic mcp:write",
        })
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(mut socket: TcpStream, shared: Arc<Mutex<Shared>>) {
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n") {
        match socket.read_buf(&mut heard).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let heard = String::from_utf8(heard).expect("a request is text");
    let path = heard.split(' ').nth(1).expect("it has a path").to_owned();
    let answer = {
        let mut shared = lock(&shared);
        if shared.is_down {
            return;
        }
        shared.asked.push(path.clone());
        shared.answers.get(&path).cloned()
    };
    let answer = answer.unwrap_or(Answer {
        status: 404,
        location: None,
        body: String::new(),
    });
    let location = answer.location.map(|to| format!("Location: {to}\r\n"));
    let text = format!(
        "HTTP/1.1 {} Scripted\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n{}",
        answer.status,
        location.unwrap_or_default(),
        answer.body.len(),
        answer.body,
    );
    // A client that goes away has its reasons.
    if socket.write_all(text.as_bytes()).await.is_ok() {
        drop(socket.shutdown().await);
    }
}
