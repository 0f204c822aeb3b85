//! What `Debug` and errors show: never what somebody could log in with.

use std::fmt::Debug;

use cocode_wire::{HttpClient, HttpSettings, HttpTarget, LinkError, Target, WebSocketTarget};
use http::{HeaderMap, HeaderValue};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::collector::{Delivered, http_target, open, ping, read_request};

/// Every secret of these tests contains this word.
const SECRET: &str = "hush";

fn settings() -> HttpSettings {
    HttpSettings {
        http_proxy: Some("http://hush-user:hush-password@proxy.example:3128".to_owned()),
        // Without a scheme, the name looks like one.
        https_proxy: Some("hush-user:hush-password@proxy.example:3128".to_owned()),
        no_proxy: Some("127.0.0.1".to_owned()),
        ..HttpSettings::default()
    }
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-key", HeaderValue::from_static("hush-header"));
    headers
}

fn target(base: &str) -> HttpTarget {
    let url = base.replace("://", "://hush-user:hush-password@");
    let url = format!("{url}/hush-path?key=hush-query#hush-fragment");
    HttpTarget {
        url: url.parse().expect("a URL"),
        headers: headers(),
        credentials: None,
        client: HttpClient::new(settings()),
        max_frame: 1024,
    }
}

/// What is shown, which must not be nothing.
#[track_caller]
fn shows(value: &impl Debug, needle: &str) {
    for text in [format!("{value:?}"), format!("{value:#?}")] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains(needle), "{text}");
    }
}

/// A server that answers its first request with `answer` and keeps the connection open.
async fn one_answer(answer: &'static str) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        read_request(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.expect("writable");
        std::future::pending::<()>().await;
    });
    (format!("127.0.0.1:{}", address.port()), tasks)
}

#[test]
fn settings_show_the_host_of_a_proxy_only() {
    shows(&settings(), "proxy.example");
    shows(&HttpClient::new(settings()), "proxy.example");
}

#[test]
fn targets_show_the_host_and_the_names_of_headers_only() {
    for needle in ["mcp.example", "x-key"] {
        let http = target("https://mcp.example");
        shows(&http, needle);
        shows(&Target::LegacySse(http.clone()), needle);
        shows(&Target::Http(http), needle);
        let plain = target("wss://mcp.example");
        let socket = WebSocketTarget {
            url: plain.url,
            headers: plain.headers,
            credentials: None,
            client: plain.client,
            max_frame: plain.max_frame,
        };
        shows(&socket, needle);
        shows(&Target::WebSocket(socket), needle);
    }
}

#[tokio::test]
async fn links_show_no_secrets() {
    let link = open(Target::Http(target("http://127.0.0.1:1"))).await;
    shows(&link, "127.0.0.1");

    let (address, _tasks) = one_answer(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
         event: endpoint\ndata: /messages?session=hush-session\n\n",
    )
    .await;
    let link = open(Target::LegacySse(target(&format!("http://{address}")))).await;
    shows(&link, "127.0.0.1");
}

#[tokio::test]
async fn a_client_that_was_used_shows_no_secrets() {
    let target = target("http://127.0.0.1:1");
    let _link = open(Target::Http(target.clone())).await;
    shows(&target.client, "proxy.example");
}

#[tokio::test]
async fn a_refused_redirect_shows_no_secrets() {
    for (answer, expected) in [
        (
            "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\
             Location: https://hush@login.example/start?code=hush#hush\r\n\r\n",
            "https://login.example/start?",
        ),
        (
            "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /start?code=hush\r\n\r\n",
            "/start?",
        ),
        (
            "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://[hush\r\n\r\n",
            "(not a URL)",
        ),
    ] {
        let (address, _tasks) = one_answer(answer).await;
        let target = http_target(&format!("http://{address}/"), HttpSettings::default());
        match ping(Target::Http(target)).await {
            Delivered::Failed(error @ LinkError::Redirect { .. }) => {
                shows(&error, expected);
                assert!(!error.to_string().contains(SECRET), "{error}");
            }
            Delivered::Failed(error) => panic!("{error:?}"),
            Delivered::Frame(frame) => panic!("{frame:?}"),
        }
    }
}

#[tokio::test]
async fn a_proxy_that_makes_no_sense_is_named_without_its_password() {
    let settings = HttpSettings {
        http_proxy: Some("http://hush:hush@proxy.example:port".to_owned()),
        ..HttpSettings::default()
    };
    let target = Target::Http(http_target("http://mcp.invalid/", settings));
    let error = crate::collector::try_open(target)
        .await
        .expect_err("no such port");
    assert!(!error.to_string().contains(SECRET), "{error}");
    shows(&error, "Proxy");
}
