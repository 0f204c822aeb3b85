//! Answers browsers until the right one comes. Knows requests and pages, not ports.
//!
//! A whole HTTP server would be a heavy way to read one `GET`: the head is read here with a limit
//! on everything, taken apart by `httparse`, and every connection ends with its answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::page::{Body, Page};
use crate::oauth::authorize::AuthorizationRequest;
use crate::secret::Secret;

/// The longest first line of a request. Codes of some servers have several thousand characters.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The longest head of a request, its first line included.
const MAX_HEAD_BYTES: usize = 48 * 1024;

/// The most headers of a request.
const MAX_HEADERS: usize = 100;

/// The most connections at a time; for one more, the oldest has to go. Browsers open some in advance.
const MAX_CONNECTIONS: usize = 32;

/// How long a request may take to arrive.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// How long an answer may take to be sent.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// How much, and how long, is read after the answer to a request that was not read to its end. To
/// close at once would make the system throw the answer away.
const DRAIN_BYTES: u64 = 256 * 1024;
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// How long accepting rests after it failed, for want of descriptors mostly.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Decides what each request gets.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) request: AuthorizationRequest,
    /// The one path that is served.
    pub(super) path: String,
    /// The values of `Host` that mean us, in lower case.
    pub(super) hosts: Vec<String>,
    /// What one signs in to.
    pub(super) server_name: String,
    /// The query that was waited for.
    pub(super) answer: OnceLock<Secret>,
}

/// What a request gets.
struct Judgment {
    page: Page,
    body: Body,
    /// Whether it brought the answer that was waited for.
    last: bool,
}

/// Serves until the answer has come and its page is sent.
///
/// Dropping the future ends all connections. An answer that had come by then is in the judge.
pub(super) async fn serve(listeners: &[TcpListener], judge: &Arc<Judge>) {
    let mut connections = JoinSet::new();
    // In the order of their coming. Dropping one ends its connection, unless that brought the answer.
    let mut leases: VecDeque<Lease> = VecDeque::new();
    loop {
        let ended = tokio::select! {
            accepted = accept(listeners) => match accepted {
                Ok((stream, _peer)) => {
                    leases.retain(|lease| !lease.is_closed());
                    let is_full = connections.len() >= MAX_CONNECTIONS;
                    if is_full {
                        drop(leases.pop_front());
                    }
                    let (lease, leased) = oneshot::channel();
                    leases.push_back(lease);
                    connections.spawn(converse(stream, leased, Arc::clone(judge)));
                    if !is_full {
                        continue;
                    }
                    connections.join_next().await
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection of a browser");
                    sleep(ACCEPT_REST).await;
                    continue;
                }
            },
            Some(ended) = connections.join_next() => Some(ended),
        };
        match ended {
            Some(Ok(true)) => return,
            Some(Ok(false)) | None => {}
            Some(Err(error)) => tracing::warn!(%error, "a connection of a browser broke off"),
        }
    }
}

/// A connection stays as long as its lease is kept.
type Lease = oneshot::Sender<Infallible>;

/// Takes a connection from whichever listener has one.
///
/// Cancel safe: a connection that is not taken stays with its listener.
async fn accept(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    poll_fn(|context| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    })
    .await
}

/// Reads one request and answers it. Says whether it brought what was waited for. What did not is cut
/// off when its lease ends.
async fn converse(
    mut stream: TcpStream,
    leased: oneshot::Receiver<Infallible>,
    judge: Arc<Judge>,
) -> bool {
    let answer = tokio::select! {
        // An answer that has come counts, whatever ends at the same moment.
        biased;
        answer = answer_of(&mut stream, &judge) => answer,
        Err(_ended) = leased => None,
    };
    let Some(page) = answer else {
        return false;
    };
    send(&mut stream, &page, Body::Sent).await;
    true
}

/// Reads one request. If it brings what is waited for, says what to answer; else answers it.
async fn answer_of(stream: &mut TcpStream, judge: &Judge) -> Option<Page> {
    let (page, body) = match timeout(READ_LIMIT, read_head(stream)).await {
        Ok(Ok(head)) => match judge.judge(&head) {
            Judgment {
                page, last: true, ..
            } => return Some(page),
            Judgment { page, body, .. } => (page, body),
        },
        Ok(Err(HeadError::Gone)) | Err(_) => return None,
        Ok(Err(HeadError::Refused(page))) => (page, Body::Sent),
    };
    send(stream, &page, body).await;
    drain(stream).await;
    None
}

/// What a page does not reach any more is no loss: the terminal says the same.
async fn send(stream: &mut TcpStream, page: &Page, body: Body) {
    let response = page.response(body);
    let sent = timeout(WRITE_LIMIT, async {
        stream.write_all(&response).await?;
        stream.shutdown().await
    });
    match sent.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a browser did not take its page"),
        Err(_elapsed) => tracing::debug!("a browser took too long over its page"),
    }
}

async fn drain(stream: &mut TcpStream) {
    let mut rest = stream.take(DRAIN_BYTES);
    let mut nowhere = tokio::io::sink();
    if let Ok(Err(error)) = timeout(DRAIN_LIMIT, tokio::io::copy(&mut rest, &mut nowhere)).await {
        tracing::trace!(%error, "a browser closed its connection early");
    }
}

/// The parts of a request that matter.
struct Head {
    method: String,
    /// It may hold the code.
    target: Secret,
    /// All values of `Host`.
    hosts: Vec<String>,
}

enum HeadError {
    /// The connection ended before its request did.
    Gone,
    Refused(Page),
}

async fn read_head(stream: &mut TcpStream) -> Result<Head, HeadError> {
    // Room for all of it, so that growing leaves no copies of a code behind.
    let mut read = Zeroizing::new(Vec::with_capacity(MAX_HEAD_BYTES));
    loop {
        let room = MAX_HEAD_BYTES.saturating_sub(read.len());
        let mut limited = (&mut *stream).take(u64::try_from(room).unwrap_or(u64::MAX));
        match limited.read_buf(&mut *read).await {
            Ok(0) | Err(_) => return Err(HeadError::Gone),
            Ok(_more) => {}
        }
        if let Some(head) = parse(&read).map_err(HeadError::Refused)? {
            return Ok(head);
        }
        if !read.iter().take(MAX_LINE_BYTES).any(|byte| *byte == b'\n')
            && read.len() >= MAX_LINE_BYTES
        {
            return Err(HeadError::Refused(Page::long_line()));
        }
        if read.len() >= MAX_HEAD_BYTES {
            return Err(HeadError::Refused(Page::long_head()));
        }
    }
}

/// Takes a head apart; none, if it is not yet complete.
fn parse(read: &[u8]) -> Result<Option<Head>, Page> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(read) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(_length)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Page::long_head()),
        Err(_malformed) => return Err(Page::unreadable()),
    }
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(Page::unreadable());
    };
    if target.len() > MAX_LINE_BYTES {
        return Err(Page::long_line());
    }
    let hosts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"))
        .map(|header| String::from_utf8_lossy(header.value).to_ascii_lowercase())
        .collect();
    Ok(Some(Head {
        method: method.to_owned(),
        target: Secret::new(target),
        hosts,
    }))
}

impl Judge {
    fn judge(&self, head: &Head) -> Judgment {
        let page = |page| Judgment {
            page,
            body: if head.method == "HEAD" {
                Body::Left
            } else {
                Body::Sent
            },
            last: false,
        };
        // Whoever reaches us under another name was sent here by a name server that lies.
        match head.hosts.as_slice() {
            [host] if self.hosts.contains(host) => {}
            _other => return page(Page::wrong_host()),
        }
        let (path, query) = match head.target.expose().split_once('?') {
            Some((path, query)) => (path, query),
            None => (head.target.expose(), ""),
        };
        if path != self.path {
            return page(Page::not_found());
        }
        if head.method != "GET" {
            return page(Page::wrong_method());
        }
        let judged = self.request.accept(query);
        if let Err(error) = &judged
            && error.is_foreign()
        {
            return page(Page::foreign(&self.server_name, error));
        }
        if self.answer.set(Secret::new(query)).is_err() {
            return page(Page::late());
        }
        Judgment {
            page: match &judged {
                Ok(_code) => Page::signed_in(&self.server_name),
                Err(error) => Page::failed(&self.server_name, error),
            },
            body: Body::Sent,
            last: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::callback::tests::request;

    fn judge() -> Judge {
        Judge {
            request: request(),
            path: "/callback".to_owned(),
            hosts: vec!["127.0.0.1:4000".to_owned()],
            server_name: "files".to_owned(),
            answer: OnceLock::new(),
        }
    }

    fn head(target: &str) -> Head {
        Head {
            method: "GET".to_owned(),
            target: Secret::new(target),
            hosts: vec!["127.0.0.1:4000".to_owned()],
        }
    }

    #[test]
    fn of_two_right_answers_the_first_counts() {
        let judge = judge();
        let state = judge.request.state.expose().to_owned();
        let first = judge.judge(&head(&format!("/callback?code=1&state={state}")));
        let second = judge.judge(&head(&format!("/callback?code=2&state={state}")));
        assert!(first.last && !second.last);
        assert_eq!(second.page, Page::late());
        let query = judge.answer.get().unwrap().expose();
        assert_eq!(query, format!("code=1&state={state}"));
    }

    #[test]
    fn debug_output_hides_what_came() {
        let judge = judge();
        let state = judge.request.state.expose().to_owned();
        judge.judge(&head(&format!("/callback?code=hunter2&state={state}")));
        let shown = format!("{judge:?} {judge:#?}");
        for secret in ["hunter2", state.as_str(), judge.request.verifier.expose()] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn a_head_is_read_only_when_it_is_complete() {
        let whole = b"GET /callback?code=1 HTTP/1.1\r\nHost: LOCALHOST:1\r\nHost: b\r\n\r\n";
        for length in 0..whole.len() {
            assert!(
                matches!(parse(&whole[..length]), Ok(None)),
                "{length} bytes"
            );
        }
        let Ok(Some(head)) = parse(whole) else {
            panic!("it is complete");
        };
        assert_eq!(head.hosts, ["localhost:1", "b"]);
        assert_eq!(head.target.expose(), "/callback?code=1");
    }
}
