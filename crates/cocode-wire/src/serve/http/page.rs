//! What follows the head of a page: something whole, or a stream that a site goes on with for as
//! long as somebody reads it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};

use super::body::Body;
use super::guests::Stay;

type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of a page.
pub struct PageBody(Kind);

enum Kind {
    Whole(Bytes),
    Events(Pieces),
}

impl PageBody {
    /// All of it.
    pub fn whole(text: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(text.into()))
    }

    /// One piece after the other, each sent as soon as it is there: for events, which the site has
    /// put into their form. What keeps a silent stream alive is for the site to send, too.
    ///
    /// The stream is dropped when the client is gone, takes nothing for too long, or has to go, and
    /// when the server ends.
    pub fn events(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Events(Box::pin(pieces)))
    }

    /// All of it, if it is whole.
    pub fn as_whole(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Whole(text) => Some(text),
            Kind::Events(_) => None,
        }
    }

    /// Its pieces; one, if it is whole.
    pub fn into_stream(self) -> Pin<Box<dyn Stream<Item = Bytes> + Send>> {
        match self.0 {
            Kind::Whole(text) => stream::once(std::future::ready(text)).boxed(),
            Kind::Events(pieces) => pieces,
        }
    }

    /// Sends it. `end` is made for a stream only: it is ready when the server begins to end.
    pub(super) fn send(
        self,
        stay: impl FnOnce() -> Option<Stay>,
        end: impl FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>>,
    ) -> Body {
        match self.0 {
            Kind::Whole(text) => Body::whole(text),
            Kind::Events(pieces) => Body::page(PageEvents {
                pieces,
                stay: stay(),
                end: end(),
            }),
        }
    }
}

impl From<Bytes> for PageBody {
    fn from(text: Bytes) -> Self {
        Self::whole(text)
    }
}

impl From<String> for PageBody {
    fn from(text: String) -> Self {
        Self::whole(text)
    }
}

impl From<&'static str> for PageBody {
    fn from(text: &'static str) -> Self {
        Self::whole(text)
    }
}

impl std::fmt::Debug for PageBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Whole(text) => formatter.debug_tuple("Whole").field(&text.len()).finish(),
            Kind::Events(_) => formatter.debug_tuple("Events").finish_non_exhaustive(),
        }
    }
}

/// A page in pieces while it is sent.
pub(super) struct PageEvents {
    pieces: Pieces,
    stay: Option<Stay>,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl PageEvents {
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(stay) = &mut self.stay
            && stay.poll_over(context).is_ready()
        {
            return Poll::Ready(None);
        }
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        self.pieces.poll_next_unpin(context)
    }
}

impl std::fmt::Debug for PageEvents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PageEvents").finish_non_exhaustive()
    }
}
