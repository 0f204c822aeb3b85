//! The search itself: which files are read, and which of their lines match.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::{FileType, Mode, fstat, openat};

use super::results::{Hit, Results, Surroundings};
use crate::confine::{FILE, Opened};
use crate::job::Job;
use crate::limits::{
    GREP_BLOCK_BYTES, MAX_GREP_FILE_BYTES, MAX_PATTERN_BYTES, MAX_REGEX_BYTES, MAX_WALK_TIME,
};
use crate::refusal::Refusal;
use crate::text::{is_binary, without_line_end};
use crate::walk::Met;

/// A regular expression that is asked line by line.
pub(super) struct Pattern {
    regex: Regex,
    /// A text in which it finds nothing has no line in which it finds something. Not so for
    /// expressions about the beginning or end of the text, which the caller sees as lines.
    judges_blocks: bool,
}

impl Pattern {
    pub(super) fn parse(text: &str, literal: bool, ignore_case: bool) -> Result<Self, Refusal> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(Refusal::new(format!(
                "the pattern is longer than {MAX_PATTERN_BYTES} bytes"
            )));
        }
        let expression = if literal {
            regex::escape(text)
        } else {
            text.to_owned()
        };
        let regex = RegexBuilder::new(&expression)
            .case_insensitive(ignore_case)
            .multi_line(true)
            .crlf(true)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES)
            .build()
            .map_err(|error| Refusal::new(format!("invalid pattern: {error}")))?;
        Ok(Self {
            regex,
            judges_blocks: !["\\A", "\\z", "(?"]
                .iter()
                .any(|special| expression.contains(special)),
        })
    }
    /// Whether no line of a text can match, as far as can be said without looking at each.
    fn rules_out(&self, block: &[u8]) -> bool {
        self.judges_blocks && !self.regex.is_match(block)
    }

    /// Where in a line the first match is.
    fn find(&self, line: &[u8]) -> Option<usize> {
        self.regex
            .find(without_line_end(line))
            .map(|found| found.start())
    }
}

/// A search at work.
pub(super) struct Search {
    pattern: Pattern,
    context: usize,
    limit: usize,
    deadline: Instant,
    /// The file that is searched; kept to be used again.
    content: Vec<u8>,
    pub(super) results: Results,
}

impl Search {
    pub(super) fn new(pattern: Pattern, context: usize, limit: usize) -> Self {
        Self {
            pattern,
            context,
            limit,
            deadline: Instant::now() + MAX_WALK_TIME,
            content: Vec::new(),
            results: Results::default(),
        }
    }

    /// Opens a file that a walk has met: by its name in its directory, if it still is one.
    pub(super) fn met(&mut self, met: &Met<'_>, job: &Job) -> Result<ControlFlow<()>, Refusal> {
        let opened = openat(met.parent, met.name, FILE, Mode::empty())
            .and_then(|descriptor| fstat(&descriptor).map(|stat| (descriptor, stat)));
        let Ok((descriptor, stat)) = opened else {
            self.results.n_unreadable += 1;
            return Ok(ControlFlow::Continue(()));
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(ControlFlow::Continue(()));
        }
        let opened = Opened {
            file: File::from(descriptor),
            stat,
        };
        self.file(opened, met.path, job)
    }

    pub(super) fn file(
        &mut self,
        opened: Opened,
        path: &Path,
        job: &Job,
    ) -> Result<ControlFlow<()>, Refusal> {
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        let size = opened.size();
        // The file may grow while it is read.
        let mut file = opened.file.take(MAX_GREP_FILE_BYTES + 1);
        let flow = if size > MAX_GREP_FILE_BYTES {
            self.results.n_too_large += 1;
            Ok(ControlFlow::Continue(()))
        } else if file.read_to_end(&mut content).is_err() {
            self.results.n_unreadable += 1;
            Ok(ControlFlow::Continue(()))
        } else if content.len() as u64 > MAX_GREP_FILE_BYTES {
            self.results.n_too_large += 1;
            Ok(ControlFlow::Continue(()))
        } else {
            self.content(&content, path, job)
        };
        self.content = content;
        flow
    }

    fn content(
        &mut self,
        content: &[u8],
        path: &Path,
        job: &Job,
    ) -> Result<ControlFlow<()>, Refusal> {
        if is_binary(content) {
            return Ok(ControlFlow::Continue(()));
        }
        let surroundings = Surroundings {
            content,
            path,
            context: self.context,
        };
        let mut number = 1;
        let mut start = 0;
        let mut last = None;
        let mut flow = ControlFlow::Continue(());
        while start < content.len() && flow.is_continue() {
            job.check()?;
            if Instant::now() >= self.deadline {
                self.results.is_late = true;
                return Ok(ControlFlow::Break(()));
            }
            let block = block(content, start);
            if self.pattern.rules_out(block) {
                number += memchr::memchr_iter(b'\n', block).count();
                start += block.len();
                continue;
            }
            for line in block.split_inclusive(|byte| *byte == b'\n') {
                let end = start + line.len();
                if let Some(focus) = self.pattern.find(line) {
                    if self.results.is_full(self.limit) {
                        self.results.has_more = true;
                        flow = ControlFlow::Break(());
                        break;
                    }
                    let hit = Hit {
                        number,
                        start,
                        end,
                        focus,
                    };
                    self.results.add(&surroundings, last.as_ref(), &hit);
                    last = Some(hit);
                }
                number += 1;
                start = end;
            }
        }
        if let Some(last) = &last {
            self.results.show_after(&surroundings, last, content.len());
        }
        Ok(flow)
    }
}

/// Some whole lines: as many as are searched at once, but at least one.
fn block(content: &[u8], start: usize) -> &[u8] {
    let rest = content.get(start..).unwrap_or_default();
    let least = GREP_BLOCK_BYTES.min(rest.len());
    let end = rest
        .get(least..)
        .and_then(|after| memchr::memchr(b'\n', after))
        .map_or(rest.len(), |newline| least + newline + 1);
    rest.get(..end).unwrap_or_default()
}
