//! `grep`: lines that match a regular expression.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::{FileType, Mode, fstat, openat};
use serde::Deserialize;
use serde_json::{Value, json};

use super::with_notes;
use crate::confine::{FILE, Found};
use crate::definition::ToolDefinition;
use crate::glob::Glob;
use crate::job::Job;
use crate::limits::{
    DEFAULT_GREP_MATCHES, MAX_GREP_CONTEXT, MAX_GREP_FILE_BYTES, MAX_GREP_MATCHES,
    MAX_PATTERN_BYTES, MAX_REGEX_BYTES, MAX_RESULT_BYTES,
};
use crate::output::ToolOutput;
use crate::refusal::Refusal;
use crate::text::{self, count, is_binary, shown, without_line_end};
use crate::tool::{Answer, Call, Shared, Tool};
use crate::walk::{Kind, Met, Report, walk};

pub(crate) struct Grep;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    context: usize,
    limit: Option<usize>,
    #[serde(default)]
    include_ignored: bool,
}

impl Tool for Grep {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "grep",
            title: "Search in files",
            description: "Searches the text files of the workspace for lines that match a regular \
                expression (Rust syntax: no look-around, no back-references). Gives \
                `path:line:text` for each. Leaves out binary files, what .gitignore files name, \
                and `.git`; does not follow symbolic links.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "description": "The regular expression." },
                    "path": {
                        "type": "string",
                        "description": "The file or directory to search. Default: the workspace."
                    },
                    "glob": {
                        "type": "string",
                        "description": "Only files that match this, such as `*.rs` or `src/**/*.ts`."
                    },
                    "ignore_case": { "type": "boolean", "description": "Default: false." },
                    "literal": {
                        "type": "boolean",
                        "description": "The pattern is plain text. Default: false."
                    },
                    "context": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": MAX_GREP_CONTEXT,
                        "description": "Show so many lines before and after each match. Default: 0."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_GREP_MATCHES,
                        "description": format!("At most so many matching lines. Default: {DEFAULT_GREP_MATCHES}.")
                    },
                    "include_ignored": {
                        "type": "boolean",
                        "description": "Also search what .gitignore files name. Default: false."
                    }
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "matches": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "path": { "type": "string" },
                                "line": { "type": "integer" },
                                "text": { "type": "string" },
                                "before": { "type": "array", "items": { "type": "string" } },
                                "after": { "type": "array", "items": { "type": "string" } }
                            },
                            "required": ["path", "line", "text"]
                        }
                    },
                    "truncated": { "type": "boolean" }
                },
                "required": ["matches", "truncated"]
            })),
            read_only: true,
            destructive: false,
            idempotent: true,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments = call.arguments()?;
            call.on_files(move |shared, job| grep(shared, &arguments, job))
                .await
        })
    }
}

fn grep(shared: &Shared, arguments: &Arguments, job: &Job) -> Result<ToolOutput, Refusal> {
    let mut search = Search {
        pattern: Pattern::parse(arguments)?,
        context: arguments.context.min(MAX_GREP_CONTEXT),
        limit: arguments
            .limit
            .unwrap_or(DEFAULT_GREP_MATCHES)
            .clamp(1, MAX_GREP_MATCHES),
        content: Vec::new(),
        results: Results::default(),
    };
    let glob = arguments.glob.as_deref().map(Glob::parse).transpose()?;
    let path = shared
        .root
        .inside(arguments.path.as_deref().unwrap_or("."))?;
    let report = match shared.root.look_up(&path)? {
        Found::File(opened, real) => {
            match search.file(opened.file, &real, job)? {
                // Whether there was more is in the results.
                ControlFlow::Continue(()) | ControlFlow::Break(()) => Report::default(),
            }
        }
        Found::Directory(start) => walk(
            &shared.root,
            start,
            arguments.include_ignored,
            job,
            &mut |met| {
                let is_wanted = glob.as_ref().is_none_or(|glob| glob.matches(met.below));
                if met.kind != Kind::File || !is_wanted {
                    return Ok(ControlFlow::Continue(()));
                }
                search.met(met, job)
            },
        )?,
    };
    Ok(search.results.output(&report))
}

/// A regular expression that is asked line by line.
struct Pattern {
    regex: Regex,
    /// A text in which it finds nothing has no line in which it finds something. Not so for
    /// expressions about the beginning or end of the text, which the caller sees as lines.
    judges_whole_files: bool,
}

impl Pattern {
    fn parse(arguments: &Arguments) -> Result<Self, Refusal> {
        let text = &arguments.pattern;
        if text.len() > MAX_PATTERN_BYTES {
            return Err(Refusal::new(format!(
                "the pattern is longer than {MAX_PATTERN_BYTES} bytes"
            )));
        }
        let expression = if arguments.literal {
            regex::escape(text)
        } else {
            text.clone()
        };
        let regex = RegexBuilder::new(&expression)
            .case_insensitive(arguments.ignore_case)
            .multi_line(true)
            .crlf(true)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES)
            .build()
            .map_err(|error| Refusal::new(format!("invalid pattern: {error}")))?;
        Ok(Self {
            regex,
            judges_whole_files: !["\\A", "\\z", "(?"]
                .iter()
                .any(|special| expression.contains(special)),
        })
    }
}

struct Search {
    pattern: Pattern,
    context: usize,
    limit: usize,
    /// The file that is searched; kept to be used again.
    content: Vec<u8>,
    results: Results,
}

#[derive(Default)]
struct Results {
    text: String,
    matches: Vec<Value>,
    has_more: bool,
    n_too_large: u64,
    n_unreadable: u64,
    n_cut: u64,
}

impl Search {
    /// Opens a file that a walk has met: by its name in its directory, if it still is one.
    fn met(&mut self, met: &Met<'_>, job: &Job) -> Result<ControlFlow<()>, Refusal> {
        let opened = openat(met.parent, met.name, FILE, Mode::empty())
            .and_then(|descriptor| fstat(&descriptor).map(|stat| (descriptor, stat)));
        let Ok((descriptor, stat)) = opened else {
            self.results.n_unreadable += 1;
            return Ok(ControlFlow::Continue(()));
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(ControlFlow::Continue(()));
        }
        self.file(File::from(descriptor), met.path, job)
    }

    fn file(&mut self, file: File, path: &Path, job: &Job) -> Result<ControlFlow<()>, Refusal> {
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        let flow = match file.take(MAX_GREP_FILE_BYTES + 1).read_to_end(&mut content) {
            Err(_) => {
                self.results.n_unreadable += 1;
                Ok(ControlFlow::Continue(()))
            }
            Ok(length) if length as u64 > MAX_GREP_FILE_BYTES => {
                self.results.n_too_large += 1;
                Ok(ControlFlow::Continue(()))
            }
            Ok(_) => self.content(&content, path, job),
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
        let Pattern {
            regex,
            judges_whole_files,
        } = &self.pattern;
        if is_binary(content) || (*judges_whole_files && !regex.is_match(content)) {
            return Ok(ControlFlow::Continue(()));
        }
        let surroundings = Surroundings {
            content,
            path,
            context: self.context,
        };
        let mut start = 0;
        let mut last: Option<Hit> = None;
        for (index, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if index % 1024 == 0 {
                job.check()?;
            }
            let end = start + line.len();
            if let Some(found) = regex.find(without_line_end(line)) {
                let hit = Hit {
                    number: index + 1,
                    start,
                    end,
                    focus: found.start(),
                };
                let results = &mut self.results;
                if results.matches.len() >= self.limit || results.text.len() >= MAX_RESULT_BYTES {
                    results.has_more = true;
                    if let Some(last) = &last {
                        results.show_after(&surroundings, last, content.len());
                    }
                    return Ok(ControlFlow::Break(()));
                }
                results.add(&surroundings, last.as_ref(), &hit);
                last = Some(hit);
            }
            start = end;
        }
        if let Some(last) = &last {
            self.results.show_after(&surroundings, last, content.len());
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A line that matches.
struct Hit {
    /// Counted from 1.
    number: usize,
    /// Where it begins and ends in the file.
    start: usize,
    end: usize,
    /// Where in the line the match is.
    focus: usize,
}

/// What is around a line.
struct Surroundings<'a> {
    content: &'a [u8],
    path: &'a Path,
    context: usize,
}

impl<'a> Surroundings<'a> {
    /// Up to so many lines before a line, but none before `from`.
    fn before(&self, hit: &Hit, from: usize) -> Vec<&'a [u8]> {
        let mut lines = Vec::new();
        let mut end = hit.start;
        while lines.len() < self.context && end > from {
            let rest = self.content.get(..end - 1).unwrap_or_default();
            let start = memchr::memrchr(b'\n', rest).map_or(0, |newline| newline + 1);
            lines.push(self.content.get(start..end).unwrap_or_default());
            end = start;
        }
        lines.reverse();
        lines
    }

    /// Up to so many lines after a line, but none from `until` on.
    fn after(&self, hit: &Hit, until: usize) -> Vec<&'a [u8]> {
        let rest = self.content.get(hit.end..until).unwrap_or_default();
        rest.split_inclusive(|byte| *byte == b'\n')
            .take(self.context)
            .collect()
    }
}

impl Results {
    fn add(&mut self, surroundings: &Surroundings<'_>, last: Option<&Hit>, hit: &Hit) {
        let Surroundings {
            content,
            path,
            context,
        } = surroundings;
        let mut shown_until = 0;
        let mut next_number = 1;
        if let Some(last) = last {
            let after = self.show_after(surroundings, last, hit.start);
            shown_until = last.end + after.iter().map(|line| line.len()).sum::<usize>();
            next_number = last.number + 1 + after.len();
        }
        let before = surroundings.before(hit, shown_until);
        let first_number = hit.number - before.len();
        if *context > 0 && !self.text.is_empty() && (last.is_none() || first_number > next_number) {
            self.text.push_str("--\n");
        }
        for (index, line) in before.iter().enumerate() {
            self.show(path, first_number + index, '-', line, 0);
        }
        let line = content.get(hit.start..hit.end).unwrap_or_default();
        let text = self.show(path, hit.number, ':', line, hit.focus);
        let mut found = json!({
            "path": path.to_string_lossy(),
            "line": hit.number,
            "text": text,
        });
        if *context > 0 {
            let texts = |lines: Vec<&[u8]>| -> Vec<String> {
                lines.iter().map(|line| text::line(line, 0).0).collect()
            };
            found["before"] = texts(surroundings.before(hit, 0)).into();
            found["after"] = texts(surroundings.after(hit, content.len())).into();
        }
        self.matches.push(found);
    }

    /// Shows what follows a match, up to the next one.
    fn show_after<'a>(
        &mut self,
        surroundings: &Surroundings<'a>,
        hit: &Hit,
        until: usize,
    ) -> Vec<&'a [u8]> {
        let after = surroundings.after(hit, until);
        for (index, line) in after.iter().enumerate() {
            self.show(surroundings.path, hit.number + 1 + index, '-', line, 0);
        }
        after
    }

    fn show(
        &mut self,
        path: &Path,
        number: usize,
        mark: char,
        line: &[u8],
        focus: usize,
    ) -> String {
        let (line, was_cut) = text::line(line, focus);
        self.n_cut += u64::from(was_cut);
        let shown = format!("{}{mark}{number}{mark}{line}\n", shown(path));
        self.text.push_str(&shown);
        line
    }

    fn output(self, report: &Report) -> ToolOutput {
        let Self {
            text,
            matches,
            has_more,
            n_too_large,
            n_unreadable,
            n_cut,
        } = self;
        let mut notes = Vec::new();
        if matches.is_empty() {
            notes.push("nothing matches".to_owned());
        }
        if has_more {
            let shown = count(matches.len() as u64, "match is", "matches are");
            notes.push(format!("only the first {shown} shown"));
        }
        for (number, one, many) in [
            (n_cut, "long line is cut", "long lines are cut"),
            (
                n_too_large,
                "file is too large and was not searched",
                "files are too large and were not searched",
            ),
            (
                n_unreadable,
                "file could not be read",
                "files could not be read",
            ),
        ] {
            if number > 0 {
                notes.push(count(number, one, many));
            }
        }
        notes.extend(report.notes());
        let is_complete = !has_more && n_too_large + n_unreadable == 0 && report.is_complete();
        let structured = json!({ "matches": matches, "truncated": !is_complete });
        ToolOutput::structured(with_notes(text, &notes), structured)
    }
}
