//! The question whether a call may be made. Its keys count only after a pause in typing, so that a
//! question which comes up in the middle of a word is not answered by the rest of it.

use std::cell::Cell;

use cocode_agent::{ApprovalAnswer, ApprovalQuestion, argument_lines};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::diff;
use crate::editor::{Editor, Took};
use crate::mailbox::Pending;
use crate::pause::Pause;
use crate::style::{Color, Line, Style};
use crate::text::{first_line, shortened};
use crate::wrap::{wrap_cells, wrap_words};

/// Lines of arguments that are shown with the question.
const MAX_ARGUMENT_LINES: usize = 16;
/// Lines of every reason that are shown with the question.
const MAX_WORDS_LINES: usize = 4;

/// A question that is shown.
#[derive(Debug)]
pub(crate) struct ApprovalBox {
    question: ApprovalQuestion,
    reply: oneshot::Sender<ApprovalAnswer>,
    pause: Pause,
    /// The reason of a refusal, while it is typed.
    reason: Option<Editor>,
    /// Not every argument was named when it was last drawn: it has to be viewed before it is approved.
    hides_values: Cell<bool>,
    is_viewed: bool,
}

/// What a key meant to the question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// This is the answer.
    Answered(ApprovalAnswer),
    /// It is not answered yet.
    Open,
    /// All of it is to be shown.
    View,
    /// The key was meant for the input line.
    NotMine,
}

impl ApprovalBox {
    pub(crate) fn new(pending: Pending, now: Instant) -> Self {
        let Pending { question, reply } = pending;
        Self {
            question,
            reply,
            pause: Pause::begin(now),
            reason: None,
            hides_values: Cell::new(false),
            is_viewed: false,
        }
    }

    pub(crate) fn question(&self) -> &ApprovalQuestion {
        &self.question
    }

    /// Comes to the front: from now on its keys could be meant.
    pub(crate) fn show(&mut self, now: Instant) {
        self.pause = Pause::begin(now);
    }

    /// When its keys begin to count, if they do not yet.
    pub(crate) fn armed_at(&self, now: Instant) -> Option<Instant> {
        self.pause.over_at(now)
    }

    /// Whether nobody wants to know any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.reply.is_closed()
    }

    /// Waits until nobody wants to know any more. Cancel safe.
    pub(crate) async fn withdrawal(&mut self) {
        self.reply.closed().await;
    }

    /// Whoever asked may have gone meanwhile, which is no fault.
    pub(crate) fn answer(self, answer: ApprovalAnswer) {
        if self.reply.send(answer).is_err() {
            tracing::debug!(tool = self.question.tool, "nobody waits for the answer");
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, columns: usize, now: Instant) -> Asked {
        if !self.pause.is_over(now) {
            self.pause = Pause::begin(now);
            return Asked::NotMine;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Asked::Answered(ApprovalAnswer::Stopped);
        }
        if let Some(reason) = &mut self.reason {
            if key.code == KeyCode::Esc {
                self.reason = None;
                return Asked::Open;
            }
            if reason.key(key, columns) == Took::Submitted {
                let reason = reason.take().trim().to_owned();
                let reason = (!reason.is_empty()).then_some(reason);
                return Asked::Answered(ApprovalAnswer::Refused(reason));
            }
            return Asked::Open;
        }
        let is_approval = matches!(key.code, KeyCode::Char('y' | 'a'));
        match key.code {
            KeyCode::Esc => Asked::Answered(ApprovalAnswer::Stopped),
            _ if is_approval && self.hides_values.get() && !self.is_viewed => self.view(),
            KeyCode::Char('y') => Asked::Answered(ApprovalAnswer::Once),
            KeyCode::Char('a') if self.question.can_remember => {
                Asked::Answered(ApprovalAnswer::Always)
            }
            KeyCode::Char('v') => self.view(),
            KeyCode::Char('n') => {
                self.reason = Some(Editor::default());
                Asked::Open
            }
            _ => Asked::Open,
        }
    }

    fn view(&mut self) -> Asked {
        self.is_viewed = true;
        Asked::View
    }

    /// Text that was pasted belongs to the reason, if one is typed.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        match &mut self.reason {
            Some(reason) => {
                reason.paste(text);
                true
            }
            None => false,
        }
    }

    /// The question in so many rows at most, and where the cursor is if a reason is typed.
    pub(crate) fn lines(
        &self,
        columns: usize,
        rows: usize,
        now: Instant,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let dim = Style::PLAIN.dim();
        let warning = Style::PLAIN.bold().color(Color::Yellow);
        let (mut lines, is_cut) = self.words(columns, MAX_WORDS_LINES);
        let below = match &self.reason {
            Some(_) => 3,
            None => 1,
        };
        let room = rows.saturating_sub(lines.len() + below);
        let (shown, is_shortened) = self.arguments(columns, room.min(MAX_ARGUMENT_LINES));
        lines.extend(shown);
        let Some(reason) = &self.reason else {
            lines.push(self.keys(is_cut || is_shortened, columns, now));
            return (lines, None);
        };
        let hint = "  No. What should the model be told? Enter sends it, Esc goes back.";
        lines.push(Line::new(&shortened(hint, columns), dim));
        let layout = reason.layout(columns.saturating_sub(4));
        let text = layout.rows.get(layout.cursor.0).map_or("", String::as_str);
        lines.push(Line::new("  > ", warning).with(text, Style::PLAIN));
        let cursor = (lines.len() - 1, 4 + layout.cursor.1);
        (lines, Some(cursor))
    }

    /// All of it, for the scrollback, where there is room: nobody is to agree to half a command.
    pub(crate) fn everything(&self, columns: usize) -> Vec<Line> {
        let (mut lines, _) = self.words(columns, usize::MAX);
        // A diff is easier to read, but not all of the arguments are in it.
        let ApprovalQuestion {
            tool, arguments, ..
        } = &self.question;
        let changed = diff::whole_of_call(tool, arguments, self.question.replaced_text.as_deref());
        lines.extend(indented(changed.unwrap_or_default(), columns));
        lines.extend(indented(pretty(arguments), columns));
        lines
    }

    /// The arguments in so many rows at most, each of them at least by name, and whether anything is left out.
    fn arguments(&self, columns: usize, rows: usize) -> (Vec<Line>, bool) {
        let ApprovalQuestion {
            tool,
            arguments,
            replaced_text,
            ..
        } = &self.question;
        if let Some(changed) = diff::of_call(tool, arguments, replaced_text.as_deref()) {
            return beginning(indented(changed, columns), rows);
        }
        let with_values = |chars, values| {
            let lines = argument_lines(arguments, chars, values).into_iter();
            let lines = lines.map(|line| Line::new(&line, Style::PLAIN.dim()));
            indented(lines.collect(), columns)
        };
        let whole = with_values(usize::MAX, usize::MAX);
        if whole.len() <= rows {
            return (whole, false);
        }
        let count = arguments.as_object().map_or(1, serde_json::Map::len);
        let mut shortened = (0..=rows)
            .rev()
            .map(|values| (values, with_values(0, values)));
        let fitting = shortened.find(|(_, lines)| lines.len() <= rows);
        let (values, lines) = fitting.unwrap_or_else(|| (0, with_values(0, 0)));
        self.hides_values.set(values < count);
        (beginning(lines, rows).0, true)
    }

    /// What is asked and why, each in so many lines at most, and whether anything is left out.
    fn words(&self, columns: usize, most: usize) -> (Vec<Line>, bool) {
        let ApprovalQuestion {
            id: _,
            tool,
            summary,
            arguments: _,
            why,
            justification,
            can_remember: _,
            replaced_text: _,
            changed_files,
        } = &self.question;
        let dim = Style::PLAIN.dim();
        let warning = Style::PLAIN.bold().color(Color::Yellow);
        let (before, after) = if changed_files.is_empty() {
            ("May ", " be called?")
        } else {
            ("Keep what ", " has changed? No undoes it.")
        };
        let mut lines = vec![
            Line::new("? ", warning)
                .with(before, warning)
                .with(&shortened(tool, columns / 2), Style::PLAIN.bold())
                .with(after, warning),
        ];
        let hanging = Line::plain("  ");
        let mut is_cut = false;
        let mut add = |name: &str, text: &str, style: Style| {
            let line = Line::plain("  ").with(name, dim).with(text, style);
            let wrapped = wrap_words(&line, columns, &hanging);
            is_cut |= wrapped.len() > most;
            lines.extend(wrapped.into_iter().take(most));
        };
        add("", first_line(summary), Style::PLAIN);
        if !why.is_empty() {
            add("asked because ", why, dim);
        }
        if let Some(justification) = justification {
            add("the model says: ", justification, Style::PLAIN.italic());
        }
        (lines, is_cut)
    }

    /// Which keys there are; faint as long as they do not count.
    fn keys(&self, is_cut: bool, columns: usize, now: Instant) -> Line {
        if !self.pause.is_over(now) {
            return Pause::line(columns);
        }
        let key = Style::PLAIN.bold().color(Color::Cyan);
        let mut line = Line::plain("  ").with("y", key).with(" yes", Style::PLAIN);
        if self.question.can_remember {
            line = line.with("  a", key).with(" always", Style::PLAIN);
        }
        line = line.with("  n", key).with(" no, and why", Style::PLAIN);
        if is_cut {
            line = line.with("  v", key).with(" view all", Style::PLAIN);
        }
        line.with("  Esc", key).with(" stop the turn", Style::PLAIN)
    }
}

/// All arguments, as they are.
fn pretty(arguments: &Value) -> Vec<Line> {
    let is_nothing =
        arguments.is_null() || arguments.as_object().is_some_and(serde_json::Map::is_empty);
    if is_nothing {
        return Vec::new();
    }
    let pretty = serde_json::to_string_pretty(arguments);
    let pretty = pretty.unwrap_or_else(|_no_json| arguments.to_string());
    Line::lines(&pretty, Style::PLAIN.dim())
}

fn indented(lines: Vec<Line>, columns: usize) -> Vec<Line> {
    lines
        .into_iter()
        .flat_map(|line| wrap_cells(&line, columns.saturating_sub(2)))
        .map(|line| {
            let mut indented = Line::plain("  ");
            indented.append(line);
            indented
        })
        .collect()
}

/// No more than so many of these lines, and whether any are left out.
fn beginning(mut lines: Vec<Line>, rows: usize) -> (Vec<Line>, bool) {
    if lines.len() <= rows {
        return (lines, false);
    }
    if let Some(kept) = rows.checked_sub(1) {
        let n_more = lines.len() - kept;
        lines.truncate(kept);
        let more = format!("  … {n_more} more lines");
        lines.push(Line::new(&more, Style::PLAIN.dim()));
    } else {
        lines.clear();
    }
    (lines, true)
}

#[cfg(test)]
pub(crate) fn question_for_tests() -> ApprovalQuestion {
    ApprovalQuestion {
        id: "call-1".to_owned(),
        tool: "shell".to_owned(),
        summary: "run `rm -r target`".to_owned(),
        arguments: serde_json::json!({ "command": "rm -r target" }),
        why: "the sandbox does not allow it".to_owned(),
        justification: Some("A clean build is needed.".to_owned()),
        can_remember: true,
        ..ApprovalQuestion::default()
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
