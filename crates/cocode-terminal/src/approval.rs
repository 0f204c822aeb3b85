//! The question whether a call may be made. Its keys count only after a pause in typing, so that a
//! question which comes up in the middle of a word is not answered by the rest of it.

use cocode_agent::{ApprovalAnswer, ApprovalQuestion};
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
        match key.code {
            KeyCode::Esc => Asked::Answered(ApprovalAnswer::Stopped),
            KeyCode::Char('y') => Asked::Answered(ApprovalAnswer::Once),
            KeyCode::Char('a') if self.question.can_remember => {
                Asked::Answered(ApprovalAnswer::Always)
            }
            KeyCode::Char('v') => Asked::View,
            KeyCode::Char('n') => {
                self.reason = Some(Editor::default());
                Asked::Open
            }
            _ => Asked::Open,
        }
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
        let arguments = short_arguments(&self.question.arguments, columns);
        let (shown, is_shortened) = beginning(arguments, room.min(MAX_ARGUMENT_LINES));
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
        let changed = diff::whole_of_arguments(&self.question.arguments);
        lines.extend(indented(changed.unwrap_or_default(), columns));
        lines.extend(indented(pretty(&self.question.arguments), columns));
        lines
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
        } = &self.question;
        let dim = Style::PLAIN.dim();
        let warning = Style::PLAIN.bold().color(Color::Yellow);
        let mut lines = vec![
            Line::new("? ", warning)
                .with("May ", warning)
                .with(&shortened(tool, columns / 2), Style::PLAIN.bold())
                .with(" be called?", warning),
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

/// The arguments, as a diff where they are an edit.
fn short_arguments(arguments: &Value, columns: usize) -> Vec<Line> {
    let changed = diff::of_arguments(arguments);
    indented(changed.unwrap_or_else(|| pretty(arguments)), columns)
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pause::PAUSE;

    fn shown() -> (ApprovalBox, oneshot::Receiver<ApprovalAnswer>) {
        let (reply, answer) = oneshot::channel();
        let pending = Pending {
            question: question_for_tests(),
            reply,
        };
        (ApprovalBox::new(pending, Instant::now()), answer)
    }

    fn press(asked: &mut ApprovalBox, code: KeyCode, now: Instant) -> Asked {
        asked.key(KeyEvent::from(code), 60, now)
    }

    fn texts(asked: &ApprovalBox, now: Instant) -> Vec<String> {
        let (lines, _) = asked.lines(60, 30, now);
        lines.iter().map(Line::text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_question_says_everything() {
        let (asked, _answer) = shown();
        let expected = [
            "? May shell be called?",
            "  run `rm -r target`",
            "  asked because the sandbox does not allow it",
            "  the model says: A clean build is needed.",
            "  {",
            "    \"command\": \"rm -r target\"",
            "  }",
            "  y yes  a always  n no, and why  Esc stop the turn",
        ];
        assert_eq!(texts(&asked, Instant::now() + PAUSE), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn typing_goes_on_until_there_is_a_pause() {
        let (mut asked, _answer) = shown();
        let now = Instant::now();
        assert_eq!(press(&mut asked, KeyCode::Char('y'), now), Asked::NotMine);
        let later = now + PAUSE / 2;
        assert_eq!(press(&mut asked, KeyCode::Char('a'), later), Asked::NotMine);
        let still = now + PAUSE;
        assert_eq!(press(&mut asked, KeyCode::Char('y'), still), Asked::NotMine);
        let paused = still + PAUSE;
        let answered = press(&mut asked, KeyCode::Char('y'), paused);
        assert_eq!(answered, Asked::Answered(ApprovalAnswer::Once));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_answer() {
        let now = Instant::now() + PAUSE;
        for (code, expected) in [
            (KeyCode::Char('y'), Asked::Answered(ApprovalAnswer::Once)),
            (KeyCode::Char('a'), Asked::Answered(ApprovalAnswer::Always)),
            (KeyCode::Esc, Asked::Answered(ApprovalAnswer::Stopped)),
            (KeyCode::Enter, Asked::Open),
            (KeyCode::Char(' '), Asked::Open),
        ] {
            let (mut asked, _answer) = shown();
            assert_eq!(press(&mut asked, code, now), expected, "{code:?}");
        }
        let (mut asked, _answer) = shown();
        asked.question.can_remember = false;
        assert_eq!(press(&mut asked, KeyCode::Char('a'), now), Asked::Open);
        assert!(
            !texts(&asked, now)
                .iter()
                .any(|line| line.contains("always"))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_has_a_reason_if_one_is_typed() {
        let now = Instant::now() + PAUSE;
        for (typed, expected) in [("no!", Some("no!")), ("", None)] {
            let (mut asked, _answer) = shown();
            press(&mut asked, KeyCode::Char('n'), now);
            for character in typed.chars() {
                press(&mut asked, KeyCode::Char(character), now);
            }
            let answered = press(&mut asked, KeyCode::Enter, now);
            let reason = expected.map(str::to_owned);
            assert_eq!(answered, Asked::Answered(ApprovalAnswer::Refused(reason)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn long_arguments_leave_room_for_the_keys() {
        let (mut asked, _answer) = shown();
        asked.question.arguments =
            serde_json::json!({ "path": "x", "content": "line\n".repeat(300) });
        let now = Instant::now() + PAUSE;
        let (lines, _) = asked.lines(60, 12, now);
        assert_eq!(lines.len(), 12);
        let keys = lines.last().unwrap().text();
        assert!(
            keys.contains("y yes") && keys.contains("v view all"),
            "{keys}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_out_can_be_viewed() {
        let (mut asked, _answer) = shown();
        let command = format!("{}rm -r /", "true\n".repeat(100));
        asked.question.arguments = serde_json::json!({ "path": "x", "content": command });
        let now = Instant::now() + PAUSE;
        let cut = texts(&asked, now);
        assert!(!cut.iter().any(|line| line.contains("rm -r /")), "{cut:?}");
        assert_eq!(press(&mut asked, KeyCode::Char('v'), now), Asked::View);
        let all: Vec<String> = asked.everything(60).iter().map(Line::text).collect();
        assert!(all.contains(&"  + rm -r /".to_owned()), "{all:?}");
        assert!(all.contains(&"    \"path\": \"x\"".to_owned()), "{all:?}");
        let why = "  asked because the sandbox does not allow it";
        assert!(all.iter().any(|line| line == why), "{all:?}");
    }
}
