//! Credentials on links: asked for every request, and for an answer to every refusal.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cocode_wire::limits::MAX_REFUSALS;
use cocode_wire::{
    Credentials, CredentialsError, CredentialsErrorKind, CredentialsWork, HttpSettings, LinkError,
    OpenError, Refusal, RequestLine, Target, WebSocketTarget,
};
use http::{HeaderMap, HeaderValue};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::collector::{Delivered, answer_with_pong, http_target, ping, read_request, try_open};

/// Shows a number, which every answered refusal makes greater.
#[derive(Debug)]
struct Numbered {
    number: AtomicU32,
    /// Refusals that it has an answer to.
    answers: u32,
    seen: Mutex<Vec<String>>,
}

impl Numbered {
    fn new(answers: u32) -> Arc<Self> {
        Arc::new(Self {
            number: AtomicU32::new(0),
            answers,
            seen: Mutex::default(),
        })
    }
}

impl Credentials for Numbered {
    fn headers<'a>(&'a self, _request: RequestLine<'a>) -> CredentialsWork<'a, HeaderMap> {
        let number = self.number.load(Ordering::Relaxed);
        let mut headers = HeaderMap::new();
        headers.insert("x-number", number.into());
        Box::pin(async { Ok(headers) })
    }

    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> CredentialsWork<'a, bool> {
        let sent = refusal.sent.get("x-number");
        let sent = sent.and_then(|value| value.to_str().ok());
        let seen = format!(
            "{} {} sent {} before {}",
            refusal.request.method,
            refusal.challenge.status,
            sent.unwrap_or("-"),
            refusal.before
        );
        self.seen.lock().expect("not poisoned").push(seen);
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let answers = self.answers;
        Box::pin(async move { Ok(number < answers) })
    }
}

struct Serving(JoinSet<Vec<String>>);

impl Serving {
    async fn requests(mut self) -> Vec<String> {
        let served = self.0.join_next().await;
        served.expect("a server").expect("served")
    }
}

/// A server that refuses all numbers below this one, and the requests it saw.
async fn refusing_below(least: u32, requests: u32) -> (String, Serving) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut seen = Vec::new();
        let mut open = None;
        for _ in 0..requests {
            let mut stream = match open.take() {
                Some(stream) => stream,
                None => listener.accept().await.expect("a connection").0,
            };
            let mut text = read_request(&mut stream).await;
            while text.is_empty() {
                stream = listener.accept().await.expect("a connection").0;
                text = read_request(&mut stream).await;
            }
            let number = text
                .lines()
                .find_map(|line| line.strip_prefix("x-number: "));
            let number: u32 = number.map_or(0, |number| number.parse().expect("a number"));
            seen.push(text);
            if number >= least {
                answer_with_pong(&mut stream).await;
            } else {
                let refusal = "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\n\
                     Content-Length: 0\r\n\r\n";
                stream.write_all(refusal.as_bytes()).await.expect("written");
            }
            open = Some(stream);
        }
        seen
    });
    (format!("http://{address}/mcp"), Serving(serving))
}

fn with(url: &str, credentials: Arc<dyn Credentials>) -> Target {
    let mut target = http_target(url, HttpSettings::default());
    target.credentials = Some(credentials);
    target
        .headers
        .insert("x-own", HeaderValue::from_static("kept"));
    Target::Http(target)
}

#[tokio::test]
async fn a_refused_request_is_sent_again_whole_with_new_credentials() {
    let (url, serving) = refusing_below(2, 3).await;
    let credentials = Numbered::new(9);
    let answer = ping(with(&url, credentials.clone())).await;
    assert!(matches!(answer, Delivered::Frame(frame) if frame.numeric_id() == Some(7)));
    let requests = serving.requests().await;
    for (index, request) in requests.iter().enumerate() {
        assert!(
            request.contains(&format!("x-number: {index}\r\n")),
            "{request}"
        );
        assert!(request.contains("x-own: kept\r\n"), "{request}");
        assert!(request.contains(r#""method":"ping""#), "{request}");
    }
    assert_eq!(
        *credentials.seen.lock().expect("not poisoned"),
        ["POST 401 sent 0 before 0", "POST 401 sent 1 before 1"]
    );
}

#[tokio::test]
async fn a_refusal_without_an_answer_is_the_end() {
    let (url, serving) = refusing_below(1, 1).await;
    let answer = ping(with(&url, Numbered::new(0))).await;
    match answer {
        Delivered::Failed(LinkError::AuthRequired(challenge)) => {
            assert_eq!(
                challenge.www_authenticate,
                [r#"Bearer error="invalid_token""#]
            );
        }
        _ => panic!("an error was expected"),
    }
    assert_eq!(serving.requests().await.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_never_content_is_given_up() {
    let requests = MAX_REFUSALS + 1;
    let (url, serving) = refusing_below(u32::MAX, requests).await;
    let answer = ping(with(&url, Numbered::new(u32::MAX))).await;
    assert!(matches!(
        answer,
        Delivered::Failed(LinkError::AuthRequired(_))
    ));
    assert_eq!(u32::try_from(serving.requests().await.len()), Ok(requests));
}

/// There is nothing to show.
#[derive(Debug)]
struct Missing;

impl Credentials for Missing {
    fn headers<'a>(&'a self, _request: RequestLine<'a>) -> CredentialsWork<'a, HeaderMap> {
        let error = CredentialsError::new(CredentialsErrorKind::NeedsAuth, "sign in first");
        Box::pin(async { Err(error) })
    }

    fn refused<'a>(&'a self, _refusal: Refusal<'a>) -> CredentialsWork<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}

#[tokio::test]
async fn without_credentials_nothing_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let answer = ping(with(&url, Arc::new(Missing))).await;
    match answer {
        Delivered::Failed(LinkError::Credentials(error)) => {
            assert_eq!(error.to_string(), "sign in first");
        }
        _ => panic!("an error was expected"),
    }
    let nobody = tokio::select! {
        biased;
        _ = listener.accept() => false,
        () = std::future::ready(()) => true,
    };
    assert!(nobody, "no connection was made");
}

#[tokio::test]
async fn the_handshake_of_a_websocket_is_answered_for_as_well() {
    // What it answers at last is no handshake: the refusals before are what counts.
    let (url, serving) = refusing_below(1, 2).await;
    let plain = http_target(&url.replace("http:", "ws:"), HttpSettings::default());
    let credentials = Numbered::new(9);
    let target = WebSocketTarget {
        url: plain.url,
        headers: plain.headers,
        credentials: Some(credentials.clone()),
        client: plain.client,
        max_frame: plain.max_frame,
    };
    let opened = try_open(Target::WebSocket(target)).await;
    assert!(
        matches!(
            opened,
            Err(OpenError::Link(LinkError::Status { status: 200, .. }))
        ),
        "{opened:?}"
    );
    assert_eq!(
        *credentials.seen.lock().expect("not poisoned"),
        ["GET 401 sent 0 before 0"]
    );
    assert_eq!(serving.requests().await.len(), 2);
}
