//! A scripted HTTP server: raw TCP on the loopback interface, so that it can answer anything.

mod exchange;
mod request;
pub(crate) mod response;
mod streams;
mod usual;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader};
use tokio::sync::broadcast;

use crate::engine::Asks;
use crate::http::exchange::{After, Exchange};
use crate::http::response::Response;
use crate::http::streams::{Push, Streams};
use crate::http::usual::Usual;
use crate::recorder::Recorder;
use crate::rules::RuleSet;
use crate::script::{HttpTransport, Script, SseEvent};
use crate::tcp::{Connection, Port, Serve};
use crate::template::{Scope, Template};

pub use crate::http::request::HttpRequest;

/// A running HTTP server. Dropping it ends it and closes all its connections.
#[derive(Debug)]
pub struct HttpServer {
    port: Port,
    endpoint: &'static str,
    records: Records,
    /// The server that runs now, or ran last.
    shared: Mutex<Arc<Shared>>,
}

/// What is kept of all servers that have been at the port.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    requests: Recorder<HttpRequest>,
    abandoned: Recorder<HttpRequest>,
}

/// What all connections of a server have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    rules: RuleSet,
    usual: Usual,
    asks: Asks,
    heard: broadcast::Sender<String>,
    streams: Streams,
    records: Records,
}

impl Shared {
    fn new(script: &Script, records: &Records) -> Arc<Self> {
        script.assert_fits_http();
        Arc::new(Self {
            rules: RuleSet::new(script),
            usual: Usual::new(script),
            asks: Asks::default(),
            heard: broadcast::Sender::new(1024),
            streams: Streams::default(),
            records: records.clone(),
        })
    }
}

impl Script {
    /// Starts the script as an HTTP server on a free port of the loopback interface.
    ///
    /// By itself it is a streamable HTTP server at `/mcp`, in the legacy era with sessions.
    pub fn http(&self) -> HttpServer {
        let records = Records::default();
        let shared = Shared::new(self, &records);
        let endpoint = match self.http.transport {
            HttpTransport::Streamable => "/mcp",
            HttpTransport::TwoEndpoints => "/sse",
        };
        HttpServer {
            port: Port::start(self, serving(&shared)),
            endpoint,
            records,
            shared: Mutex::new(shared),
        }
    }
}

impl HttpServer {
    /// The URL of the MCP endpoint.
    pub fn url(&self) -> String {
        self.url_of(self.endpoint)
    }

    /// The URL of another path.
    pub fn url_of(&self, path: &str) -> String {
        format!("{}://{}{path}", self.port.scheme("http"), self.address())
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The authority behind the certificate of a server that speaks TLS, in PEM.
    pub fn authority_pem(&self) -> String {
        self.port.authority_pem()
    }

    /// Every request, recorded before it is answered.
    pub fn requests(&self) -> &Recorder<HttpRequest> {
        &self.records.requests
    }

    /// Every request whose connection the client closed before the answer was complete.
    pub fn abandoned(&self) -> &Recorder<HttpRequest> {
        &self.records.abandoned
    }

    /// The connections that were accepted, numbered from one after every start.
    pub fn connections(&self) -> &Recorder<u32> {
        self.port.accepted()
    }

    /// The first request that fits, waiting for it if need be.
    pub async fn wait_for(&self, fits: impl Fn(&HttpRequest) -> bool) -> HttpRequest {
        self.records.requests.wait_for(fits).await
    }

    /// Ends the server: open connections are reset, new ones refused.
    pub fn kill(&self) {
        self.port.kill();
    }

    /// Starts the script at the same address, with no memory of sessions. A server that still runs
    /// is killed first.
    pub fn restart(&self, script: &Script) {
        let shared = Shared::new(script, &self.records);
        self.port.restart(script, serving(&shared));
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = shared;
    }

    /// Lets the server stand still with all its connections: nothing is read or answered.
    pub fn hang(&self) {
        self.port.presence().hang();
    }

    /// Lets a server that hangs go on.
    pub fn resume(&self) {
        self.port.presence().resume();
    }

    /// Waits until this many streams have been opened that take pushes, since the start.
    pub async fn wait_for_streams(&self, count: usize) {
        let shared = self.shared();
        let opened = &shared.streams.opened;
        opened.wait_until(|opened| opened.len() >= count).await;
    }

    /// Sends a message on all open streams, and fails the test if there is none.
    pub fn push(&self, message: impl Into<Template>) {
        self.push_event(&SseEvent::data(message).event("message"));
    }

    /// Sends an event on all open streams, and fails the test if there is none.
    pub fn push_event(&self, event: &SseEvent) {
        self.push_text(&event.render(|data| data.as_str().to_owned()));
    }

    /// Sends any text on all open streams, and fails the test if there is none.
    pub fn push_text(&self, text: &str) {
        self.push_to_all(&Push::Text(text.to_owned()));
    }

    /// Ends all open streams properly, and fails the test if there is none.
    pub fn end_streams(&self) {
        self.push_to_all(&Push::End);
    }

    /// Drops the connections of all open streams, and fails the test if there is none.
    pub fn drop_streams(&self) {
        self.push_to_all(&Push::Drop);
    }

    /// Forgets all sessions, as a restarted server does.
    pub fn expire_sessions(&self) {
        self.shared().usual.expire_sessions();
    }

    fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push_to_all(&self, push: &Push) {
        let reached = self.shared().streams.push(None, push);
        assert!(
            reached > 0,
            "no stream is open; wait for one with `wait_for_streams`"
        );
    }
}

fn serving(shared: &Arc<Shared>) -> Serve {
    let shared = Arc::clone(shared);
    Arc::new(move |connection| Box::pin(serve(connection, Arc::clone(&shared))))
}

async fn serve(connection: Connection, shared: Arc<Shared>) {
    let Connection {
        number,
        stream,
        breaker,
    } = connection;
    let (input, mut output) = tokio::io::split(stream);
    let mut input = BufReader::new(input);
    // A connection that breaks in the middle of a request is over, like one that ends.
    while let Ok(Some(request)) = HttpRequest::read(number, &mut input).await {
        shared.records.requests.push(request.clone());
        let message = request.message();
        if message.is_answer() {
            shared.asks.answered(&message);
        }
        if let Some(method) = message.method() {
            // Nobody waiting is the usual case.
            drop(shared.heard.send(method.to_owned()));
        }
        let (steps, count) = match shared.rules.pick_http(&request.method, &message) {
            Some((rule, count)) => (rule.steps.clone(), count),
            None => (shared.usual.steps(&request, &message), 1),
        };
        let response = Response::new(&mut output);
        let exchange = Exchange::new(&shared, &request, response, Scope::of(&message, count));
        let after = tokio::select! {
            biased;
            after = exchange.run(steps) => after,
            () = closed(&mut input) => {
                shared.records.abandoned.push(request);
                After::Close
            }
        };
        match after {
            After::Reuse => {}
            After::Close => return,
            After::Reset => return breaker.arm(),
        }
    }
}

/// Comes back when the client has closed the connection.
async fn closed(input: &mut (impl AsyncBufRead + Unpin)) {
    match input.fill_buf().await {
        Ok([]) | Err(_) => {}
        // The next request is already here, so that the end cannot be seen any more.
        Ok(_) => std::future::pending().await,
    }
}
