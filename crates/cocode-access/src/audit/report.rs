//! What verifying a log comes to.

use std::fmt;

use super::hash::AuditHead;

/// What was found in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Files that were read, or tables.
    pub n_files: u64,
    /// Lines that are as they were written.
    pub n_lines: u64,
    /// The first line that is there.
    pub first: Option<AuditHead>,
    /// The last line that is there.
    pub last: Option<AuditHead>,
    /// What is wrong, in the order of the log.
    pub problems: Vec<Finding>,
    /// What is wrong besides, and not listed.
    pub n_more_problems: u64,
    /// What is not as it usually is, and has an explanation that is part of the chain.
    pub notes: Vec<Finding>,
}

/// Where something is in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, or table.
    pub file: String,
    /// Which line of it; the first is 1.
    pub line: u64,
}

/// Something that was found in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The line is not the one that was written.
    Changed {
        /// Where.
        place: Place,
        /// Its number.
        seq: u64,
    },
    /// There is something that was never written as a line.
    NotALine {
        /// Where.
        place: Place,
    },
    /// Lines are missing.
    Removed {
        /// What stands where they should be.
        place: Place,
        /// The first of them.
        from: u64,
        /// The last of them.
        through: u64,
    },
    /// A whole file is missing.
    FileMissing {
        /// The file that follows.
        place: Place,
        /// The first line that is missing.
        from: u64,
        /// The last of them.
        through: u64,
    },
    /// The line is there, and not in its place.
    OutOfOrder {
        /// Where.
        place: Place,
        /// Its number.
        seq: u64,
    },
    /// There is a line too many: its number is there twice, or the lines around it follow each other.
    Inserted {
        /// Where.
        place: Place,
        /// Its number.
        seq: u64,
    },
    /// The log does not begin with its first line, and nothing in it says why.
    StartMissing {
        /// The first line that is there.
        first: u64,
    },
    /// The log ends before a line that is known to have been there.
    TailCut {
        /// The last line that is there.
        last: u64,
        /// The line that is known.
        expected: AuditHead,
    },
    /// The line that is known to have been there is another one now.
    Rewritten {
        /// The line that is known.
        expected: AuditHead,
    },
    /// The line that is known was removed, as it was configured, and so were those after it that could
    /// have shown whether it was there.
    TooOld {
        /// The first line that is left.
        first: u64,
        /// The line that is known.
        expected: AuditHead,
    },
    /// What is kept beside the log about its last line cannot be read.
    BadHead {
        /// The file.
        place: Place,
    },
    /// The log was found cut when it was gone on with.
    TailLost {
        /// The line that was known then.
        expected: AuditHead,
    },
    /// Older lines were removed, as it was configured.
    Retention {
        /// The last line that was removed.
        through: u64,
    },
    /// A line that was not written to its end, as a crash leaves it.
    Torn {
        /// Where.
        place: Place,
    },
    /// So many entries could not be written.
    Lost {
        /// Where that is said.
        place: Place,
        /// How many.
        entries: u64,
    },
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty() && self.n_more_problems == 0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |from: &u64, through: &u64| match through - from {
            0 => format!("entry {from}"),
            _ => format!("entries {from} to {through}"),
        };
        match self {
            Self::Changed { place, seq } => {
                write!(formatter, "{place}: entry {seq} is not what was written")
            }
            Self::NotALine { place } => {
                write!(formatter, "{place}: this was never written as an entry")
            }
            Self::Removed {
                place,
                from,
                through,
            } => write!(
                formatter,
                "{place}: before this, {} is missing",
                range(from, through)
            ),
            Self::FileMissing {
                place,
                from,
                through,
            } => write!(
                formatter,
                "{place}: a file with {} is missing before this one",
                range(from, through)
            ),
            Self::OutOfOrder { place, seq } => {
                write!(formatter, "{place}: entry {seq} is not in its place")
            }
            Self::Inserted { place, seq } => write!(
                formatter,
                "{place}: an entry {seq} was put in that does not belong there"
            ),
            Self::StartMissing { first } => write!(
                formatter,
                "the log begins with entry {first}, and nothing in it says that older ones were removed"
            ),
            Self::TailCut { last, expected } => write!(
                formatter,
                "the log ends with entry {last}, and entry {} is known to have been there",
                expected.seq
            ),
            Self::Rewritten { expected } => write!(
                formatter,
                "entry {} is not the one that is known, with the hash {}",
                expected.seq, expected.hash
            ),
            Self::TooOld { first, expected } => write!(
                formatter,
                "entry {} cannot be compared any more: the log begins with entry {first}, because older \
                 ones were removed, as it was configured; keep a newer number and hash",
                expected.seq
            ),
            Self::BadHead { place } => write!(
                formatter,
                "{place}: this should name the last entry, and cannot be read"
            ),
            Self::TailLost { expected } => write!(
                formatter,
                "the log was gone on with when it ended before entry {}, which is known to have been there",
                expected.seq
            ),
            Self::Retention { through } => write!(
                formatter,
                "entries up to {through} were removed, as it was configured"
            ),
            Self::Torn { place } => {
                write!(formatter, "{place}: a crash left this entry unfinished")
            }
            Self::Lost { place, entries } => write!(
                formatter,
                "{place}: {entries} entries before this could not be written"
            ),
        }
    }
}
