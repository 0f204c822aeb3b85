//! The way from calls to a ledger: a bounded queue and one task that writes what waits, all at once.
//!
//! Before a call begins, a place in the queue is taken for what will be said of it. So a call is refused
//! before anything was done, and never after it that there is no room to write it down. Whoever answers a
//! call can wait until it is written, so that nothing that was answered is missing when this process dies.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::entry::{AuditEntry, AuditEvent, AuditOutcome};
use super::folds::{Folds, Ripe};
use super::{AuditError, AuditLedger};
use crate::Work;

/// Calls that may be going on or wait to be written.
const MAX_WAITING: usize = 16_384;
/// Entries that are written at once.
const MAX_BATCH: usize = 256;
/// How long a ledger may take before it counts as failing.
const SLOW_AFTER: Duration = Duration::from_secs(3);
/// When a ledger that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What happens to calls while nothing can be written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFailing {
    /// They are refused. What was done before that waits, and is written when that is possible again.
    #[default]
    Refuse,
    /// They are made. What cannot be written is lost, counted, and the log says how much it was.
    GoOn,
}

/// Writes down what was done.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Queued>,
    _tasks: JoinSet<()>,
}

/// A place for what will be said of a call. Dropped without a word, nothing is written.
#[derive(Debug)]
#[must_use = "what was done is to be written"]
pub struct AuditSlot {
    shared: Arc<Shared>,
    /// There is none when calls go on without being written down.
    permit: Option<mpsc::OwnedPermit<Queued>>,
}

/// What was said of a call, on its way to the ledger.
#[derive(Debug)]
#[must_use = "whoever answers waits for it"]
pub struct Writing(Option<oneshot::Receiver<()>>);

/// How a log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHealth {
    /// Why nothing can be written now, if that is so.
    pub failing: Option<String>,
    /// Entries that were written by this process.
    pub n_written: u64,
    /// Entries that could not be written, and never will be.
    pub n_lost: u64,
    /// Calls that are going on, and entries that wait.
    pub n_waiting: u64,
}

/// Nothing can be written down now, so nothing may be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is done cannot be written down now, so nothing is: {why}")]
pub struct AuditUnavailable {
    /// What is wrong with the log. For those who run the gateway, and not for those who use it.
    pub why: String,
}

/// Entries were not written in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit log was not written within {} s: {why}", after.as_secs())]
pub struct NotWritten {
    /// How long was waited.
    pub after: Duration,
    /// What is wrong with the log.
    pub why: String,
}

/// The log cannot be written from its beginning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit log cannot be written: {why}")]
pub struct NotBegun {
    /// What is wrong with the log.
    pub why: String,
}

struct Shared {
    ledger: Arc<dyn AuditLedger>,
    when_failing: WhenFailing,
    state: watch::Sender<State>,
    folds: Folds,
    /// What is written could not be brought to the disk.
    is_unsynced: AtomicBool,
    n_written: AtomicU64,
    n_lost: AtomicU64,
}

/// Whether entries can be written.
#[derive(Debug)]
enum State {
    /// As far as anybody knows.
    Well,
    /// Nobody knows yet: the first entry is being written.
    Beginning,
    /// They cannot, and why.
    Failing(String),
}

#[derive(Debug)]
enum Queued {
    /// With who waits until it is written, if anybody does.
    Entry(Box<AuditEntry>, Option<oneshot::Sender<()>>),
    /// All that was queued before is to be written first.
    Flush(oneshot::Sender<()>),
}

impl AuditLog {
    /// Writes to this ledger. Has to be [closed](Self::close) before it is dropped, else what waits is
    /// not written.
    pub fn start(ledger: Arc<dyn AuditLedger>, when_failing: WhenFailing) -> Self {
        let shared = Arc::new(Shared {
            ledger,
            when_failing,
            state: watch::Sender::new(State::Well),
            folds: Folds::default(),
            is_unsynced: AtomicBool::new(false),
            n_written: AtomicU64::new(0),
            n_lost: AtomicU64::new(0),
        });
        let (queue, received) = mpsc::channel(MAX_WAITING);
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).write(received));
        Self {
            shared,
            queue,
            _tasks: tasks,
        }
    }

    /// Writes that a program of this version begins, before any call is made, and waits for that. So it is
    /// known from the first call on whether what is done can be written down, and not after many of them
    /// were made. Until the entry is written the log counts as failing, also after this has returned: it
    /// does so as soon as one attempt has failed, or after this time. Cancel safe.
    pub async fn begin(&self, version: &str, limit: Duration) -> Result<(), NotBegun> {
        let Ok(place) = self.queue.try_reserve() else {
            return Err(NotBegun { why: too_many() });
        };
        let version = version.to_owned();
        let started = AuditEntry::of_log(AuditEvent::Started { version });
        let mut states = self.shared.state.subscribe();
        // Whatever comes of the entry ends this, so nothing may come between.
        self.shared.state.send_replace(State::Beginning);
        place.send(Queued::Entry(Box::new(started), None));
        let is_decided = |state: &State| !matches!(state, State::Beginning);
        if timeout(limit, states.wait_for(is_decided)).await.is_err() {
            self.shared.note_delay(limit);
        }
        match self.shared.failing() {
            Some(why) => Err(NotBegun { why }),
            None => Ok(()),
        }
    }

    /// Takes a place for what will be said of a call that is about to begin. Without one it must not.
    pub fn reserve(&self) -> Result<AuditSlot, AuditUnavailable> {
        let failing = self.shared.failing();
        let permit = self.queue.clone().try_reserve_owned().ok();
        if self.shared.when_failing == WhenFailing::Refuse {
            if let Some(why) = failing {
                return Err(AuditUnavailable { why });
            }
            if permit.is_none() {
                return Err(AuditUnavailable { why: too_many() });
            }
        }
        Ok(AuditSlot {
            shared: Arc::clone(&self.shared),
            permit,
        })
    }

    /// Writes that a limit keeps somebody from something; nothing was done, so no place has to be taken
    /// before. Only the first of a minute are lines of their own, for each principal. The others are
    /// counted, and become one line when the minute is over or the log is flushed: else whoever goes on
    /// asking would push out all that was written before. What cannot be written now is counted, too.
    pub fn write_limited(&self, entry: AuditEntry) {
        let entry = AuditEntry {
            outcome: AuditOutcome::Limited,
            ..entry
        };
        let folds = &self.shared.folds;
        let Some(entry) = folds.admit(entry) else {
            return;
        };
        match self.reserve().ok().and_then(|slot| slot.permit) {
            Some(permit) => drop(permit.send(Queued::Entry(Box::new(entry), None))),
            None => folds.fold(entry),
        }
    }

    /// Waits until all is written that was said before, also what was only counted so far.
    pub async fn flush(&self, limit: Duration) -> Result<(), NotWritten> {
        let (done, written) = oneshot::channel();
        let flushed = timeout(limit, async {
            // Both fail only if the task is gone.
            match self.queue.send(Queued::Flush(done)).await {
                Ok(()) => written.await.is_ok(),
                Err(_closed) => false,
            }
        });
        if flushed.await == Ok(true) {
            return Ok(());
        }
        let why = self.shared.failing();
        Err(NotWritten {
            after: limit,
            why: why.unwrap_or_else(|| "it takes longer than that".to_owned()),
        })
    }

    /// Writes what waits, before the process ends. Calls that are still going on are not waited for.
    pub async fn close(self, limit: Duration) -> Result<(), NotWritten> {
        self.flush(limit).await
    }

    /// How it is.
    pub fn health(&self) -> AuditHealth {
        let free = self.queue.capacity();
        AuditHealth {
            failing: self.shared.failing(),
            n_written: self.shared.n_written.load(Ordering::Relaxed),
            n_lost: self.shared.n_lost.load(Ordering::Relaxed),
            n_waiting: MAX_WAITING.saturating_sub(free) as u64,
        }
    }

    /// Where it is written.
    pub fn ledger(&self) -> &Arc<dyn AuditLedger> {
        &self.shared.ledger
    }
}

impl AuditSlot {
    /// Says what became of the call. It is written a moment later.
    pub fn write(self, entry: AuditEntry) {
        self.queue(entry, None);
    }

    /// The same, for who answers the call: not before that is written. Where calls go on without being
    /// written down, nobody waits.
    pub fn write_before_answer(self, entry: AuditEntry) -> Writing {
        if self.shared.when_failing == WhenFailing::GoOn {
            self.queue(entry, None);
            return Writing(None);
        }
        let (done, written) = oneshot::channel();
        self.queue(entry, Some(done));
        Writing(Some(written))
    }

    fn queue(self, entry: AuditEntry, waiting: Option<oneshot::Sender<()>>) {
        match self.permit {
            Some(permit) => drop(permit.send(Queued::Entry(Box::new(entry), waiting))),
            None => {
                self.shared.n_lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Writing {
    /// Waits until it is written, but no longer than this: what was done is done. Cancel safe.
    pub async fn wait(self, limit: Duration) {
        if let Some(written) = self.0
            && timeout(limit, written).await.is_err()
        {
            tracing::debug!("a call is answered that is not written down yet");
        }
    }
}

impl Shared {
    fn failing(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Well => None,
            State::Beginning => Some("its first entry is not written yet".to_owned()),
            State::Failing(why) => Some(why.clone()),
        }
    }

    fn note_failure(&self, why: String) {
        let told = why.clone();
        let before = self.state.send_replace(State::Failing(why));
        if !matches!(before, State::Failing(_)) {
            tracing::error!(why = told, "the audit log cannot be written");
        }
    }

    fn note_success(&self) {
        let before = self.state.send_replace(State::Well);
        if matches!(before, State::Failing(_)) {
            tracing::info!("the audit log can be written again");
        }
    }

    /// The first entry takes too long, unless it was written this very moment: then nobody would say that
    /// all is well again.
    fn note_delay(&self, limit: Duration) {
        let why = format!("its first entry is not written after {} s", limit.as_secs());
        let is_late = self.state.send_if_modified(|state| {
            let is_late = matches!(state, State::Beginning);
            if is_late {
                *state = State::Failing(why.clone());
            }
            is_late
        });
        if is_late {
            tracing::error!(why, "the audit log cannot be written");
        }
    }

    async fn write(self: Arc<Self>, mut received: mpsc::Receiver<Queued>) {
        let mut queued = Vec::with_capacity(MAX_BATCH);
        // Losses that the log already tells of.
        let mut n_told = 0;
        // What is written gets to the disk meanwhile.
        let (mut is_behind, mut syncing) = (false, None);
        loop {
            if is_behind && syncing.is_none() {
                (is_behind, syncing) = (false, Some(self.ledger.sync()));
            }
            let is_over = tokio::select! {
                n_received = received.recv_many(&mut queued, MAX_BATCH) => n_received == 0,
                () = self.folds.until_due() => false,
                synced = finished(&mut syncing) => {
                    syncing = self.note_sync(synced).err().map(|_failed| self.sync_later());
                    continue;
                }
            };
            if is_over {
                return;
            }
            let mut entries = Vec::with_capacity(queued.len() + 1);
            let (mut flushed, mut waiting) = (Vec::new(), Vec::new());
            for one in queued.drain(..) {
                match one {
                    Queued::Entry(entry, who) => {
                        entries.push(*entry);
                        waiting.extend(who);
                    }
                    Queued::Flush(done) => flushed.push(done),
                }
            }
            self.write_batch(entries, &mut n_told).await;
            is_behind = true;
            for done in waiting {
                // Who answers may have waited long enough.
                let _nobody_waits = done.send(());
            }
            // Who flushes wants to see all of it.
            let which = if flushed.is_empty() {
                Ripe::Due
            } else {
                Ripe::All
            };
            for folded in self.folds.take(which).chunks(MAX_BATCH) {
                self.write_batch(folded.to_vec(), &mut n_told).await;
            }
            if !flushed.is_empty() {
                // What is under way may have begun too early.
                drop(syncing.take());
                is_behind = false;
                if self.note_sync(self.ledger.sync().await).is_err() {
                    syncing = Some(self.sync_later());
                    flushed.clear();
                }
            }
            for done in flushed {
                // Who asked may not wait any more.
                let _nobody_waits = done.send(());
            }
        }
    }

    /// What is written but cannot be brought to the disk counts as not written, until it can.
    fn note_sync(&self, synced: Result<(), AuditError>) -> Result<(), AuditError> {
        match &synced {
            Ok(()) if self.is_unsynced.swap(false, Ordering::Relaxed) => self.note_success(),
            Ok(()) => {}
            Err(error) => {
                self.is_unsynced.store(true, Ordering::Relaxed);
                self.note_failure(told(error));
            }
        }
        synced
    }

    /// The next attempt, after a while.
    fn sync_later(&self) -> Work<'_, Result<(), AuditError>> {
        Box::pin(async {
            sleep(RETRY_AFTER).await;
            self.ledger.sync().await
        })
    }

    /// Writes entries, or loses them where calls go on without that.
    async fn write_batch(&self, mut entries: Vec<AuditEntry>, n_told: &mut u64) {
        let n_entries = entries.len() as u64;
        // A line may stand for several.
        let n_meant: u64 = entries.iter().map(|entry| entry.times.unwrap_or(1)).sum();
        let n_lost = self.n_lost.load(Ordering::Relaxed);
        if n_lost > *n_told {
            let lost = AuditEvent::Lost {
                entries: n_lost - *n_told,
            };
            entries.insert(0, AuditEntry::of_log(lost));
        }
        if entries.is_empty() {
            return;
        }
        loop {
            let mut appending = self.ledger.append(&entries);
            let appended = match timeout(SLOW_AFTER, &mut appending).await {
                Ok(appended) => appended,
                Err(_elapsed) => {
                    let seconds = SLOW_AFTER.as_secs();
                    self.note_failure(format!("it is not written after {seconds} s"));
                    appending.await
                }
            };
            let Err(error) = appended else {
                break;
            };
            self.note_failure(told(&error));
            if self.when_failing == WhenFailing::GoOn {
                self.n_lost.fetch_add(n_meant, Ordering::Relaxed);
                return;
            }
            sleep(RETRY_AFTER).await;
        }
        *n_told = n_lost;
        self.n_written.fetch_add(n_entries, Ordering::Relaxed);
        if !self.is_unsynced.load(Ordering::Relaxed) {
            self.note_success();
        }
    }
}

/// What came of work that is under way; without any there is nothing to wait for. Cancel safe.
async fn finished(work: &mut Option<Work<'_, Result<(), AuditError>>>) -> Result<(), AuditError> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

fn too_many() -> String {
    format!("{MAX_WAITING} entries wait to be written")
}

/// An error and its causes.
fn told(error: &AuditError) -> String {
    cocode_wire::chain(error)
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("ledger", &self.ledger)
            .field("when_failing", &self.when_failing)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
