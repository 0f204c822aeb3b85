//! Questions that are not about a call: a line of text, or one of a list.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::editor::{Editor, Took};
use crate::host::{Question, QuestionKind};
use crate::pause::Pause;
use crate::pick::{PickList, Picked, Picker};
use crate::style::{Color, Line, Style};
use crate::text::{graphemes, shortened};
use crate::wrap::wrap_words;

/// Rows of the explanation that are shown.
const MAX_DETAIL_ROWS: usize = 8;

/// A question that is shown.
#[derive(Debug)]
pub(crate) struct QuestionBox {
    title: String,
    detail: String,
    input: Input,
    /// None where nobody is surprised.
    pause: Option<Pause>,
    reply: oneshot::Sender<Option<String>>,
}

#[derive(Debug)]
enum Input {
    Text { editor: Editor, is_secret: bool },
    OneOf(Picker),
}

/// What a key meant to the question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// This is the answer, or there is none.
    With(Option<String>),
    /// It is not answered yet.
    NotYet,
    /// The key was meant for the input line.
    NotMine,
}

impl QuestionBox {
    pub(crate) fn new(question: Question, now: Instant) -> Self {
        let Question {
            title,
            detail,
            kind,
            follows,
            reply,
        } = question;
        let input = match kind {
            QuestionKind::Text { initial, is_secret } => {
                let mut editor = Editor::default();
                editor.set(&initial);
                Input::Text { editor, is_secret }
            }
            QuestionKind::OneOf(entries) => Input::OneOf(Picker::new(PickList {
                title: String::new(),
                entries,
            })),
        };
        Self {
            title,
            detail,
            input,
            pause: (!follows).then(|| Pause::begin(now)),
            reply,
        }
    }

    /// Comes to the front: from now on its keys could be meant.
    pub(crate) fn show(&mut self, now: Instant) {
        self.pause = self.pause.map(|_before| Pause::begin(now));
    }

    /// When its keys begin to count, if they do not yet.
    pub(crate) fn armed_at(&self, now: Instant) -> Option<Instant> {
        self.pause.and_then(|pause| pause.over_at(now))
    }

    /// Waits until nobody wants to know any more. Cancel safe.
    pub(crate) async fn withdrawal(&mut self) {
        self.reply.closed().await;
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.reply.is_closed()
    }

    /// Whoever asked may have gone meanwhile, which is no fault.
    pub(crate) fn answer(self, answer: Option<String>) {
        if self.reply.send(answer).is_err() {
            tracing::debug!(self.title, "nobody waits for the answer");
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, columns: usize, now: Instant) -> Answered {
        if self.pause.is_some_and(|pause| !pause.is_over(now)) {
            self.pause = Some(Pause::begin(now));
            return Answered::NotMine;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let leaves = key.code == KeyCode::Esc
            || (is_control && matches!(key.code, KeyCode::Char('c' | 'd')));
        if leaves {
            return Answered::With(None);
        }
        match &mut self.input {
            Input::Text { editor, .. } => match editor.key(key, columns) {
                Took::Submitted => Answered::With(Some(editor.take())),
                _ => Answered::NotYet,
            },
            Input::OneOf(picker) => match picker.key(key) {
                Picked::Value(value) => Answered::With(Some(value)),
                Picked::Nothing => Answered::With(None),
                Picked::Open => Answered::NotYet,
            },
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Input::Text { editor, .. } = &mut self.input {
            editor.paste(text);
        }
    }

    /// The question in so many rows at most, and where the cursor is.
    pub(crate) fn lines(
        &self,
        columns: usize,
        rows: usize,
        now: Instant,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let accent = Style::PLAIN.bold().color(Color::Yellow);
        let title = shortened(&self.title, columns.saturating_sub(2)).into_owned();
        let mut lines = vec![Line::new("? ", accent).with(&title, Style::PLAIN.bold())];
        let indent = Line::plain("  ");
        let detail = Line::lines(&self.detail, Style::PLAIN)
            .into_iter()
            .flat_map(|line| {
                let mut indented = indent.clone();
                indented.append(line);
                wrap_words(&indented, columns, &indent)
            });
        lines.extend(detail.take(MAX_DETAIL_ROWS.min(rows.saturating_sub(4))));
        if self.pause.is_some_and(|pause| !pause.is_over(now)) {
            lines.push(Pause::line(columns));
            return (lines, None);
        }
        match &self.input {
            Input::OneOf(picker) => {
                let rows = rows.saturating_sub(lines.len()).max(3);
                // The title of the list is that of the question.
                lines.extend(picker.lines(columns, rows).into_iter().skip(1));
                (lines, None)
            }
            Input::Text { editor, is_secret } => {
                let layout = editor.layout(columns.saturating_sub(4));
                let row = layout.rows.get(layout.cursor.0).map_or("", String::as_str);
                let shown = if *is_secret {
                    "•".repeat(graphemes(row).count())
                } else {
                    row.to_owned()
                };
                let column = if *is_secret {
                    let before = editor.text().get(..editor.cursor()).unwrap_or_default();
                    graphemes(before).count().min(graphemes(row).count())
                } else {
                    layout.cursor.1
                };
                lines.push(Line::new("  > ", accent).with(&shown, Style::PLAIN));
                let cursor = (lines.len() - 1, 4 + column);
                let hint = "  Enter answers, Esc does not";
                lines.push(Line::new(&shortened(hint, columns), Style::PLAIN.dim()));
                (lines, Some(cursor))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pause::PAUSE;
    use crate::pick::PickEntry;

    fn later() -> Instant {
        Instant::now() + PAUSE
    }

    fn shown(kind: QuestionKind) -> QuestionBox {
        let (reply, _answer) = oneshot::channel();
        let question = Question {
            title: "github wants to know".to_owned(),
            detail: "Which one?".to_owned(),
            kind,
            follows: false,
            reply,
        };
        QuestionBox::new(question, Instant::now())
    }

    fn texts(asked: &QuestionBox) -> Vec<String> {
        asked
            .lines(60, 20, later())
            .0
            .iter()
            .map(Line::text)
            .collect()
    }

    fn press(asked: &mut QuestionBox, code: KeyCode) -> Answered {
        asked.key(KeyEvent::from(code), 60, later())
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_not_answered_by_the_rest_of_a_word() {
        let kind = QuestionKind::Text {
            initial: String::new(),
            is_secret: false,
        };
        let mut asked = shown(kind);
        let now = Instant::now();
        let enter = KeyEvent::from(KeyCode::Enter);
        assert_eq!(asked.key(enter, 60, now), Answered::NotMine);
        assert_eq!(asked.key(enter, 60, now + PAUSE / 2), Answered::NotMine);
        let answered = asked.key(enter, 60, now + 2 * PAUSE);
        assert_eq!(answered, Answered::With(Some(String::new())));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_part_of_a_question_is_answered_at_once() {
        let (reply, _answer) = oneshot::channel();
        let question = Question {
            title: String::new(),
            detail: String::new(),
            kind: QuestionKind::Text {
                initial: "x".to_owned(),
                is_secret: false,
            },
            follows: true,
            reply,
        };
        let now = Instant::now();
        let mut asked = QuestionBox::new(question, now);
        asked.show(now);
        assert_eq!(asked.armed_at(now), None);
        let answered = asked.key(KeyEvent::from(KeyCode::Enter), 60, now);
        assert_eq!(answered, Answered::With(Some("x".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_sees_a_secret() {
        let kind = QuestionKind::Text {
            initial: String::new(),
            is_secret: true,
        };
        let mut asked = shown(kind);
        for character in "hunter2".chars() {
            press(&mut asked, KeyCode::Char(character));
        }
        let expected = [
            "? github wants to know",
            "  Which one?",
            "  > •••••••",
            "  Enter answers, Esc does not",
        ];
        assert_eq!(texts(&asked), expected);
        assert_eq!(asked.lines(60, 20, later()).1, Some((2, 11)));
        let answered = press(&mut asked, KeyCode::Enter);
        assert_eq!(answered, Answered::With(Some("hunter2".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_a_list_is_an_answer() {
        let entry = |label: &str| PickEntry {
            label: label.to_owned(),
            detail: String::new(),
            value: label.to_uppercase(),
        };
        let mut asked = shown(QuestionKind::OneOf(vec![entry("red"), entry("blue")]));
        press(&mut asked, KeyCode::Down);
        assert!(texts(&asked).iter().any(|line| line.starts_with("› blue")));
        let answered = press(&mut asked, KeyCode::Enter);
        assert_eq!(answered, Answered::With(Some("BLUE".to_owned())));
        assert_eq!(press(&mut asked, KeyCode::Esc), Answered::With(None));
    }
}
