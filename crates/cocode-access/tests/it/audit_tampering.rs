//! What somebody with an editor can do to the files of a log, and how it is found out, also after the
//! gateway went on writing.

use std::fs;
use std::path::Path;

use cocode_access::{AuditEntry, AuditLedger as _, AuditLine, AuditOutcome, Finding, Place};

use crate::audit_files::{entry, files, ledger_at, place, verified, write};

const LARGE: u64 = 1024 * 1024;

fn lines(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("audit.jsonl")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Puts lines in the place of the old ones, with the same file.
fn set_lines(directory: &Path, lines: &[String]) {
    let text: String = lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect();
    fs::write(directory.join("audit.jsonl"), text).unwrap();
}

fn at(line: u64) -> Place {
    Place {
        file: "audit.jsonl".to_owned(),
        line,
    }
}

/// Does something to a log of six lines, and says what verifying finds, before and after one more entry
/// is written.
async fn tampered(change: impl FnOnce(&mut Vec<String>)) -> (Vec<Finding>, Vec<Finding>) {
    let (_directory, path) = place();
    write(&ledger_at(&path, LARGE, 4), 6).await;
    let mut kept = lines(&path);
    change(&mut kept);
    set_lines(&path, &kept);
    let found = verified(&path).await.problems;
    write(&ledger_at(&path, LARGE, 4), 1).await;
    (found, verified(&path).await.problems)
}

#[tokio::test]
async fn a_changed_a_removed_a_swapped_and_an_inserted_line_are_found_by_name() {
    let changed = tampered(|lines| lines[2] = lines[2].replace("alice", "mallory")).await;
    let finding = Finding::Changed {
        place: at(3),
        seq: 3,
    };
    assert_eq!(changed, (vec![finding.clone()], vec![finding]));

    let removed = tampered(|lines| drop(lines.remove(2))).await;
    let finding = Finding::Removed {
        place: at(3),
        from: 3,
        through: 3,
    };
    assert_eq!(removed, (vec![finding.clone()], vec![finding]));

    let swapped = tampered(|lines| lines.swap(2, 3)).await;
    let finding = Finding::OutOfOrder {
        place: at(4),
        seq: 3,
    };
    assert_eq!(swapped, (vec![finding.clone()], vec![finding]));

    let inserted = tampered(|lines| {
        let before = AuditLine::parse(&lines[1]).unwrap();
        let forged = AuditEntry::now("tools/call", AuditOutcome::Denied);
        let forged = AuditLine::after(before.head(), &forged);
        lines.insert(2, forged.text().to_owned());
    })
    .await;
    let finding = Finding::Inserted {
        place: at(3),
        seq: 3,
    };
    assert_eq!(inserted, (vec![finding.clone()], vec![finding]));
}

#[tokio::test]
async fn a_cut_tail_is_found_and_stays_known_after_the_log_went_on() {
    let (before, after) = tampered(|lines| lines.truncate(4)).await;
    let [Finding::TailCut { last: 4, expected }] = before[..] else {
        panic!("{before:?}");
    };
    assert_eq!(expected.seq, 6);
    assert_eq!(after, [Finding::TailLost { expected }]);
    let (before, after) = tampered(Vec::clear).await;
    assert_eq!(
        before,
        [Finding::TailCut {
            last: 0,
            expected: expected_of(&before)
        }]
    );
    assert_eq!(after.len(), 1, "{after:?}");
}

fn expected_of(findings: &[Finding]) -> cocode_access::AuditHead {
    match findings {
        [Finding::TailCut { expected, .. }] => *expected,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_last_line_cannot_be_changed_unnoticed_and_the_log_goes_on_all_the_same() {
    let (before, after) = tampered(|lines| lines[5] = lines[5].replace("alice", "mallory")).await;
    assert!(
        !before.is_empty() && !after.is_empty(),
        "{before:?} {after:?}"
    );
    let (before, after) = tampered(|lines| lines[5] = "gone".to_owned()).await;
    assert!(
        before.contains(&Finding::NotALine { place: at(6) }),
        "{before:?}"
    );
    assert!(
        after.contains(&Finding::NotALine { place: at(6) }),
        "{after:?}"
    );
    let (before, after) = tampered(|lines| {
        let last = AuditLine::parse(&lines[4]).unwrap();
        let forged = AuditLine::after(last.head(), &entry("forged"));
        lines[5] = forged.text().to_owned();
    })
    .await;
    assert!(
        matches!(before[..], [Finding::Rewritten { .. }]),
        "{before:?}"
    );
    assert!(matches!(after[..], [Finding::TailLost { .. }]), "{after:?}");
}

#[tokio::test]
async fn a_file_that_is_missing_in_the_middle_is_found() {
    let (_directory, path) = place();
    write(&ledger_at(&path, 1_000, 100), 12).await;
    let names = files(&path);
    fs::remove_file(path.join(&names[1])).unwrap();
    let problems = verified(&path).await.problems;
    let [
        Finding::FileMissing {
            place,
            from,
            through,
        },
    ] = &problems[..]
    else {
        panic!("{problems:?}");
    };
    assert_eq!((place.file.as_str(), place.line), (names[2].as_str(), 1));
    assert!(from <= through);
    let shown = problems[0].to_string();
    assert!(shown.contains("is missing before this one"), "{shown}");
}

#[tokio::test]
async fn files_that_changed_their_names_are_found() {
    let (_directory, path) = place();
    write(&ledger_at(&path, 1_000, 100), 12).await;
    let names = files(&path);
    let (one, other) = (path.join(&names[0]), path.join(&names[1]));
    let aside = path.join("aside");
    fs::rename(&one, &aside).unwrap();
    fs::rename(&other, &one).unwrap();
    fs::rename(&aside, &other).unwrap();
    assert!(!verified(&path).await.is_intact());
}

#[tokio::test]
async fn a_note_of_the_last_line_that_cannot_be_read_is_told_and_replaced() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, LARGE, 4);
    write(&ledger, 2).await;
    fs::write(path.join("audit.head"), "nonsense").unwrap();
    let problems = verified(&path).await.problems;
    assert!(
        matches!(problems[..], [Finding::BadHead { .. }]),
        "{problems:?}"
    );
    write(&ledger_at(&path, LARGE, 4), 1).await;
    assert!(verified(&path).await.is_intact());
}

#[tokio::test]
async fn no_client_can_write_lines_of_its_own() {
    let (_directory, path) = place();
    let ledger = ledger_at(&path, LARGE, 4);
    let forged = AuditLine::after(cocode_access::AuditHead::START, &entry("forged"));
    let text = format!(
        "x\n{}\n\u{2028}{}\r\u{85}\u{1b}[2J",
        forged.text(),
        forged.text()
    );
    let evil = AuditEntry {
        principal: Some(text.clone()),
        client: Some(text.clone()),
        name: Some(text.clone()),
        arguments: Some(format!(
            "{{\"a\":{}}}\n",
            serde_json::Value::from(text.as_str())
        )),
        ..entry("")
    };
    ledger.append(&[evil]).await.unwrap();
    write(&ledger, 1).await;
    let kept = fs::read_to_string(path.join("audit.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 2);
    assert!(
        kept.bytes()
            .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
    );
    assert!(verified(&path).await.is_intact());
    let read: serde_json::Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
    assert_eq!(read["arguments"]["a"], text.as_str());
    let name = read["name"].as_str().unwrap().trim_end_matches('…');
    assert!(text.starts_with(name));
}
