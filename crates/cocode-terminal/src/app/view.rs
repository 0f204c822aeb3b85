//! The live area: what is being said, what runs, what is asked, and the input line.

use tokio::time::Instant;

use super::{App, QUIT_AGAIN};
use crate::screen::Live;
use crate::status::working;
use crate::style::{Color, Line, Style};
use crate::text::{first_line, shortened};
use crate::wrap::{wrap_cells, wrap_words};

/// Columns before the input.
const PROMPT: &str = "> ";
const BELOW_PROMPT: &str = "  ";

/// Rows of the input, of thoughts, and of what waits.
const MAX_INPUT_ROWS: usize = 10;
const MAX_THOUGHT_ROWS: usize = 3;
const MAX_QUEUED_ROWS: usize = 4;

/// Rows that are left to a reply and to calls, whatever is asked.
const MIN_ROWS_ABOVE: usize = 4;

const PLACEHOLDER: &str = "ask for something, / for commands, @ for files";

impl App {
    /// Columns of the input.
    pub(super) fn input_columns(&self) -> usize {
        self.columns().saturating_sub(PROMPT.len())
    }

    /// The live area as it is now.
    pub(crate) fn view(&self, now: Instant) -> Live {
        let columns = self.columns();
        let rows = usize::from(self.size.rows).saturating_sub(1).max(3);
        let (below, cursor) = self.below(columns, rows, now);
        let mut middle = self.calls.lines(columns, now);
        middle.extend(self.queued_lines(columns));
        middle.extend(self.working_line(columns, now));
        let room = rows.saturating_sub(below.len());
        middle.drain(..middle.len().saturating_sub(room.saturating_sub(1)));
        let spoken = self.spoken_lines(columns, room.saturating_sub(middle.len() + 2));

        let mut all = spoken;
        // What is said last in the scrollback stands apart from what goes on below.
        if all.is_empty() && !self.ends_with_gap {
            all.push(Line::default());
        }
        if !middle.is_empty() && all.last().is_some_and(|last| !last.is_empty()) {
            all.push(Line::default());
        }
        all.extend(middle);
        let above = all.len();
        all.extend(below);
        Live {
            rows: all,
            cursor: cursor.map(|(row, column)| (above + row, column)),
        }
    }

    /// What is asked or typed, with the status line below it.
    fn below(
        &self,
        columns: usize,
        rows: usize,
        now: Instant,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let room = rows.saturating_sub(MIN_ROWS_ABOVE).max(3);
        let status = self.status_line(columns, now);
        let (mut lines, cursor) = if let Some(asked) = self.approvals.front() {
            self.with_typed(asked.lines(columns, room, now), columns)
        } else if let Some(asked) = self.questions.front() {
            self.with_typed(asked.lines(columns, room, now), columns)
        } else if let Some(picker) = &self.picker {
            (picker.lines(columns, room), None)
        } else if let Some(search) = &self.search {
            let found = self.found(search).unwrap_or_default();
            let head = format!("search: {} ", search.wanted);
            let line = Line::new(&head, Style::PLAIN.color(Color::Cyan));
            let column = line.width().saturating_sub(1);
            let room = columns.saturating_sub(line.width());
            let line = line.with(&shortened(first_line(found), room), Style::PLAIN);
            (vec![line], Some((0, column)))
        } else {
            self.input_lines(columns, room)
        };
        lines.extend(status);
        (lines, cursor)
    }

    /// A question with what was typed below it, so that it can be seen where keys went.
    fn with_typed(
        &self,
        (mut lines, cursor): (Vec<Line>, Option<(usize, usize)>),
        columns: usize,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        if cursor.is_some() || self.editor.is_empty() {
            return (lines, cursor);
        }
        let above = lines.len();
        let (input, input_cursor) = self.input_lines(columns, 3);
        lines.extend(input);
        let cursor = input_cursor.map(|(row, column)| (above + row, column));
        (lines, cursor)
    }

    fn input_lines(&self, columns: usize, room: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let prompt = Style::PLAIN.bold().color(Color::Cyan);
        if self.editor.is_empty() {
            let hint = shortened(PLACEHOLDER, self.input_columns()).into_owned();
            let line = Line::new(PROMPT, prompt).with(&hint, Style::PLAIN.dim());
            return (vec![line], Some((0, PROMPT.len())));
        }
        let layout = self.editor.layout(self.input_columns());
        let most = MAX_INPUT_ROWS.min(room).max(1);
        let (row, column) = layout.cursor;
        let first = crate::completion::window(row, layout.rows.len(), most);
        let shown = layout.rows.iter().enumerate().skip(first).take(most);
        let mut lines: Vec<Line> = shown
            .map(|(place, text)| {
                let before = if place == 0 { PROMPT } else { BELOW_PROMPT };
                Line::new(before, prompt).with(text, Style::PLAIN)
            })
            .collect();
        if let Some(menu) = &self.menu {
            lines.extend(menu.lines(columns));
        }
        (lines, Some((row - first, PROMPT.len() + column)))
    }

    fn status_line(&self, columns: usize, now: Instant) -> Option<Line> {
        if self
            .quit_asked
            .is_some_and(|asked| now < asked + QUIT_AGAIN)
        {
            let hint = "Ctrl-C again quits";
            return Some(Line::new(hint, Style::PLAIN.color(Color::Yellow)));
        }
        let line = self.host.status().line(columns);
        (!line.is_empty()).then_some(line)
    }

    fn working_line(&self, columns: usize, now: Instant) -> Option<Line> {
        let running = self.running.as_ref()?;
        let hint = if running.is_interrupted {
            "Ctrl-C again abandons it"
        } else {
            "Ctrl-C interrupts"
        };
        let what = if self.approvals.is_empty() {
            running.what.as_str()
        } else {
            "waiting for your answer"
        };
        Some(working(what, now - running.began, hint, columns))
    }

    fn queued_lines(&self, columns: usize) -> Vec<Line> {
        let dim = Style::PLAIN.dim();
        let mut lines: Vec<Line> = self
            .queued
            .iter()
            .take(MAX_QUEUED_ROWS)
            .map(|typed| {
                let text = format!("next: {}", first_line(&typed.shown));
                Line::new(&shortened(&text, columns), dim)
            })
            .collect();
        let n_more = self.queued.len().saturating_sub(MAX_QUEUED_ROWS);
        if n_more > 0 {
            lines.push(Line::new(&format!("and {n_more} more"), dim));
        }
        lines
    }

    /// The end of what is being said or thought, in so many rows at most.
    fn spoken_lines(&self, columns: usize, rows: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = self
            .stream
            .tail(columns)
            .iter()
            .flat_map(|line| wrap_cells(line, columns))
            .collect();
        let begins = !self.has_spoken && !self.ends_with_gap;
        if lines.is_empty() && !self.reasoning.trim().is_empty() {
            lines = self.thoughts(columns);
        }
        if begins && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines.drain(..lines.len().saturating_sub(rows));
        lines
    }

    fn thoughts(&self, columns: usize) -> Vec<Line> {
        let style = Style::PLAIN.dim().italic();
        let mut lines: Vec<Line> = Line::lines(self.reasoning.trim(), style)
            .iter()
            .flat_map(|line| wrap_words(line, columns, &Line::default()))
            .filter(|line| !line.is_empty())
            .collect();
        lines.drain(..lines.len().saturating_sub(MAX_THOUGHT_ROWS));
        lines
    }
}
