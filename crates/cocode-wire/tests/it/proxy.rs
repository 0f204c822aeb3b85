//! Proxies: used when named, passed by where the caller says so, and never guessed.

use cocode_wire::{HttpSettings, LinkError, OpenError, Target, WebSocketTarget};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::collector::{
    Delivered, PONG, answer_with_pong, http_target, ping, read_request, try_open,
};

/// Answers one request itself, and tells what it was.
async fn one_shot() -> (u16, oneshot::Receiver<String>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (seen, request) = oneshot::channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let text = read_request(&mut stream).await;
        answer_with_pong(&mut stream).await;
        drop(seen.send(text));
    });
    (port, request, tasks)
}

#[tokio::test]
async fn requests_go_through_the_proxy_that_is_named() {
    let (port, seen, _tasks) = one_shot().await;
    let settings = HttpSettings {
        http_proxy: Some(format!("http://127.0.0.1:{port}")),
        ..HttpSettings::default()
    };
    let answer = ping(Target::Http(http_target(
        "http://mcp.invalid/path",
        settings,
    )))
    .await;
    assert!(matches!(answer, Delivered::Frame(_)));
    let request = seen.await.expect("a request");
    assert!(
        request.starts_with("POST http://mcp.invalid/path HTTP/1.1\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn hosts_outside_the_proxy_are_reached_directly() {
    let (port, seen, _tasks) = one_shot().await;
    let settings = HttpSettings {
        http_proxy: Some("http://127.0.0.1:1".to_owned()),
        no_proxy: Some("localhost,127.0.0.1".to_owned()),
        ..HttpSettings::default()
    };
    let url = format!("http://127.0.0.1:{port}/path");
    let answer = ping(Target::Http(http_target(&url, settings))).await;
    assert!(matches!(answer, Delivered::Frame(_)));
    assert!(
        seen.await
            .expect("a request")
            .starts_with("POST /path HTTP/1.1\r\n")
    );
}

fn websocket_target(url: &str, settings: HttpSettings) -> Target {
    let plain = http_target(url, settings);
    Target::WebSocket(WebSocketTarget {
        url: plain.url,
        headers: plain.headers,
        credentials: None,
        client: plain.client,
        max_frame: plain.max_frame,
    })
}

/// A proxy that is itself the server behind its tunnels, and tells how it was asked for one.
async fn tunneling(answer: &'static str) -> (u16, oneshot::Receiver<String>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (seen, request) = oneshot::channel();
    let mut seen = Some(seen);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let text = read_request(&mut stream).await;
            if let Some(seen) = seen.take() {
                drop(seen.send(text));
            }
            stream.write_all(answer.as_bytes()).await.expect("writable");
            // This server knows no subprotocol, so the client comes a second time.
            let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
                continue;
            };
            if let Some(Ok(_ping)) = socket.next().await {
                socket.send(PONG.into()).await.expect("sent");
            }
        }
    });
    (port, request, tasks)
}

#[tokio::test]
async fn a_websocket_goes_through_a_tunnel_of_the_proxy() {
    let (port, seen, _tasks) = tunneling("HTTP/1.1 200 Connection established\r\n\r\n").await;
    let settings = HttpSettings {
        http_proxy: Some(format!("http://user:p%40ss@127.0.0.1:{port}")),
        ..HttpSettings::default()
    };
    let answer = ping(websocket_target("ws://mcp.invalid/path", settings)).await;
    assert!(matches!(answer, Delivered::Frame(frame) if frame.numeric_id() == Some(7)));
    let request = seen.await.expect("a request");
    assert!(
        request.starts_with("CONNECT mcp.invalid:80 HTTP/1.1\r\nHost: mcp.invalid:80\r\n"),
        "{request}"
    );
    // The credentials are `user:p@ss`.
    assert!(
        request.contains("Proxy-Authorization: Basic dXNlcjpwQHNz\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_proxy_that_refuses_the_tunnel_is_quoted() {
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    let (port, _seen, _tasks) = tunneling(refusal).await;
    let settings = HttpSettings {
        http_proxy: Some(format!("127.0.0.1:{port}")),
        ..HttpSettings::default()
    };
    match try_open(websocket_target("ws://mcp.invalid/", settings)).await {
        Err(OpenError::Link(LinkError::Unreachable { source, .. })) => {
            assert!(source.to_string().contains("407 Proxy"), "{source}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn websockets_outside_the_proxy_are_reached_directly() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let socket = tokio_tungstenite::accept_async(stream).await;
            let mut socket = socket.expect("a WebSocket");
            if let Some(Ok(_ping)) = socket.next().await {
                socket.send(PONG.into()).await.expect("sent");
            }
        }
    });
    let settings = HttpSettings {
        http_proxy: Some("http://127.0.0.1:1".to_owned()),
        no_proxy: Some("localhost,127.0.0.1".to_owned()),
        ..HttpSettings::default()
    };
    let url = format!("ws://127.0.0.1:{port}/");
    let answer = ping(websocket_target(&url, settings)).await;
    assert!(matches!(answer, Delivered::Frame(_)));
}

#[tokio::test]
async fn a_proxy_that_makes_no_tunnels_for_websockets_is_refused() {
    let settings = HttpSettings {
        https_proxy: Some("socks5://127.0.0.1:1".to_owned()),
        ..HttpSettings::default()
    };
    let outcome = try_open(websocket_target("wss://mcp.invalid/", settings)).await;
    let error = outcome.expect_err("no tunnel");
    assert!(matches!(error, OpenError::HttpSetup(_)), "{error:?}");
    assert!(error.to_string().contains("HTTP proxies only"), "{error}");
}
