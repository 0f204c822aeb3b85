//! A scripted HTTP server: raw TCP on the loopback interface, so that it can answer anything.

mod exchange;
mod request;
mod response;
mod streams;
mod usual;

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

use crate::background::{Background, accept_all};
use crate::engine::Asks;
use crate::http::exchange::{After, Exchange};
use crate::http::response::Response;
use crate::http::streams::{Push, Streams};
use crate::http::usual::Usual;
use crate::recorder::Recorder;
use crate::rules::RuleSet;
use crate::script::{HttpTransport, Script, SseEvent};
use crate::template::{Scope, Template};

pub use crate::http::request::HttpRequest;

/// A running HTTP server. Dropping it ends it and closes all its connections.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    endpoint: &'static str,
    shared: Arc<Shared>,
    _background: Background,
}

/// What all connections of a server have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    rules: RuleSet,
    usual: Usual,
    asks: Asks,
    heard: broadcast::Sender<String>,
    streams: Streams,
    requests: Recorder<HttpRequest>,
    abandoned: Recorder<HttpRequest>,
    connections: Recorder<u32>,
}

impl Script {
    /// Starts the script as an HTTP server on a free port of the loopback interface.
    ///
    /// By itself it is a streamable HTTP server at `/mcp`, in the legacy era with sessions.
    pub fn http(&self) -> HttpServer {
        self.assert_fits_http();
        let listener = StdListener::bind("127.0.0.1:0").expect("a port on the loopback interface");
        listener
            .set_nonblocking(true)
            .expect("sockets can be nonblocking");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            rules: RuleSet::new(self),
            usual: Usual::new(self),
            asks: Asks::default(),
            heard: broadcast::Sender::new(1024),
            streams: Streams::default(),
            requests: Recorder::default(),
            abandoned: Recorder::default(),
            connections: Recorder::default(),
        });
        let endpoint = match self.http.transport {
            HttpTransport::Streamable => "/mcp",
            HttpTransport::TwoEndpoints => "/sse",
        };
        let serving = Arc::clone(&shared);
        let background = Background::start(move || serve(listener, serving));
        HttpServer {
            address,
            endpoint,
            shared,
            _background: background,
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
        format!("http://{}{path}", self.address)
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request, recorded before it is answered.
    pub fn requests(&self) -> &Recorder<HttpRequest> {
        &self.shared.requests
    }

    /// Every request whose connection the client closed before the answer was complete.
    pub fn abandoned(&self) -> &Recorder<HttpRequest> {
        &self.shared.abandoned
    }

    /// The connections that were accepted, numbered from one.
    pub fn connections(&self) -> &Recorder<u32> {
        &self.shared.connections
    }

    /// The first request that fits, waiting for it if need be.
    pub async fn wait_for(&self, fits: impl Fn(&HttpRequest) -> bool) -> HttpRequest {
        self.shared.requests.wait_for(fits).await
    }

    /// Waits until this many streams have been opened that take pushes.
    pub async fn wait_for_streams(&self, count: usize) {
        self.shared
            .streams
            .opened
            .wait_until(|opened| opened.len() >= count)
            .await;
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
        self.shared.usual.expire_sessions();
    }

    fn push_to_all(&self, push: &Push) {
        let reached = self.shared.streams.push(None, push);
        assert!(
            reached > 0,
            "no stream is open; wait for one with `wait_for_streams`"
        );
    }
}

async fn serve(listener: StdListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("the socket is nonblocking");
    let accept = async || {
        let (socket, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        socket
    };
    accept_all(accept, |number, socket| {
        serve_connection(number, socket, Arc::clone(&shared))
    })
    .await;
}

async fn serve_connection(number: u32, socket: TcpStream, shared: Arc<Shared>) {
    shared.connections.push(number);
    socket
        .set_nodelay(true)
        .expect("a TCP socket knows this option");
    let (input, mut output) = socket.into_split();
    let mut input = BufReader::new(input);
    // A connection that breaks in the middle of a request is over, like one that ends.
    while let Ok(Some(request)) = HttpRequest::read(number, &mut input).await {
        shared.requests.push(request.clone());
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
                shared.abandoned.push(request);
                After::Close
            }
        };
        if after == After::Close {
            return;
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
