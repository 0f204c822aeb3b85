//! The input line, which may have many lines: its text, its cursor, and what keys do to them. Long
//! pastes are shown folded and are whole again when the text is taken.

mod layout;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::text::graphemes;

/// Pasted text with more lines, or more characters, is folded.
const MAX_PASTED_LINES: usize = 6;
const MAX_PASTED_CHARACTERS: usize = 1000;

/// Characters that the input takes; the rest of a paste is left out.
const MAX_INPUT_BYTES: usize = 1024 * 1024;

/// Text that is being written.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// A byte, always between two characters as a person counts them.
    cursor: usize,
    /// What was cut last.
    killed: String,
    /// What folded pastes stand for.
    pastes: Vec<Paste>,
    n_pastes: usize,
    /// The column in which the cursor stays as it goes up and down.
    goal: Option<usize>,
}

#[derive(Debug)]
struct Paste {
    shown: String,
    content: String,
}

/// What a key meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// The text is another.
    Changed,
    /// The cursor is elsewhere.
    Moved,
    /// The text is done.
    Submitted,
    /// Up in the first row.
    BeforeFirst,
    /// Down in the last row.
    AfterLast,
    /// Nothing to do with text.
    Nothing,
}

impl Editor {
    /// The text as it is shown.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text as it is meant.
    pub(crate) fn meant(&self) -> String {
        let mut text = self.text.clone();
        for Paste { shown, content } in &self.pastes {
            text = text.replace(shown, content);
        }
        text
    }

    /// Takes the text as it is meant.
    pub(crate) fn take(&mut self) -> String {
        let text = self.meant();
        self.set("");
        text
    }

    /// Puts another text in the place of this one, with the cursor at its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.pastes.clear();
        self.text = kept_characters(text);
        self.cursor = self.text.len();
        self.goal = None;
    }

    /// Removes the text; it can be put back as what was cut.
    pub(crate) fn clear(&mut self) {
        self.killed = self.take();
    }

    /// Puts text in the place of a part of it.
    pub(crate) fn replace(&mut self, from: usize, to: usize, text: &str) {
        let is_part = from <= to && self.text.get(from..to).is_some();
        if is_part {
            self.text.replace_range(from..to, text);
            self.cursor = from + text.len();
            self.goal = None;
        }
    }

    /// Takes text that was pasted.
    pub(crate) fn paste(&mut self, pasted: &str) {
        let content = kept_characters(pasted);
        let n_lines = content.lines().count();
        let is_long = n_lines > MAX_PASTED_LINES || content.chars().count() > MAX_PASTED_CHARACTERS;
        if !is_long {
            self.insert(&content);
            return;
        }
        self.n_pastes += 1;
        let amount = match n_lines {
            0 | 1 => format!("{} characters", content.chars().count()),
            n => format!("{n} lines"),
        };
        let shown = format!("[pasted {amount} #{}]", self.n_pastes);
        self.insert(&shown);
        self.pastes.push(Paste { shown, content });
    }

    pub(crate) fn insert(&mut self, text: &str) {
        let room = MAX_INPUT_BYTES.saturating_sub(self.text.len());
        let fitting = text.get(..text.floor_char_boundary(room)).unwrap_or(text);
        self.text.insert_str(self.cursor, fitting);
        self.cursor += fitting.len();
    }

    /// Does what a key means, in a terminal with room for so many columns of text.
    pub(crate) fn key(&mut self, key: KeyEvent, columns: usize) -> Took {
        let goal = self.goal.take();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        let is_shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if is_alt || is_shift || is_control => self.changed("\n"),
            KeyCode::Enter if self.before().ends_with('\\') => {
                self.kill(self.cursor.saturating_sub(1), self.cursor);
                self.changed("\n")
            }
            KeyCode::Enter => Took::Submitted,
            KeyCode::Up => self.vertical(goal, columns, Vertical::Up),
            KeyCode::Down => self.vertical(goal, columns, Vertical::Down),
            KeyCode::Char(character) if is_control => self.control_key(character, goal, columns),
            KeyCode::Char(character) if is_alt => self.alt_key(character),
            KeyCode::Char(character) => self.changed(character.encode_utf8(&mut [0; 4])),
            KeyCode::Left if is_control || is_alt => self.moved(self.word_start()),
            KeyCode::Right if is_control || is_alt => self.moved(self.word_end()),
            KeyCode::Left => self.moved(self.previous()),
            KeyCode::Right => self.moved(self.next()),
            KeyCode::Home => self.moved(self.line_start()),
            KeyCode::End => self.moved(self.line_end()),
            KeyCode::Backspace if is_alt || is_control => self.cut(self.word_start(), self.cursor),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete => self.kill(self.cursor, self.next()),
            _ => Took::Nothing,
        }
    }

    fn control_key(&mut self, character: char, goal: Option<usize>, columns: usize) -> Took {
        match character {
            'a' => self.moved(self.line_start()),
            'b' => self.moved(self.previous()),
            'd' if !self.is_empty() => self.kill(self.cursor, self.next()),
            'e' => self.moved(self.line_end()),
            'f' => self.moved(self.next()),
            'h' => self.backspace(),
            'j' => self.changed("\n"),
            'k' => {
                let end = self.line_end();
                let at_end = end == self.cursor;
                self.cut(self.cursor, if at_end { self.next() } else { end })
            }
            'n' => self.vertical(goal, columns, Vertical::Down),
            'p' => self.vertical(goal, columns, Vertical::Up),
            'u' => self.cut(self.line_start(), self.cursor),
            'w' => self.cut(self.space_start(), self.cursor),
            'y' => {
                let killed = self.killed.clone();
                self.changed(&killed)
            }
            _ => Took::Nothing,
        }
    }

    fn alt_key(&mut self, character: char) -> Took {
        match character {
            'b' => self.moved(self.word_start()),
            'f' => self.moved(self.word_end()),
            'd' => self.cut(self.cursor, self.word_end()),
            _ => Took::Nothing,
        }
    }

    fn changed(&mut self, text: &str) -> Took {
        self.insert(text);
        Took::Changed
    }

    fn moved(&mut self, to: usize) -> Took {
        self.cursor = to;
        Took::Moved
    }

    fn vertical(&mut self, goal: Option<usize>, columns: usize, way: Vertical) -> Took {
        let layout = self.layout(columns);
        let (row, column) = layout.cursor;
        let goal = goal.unwrap_or(column);
        let target = match way {
            Vertical::Up => row.checked_sub(1),
            Vertical::Down => Some(row + 1).filter(|row| *row < layout.rows.len()),
        };
        let place = target.and_then(|row| layout.place(row, goal));
        match (place, way) {
            (Some(place), _) => {
                self.goal = Some(goal);
                self.moved(place)
            }
            (None, Vertical::Up) => Took::BeforeFirst,
            (None, Vertical::Down) => Took::AfterLast,
        }
    }

    /// A folded paste goes as a whole: no other would be what was pasted.
    fn backspace(&mut self) -> Took {
        let before = self.before();
        let folded = self
            .pastes
            .iter()
            .find(|paste| before.ends_with(&paste.shown))
            .map(|paste| paste.shown.len());
        let from = match folded {
            Some(length) => self.cursor.saturating_sub(length),
            None => self.previous(),
        };
        self.kill(from, self.cursor)
    }

    /// Removes a part.
    fn kill(&mut self, from: usize, to: usize) -> Took {
        if from < to && self.text.get(from..to).is_some() {
            self.text.replace_range(from..to, "");
            self.cursor = from;
        }
        Took::Changed
    }

    /// Removes a part, and keeps it.
    fn cut(&mut self, from: usize, to: usize) -> Took {
        if let Some(part) = self.text.get(from..to).filter(|part| !part.is_empty()) {
            self.killed = part.to_owned();
        }
        self.kill(from, to)
    }

    fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    fn previous(&self) -> usize {
        let last = graphemes(self.before()).next_back();
        self.cursor - last.map_or(0, str::len)
    }

    fn next(&self) -> usize {
        self.cursor + graphemes(self.after()).next().map_or(0, str::len)
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self) -> usize {
        let end = self.after().find('\n').unwrap_or(self.after().len());
        self.cursor + end
    }

    /// Where the word before the cursor begins; words are letters and digits.
    fn word_start(&self) -> usize {
        let without_gap = self
            .before()
            .trim_end_matches(|c: char| !c.is_alphanumeric());
        without_gap.trim_end_matches(char::is_alphanumeric).len()
    }

    /// Where the run without spaces before the cursor begins.
    fn space_start(&self) -> usize {
        let without_gap = self.before().trim_end();
        without_gap
            .trim_end_matches(|c: char| !c.is_whitespace())
            .len()
    }

    fn word_end(&self) -> usize {
        let rest = self
            .after()
            .trim_start_matches(|c: char| !c.is_alphanumeric());
        self.text.len() - rest.trim_start_matches(char::is_alphanumeric).len()
    }
}

#[derive(Clone, Copy)]
enum Vertical {
    Up,
    Down,
}

/// Line ends as we have them, and no other control characters but tabs.
fn kept_characters(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace('\r', "\n")
        .chars()
        .filter(|character| !character.is_control() || matches!(character, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
