//! Clients on a WebSocket: lively, silent, slow, and breaking the rules.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{WebSocketOptions, serve_websocket};
use crate::error::{Closed, LinkError};
use crate::http::client::{HttpClient, HttpSettings};
use crate::inbox::{Inbox, Malformed, Origin};
use crate::limits::{
    CLIENT_STALL_TIMEOUT, KEEP_ALIVE_INTERVAL, MAX_QUEUED_BYTES, WEBSOCKET_SLACK_BYTES,
};
use crate::serve::scripted::{Script, Seen, scripted};
use crate::websocket::WebSocketTarget;
use crate::{Frame, Link, Outgoing, Target, encode};

struct Client {
    io: Option<DuplexStream>,
    script: Script,
    shutdown: Option<oneshot::Sender<()>>,
    server: JoinSet<Closed>,
}

fn connect(options: WebSocketOptions) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (endpoint, script) = scripted();
    let (shutdown, asked) = oneshot::channel::<()>();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let shutdown = async {
            if asked.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        serve_websocket(theirs, &endpoint, &options, shutdown).await
    });
    Client {
        io: Some(ours),
        script,
        shutdown: Some(shutdown),
        server,
    }
}

impl Client {
    async fn socket(&mut self) -> WebSocketStream<DuplexStream> {
        let io = self.io.take().expect("once");
        WebSocketStream::from_raw_socket(io, Role::Client, None).await
    }

    async fn closed(&mut self) -> Closed {
        let reason = self.server.join_next().await.expect("a server");
        reason.expect("no panic")
    }
}

fn request(id: u32, method: &str, params: impl std::fmt::Display) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    Message::text(text)
}

fn result(id: u32, result: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

async fn receive(socket: &mut WebSocketStream<DuplexStream>) -> String {
    loop {
        match socket.next().await.expect("open").expect("sound") {
            Message::Text(text) => return text.as_str().to_owned(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The code with which the server closes.
async fn close_code(socket: &mut WebSocketStream<DuplexStream>) -> u16 {
    loop {
        match socket.next().await.expect("open").expect("sound") {
            Message::Close(Some(frame)) => return frame.code.into(),
            Message::Text(_) | Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn messages_in_text_and_in_bytes_are_served() {
    let mut client = connect(WebSocketOptions::default());
    let mut socket = client.socket().await;
    socket.send(request(1, "wait", 1)).await.expect("open");
    let bytes = request(2, "tell", 2).into_data();
    socket.send(Message::Binary(bytes)).await.expect("open");
    assert!(receive(&mut socket).await.contains("told"));
    assert_eq!(receive(&mut socket).await, result(2, 2));
    client.script.open_gate();
    assert_eq!(receive(&mut socket).await, result(1, 1));
    socket.send(Message::text("{")).await.expect("open");
    assert!(receive(&mut socket).await.contains("-32700"));
}

#[tokio::test]
async fn when_the_client_closes_its_conversation_ends_and_the_close_is_answered() {
    let mut client = connect(WebSocketOptions::default());
    let mut socket = client.socket().await;
    socket.send(request(1, "wait", 1)).await.expect("open");
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    let outlet = client.script.outlet();
    assert!(outlet.send(Bytes::from_static(b"{}")));
    assert_eq!(receive(&mut socket).await, "{}");
    socket.close(None).await.expect("open");
    while let Some(message) = socket.next().await {
        let message = message.expect("a proper end");
        assert!(message.is_close(), "{message:?}");
    }
    assert!(matches!(client.closed().await, Closed::ByPeer));
    assert_eq!(client.script.next().await, Seen::Ended);
    assert_eq!(client.script.next().await, Seen::Dropped("1".into()));
    assert!(!outlet.send(Bytes::from_static(b"{}")));
}

#[tokio::test]
async fn a_shutdown_lets_requests_finish_and_says_that_the_server_goes_away() {
    let mut client = connect(WebSocketOptions::default());
    let mut socket = client.socket().await;
    socket.send(request(1, "wait", 1)).await.expect("open");
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    client
        .shutdown
        .take()
        .expect("once")
        .send(())
        .expect("sent");
    client.script.open_gate();
    assert_eq!(receive(&mut socket).await, result(1, 1));
    assert_eq!(close_code(&mut socket).await, 1001);
    assert!(socket.next().await.is_none());
    assert!(matches!(client.closed().await, Closed::ByUs));
}

#[tokio::test]
async fn a_message_over_the_cap_costs_its_request_and_one_far_over_it_the_connection() {
    let max_frame = 1000;
    let mut client = connect(WebSocketOptions {
        max_frame,
        ..WebSocketOptions::default()
    });
    let mut socket = client.socket().await;
    let text = format!(r#""{}""#, "x".repeat(2 * max_frame));
    socket.send(request(1, "echo", text)).await.expect("open");
    let answer = receive(&mut socket).await;
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"#));
    socket.send(request(2, "echo", 2)).await.expect("open");
    assert_eq!(receive(&mut socket).await, result(2, 2));
    let text = format!(r#""{}""#, "x".repeat(4 * max_frame + WEBSOCKET_SLACK_BYTES));
    let (mut sink, mut stream) = socket.split();
    let sending = async {
        // The server may go before it has read all of it.
        let _gone = sink.send(request(3, "echo", text)).await;
    };
    let ((), code) = tokio::join!(sending, async {
        match stream.next().await {
            Some(Ok(Message::Close(Some(frame)))) => u16::from(frame.code),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(code, 1009);
    let reason = client.closed().await;
    assert!(matches!(reason, Closed::Protocol(_)), "{reason:?}");
}

/// A client that sends these raw bytes is told this code.
async fn check_refused(bytes: &[u8], code: u16) {
    let mut client = connect(WebSocketOptions::default());
    let mut io = client.io.take().expect("once");
    io.write_all(bytes).await.expect("open");
    let mut answer = [0; 4];
    io.read_exact(&mut answer).await.expect("an answer");
    let [head, length, high, low] = answer;
    assert_eq!((head, length), (0x88, 2), "a close frame");
    assert_eq!(u16::from_be_bytes([high, low]), code);
    drop(io);
    let reason = client.closed().await;
    assert!(matches!(reason, Closed::Protocol(_)), "{reason:?}");
    assert_eq!(client.script.next().await, Seen::Ended);
}

#[tokio::test]
async fn clients_that_break_the_rules_are_told_which() {
    // One byte of text, 0xff, masked with zeros.
    check_refused(&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007).await;
    // Not masked.
    check_refused(&[0x81, 0x01, b'x'], 1002).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_pings_is_kept_and_one_that_does_not_is_dead() {
    let mut client = connect(WebSocketOptions::default());
    let mut socket = client.socket().await;
    let start = Instant::now();
    for n_pings in 1..5 {
        let message = socket.next().await.expect("open").expect("sound");
        assert!(message.is_ping(), "{message:?}");
        assert_eq!(start.elapsed(), n_pings * KEEP_ALIVE_INTERVAL);
        // The library answers with the next write.
        socket.flush().await.expect("open");
    }
    // From here on nothing is read, and so nothing is answered.
    let reason = client.closed().await;
    assert!(matches!(reason, Closed::Silent), "{reason:?}");
    assert_eq!(start.elapsed(), 7 * KEEP_ALIVE_INTERVAL);
    assert_eq!(client.script.next().await, Seen::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_not_read_from_and_at_last_gone() {
    let mut client = connect(WebSocketOptions::default());
    let mut socket = client.socket().await;
    let start = Instant::now();
    let large = request(1, "large", 2 * MAX_QUEUED_BYTES);
    socket.send(large).await.expect("open");
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    // What the server wants to do, it has done when nothing else can run.
    for _turn in 0..100 {
        tokio::task::yield_now().await;
    }
    socket.send(request(2, "echo", 2)).await.expect("open");
    for _turn in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(client.script.seen.recv().now_or_never().is_none());
    let reason = client.closed().await;
    assert!(
        matches!(&reason, Closed::Protocol(why) if why.contains("taken nothing")),
        "{reason:?}"
    );
    assert!(start.elapsed() >= CLIENT_STALL_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_little_is_not_gone() {
    let mut client = connect(WebSocketOptions::default());
    let mut socket = client.socket().await;
    let large = request(1, "large", 2 * MAX_QUEUED_BYTES);
    socket.send(large).await.expect("open");
    let mut io = socket.into_inner();
    let mut taken = Vec::new();
    while taken.len() < 2 * MAX_QUEUED_BYTES {
        tokio::time::sleep(CLIENT_STALL_TIMEOUT / 2).await;
        assert!(io.read_buf(&mut taken).await.expect("open") > 0);
        taken.reserve(16 * 1024);
    }
    assert!(client.server.try_join_next().is_none());
}

struct Collector(mpsc::Sender<Frame>);

impl Inbox for Collector {
    fn frame(&self, frame: Frame, _origin: Origin) {
        self.0.try_send(frame).expect("the test listens");
    }

    fn malformed(&self, malformed: Malformed) {
        panic!("{malformed:?}");
    }

    fn failed(&self, _id: u64, error: LinkError) {
        panic!("{error}");
    }

    fn closed(&self, _reason: Closed) {}
}

#[tokio::test]
async fn our_own_client_is_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (endpoint, mut script) = scripted();
    let mut server = JoinSet::new();
    server.spawn(async move {
        loop {
            let (stream, _peer) = listener.accept().await.expect("a client");
            // The first attempt asks for a subprotocol, which this handshake does not know.
            if let Ok(socket) = tokio_tungstenite::accept_async(stream).await {
                let options = WebSocketOptions::default();
                let io = socket.into_inner();
                let end = std::future::pending();
                serve_websocket(io, &endpoint, &options, end).await;
            }
        }
    });
    let target = Target::WebSocket(WebSocketTarget {
        url: format!("ws://{address}/").parse().expect("a URL"),
        headers: http::HeaderMap::new(),
        credentials: None,
        client: HttpClient::new(HttpSettings::default()),
        max_frame: 1024 * 1024,
    });
    let (sender, mut frames) = mpsc::channel(8);
    let link = Link::open(&target, Arc::new(Collector(sender))).await;
    let link = link.expect("a link");
    for id in 0..100 {
        let params = format!(r#"{{"text":"{}"}}"#, "é".repeat(1000));
        let body = encode::request(id, "echo", Some(params.as_bytes()));
        let headers = http::HeaderMap::new();
        let request = Some(id);
        let message = Outgoing {
            body,
            headers,
            request,
        };
        link.send(message).await.expect("sent");
        let answer = frames.recv().await.expect("an answer");
        assert_eq!(answer.numeric_id(), Some(id));
        assert_eq!(answer.result().expect("a result").as_str(), params);
    }
    link.close().await;
    while script.next().await != Seen::Ended {}
}
