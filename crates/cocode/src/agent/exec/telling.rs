//! Tells a person what happens in a turn: what the model says as it says it, and what it does.

use std::sync::{Arc, Mutex, PoisonError};

use cocode_agent::{Ending, Listener, Notice, TurnEnd, describe};

use crate::error::CliError;
use crate::printer::Printer;
use crate::text::{plain, tame};

/// At a terminal, what the model says is shown as it comes; a program gets the last words alone.
pub(super) struct Telling {
    printer: Arc<Printer>,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// Something of this reply was shown.
    is_begun: bool,
    ends_line: bool,
}

impl Telling {
    pub(super) fn new(printer: Arc<Printer>) -> Self {
        let said = Mutex::default();
        Self { printer, said }
    }

    fn text(&self, text: &str) {
        if !self.printer.stdout_is_terminal() {
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.is_begun = true;
        said.ends_line = text.ends_with('\n');
        // If nobody reads any more, the end of the turn says so.
        let _nobody_reads = self.printer.out(tame(text));
    }

    fn end_line(&self) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_begun && !said.ends_line {
            let _nobody_reads = self.printer.out("\n");
        }
        *said = Said::default();
    }

    fn line(&self, line: &str) {
        self.end_line();
        self.printer.note(&plain(line));
    }
}

impl Listener for Telling {
    fn hear(&self, notice: &Notice) {
        match notice {
            Notice::Text(text) => self.text(text),
            Notice::Restarting { why, after } => {
                let seconds = after.as_secs_f64();
                self.line(&format!("asking again in {seconds:.1} s: {why}"));
            }
            Notice::CallBegun(call) => self.line(&format!("→ {}", describe(call))),
            Notice::CallEnded {
                tool,
                is_error: true,
                content,
                ..
            } => {
                let text = cocode_agent::text_of(content);
                let first = text.lines().next().unwrap_or_default();
                self.line(&format!("✗ {tool}: {first}"));
            }
            Notice::Compacting => self.line("the conversation is long; it is being summed up"),
            Notice::Warning(what) => self.printer.warn(what),
            Notice::Replied { .. } | Notice::Ended(_) => self.end_line(),
            _ => {}
        }
    }
}

/// Prints the last words where they were not shown as they came.
pub(super) fn ended(printer: &Printer, end: &TurnEnd) -> Result<(), CliError> {
    if printer.stdout_is_terminal() || !matches!(end.ending, Ending::Done) {
        return Ok(());
    }
    printer.out_line(&end.text)
}
