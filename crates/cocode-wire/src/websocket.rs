//! The WebSocket link: one text message is one frame, pings tell a quiet peer from a dead one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderMap, HeaderValue, Method};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::{Error as WsError, ProtocolError, SubProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use url::Url;

use crate::credentials::{Credentials, Refusal, RequestLine};
use crate::deliver::deliver_text;
use crate::error::{Closed, LinkError};
use crate::http::client::{HttpClient, chain, debug_target, shown};
use crate::http::response::{challenge, text};
use crate::http::secured::secured as secured_over;
use crate::http::tunnel::Proxy;
use crate::inbox::{Inbox, Malformed, Origin};
use crate::limits::{
    CONNECT_TIMEOUT, GOODBYE_TIMEOUT, KEEP_ALIVE_INTERVAL, MAX_REFUSALS, WEBSOCKET_QUEUE,
    WEBSOCKET_SLACK_BYTES, WEBSOCKET_UNANSWERED_PINGS,
};
use crate::link::OpenError;
use crate::salvage::salvage_id;

const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("mcp");

/// Where and how to reach a server over a WebSocket.
#[derive(Clone)]
pub struct WebSocketTarget {
    /// A `ws:` or `wss:` URL.
    pub url: Url,
    /// Headers for the opening handshake.
    pub headers: HeaderMap,
    /// What lets us in, beside the headers.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// Gives the TLS setup and the proxies.
    pub client: HttpClient,
    /// The cap for one message.
    pub max_frame: usize,
}

impl std::fmt::Debug for WebSocketTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        debug_target(formatter, "WebSocketTarget", &self.url, &self.headers)
    }
}

/// Any stream that a WebSocket can run on.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
type Socket = WebSocketStream<Box<dyn Stream>>;
/// A socket, and the headers of the answer that opened it.
type Opened = (Socket, HeaderMap);

#[derive(Debug)]
pub(crate) struct WebSocketLink {
    outgoing: mpsc::Sender<Message>,
    closed: Arc<Mutex<Option<Closed>>>,
    goodbye: Arc<Notify>,
    tasks: Mutex<JoinSet<()>>,
}

impl WebSocketLink {
    pub(crate) async fn open(
        target: &WebSocketTarget,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, OpenError> {
        let socket = admitted(target).await?;
        let (sink, stream) = socket.split();
        let (outgoing, queue) = mpsc::channel(WEBSOCKET_QUEUE);
        let goodbye = Arc::new(Notify::new());
        let closed = Arc::new(Mutex::new(None));
        let mut tasks = JoinSet::new();
        tasks.spawn(write_on(sink, queue, Arc::clone(&goodbye)));
        let pings = outgoing.clone();
        let end = Arc::clone(&closed);
        let max_frame = target.max_frame;
        tasks.spawn(async move {
            let heard = AtomicBool::new(false);
            let reason = tokio::select! {
                reason = read_on(stream, &*inbox, &heard, max_frame) => reason,
                reason = keep_alive(pings, &heard) => reason,
            };
            end.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(reason.clone());
            inbox.closed(reason);
        });
        Ok(Self {
            outgoing,
            closed,
            goodbye,
            tasks: Mutex::new(tasks),
        })
    }

    pub(crate) async fn send(&self, body: Vec<u8>) -> Result<(), LinkError> {
        if let Some(reason) = self
            .closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
        {
            return Err(LinkError::Closed(reason));
        }
        let not_text = |_| LinkError::Closed(Closed::Protocol("a message is not UTF-8".into()));
        let text = Utf8Bytes::try_from(Bytes::from(body)).map_err(not_text)?;
        let sent = self.outgoing.send(Message::Text(text)).await;
        sent.map_err(|_gone| LinkError::Closed(Closed::ByPeer))
    }

    /// Queues a message if that can be done without waiting.
    pub(crate) fn post(&self, body: Vec<u8>) -> bool {
        let text = Utf8Bytes::try_from(Bytes::from(body));
        text.is_ok_and(|text| self.outgoing.try_send(Message::Text(text)).is_ok())
    }

    /// Sends the close frame, waits a little for the peer's, and ends the tasks.
    pub(crate) async fn close(&self) {
        let ours = Closed::ByUs;
        self.closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(ours);
        self.goodbye.notify_one();
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GOODBYE_TIMEOUT, ended).await.is_err() {
            tracing::debug!("the WebSocket was not closed by the peer in time");
        }
    }
}

/// Opens the socket, and tries again as long as the credentials have an answer to a refusal.
async fn admitted(target: &WebSocketTarget) -> Result<Socket, OpenError> {
    let Some(credentials) = &target.credentials else {
        let opened = agreed(target, &HeaderMap::new()).await?;
        let opened = opened.map(|(socket, _headers)| socket);
        return opened.map_err(|error| handshake_error(&target.url, error).into());
    };
    let request = RequestLine {
        method: &Method::GET,
        url: &target.url,
    };
    let mut before = 0;
    loop {
        let shown = credentials.headers(request).await;
        let shown = shown.map_err(LinkError::Credentials)?;
        let error = match agreed(target, &shown).await? {
            Ok((socket, headers)) => {
                credentials.answered(&headers);
                return Ok(socket);
            }
            Err(error) => error,
        };
        let answer = match &error {
            WsError::Http(answer) if matches!(answer.status().as_u16(), 401 | 403) => answer,
            _ => return Err(handshake_error(&target.url, error).into()),
        };
        let refusal = Refusal {
            request,
            sent: &shown,
            challenge: &challenge(answer.status(), answer.headers()),
            headers: answer.headers(),
            before,
        };
        let again = credentials.refused(refusal).await;
        if !again.map_err(LinkError::Credentials)? || before >= MAX_REFUSALS {
            return Err(handshake_error(&target.url, error).into());
        }
        before += 1;
    }
}

/// Opens the socket with the subprotocol, or without it where the server does not know it.
async fn agreed(
    target: &WebSocketTarget,
    credentials: &HeaderMap,
) -> Result<Result<Opened, WsError>, OpenError> {
    match handshake(target, credentials, Some(SUBPROTOCOL)).await? {
        // Some servers speak MCP without knowing the subprotocol.
        Err(WsError::Protocol(ProtocolError::SecWebSocketSubProtocolError(
            SubProtocolError::NoSubProtocol,
        ))) => handshake(target, credentials, None).await,
        outcome => Ok(outcome),
    }
}

/// The outer error is final; the inner one is the handshake's own.
async fn handshake(
    target: &WebSocketTarget,
    credentials: &HeaderMap,
    subprotocol: Option<HeaderValue>,
) -> Result<Result<Opened, WsError>, OpenError> {
    let mut request = match target.url.as_str().into_client_request() {
        Ok(request) => request,
        Err(error) => return Ok(Err(error)),
    };
    for (name, value) in target.headers.iter().chain(credentials) {
        request.headers_mut().insert(name, value.clone());
    }
    if let Some(subprotocol) = subprotocol {
        request
            .headers_mut()
            .insert(SEC_WEBSOCKET_PROTOCOL, subprotocol);
    }
    // A message somewhat over the cap costs its own request; one far over it costs the session.
    let max = target.max_frame.saturating_mul(4);
    let max = Some(max.saturating_add(WEBSOCKET_SLACK_BYTES));
    let config = WebSocketConfig::default()
        .max_message_size(max)
        .max_frame_size(max);
    let opening = async {
        let stream = connect(target).await?;
        let opened =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        Ok(opened.map(|(socket, answer)| (socket, answer.into_parts().0.headers)))
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, opening).await {
        Ok(outcome) => outcome,
        Err(elapsed) => Err(unreachable(&target.url, elapsed).into()),
    }
}

async fn connect(target: &WebSocketTarget) -> Result<Box<dyn Stream>, OpenError> {
    let url = &target.url;
    let no_host = || OpenError::Target(format!("{} names no host", shown(url)));
    let host = url.host_str().ok_or_else(no_host)?;
    let port = url.port_or_known_default().ok_or_else(no_host)?;
    let proxy = Proxy::for_websocket(target.client.settings(), url);
    let stream = match proxy.map_err(OpenError::HttpSetup)? {
        None => tcp(url, host, port).await?,
        Some(proxy) => {
            let mut stream = tcp(url, &proxy.host, proxy.port).await?;
            if proxy.secure {
                stream = secured(target, &proxy.host, stream).await?;
            }
            let tunneled = proxy.tunnel(&mut stream, host, port).await;
            tunneled.map_err(|error| unreachable(url, error))?;
            stream
        }
    };
    if url.scheme() == "wss" {
        secured(target, host, stream).await
    } else {
        Ok(stream)
    }
}

/// The address of an IPv6 host without the brackets that it has in a URL.
fn plain(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn tcp(url: &Url, host: &str, port: u16) -> Result<Box<dyn Stream>, OpenError> {
    let stream = TcpStream::connect((plain(host), port)).await;
    let stream = stream.map_err(|error| unreachable(url, error))?;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    Ok(Box::new(stream))
}

async fn secured(
    target: &WebSocketTarget,
    host: &str,
    stream: Box<dyn Stream>,
) -> Result<Box<dyn Stream>, OpenError> {
    let url = &target.url;
    let tls = target.client.tls().map_err(OpenError::HttpSetup)?;
    let stream = secured_over(tls, plain(host), stream).await;
    Ok(Box::new(stream.map_err(|error| unreachable(url, error))?))
}

fn unreachable(url: &Url, error: impl std::error::Error + Send + Sync + 'static) -> LinkError {
    LinkError::Unreachable {
        url: shown(url),
        source: Arc::new(error),
    }
}

fn handshake_error(url: &Url, error: WsError) -> LinkError {
    let WsError::Http(response) = error else {
        return unreachable(url, error);
    };
    let challenge = challenge(response.status(), response.headers());
    let status = challenge.status;
    if status == 401 || (status == 403 && !challenge.www_authenticate.is_empty()) {
        return LinkError::AuthRequired(challenge);
    }
    let body = response
        .body()
        .as_deref()
        .map(crate::inbox::excerpt)
        .unwrap_or_default();
    let retry_after = text(response.headers(), "retry-after").and_then(|t| t.parse().ok());
    LinkError::Status {
        status,
        body,
        rpc: None,
        retry_after,
    }
}

async fn write_on(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::Receiver<Message>,
    goodbye: Arc<Notify>,
) {
    let failed = loop {
        let message = tokio::select! {
            biased;
            message = queue.recv() => message,
            () = goodbye.notified() => None,
        };
        let Some(message) = message else {
            let frame = CloseFrame {
                code: CloseCode::Normal,
                reason: Utf8Bytes::default(),
            };
            break sink.send(Message::Close(Some(frame))).await;
        };
        if let Err(error) = sink.send(message).await {
            break Err(error);
        }
    };
    if let Err(error) = failed {
        // The reader sees the same end and reports it.
        tracing::debug!(%error, "WebSocket writer ended");
    }
}

async fn read_on(
    mut stream: SplitStream<Socket>,
    inbox: &dyn Inbox,
    heard: &AtomicBool,
    max_frame: usize,
) -> Closed {
    let deliver = |text: &Bytes| {
        if text.len() > max_frame {
            inbox.malformed(Malformed::too_large(max_frame, salvage_id(text)));
        } else {
            deliver_text(inbox, text, Origin::Shared);
        }
    };
    while let Some(message) = stream.next().await {
        heard.store(true, Ordering::Relaxed);
        match message {
            Ok(Message::Text(text)) => deliver(&Bytes::from(text)),
            Ok(Message::Binary(bytes)) => deliver(&bytes),
            Ok(Message::Close(Some(frame))) => {
                let reason = frame.reason.as_str().to_owned();
                return Closed::WebSocket {
                    code: frame.code.into(),
                    reason,
                };
            }
            // The library answers pings by itself.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Ok(Message::Close(None)) | Err(WsError::ConnectionClosed | WsError::AlreadyClosed) => {
                return Closed::ByPeer;
            }
            Err(WsError::Io(error)) => return Closed::Io(Arc::new(error)),
            Err(error) => return Closed::Protocol(chain(&error)),
        }
    }
    Closed::ByPeer
}

/// Pings for ever, also while messages come: some peers count only what they are sent. Ends when
/// the peer has left too many pings in a row without a sign of life.
async fn keep_alive(outgoing: mpsc::Sender<Message>, heard: &AtomicBool) -> Closed {
    let first = Instant::now() + KEEP_ALIVE_INTERVAL;
    let mut ticks = tokio::time::interval_at(first, KEEP_ALIVE_INTERVAL);
    // After a sleep of the machine, one ping is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unanswered = 0;
    loop {
        ticks.tick().await;
        if heard.swap(false, Ordering::Relaxed) {
            unanswered = 0;
        } else if unanswered == WEBSOCKET_UNANSWERED_PINGS {
            return Closed::Silent;
        }
        unanswered += 1;
        // A full queue is traffic enough; a closed one ends the reader too.
        if let Err(error) = outgoing.try_send(Message::Ping(Bytes::new())) {
            tracing::debug!(%error, "no ping sent");
        }
    }
}

#[cfg(test)]
#[path = "websocket_tests.rs"]
mod tests;
