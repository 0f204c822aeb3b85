//! The work that a message gives, and the response that comes of it.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use http::{HeaderValue, StatusCode};

use super::accept::Accepts;
use super::answer::{First, Queue, RequestEvents, first};
use super::body::Body;
use super::events::event;
use super::guests::{Length, Visitor};
use super::handler::Shared;
use super::held::{Channel, Held};
use super::names::SESSION_ID;
use super::post::Elsewhere;
use super::reply::{self, Reply};
use super::session::{Active, Session};
use super::session_events::SessionEvents;
use super::stateless;
use crate::serve::service::{Answer, Serving};

/// What a message gives to do.
pub(super) enum Work {
    Done(Box<Reply>),
    Alone(Alone),
    InSession(InSession),
    /// Its session has to be brought here first.
    Elsewhere(Box<Elsewhere>),
}

/// The work on a request of no session. Whoever drops it has no more interest in the answer.
pub(super) struct Alone {
    pub(super) serving: Serving,
    pub(super) queue: Arc<Queue>,
    pub(super) accepts: Accepts,
    pub(super) visitor: Visitor,
    pub(super) length: Length,
}

/// The work on a request of a session.
pub(super) struct InSession {
    session: Arc<Session>,
    held: Held,
    accepts: Accepts,
    /// Whether the answer brings the session into being.
    opens: bool,
}

impl Work {
    pub(super) fn done(reply: Reply) -> Self {
        Self::Done(Box::new(reply))
    }
}

impl Alone {
    pub(super) async fn answer(mut self, shared: &Shared) -> Reply {
        let limits = &shared.options.limits;
        let patience = self.accepts.events.then_some(limits.stream_after);
        let said = |context: &Context<'_>| self.queue.poll_said(context);
        match first(&mut self.serving, said, patience, || shared.has_ended()).await {
            First::GivenUp => reply::unavailable("The server ends"),
            First::Answer(answer) => self.whole(&answer),
            First::Stream => {
                let end = Box::pin(shared.ended());
                let interval = limits.comment_interval;
                let stay = shared.guests.open(&self.visitor, self.length);
                let events = RequestEvents::new(self.serving, self.queue, interval, end);
                reply::events(Body::request(events.staying(stay)))
            }
        }
    }

    /// An answer that was there before its stream was.
    fn whole(&self, answer: &Answer) -> Reply {
        let status = stateless::status_of(answer.error);
        let spoken = !self.queue.is_empty();
        if !spoken && answer.body.is_empty() {
            return unanswered(self.accepts);
        }
        if spoken || (!self.accepts.json && status == StatusCode::OK) {
            return reply::events(Body::whole(self.queue.take(Some(answer))));
        }
        reply::json(status, answer.body.clone())
    }
}

impl InSession {
    pub(super) fn new(
        session: Arc<Session>,
        channel: Option<Arc<Channel>>,
        work: (Serving, Active),
        accepts: Accepts,
    ) -> Self {
        Self {
            held: Held::new(Arc::clone(&session), channel, work),
            session,
            accepts,
            opens: false,
        }
    }

    /// For the request that opens the session.
    pub(super) fn opening(mut self) -> Self {
        self.opens = true;
        self.held = self.held.opening();
        self
    }

    pub(super) async fn answer(self, shared: &Shared) -> Reply {
        let Self {
            session,
            mut held,
            accepts,
            opens,
        } = self;
        let limits = &shared.options.limits;
        let patience = if accepts.prefers_events {
            Duration::ZERO
        } else {
            limits.stream_after
        };
        let patience = accepts.events.then_some(patience);
        let first = held.first(patience, || shared.has_ended()).await;
        let mut reply = respond(shared, &session, held, first, accepts);
        if opens
            && !session.has_failed()
            && let Ok(id) = HeaderValue::from_str(&session.id)
        {
            if !shared.sessions.admit(&session, &shared.guests) {
                if let (Some(keeper), Some(key)) = (&shared.keeper, session.key()) {
                    keeper.end_soon(key);
                }
                return reply::session_not_found();
            }
            reply.headers_mut().insert(SESSION_ID, id);
        }
        reply
    }
}

/// The response to a request of a session, in the form that suits it.
fn respond(
    shared: &Shared,
    session: &Arc<Session>,
    held: Held,
    first: First,
    accepts: Accepts,
) -> Reply {
    match first {
        First::GivenUp => {
            session.fail();
            reply::unavailable("The server ends")
        }
        First::Answer(answer) => match held.close() {
            None if answer.body.is_empty() => unanswered(accepts),
            None if accepts.json => reply::json(StatusCode::OK, answer.body),
            None => reply::events(Body::whole(event(&answer.body, None))),
            Some(stream) => {
                // Somebody reads the stream before it ends.
                let reply = streamed(shared, session, stream, None);
                session.streams.finish(stream, &answer);
                reply
            }
        },
        First::Stream => match held.stream() {
            Some((stream, work)) => streamed(shared, session, stream, work),
            None => unanswered(accepts),
        },
    }
}

fn streamed(
    shared: &Shared,
    session: &Arc<Session>,
    stream: u64,
    work: Option<(Serving, Active)>,
) -> Reply {
    let Some(turn) = session.streams.attach(stream, None) else {
        return reply::refusal(StatusCode::NOT_FOUND, "The session has ended");
    };
    let interval = shared.options.limits.comment_interval;
    let mut events = SessionEvents::new(session, stream, turn.reader, interval);
    if session.primes_streams() {
        events = events.opening_with(session.streams.priming(stream, 0));
    }
    if let Some((serving, active)) = work {
        events = events.working(serving, active);
    }
    reply::events(Body::session(events))
}

/// The answer to a request that its client has cancelled, which has none: a stream that ends.
fn unanswered(accepts: Accepts) -> Reply {
    if accepts.events {
        reply::events(Body::empty())
    } else {
        reply::empty(StatusCode::NO_CONTENT)
    }
}
