//! Keeps whoever is at a limit from filling the log: of what they are kept from, the first of a minute
//! are lines of their own, and the others are counted and become one line.
//!
//! Without that, somebody who goes on asking would push out all that was written before.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::entry::AuditEntry;
use super::line::cut_text;

/// Lines that a principal gets in a minute before others are counted.
const MAX_LINES: u32 = 10;
/// How long is counted before there is a line for it.
const MINUTE: Duration = Duration::from_mins(1);
/// Principals that are counted by themselves; all others are counted together.
const MAX_PRINCIPALS: usize = 1_024;
/// The method of a line that stands for calls of several ones.
const SEVERAL: &str = "several";

/// Counts what would be too many lines.
#[derive(Debug, Default)]
pub(super) struct Folds {
    windows: Mutex<Windows>,
    /// There is something to count that was not there before.
    begun: Notify,
}

/// By principal; without one, it is that of all who are not counted by themselves.
type Windows = BTreeMap<Option<String>, Window>;

/// The minute of a principal.
#[derive(Debug)]
struct Window {
    ends: Instant,
    n_lines: u32,
    /// What was counted and is no line yet.
    folded: Option<AuditEntry>,
}

/// Which counts become lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ripe {
    /// Those whose minute is over.
    Due,
    /// All of them.
    All,
}

impl Folds {
    /// Gives the entry back if it is to be a line of its own, and counts it otherwise.
    pub(super) fn admit(&self, entry: AuditEntry) -> Option<AuditEntry> {
        let now = Instant::now();
        let mut windows = self.windows();
        let window = window_of(&mut windows, &entry, now);
        if window.folded.is_none() && window.n_lines < MAX_LINES {
            window.n_lines += 1;
            return Some(entry);
        }
        let is_first = window.fold(entry);
        drop(windows);
        self.tell(is_first);
        None
    }

    /// Counts an entry that there is no room for as a line.
    pub(super) fn fold(&self, entry: AuditEntry) {
        let is_first = window_of(&mut self.windows(), &entry, Instant::now()).fold(entry);
        self.tell(is_first);
    }

    /// Takes what is to become lines now. Minutes that are over are forgotten.
    pub(super) fn take(&self, which: Ripe) -> Vec<AuditEntry> {
        let now = Instant::now();
        let mut taken = Vec::new();
        self.windows().retain(|_principal, window| {
            let is_over = window.ends <= now;
            if is_over || which == Ripe::All {
                taken.extend(window.folded.take());
            }
            !is_over
        });
        taken
    }

    /// Waits until a count is due. Cancel safe.
    pub(super) async fn until_due(&self) {
        loop {
            let begun = self.begun.notified();
            match self.next_due() {
                Some(due) => tokio::select! {
                    () = sleep_until(due) => return,
                    // It may be due before.
                    () = begun => {}
                },
                None => begun.await,
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let windows = self.windows();
        let counting = windows.values().filter(|window| window.folded.is_some());
        counting.map(|window| window.ends).min()
    }

    fn tell(&self, is_first: bool) {
        if is_first {
            self.begun.notify_one();
        }
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The minute that an entry belongs to.
fn window_of<'a>(windows: &'a mut Windows, entry: &AuditEntry, now: Instant) -> &'a mut Window {
    let mut principal = entry.principal.clone();
    if !windows.contains_key(&principal) && windows.len() >= MAX_PRINCIPALS {
        windows.retain(|_principal, window| window.ends > now || window.folded.is_some());
        if windows.len() >= MAX_PRINCIPALS {
            principal = None;
        }
    }
    let window = windows
        .entry(principal)
        .or_insert_with(|| Window::from(now));
    // What was counted is waited for: it is one line more, and not lost.
    if window.ends <= now && window.folded.is_none() {
        *window = Window::from(now);
    }
    window
}

impl Window {
    fn from(now: Instant) -> Self {
        Self {
            ends: now + MINUTE,
            n_lines: 0,
            folded: None,
        }
    }

    /// Counts an entry, and says whether it is the first. A line says what all that it stands for have
    /// in common.
    fn fold(&mut self, entry: AuditEntry) -> bool {
        let entry = brief(entry);
        let Some(folded) = &mut self.folded else {
            self.folded = Some(entry);
            return true;
        };
        let AuditEntry {
            at,
            principal,
            client,
            method,
            server,
            name,
            outcome: _,
            code,
            took: _,
            bytes: _,
            arguments: _,
            event: _,
            times: _,
        } = entry;
        folded.at = at;
        folded.times = Some(folded.times.unwrap_or(1).saturating_add(1));
        keep_common(&mut folded.principal, principal.as_ref());
        keep_common(&mut folded.client, client.as_ref());
        keep_common(&mut folded.server, server.as_ref());
        keep_common(&mut folded.name, name.as_ref());
        keep_common(&mut folded.code, code.as_ref());
        if folded.method != method {
            SEVERAL.clone_into(&mut folded.method);
        }
        false
    }
}

/// An entry that takes no more memory than its line will have, and stands for one so far.
fn brief(entry: AuditEntry) -> AuditEntry {
    let brief = |text: Option<String>| text.map(cut_text);
    AuditEntry {
        principal: brief(entry.principal),
        client: brief(entry.client),
        method: cut_text(entry.method),
        server: brief(entry.server),
        name: brief(entry.name),
        arguments: None,
        times: Some(1),
        ..entry
    }
}

fn keep_common<T: PartialEq>(common: &mut Option<T>, other: Option<&T>) {
    if common.as_ref() != other {
        *common = None;
    }
}

#[cfg(test)]
#[path = "folds_tests.rs"]
mod tests;
