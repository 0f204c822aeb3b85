//! Answers in events: whole, cut, too long and silent.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{EventBody, EventLimits, StreamEvent};
use crate::error::LinkError;
use crate::http::client::HttpClient;
use crate::http::fetch::FetchError;

const LIMITS: EventLimits = EventLimits {
    first_byte: Duration::from_mins(1),
    idle: Duration::from_mins(2),
    max_event_bytes: 1024,
    max_total_bytes: 4096,
};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n";

/// The answer to a request, and the connection that it came on.
async fn answer(text: &str) -> (Response<EventBody>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let request = Request::post(format!("http://{address}/")).body(Bytes::new());
    let client = HttpClient::default();
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            assert!(socket.read_buf(&mut heard).await.unwrap() > 0);
        }
        socket.write_all(text.as_bytes()).await.unwrap();
        socket
    };
    let (fetched, socket) = tokio::join!(client.fetch_events(request.unwrap(), LIMITS), serving);
    (fetched.unwrap(), socket)
}

fn event(name: &str, data: &'static str) -> StreamEvent {
    let (name, data) = (name.to_owned(), Bytes::from_static(data.as_bytes()));
    StreamEvent { name, data }
}

#[tokio::test]
async fn events_come_one_by_one_while_the_stream_is_open() {
    let (answer, mut socket) = answer(&format!("{STREAM}event: one\ndata: 1\n\n")).await;
    let mut body = answer.into_body();
    assert!(body.is_event_stream());
    assert_eq!(body.next().await.unwrap(), Some(event("one", "1")));
    socket.write_all(b"data: 2\n\ndata: cut").await.unwrap();
    assert_eq!(body.next().await.unwrap(), Some(event("", "2")));
    drop(socket);
    assert_eq!(body.next().await.unwrap(), None);
}

#[tokio::test]
async fn an_event_is_whole_although_waiting_for_it_was_given_up_in_between() {
    let (answer, mut socket) = answer(&format!("{STREAM}data: first ")).await;
    let mut body = answer.into_body();
    tokio::select! {
        biased;
        event = body.next() => panic!("no event has ended: {event:?}"),
        () = tokio::task::yield_now() => {}
    }
    socket.write_all(b"second\n\n").await.unwrap();
    assert_eq!(body.next().await.unwrap(), Some(event("", "first second")));
}

#[tokio::test]
async fn a_body_that_is_no_stream_is_read_whole_or_refused() {
    let text = "HTTP/1.1 404 No\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let (found, _socket) = answer(text).await;
    assert_eq!(found.status(), 404);
    let body = found.into_body();
    assert!(!body.is_event_stream());
    assert_eq!(body.into_bytes(2).await.unwrap(), "{}");
    let (found, _socket) = answer(text).await;
    let refused = found.into_body().into_bytes(1).await;
    assert!(is_too_large(&refused, 1), "{refused:?}");
    let (found, _socket) = answer(text).await;
    assert_eq!(found.into_body().into_start(1).await, "{");
}

#[tokio::test]
async fn events_and_answers_over_their_caps_are_refused() {
    let long = format!("{STREAM}data: {}", "x".repeat(3000));
    let (found, _socket) = answer(&long).await;
    let refused = found.into_body().next().await;
    assert!(is_too_large(&refused, 1024), "{refused:?}");
    let many = format!("{STREAM}{}", format!(": {}\n", "x".repeat(900)).repeat(5));
    let (found, _socket) = answer(&many).await;
    let refused = found.into_body().next().await;
    assert!(is_too_large(&refused, 4096), "{refused:?}");
}

#[tokio::test]
async fn a_stream_that_says_nothing_more_is_given_up() {
    let (answer, _socket) = answer(&format!("{STREAM}data: 1\n\n")).await;
    let mut body = answer.into_body();
    assert_eq!(body.next().await.unwrap(), Some(event("", "1")));
    tokio::time::pause();
    let silent = body.next().await;
    let after = LIMITS.idle;
    assert!(
        matches!(silent, Err(FetchError::Silent { after: waited }) if waited == after),
        "{silent:?}"
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let request = Request::post(format!("http://{address}/")).body(Bytes::new());
    let client = HttpClient::default();
    let fetching = client.fetch_events(request.unwrap(), LIMITS);
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            assert!(socket.read_buf(&mut heard).await.unwrap() > 0);
        }
        tokio::time::pause();
        socket
    };
    let (fetched, _socket) = tokio::join!(fetching, serving);
    let after = LIMITS.first_byte;
    assert!(
        matches!(fetched, Err(FetchError::NoAnswer { after: waited }) if waited == after),
        "{fetched:?}"
    );
}

fn is_too_large<T>(outcome: &Result<T, FetchError>, expected: usize) -> bool {
    matches!(outcome, Err(FetchError::Link(LinkError::AnswerTooLarge { limit })) if *limit == expected)
}
