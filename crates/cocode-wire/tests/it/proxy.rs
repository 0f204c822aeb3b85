//! Proxies: used when named, passed by where the caller says so, and never guessed.

use cocode_wire::{HttpSettings, Target};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::collector::{Delivered, answer_with_pong, http_target, ping, read_request};

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
