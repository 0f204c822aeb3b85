//! An inbox that hands what it gets to a test.

use std::sync::Arc;
use std::time::Duration;

use cocode_wire::{
    Closed, Frame, HttpClient, HttpSettings, HttpTarget, Inbox, Link, LinkError, Malformed,
    OpenError, Origin, Outgoing, Target, encode,
};
use http::HeaderMap;
use tokio::sync::mpsc;

pub(crate) enum Delivered {
    Frame(Frame),
    Failed(LinkError),
}

struct Collector(mpsc::Sender<Delivered>);

impl Inbox for Collector {
    fn frame(&self, frame: Frame, _origin: Origin) {
        self.0
            .try_send(Delivered::Frame(frame))
            .expect("the test listens");
    }

    fn malformed(&self, malformed: Malformed) {
        panic!("{malformed:?}");
    }

    fn failed(&self, _id: u64, error: LinkError) {
        self.0
            .try_send(Delivered::Failed(error))
            .expect("the test listens");
    }

    fn closed(&self, _reason: Closed) {}
}

pub(crate) fn http_target(url: &str, settings: HttpSettings) -> HttpTarget {
    HttpTarget {
        url: url.parse().expect("a URL"),
        headers: HeaderMap::new(),
        credentials: None,
        client: HttpClient::new(settings),
        max_frame: 1024,
    }
}

/// A link whose deliveries nobody looks at.
pub(crate) async fn open(target: Target) -> Link {
    try_open(target).await.expect("a link")
}

pub(crate) async fn try_open(target: Target) -> Result<Link, OpenError> {
    let (sender, _delivered) = mpsc::channel(8);
    Link::open(&target, Arc::new(Collector(sender))).await
}

/// Sends one ping over `target` and gives what came of it.
pub(crate) async fn ping(target: Target) -> Delivered {
    let (sender, mut delivered) = mpsc::channel(8);
    let link = Link::open(&target, Arc::new(Collector(sender)))
        .await
        .expect("a link");
    let body = encode::request(7, "ping", None);
    link.send(Outgoing {
        body,
        headers: HeaderMap::new(),
        request: Some(7),
    })
    .await
    .expect("sent");
    let answer = tokio::time::timeout(Duration::from_secs(20), delivered.recv()).await;
    answer.expect("an answer in time").expect("an answer")
}

pub(crate) const PONG: &str = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;

/// The head and body of one HTTP request on `stream`.
pub(crate) async fn read_request(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await.expect("readable");
        text.push_str(std::str::from_utf8(&buffer[..read]).expect("text"));
        let complete = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            body.len() >= length.map_or(0, |length| length.parse().expect("a length"))
        });
        if complete || read == 0 {
            return text;
        }
    }
}

pub(crate) async fn answer_with_pong(stream: &mut (impl tokio::io::AsyncWrite + Unpin)) {
    use tokio::io::AsyncWriteExt as _;
    let length = PONG.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}");
    stream
        .write_all(format!("{head}\r\n\r\n{PONG}").as_bytes())
        .await
        .expect("writable");
    stream.flush().await.expect("writable");
}
