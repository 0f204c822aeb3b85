//! What follows the head of an answer: something whole, or events for as long as somebody reads.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};

/// The body of an answer.
pub struct Body(Kind);

enum Kind {
    Whole(Bytes),
    Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// All of it.
    pub fn whole(text: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(text.into()))
    }

    /// One piece after the other, each to be sent as soon as it is there.
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
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole(text) => formatter.debug_tuple("Whole").field(&text.len()).finish(),
            Kind::Events(_) => formatter.debug_tuple("Events").finish_non_exhaustive(),
        }
    }
}
