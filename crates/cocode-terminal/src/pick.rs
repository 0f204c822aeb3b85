//! A list from which one entry is picked; what is typed narrows it down.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::completion::window;
use crate::style::{Color, Line, Style};
use crate::text::{shortened, width};

/// Something to choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickList {
    /// What is chosen.
    pub title: String,
    /// Among what.
    pub entries: Vec<PickEntry>,
}

/// Something that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickEntry {
    /// What is shown.
    pub label: String,
    /// What it is, in a few words; may be empty.
    pub detail: String,
    /// What it means: in a list that a command gave, the command that is run then.
    pub value: String,
}

/// What a key meant to a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    /// This is chosen.
    Value(String),
    /// Nothing is.
    Nothing,
    /// Not yet.
    Open,
}

/// A list, and where in it the person is.
#[derive(Debug)]
pub(crate) struct Picker {
    list: PickList,
    wanted: String,
    at: usize,
}

impl Picker {
    pub(crate) fn new(list: PickList) -> Self {
        Self {
            list,
            wanted: String::new(),
            at: 0,
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Picked {
        let n = self.matching().count();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::Nothing,
            KeyCode::Char('c' | 'd') if is_control => return Picked::Nothing,
            KeyCode::Enter => {
                let chosen = self.matching().nth(self.at);
                return chosen.map_or(Picked::Open, |entry| Picked::Value(entry.value.clone()));
            }
            KeyCode::Up | KeyCode::BackTab => self.step(n.saturating_sub(1)),
            KeyCode::Down | KeyCode::Tab => self.step(1),
            KeyCode::Char('p') if is_control => self.step(n.saturating_sub(1)),
            KeyCode::Char('n') if is_control => self.step(1),
            KeyCode::Backspace => {
                self.wanted.pop();
                self.at = 0;
            }
            KeyCode::Char(character) if !is_control => {
                self.wanted.push(character);
                self.at = 0;
            }
            _ => {}
        }
        Picked::Open
    }

    /// Goes on by so many, around the end.
    fn step(&mut self, by: usize) {
        let n = self.matching().count().max(1);
        self.at = (self.at + by) % n;
    }

    pub(crate) fn lines(&self, columns: usize, rows: usize) -> Vec<Line> {
        let dim = Style::PLAIN.dim();
        let mut lines = vec![Line::new(
            &shortened(&self.list.title, columns),
            Style::PLAIN.bold(),
        )];
        let n = self.matching().count();
        let rows = rows.saturating_sub(2).max(1);
        let first = window(self.at, n, rows);
        let widest = self
            .matching()
            .map(|entry| width(&entry.label))
            .max()
            .unwrap_or_default()
            .min(columns / 2);
        for (place, entry) in self.matching().enumerate().skip(first).take(rows) {
            let style = if place == self.at {
                Style::PLAIN.bold().color(Color::Cyan)
            } else {
                Style::PLAIN
            };
            let label = shortened(&entry.label, widest);
            let padding = " ".repeat(widest.saturating_sub(width(&label)) + 2);
            let detail = shortened(&entry.detail, columns.saturating_sub(widest + 4));
            lines.push(
                Line::new(if place == self.at { "› " } else { "  " }, style)
                    .with(&label, style)
                    .with(&padding, style)
                    .with(&detail, dim),
            );
        }
        let hint = match (n, self.wanted.is_empty()) {
            (0, _) => format!("nothing matches \"{}\": Backspace", self.wanted),
            (_, true) => "↑↓ choose, Enter takes, Esc leaves, typing narrows down".to_owned(),
            (n, false) => format!("\"{}\" matches {n}", self.wanted),
        };
        lines.push(Line::new(&shortened(&hint, columns), dim));
        lines
    }

    fn matching(&self) -> impl Iterator<Item = &PickEntry> {
        let wanted = self.wanted.to_lowercase();
        self.list
            .entries
            .iter()
            .filter(move |entry| entry.label.to_lowercase().contains(&wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker {
        let entry = |label: &str| PickEntry {
            label: label.to_owned(),
            detail: "ready".to_owned(),
            value: format!("/mcp {label}"),
        };
        Picker::new(PickList {
            title: "Servers".to_owned(),
            entries: vec![entry("github"), entry("git"), entry("files")],
        })
    }

    fn press(picker: &mut Picker, code: KeyCode) -> Picked {
        picker.key(KeyEvent::from(code))
    }

    #[test]
    fn arrows_choose_and_enter_takes() {
        let mut picker = picker();
        press(&mut picker, KeyCode::Down);
        let texts: Vec<String> = picker.lines(80, 9).iter().map(Line::text).collect();
        let hint = "↑↓ choose, Enter takes, Esc leaves, typing narrows down";
        let expected = [
            "Servers",
            "  github  ready",
            "› git     ready",
            "  files   ready",
            hint,
        ];
        assert_eq!(texts, expected);
        let picked = press(&mut picker, KeyCode::Enter);
        assert_eq!(picked, Picked::Value("/mcp git".to_owned()));
        assert_eq!(press(&mut picker, KeyCode::Esc), Picked::Nothing);
    }

    #[test]
    fn typing_narrows_the_list_down() {
        let mut picker = picker();
        press(&mut picker, KeyCode::Char('F'));
        let picked = press(&mut picker, KeyCode::Enter);
        assert_eq!(picked, Picked::Value("/mcp files".to_owned()));
        press(&mut picker, KeyCode::Char('x'));
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Open);
        press(&mut picker, KeyCode::Up);
        press(&mut picker, KeyCode::Backspace);
        press(&mut picker, KeyCode::Backspace);
        press(&mut picker, KeyCode::Up);
        let picked = press(&mut picker, KeyCode::Enter);
        assert_eq!(picked, Picked::Value("/mcp files".to_owned()));
    }
}
