//! The pages of `docs/errors`, inside the program: an installed binary has no folder beside it.

use clap::builder::PossibleValuesParser;
use serde::Serialize;

use crate::error::{CliError, Code};
use crate::printer::Printer;
use crate::render::{Row, rows};

/// What there is to say about one error code.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) code: &'static str,
    /// Markdown that reads well as it is.
    pub(crate) text: &'static str,
}

macro_rules! pages {
    ($($code:literal,)*) => {
        &[$(Page {
            code: $code,
            text: include_str!(concat!("../docs/errors/", $code, ".md")),
        },)*]
    };
}

/// All pages, in the order of the alphabet.
pub(crate) const PAGES: &[Page] = pages![
    "address-in-use",
    "already-there",
    "answer-too-large",
    "audit-broken",
    "auth-required",
    "blocked-by-policy",
    "client-registration-required",
    "connect-timeout",
    "connection-broken",
    "connection-closed",
    "conversation-failed",
    "credentials-unavailable",
    "daemon-lost",
    "daemon-unavailable",
    "file-error",
    "gateway-lost",
    "gateway-refused",
    "gateway-unavailable",
    "handshake-refused",
    "http-setup",
    "http-status",
    "interrupted",
    "invalid-arguments",
    "invalid-config",
    "invalid-filter",
    "invalid-params",
    "invalid-target",
    "invalid-usage",
    "listen-refused",
    "login-failed",
    "malformed-answer",
    "message-too-large",
    "model-failed",
    "no-answer",
    "no-gateway",
    "no-model",
    "not-cached",
    "pending-trust",
    "permission-denied",
    "redirect-refused",
    "request-timeout",
    "secret-unavailable",
    "server-disabled",
    "server-error",
    "server-exited",
    "session-gone",
    "setup-failed",
    "spawn-failed",
    "store-unavailable",
    "too-many-input-rounds",
    "tool-error",
    "transport-error",
    "turn-failed",
    "unexpected-answer",
    "unknown-prompt",
    "unknown-result",
    "unknown-server",
    "unknown-token",
    "unknown-tool",
    "unreachable",
    "unusable-tool",
    "version-mismatch",
    "wrong-content-type",
];

impl Page {
    /// The first sentence of what happened.
    fn summary(&self) -> &'static str {
        let (_, happened) = self
            .text
            .split_once("## What happened\n\n")
            .unwrap_or_default();
        let paragraph = happened.split("\n\n").next().unwrap_or_default();
        let (first, _) = paragraph.split_once(". ").unwrap_or((paragraph, ""));
        first.trim_end_matches(['.', '\n'])
    }
}

/// Understands no word but the codes, and offers them to shells for completion.
pub(crate) fn codes() -> PossibleValuesParser {
    PossibleValuesParser::new(PAGES.iter().map(|page| page.code))
}

/// Prints the page of a code, or the list of all codes.
pub(crate) fn run(code: Option<&str>, printer: &Printer) -> Result<(), CliError> {
    let wanted = |page: &&Page| code.is_none_or(|code| code == page.code);
    let pages: Vec<&Page> = PAGES.iter().filter(wanted).collect();
    if printer.json() {
        for page in pages {
            let line = serde_json::to_string(page).map_err(|error| {
                CliError::new(Code::SetupFailed, "cannot write the page").because(&error)
            })?;
            printer.out_line(&line)?;
        }
        return Ok(());
    }
    if code.is_some() {
        return pages.iter().try_for_each(|page| printer.out(page.text));
    }
    let list: Vec<Row> = pages
        .iter()
        .map(|page| Row {
            name: page.code.to_owned(),
            text: page
                .summary()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            ..Row::default()
        })
        .collect();
    printer.out(rows(&list, printer.width(), printer.paint()))
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
