//! Verifying: each way to tamper with a chain is told by its name, and none goes unnoticed.

use proptest::prelude::*;

use super::Verifier;
use crate::audit::{
    AuditEntry, AuditEvent, AuditHash, AuditHead, AuditLine, AuditOutcome, Finding, Place,
    VerifyReport,
};

fn chain(length: usize) -> Vec<String> {
    chain_after(AuditHead::START, length)
}

fn chain_after(mut last: AuditHead, length: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for number in 0..length {
        let mut entry = AuditEntry::now("tools/call", AuditOutcome::Ok);
        entry.name = Some(format!("tool-{number}"));
        let line = AuditLine::after(last, &entry);
        last = line.head();
        lines.push(line.text().to_owned());
    }
    lines
}

fn parsed(line: &str) -> AuditLine {
    AuditLine::parse(line).unwrap()
}

fn heads(lines: &[String]) -> Vec<AuditHead> {
    lines.iter().map(|line| parsed(line).head()).collect()
}

fn verified(lines: &[String], expected: Option<AuditHead>) -> VerifyReport {
    verified_files(&[lines], expected)
}

fn verified_files(files: &[&[String]], expected: Option<AuditHead>) -> VerifyReport {
    let mut verifier = Verifier::new(expected);
    for (number, lines) in files.iter().enumerate() {
        verifier.file(format!("file-{number}"));
        for line in *lines {
            verifier.line(line.as_bytes());
        }
    }
    verifier.finish()
}

fn place(line: u64) -> Place {
    Place {
        file: "file-0".to_owned(),
        line,
    }
}

#[test]
fn an_untouched_chain_is_intact() {
    let lines = chain(5);
    let report = verified(&lines, Some(heads(&lines)[2]));
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.n_files, report.n_lines), (1, 5));
    assert_eq!(report.first, Some(heads(&lines)[0]));
    assert_eq!(report.last, Some(heads(&lines)[4]));
    assert_eq!(report.notes, []);
    let nothing = verified(&[], None);
    assert!(nothing.is_intact());
    assert_eq!(nothing.last, None);
}

#[test]
fn a_changed_line_is_named_also_if_its_own_hash_was_made_to_fit() {
    let mut lines = chain(5);
    lines[2] = lines[2].replace("tool-2", "tool-9");
    let changed = Finding::Changed {
        place: place(3),
        seq: 3,
    };
    assert_eq!(
        verified(&lines, None).problems,
        std::slice::from_ref(&changed)
    );
    let mut lines = chain(5);
    let other = AuditEntry::now("tools/call", AuditOutcome::Denied);
    lines[2] = AuditLine::after(heads(&lines)[1], &other).text().to_owned();
    assert_eq!(verified(&lines, None).problems, [changed]);
}

#[test]
fn a_removed_line_is_named() {
    let mut lines = chain(5);
    lines.drain(1..3);
    let removed = Finding::Removed {
        place: place(2),
        from: 2,
        through: 3,
    };
    assert_eq!(verified(&lines, None).problems, [removed]);
}

#[test]
fn swapped_lines_are_named() {
    let mut lines = chain(6);
    lines.swap(2, 3);
    let swapped = Finding::OutOfOrder {
        place: place(4),
        seq: 3,
    };
    assert_eq!(verified(&lines, None).problems, [swapped]);
    let mut lines = chain(9);
    let moved = lines.remove(3);
    lines.remove(3);
    lines.remove(3);
    lines.insert(5, moved);
    assert_eq!(
        verified(&lines, None).problems,
        [
            Finding::Removed {
                place: place(4),
                from: 5,
                through: 6
            },
            Finding::OutOfOrder {
                place: place(6),
                seq: 4
            },
        ]
    );
}

#[test]
fn an_inserted_line_is_named_wherever_it_was_put() {
    let honest = chain(5);
    let known = heads(&honest);
    let other = AuditEntry::now("tools/call", AuditOutcome::Denied);
    let forged = AuditLine::after(known[1], &other).text().to_owned();
    for (index, at, seq) in [(2, 3, 3), (3, 4, 3)] {
        let mut lines = honest.clone();
        lines.insert(index, forged.clone());
        let inserted = Finding::Inserted {
            place: place(at),
            seq,
        };
        assert_eq!(verified(&lines, None).problems, [inserted], "{index}");
    }
    let mut lines = honest.clone();
    lines.insert(2, forged.replace("denied", "ok"));
    let inserted = Finding::Inserted {
        place: place(3),
        seq: 3,
    };
    assert_eq!(verified(&lines, None).problems, [inserted]);
    let mut lines = honest.clone();
    lines.insert(4, lines[1].clone());
    let copied = Finding::Inserted {
        place: place(5),
        seq: 2,
    };
    assert_eq!(verified(&lines, None).problems, [copied]);
    let mut lines = honest;
    lines.insert(1, "nothing like a line".to_owned());
    let odd = Finding::NotALine { place: place(2) };
    assert_eq!(verified(&lines, None).problems, [odd]);
}

#[test]
fn a_cut_tail_is_known_by_a_line_that_was_there() {
    let lines = chain(5);
    let expected = heads(&lines)[4];
    let report = verified(&lines[..3], Some(expected));
    assert_eq!(report.problems, [Finding::TailCut { last: 3, expected }]);
    assert!(verified(&lines[..3], None).is_intact());
    assert_eq!(
        verified(&[], Some(expected)).problems,
        [Finding::TailCut { last: 0, expected }]
    );
}

#[test]
fn a_chain_that_was_written_anew_is_known_by_a_line_that_was_there() {
    let expected = heads(&chain(5))[4];
    let mut anew = Vec::new();
    let mut last = AuditHead::START;
    for _ in 0..6 {
        let line = AuditLine::after(last, &AuditEntry::now("x", AuditOutcome::Ok));
        last = line.head();
        anew.push(line.text().to_owned());
    }
    let report = verified(&anew, Some(expected));
    assert_eq!(report.problems, [Finding::Rewritten { expected }]);
}

#[test]
fn a_file_that_is_missing_in_the_middle_is_named() {
    let lines = chain(9);
    let report = verified_files(&[&lines[..3], &lines[6..]], None);
    let missing = Finding::FileMissing {
        place: Place {
            file: "file-1".to_owned(),
            line: 1,
        },
        from: 4,
        through: 6,
    };
    assert_eq!(report.problems, [missing]);
    assert!(verified_files(&[&lines[..3], &lines[3..6], &lines[6..]], None).is_intact());
}

#[test]
fn a_chain_may_begin_later_only_if_it_says_so() {
    let lines = chain(6);
    let report = verified(&lines[3..], None);
    assert_eq!(report.problems, [Finding::StartMissing { first: 4 }]);
    let known = heads(&lines);
    let said = |through| {
        let event = AuditEvent::Retention {
            file: "audit-1.jsonl".to_owned(),
            through,
        };
        let mut kept = lines[3..].to_vec();
        let line = AuditLine::after(known[5], &AuditEntry::of_log(event));
        kept.push(line.text().to_owned());
        verified(&kept, None)
    };
    let report = said(known[2]);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.notes, [Finding::Retention { through: 3 }]);
    let elsewhere = AuditHead {
        seq: 3,
        hash: AuditHash::ZERO,
    };
    for other in [known[1], elsewhere] {
        let report = said(other);
        assert_eq!(report.problems, [Finding::StartMissing { first: 4 }]);
    }
}

/// The end of a chain that says that all before it was removed, and whether a line is expected.
fn kept_of(lines: &[String], n_removed: usize, expected: AuditHead) -> VerifyReport {
    let known = heads(lines);
    let event = AuditEvent::Retention {
        file: "audit-1.jsonl".to_owned(),
        through: known[n_removed - 1],
    };
    let mut kept = lines[n_removed..].to_vec();
    let line = AuditLine::after(*known.last().unwrap(), &AuditEntry::of_log(event));
    kept.push(line.text().to_owned());
    verified(&kept, Some(expected))
}

#[test]
fn a_chain_that_was_written_anew_is_known_by_the_line_before_its_first() {
    let honest = chain(6);
    let expected = heads(&honest)[2];
    assert!(kept_of(&honest, 3, expected).is_intact());
    let start = AuditHead {
        seq: 0,
        hash: AuditHash::from_bytes([1; 32]),
    };
    let anew = chain_after(start, 6);
    let report = kept_of(&anew, 3, expected);
    assert_eq!(report.problems, [Finding::Rewritten { expected }]);
}

#[test]
fn a_chain_is_not_intact_by_a_line_that_it_says_nothing_of_any_more() {
    let lines = chain(6);
    let expected = heads(&lines)[1];
    let report = kept_of(&lines, 3, expected);
    let too_old = Finding::TooOld { first: 4, expected };
    assert!(!report.is_intact());
    assert_eq!(report.problems, [too_old]);
    let told = report.problems[0].to_string();
    for part in ["entry 2 cannot be compared", "removed", "keep a newer"] {
        assert!(told.contains(part), "{told}");
    }
    // Without an explanation, that is the problem.
    let report = verified(&lines[3..], Some(expected));
    assert_eq!(report.problems, [Finding::StartMissing { first: 4 }]);
}

#[test]
fn a_torn_line_is_explained_only_by_the_line_that_healed_it() {
    let mut lines = chain(3);
    let last = heads(&lines)[2];
    let torn = "{\"seq\":4,\"at";
    let event = AuditEvent::Healed {
        bytes: torn.len() as u64,
        sha256: AuditHash::from_bytes(crate::digest::sha256(torn.as_bytes())),
        torn: true,
    };
    let healing = AuditLine::after(last, &AuditEntry::of_log(event));
    lines.push(torn.to_owned());
    lines.push(healing.text().to_owned());
    let report = verified(&lines, None);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.notes, [Finding::Torn { place: place(4) }]);

    let mut other = lines.clone();
    other[3] = "{\"seq\":4,\"bt".to_owned();
    let odd = Finding::NotALine { place: place(4) };
    assert_eq!(verified(&other, None).problems, [odd]);
    lines.remove(3);
    let changed = Finding::Changed {
        place: place(4),
        seq: 4,
    };
    assert_eq!(verified(&lines, None).problems, [changed]);
}

#[test]
fn an_unfinished_line_at_the_end_is_a_note_and_a_whole_one_counts() {
    let lines = chain(2);
    let mut verifier = Verifier::new(None);
    verifier.file("file-0");
    verifier.line(lines[0].as_bytes());
    verifier.unfinished_line(b"{\"seq\":2");
    let report = verifier.finish();
    assert!(report.is_intact());
    assert_eq!(report.notes, [Finding::Torn { place: place(2) }]);
    let mut verifier = Verifier::new(None);
    verifier.file("file-0");
    verifier.line(lines[0].as_bytes());
    verifier.unfinished_line(lines[1].as_bytes());
    let report = verifier.finish();
    assert_eq!((report.n_lines, report.notes.len()), (2, 0));
}

#[test]
fn what_happened_to_the_log_is_told() {
    let mut lines = chain(2);
    let expected = AuditHead {
        seq: 9,
        hash: AuditHash::ZERO,
    };
    for event in [
        AuditEvent::Lost { entries: 3 },
        AuditEvent::TailLost { expected },
        AuditEvent::Started {
            version: "1.2.3".to_owned(),
        },
    ] {
        let last = *heads(&lines).last().unwrap();
        let line = AuditLine::after(last, &AuditEntry::of_log(event));
        lines.push(line.text().to_owned());
    }
    let report = verified(&lines, None);
    assert_eq!(report.problems, [Finding::TailLost { expected }]);
    let lost = Finding::Lost {
        place: place(3),
        entries: 3,
    };
    assert_eq!(report.notes, [lost]);
}

#[test]
fn findings_are_bounded_and_the_rest_is_counted() {
    let lines: Vec<String> = chain(400).into_iter().step_by(2).collect();
    let report = verified(&lines, None);
    assert_eq!(report.problems.len(), 100);
    assert_eq!(report.n_more_problems, 99);
    assert!(!report.is_intact());
}

/// One thing that is done to a chain.
#[derive(Clone, Debug)]
enum Tampering {
    Flip(prop::sample::Index, prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Rehash(prop::sample::Index),
    Forge(prop::sample::Index),
    Cut(prop::sample::Index),
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), index(), 0_u8..8).prop_map(|(line, byte, bit)| Tampering::Flip(line, byte, bit)),
        index().prop_map(Tampering::Remove),
        (index(), index()).prop_map(|(from, to)| Tampering::Repeat(from, to)),
        (index(), index()).prop_map(|(one, other)| Tampering::Swap(one, other)),
        index().prop_map(Tampering::Rehash),
        index().prop_map(Tampering::Forge),
        index().prop_map(Tampering::Cut),
    ]
}

fn tamper(lines: &mut Vec<Vec<u8>>, tampering: &Tampering) {
    let n_lines = lines.len();
    if n_lines == 0 {
        return;
    }
    let forged = |last: AuditHead| {
        let entry = AuditEntry::now("forged", AuditOutcome::Ok);
        AuditLine::after(last, &entry).text().as_bytes().to_vec()
    };
    let head_before = |lines: &[Vec<u8>], index: usize| {
        let before = index.checked_sub(1).and_then(|index| lines.get(index));
        let line = before.and_then(|line| AuditLine::parse(std::str::from_utf8(line).ok()?));
        line.map_or(AuditHead::START, |line| line.head())
    };
    match tampering {
        Tampering::Flip(line, byte, bit) => {
            let line = &mut lines[line.index(n_lines)];
            let index = byte.index(line.len());
            line[index] ^= 1 << bit;
        }
        Tampering::Remove(index) => drop(lines.remove(index.index(n_lines))),
        Tampering::Repeat(from, to) => {
            let line = lines[from.index(n_lines)].clone();
            lines.insert(to.index(n_lines + 1), line);
        }
        Tampering::Swap(one, other) => lines.swap(one.index(n_lines), other.index(n_lines)),
        Tampering::Rehash(index) => {
            let index = index.index(n_lines);
            lines[index] = forged(head_before(lines, index));
        }
        Tampering::Forge(index) => {
            let index = index.index(n_lines + 1);
            let line = forged(head_before(lines, index));
            lines.insert(index, line);
        }
        Tampering::Cut(index) => lines.truncate(index.index(n_lines)),
    }
}

proptest! {
    #[test]
    fn nothing_can_be_done_to_a_chain_unnoticed(
        length in 1_usize..12,
        tamperings in prop::collection::vec(tampering(), 1..4),
    ) {
        let honest = chain(length);
        let expected = *heads(&honest).last().unwrap();
        let before: Vec<Vec<u8>> = honest.iter().map(|line| line.clone().into_bytes()).collect();
        let mut lines = before.clone();
        for one in &tamperings {
            tamper(&mut lines, one);
        }
        let mut verifier = Verifier::new([expected]);
        verifier.file("file-0");
        for line in &lines {
            verifier.line(line);
        }
        let report = verifier.finish();
        // Lines that were added after the known one are as good as any: whoever can write can append.
        let is_prefix = lines.starts_with(&before);
        prop_assert_eq!(report.is_intact(), is_prefix && chained(&lines), "{:?}", report);
    }
}

/// Whether each line follows the one before.
fn chained(lines: &[Vec<u8>]) -> bool {
    let mut last = AuditHead::START;
    lines.iter().all(|line| {
        let line = std::str::from_utf8(line).ok().and_then(AuditLine::parse);
        let follows = line
            .as_ref()
            .is_some_and(|line| line.previous() == last.hash && line.head().seq == last.seq + 1);
        last = line.map_or(last, |line| line.head());
        follows
    })
}
