//! Servers on sockets that are killed, restarted, left hanging, reset and distrusted by a test.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use cocode_testkit::{Gate, Script};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::Message as Frame;

use crate::http_client::Client;
use crate::sockets::{PING, call, connect};

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

fn sessionless() -> Script {
    Script::new().sessionless()
}

/// How reading goes on a connection that the server breaks.
fn end_of(mut socket: &TcpStream) -> ErrorKind {
    socket.read(&mut [0; 1]).unwrap_err().kind()
}

fn refusal_of(address: SocketAddr) -> ErrorKind {
    TcpStream::connect(address).unwrap_err().kind()
}

#[test]
fn a_killed_http_server_resets_its_connections_and_refuses_new_ones() {
    let server = sessionless().http();
    let mut used = Client::connect(&server);
    assert_eq!(used.call(&ping(), &[]).status, 200);
    server.kill();
    assert_eq!(end_of(used.socket()), ErrorKind::ConnectionReset);
    assert_eq!(refusal_of(server.address()), ErrorKind::ConnectionRefused);
}

#[test]
fn a_restarted_http_server_is_another_one_at_the_same_address() {
    let server = Script::new().http();
    let before = server.url();
    let mut client = Client::connect(&server);
    let reply = client.call(&json!({"id": 0, "method": "initialize"}), &[]);
    let session = reply.header("Mcp-Session-Id").unwrap().to_owned();
    server.kill();
    server.restart(&Script::new().tools(3, 10));
    assert_eq!(server.url(), before);
    let mut client = Client::connect(&server);
    let old = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(client.call(&ping(), &old).status, 404);
    // While it is up, a restart kills by itself.
    server.restart(&sessionless().tools(2, 10));
    assert_eq!(end_of(client.socket()), ErrorKind::ConnectionReset);
    let mut client = Client::connect(&server);
    let reply = client.call(&json!({"id": 1, "method": "tools/list"}), &[]);
    let tools = reply.json()["result"]["tools"].as_array().unwrap().len();
    assert_eq!(tools, 2);
    assert_eq!(server.requests().all().len(), 3);
    assert_eq!(server.connections().all(), [1, 1, 1]);
}

#[test]
fn a_call_under_way_dies_with_its_server() {
    let gate = Gate::new();
    let server = sessionless().on("ping").hold(&gate).as_usual().http();
    let mut client = Client::connect(&server);
    client.post(&ping(), &[]);
    server.requests().wait_for_blocking(|_| true);
    server.kill();
    assert_eq!(end_of(client.socket()), ErrorKind::ConnectionReset);
}

#[test]
fn a_server_that_hangs_accepts_and_answers_only_when_it_is_resumed() {
    let server = sessionless().http();
    server.hang();
    let mut waiting = Client::connect(&server);
    waiting.post(&ping(), &[]);
    assert!(server.requests().all().is_empty());
    server.resume();
    assert_eq!(waiting.reply().status, 200);
    server.hang();
    waiting.post(&ping(), &[]);
    server.kill();
    assert_eq!(end_of(waiting.socket()), ErrorKind::ConnectionReset);
    assert_eq!(server.requests().all().len(), 1);
}

#[test]
fn a_connection_can_be_reset_in_the_middle_of_an_answer() {
    let gate = Gate::new();
    let server = sessionless()
        .on("ping")
        .stream()
        .comment("half")
        .hold(&gate)
        .reset()
        .http();
    let mut client = Client::connect(&server);
    client.post(&ping(), &[]);
    assert_eq!(client.head().status, 200);
    assert_eq!(client.chunk().as_deref(), Some(": half\n\n"));
    gate.open();
    assert_eq!(end_of(client.socket()), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_websocket_server_is_killed_restarted_and_hung_alike() {
    let server = Script::new().on("bye").reset().websocket();
    let (mut first, _) = connect(&server).await.unwrap();
    assert_eq!(call(&mut first, PING).await["id"], 1);
    server.kill();
    let reset = |error: Error| match error {
        Error::Io(error) => error.kind(),
        other => panic!("{other:?}"),
    };
    let end = first.next().await.unwrap().unwrap_err();
    assert_eq!(reset(end), ErrorKind::ConnectionReset);
    let refused = connect(&server).await.unwrap_err();
    assert_eq!(reset(refused), ErrorKind::ConnectionRefused);
    server.restart(&Script::new().on("bye").reset());
    let (mut second, _) = connect(&server).await.unwrap();
    server.hang();
    second.send(Frame::Ping("x".into())).await.unwrap();
    second.send(Frame::text(PING)).await.unwrap();
    assert_eq!(server.received().all().len(), 1);
    server.resume();
    let pong = second.next().await.unwrap().unwrap();
    assert_eq!(pong, Frame::Pong("x".into()));
    assert!(second.next().await.unwrap().unwrap().is_text());
    second
        .send(Frame::text(r#"{"method":"bye"}"#))
        .await
        .unwrap();
    let end = second.next().await.unwrap().unwrap_err();
    assert_eq!(reset(end), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_unix_server_is_killed_restarted_and_hung_alike() {
    let server = Script::new().unix();
    let connect = async || UnixStream::connect(server.path()).await;
    let mut first = BufReader::new(connect().await.unwrap());
    let line = format!("{PING}\n");
    let mut answer = String::new();
    first.write_all(line.as_bytes()).await.unwrap();
    first.read_line(&mut answer).await.unwrap();
    server.kill();
    assert_eq!(first.read_line(&mut answer).await.unwrap(), 0);
    let refused = connect().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    server.restart(&Script::new().on("ping").line("other"));
    let mut second = BufReader::new(connect().await.unwrap());
    server.hang();
    second.write_all(line.as_bytes()).await.unwrap();
    assert_eq!(server.received().all().len(), 1);
    server.resume();
    answer.clear();
    second.read_line(&mut answer).await.unwrap();
    assert_eq!(answer, "other\n");
}

#[tokio::test]
async fn a_slow_answer_does_not_hold_up_the_next() {
    let server = Script::new()
        .on("slow")
        .delay(Duration::from_millis(300))
        .line("slow")
        .on("fast")
        .line("fast")
        .unix();
    let socket = UnixStream::connect(server.path()).await.unwrap();
    let mut socket = BufReader::new(socket);
    let both = "{\"method\":\"slow\"}\n{\"method\":\"fast\"}\n";
    socket.write_all(both.as_bytes()).await.unwrap();
    let mut answers = String::new();
    socket.read_line(&mut answers).await.unwrap();
    socket.read_line(&mut answers).await.unwrap();
    assert_eq!(answers, "fast\nslow\n");
}

#[tokio::test]
async fn a_thousand_notifications_come_at_once() {
    let script = sessionless()
        .on("ping")
        .notify_times(1000, "notifications/tools/list_changed", "{}")
        .as_usual();
    let server = script.unix();
    let socket = UnixStream::connect(server.path()).await.unwrap();
    let mut socket = BufReader::new(socket);
    socket
        .write_all(format!("{PING}\n").as_bytes())
        .await
        .unwrap();
    let mut lines = socket.lines();
    for _ in 0..1000 {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(line.contains("list_changed"), "{line}");
    }
    let answer = lines.next_line().await.unwrap().unwrap();
    assert!(answer.contains("result"), "{answer}");
    let server = script.http();
    let mut client = Client::connect(&server);
    let body = client.call(&ping(), &[]).body;
    assert_eq!(body.matches("list_changed").count(), 1000);
    assert_eq!(body.matches("result").count(), 1);
}

#[tokio::test]
async fn a_handshake_can_be_refused_with_anything() {
    let headers = [("Retry-After", "7"), ("Content-Type", "text/html")];
    let server = Script::new()
        .refuse_handshake_with(503, &headers, "<h1>Later</h1>")
        .websocket();
    let Err(Error::Http(refused)) = connect(&server).await else {
        panic!("not refused")
    };
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["Retry-After"], "7");
    assert_eq!(refused.body().as_deref(), Some(&b"<h1>Later</h1>"[..]));
}

async fn tls(
    address: SocketAddr,
    authority: &str,
) -> std::io::Result<TlsStream<tokio::net::TcpStream>> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(address.ip().to_string()).unwrap();
    let socket = tokio::net::TcpStream::connect(address).await?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, socket).await
}

#[tokio::test]
async fn a_tls_server_is_trusted_by_those_who_trust_its_authority_until_it_restarts() {
    let server = sessionless().tls().http();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let authority = server.authority_pem();
    let mut trusted = tls(server.address(), &authority).await.unwrap();
    let request = "POST /nowhere HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
    trusted.write_all(request.as_bytes()).await.unwrap();
    let mut line = String::new();
    BufReader::new(trusted).read_line(&mut line).await.unwrap();
    assert!(line.starts_with("HTTP/1.1 404"), "{line}");
    server.restart(&sessionless().tls());
    let distrust = tls(server.address(), &authority).await.unwrap_err();
    assert_eq!(distrust.kind(), ErrorKind::InvalidData);
    assert_ne!(server.authority_pem(), authority);
    let mut plain = TcpStream::connect(server.address()).unwrap();
    plain.write_all(request.as_bytes()).unwrap();
    let mut complaint = Vec::new();
    plain.read_to_end(&mut complaint).unwrap();
    assert!(!complaint.starts_with(b"HTTP"), "{complaint:?}");
    assert_eq!(server.connections().all().len(), 3);
    assert_eq!(server.requests().all().len(), 1);
    assert!(Script::new().tls().websocket().url().starts_with("wss://"));
}
