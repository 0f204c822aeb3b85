//! Completion: the seam to whoever knows what can be written, and the menu that shows it.

use cocode_agent::Work;

use crate::style::{Color, Line, Style};
use crate::text::{shortened, width};

/// Candidates that are looked at; the rest are left out.
pub(crate) const MAX_CANDIDATES: usize = 200;

/// Rows of the menu.
const MAX_ROWS: usize = 8;

/// Knows what can be written: commands, files, resources of servers.
pub trait Completer: Send + Sync {
    /// What can stand where the cursor is, the best first. The cursor is a byte of the input. It is
    /// asked after every key in a word that begins with `@`, or with `/` at the beginning, and after
    /// Tab everywhere. If the future is dropped, nobody wants to know any more.
    fn complete<'a>(&'a self, input: &'a str, cursor: usize) -> Work<'a, Vec<Candidate>>;
}

/// Something that can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The byte of the input from which on, up to the cursor, the text is put.
    pub from: usize,
    /// What is put there, with the space after it where one belongs.
    pub text: String,
    /// What the menu shows.
    pub label: String,
    /// What it is, in a few words; may be empty.
    pub detail: String,
}

/// Whether completion is asked for by itself at this place.
pub(crate) fn begins_completion(input: &str, cursor: usize) -> bool {
    let Some(before) = input.get(..cursor) else {
        return false;
    };
    let word = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    word.starts_with('@') || (before.starts_with('/') && word == before)
}

/// The candidates for one place in one text.
#[derive(Debug)]
pub(crate) struct Menu {
    candidates: Vec<Candidate>,
    at: usize,
    /// The person has moved in it, so Enter means what is marked.
    pub(crate) is_chosen: bool,
}

impl Menu {
    /// None if there is nothing to choose.
    pub(crate) fn new(mut candidates: Vec<Candidate>) -> Option<Self> {
        candidates.truncate(MAX_CANDIDATES);
        (!candidates.is_empty()).then_some(Self {
            candidates,
            at: 0,
            is_chosen: false,
        })
    }

    pub(crate) fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.at)
    }

    /// Whether a text is already one of the candidates.
    pub(crate) fn has(&self, typed: &str) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|candidate| candidate.text.trim() == typed.trim())
    }

    /// The only candidate, if there is one alone.
    pub(crate) fn only(&self) -> Option<&Candidate> {
        match self.candidates.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    pub(crate) fn next(&mut self) {
        self.is_chosen = true;
        self.at = (self.at + 1) % self.candidates.len();
    }

    pub(crate) fn previous(&mut self) {
        self.is_chosen = true;
        let n = self.candidates.len();
        self.at = (self.at + n - 1) % n;
    }

    pub(crate) fn lines(&self, columns: usize) -> Vec<Line> {
        let first = window(self.at, self.candidates.len(), MAX_ROWS);
        let shown = || {
            self.candidates
                .iter()
                .enumerate()
                .skip(first)
                .take(MAX_ROWS)
        };
        let widest = shown()
            .map(|(_, candidate)| width(&candidate.label))
            .max()
            .unwrap_or_default()
            .min(columns / 2);
        let mut lines: Vec<Line> = shown()
            .map(|(place, candidate)| {
                let label = shortened(&candidate.label, widest);
                let style = if place == self.at {
                    Style::PLAIN.bold().color(Color::Cyan)
                } else {
                    Style::PLAIN
                };
                let mark = if place == self.at { "› " } else { "  " };
                let padding = " ".repeat(widest.saturating_sub(width(&label)) + 2);
                let room = columns.saturating_sub(widest + 4);
                Line::new(mark, style)
                    .with(&label, style)
                    .with(&padding, Style::PLAIN)
                    .with(&shortened(&candidate.detail, room), Style::PLAIN.dim())
            })
            .collect();
        if self.candidates.len() > MAX_ROWS {
            let count = format!("  {} of {}", self.at + 1, self.candidates.len());
            lines.push(Line::new(&count, Style::PLAIN.dim()));
        }
        lines
    }
}

/// The first of so many rows, of a list in which one entry must be seen.
pub(crate) fn window(at: usize, length: usize, rows: usize) -> usize {
    at.saturating_sub(rows / 2).min(length.saturating_sub(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(label: &str) -> Candidate {
        Candidate {
            from: 0,
            text: format!("{label} "),
            label: label.to_owned(),
            detail: format!("does {label}"),
        }
    }

    #[test]
    fn completion_begins_at_commands_and_mentions() {
        for (input, expected) in [
            ("/", true),
            ("/he", true),
            ("/help me", false),
            ("say /he", false),
            ("see @", true),
            ("see @src/ma", true),
            ("mail a@b", false),
            ("", false),
        ] {
            assert_eq!(begins_completion(input, input.len()), expected, "{input}");
        }
    }

    #[test]
    fn the_menu_goes_around_and_shows_what_is_marked() {
        let names: Vec<String> = (0..20).map(|n| format!("/c{n}")).collect();
        let mut menu = Menu::new(names.iter().map(|name| candidate(name)).collect()).unwrap();
        assert!(!menu.is_chosen);
        menu.previous();
        assert_eq!(menu.chosen().unwrap().label, "/c19");
        let texts: Vec<String> = menu.lines(40).iter().map(Line::text).collect();
        assert_eq!(texts.len(), MAX_ROWS + 1);
        assert_eq!(texts.first().unwrap(), "  /c12  does /c12");
        assert_eq!(texts.get(7).unwrap(), "› /c19  does /c19");
        assert_eq!(texts.last().unwrap(), "  20 of 20");
        menu.next();
        assert_eq!(menu.chosen().unwrap().label, "/c0");
        assert!(menu.is_chosen);
    }

    #[test]
    fn there_is_no_menu_of_nothing() {
        assert!(Menu::new(Vec::new()).is_none());
    }
}
