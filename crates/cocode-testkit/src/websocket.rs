//! A scripted WebSocket server, one message a text.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
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

use crate::background::{Background, accept_all};
use crate::engine::{Engine, Output, Wire};
use crate::http::HttpRequest;
use crate::message::Message;
use crate::recorder::Recorder;
use crate::script::{Script, WebSocketHabits};

const SUBPROTOCOL: &str = "mcp";

/// A running server. Dropping it ends it and closes all its connections.
#[derive(Debug)]
pub struct WebSocketServer {
    address: SocketAddr,
    records: Records,
    _background: Background,
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
        self.assert_fits_websocket();
        let listener = StdListener::bind("127.0.0.1:0").expect("a port on the loopback interface");
        listener
            .set_nonblocking(true)
            .expect("sockets can be nonblocking");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let records = Records::default();
        let serving = serve(self.clone(), listener, records.clone());
        let background = Background::start(|| serving);
        WebSocketServer {
            address,
            records,
            _background: background,
        }
    }
}

impl WebSocketServer {
    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("ws://{}/mcp", self.address)
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

async fn serve(script: Script, listener: StdListener, records: Records) {
    let listener = TcpListener::from_std(listener).expect("the socket is nonblocking");
    let accept = async || {
        let (socket, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        socket
    };
    accept_all(accept, |number, socket| {
        serve_connection(script.clone(), number, socket, records.clone())
    })
    .await;
}

async fn serve_connection(script: Script, number: u32, socket: TcpStream, records: Records) {
    socket
        .set_nodelay(true)
        .expect("a TCP socket knows this option");
    let handshake = Handshake {
        number,
        habits: script.websocket.clone(),
        seen: records.handshakes.clone(),
    };
    // A refused or broken handshake is in the record of the test, and nothing follows it.
    let Ok(connection) = accept_hdr_async(socket, handshake).await else {
        return;
    };
    let (output, mut input) = connection.split();
    let mut tasks = JoinSet::new();
    let engine = Engine::start(&script, number, WebSocketWire(output), &mut tasks).await;
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
        let refusal = self.habits.refuse_with.or(unwelcome.then_some(400));
        if let Some(status) = refusal {
            let mut refused = ErrorResponse::new(None);
            *refused.status_mut() = StatusCode::from_u16(status).expect("a status of HTTP");
            return Err(refused);
        }
        if !self.habits.no_subprotocol {
            let name = HeaderValue::from_static(SUBPROTOCOL);
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, name);
        }
        Ok(response)
    }
}

struct WebSocketWire(SplitSink<WebSocketStream<TcpStream>, Frame>);

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
