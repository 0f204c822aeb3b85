//! A stream of a session while it is sent, and the work on the request that it answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;

use super::answer::Comments;
use super::guests::Stay;
use super::session::{Active, Session};
use super::sessions::Sessions;
use super::streams::Work;
use crate::serve::service::{Answer, Serving};

/// A stream of a session on its way to the client.
pub(super) struct SessionEvents {
    session: Arc<Session>,
    stream: u64,
    reader: u64,
    /// What is sent before anything else.
    opening: Option<Bytes>,
    work: Option<(Work, Active)>,
    _reading: Active,
    comments: Comments,
    /// For as long as the guest may stay who reads it.
    stay: Option<Stay>,
    /// The session ends with this stream.
    ends: Option<Arc<Sessions>>,
}

impl SessionEvents {
    pub(super) fn new(
        session: &Arc<Session>,
        stream: u64,
        reader: u64,
        comment_interval: Duration,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            stream,
            reader,
            opening: None,
            work: None,
            _reading: session.begin_reading(),
            comments: Comments::every(comment_interval),
            stay: None,
            ends: None,
        }
    }

    /// Sends `event` first.
    pub(super) fn opening_with(mut self, event: Bytes) -> Self {
        self.opening = Some(event);
        self
    }

    /// Ends when the guest who reads it has to go.
    pub(super) fn staying(mut self, stay: Option<Stay>) -> Self {
        self.stay = stay;
        self
    }

    /// Does the work whose answer ends the stream.
    pub(super) fn working(mut self, serving: Serving, active: Active) -> Self {
        let work = Arc::new(Mutex::new(Some(serving)));
        self.session.streams.set_work(self.stream, &work);
        self.work = Some((work, active));
        self
    }

    /// Ends the session with the stream.
    pub(super) fn ending(mut self, sessions: Arc<Sessions>) -> Self {
        self.ends = Some(sessions);
        self
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(stay) = &mut self.stay
            && stay.poll_over(context).is_ready()
        {
            return Poll::Ready(None);
        }
        if let Some(event) = self.opening.take() {
            return Poll::Ready(Some(event));
        }
        if let Some((work, _)) = &self.work
            && let Poll::Ready(answer) = poll_work(work, context)
        {
            self.session.streams.finish(self.stream, &answer);
            self.work = None;
        }
        let streams = &self.session.streams;
        match streams.poll_read(self.stream, self.reader, context) {
            Poll::Ready(event) => {
                self.comments.postpone();
                Poll::Ready(event)
            }
            Poll::Pending => self.comments.poll(context),
        }
    }
}

/// Goes on with the work, if nobody has taken it away.
fn poll_work(work: &Work, context: &mut Context<'_>) -> Poll<Answer> {
    let mut slot = work.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(serving) = &mut *slot else {
        return Poll::Pending;
    };
    let polled = serving.as_mut().poll(context);
    if polled.is_ready() {
        *slot = None;
    }
    polled
}

/// Takes the work away from whoever does it.
pub(super) fn take_work(work: &Work) -> Option<Serving> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Drop for SessionEvents {
    fn drop(&mut self) {
        self.session.streams.detach(self.stream, self.reader);
        if let Some(sessions) = self.ends.take() {
            sessions.end(&self.session);
        }
        if let Some((work, active)) = self.work.take()
            && let Some(serving) = take_work(&work)
        {
            self.session.adopt(serving, Some(self.stream), active);
        }
    }
}

impl std::fmt::Debug for SessionEvents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionEvents")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
