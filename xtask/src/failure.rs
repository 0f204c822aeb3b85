//! The one error type of the automation: a sentence for a person, and the tests counted so far.

use std::fmt;

use crate::counts::Counts;

/// Why a task stopped.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    counts: Option<Counts>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            counts: None,
        }
    }

    /// Says what was being done when the cause happened.
    pub(crate) fn because(doing: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::new(format!("{doing}: {cause}"))
    }

    /// Attaches what was counted, for the closing line.
    pub(crate) fn with_counts(self, counts: Counts) -> Self {
        Self {
            counts: Some(counts),
            ..self
        }
    }

    pub(crate) fn counts(&self) -> Option<Counts> {
        self.counts
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
