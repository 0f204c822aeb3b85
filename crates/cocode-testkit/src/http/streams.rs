//! The event streams that are open and left to the test.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::recorder::Recorder;

/// More than any test pushes before a stream is written.
const BACKLOG: usize = 8192;

/// What a test does to a stream.
#[derive(Debug, Clone)]
pub(crate) enum Push {
    Text(String),
    /// Ends it properly.
    End,
    /// Drops the connection.
    Drop,
}

/// All open streams, each with the session it belongs to.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Mutex<Vec<(String, mpsc::Sender<Push>)>>,
    pub(crate) opened: Recorder<String>,
}

impl Streams {
    /// Opens a stream that lasts as long as the receiver.
    pub(crate) fn open(&self, session: &str) -> mpsc::Receiver<Push> {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        self.lock().push((session.to_owned(), sender));
        self.opened.push(session.to_owned());
        receiver
    }

    /// Pushes to the streams of one session, or of all, and says to how many.
    pub(crate) fn push(&self, session: Option<&str>, push: &Push) -> usize {
        let mut open = self.lock();
        open.retain(|(_, sender)| !sender.is_closed());
        let mut reached = 0;
        for (own, sender) in open.iter() {
            if session.is_none_or(|session| session == own) {
                sender
                    .try_send(push.clone())
                    .expect("the backlog is larger than any test");
                reached += 1;
            }
        }
        reached
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, mpsc::Sender<Push>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
