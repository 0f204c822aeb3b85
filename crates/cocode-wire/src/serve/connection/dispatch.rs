//! From texts to a conversation, and from its work to answers. Knows nothing of I/O.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;
use serde_json::error::Category;

use super::batch::{self, Batch};
use crate::encode;
use crate::frame::{Frame, FrameError, FrameKind};
use crate::raw::RawJson;
use crate::rpc_error::{RpcError, code};
use crate::salvage::salvage_asked;
use crate::serve::service::{Asked, Conversation, Serving, Sink};

/// The request that goes on until somebody ends it.
const SUBSCRIBE: &str = "subscriptions/listen";

/// Something that a client sent.
#[derive(Debug)]
pub(in crate::serve) enum Incoming {
    /// A message, a batch of them, or neither.
    Text(Bytes),
    /// A message over the cap, of which nothing is left but maybe its id.
    TooLarge {
        /// The id of the request that it seems to be.
        asked: Option<RawJson>,
        /// The cap in bytes.
        limit: usize,
    },
}

/// One client's conversation and its requests in flight. Dropping it ends the conversation.
pub(super) struct Dispatcher {
    conversation: Arc<dyn Conversation>,
    stream: Arc<dyn Sink>,
    max_in_flight: usize,
    in_flight: usize,
    /// Those of them that go on until somebody ends them.
    subscriptions: usize,
    refuses_requests: bool,
    serving: FuturesUnordered<Work>,
    /// Answers that took no work.
    ready: VecDeque<Bytes>,
}

/// The work on what came as one text, and how many requests it is.
struct Work {
    future: WorkFuture,
    n_requests: usize,
    is_subscription: bool,
}

enum WorkFuture {
    One(Serving),
    Batch(Batch),
}

impl Dispatcher {
    pub(super) fn new(
        conversation: Arc<dyn Conversation>,
        stream: Arc<dyn Sink>,
        max_in_flight: usize,
    ) -> Self {
        Self {
            conversation,
            stream,
            max_in_flight,
            in_flight: 0,
            subscriptions: 0,
            refuses_requests: false,
            serving: FuturesUnordered::new(),
            ready: VecDeque::new(),
        }
    }

    /// From now on requests are answered with an error; everything else gets through.
    pub(super) fn refuse_requests(&mut self) {
        self.refuses_requests = true;
    }

    /// Whether several requests are being served.
    pub(super) fn is_crowded(&self) -> bool {
        self.in_flight > 1
    }

    /// Whether every request is answered, subscriptions included or not.
    pub(super) fn is_idle(&self, counts_subscriptions: bool) -> bool {
        let not_counted = if counts_subscriptions {
            0
        } else {
            self.subscriptions
        };
        self.in_flight == not_counted && self.ready.is_empty()
    }

    /// The next answer that is there.
    pub(super) fn poll_answer(&mut self, context: &mut Context<'_>) -> Option<Bytes> {
        if let Some(answer) = self.ready.pop_front() {
            return Some(answer);
        }
        while let Poll::Ready(Some(done)) = self.serving.poll_next_unpin(context) {
            let Done {
                answer,
                n_requests,
                was_subscription,
            } = done;
            self.in_flight -= n_requests;
            self.subscriptions -= usize::from(was_subscription);
            // There is none to a request that was cancelled.
            if !answer.is_empty() {
                return Some(answer);
            }
        }
        None
    }

    pub(super) fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Text(text) if text.trim_ascii_start().first() == Some(&b'[') => {
                self.take_batch(&text);
            }
            Incoming::Text(text) => match Frame::parse_strict(text.clone()) {
                Ok(frame) => self.take_frame(frame),
                Err(error) => self.ready.push_back(refusal(&text, &error)),
            },
            Incoming::TooLarge { asked, limit } => {
                let message = format!("the message is over the cap of {limit} bytes");
                let error = RpcError::new(code::INVALID_REQUEST, message);
                self.ready.push_back(error_answer(asked, &error));
            }
        }
    }

    fn take_frame(&mut self, frame: Frame) {
        match frame.kind() {
            FrameKind::Notification => self.conversation.notification(frame),
            FrameKind::Response => self.conversation.response(frame),
            FrameKind::Request => {
                let is_subscription = frame.method() == SUBSCRIBE;
                match self.begin(frame) {
                    Ok(serving) => {
                        self.subscriptions += usize::from(is_subscription);
                        self.serving.push(Work {
                            future: WorkFuture::One(serving),
                            n_requests: 1,
                            is_subscription,
                        });
                    }
                    Err(answer) => self.ready.push_back(answer),
                }
            }
        }
    }

    fn take_batch(&mut self, text: &Bytes) {
        let members = match batch::members(text) {
            Ok(members) => members,
            Err(error) => return self.ready.push_back(error_answer(None, &error)),
        };
        let mut work = Batch::default();
        let mut n_requests = 0;
        for member in members {
            match Frame::parse_strict(member.clone()) {
                Ok(frame) if frame.kind() == FrameKind::Request => match self.begin(frame) {
                    Ok(serving) => {
                        n_requests += 1;
                        work.serve(serving);
                    }
                    Err(answer) => work.answered(answer),
                },
                Ok(frame) => self.take_frame(frame),
                Err(error) => work.answered(refusal(&member, &error)),
            }
        }
        // Nothing is answered to a batch that asks nothing.
        if !work.is_empty() {
            let future = WorkFuture::Batch(work);
            self.serving.push(Work {
                future,
                n_requests,
                // They are not known where there are batches.
                is_subscription: false,
            });
        }
    }

    /// Begins to serve a request, or answers it with an error.
    fn begin(&mut self, frame: Frame) -> Result<Serving, Bytes> {
        let refused = if self.refuses_requests {
            Some("the server is ending")
        } else if self.in_flight >= self.max_in_flight {
            Some("too many requests at once")
        } else {
            None
        };
        if let Some(message) = refused {
            let error = RpcError::new(code::INTERNAL_ERROR, message);
            return Err(error_answer(frame.id(), &error));
        }
        self.in_flight += 1;
        let asked = Asked {
            frame,
            headers: HeaderMap::new(),
            stream: Arc::clone(&self.stream),
        };
        Ok(Arc::clone(&self.conversation).request(asked))
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.conversation.ended();
    }
}

/// Work that is done.
struct Done {
    answer: Bytes,
    n_requests: usize,
    was_subscription: bool,
}

impl Future for Work {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (n_requests, was_subscription) = (self.n_requests, self.is_subscription);
        let answer = match &mut self.future {
            WorkFuture::One(serving) => serving.as_mut().poll(context).map(|answer| answer.body),
            WorkFuture::Batch(batch) => Pin::new(batch).poll(context),
        };
        answer.map(|answer| Done {
            answer,
            n_requests,
            was_subscription,
        })
    }
}

/// Answers a text that is no message.
fn refusal(text: &[u8], error: &FrameError) -> Bytes {
    let (id, error) = invalid_message(text, error);
    error_answer(id, &error)
}

/// What is wrong with a text that is no message, and the id that its answer has.
pub(in crate::serve) fn invalid_message(
    text: &[u8],
    error: &FrameError,
) -> (Option<RawJson>, RpcError) {
    let (code, message) = match error {
        FrameError::NotJson(source) if source.classify() != Category::Data => {
            (code::PARSE_ERROR, format!("not JSON: {source}"))
        }
        FrameError::NotJson(source) => (code::INVALID_REQUEST, format!("{error}: {source}")),
        FrameError::NotAnObject | FrameError::NoRole | FrameError::Version => {
            (code::INVALID_REQUEST, error.to_string())
        }
    };
    (salvage_asked(text), RpcError::new(code, message))
}

fn error_answer(id: Option<RawJson>, error: &RpcError) -> Bytes {
    let id = id.unwrap_or_else(|| RawJson::from_verified(Bytes::from_static(b"null")));
    encode::error_response(&id, error).into()
}
