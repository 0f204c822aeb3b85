//! Holds back what is sent within one poll: a client that asks for many things at once costs the
//! server one write, and whoever reads it one wake-up.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::writer::LineWriter;

thread_local! {
    static HELD: RefCell<Held> = const { RefCell::new(Held { is_on: false, writers: Vec::new() }) };
}

struct Held {
    is_on: bool,
    writers: Vec<Arc<LineWriter>>,
}

/// While this is there, what is sent on this thread waits for its end. It cannot leave the thread, so
/// it is not there while anything is waited for.
#[derive(Debug)]
pub(crate) struct Cork(PhantomData<*const ()>);

impl Cork {
    /// Nothing if another one is there: then that one decides.
    pub(crate) fn put() -> Option<Self> {
        HELD.with_borrow_mut(|held| {
            let is_first = !std::mem::replace(&mut held.is_on, true);
            is_first.then(|| Self(PhantomData))
        })
    }
}

impl Drop for Cork {
    fn drop(&mut self) {
        let mut writers = HELD.with_borrow_mut(|held| {
            held.is_on = false;
            std::mem::take(&mut held.writers)
        });
        for writer in writers.drain(..) {
            writer.write_held();
        }
        // Its room is used again.
        HELD.with_borrow_mut(|held| held.writers = writers);
    }
}

/// Whether `writer` is to hold back what it was given; then it is reminded of that.
pub(super) fn holds(writer: &Arc<LineWriter>) -> bool {
    HELD.with_borrow_mut(|held| {
        if held.is_on {
            held.writers.push(Arc::clone(writer));
        }
        held.is_on
    })
}
