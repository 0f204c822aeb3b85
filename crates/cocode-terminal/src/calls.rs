//! Calls of tools: while they run, with how far they are, and what is left of them in the scrollback.

use std::time::Duration;

use cocode_agent::{Arguments, Block, ToolCall, text_of};
use serde_json::Value;
use tokio::time::Instant;

use crate::diff;
use crate::status::in_words;
use crate::style::{Color, Line, Style};
use crate::text::{first_line, harmless, shortened, width};

/// Calls that are shown while they run, and that are followed.
const MAX_SHOWN: usize = 6;
const MAX_FOLLOWED: usize = 1000;

/// Lines of a result that are shown.
const MAX_RESULT_LINES: usize = 4;

/// Columns of a bar.
const BAR_COLUMNS: usize = 20;

/// Members of arguments that say best what a call is about.
const TELLING: &[&str] = &[
    "command",
    "path",
    "file_path",
    "pattern",
    "query",
    "url",
    "uri",
    "name",
];

/// The calls that run.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    running: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    tool: String,
    arguments: Arguments,
    began: Instant,
    progress: Option<Progress>,
}

#[derive(Debug)]
struct Progress {
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn begin(&mut self, call: &ToolCall, now: Instant) {
        if self.running.len() < MAX_FOLLOWED {
            self.running.push(Call {
                id: call.id.clone(),
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
                began: now,
                progress: None,
            });
        }
    }

    pub(crate) fn progress(
        &mut self,
        id: &str,
        done: f64,
        total: Option<f64>,
        message: Option<&String>,
    ) {
        if let Some(call) = self.running.iter_mut().find(|call| call.id == id) {
            // A report without words leaves those that were there.
            let before = call.progress.take().and_then(|progress| progress.message);
            call.progress = Some(Progress {
                done,
                total,
                message: message.cloned().or(before),
            });
        }
    }

    /// What is left of a call that is over.
    pub(crate) fn end(&mut self, ended: &Ended<'_>, columns: usize) -> Vec<Line> {
        let place = self.running.iter().position(|call| call.id == ended.id);
        let call = place.map(|place| self.running.remove(place));
        let arguments = call.map(|call| call.arguments);
        ended.lines(arguments.as_ref(), columns)
    }

    /// What is left of calls that nobody will hear the end of.
    pub(crate) fn abandon(&mut self, columns: usize) -> Vec<Line> {
        self.running
            .drain(..)
            .map(|call| {
                let style = Style::PLAIN.color(Color::Yellow);
                let head = titled(&call.tool, &call.arguments, columns.saturating_sub(15));
                let mut line = Line::new("● ", style);
                line.append(head);
                line.with(" interrupted", style)
            })
            .collect()
    }

    /// The calls that run, as they are now.
    pub(crate) fn lines(&self, columns: usize, now: Instant) -> Vec<Line> {
        let mut lines = Vec::new();
        for call in self.running.iter().take(MAX_SHOWN) {
            let elapsed = format!(" {}", in_words(now - call.began));
            let room = columns.saturating_sub(2 + width(&elapsed));
            let mut line = Line::new("◌ ", Style::PLAIN.color(Color::Cyan));
            line.append(titled(&call.tool, &call.arguments, room));
            lines.push(line.with(&elapsed, Style::PLAIN.dim()));
            lines.extend(
                call.progress
                    .as_ref()
                    .map(|progress| progress.line(columns)),
            );
        }
        let n_more = self.running.len().saturating_sub(MAX_SHOWN);
        if n_more > 0 {
            lines.push(Line::new(
                &format!("  and {n_more} more"),
                Style::PLAIN.dim(),
            ));
        }
        lines
    }
}

impl Progress {
    fn line(&self, columns: usize) -> Line {
        let Self {
            done,
            total,
            message,
        } = self;
        let mut line = Line::plain("  ");
        match total.filter(|total| *total > 0.0) {
            Some(total) => {
                let part = (done / total).clamp(0.0, 1.0);
                let part = if part.is_nan() { 0.0 } else { part };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "a part between nothing and all, of a few columns"
                )]
                let (n_full, percent) = (
                    (part * BAR_COLUMNS as f64).round() as usize,
                    (part * 100.0).round() as u32,
                );
                line = line
                    .with(&"█".repeat(n_full), Style::PLAIN.color(Color::Cyan))
                    .with(&"░".repeat(BAR_COLUMNS - n_full), Style::PLAIN.dim())
                    .with(&format!(" {percent:>3}%"), Style::PLAIN);
            }
            None => line = line.with(&format!("{done}"), Style::PLAIN),
        }
        if let Some(message) = message {
            let room = columns.saturating_sub(line.width() + 1);
            let message = shortened(first_line(message), room).into_owned();
            line = line
                .with(" ", Style::PLAIN)
                .with(&message, Style::PLAIN.dim());
        }
        line
    }
}

/// A call that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) content: &'a [Block],
    pub(crate) is_error: bool,
    pub(crate) took: Duration,
}

impl Ended<'_> {
    /// What is left of it: what it was, how it went, and the beginning of what came of it.
    pub(crate) fn lines(&self, arguments: Option<&Arguments>, columns: usize) -> Vec<Line> {
        let color = if self.is_error {
            Color::Red
        } else {
            Color::Green
        };
        let took = if self.took < Duration::from_secs(1) {
            String::new()
        } else {
            format!(" {}", in_words(self.took))
        };
        let room = columns.saturating_sub(2 + width(&took));
        let nothing = Arguments::Json(Value::Null);
        let arguments = arguments.unwrap_or(&nothing);
        let mut head = Line::new("● ", Style::PLAIN.color(color));
        head.append(titled(self.tool, arguments, room));
        let mut lines = vec![head.with(&took, Style::PLAIN.dim())];
        let changed = match arguments {
            Arguments::Json(value) if !self.is_error => diff::of_call(self.tool, value, None),
            _ => None,
        };
        let below = changed.unwrap_or_else(|| self.result(columns));
        lines.extend(below.into_iter().map(indented));
        lines
    }

    /// The beginning of the result, and how much more there is.
    fn result(&self, columns: usize) -> Vec<Line> {
        let style = if self.is_error {
            Style::PLAIN.color(Color::Red)
        } else {
            Style::PLAIN.dim()
        };
        let text = text_of(self.content);
        let text = harmless(text.trim_end());
        let mut lines: Vec<Line> = text
            .lines()
            .take(MAX_RESULT_LINES)
            .map(|line| Line::new(&shortened(line, columns.saturating_sub(2)), style))
            .collect();
        let n_more = text.lines().count().saturating_sub(MAX_RESULT_LINES);
        if n_more > 0 {
            lines.push(Line::new(
                &format!("… {n_more} more lines"),
                Style::PLAIN.dim(),
            ));
        }
        let images = self.content.iter().filter_map(|block| match block {
            Block::Image { media_type, .. } => Some(media_type),
            _ => None,
        });
        lines.extend(images.map(|kind| Line::new(&format!("[image, {kind}]"), style)));
        if lines.is_empty() {
            lines.push(Line::new("(nothing)", Style::PLAIN.dim()));
        }
        lines
    }
}

fn indented(line: Line) -> Line {
    let mut indented = Line::plain("  ");
    indented.append(line);
    indented
}

/// The tool, and what its call is about, in one line.
pub(crate) fn titled(tool: &str, arguments: &Arguments, columns: usize) -> Line {
    let tool = shortened(tool, columns).into_owned();
    let room = columns.saturating_sub(width(&tool) + 1);
    let about = about(arguments);
    let mut line = Line::new(&tool, Style::PLAIN.bold());
    if !about.is_empty() && room > 1 {
        let about = harmless(&about);
        line = line
            .with(" ", Style::PLAIN)
            .with(&shortened(first_line(&about), room), Style::PLAIN);
    }
    line
}

fn about(arguments: &Arguments) -> String {
    let Arguments::Json(value) = arguments else {
        return arguments.to_text();
    };
    if let Value::Object(members) = value {
        let telling = TELLING
            .iter()
            .find_map(|name| members.get(*name).and_then(Value::as_str));
        if let Some(telling) = telling {
            return telling.to_owned();
        }
        if members.is_empty() {
            return String::new();
        }
    }
    match value {
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Arguments::Json(arguments),
        }
    }

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    fn ended<'a>(id: &'a str, content: &'a [Block], is_error: bool) -> Ended<'a> {
        Ended {
            id,
            tool: "shell",
            content,
            is_error,
            took: Duration::from_millis(2300),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn running_calls_show_how_far_they_are() {
        let mut calls = Calls::default();
        let now = Instant::now();
        calls.begin(
            &call("1", "shell", json!({ "command": "cargo test\nmore" })),
            now,
        );
        calls.begin(&call("2", "mcp__x__count", json!({ "n": 3 })), now);
        calls.progress("1", 5.0, Some(10.0), Some(&"half\u{1b}[2J way".to_owned()));
        calls.progress("2", 7.0, None, None);
        calls.progress("1", 6.0, Some(10.0), None);
        let lines = calls.lines(60, now + Duration::from_secs(3));
        let expected = [
            "◌ shell cargo test 3s",
            "  ████████████░░░░░░░░  60% half way",
            "◌ mcp__x__count {\"n\":3} 3s",
            "  7",
        ];
        assert_eq!(texts(&lines), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn many_calls_are_counted() {
        let mut calls = Calls::default();
        for n in 0..9 {
            calls.begin(&call(&n.to_string(), "x", json!({})), Instant::now());
        }
        let lines = texts(&calls.lines(60, Instant::now()));
        assert_eq!(
            (lines.len(), lines.last().unwrap().as_str()),
            (7, "  and 3 more")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_shown_by_its_beginning() {
        let mut calls = Calls::default();
        calls.begin(
            &call("1", "shell", json!({ "command": "ls" })),
            Instant::now(),
        );
        let content = [Block::text("a\nb\n\u{1b}[31mc\u{1b}[0m\nd\ne\nf\n")];
        let lines = calls.end(&ended("1", &content, false), 60);
        let expected = [
            "● shell ls 2s",
            "  a",
            "  b",
            "  c",
            "  d",
            "  … 2 more lines",
        ];
        assert_eq!(texts(&lines), expected);
        assert!(calls.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_that_worked_is_shown_as_what_it_changed() {
        let mut calls = Calls::default();
        let arguments = json!({ "path": "a.rs", "old_string": "x", "new_string": "y" });
        calls.begin(&call("1", "edit", arguments.clone()), Instant::now());
        let ok = [Block::text("ok")];
        let edited = Ended {
            tool: "edit",
            ..ended("1", &ok, false)
        };
        let lines = texts(&calls.end(&edited, 60));
        assert_eq!(lines, ["● edit a.rs 2s", "  - x", "  + y"]);
        calls.begin(&call("1", "edit", arguments), Instant::now());
        let lines = texts(&calls.end(&ended("1", &[Block::text("no such text")], true), 60));
        assert_eq!(lines, ["● shell a.rs 2s", "  no such text"]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_without_an_end_are_told() {
        let mut calls = Calls::default();
        calls.begin(
            &call("1", "shell", json!({ "command": "sleep 9" })),
            Instant::now(),
        );
        assert_eq!(texts(&calls.abandon(60)), ["● shell sleep 9 interrupted"]);
        assert!(calls.is_empty());
    }

    #[test]
    fn nonsense_progress_draws_no_nonsense() {
        for (done, total) in [
            (f64::NAN, Some(3.0)),
            (-1.0, Some(3.0)),
            (9.0, Some(3.0)),
            (1.0, Some(f64::NAN)),
            (f64::INFINITY, Some(f64::INFINITY)),
        ] {
            let progress = Progress {
                done,
                total,
                message: None,
            };
            assert!(progress.line(60).width() < 40);
        }
    }
}
