//! Somebody who hears of every call that begins and ends, as far as a listener can keep up.

use cocode_client::{Event, Events};

use super::bits::Bits;

/// What was heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    started: Bits,
    finished: Bits,
    pub(crate) missed: u64,
    /// Calls that were said to end a second time.
    pub(crate) twice: u64,
}

pub(crate) async fn listen(mut events: Events) -> Heard {
    let mut heard = Heard::default();
    while let Some(event) = events.next().await {
        match event {
            Event::ToolCallStarted { call, .. } => {
                heard.started.insert(call.0);
            }
            Event::ToolCallFinished { call, .. } => {
                heard.twice += u64::from(!heard.finished.insert(call.0));
            }
            Event::Missed(count) => heard.missed += count,
            _ => {}
        }
    }
    heard
}

impl Heard {
    /// Calls of whose end nothing was heard, unless something was missed.
    pub(crate) fn unfinished(&self) -> u32 {
        if self.missed > 0 {
            return 0;
        }
        self.started.not_in(&self.finished)
    }
}

impl FromIterator<Self> for Heard {
    /// There is one listener.
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        all.into_iter().next().unwrap_or_default()
    }
}
