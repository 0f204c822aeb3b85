//! From calls to a ledger: what is written, and what happens when it cannot be.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::{AuditLog, AuditSlot, MAX_WAITING, WhenFailing};
use crate::Work;
use crate::audit::{
    AuditEntry, AuditError, AuditEvent, AuditHead, AuditLedger, AuditLine, AuditOutcome,
    VerifyReport,
};

/// Keeps entries in memory, fails if it is told to, and writes nothing while its gate is closed.
#[derive(Debug)]
struct Scripted {
    written: Mutex<Vec<AuditEntry>>,
    is_full: AtomicBool,
    is_unsynced: AtomicBool,
    n_appends: AtomicU64,
    gate: Semaphore,
}

impl Scripted {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            written: Mutex::default(),
            is_full: AtomicBool::new(false),
            is_unsynced: AtomicBool::new(false),
            n_appends: AtomicU64::new(0),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    fn names(&self) -> Vec<String> {
        let written = self.written.lock().unwrap();
        let name = |entry: &AuditEntry| match &entry.event {
            Some(AuditEvent::Lost { entries }) => format!("lost {entries}"),
            _ => entry.name.clone().unwrap(),
        };
        written.iter().map(name).collect()
    }
}

impl AuditLedger for Scripted {
    fn append<'a>(&'a self, entries: &'a [AuditEntry]) -> Work<'a, Result<(), AuditError>> {
        Box::pin(async move {
            self.gate.acquire().await.unwrap().forget();
            self.n_appends.fetch_add(1, Ordering::Relaxed);
            if self.is_full.load(Ordering::Relaxed) {
                return Err(AuditError::Io {
                    action: "write",
                    path: "audit.jsonl".into(),
                    source: std::io::ErrorKind::StorageFull.into(),
                });
            }
            self.written.lock().unwrap().extend_from_slice(entries);
            Ok(())
        })
    }

    fn sync(&self) -> Work<'_, Result<(), AuditError>> {
        let failed = AuditError::Io {
            action: "write",
            path: "audit.jsonl".into(),
            source: std::io::ErrorKind::QuotaExceeded.into(),
        };
        let is_synced = !self.is_unsynced.load(Ordering::Relaxed);
        let synced = is_synced.then_some(()).ok_or(failed);
        Box::pin(std::future::ready(synced))
    }

    fn recent(&self, _limit: usize) -> Work<'_, Result<Vec<AuditLine>, AuditError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn verify(&self, _expected: Option<AuditHead>) -> Work<'_, Result<VerifyReport, AuditError>> {
        Box::pin(std::future::ready(Ok(VerifyReport::default())))
    }
}

fn entry(name: &str) -> AuditEntry {
    AuditEntry {
        name: Some(name.to_owned()),
        ..AuditEntry::now("tools/call", AuditOutcome::Ok)
    }
}

fn log(ledger: &Arc<Scripted>, when_failing: WhenFailing) -> AuditLog {
    let ledger: Arc<Scripted> = Arc::clone(ledger);
    AuditLog::start(ledger, when_failing)
}

const SOON: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn what_is_said_is_written_in_its_order() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    let (first, second) = (log.reserve().unwrap(), log.reserve().unwrap());
    let given_up = log.reserve().unwrap();
    second.write(entry("second"));
    first.write(entry("first"));
    assert_eq!(log.health().n_waiting, 3);
    drop(given_up);
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.names(), ["second", "first"]);
    let health = log.health();
    assert_eq!(
        (health.n_written, health.n_waiting, health.n_lost),
        (2, 0, 0)
    );
    log.reserve().unwrap().write(entry("third"));
    log.close(SOON).await.unwrap();
    assert_eq!(ledger.names(), ["second", "first", "third"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_written_at_once() {
    let ledger = Scripted::new();
    ledger.gate.forget_permits(Semaphore::MAX_PERMITS);
    let log = log(&ledger, WhenFailing::Refuse);
    for number in 0..200 {
        log.reserve().unwrap().write(entry(&number.to_string()));
    }
    ledger.gate.add_permits(10);
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.names().len(), 200);
    assert!(ledger.n_appends.load(Ordering::Relaxed) <= 3);
}

#[tokio::test(start_paused = true)]
async fn while_the_disk_is_full_calls_are_refused_and_nothing_is_lost() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    ledger.is_full.store(true, Ordering::Relaxed);
    let begun_before = log.reserve().unwrap();
    log.reserve().unwrap().write(entry("first"));
    let not_written = log.flush(SOON).await.unwrap_err();
    assert!(
        not_written.why.contains("cannot write `audit.jsonl`"),
        "{not_written}"
    );
    let refused = log.reserve().unwrap_err();
    assert!(refused.to_string().contains("cannot write"), "{refused}");
    begun_before.write(entry("second"));
    ledger.is_full.store(false, Ordering::Relaxed);
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.names(), ["first", "second"]);
    assert_eq!(log.health().failing, None);
    log.reserve().unwrap().write(entry("third"));
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.names().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn if_calls_go_on_the_log_says_how_much_it_does_not_have() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::GoOn);
    ledger.is_full.store(true, Ordering::Relaxed);
    for number in 0..3 {
        log.reserve().unwrap().write(entry(&number.to_string()));
        log.flush(SOON).await.unwrap();
    }
    let health = log.health();
    assert_eq!((health.n_lost, health.n_written), (3, 0));
    assert!(health.failing.is_some());
    ledger.is_full.store(false, Ordering::Relaxed);
    for name in ["a", "b"] {
        log.reserve().unwrap().write(entry(name));
        log.flush(SOON).await.unwrap();
    }
    assert_eq!(ledger.names(), ["lost 3", "a", "b"]);
    assert_eq!(log.health().failing, None);
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_a_full_one_refuses_or_counts() {
    for when_failing in [WhenFailing::Refuse, WhenFailing::GoOn] {
        let ledger = Scripted::new();
        ledger.gate.forget_permits(Semaphore::MAX_PERMITS);
        let log = log(&ledger, when_failing);
        let slots: Vec<AuditSlot> = (0..MAX_WAITING).map(|_| log.reserve().unwrap()).collect();
        match (when_failing, log.reserve()) {
            (WhenFailing::Refuse, Err(refused)) => {
                assert!(refused.why.contains("wait to be written"), "{refused}");
            }
            (WhenFailing::GoOn, Ok(slot)) => slot.write(entry("too many")),
            (_, other) => panic!("{when_failing:?}: {other:?}"),
        }
        drop(slots);
        log.reserve().unwrap().write(entry("next"));
        ledger.gate.add_permits(10);
        log.flush(SOON).await.unwrap();
        let expected: &[&str] = match when_failing {
            WhenFailing::Refuse => &["next"],
            WhenFailing::GoOn => &["lost 1", "next"],
        };
        assert_eq!(ledger.names(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_fails_is_tried_once_in_a_second() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    ledger.is_full.store(true, Ordering::Relaxed);
    log.reserve().unwrap().write(entry("first"));
    sleep(Duration::from_millis(9_500)).await;
    assert_eq!(ledger.n_appends.load(Ordering::Relaxed), 10);
}

fn limited(principal: &str) -> AuditEntry {
    AuditEntry {
        principal: Some(principal.to_owned()),
        // What comes of it is said by the log.
        ..entry("read")
    }
}

impl Scripted {
    /// Of a principal: lines that stand for themselves, and numbers that others stand for.
    fn limited(&self, principal: &str) -> (usize, Vec<u64>) {
        let written = self.written.lock().unwrap();
        let theirs = |entry: &&AuditEntry| {
            entry.principal.as_deref() == Some(principal) && entry.outcome == AuditOutcome::Limited
        };
        let theirs: Vec<&AuditEntry> = written.iter().filter(theirs).collect();
        let folded: Vec<u64> = theirs.iter().filter_map(|entry| entry.times).collect();
        (theirs.len() - folded.len(), folded)
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_at_a_limit_gets_ten_lines_in_a_minute_and_one_for_all_others() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    for _ in 0..MAX_WAITING {
        log.write_limited(limited("mallory"));
    }
    for _ in 0..3 {
        log.write_limited(limited("bob"));
    }
    // There is room for what others do.
    log.reserve().unwrap().write(entry("done"));
    sleep(Duration::from_secs(59)).await;
    assert_eq!(ledger.limited("mallory"), (10, vec![]));
    sleep(Duration::from_secs(2)).await;
    let n_others = MAX_WAITING as u64 - 10;
    assert_eq!(ledger.limited("mallory"), (10, vec![n_others]));
    assert_eq!(ledger.limited("bob"), (3, vec![]));
    // The next minute is like the first.
    for _ in 0..12 {
        log.write_limited(limited("mallory"));
    }
    sleep(Duration::from_secs(61)).await;
    assert_eq!(ledger.limited("mallory"), (20, vec![n_others, 2]));
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_is_written_when_the_log_is_flushed_and_closed() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    for _ in 0..25 {
        log.write_limited(limited("mallory"));
    }
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.limited("mallory"), (10, vec![15]));
    // Looking at the log gives nobody more lines.
    for _ in 0..5 {
        log.write_limited(limited("mallory"));
    }
    log.close(SOON).await.unwrap();
    assert_eq!(ledger.limited("mallory"), (10, vec![15, 5]));
}

#[tokio::test(start_paused = true)]
async fn what_a_limit_refuses_while_nothing_can_be_written_is_counted() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    ledger.is_full.store(true, Ordering::Relaxed);
    log.reserve().unwrap().write(entry("first"));
    log.flush(SOON).await.unwrap_err();
    for _ in 0..3 {
        log.write_limited(limited("mallory"));
    }
    ledger.is_full.store(false, Ordering::Relaxed);
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.limited("mallory"), (0, vec![3]));
    assert_eq!(log.health().n_lost, 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_for_several_that_is_lost_counts_as_all_of_them() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::GoOn);
    for _ in 0..30 {
        log.write_limited(limited("mallory"));
    }
    ledger.is_full.store(true, Ordering::Relaxed);
    log.flush(SOON).await.unwrap();
    assert_eq!(log.health().n_lost, 30);
}

#[tokio::test(start_paused = true)]
async fn a_log_begins_with_the_program_that_writes_it() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    log.begin("1.2.3", SOON).await.unwrap();
    assert!(log.reserve().is_ok());
    let version = "1.2.3".to_owned();
    let events: Vec<_> = ledger.written.lock().unwrap().clone();
    let events: Vec<_> = events.into_iter().map(|entry| entry.event).collect();
    assert_eq!(events, [Some(AuditEvent::Started { version })]);
}

#[tokio::test(start_paused = true)]
async fn with_a_ledger_that_is_unusable_from_the_start_not_even_one_call_is_made() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    ledger.is_full.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let not_begun = log.begin("1.2.3", SOON).await.unwrap_err();
    assert!(not_begun.why.contains("cannot write"), "{not_begun}");
    assert!(began.elapsed() < Duration::from_secs(1), "it is known");
    assert!(log.reserve().is_err());
    assert!(log.health().failing.is_some());
    ledger.is_full.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(2)).await;
    log.reserve().unwrap().write(entry("first"));
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.written.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_does_not_answer_at_the_start_refuses_calls_until_it_does() {
    let ledger = Scripted::new();
    ledger.gate.forget_permits(Semaphore::MAX_PERMITS);
    let log = log(&ledger, WhenFailing::Refuse);
    let meanwhile = async {
        sleep(Duration::from_secs(1)).await;
        log.reserve().is_err()
    };
    let (begun, is_refused) = tokio::join!(log.begin("1.2.3", SOON), meanwhile);
    assert!(is_refused);
    assert!(begun.unwrap_err().why.contains("after 3 s"));
    assert!(log.reserve().is_err());
    ledger.gate.add_permits(10);
    log.flush(SOON).await.unwrap();
    assert!(log.reserve().is_ok());
    assert_eq!(log.health().failing, None);
}

#[tokio::test(start_paused = true)]
async fn if_calls_go_on_they_do_so_from_the_start() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::GoOn);
    ledger.is_full.store(true, Ordering::Relaxed);
    assert!(log.begin("1.2.3", SOON).await.is_err());
    assert!(log.reserve().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_when_it_is_written_down() {
    let ledger = Scripted::new();
    ledger.gate.forget_permits(Semaphore::MAX_PERMITS);
    let log = log(&ledger, WhenFailing::Refuse);
    let begun = Instant::now();
    let writing = log.reserve().unwrap().write_before_answer(entry("a"));
    let opening = async {
        sleep(Duration::from_secs(1)).await;
        ledger.gate.add_permits(10);
    };
    tokio::join!(writing.wait(SOON), opening);
    assert_eq!(ledger.names(), ["a"]);
    assert_eq!(begun.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_hangs_refuses_calls_soon_and_keeps_no_answer_for_ever() {
    let ledger = Scripted::new();
    ledger.gate.forget_permits(Semaphore::MAX_PERMITS);
    let log = log(&ledger, WhenFailing::Refuse);
    let begun = Instant::now();
    let writing = log.reserve().unwrap().write_before_answer(entry("a"));
    writing.wait(SOON).await;
    assert_eq!(begun.elapsed(), SOON);
    let why = log.reserve().unwrap_err().why;
    assert!(why.contains("not written after 3 s"), "{why}");
    ledger.gate.add_permits(10);
    log.flush(SOON).await.unwrap();
    assert_eq!(ledger.names(), ["a"]);
    assert!(log.reserve().is_ok());
}

#[tokio::test(start_paused = true)]
async fn where_calls_go_on_without_the_log_no_answer_waits_for_it() {
    let ledger = Scripted::new();
    ledger.gate.forget_permits(Semaphore::MAX_PERMITS);
    let log = log(&ledger, WhenFailing::GoOn);
    let begun = Instant::now();
    let slot = log.reserve().unwrap();
    slot.write_before_answer(entry("a")).wait(SOON).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_get_to_the_disk_refuses_calls_until_it_does() {
    let ledger = Scripted::new();
    let log = log(&ledger, WhenFailing::Refuse);
    ledger.is_unsynced.store(true, Ordering::Relaxed);
    let slot = log.reserve().unwrap();
    slot.write_before_answer(entry("a")).wait(SOON).await;
    let flushed = log.flush(SOON).await;
    assert!(flushed.unwrap_err().why.contains("audit.jsonl"));
    assert!(log.reserve().is_err());
    // Nobody has to do anything.
    ledger.is_unsynced.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(2)).await;
    assert!(log.reserve().is_ok());
    assert_eq!(ledger.names(), ["a"]);
}
