//! The audit log in files: what is kept, put aside and removed, and that it goes on after a crash.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode_access::{
    AuditEntry, AuditEvent, AuditHead, AuditLedger as _, AuditLine, AuditLog, AuditOutcome,
    FileLedger, FileLedgerOptions, Finding, Place, VerifyReport, WhenFailing, verify_directory,
};
use tempfile::TempDir;

/// A log whose files take a few lines.
pub(crate) fn ledger_at(
    directory: &Path,
    max_file_bytes: u64,
    max_full_files: usize,
) -> FileLedger {
    FileLedger::new(FileLedgerOptions {
        max_file_bytes,
        max_full_files,
        is_durable: false,
        ..FileLedgerOptions::new(directory)
    })
}

pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit");
    (directory, path)
}

pub(crate) fn entry(name: &str) -> AuditEntry {
    AuditEntry {
        principal: Some("alice".to_owned()),
        server: Some("files".to_owned()),
        name: Some(name.to_owned()),
        ..AuditEntry::now("tools/call", AuditOutcome::Ok)
    }
}

/// Writes so many entries, each by itself.
pub(crate) async fn write(ledger: &FileLedger, count: usize) {
    for number in 0..count {
        let entry = entry(&format!("tool-{number}"));
        ledger.append(&[entry]).await.unwrap();
    }
}

pub(crate) async fn verified(directory: &Path) -> VerifyReport {
    verify_directory(directory, None).await.unwrap()
}

/// Names of the files of a log, sorted.
pub(crate) fn files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".jsonl"))
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

const LARGE: u64 = 1024 * 1024;

#[tokio::test]
async fn entries_are_lines_that_follow_each_other_also_after_a_restart() {
    let (_directory, path) = place();
    write(&ledger_at(&path, LARGE, 4), 3).await;
    let again = ledger_at(&path, LARGE, 4);
    again.append(&[entry("a"), entry("b")]).await.unwrap();
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.n_files, report.n_lines), (1, 5));
    assert_eq!(report.first.unwrap().seq, 1);
    assert_eq!(report.notes, []);
    let text = fs::read_to_string(path.join("audit.jsonl")).unwrap();
    let lines: Vec<AuditLine> = text
        .lines()
        .map(|line| AuditLine::parse(line).unwrap())
        .collect();
    assert_eq!(Some(lines[4].head()), report.last);
    for name in ["audit.jsonl", "audit.head", "audit.lock"] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&path), 0o700);
    let recent = again.recent(2).await.unwrap();
    assert_eq!(recent, [lines[4].clone(), lines[3].clone()]);
}

#[tokio::test]
async fn nothing_is_made_by_looking() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, LARGE, 4);
    assert_eq!(ledger.recent(5).await.unwrap(), []);
    assert!(verified(&path).await.is_intact());
    assert!(!path.exists());
}

#[tokio::test]
async fn a_full_file_is_put_aside_and_the_chain_goes_on() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, 1_000, 100);
    write(&ledger, 20).await;
    let names = files(&path);
    assert!(names.len() > 4, "{names:?}");
    assert_eq!(names[0], "audit-00000000000000000001.jsonl");
    assert_eq!(names.last().unwrap(), "audit.jsonl");
    for name in &names {
        assert!(
            fs::metadata(path.join(name)).unwrap().len() <= 1_000,
            "{name}"
        );
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.n_lines, report.n_files), (20, names.len() as u64));
    // The first line of a file names the last one of the file before.
    let of = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    let last = AuditLine::parse(of(&names[0]).lines().last().unwrap()).unwrap();
    let first = AuditLine::parse(of(&names[1]).lines().next().unwrap()).unwrap();
    assert_eq!(first.previous(), last.head().hash);
    let recent = ledger.recent(20).await.unwrap();
    let numbers: Vec<u64> = recent.iter().map(|line| line.head().seq).collect();
    assert_eq!(numbers, (1..=20).rev().collect::<Vec<_>>());
    // A restart with an empty file goes on after the last full one.
    fs::remove_file(path.join("audit.head")).unwrap();
    fs::rename(
        path.join("audit.jsonl"),
        path.join("audit-00000000000000000020.jsonl"),
    )
    .unwrap();
    write(&ledger_at(&path, 1_000, 100), 1).await;
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.last.unwrap().seq, 21);
}

#[tokio::test]
async fn old_files_are_removed_as_configured_and_the_log_says_so() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, 1_500, 2);
    write(&ledger, 40).await;
    let names = files(&path);
    assert_eq!(names.len(), 3, "{names:?}");
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
    let first = report.first.unwrap().seq;
    assert!(first > 1);
    assert_eq!(report.notes, [Finding::Retention { through: first - 1 }]);
    // Somebody removes one more.
    fs::remove_file(path.join(&names[0])).unwrap();
    let report = verified(&path).await;
    let first = report.first.unwrap().seq;
    assert_eq!(report.problems, [Finding::StartMissing { first }]);
}

#[tokio::test]
async fn entries_older_than_the_configured_age_are_removed() {
    const DAY: Duration = Duration::from_hours(24);
    let (_directory, path) = place();
    let ledger = FileLedger::new(FileLedgerOptions {
        max_age: Some(16 * DAY),
        is_durable: false,
        ..FileLedgerOptions::new(&path)
    });
    for days in [40, 10, 0] {
        let mut entry = entry(&format!("{days}-days-ago"));
        entry.at = SystemTime::now().checked_sub(days * DAY).unwrap();
        ledger.append(&[entry]).await.unwrap();
    }
    let lines = ledger.recent(100).await.unwrap();
    let has = |name: &str| lines.iter().any(|line| line.text().contains(name));
    assert!(!has("40-days-ago"), "{lines:?}");
    assert!(has("10-days-ago") && has("0-days-ago"), "{lines:?}");
    assert!(verified(&path).await.is_intact());
}

#[tokio::test]
async fn a_line_that_a_crash_tore_is_healed_and_explained_wherever_it_was_cut() {
    let (_directory, original) = place();
    write(&ledger_at(&original, LARGE, 4), 3).await;
    let text = fs::read(original.join("audit.jsonl")).unwrap();
    let second_ends = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(1)
        .unwrap()
        .0;
    for length in (second_ends + 1..=text.len())
        .step_by(5)
        .chain([text.len() - 1])
    {
        let (_directory, path) = place();
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let current = path.join("audit.jsonl");
        fs::write(&current, &text[..length]).unwrap();
        fs::set_permissions(&current, fs::Permissions::from_mode(0o600)).unwrap();
        let is_torn = (second_ends + 2..text.len() - 1).contains(&length);
        let torn = Finding::Torn {
            place: Place {
                file: "audit.jsonl".to_owned(),
                line: 3,
            },
        };
        let notes: &[Finding] = if is_torn { &[torn] } else { &[] };
        let report = verified(&path).await;
        assert!(report.is_intact(), "{length}: {report:?}");
        assert_eq!(report.notes, notes, "{length}");
        write(&ledger_at(&path, LARGE, 4), 2).await;
        let report = verified(&path).await;
        assert!(report.is_intact(), "{length}: {report:?}");
        assert_eq!(report.notes, notes, "{length}");
        let whole = if length >= text.len() - 1 { 3 } else { 2 };
        assert_eq!(report.n_lines, whole + 2 + u64::from(is_torn), "{length}");
    }
}

#[tokio::test]
async fn a_log_that_cannot_be_written_refuses_calls_until_it_can() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, LARGE, 4);
    write(&ledger, 1).await;
    let aside = path.join("aside");
    fs::rename(path.join("audit.jsonl"), &aside).unwrap();
    fs::create_dir(path.join("audit.jsonl")).unwrap();
    let log = AuditLog::start(Arc::new(ledger), WhenFailing::Refuse);
    log.reserve().unwrap().write(entry("waits"));
    let not_written = log.flush(Duration::from_millis(300)).await.unwrap_err();
    assert!(not_written.why.contains("audit.jsonl"), "{not_written}");
    assert!(log.reserve().is_err());
    fs::remove_dir(path.join("audit.jsonl")).unwrap();
    fs::rename(&aside, path.join("audit.jsonl")).unwrap();
    log.flush(Duration::from_secs(20)).await.unwrap();
    assert!(log.reserve().is_ok());
    log.close(Duration::from_secs(20)).await.unwrap();
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.n_lines, 2);
}

#[tokio::test]
async fn a_log_that_cannot_be_written_from_its_start_is_known_before_the_first_call() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, LARGE, 4);
    // It is made with the permissions that it has to have.
    write(&ledger, 1).await;
    fs::rename(path.join("audit.jsonl"), path.join("aside")).unwrap();
    fs::create_dir(path.join("audit.jsonl")).unwrap();
    let log = AuditLog::start(Arc::new(ledger.clone()), WhenFailing::Refuse);
    let limit = Duration::from_secs(20);
    let not_begun = log.begin("1.2.3", limit).await.unwrap_err();
    assert!(not_begun.why.contains("audit.jsonl"), "{not_begun}");
    assert!(log.reserve().is_err());
    fs::remove_dir(path.join("audit.jsonl")).unwrap();
    fs::rename(path.join("aside"), path.join("audit.jsonl")).unwrap();
    log.flush(limit).await.unwrap();
    log.reserve().unwrap().write(entry("first"));
    log.close(limit).await.unwrap();
    let lines = ledger.recent(10).await.unwrap();
    let version = "1.2.3".to_owned();
    let events: Vec<_> = lines.iter().map(AuditLine::event).collect();
    assert_eq!(events, [None, Some(&AuditEvent::Started { version }), None]);
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
}

#[tokio::test]
async fn a_line_that_is_known_from_elsewhere_and_older_than_the_log_is_not_taken_on_trust() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, 1_500, 2);
    write(&ledger, 1).await;
    let oldest = verified(&path).await.last.unwrap();
    write(&ledger, 39).await;
    let report = verify_directory(&path, Some(oldest)).await.unwrap();
    let first = report.first.unwrap().seq;
    let expected = oldest;
    assert_eq!(report.problems, [Finding::TooOld { first, expected }]);
    // The last one that was removed is still named by the first that is left.
    let names = files(&path);
    let text = fs::read_to_string(path.join(&names[0])).unwrap();
    let line = AuditLine::parse(text.lines().next().unwrap()).unwrap();
    let removed = AuditHead {
        seq: first - 1,
        hash: line.previous(),
    };
    let report = verify_directory(&path, Some(removed)).await.unwrap();
    assert!(report.is_intact(), "{report:?}");
    let expected = AuditHead {
        hash: oldest.hash,
        ..removed
    };
    let report = verify_directory(&path, Some(expected)).await.unwrap();
    assert_eq!(report.problems, [Finding::Rewritten { expected }]);
}

#[tokio::test]
async fn a_copy_that_others_may_read_can_be_verified_but_not_be_written_to() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, LARGE, 4);
    write(&ledger, 2).await;
    fs::remove_file(path.join("audit.lock")).unwrap();
    let current = path.join("audit.jsonl");
    fs::set_permissions(&current, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(verified(&path).await.is_intact());
    assert!(!path.join("audit.lock").exists());
    let again = ledger_at(&path, LARGE, 4);
    let error = again.append(&[entry("x")]).await.unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}

#[tokio::test]
async fn a_line_that_is_known_from_elsewhere_is_looked_for() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, LARGE, 4);
    write(&ledger, 3).await;
    let head = verified(&path).await.last.unwrap();
    write(&ledger, 2).await;
    let report = verify_directory(&path, Some(head)).await.unwrap();
    assert!(report.is_intact(), "{report:?}");
    let other = AuditHead { seq: 2, ..head };
    let report = verify_directory(&path, Some(other)).await.unwrap();
    assert_eq!(report.problems, [Finding::Rewritten { expected: other }]);
    let missing = verify_directory(path.join("nowhere"), Some(head))
        .await
        .unwrap();
    assert_eq!(
        missing.problems,
        [Finding::TailCut {
            last: 0,
            expected: head
        }]
    );
}
