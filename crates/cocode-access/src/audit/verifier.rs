//! Verifies a chain, line by line: whether each is as it was written, and follows the one before.
//!
//! A chain shows that something was done to it. It cannot show that all of it was written anew by
//! somebody who knows how: for that, one of its lines has to be known from elsewhere, which is what
//! `expected` is.

use super::entry::AuditEvent;
use super::hash::{AuditHash, AuditHead};
use super::line::{AuditLine, Read};
use super::report::{Finding, Place, VerifyReport};
use crate::digest::sha256;

/// Findings of each sort that are listed.
const MAX_FINDINGS: usize = 100;

/// Takes the lines of a log in their order, and says in the end what is wrong.
#[derive(Debug)]
pub struct Verifier {
    expected: Vec<AuditHead>,
    /// Those of the expected lines that were found with another hash.
    rewritten: Vec<AuditHead>,
    report: VerifyReport,
    place: Place,
    is_first_of_file: bool,
    /// What the first line names as the one before, and whether the log says that this was removed.
    removed_before: AuditHash,
    is_start_explained: bool,
    /// The last line, and the place in the chain before it.
    last: Step,
    before: AuditHead,
    /// A line that was taken for one too many, because the next one fits as well.
    rival: Option<Rival>,
    /// What is no line, and may be explained by the next one.
    odd: Option<Odd>,
}

/// A line that was taken.
#[derive(Clone, Debug)]
struct Step {
    head: AuditHead,
    place: Place,
    /// The problem that it was reported with, if it was.
    problem: Option<usize>,
    is_suspect: bool,
}

#[derive(Clone, Debug)]
struct Rival {
    head: AuditHead,
    problem: Option<usize>,
}

/// Something that is no line.
#[derive(Clone, Debug)]
struct Odd {
    place: Place,
    bytes: u64,
    sha256: AuditHash,
    is_unfinished: bool,
}

impl Verifier {
    /// Looks also for these lines. One that was removed, as it was configured, is compared with what the
    /// first line says of it; one that nothing is left of is a problem, because all may be written anew.
    pub fn new(expected: impl IntoIterator<Item = AuditHead>) -> Self {
        let mut unique: Vec<AuditHead> = Vec::new();
        for head in expected {
            if !unique.contains(&head) && head != AuditHead::START {
                unique.push(head);
            }
        }
        Self {
            expected: unique,
            rewritten: Vec::new(),
            report: VerifyReport::default(),
            place: Place::default(),
            is_first_of_file: true,
            removed_before: AuditHash::ZERO,
            is_start_explained: false,
            last: Step {
                head: AuditHead::START,
                place: Place::default(),
                problem: None,
                is_suspect: false,
            },
            before: AuditHead::START,
            rival: None,
            odd: None,
        }
    }

    /// Goes on with the next file, or table.
    pub fn file(&mut self, name: impl Into<String>) {
        self.report.n_files += 1;
        self.place = Place {
            file: name.into(),
            line: 0,
        };
        self.is_first_of_file = true;
    }

    /// Takes the next line, without its end.
    pub fn line(&mut self, bytes: &[u8]) {
        self.take(bytes, false);
    }

    /// Takes what stands at the end of a file without the end of a line.
    pub fn unfinished_line(&mut self, bytes: &[u8]) {
        self.take(bytes, true);
    }

    /// Adds something that was found elsewhere.
    pub fn add_problem(&mut self, problem: Finding) {
        self.problem(problem);
    }

    /// What was found.
    pub fn finish(mut self) -> VerifyReport {
        match self.odd.take() {
            Some(odd) if odd.is_unfinished => self.note(Finding::Torn { place: odd.place }),
            Some(odd) => {
                self.problem(Finding::NotALine { place: odd.place });
            }
            None => {}
        }
        let first = self.report.first.map_or(0, |first| first.seq);
        if first > 1 {
            if self.is_start_explained {
                self.note(Finding::Retention { through: first - 1 });
            } else {
                self.problem(Finding::StartMissing { first });
            }
        }
        let last = self.report.last.map_or(0, |last| last.seq);
        for expected in std::mem::take(&mut self.expected) {
            if self.rewritten.contains(&expected) {
                self.problem(Finding::Rewritten { expected });
            } else if expected.seq > last {
                self.problem(Finding::TailCut { last, expected });
            } else if expected.next() == first && expected.hash != self.removed_before {
                // The line is gone, and the first one that is left names another in its place.
                self.problem(Finding::Rewritten { expected });
            } else if expected.next() < first && self.is_start_explained {
                // Without an explanation, the missing start is a problem already.
                self.problem(Finding::TooOld { first, expected });
            }
        }
        self.report
    }

    fn take(&mut self, bytes: &[u8], is_unfinished: bool) {
        self.place.line += 1;
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        match Read::of(text) {
            Read::Nothing => {
                self.settle_odd(None);
                self.odd = Some(Odd {
                    place: self.place.clone(),
                    bytes: bytes.len() as u64,
                    sha256: AuditHash::from_bytes(sha256(bytes)),
                    is_unfinished,
                });
            }
            Read::Changed { seq, hash } => {
                self.settle_odd(None);
                self.changed(seq, hash);
            }
            Read::Line(line) => {
                self.settle_odd(Some(&line));
                self.whole(&line);
            }
        }
        self.is_first_of_file = false;
    }

    /// Decides about what is no line, now that it is known what follows.
    fn settle_odd(&mut self, next: Option<&AuditLine>) {
        let odd = self.odd.take();
        let healed = match next.and_then(AuditLine::event) {
            Some(AuditEvent::Healed {
                bytes,
                sha256,
                torn: true,
            }) => Some((*bytes, *sha256)),
            _ => None,
        };
        match (odd, healed) {
            (None, None) => {}
            (Some(odd), Some((bytes, sha256))) if (odd.bytes, odd.sha256) == (bytes, sha256) => {
                self.note(Finding::Torn { place: odd.place });
            }
            (Some(odd), _) => {
                self.problem(Finding::NotALine { place: odd.place });
            }
            // What is said to have been there was taken away.
            (None, Some(_)) => {
                let (place, seq) = (self.place.clone(), self.last.head.next());
                self.problem(Finding::Changed { place, seq });
            }
        }
    }

    /// A line whose hash is not its own. What follows it may name the hash that it states.
    fn changed(&mut self, seq: u64, hash: AuditHash) {
        let place = self.place.clone();
        let problem = self.problem(Finding::Changed {
            place: place.clone(),
            seq,
        });
        let step = Step {
            head: AuditHead {
                seq: self.last.head.next(),
                hash,
            },
            place,
            problem,
            is_suspect: true,
        };
        self.rival = None;
        self.before = std::mem::replace(&mut self.last, step).head;
    }

    /// A line that is as it was written, by whomever.
    fn whole(&mut self, line: &AuditLine) {
        let head = line.head();
        self.report.n_lines += 1;
        let is_the_first = self.report.first.is_none();
        if is_the_first {
            self.report.first = Some(head);
            self.removed_before = line.previous();
        }
        let was_expected = |expected: &&AuditHead| expected.seq == head.seq && **expected != head;
        self.rewritten
            .extend(self.expected.iter().filter(was_expected));
        self.follow(line, is_the_first);
        self.heed(line.event());
        if self.report.last.is_none_or(|last| last.seq <= head.seq) {
            self.report.last = Some(head);
        }
    }

    /// Whether a line follows what was there.
    fn follow(&mut self, line: &AuditLine, is_the_first: bool) {
        let (head, previous) = (line.head(), line.previous());
        let follows = |step: AuditHead| previous == step.hash && head.seq == step.next();
        let rival = self.rival.take();
        let problem = if follows(self.last.head) {
            None
        } else if is_the_first && self.last.head == AuditHead::START && head.seq > 1 {
            // Older lines may have been removed; that is known in the end.
            None
        } else if let Some(rival) = rival.filter(|rival| follows(rival.head)) {
            self.vindicate(&rival);
            None
        } else if follows(self.before) && self.last.head != self.before {
            return self.replace_last(head);
        } else if self.last.is_suspect && previous == self.last.head.hash {
            // The number of a changed line may be changed as well.
            None
        } else if head.seq == self.last.head.next() {
            if is_the_first {
                // It names a line before the first of all.
                let (place, seq) = (self.place.clone(), head.seq);
                self.problem(Finding::Changed { place, seq });
            } else if !self.last.is_suspect {
                let (place, seq) = (self.last.place.clone(), self.last.head.seq);
                self.problem(Finding::Changed { place, seq });
            }
            None
        } else if head.seq > self.last.head.seq {
            self.gap(head.seq)
        } else {
            return self.late(head);
        };
        let step = Step {
            head,
            place: self.place.clone(),
            problem,
            is_suspect: false,
        };
        self.before = std::mem::replace(&mut self.last, step).head;
    }

    /// The line before this one is one too many: this one follows what was there before it. Or it is
    /// the other way round; the next line tells.
    fn replace_last(&mut self, head: AuditHead) {
        let step = Step {
            head,
            place: self.place.clone(),
            problem: None,
            is_suspect: false,
        };
        let Step {
            head,
            place,
            problem,
            is_suspect: _,
        } = std::mem::replace(&mut self.last, step);
        let seq = head.seq;
        let inserted = Finding::Inserted { place, seq };
        let problem = match problem {
            Some(_) => {
                self.replace(problem, inserted);
                problem
            }
            None => self.problem(inserted),
        };
        self.rival = Some(Rival { head, problem });
    }

    /// The line that was taken for one too many was none: it is the one after it that does not belong
    /// there, or belongs before it.
    fn vindicate(&mut self, rival: &Rival) {
        let (place, seq) = (self.last.place.clone(), self.last.head.seq);
        if rival.head.seq == seq {
            self.replace(rival.problem, Finding::Inserted { place, seq });
            return;
        }
        let (from, through) = (seq.saturating_add(1), rival.head.seq.saturating_sub(1));
        if from <= through {
            let place = place.clone();
            self.problem(Finding::Removed {
                place,
                from,
                through,
            });
        }
        self.replace(rival.problem, Finding::OutOfOrder { place, seq });
    }

    fn gap(&mut self, seq: u64) -> Option<usize> {
        let place = self.place.clone();
        let (from, through) = (self.last.head.next(), seq - 1);
        self.problem(if self.is_first_of_file {
            Finding::FileMissing {
                place,
                from,
                through,
            }
        } else {
            Finding::Removed {
                place,
                from,
                through,
            }
        })
    }

    /// A line with a number that is past: it was missing before, or it is there twice.
    fn late(&mut self, head: AuditHead) {
        let (place, seq) = (self.place.clone(), head.seq);
        let missing = |finding: &Finding| match finding {
            Finding::Removed { from, through, .. } | Finding::FileMissing { from, through, .. } => {
                (from..=through).contains(&&seq)
            }
            _ => false,
        };
        let Some(index) = self.report.problems.iter().position(missing) else {
            self.problem(Finding::Inserted { place, seq });
            return;
        };
        let found = Finding::OutOfOrder { place, seq };
        let Some(gap) = self.report.problems.get_mut(index) else {
            return;
        };
        let mut left = without(gap, seq).into_iter();
        let Some(first) = left.next() else {
            *gap = found;
            return;
        };
        *gap = first;
        for rest in left.chain([found]) {
            self.problem(rest);
        }
    }

    /// What lines say about the log itself.
    fn heed(&mut self, event: Option<&AuditEvent>) {
        match event {
            Some(AuditEvent::Retention { file: _, through }) => {
                let first = self.report.first.map_or(0, |first| first.seq);
                if through.next() == first && through.hash == self.removed_before {
                    self.is_start_explained = true;
                }
            }
            Some(AuditEvent::TailLost { expected }) => {
                let expected = *expected;
                self.problem(Finding::TailLost { expected });
            }
            Some(AuditEvent::Lost { entries }) => self.note(Finding::Lost {
                place: self.place.clone(),
                entries: *entries,
            }),
            Some(AuditEvent::Healed { .. } | AuditEvent::Started { .. }) | None => {}
        }
    }

    fn problem(&mut self, finding: Finding) -> Option<usize> {
        if self.report.problems.len() >= MAX_FINDINGS {
            self.report.n_more_problems += 1;
            return None;
        }
        self.report.problems.push(finding);
        Some(self.report.problems.len() - 1)
    }

    fn replace(&mut self, problem: Option<usize>, finding: Finding) {
        if let Some(place) = problem.and_then(|index| self.report.problems.get_mut(index)) {
            *place = finding;
        }
    }

    fn note(&mut self, finding: Finding) {
        if self.report.notes.len() < MAX_FINDINGS {
            self.report.notes.push(finding);
        }
    }
}

/// What is left of a gap when one line of it was found.
fn without(gap: &Finding, seq: u64) -> Vec<Finding> {
    let part = |first: u64, last: u64| {
        let mut part = gap.clone();
        if let Finding::Removed { from, through, .. } | Finding::FileMissing { from, through, .. } =
            &mut part
        {
            (*from, *through) = (first, last);
        }
        (first <= last).then_some(part)
    };
    match gap {
        Finding::Removed { from, through, .. } | Finding::FileMissing { from, through, .. } => {
            let before = part(*from, seq.saturating_sub(1));
            let after = part(seq.saturating_add(1), *through);
            before.into_iter().chain(after).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[path = "verifier_tests.rs"]
mod tests;
