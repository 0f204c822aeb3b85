//! The scripted server on unix sockets and over WebSocket.

use cocode_testkit::{Script, WebSocketServer};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::Message as Frame;
use tokio_tungstenite::{WebSocketStream, client_async};

pub(crate) const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

pub(crate) type Connection = WebSocketStream<TcpStream>;

pub(crate) async fn connect(
    server: &WebSocketServer,
) -> Result<(Connection, Option<String>), Error> {
    let mut request = server.url().into_client_request()?;
    request
        .headers_mut()
        .insert("Sec-WebSocket-Protocol", "mcp".parse().unwrap());
    let address = request.uri().authority().unwrap().to_string();
    let socket = TcpStream::connect(address).await?;
    let (connection, response) = client_async(request, socket).await?;
    let protocol = response.headers().get("Sec-WebSocket-Protocol");
    Ok((
        connection,
        protocol.map(|name| name.to_str().unwrap().to_owned()),
    ))
}

async fn next(connection: &mut Connection) -> Frame {
    connection.next().await.unwrap().unwrap()
}

pub(crate) async fn call(connection: &mut Connection, text: &str) -> Value {
    connection.send(Frame::text(text)).await.unwrap();
    serde_json::from_str(next(connection).await.to_text().unwrap()).unwrap()
}

#[tokio::test]
async fn a_unix_socket_speaks_lines() {
    let server = Script::new().on("bye").text("half").disconnect().unix();
    assert!(server.url().starts_with("unix:///"));
    let mut socket = BufReader::new(UnixStream::connect(server.path()).await.unwrap());
    socket
        .write_all(format!("{PING}\n").as_bytes())
        .await
        .unwrap();
    let mut line = String::new();
    socket.read_line(&mut line).await.unwrap();
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    socket.write_all(b"{\"method\":\"bye\"}\n").await.unwrap();
    let mut rest = String::new();
    socket.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "half");
    assert_eq!(server.wait_for(|message| message.is("bye")).await.run, 1);
    let path = server.path().to_owned();
    drop(server);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_websocket_speaks_texts_under_the_subprotocol() {
    let server = Script::new().websocket();
    let (mut connection, protocol) = connect(&server).await.unwrap();
    assert_eq!(protocol.as_deref(), Some("mcp"));
    assert_eq!(call(&mut connection, PING).await["id"], 1);
    connection.send(Frame::Ping("x".into())).await.unwrap();
    assert_eq!(next(&mut connection).await, Frame::Pong("x".into()));
    assert_eq!(server.received().all().len(), 1);
    assert_eq!(
        server.handshakes().all()[0].header("sec-websocket-protocol"),
        Some("mcp")
    );
}

#[tokio::test]
async fn a_websocket_can_send_anything_and_close_with_a_code() {
    let server = Script::new()
        .on("ping")
        .raw(b"\x00\xff")
        .fill(100_000)
        .close(4001, "done")
        .websocket();
    let (mut connection, _) = connect(&server).await.unwrap();
    connection.send(Frame::text(PING)).await.unwrap();
    assert_eq!(
        next(&mut connection).await,
        Frame::binary(b"\x00\xff".to_vec())
    );
    assert_eq!(next(&mut connection).await.len(), 100_000);
    let Frame::Close(Some(close)) = next(&mut connection).await else {
        panic!("not closed")
    };
    assert_eq!(
        (u16::from(close.code), close.reason.as_str()),
        (4001, "done")
    );
}

#[tokio::test]
async fn a_websocket_can_drop_the_connection() {
    let server = Script::new().on("ping").disconnect().websocket();
    let (mut connection, _) = connect(&server).await.unwrap();
    connection.send(Frame::text(PING)).await.unwrap();
    assert!(connection.next().await.unwrap().is_err());
}

#[tokio::test]
async fn a_websocket_that_stops_reading_answers_no_pings() {
    let server = Script::new()
        .on("ping")
        .as_usual()
        .stop_reading()
        .websocket();
    let (mut connection, _) = connect(&server).await.unwrap();
    assert_eq!(call(&mut connection, PING).await["id"], 1);
    connection.send(Frame::Ping("x".into())).await.unwrap();
    connection.send(Frame::text(PING)).await.unwrap();
    // The end of the server is the next thing to come.
    drop(server);
    assert!(connection.next().await.unwrap().is_err());
}

#[tokio::test]
async fn a_handshake_can_be_refused_or_answered_without_the_subprotocol() {
    let server = Script::new().refuse_handshake(403).websocket();
    let Err(Error::Http(refused)) = connect(&server).await else {
        panic!("not refused")
    };
    assert_eq!(refused.status(), 403);
    let server = Script::new().no_subprotocol().websocket();
    // The client's library itself refuses this.
    assert!(connect(&server).await.is_err());
    assert_eq!(server.handshakes().all().len(), 1);
}

#[tokio::test]
async fn connections_are_told_apart() {
    let server = Script::new()
        .on_start()
        .run(1)
        .close(1012, "restart")
        .websocket();
    let (mut first, _) = connect(&server).await.unwrap();
    assert!(matches!(next(&mut first).await, Frame::Close(Some(_))));
    let (mut second, _) = connect(&server).await.unwrap();
    assert_eq!(call(&mut second, PING).await["id"], 1);
    assert_eq!(server.wait_for(|message| message.is("ping")).await.run, 2);
}
