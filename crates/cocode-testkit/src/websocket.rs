//! A scripted WebSocket server, one message a text.

use std::io;
use std::sync::Arc;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::server::{
    Callback, ErrorResponse, Request, Response,
};
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message as Frame, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use crate::engine::{Engine, Output, Wire};
use crate::http::HttpRequest;
use crate::message::Message;
use crate::recorder::Recorder;
use crate::script::{Refusal, Script, WebSocketHabits};
use crate::tcp::{Connection, Port, Serve, Stream};

const SUBPROTOCOL: &str = "mcp";

/// A running server. Dropping it ends it and closes all its connections.
#[derive(Debug)]
pub struct WebSocketServer {
    port: Port,
    records: Records,
}

#[derive(Debug, Clone, Default)]
struct Records {
    received: Recorder<Message>,
    handshakes: Recorder<HttpRequest>,
}

impl Script {
    /// Starts the script as a WebSocket server on a free port of the loopback interface.
    ///
    /// It accepts every connection that offers the subprotocol `mcp`, and refuses others with 400.
    /// A rule that stops reading also stops answering pings.
    pub fn websocket(&self) -> WebSocketServer {
        let records = Records::default();
        WebSocketServer {
            port: Port::start(self, serving(self, &records)),
            records,
        }
    }
}

impl WebSocketServer {
    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("{}://{}/mcp", self.port.scheme("ws"), self.port.address())
    }

    /// The authority behind the certificate of a server that speaks TLS, in PEM.
    pub fn authority_pem(&self) -> String {
        self.port.authority_pem()
    }

    /// Ends the server: open connections are reset, new ones refused.
    pub fn kill(&self) {
        self.port.kill();
    }

    /// Starts the script at the same address. A server that still runs is killed first.
    pub fn restart(&self, script: &Script) {
        self.port.restart(script, serving(script, &self.records));
    }

    /// Lets the server stand still with all its connections: nothing is read or answered, not even
    /// pings.
    pub fn hang(&self) {
        self.port.presence().hang();
    }

    /// Lets a server that hangs go on.
    pub fn resume(&self) {
        self.port.presence().resume();
    }

    /// What the server has received, on all its connections.
    pub fn received(&self) -> &Recorder<Message> {
        &self.records.received
    }

    /// The HTTP requests that opened or tried to open a connection.
    pub fn handshakes(&self) -> &Recorder<HttpRequest> {
        &self.records.handshakes
    }

    /// The first received message that fits, waiting for it if need be.
    pub async fn wait_for(&self, fits: impl Fn(&Message) -> bool) -> Message {
        self.records.received.wait_for(fits).await
    }
}

fn serving(script: &Script, records: &Records) -> Serve {
    script.assert_fits_websocket();
    let (script, records) = (script.clone(), records.clone());
    Arc::new(move |connection| Box::pin(serve(script.clone(), connection, records.clone())))
}

async fn serve(script: Script, connection: Connection, records: Records) {
    let Connection {
        number,
        stream,
        breaker,
    } = connection;
    let handshake = Handshake {
        number,
        habits: script.websocket.clone(),
        seen: records.handshakes.clone(),
    };
    // A refused or broken handshake is in the record of the test, and nothing follows it.
    let Ok(connection) = accept_hdr_async(stream, handshake).await else {
        return;
    };
    let (output, mut input) = connection.split();
    let mut tasks = JoinSet::new();
    let engine = Engine::start(&script, number, WebSocketWire(output), breaker, &mut tasks).await;
    loop {
        let frame = tokio::select! {
            frame = input.next() => frame,
            () = engine.hung_up.cancelled() => return,
        };
        let text = match frame {
            Some(Ok(Frame::Text(text))) => text.as_str().to_owned(),
            Some(Ok(Frame::Binary(bytes))) => String::from_utf8_lossy(&bytes).into_owned(),
            Some(Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Close(_) | Frame::Frame(_))) => {
                continue;
            }
            Some(Err(_)) | None => return,
        };
        let message = Message::parse(number, text);
        records.received.push(message.clone());
        engine.take(&message, &mut tasks).await;
    }
}

struct Handshake {
    number: u32,
    habits: WebSocketHabits,
    seen: Recorder<HttpRequest>,
}

impl Callback for Handshake {
    fn on_request(
        self,
        request: &Request,
        mut response: Response,
    ) -> Result<Response, ErrorResponse> {
        let text_of = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = request.headers();
        self.seen.push(HttpRequest {
            connection: self.number,
            method: request.method().to_string(),
            path: request.uri().to_string(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.to_string(), text_of(value)))
                .collect(),
            body: Vec::new(),
        });
        let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().any(|value| {
            text_of(value)
                .split(',')
                .any(|protocol| protocol.trim() == SUBPROTOCOL)
        });
        let unwelcome = !offered && !self.habits.no_subprotocol;
        if let Some(refusal) = self.habits.refuse_with {
            return Err(refused(refusal));
        }
        if unwelcome {
            let mut response = ErrorResponse::new(None);
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return Err(response);
        }
        if !self.habits.no_subprotocol {
            let name = HeaderValue::from_static(SUBPROTOCOL);
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, name);
        }
        Ok(response)
    }
}

fn refused(refusal: Refusal) -> ErrorResponse {
    let Refusal {
        status,
        headers,
        body,
    } = refusal;
    let length = ("Content-Length".to_owned(), body.len().to_string());
    let mut response = Response::builder().status(status);
    for (name, value) in headers.iter().chain([&length]) {
        response = response.header(name, value);
    }
    response
        .body(Some(body))
        .expect("a status and headers of HTTP")
}

struct WebSocketWire(SplitSink<WebSocketStream<Box<dyn Stream>>, Frame>);

impl Wire for WebSocketWire {
    async fn put(&mut self, output: Output) -> io::Result<()> {
        let frame = match output {
            Output::Line(text) | Output::Text(text) => Frame::text(text),
            Output::Bytes(bytes) => Frame::binary(bytes),
            Output::Fill(bytes) => Frame::text("x".repeat(bytes)),
            Output::Close { code, reason } => Frame::Close(Some(CloseFrame {
                code: CloseCode::from(code),
                reason: Utf8Bytes::from(reason),
            })),
        };
        self.0.send(frame).await.map_err(io::Error::other)
    }
}
