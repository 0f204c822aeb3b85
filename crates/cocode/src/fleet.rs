//! Many configured servers at once: all of them in one manager, asked side by side, with a line that
//! shows how far that is. Only servers that are ready ever get here.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::{Manager, Session};
use cocode_core::ServerSpec;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::CliError;
use crate::interrupt::Interrupts;
use crate::managing::{self, Setup};
use crate::printer::Printer;
use crate::reach::Configured;
use crate::session::interrupted;
use crate::trouble::{About, Failure};
use crate::workspace::Workspace;

/// How many of the servers that are still awaited are named.
const MAX_NAMES_SHOWN: usize = 4;
/// The longest text of a [`short`] reason.
const MAX_SHORT_CHARACTERS: usize = 240;
/// Attempts to connect end by themselves, long before this.
const FOREVER: Duration = Duration::from_hours(24);

/// Servers, and how errors speak of them.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) manager: Manager,
    /// The option of this command that allows more time.
    more_time: &'static str,
}

/// What a command decides about all servers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    /// How long a request may take.
    pub(crate) request_timeout: Option<Duration>,
    /// The option of the command that allows more time for connecting.
    pub(crate) more_time: &'static str,
}

impl Fleet {
    /// Gets ready to connect to these servers. Their time for connecting is that of this command.
    pub(crate) async fn new(
        specs: Vec<ServerSpec>,
        wishes: Wishes,
        setup: &Setup,
        workspace: &Workspace,
    ) -> Result<Self, CliError> {
        let connector = Configured::new(workspace)?;
        connector.recall(&specs).await;
        let manager = setup.manager(|options| {
            options.connector = Arc::new(connector);
            // What servers have to say would be said by all of them at once.
            options.log_level = None;
            if let Some(limit) = wishes.request_timeout {
                options.timeouts.request = limit;
            }
        });
        manager.apply(specs).await;
        let more_time = wishes.more_time;
        Ok(Self { manager, more_time })
    }

    /// A session with a server, within its own time.
    pub(crate) async fn session(&self, spec: &ServerSpec) -> Result<Session, Failure> {
        let session = self.manager.session(&spec.name, until()).await;
        session.map_err(|error| self.about(spec).failure(&error))
    }

    pub(crate) fn about(&self, spec: &ServerSpec) -> About {
        About::configured(spec, self.more_time)
    }

    /// Waits until every connection is closed.
    pub(crate) async fn close(self, interrupts: &mut Interrupts) {
        managing::close(&self.manager, interrupts).await;
    }
}

/// When nobody waits for a session any more.
pub(crate) fn until() -> Instant {
    Instant::now() + FOREVER
}

/// Visits servers, all at the same time. Gives what came of it, in the order they were asked for. On
/// a signal, nobody is waited for any more.
pub(crate) async fn visit<'a, T, V>(
    names: &[&'a str],
    printer: &Printer,
    interrupts: &mut Interrupts,
    visit: impl Fn(usize) -> V,
) -> Result<Vec<T>, CliError>
where
    V: Future<Output = T>,
{
    let awaited: RefCell<BTreeSet<&'a str>> = RefCell::new(names.iter().copied().collect());
    let mut outcomes: Vec<(usize, T)> = Vec::with_capacity(names.len());
    let mut work: FuturesUnordered<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let (awaited, visiting) = (&awaited, visit(index));
            async move {
                let outcome = visiting.await;
                awaited.borrow_mut().remove(name);
                (index, outcome)
            }
        })
        .collect();
    show(printer, 0, names.len(), &awaited.borrow());
    let stopped = loop {
        tokio::select! {
            biased;
            exit = interrupts.next() => break Some(exit),
            next = work.next() => {
                let Some(outcome) = next else { break None };
                outcomes.push(outcome);
                show(printer, outcomes.len(), names.len(), &awaited.borrow());
            }
        }
    };
    printer.end_bar();
    if let Some(exit) = stopped {
        return Err(interrupted(printer, exit));
    }
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn show(printer: &Printer, done: usize, all: usize, awaited: &BTreeSet<&str>) {
    if !printer.shows_bar() || all == 0 {
        return;
    }
    let mut line = format!("{done} of {all} servers");
    let names: Vec<String> = awaited
        .iter()
        .take(MAX_NAMES_SHOWN)
        .map(|name| crate::text::plain(name))
        .collect();
    if !names.is_empty() {
        let more = if awaited.len() > names.len() {
            ", …"
        } else {
            ""
        };
        line = format!("{line}, waiting for {}{more}", names.join(", "));
    }
    printer.bar(&line);
}

/// Why something failed, in one line.
pub(crate) fn short(error: &CliError) -> String {
    let causes: Vec<&str> = error
        .causes
        .iter()
        .map(String::as_str)
        .filter(|cause| *cause != "the handshake failed")
        .collect();
    let mut text = if causes.is_empty() {
        error.message.clone()
    } else {
        causes.join(": ")
    };
    if let Some(last) = error.stderr.iter().rfind(|line| !line.trim().is_empty()) {
        text = format!("{text}; its last words: {}", last.trim());
    }
    if text.chars().count() > MAX_SHORT_CHARACTERS {
        text = text.chars().take(MAX_SHORT_CHARACTERS - 1).collect();
        text.push('…');
    }
    // Where somebody has only to do something, that is said at once.
    let is_to_do = matches!(error.code, "auth-required" | "client-registration-required");
    if let Some(hint) = error.hints.first().filter(|_| is_to_do) {
        text = format!("{text}; {hint}");
    }
    text
}

/// An error as scripts see it, to be put into something larger.
pub(crate) fn error_object(error: &CliError) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Whole {
        error: Box<RawValue>,
    }
    let whole: Option<Whole> = serde_json::from_str(&error.to_json()).ok();
    whole.map(|whole| whole.error)
}
