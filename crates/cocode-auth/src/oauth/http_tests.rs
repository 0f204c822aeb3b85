//! Guarded exchanges: where they go, and where they stop.

use std::time::Duration;

use bytes::Bytes;
use cocode_wire::HttpClient;
use http::{HeaderMap, HeaderValue};

use super::super::responder::{Responder, http_for};
use super::super::{Guard, GuardError};
use super::{Http, HttpError, shown};

#[tokio::test]
async fn documents_are_followed_to_where_they_are() {
    for status in ["301 A", "302 B", "303 C", "307 D", "308 E"] {
        let away = format!("{status}\nLocation: /b");
        let server = Responder::start(&[
            ("GET /a", &away),
            ("GET /b", "302 Found\nLocation: ORIGIN/c"),
            ("GET /c", "200 OK\n\nhere"),
        ])
        .await;
        let url = server.url("/a");
        let answer = http_for(&url).get(&url).await.unwrap();
        assert_eq!(answer.body(), "here", "{status}");
        assert_eq!(server.lines(), ["GET /a", "GET /b", "GET /c"], "{status}");
    }
}

#[tokio::test]
async fn documents_are_not_followed_forever() {
    let server = Responder::start(&[("GET /a", "302 Found\nLocation: /a")]).await;
    let url = server.url("/a");
    let answer = http_for(&url).get(&url).await.unwrap();
    assert_eq!(answer.status(), 302);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn documents_are_not_followed_to_where_the_guard_does_not_go() {
    for location in [
        "http://as.example/",
        "https://192.0.2.1/",
        "file:///etc/passwd",
    ] {
        let away = format!("302 Found\nLocation: {location}");
        let server = Responder::start(&[("GET /a", &away)]).await;
        let url = server.url("/a");
        let error = http_for(&url).get(&url).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused(_)), "{error:?}");
    }
}

#[tokio::test]
async fn what_is_posted_does_not_go_elsewhere() {
    let server = Responder::start(&[
        ("POST /a", "302 Found\nLocation: /b"),
        (
            "POST /c",
            "307 Temporary Redirect\nLocation: http://localhost:1/d",
        ),
    ])
    .await;
    for (path, status) in [("/a", 302), ("/c", 307)] {
        let url = server.url(path);
        let kind = HeaderValue::from_static("text/plain");
        let http = http_for(&url);
        let posted = http.post(&url, HeaderMap::new(), kind, Bytes::from("secret"));
        assert_eq!(posted.await.unwrap().status(), status);
    }
    assert_eq!(server.lines(), ["POST /a", "POST /c"]);
}

#[tokio::test]
async fn names_are_judged_by_what_they_stand_for() {
    let server = Responder::start(&[("GET /a", "200 OK\n\nhere")]).await;
    let elsewhere = Guard::for_server(&"https://8.8.8.8/".parse().unwrap());
    let mut http = Http::new(HttpClient::default(), elsewhere);
    // As for a name that does not look like this machine: the URL passes.
    http.guard = Guard::for_server(&server.url("/"));
    let url = server.origin.replace("127.0.0.1", "localhost") + "/a";
    let error = http.get(&url.parse().unwrap()).await.unwrap_err();
    let refused = matches!(&error, HttpError::Refused(GuardError::Loopback { .. }));
    assert!(refused, "{error:?}");
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn a_name_that_nobody_resolves_does_not_take_longer_than_an_exchange_may() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    // Names are resolved on the one thread that this takes.
    runtime.spawn_blocking(move || released.recv());
    let http = http_for(&"https://name.invalid/mcp".parse().unwrap());
    let private = "https://10.0.0.1/".parse().unwrap();
    let time = async {
        tokio::time::advance(Duration::from_secs(21)).await;
        drop(release);
    };
    let (fetched, ()) = runtime.block_on(async { tokio::join!(http.get(&private), time) });
    let error = fetched.unwrap_err();
    assert!(matches!(error, HttpError::TimedOut { .. }), "{error:?}");
}

#[test]
fn addresses_are_shown_without_what_may_be_secret() {
    let url = "https://user:pass@as.example/a?code=x#y".parse().unwrap();
    assert_eq!(shown(&url), "https://as.example/a");
}
