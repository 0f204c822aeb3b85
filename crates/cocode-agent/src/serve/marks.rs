//! Which turns are going on in which conversations, as far as others have to know: whoever wants to go on
//! with a conversation waits for the end of a turn that was interrupted, and for no other.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use crate::store::ConversationId;

/// The marks of all turns of a server.
#[derive(Debug, Default)]
pub(super) struct Marks(Mutex<Vec<Weak<Mark>>>);

/// What is known of a turn from outside.
#[derive(Debug)]
pub(super) struct Mark {
    /// Its conversation, once that is known.
    id: OnceLock<ConversationId>,
    /// Cancelled when it is interrupted.
    interrupt: CancellationToken,
    /// Cancelled when the request that waits for it is taken back, which interrupts it soon.
    request: Mutex<CancellationToken>,
    /// Cancelled when it is over, and its conversation free.
    over: CancellationToken,
}

impl Marks {
    /// The mark of a turn that begins.
    pub(super) fn mark(&self, interrupt: CancellationToken) -> Arc<Mark> {
        let mark = Arc::new(Mark {
            id: OnceLock::new(),
            interrupt,
            request: Mutex::default(),
            over: CancellationToken::new(),
        });
        let mut marks = self.lock();
        // There are no more than turns: those that nobody has any more are gone.
        marks.retain(|mark| mark.strong_count() > 0);
        marks.push(Arc::downgrade(&mark));
        mark
    }

    /// What is cancelled when the turn of this conversation is over, if it was interrupted.
    pub(super) fn ending(&self, id: &ConversationId) -> Option<CancellationToken> {
        let marks = self.lock();
        let mut marks = marks.iter().filter_map(Weak::upgrade);
        let ending = marks.find(|mark| mark.is_of(id) && mark.is_given_up())?;
        Some(ending.over.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Mark>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mark {
    /// The turn belongs to this conversation.
    pub(super) fn is_in(&self, id: &ConversationId) {
        self.id.get_or_init(|| id.clone());
    }

    /// Another request waits for it from now on, which is taken back by this.
    pub(super) fn is_waited_for_by(&self, request: &CancellationToken) {
        *self.request() = request.clone();
    }

    /// Whether it goes on in this conversation.
    pub(super) fn is_of(&self, id: &ConversationId) -> bool {
        self.id.get() == Some(id) && !self.over.is_cancelled()
    }

    /// The turn is over.
    pub(super) fn ends(&self) {
        self.over.cancel();
    }

    fn is_given_up(&self) -> bool {
        self.interrupt.is_cancelled() || self.request().is_cancelled()
    }

    fn request(&self) -> MutexGuard<'_, CancellationToken> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::Marks;

    #[test]
    fn only_a_turn_that_was_interrupted_and_goes_on_is_waited_for() {
        let marks = Marks::default();
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e".parse().unwrap();
        let other = "1f8fad5b-d9cb-469f-a165-70867728950e".parse().unwrap();
        let interrupt = CancellationToken::new();
        let mark = marks.mark(interrupt.clone());
        interrupt.cancel();
        assert!(marks.ending(&id).is_none(), "its conversation is not known");
        mark.is_in(&id);
        assert!(marks.ending(&other).is_none());
        let over = marks.ending(&id).unwrap();
        assert!(!over.is_cancelled());
        mark.ends();
        assert!(over.is_cancelled());
        assert!(marks.ending(&id).is_none());

        let going_on = marks.mark(CancellationToken::new());
        let request = CancellationToken::new();
        going_on.is_waited_for_by(&request);
        going_on.is_in(&id);
        assert!(marks.ending(&id).is_none());
        request.cancel();
        assert!(marks.ending(&id).is_some());
        drop((mark, going_on));
        let last = marks.mark(CancellationToken::new());
        assert_eq!(marks.lock().len(), 1);
        drop(last);
    }
}
