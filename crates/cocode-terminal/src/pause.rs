//! The pause in typing after which keys are meant for a question that came up by itself. Without
//! it, a question in the middle of a word would be answered by the rest of the word.

use std::time::Duration;

use tokio::time::Instant;

use crate::style::{Line, Style};
use crate::text::shortened;

/// How long nothing is typed.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// Whether there was a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    quiet_since: Instant,
}

impl Pause {
    /// Begins to wait for one.
    pub(crate) fn begin(now: Instant) -> Self {
        Self { quiet_since: now }
    }

    /// When it is over, if it is not yet.
    pub(crate) fn over_at(self, now: Instant) -> Option<Instant> {
        let at = self.quiet_since + PAUSE;
        (at > now).then_some(at)
    }

    pub(crate) fn is_over(self, now: Instant) -> bool {
        self.over_at(now).is_none()
    }

    /// What is shown in the place of the keys until then.
    pub(crate) fn line(columns: usize) -> Line {
        let waiting = "  (keys are for the input line until you pause)";
        Line::new(&shortened(waiting, columns), Style::PLAIN.dim())
    }
}
