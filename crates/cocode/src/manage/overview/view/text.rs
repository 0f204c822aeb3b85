//! One server for people: the cells of a row, or one line.

use super::{Kind, Line, STOPPED, SharedBy};
use crate::printer::Style;
use crate::table::Cell;
use crate::text::duration;

impl Line {
    pub(super) fn cells(&self, shows_sharing: bool, counts_calls: bool) -> Vec<Cell> {
        let or_dash = |text: Option<String>| Cell::new(text.unwrap_or_else(|| "-".into()));
        let state = if self.slow {
            Cell::new(format!("{} (slow)", self.state))
        } else {
            Cell::new(self.state)
        };
        let state = match self.kind {
            Kind::Good => state,
            Kind::Off => state.styled(Style::Dim),
            Kind::Awaited | Kind::Pending | Kind::NeedsAuth => state.styled(Style::Yellow),
            Kind::Failed | Kind::Blocked | Kind::Invalid => state.styled(Style::Red),
        };
        let tools = self.tools.map(|tools| match self.hidden_tools {
            Some(hidden @ 1..) => format!("{tools} of {}", tools + hidden),
            _ => tools.to_string(),
        });
        let mut cells = vec![
            Cell::new(&self.name).styled(Style::Bold),
            state,
            or_dash(self.era.clone()),
            or_dash(self.transport.as_deref().map(str::to_owned)),
            or_dash(tools),
            or_dash(self.took.map(duration)),
        ];
        if shows_sharing {
            cells.push(or_dash(self.daemon.as_ref().map(SharedBy::told)));
        }
        if counts_calls {
            let calls = self.calls.unwrap_or_default();
            let running = calls.started.saturating_sub(calls.finished);
            cells.push(Cell::new(match (running, calls.failed) {
                (0, 0) => calls.finished.to_string(),
                (0, failed) => format!("{}, {failed} failed", calls.finished),
                (running, 0) => format!("{}, {running} running", calls.finished),
                (running, failed) => {
                    format!("{}, {running} running, {failed} failed", calls.finished)
                }
            }));
            cells.push(Cell::new(self.reconnects.to_string()));
        }
        cells.push(Cell::new(&self.last));
        cells
    }

    /// How it is shared, where that is worth a word.
    fn terms(&self) -> Option<String> {
        let (sharing, reason) = (self.sharing?, self.sharing_reason.as_ref()?);
        Some(format!("{sharing} because {reason}"))
    }

    /// One line of text, for those who watch without a terminal.
    pub(crate) fn told(&self) -> String {
        let mut text = format!("{} {}", self.name, self.state);
        if self.slow {
            text.push_str(" (slow)");
        }
        if self.kind == Kind::Good {
            let facts = [
                self.era.clone(),
                self.transport.as_deref().map(str::to_owned),
                self.daemon.as_ref().map(SharedBy::told),
                self.tools.map(|tools| format!("{tools} tools")),
                self.took.map(duration),
                self.terms(),
                (self.last == STOPPED).then(|| self.last.clone()),
            ];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            text = format!("{text}: {}", facts.join(", "));
        } else if !self.last.is_empty() {
            text = format!("{text}: {}", self.last);
        }
        text
    }
}
