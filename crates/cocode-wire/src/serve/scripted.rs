//! A conversation for tests: answers on demand and tells what it sees.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::service::{Answer, Asked, Conversation, Endpoint, Serving, Sink};
use crate::encode;
use crate::frame::Frame;
use crate::raw::RawJson;

/// What a conversation has seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A request came, of this id.
    Request(String),
    /// The work on a request was dropped before it was answered.
    Dropped(String),
    /// A notification of this method.
    Notification(String),
    /// An answer, whole.
    Response(String),
    Ended,
}

/// Serves `echo` (its parameters), `wait` and `subscriptions/listen` (the same, once the gate is open), `large` (as many bytes
/// as its parameter says), `tell` (a notification first) and `cancelled` (no answer).
pub(super) struct Scripted {
    seen: mpsc::Sender<Seen>,
    gate: watch::Receiver<bool>,
    outlet: Arc<Mutex<Option<Arc<dyn Sink>>>>,
}

/// The test's side of it.
pub(super) struct Script {
    pub(super) seen: mpsc::Receiver<Seen>,
    pub(super) gate: watch::Sender<bool>,
    outlet: Arc<Mutex<Option<Arc<dyn Sink>>>>,
}

pub(super) fn scripted() -> (Scripted, Script) {
    let (sender, seen) = mpsc::channel(10_000);
    let (gate, waiting) = watch::channel(false);
    let outlet = Arc::default();
    let endpoint = Scripted {
        seen: sender,
        gate: waiting,
        outlet: Arc::clone(&outlet),
    };
    (endpoint, Script { seen, gate, outlet })
}

impl Script {
    pub(super) async fn next(&mut self) -> Seen {
        self.seen.recv().await.expect("a conversation")
    }

    pub(super) fn open_gate(&self) {
        self.gate.send_replace(true);
    }

    /// The way to the client outside of its requests.
    pub(super) fn outlet(&self) -> Arc<dyn Sink> {
        let outlet = self.outlet.lock().unwrap_or_else(PoisonError::into_inner);
        outlet.clone().expect("a client")
    }
}

impl Endpoint for Scripted {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        *self.outlet.lock().unwrap_or_else(PoisonError::into_inner) = Some(outlet);
        Arc::new(Talk {
            seen: self.seen.clone(),
            gate: self.gate.clone(),
        })
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        unreachable!("connections are conversations")
    }
}

struct Talk {
    seen: mpsc::Sender<Seen>,
    gate: watch::Receiver<bool>,
}

impl Talk {
    fn see(&self, seen: Seen) {
        // A test that has ended hears nothing.
        let sent = self.seen.try_send(seen);
        assert!(!matches!(sent, Err(mpsc::error::TrySendError::Full(_))));
    }
}

/// Tells if the work on a request is dropped.
struct Unanswered(Option<(Arc<Talk>, String)>);

impl Unanswered {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some((talk, id)) = self.0.take() {
            talk.see(Seen::Dropped(id));
        }
    }
}

impl Conversation for Talk {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        let id = asked.frame.id().expect("a request has an id");
        self.see(Seen::Request(id.to_string()));
        let unanswered = Unanswered(Some((Arc::clone(&self), id.to_string())));
        Box::pin(async move {
            let params = asked.frame.params();
            let params = params.unwrap_or_else(|| RawJson::parse("{}").expect("JSON"));
            let result = match asked.frame.method() {
                "cancelled" => {
                    unanswered.answered();
                    return Answer::none();
                }
                "echo" => params,
                "wait" | "subscriptions/listen" => {
                    let mut gate = self.gate.clone();
                    gate.wait_for(|is_open| *is_open).await.expect("a gate");
                    params
                }
                "large" => {
                    let size: usize = params.decode().expect("a size");
                    RawJson::of(&"x".repeat(size)).expect("JSON")
                }
                "tell" => {
                    let told = encode::notification("told", Some(params.as_bytes()));
                    assert!(asked.stream.send(told.into()), "the client takes it");
                    params
                }
                other => unreachable!("unknown method {other}"),
            };
            unanswered.answered();
            Answer::result(&id, &result)
        })
    }

    fn notification(&self, frame: Frame) {
        self.see(Seen::Notification(frame.method().to_owned()));
    }

    fn response(&self, frame: Frame) {
        let text: &Bytes = frame.bytes();
        self.see(Seen::Response(String::from_utf8_lossy(text).into_owned()));
    }

    fn ended(&self) {
        self.see(Seen::Ended);
    }
}
