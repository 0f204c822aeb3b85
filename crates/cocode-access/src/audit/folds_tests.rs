//! Counting what would be too many lines: bounded, and nothing of it lost.

use std::time::Duration;

use tokio::time::advance;

use super::{Folds, MAX_LINES, MAX_PRINCIPALS, MINUTE, Ripe};
use crate::audit::{AuditEntry, AuditOutcome};

fn entry(principal: &str) -> AuditEntry {
    AuditEntry {
        principal: Some(principal.to_owned()),
        client: Some("inspector".to_owned()),
        server: Some("files".to_owned()),
        name: Some("read".to_owned()),
        ..AuditEntry::now("tools/call", AuditOutcome::Limited)
    }
}

/// How many were counted.
fn counted(entries: &[AuditEntry]) -> u64 {
    entries.iter().map(|entry| entry.times.unwrap()).sum()
}

#[tokio::test(start_paused = true)]
async fn principals_are_remembered_up_to_a_number_and_all_others_together() {
    let folds = Folds::default();
    let (n_principals, n_each) = (2 * MAX_PRINCIPALS, u64::from(MAX_LINES) + 3);
    let mut n_lines = 0;
    for _ in 0..n_each {
        for number in 0..n_principals {
            n_lines += u64::from(folds.admit(entry(&format!("p{number}"))).is_some());
        }
    }
    assert_eq!(folds.windows().len(), MAX_PRINCIPALS + 1);
    assert_eq!(
        n_lines,
        (MAX_PRINCIPALS as u64 + 1) * u64::from(MAX_LINES),
        "each has its lines, and the others have those of one"
    );
    let folded = folds.take(Ripe::All);
    assert_eq!(folded.len(), MAX_PRINCIPALS + 1);
    assert_eq!(n_lines + counted(&folded), n_principals as u64 * n_each);
    let of_others: Vec<_> = folded
        .iter()
        .filter(|one| one.principal.is_none())
        .collect();
    assert_eq!(of_others.len(), 1);
    // Those whose minute is over make room.
    advance(MINUTE).await;
    assert!(folds.admit(entry("new")).is_some());
    assert_eq!(folds.windows().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_for_several_says_what_they_have_in_common_and_is_no_longer_than_others() {
    let folds = Folds::default();
    folds.fold(AuditEntry {
        arguments: Some("{}".to_owned()),
        client: Some("c".repeat(1 << 20)),
        ..entry("alice")
    });
    folds.fold(AuditEntry {
        name: Some("write".to_owned()),
        client: Some("c".repeat(1 << 20)),
        ..entry("alice")
    });
    let [folded] = &folds.take(Ripe::All)[..] else {
        panic!("one line");
    };
    assert_eq!(folded.times, Some(2));
    assert_eq!(folded.principal.as_deref(), Some("alice"));
    assert_eq!(folded.server.as_deref(), Some("files"));
    assert_eq!(folded.method, "tools/call");
    assert_eq!((&folded.name, &folded.arguments), (&None, &None));
    assert!(folded.client.as_ref().unwrap().len() < 2_000);
    for method in ["tools/call", "prompts/get", "prompts/get"] {
        folds.fold(AuditEntry {
            method: method.to_owned(),
            ..entry("alice")
        });
    }
    assert_eq!(folds.take(Ripe::All)[0].method, "several");
}

#[tokio::test(start_paused = true)]
async fn what_waits_after_its_minute_is_still_counted_in_one_line() {
    let folds = Folds::default();
    for _ in 0..15 {
        folds.admit(entry("alice"));
    }
    assert_eq!(folds.take(Ripe::Due), []);
    advance(MINUTE + Duration::from_secs(5)).await;
    assert_eq!(folds.admit(entry("alice")), None);
    folds.until_due().await;
    assert_eq!(counted(&folds.take(Ripe::Due)), 6);
    assert!(folds.admit(entry("alice")).is_some());
}
