//! The body of a response: whole, or a stream of events that is made while it is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::answer::RequestEvents;
use super::connection::Busy;
use super::page::PageEvents;
use super::session_events::SessionEvents;

/// What follows the head of a response.
#[derive(Debug)]
pub(super) struct Body {
    kind: Kind,
    /// Tells the connection when this response is done with.
    busy: Option<Busy>,
}

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    /// The answer to one request, of which nothing is kept.
    Request(Box<RequestEvents>),
    /// A stream of a session.
    Session(Box<SessionEvents>),
    /// A page in pieces.
    Page(Box<PageEvents>),
    Ended,
}

impl Body {
    pub(super) fn whole(text: Bytes) -> Self {
        Kind::Whole(text).into()
    }

    pub(super) fn empty() -> Self {
        Kind::Ended.into()
    }

    pub(super) fn request(events: RequestEvents) -> Self {
        Kind::Request(Box::new(events)).into()
    }

    pub(super) fn session(events: SessionEvents) -> Self {
        Kind::Session(Box::new(events)).into()
    }

    pub(super) fn page(events: PageEvents) -> Self {
        Kind::Page(Box::new(events)).into()
    }

    /// Keeps the connection marked as busy for as long as this body lives.
    pub(super) fn holding(mut self, busy: Busy) -> Self {
        self.busy = Some(busy);
        self
    }
}

impl From<Kind> for Body {
    fn from(kind: Kind) -> Self {
        Self { kind, busy: None }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.kind {
            Kind::Ended => Poll::Ready(None),
            Kind::Whole(text) => {
                let text = std::mem::take(text);
                self.kind = Kind::Ended;
                Poll::Ready(Some(text))
            }
            Kind::Request(events) => events.poll_next(context),
            Kind::Session(events) => events.poll_next(context),
            Kind::Page(events) => events.poll_next(context),
        };
        if matches!(next, Poll::Ready(None)) {
            self.kind = Kind::Ended;
        }
        next.map(|text| text.map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Ended => true,
            Kind::Whole(text) => text.is_empty(),
            Kind::Request(_) | Kind::Session(_) | Kind::Page(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Ended => SizeHint::with_exact(0),
            Kind::Whole(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Request(_) | Kind::Session(_) | Kind::Page(_) => SizeHint::default(),
        }
    }
}
