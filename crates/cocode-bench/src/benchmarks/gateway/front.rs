//! Clients of whatever listens: a process that is measured, and connections to it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Failure;
use crate::caller::{Caller, Echo};
use crate::gateway::child::Listening;
use crate::gateway::{Front, Setup, Threads};
use crate::http::{HttpAnswer, HttpConnection};
use crate::raw::child::Pipes;

/// The server behind the gateways.
pub(crate) const SERVER: &str = "bench";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A gateway over HTTP before the server that `words` start.
pub(super) fn gateway(words: &[&str]) -> Result<Listening, Failure> {
    Listening::gateway("bench", &setup(Front::Http, Threads::Many, words))
}

/// A gateway on pipes before the server with so many tools.
pub(super) fn gateway_on_pipes(threads: Threads, n_tools: usize) -> Result<Pipes, Failure> {
    let setup = setup(Front::Lines, threads, &["serve", &n_tools.to_string()]);
    let words = ["serve-gateway", "bench", &serde_json::to_string(&setup)?];
    Pipes::run(&std::env::current_exe()?, &words.map(str::to_owned), &[])
}

/// The least that passes bytes on, before the server with so many tools.
pub(super) fn forwarder(way: &str, n_tools: usize) -> Result<Pipes, Failure> {
    let words = ["forward".to_owned(), way.to_owned(), n_tools.to_string()];
    Pipes::run(&std::env::current_exe()?, &words, &[])
}

fn setup(front: Front, threads: Threads, words: &[&str]) -> Setup {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Setup {
        front,
        threads,
        servers: vec![(SERVER.to_owned(), words)],
    }
}

/// Which endpoint is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One server by itself.
    Alone,
    /// All servers as one.
    All,
}

/// One session, and connections for all its calls. A clone is another user of the same.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    idle: Mutex<Vec<HttpConnection>>,
    head: String,
    tool: String,
    next_id: AtomicU64,
}

impl Pool {
    pub(super) async fn open(
        address: SocketAddr,
        place: Place,
        n_connections: usize,
    ) -> Result<Self, Failure> {
        Self::open_as(None, address, place, n_connections).await
    }

    /// As somebody who shows this token, if any.
    pub(crate) async fn open_as(
        token: Option<&str>,
        address: SocketAddr,
        place: Place,
        n_connections: usize,
    ) -> Result<Self, Failure> {
        let (path, tool) = match place {
            Place::Alone => (format!("/mcp/{SERVER}"), "search_issues".to_owned()),
            Place::All => ("/mcp".to_owned(), format!("mcp__{SERVER}__search_issues")),
        };
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n"
        );
        if let Some(token) = token {
            write!(head, "authorization: Bearer {token}\r\n")?;
        }
        let mut connection = HttpConnection::open(address).await?;
        connection.send(&head, INITIALIZE.as_bytes()).await?;
        let answer = connection.answer().await?;
        check(&answer, 200)?;
        // What is bare has no sessions.
        if let Some(session) = answer.session {
            write!(
                head,
                "mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n"
            )?;
            connection.send(&head, INITIALIZED.as_bytes()).await?;
            check(&connection.answer().await?, 202)?;
        }
        let mut idle = vec![connection];
        for _ in 1..n_connections {
            idle.push(HttpConnection::open(address).await?);
        }
        Ok(Self(Arc::new(Shared {
            idle: Mutex::new(idle),
            head,
            tool,
            next_id: AtomicU64::new(1),
        })))
    }

    /// The whole list of tools, in bytes.
    pub(super) async fn list(&self) -> Result<usize, Failure> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        self.post(&body).await
    }

    async fn post(&self, body: &str) -> Result<usize, Failure> {
        let mut connection = self.idle()?;
        connection.send(&self.0.head, body.as_bytes()).await?;
        let answer = connection.answer().await?;
        check(&answer, 200)?;
        self.lock().push(connection);
        Ok(answer.body.len())
    }

    fn idle(&self) -> Result<HttpConnection, Failure> {
        let idle = self.lock().pop();
        idle.ok_or_else(|| "more users than connections".into())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<HttpConnection>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller for Pool {
    async fn echo(&mut self, echo: &Echo) -> Result<usize, Failure> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{}","arguments":{{"query":"x","size":{}}}}}}}"#,
            self.0.tool, echo.size
        );
        self.post(&body).await
    }
}

fn check(answer: &HttpAnswer, status: u16) -> Result<(), Failure> {
    if answer.status == status {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&answer.body);
    Err(format!("status {} instead of {status}: {text}", answer.status).into())
}
