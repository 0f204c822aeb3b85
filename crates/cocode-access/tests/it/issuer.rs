//! An issuer on a port of this machine that publishes what a test wants, and counts who asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cocode_access::{
    Checked, DoorOptions, Doorkeeper, OAuthOptions, Principal, Refusal, ResourceServer,
};
use cocode_wire::{HeaderMap, HeaderValue, HttpClient};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::signing::{Signer, now};

pub(crate) const RESOURCE: &str = "https://gateway.example/mcp";
pub(crate) const METADATA: &str = "/.well-known/oauth-authorization-server";
pub(crate) const KEYS: &str = "/keys";

/// An issuer; it ends when it is dropped.
pub(crate) struct Issuer {
    pub(crate) url: String,
    shared: Arc<Mutex<Shared>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    answers: BTreeMap<String, Answer>,
    asked: Vec<String>,
    is_down: bool,
}

#[derive(Clone)]
struct Answer {
    status: u16,
    location: Option<String>,
    body: String,
}

impl Issuer {
    /// An issuer with metadata and these keys.
    pub(crate) async fn start(keys: &[&Signer]) -> Self {
        let issuer = Self::empty().await;
        let metadata = json!({
            "issuer": issuer.url,
            "jwks_uri": format!("{}{KEYS}", issuer.url),
        });
        issuer.publish(METADATA, &metadata);
        issuer.publish_keys(keys);
        issuer
    }

    /// An issuer that publishes nothing.
    pub(crate) async fn empty() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared::default()));
        let mut tasks = JoinSet::new();
        let serving = Arc::clone(&shared);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                connections.spawn(answer(socket, Arc::clone(&serving)));
            }
        });
        Self {
            url,
            shared,
            _tasks: tasks,
        }
    }

    pub(crate) fn publish(&self, path: &str, document: &Value) {
        self.answer(path, 200, None, document.to_string());
    }

    pub(crate) fn publish_keys(&self, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        self.publish(KEYS, &json!({ "keys": keys }));
    }

    pub(crate) fn redirect(&self, path: &str, location: &str) {
        self.answer(path, 302, Some(location.to_owned()), String::new());
    }

    pub(crate) fn answer(&self, path: &str, status: u16, location: Option<String>, body: String) {
        let answer = Answer {
            status,
            location,
            body,
        };
        let mut shared = self.shared.lock().unwrap();
        shared.answers.insert(path.to_owned(), answer);
    }

    /// Whether connections are ended without an answer.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.shared.lock().unwrap().is_down = is_down;
    }

    /// How often a path was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        let shared = self.shared.lock().unwrap();
        shared.asked.iter().filter(|asked| *asked == path).count()
    }

    /// What an honest token of this issuer says.
    pub(crate) fn claims(&self) -> Value {
        json!({
            "iss": self.url, "aud": RESOURCE, "sub": "alice",
            "iat": now(), "exp": now() + 600, "scope": "mcp:basic mcp:write",
        })
    }

    pub(crate) fn options(&self) -> OAuthOptions {
        OAuthOptions::new(RESOURCE.parse().unwrap(), &self.url)
    }

    /// A door where tokens of this issuer are taken.
    pub(crate) fn door(&self) -> Doorkeeper {
        door(self.options())
    }
}

pub(crate) fn door(options: OAuthOptions) -> Doorkeeper {
    let oauth = ResourceServer::new(options, &HttpClient::default()).unwrap();
    Doorkeeper::new(DoorOptions {
        tokens: None,
        oauth: Some(oauth),
        is_open: true,
    })
}

/// What the door says to a token; that it is never repeated is checked each time.
pub(crate) async fn comes(door: &Doorkeeper, token: &str) -> Result<Principal, Refusal> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    headers.insert("authorization", value);
    let result = match door.check(&headers, None) {
        Checked::Now(result) => result,
        Checked::Later(work) => work.await,
    };
    if let Err(refusal) = &result {
        let all = format!("{refusal:?} {:?} {:?}", refusal.headers(), refusal.body());
        let repeats = |part: &str| part.len() > 8 && all.contains(part);
        assert!(!token.split('.').any(repeats), "{all}");
    }
    result
}

async fn answer(mut socket: TcpStream, shared: Arc<Mutex<Shared>>) {
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n") {
        match socket.read_buf(&mut heard).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let heard = String::from_utf8(heard).unwrap();
    let path = heard.split(' ').nth(1).unwrap().to_owned();
    let answer = {
        let mut shared = shared.lock().unwrap();
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
