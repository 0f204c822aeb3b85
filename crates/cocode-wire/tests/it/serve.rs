//! Our own links, both ends of them.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::serve::{
    Answer, Asked, Conversation, Endpoint, LineOptions, Serving, Sink, UnixServer, serve_lines,
};
use cocode_wire::{
    Closed, Frame, HeaderMap, Inbox, Link, LinkError, Malformed, Origin, Outgoing, Target,
    UnixTarget, encode, memory_pair,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const MAX_FRAME: usize = 1024 * 1024;

/// Answers with the parameters, and sends notifications back.
struct Echo(mpsc::Sender<&'static str>);

struct Talk {
    outlet: Arc<dyn Sink>,
    news: mpsc::Sender<&'static str>,
}

impl Endpoint for Echo {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        let news = self.0.clone();
        Arc::new(Talk { outlet, news })
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        panic!("connections are conversations");
    }
}

impl Conversation for Talk {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        Box::pin(async move {
            // Others come before.
            tokio::task::yield_now().await;
            let id = asked.frame.id().expect("an id");
            Answer::result(&id, &asked.frame.params().expect("parameters"))
        })
    }

    fn notification(&self, frame: Frame) {
        let bytes: Bytes = frame.bytes().clone();
        assert!(self.outlet.send(bytes), "the client listens");
    }

    fn response(&self, frame: Frame) {
        panic!("{frame:?}");
    }

    fn ended(&self) {
        self.news.try_send("ended").expect("the test listens");
    }
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

async fn open(target: &Target) -> (Link, mpsc::Receiver<Frame>) {
    let (sender, frames) = mpsc::channel(1000);
    let link = Link::open(target, Arc::new(Collector(sender))).await;
    (link.expect("a link"), frames)
}

async fn send(link: &Link, body: Vec<u8>) {
    let message = Outgoing {
        body,
        headers: HeaderMap::new(),
        request: None,
    };
    link.send(message).await.expect("sent");
}

/// Sends many requests before it takes one answer.
async fn crowd(link: &Link, frames: &mut mpsc::Receiver<Frame>, n_requests: u64) {
    let params = |id: u64| format!(r#"{{"id":{id},"text":"{}"}}"#, "x".repeat(1000));
    for id in 0..n_requests {
        send(
            link,
            encode::request(id, "echo", Some(params(id).as_bytes())),
        )
        .await;
    }
    let mut answered = vec![false; usize::try_from(n_requests).expect("few")];
    for _answer in 0..n_requests {
        let frame = frames.recv().await.expect("an answer");
        let id = frame.numeric_id().expect("ours");
        assert_eq!(frame.result().expect("a result").as_str(), params(id));
        let seen = &mut answered[usize::try_from(id).expect("ours")];
        assert!(!std::mem::replace(seen, true), "{id} is answered twice");
    }
}

#[tokio::test]
async fn a_memory_link_is_served_until_it_closes() {
    let (target, theirs) = memory_pair(MAX_FRAME);
    let (news, mut told) = mpsc::channel(1);
    let mut server = JoinSet::new();
    server.spawn(async move {
        let (source, sink) = tokio::io::split(theirs);
        let end = std::future::pending();
        serve_lines(source, sink, &Echo(news), LineOptions::default(), end).await
    });
    let (link, mut frames) = open(&target).await;
    crowd(&link, &mut frames, 500).await;
    send(&link, encode::notification("hello", None)).await;
    let echoed = frames.recv().await.expect("a notification");
    assert_eq!(echoed.method(), "hello");
    link.close().await;
    drop(link);
    assert_eq!(told.recv().await, Some("ended"));
    let reason = server.join_next().await.expect("a server");
    assert!(matches!(reason, Ok(Closed::ByPeer)), "{reason:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_are_served_on_a_unix_socket_and_drained() {
    const N_CLIENTS: usize = 20;
    let directory = tempfile::tempdir().expect("a directory");
    set_permissions(directory.path(), Permissions::from_mode(0o700)).expect("ours");
    let path = directory.path().join("server.sock");
    let listener = UnixServer::bind(&path).await.expect("a server");
    let (news, mut told) = mpsc::channel(N_CLIENTS);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut clients = JoinSet::new();
        for _client in 0..N_CLIENTS {
            let client = listener.accept().await;
            let (news, mut stopped) = (news.clone(), stopped.clone());
            clients.spawn(async move {
                let end = async {
                    stopped.wait_for(|stop| *stop).await.expect("a test");
                };
                client.serve(&Echo(news), LineOptions::default(), end).await
            });
        }
        clients.join_all().await
    });
    let mut clients = JoinSet::new();
    for _client in 0..N_CLIENTS {
        let path = path.clone();
        clients.spawn(async move {
            let target = Target::Unix(UnixTarget {
                path,
                max_frame: MAX_FRAME,
            });
            let (link, mut frames) = open(&target).await;
            crowd(&link, &mut frames, 300).await;
            (link, frames)
        });
    }
    let links = clients.join_all().await;
    stop.send_replace(true);
    let limit = Duration::from_mins(1);
    let reasons = tokio::time::timeout(limit, server.join_all()).await;
    for reason in reasons.expect("an end").concat() {
        assert!(matches!(reason, Closed::ByUs), "{reason:?}");
    }
    for _client in 0..N_CLIENTS {
        assert_eq!(told.recv().await, Some("ended"));
    }
    assert!(!path.exists());
    drop(links);
}
