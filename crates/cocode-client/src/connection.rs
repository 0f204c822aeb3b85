//! A link and what waits on it: carries one request from its bytes to its answer.

use std::borrow::Cow;
use std::sync::Arc;

use cocode_wire::{
    Closed, Frame, Inbox as _, Link, LinkError, OpenError, Origin, Outgoing, Sending, Target,
    encode,
};
use http::HeaderMap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep_until, timeout};

use crate::clock::{CallClock, Deadlines, Verdict};
use crate::error::RequestError;
use crate::handler::Handler;
use crate::mux::{Failure, Incoming, Mux, Outcome, Reports};
use crate::params::push_params;

/// A connection that is being used. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) mux: Arc<Mux>,
}

/// One request to be carried.
pub(crate) struct Exchange<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a [u8]>,
    /// Members for `_meta`, as JSON object text without its braces.
    pub(crate) meta: Cow<'a, [u8]>,
    pub(crate) headers: HeaderMap,
    pub(crate) deadlines: Deadlines,
    /// What it wants to hear of before its answer.
    pub(crate) reports: Reports,
    pub(crate) cancel: Cancel,
}

/// How the server learns that a request is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// By a notification.
    Notify,
    /// By the end of the request's own stream.
    EndStream,
    /// Not at all: a handshake cannot be cancelled.
    Silently,
}

impl Connection {
    pub(crate) async fn open(
        target: &Target,
        handler: Arc<dyn Handler>,
    ) -> Result<(Self, mpsc::Receiver<Incoming>), OpenError> {
        let (mux, incoming) = Mux::new(handler);
        let inbox: Arc<Mux> = Arc::clone(&mux);
        let link = Link::open(target, inbox).await?;
        Ok((Self { link, mux }, incoming))
    }

    /// Sends a request and waits for its answer.
    ///
    /// Cancel safe: dropping the future gives the request up, and tells the server so.
    pub(crate) async fn exchange(&self, exchange: Exchange<'_>) -> Result<Frame, RequestError> {
        let method = exchange.method;
        self.begin(exchange)?.answer(method).await
    }

    /// Sends a request, or begins to. What it was made of is not needed any more: all that is kept
    /// for each request that waits is what is given here.
    pub(crate) fn begin(&self, exchange: Exchange<'_>) -> Result<Begun<'_>, RequestError> {
        let Exchange {
            method,
            params,
            meta,
            headers,
            deadlines,
            reports,
            cancel,
        } = exchange;
        let id = self.mux.next_id();
        let body = write_request(id, method, params, &meta, &reports)?;
        tracing::trace!(json = %String::from_utf8_lossy(&body), "sent");
        let clock = Arc::new(CallClock::start(deadlines));
        if method == INITIALIZE {
            self.link.opens_session(id);
        }
        let registered = self.mux.register(id, Arc::clone(&clock), reports);
        let closed = |reason| RequestError::Closed {
            method: method.to_owned(),
            reason,
            sent: false,
        };
        let reply = registered.map_err(closed)?;
        let ticket = Ticket {
            connection: self,
            id,
            cancel,
            sent: self.link.sends_uncertainly(),
            answered: false,
            reason: GIVEN_UP,
        };
        let sending = self.link.send(Outgoing {
            body,
            headers,
            request: Some(id),
        });
        Ok(Begun {
            ticket,
            clock,
            reply,
            sending,
        })
    }

    /// Sends a notification.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Option<&[u8]>,
        headers: HeaderMap,
    ) -> Result<(), RequestError> {
        let body = encode::notification(method, params);
        tracing::trace!(json = %String::from_utf8_lossy(&body), "sent");
        match self
            .link
            .send(Outgoing {
                body,
                headers,
                request: None,
            })
            .await
        {
            Ok(()) => Ok(()),
            Err(error) => Err(Box::pin(self.explain(method, error)).await),
        }
    }

    /// A failed write often is the first sign of a dead server; its exit code says more, and
    /// follows within moments.
    async fn explain(&self, method: &str, error: LinkError) -> RequestError {
        let method = method.to_owned();
        let LinkError::Closed(reason) = error else {
            return RequestError::Link { method, error };
        };
        let mut closed = self.mux.watch_closed();
        let better = timeout(
            cocode_wire::limits::EXIT_REPORT_WAIT,
            closed.wait_for(Option::is_some),
        );
        let better = better
            .await
            .ok()
            .and_then(Result::ok)
            .and_then(|reason| reason.clone());
        let reason = better.unwrap_or(reason);
        // A peer that takes nothing any more is gone, even if it does not say so.
        self.mux.closed(reason.clone());
        // A message is taken whole or not at all, and this one was not.
        RequestError::Closed {
            method,
            reason,
            sent: false,
        }
    }
}

/// A request that was begun. Dropping it gives it up.
pub(crate) struct Begun<'a> {
    ticket: Ticket<'a>,
    clock: Arc<CallClock>,
    reply: oneshot::Receiver<Outcome>,
    sending: Sending<'a>,
}

impl Begun<'_> {
    /// Waits for the answer to what was asked.
    pub(crate) async fn answer(&mut self, method: &str) -> Result<Frame, RequestError> {
        let carried = self.carry().await;
        let ticket = &mut self.ticket;
        let connection = ticket.connection;
        match carried {
            Ok(outcome) => {
                ticket.answered = true;
                let (frame, origin) = outcome.map_err(|failure| failure.of(method))?;
                if origin != Origin::Request(ticket.id) {
                    // Its own stream, if it has one, brings nothing any more.
                    connection.link.abandon(ticket.id);
                }
                Ok(frame)
            }
            Err(Unanswered::NotSent(error)) => {
                ticket.sent = false;
                // Rare, and kept out of the size of every other request.
                Err(Box::pin(connection.explain(method, error)).await)
            }
            Err(Unanswered::TimedOut(after)) => {
                ticket.reason = TIMED_OUT;
                let method = method.to_owned();
                Err(RequestError::Timeout { method, after })
            }
        }
    }

    /// Goes on sending while that is needed, and waits for the answer, which may come before the link
    /// is done sending: a server can answer on one stream what it takes its time to accept on another,
    /// and a link that ended frees no room for those who wait to send.
    async fn carry(&mut self) -> Result<Outcome, Unanswered> {
        let Self {
            ticket,
            clock,
            reply,
            sending,
        } = self;
        // Nearly always the link takes the message at once, and no timer is needed for that.
        let mut is_sending = match sending.at_once() {
            Some(outcome) => {
                outcome.map_err(Unanswered::NotSent)?;
                ticket.sent = true;
                false
            }
            None => true,
        };
        loop {
            let end = match clock.check() {
                Verdict::Until(end) => end,
                Verdict::Expired(after) => return Err(Unanswered::TimedOut(after)),
            };
            tokio::select! {
                biased;
                outcome = &mut *reply => {
                    // The sender is dropped without an answer only together with the mux.
                    return Ok(outcome.unwrap_or(Err(Failure::Closed(Closed::ByUs))));
                }
                outcome = &mut *sending, if is_sending => {
                    outcome.map_err(Unanswered::NotSent)?;
                    is_sending = false;
                    ticket.sent = true;
                }
                () = sleep_until(end) => {}
            }
        }
    }
}

/// The request that opens a session.
pub(crate) const INITIALIZE: &str = "initialize";

const GIVEN_UP: &str = "given up by the caller";
const TIMED_OUT: &str = "timed out";

/// A request in flight. Dropped before its answer came, it takes the request back.
struct Ticket<'a> {
    connection: &'a Connection,
    id: u64,
    cancel: Cancel,
    /// The server has the request, or may have it, and no answer has come.
    sent: bool,
    /// Nobody waits for it any more.
    answered: bool,
    reason: &'static str,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let (id, link) = (self.id, &self.connection.link);
        let waiting = self.connection.mux.forget(id);
        if !waiting {
            return;
        }
        if self.sent && self.cancel == Cancel::Notify {
            let params = format!(r#"{{"requestId":{id},"reason":"{}"}}"#, self.reason);
            let body = encode::notification("notifications/cancelled", Some(params.as_bytes()));
            link.post(Outgoing {
                body,
                headers: HeaderMap::new(),
                request: None,
            });
        }
        link.abandon(id);
    }
}

fn write_request(
    id: u64,
    method: &str,
    params: Option<&[u8]>,
    meta: &[u8],
    reports: &Reports,
) -> Result<Vec<u8>, RequestError> {
    let size = params.map_or(0, <[u8]>::len) + meta.len() + 64;
    let mut body = encode::request_head(id, method, size);
    let pushed = match reports {
        Reports::No
        | Reports::Subscription
        | Reports::Relay {
            progress: false, ..
        } => push_params(&mut body, params, meta),
        Reports::Yes(_) | Reports::Relay { progress: true, .. } => {
            let mut with_token = Vec::with_capacity(meta.len() + 40);
            with_token.extend_from_slice(br#""progressToken":"#);
            encode::push_number(&mut with_token, id);
            if !meta.is_empty() {
                with_token.push(b',');
            }
            with_token.extend_from_slice(meta);
            push_params(&mut body, params, &with_token)
        }
    };
    pushed.map_err(|_not_an_object| RequestError::Params {
        method: method.to_owned(),
    })?;
    body.push(b'}');
    Ok(body)
}

/// Why there is no answer.
enum Unanswered {
    NotSent(LinkError),
    /// After this long.
    TimedOut(std::time::Duration),
}

impl Failure {
    fn of(self, method: &str) -> RequestError {
        let method = method.to_owned();
        match self {
            // The status of a refused handshake still says which transport to try next.
            Self::Link(error) if method == INITIALIZE => RequestError::Link { method, error },
            Self::Link(error) => RequestError::Link { method, error }.with_its_answer(),
            Self::Unaddressed(error) => RequestError::Rpc { method, error },
            Self::TakenBack => {
                let detail = "the server took the subscription back".into();
                RequestError::Link {
                    method,
                    error: LinkError::NoAnswer { detail },
                }
            }
            Self::Closed(reason) => RequestError::Closed {
                method,
                reason,
                sent: true,
            },
            Self::Malformed(malformed) => RequestError::Malformed {
                method,
                reason: malformed.reason.to_string(),
                excerpt: malformed.excerpt,
            },
        }
    }
}
