//! What keys mean, by what is shown.

use cocode_agent::ApprovalAnswer;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::time::Instant;

use super::{App, CompletionAsked, Effect, Place, QUIT_AGAIN, Search, Typed};
use crate::approval::Asked;
use crate::completion::begins_completion;
use crate::editor::Took;
use crate::pick::Picked;
use crate::question::Answered;

impl App {
    /// A key was pressed.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Instant) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let quit_asked = self.quit_asked.take();
        if self.modal_key(key, now) {
            return;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => self.control_c(quit_asked, now),
            KeyCode::Char('d') if is_control && self.editor.is_empty() => self.control_d(),
            KeyCode::Char('l') if is_control => self.clear_screen(),
            KeyCode::Char('z') if is_control => self.effects.push(Effect::Suspend),
            KeyCode::Char('r') if is_control => self.search = Some(Search::default()),
            KeyCode::Esc if self.menu.take().is_some() => {}
            KeyCode::Esc => self.interrupt(),
            _ if self.menu_key(key) => {}
            KeyCode::Tab => self.effects.push(Effect::Complete {
                asked: CompletionAsked::ByKey,
            }),
            _ => self.editor_key(key, now),
        }
    }

    /// Text was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(asked) = self.approvals.front_mut()
            && asked.paste(text)
        {
            return;
        }
        if self.approvals.is_empty()
            && let Some(asked) = self.questions.front_mut()
        {
            asked.paste(text);
            return;
        }
        self.search = None;
        self.menu = None;
        self.history.forget_place();
        self.editor.paste(text);
    }

    /// Whether the key was meant for a question, a list or a search.
    fn modal_key(&mut self, key: KeyEvent, now: Instant) -> bool {
        let columns = self.columns();
        if let Some(asked) = self.approvals.front_mut() {
            match asked.key(key, columns, now) {
                Asked::NotMine => return false,
                Asked::Open => {}
                Asked::View => {
                    let lines = asked.everything(columns);
                    self.print_block(lines);
                }
                Asked::Answered(answer) => {
                    let by_control_c =
                        key.code != KeyCode::Esc && answer == ApprovalAnswer::Stopped;
                    self.answer_approval(answer, now);
                    if by_control_c {
                        self.interrupt();
                    }
                }
            }
            return true;
        }
        if let Some(asked) = self.questions.front_mut() {
            match asked.key(key, columns, now) {
                Answered::NotMine => return false,
                Answered::NotYet => {}
                Answered::With(answer) => {
                    if let Some(asked) = self.questions.pop_front() {
                        asked.answer(answer);
                    }
                    self.show_next_question(now);
                }
            }
            return true;
        }
        if let Some(picker) = &mut self.picker {
            match picker.key(key) {
                Picked::Open => {}
                Picked::Nothing => self.picker = None,
                Picked::Value(line) => {
                    self.picker = None;
                    let place = if self.running.is_some() {
                        Place::Beside
                    } else {
                        Place::Main
                    };
                    self.run_command(line, place, now);
                }
            }
            return true;
        }
        if self.search.is_some() {
            return self.search_key(key);
        }
        false
    }

    fn answer_approval(&mut self, answer: ApprovalAnswer, now: Instant) {
        let Some(asked) = self.approvals.pop_front() else {
            return;
        };
        let said = match &answer {
            ApprovalAnswer::Once => "allowed".to_owned(),
            ApprovalAnswer::Always => "always allowed".to_owned(),
            ApprovalAnswer::Refused(None) => "refused".to_owned(),
            ApprovalAnswer::Refused(Some(reason)) => format!("refused: {reason}"),
            ApprovalAnswer::Stopped => "stopped".to_owned(),
            ApprovalAnswer::Unasked => "not asked".to_owned(),
        };
        let question = asked.question();
        let text = format!("? {}: {} — {said}", question.tool, question.summary);
        self.finish_speaking();
        self.print_block(vec![crate::Line::new(&text, crate::Style::PLAIN.dim())]);
        asked.answer(answer);
        self.show_next_question(now);
    }

    /// Ctrl-C ends the nearest thing: what runs, what is typed, the session.
    fn control_c(&mut self, quit_asked: Option<Instant>, now: Instant) {
        self.menu = None;
        match &self.running {
            Some(running) if running.is_interrupted => self.effects.push(Effect::Abandon),
            Some(_) => self.interrupt(),
            None if !self.editor.is_empty() => {
                self.editor.clear();
                self.history.forget_place();
            }
            None if quit_asked.is_some_and(|asked| now < asked + QUIT_AGAIN) => {
                self.effects.push(Effect::Quit);
            }
            None => self.quit_asked = Some(now),
        }
    }

    fn control_d(&mut self) {
        if self.running.is_some() {
            self.warn("a turn runs: Ctrl-C interrupts it, then Ctrl-D quits");
        } else {
            self.effects.push(Effect::Quit);
        }
    }

    /// Whether the key was meant for the menu.
    fn menu_key(&mut self, key: KeyEvent) -> bool {
        let Some(menu) = &mut self.menu else {
            return false;
        };
        match key.code {
            KeyCode::Down => menu.next(),
            KeyCode::Up | KeyCode::BackTab => menu.previous(),
            KeyCode::Enter if !menu.is_chosen => {
                // The beginning of a command means the command that is marked.
                let typed = self.editor.text();
                let is_beginning = typed.starts_with('/') && !menu.has(typed);
                let chosen = menu.chosen().filter(|_| is_beginning).cloned();
                self.menu = None;
                if let Some(chosen) = chosen {
                    self.accept(&chosen);
                }
                return false;
            }
            KeyCode::Tab | KeyCode::Enter => {
                let chosen = menu.chosen().cloned();
                if let Some(chosen) = chosen {
                    self.accept(&chosen);
                }
            }
            _ => return false,
        }
        true
    }

    fn editor_key(&mut self, key: KeyEvent, now: Instant) {
        let columns = self.input_columns();
        match self.editor.key(key, columns) {
            Took::Changed => {
                self.history.forget_place();
                self.menu = None;
                if begins_completion(self.editor.text(), self.editor.cursor()) {
                    self.effects.push(Effect::Complete {
                        asked: CompletionAsked::ByItself,
                    });
                }
            }
            Took::Moved => self.menu = None,
            Took::Submitted => self.submit(now),
            Took::BeforeFirst => self.earlier(),
            Took::AfterLast => {
                if let Some(later) = self.history.later() {
                    self.editor.set(&later);
                }
            }
            Took::Nothing => {}
        }
    }

    fn submit(&mut self, now: Instant) {
        let shown = self.editor.text().trim().to_owned();
        if shown.is_empty() {
            return;
        }
        let whole = self.editor.take();
        if let Err(error) = self.history.add(whole.trim_end()) {
            tracing::warn!(%error, "the history of what was typed cannot be written");
        }
        let meant = whole.trim().to_owned();
        self.carry_out(Typed { shown, meant }, now);
    }

    /// What waits comes back first: it was typed last.
    fn earlier(&mut self) {
        if self.editor.is_empty()
            && let Some(typed) = self.queued.pop_back()
        {
            self.editor.set(&typed.meant);
            return;
        }
        let typed = self.editor.meant();
        if let Some(earlier) = self.history.earlier(&typed) {
            self.editor.set(earlier);
        }
    }

    fn search_key(&mut self, key: KeyEvent) -> bool {
        let Some(mut search) = self.search.take() else {
            return false;
        };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if is_control => {
                let next = self.history.find(&search.wanted, search.found);
                search.found = next.map(|(place, _)| place).or(search.found);
            }
            KeyCode::Char('c' | 'g') if is_control => return true,
            KeyCode::Esc => return true,
            KeyCode::Char(character) if !is_control => {
                search.wanted.push(character);
                search.found = self.history.find(&search.wanted, None).map(|(at, _)| at);
            }
            KeyCode::Backspace => {
                search.wanted.pop();
                search.found = self.history.find(&search.wanted, None).map(|(at, _)| at);
            }
            code => {
                if let Some(found) = self.found(&search).map(str::to_owned) {
                    self.editor.set(&found);
                }
                // Enter takes what was found; other keys are meant for it besides.
                return matches!(code, KeyCode::Enter | KeyCode::Tab);
            }
        }
        self.search = Some(search);
        true
    }

    /// The entry that a search has found.
    pub(super) fn found(&self, search: &Search) -> Option<&str> {
        let place = search.found?;
        let (_, entry) = self.history.find(&search.wanted, Some(place + 1))?;
        Some(entry)
    }
}
