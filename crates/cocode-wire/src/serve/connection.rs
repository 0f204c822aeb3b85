//! One client on one connection, whatever frames its messages: reads, serves and writes, all in one
//! task, so that a request costs no task of its own.

mod batch;
mod dispatch;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Sleep;

pub(super) use self::batch::members;
use self::dispatch::Dispatcher;
pub(super) use self::dispatch::{Incoming, invalid_message};
use super::service::{Conversation, Sink};
use crate::error::Closed;
use crate::limits::{
    CLIENT_STALL_TIMEOUT, DRAIN_TIMEOUT, LAST_WORDS_TIMEOUT, MAX_QUEUED_BYTES,
    MAX_REQUESTS_IN_FLIGHT,
};
use crate::line::cork::Cork;

/// What carries the messages of one client.
pub(super) trait Wire {
    /// Hands over some of what has arrived. An error is the end.
    fn poll_incoming(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(Incoming),
    ) -> Poll<Result<(), Closed>>;

    /// Queues an answer, however much waits before it.
    fn push(&mut self, answer: Bytes);

    /// Writes what is queued. Ready when all of it has left.
    fn poll_outgoing(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Closed>>;

    /// Bytes that wait for the client to take them.
    fn backlog(&self) -> usize;
}

/// What one client may ask for, and how long it is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Requests served at once; more are answered with an error.
    pub max_in_flight: usize,
    /// How long the client may take nothing, while no more can be queued for it, before it counts
    /// as gone.
    pub stall: Duration,
    /// How long the requests in flight may go on after the client has ended its side.
    pub linger: Duration,
    /// How long they may go on when this side is to end.
    pub drain: Duration,
    /// Whether subscriptions are among those then: they are answered when whoever serves them says
    /// that it ends. They are never waited for when the client has ended its side.
    pub awaits_subscriptions: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            max_in_flight: MAX_REQUESTS_IN_FLIGHT,
            stall: CLIENT_STALL_TIMEOUT,
            linger: Duration::ZERO,
            drain: DRAIN_TIMEOUT,
            awaits_subscriptions: true,
        }
    }
}

/// Serves one client until it leaves, is gone, or `shutdown` is ready and its requests are answered.
pub(super) async fn serve(
    wire: &mut impl Wire,
    conversation: Arc<dyn Conversation>,
    stream: Arc<dyn Sink>,
    patience: Patience,
    shutdown: impl Future<Output = ()>,
) -> Closed {
    let mut shutdown = pin!(shutdown);
    let mut service = Service {
        dispatcher: Dispatcher::new(conversation, stream, patience.max_in_flight),
        patience,
        ending: None,
        stalled: None,
    };
    let reason = std::future::poll_fn(|context| {
        if service.ending.is_none() && shutdown.as_mut().poll(context).is_ready() {
            service.dispatcher.refuse_requests();
            service.end(Closed::ByUs, patience.drain);
        }
        service.poll(wire, context)
    })
    .await;
    // Tells the conversation, and drops what nobody waits for any more.
    drop(service);
    let last_words = std::future::poll_fn(|context| wire.poll_outgoing(context));
    match tokio::time::timeout(LAST_WORDS_TIMEOUT, last_words).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the last messages were not taken"),
        Err(_elapsed) => tracing::debug!("the last messages were not taken in time"),
    }
    reason
}

struct Service {
    dispatcher: Dispatcher,
    patience: Patience,
    ending: Option<Ending>,
    /// Ends when the client has taken nothing for too long.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The connection is to end as soon as nothing is in flight.
struct Ending {
    reason: Closed,
    /// Nothing is waited for without one.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Nothing comes any more.
    is_deaf: bool,
}

impl Service {
    fn end(&mut self, reason: Closed, after: Duration) {
        self.ending = Some(Ending {
            is_deaf: !matches!(reason, Closed::ByUs),
            reason,
            deadline: (!after.is_zero()).then(|| Box::pin(tokio::time::sleep(after))),
        });
    }

    /// Goes on as far as possible without waiting. Ready with the reason when it is over.
    fn poll(&mut self, wire: &mut impl Wire, context: &mut Context<'_>) -> Poll<Closed> {
        loop {
            // All answers that are there go out in one write, and so does what their requests send.
            let cork = self.dispatcher.is_crowded().then(Cork::put);
            while let Some(answer) = self.dispatcher.poll_answer(context) {
                wire.push(answer);
            }
            drop(cork);
            let backlog = wire.backlog();
            if let Poll::Ready(Err(reason)) = wire.poll_outgoing(context) {
                return Poll::Ready(reason);
            }
            let has_moved = wire.backlog() < backlog;
            if let Some(reason) = self.poll_ending(context) {
                return Poll::Ready(reason);
            }
            if wire.backlog() >= MAX_QUEUED_BYTES {
                return self.poll_stalled(has_moved, context);
            }
            self.stalled = None;
            if self.ending.as_ref().is_some_and(|ending| ending.is_deaf) {
                return Poll::Pending;
            }
            let mut take = |incoming| self.dispatcher.take(incoming);
            match wire.poll_incoming(context, &mut take) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(reason)) => self.end(reason, self.patience.linger),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_ending(&mut self, context: &mut Context<'_>) -> Option<Closed> {
        let ending = self.ending.as_mut()?;
        let is_late = match &mut ending.deadline {
            Some(deadline) => deadline.as_mut().poll(context).is_ready(),
            None => true,
        };
        let awaits_subscriptions = self.patience.awaits_subscriptions && !ending.is_deaf;
        let is_over = is_late || self.dispatcher.is_idle(awaits_subscriptions);
        is_over.then(|| ending.reason.clone())
    }

    /// Nothing is read from a client that takes nothing: what it asks for could only be dropped.
    fn poll_stalled(&mut self, has_moved: bool, context: &mut Context<'_>) -> Poll<Closed> {
        if has_moved {
            self.stalled = None;
        }
        let stall = self.patience.stall;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        stalled.as_mut().poll(context).map(|()| {
            Closed::Protocol(format!(
                "the client has taken nothing of its answers for {} s",
                stall.as_secs()
            ))
        })
    }
}
