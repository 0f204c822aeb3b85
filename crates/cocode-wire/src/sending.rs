//! A message on its way out: nearly always it is gone at once, and what is rare takes no room in the
//! futures of those who send.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::LinkError;

type Outcome = Result<(), LinkError>;

/// What was begun by [`Link::send`](crate::Link::send). Dropped before it is ready, it takes back a
/// message that was not sent.
#[must_use = "a message that has to wait is sent by whoever waits for this"]
pub struct Sending<'a>(Stage<'a>);

enum Stage<'a> {
    /// Failures are rare, and large.
    Done(Option<Result<(), Box<LinkError>>>),
    Waits(Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>),
}

impl<'a> Sending<'a> {
    pub(crate) fn done(outcome: Outcome) -> Self {
        Self(Stage::Done(Some(outcome.map_err(Box::new))))
    }

    /// What became of it, if that was known as soon as it was begun. Then there is nothing to wait
    /// for any more.
    pub fn at_once(&mut self) -> Option<Outcome> {
        match &mut self.0 {
            Stage::Done(outcome) => outcome.take().map(unboxed),
            Stage::Waits(_) => None,
        }
    }

    pub(crate) fn waits(future: impl Future<Output = Outcome> + Send + 'a) -> Self {
        Self(Stage::Waits(Box::pin(future)))
    }
}

impl Future for Sending<'_> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut self.0 {
            // Taken once, as every future is.
            Stage::Done(outcome) => match outcome.take() {
                Some(outcome) => Poll::Ready(unboxed(outcome)),
                None => Poll::Pending,
            },
            Stage::Waits(future) => future.as_mut().poll(context),
        }
    }
}

fn unboxed(outcome: Result<(), Box<LinkError>>) -> Outcome {
    outcome.map_err(|error| *error)
}

impl std::fmt::Debug for Sending<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sending").finish_non_exhaustive()
    }
}
