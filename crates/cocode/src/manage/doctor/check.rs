//! What one step of an examination found, and how that is shown.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::{CliError, Exit};
use crate::fleet::error_object;
use crate::printer::{Paint, Style};
use crate::text::plain;

/// The width of the column with the names of steps.
const STAGE_COLUMN: usize = 11;

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Ok,
    Warning,
    Failed,
    Skipped,
}

/// One step and what it found.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) stage: &'static str,
    pub(super) outcome: Outcome,
    /// Empty where an earlier step says why this one was left out.
    pub(super) message: String,
    pub(super) details: Vec<String>,
    pub(super) hints: Vec<String>,
    pub(super) error: Option<Box<CliError>>,
}

/// A step, for scripts.
#[derive(Serialize)]
pub(super) struct CheckReport<'a> {
    stage: &'a str,
    outcome: Outcome,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hints: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

impl Check {
    fn new(stage: &'static str, outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            stage,
            outcome,
            message: message.into(),
            details: Vec::new(),
            hints: Vec::new(),
            error: None,
        }
    }

    pub(super) fn ok(stage: &'static str, message: impl Into<String>) -> Self {
        Self::new(stage, Outcome::Ok, message)
    }

    pub(super) fn warning(stage: &'static str, message: impl Into<String>) -> Self {
        Self::new(stage, Outcome::Warning, message)
    }

    pub(super) fn skipped(stage: &'static str, message: impl Into<String>) -> Self {
        Self::new(stage, Outcome::Skipped, message)
    }

    pub(super) fn failed(stage: &'static str, error: CliError) -> Self {
        let message = error.message.clone();
        Self {
            error: Some(Box::new(error)),
            ..Self::new(stage, Outcome::Failed, message)
        }
    }

    #[must_use]
    pub(super) fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// How the program ends because of this.
    pub(super) fn exit(&self) -> Exit {
        match (&self.error, self.outcome) {
            (Some(error), Outcome::Failed) => error.exit,
            _ => Exit::Ok,
        }
    }

    /// Lines for people.
    pub(super) fn lines(&self, paint: Paint) -> Vec<String> {
        if self.outcome == Outcome::Skipped && self.message.is_empty() {
            return Vec::new();
        }
        let mark = match self.outcome {
            Outcome::Ok => "ok  ".to_owned(),
            Outcome::Warning => paint.paint(Style::Yellow, "warn"),
            Outcome::Failed => paint.paint(Style::Red, "FAIL"),
            Outcome::Skipped => paint.paint(Style::Dim, "skip"),
        };
        let padding = " ".repeat(STAGE_COLUMN.saturating_sub(self.stage.len()));
        let message = plain(&self.message);
        let mut lines = vec![format!("  {mark}  {}{padding}{message}", self.stage)];
        let details = self.details.iter().map(|detail| plain(detail));
        let hints = self
            .hints
            .iter()
            .map(|hint| format!("hint: {}", plain(hint)));
        // The first line of an error is the message.
        let of_error = self.error.iter().flat_map(|error| error.to_lines());
        let of_error = of_error.skip(1).map(|line| line.trim_start().to_owned());
        lines.extend(
            details
                .chain(of_error)
                .chain(hints)
                .map(|line| format!("          {line}")),
        );
        lines
    }

    pub(super) fn report(&self) -> CheckReport<'_> {
        CheckReport {
            stage: self.stage,
            outcome: self.outcome,
            message: &self.message,
            details: &self.details,
            hints: &self.hints,
            error: self.error.as_ref().and_then(|error| error_object(error)),
        }
    }
}

/// The more serious of two ends: what is written wrong, then servers that do not answer, then
/// those that take too long, then those that want credentials, then those that may not run.
pub(super) fn more_serious(one: Exit, other: Exit) -> Exit {
    let order = [
        Exit::Ok,
        Exit::Blocked,
        Exit::Auth,
        Exit::Timeout,
        Exit::Server,
        Exit::Usage,
    ];
    let rank = |exit: Exit| order.iter().position(|known| *known == exit);
    if rank(other) > rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::more_serious;
    use crate::error::Exit;

    #[test]
    fn the_most_serious_end_wins_in_any_order() {
        let rising = [
            Exit::Ok,
            Exit::Blocked,
            Exit::Auth,
            Exit::Timeout,
            Exit::Server,
            Exit::Usage,
        ];
        for (index, less) in rising.iter().enumerate() {
            for more in rising.iter().skip(index) {
                assert_eq!(more_serious(*less, *more), *more);
                assert_eq!(more_serious(*more, *less), *more);
            }
        }
    }
}
