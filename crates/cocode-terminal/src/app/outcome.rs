//! What the session does when turns, commands and completions are over.

use cocode_agent::{Arguments, Block, Ending, Message, Role, text_of};
use tokio::time::Instant;

use super::{App, CompletionAsked, Effect, LONG_TURN};
use crate::calls::titled;
use crate::completion::{Candidate, Menu, begins_completion};
use crate::host::{CommandOutcome, TurnOutcome};
use crate::markdown::render;
use crate::pick::Picker;
use crate::style::{Color, Line, Style};

/// Messages of a conversation that are shown when it is taken up again.
const MAX_RESUMED: usize = 40;

impl App {
    /// A turn is over.
    pub(crate) fn turn_ended(&mut self, outcome: TurnOutcome, now: Instant) {
        self.finish_speaking();
        let columns = self.columns();
        let abandoned = self.calls.abandon(columns);
        self.print_block(abandoned);
        match outcome {
            TurnOutcome::Ended(ending) => self.tell_ending(ending),
            TurnOutcome::NotBegun { message, hints } => self.complain(&message, &hints),
        }
        self.main_ended(now);
    }

    fn tell_ending(&mut self, ending: Ending) {
        match ending {
            Ending::Done => {}
            Ending::Refused(None) => self.warn("the model refused to answer"),
            Ending::Refused(Some(why)) => self.warn(&format!("the model refused to answer: {why}")),
            Ending::Interrupted => {
                let line = Line::new("■ interrupted", Style::PLAIN.color(Color::Yellow));
                self.print_block(vec![
                    line.with("  what was done until then stays done", Style::PLAIN.dim()),
                ]);
            }
            Ending::TooManySteps(steps) => self.warn(&format!(
                "the turn was ended after {steps} steps; say \"go on\" to let it go on"
            )),
            Ending::Looping => {
                self.warn("the turn was ended: the model did the same again and again");
            }
            Ending::Failed(why) => self.complain(&why, &[]),
        }
    }

    /// What ran in the main place was dropped before it ended.
    pub(crate) fn main_abandoned(&mut self, why: &str, now: Instant) {
        self.finish_speaking();
        let columns = self.columns();
        let abandoned = self.calls.abandon(columns);
        self.print_block(abandoned);
        self.warn(why);
        self.main_ended(now);
    }

    /// Nothing runs any more: what waits comes next, or back into the input after an interruption.
    fn main_ended(&mut self, now: Instant) {
        let running = self.running.take();
        if let Some(running) = &running
            && now > running.began + LONG_TURN
        {
            self.effects.push(Effect::Ring);
        }
        if running.is_some_and(|running| running.is_interrupted) {
            let mut texts: Vec<String> = self.queued.drain(..).map(|typed| typed.meant).collect();
            if !texts.is_empty() {
                let typed = self.editor.take();
                texts.extend((!typed.is_empty()).then_some(typed));
                self.editor.set(&texts.join("\n"));
            }
            return;
        }
        while self.running.is_none() {
            let Some(typed) = self.queued.pop_front() else {
                return;
            };
            self.carry_out(typed, now);
        }
    }

    /// A command that ran in the main place is over.
    pub(crate) fn main_command_ended(&mut self, outcome: CommandOutcome, now: Instant) {
        // What the command gives is shown before what waits begins.
        let running = self.running.take();
        self.command_ended(outcome, now);
        if self.running.is_none() {
            self.running = running;
            self.main_ended(now);
        }
    }

    /// A command is over.
    pub(crate) fn command_ended(&mut self, outcome: CommandOutcome, now: Instant) {
        match outcome {
            CommandOutcome::Done => {}
            CommandOutcome::Said(lines) => self.print_block(lines),
            CommandOutcome::Markdown(text) => {
                let lines = render(&text, self.columns());
                self.print_block(lines);
            }
            CommandOutcome::Failed { message, hints } => self.complain(&message, &hints),
            CommandOutcome::Submit { shown, content } => {
                if self.running.is_some() {
                    self.warn("a turn runs already; give the command again when it is over");
                } else {
                    self.print_typed(&shown);
                    self.run_turn(content, now);
                }
            }
            CommandOutcome::Pick(list) => self.picker = Some(Picker::new(list)),
            CommandOutcome::Resumed(messages) => self.replay(&messages),
            CommandOutcome::Cleared => self.clear_screen(),
            CommandOutcome::Quit => self.effects.push(Effect::Quit),
        }
    }

    /// Shows the end of another conversation.
    fn replay(&mut self, messages: &[Message]) {
        let columns = self.columns();
        let n_left_out = messages.len().saturating_sub(MAX_RESUMED);
        if n_left_out > 0 {
            let text = format!("… {n_left_out} earlier messages");
            self.print_block(vec![Line::new(&text, Style::PLAIN.dim())]);
        }
        for Message { role, content } in messages.iter().skip(n_left_out) {
            let text = text_of(content);
            match role {
                Role::User if !text.trim().is_empty() => self.print_typed(&text),
                Role::User => {}
                Role::Assistant => {
                    let lines = render(&text, columns);
                    self.print_block(lines);
                    for block in content {
                        if let Block::ToolCall(call) = block {
                            let line = replayed(&call.name, &call.arguments, columns);
                            self.print_block(vec![line]);
                        }
                    }
                }
            }
        }
    }

    /// Somebody knows what can be written.
    pub(crate) fn completed(
        &mut self,
        input: &str,
        cursor: usize,
        candidates: Vec<Candidate>,
        asked: CompletionAsked,
    ) {
        if self.editor.text() != input || self.editor.cursor() != cursor {
            return;
        }
        self.menu = Menu::new(candidates);
        let only = self.menu.as_ref().and_then(Menu::only).cloned();
        if let (Some(only), CompletionAsked::ByKey) = (only, asked) {
            self.accept(&only);
        }
    }

    /// Writes a candidate into the input.
    pub(super) fn accept(&mut self, candidate: &Candidate) {
        let cursor = self.editor.cursor();
        self.editor.replace(candidate.from, cursor, &candidate.text);
        self.menu = None;
        self.history.forget_place();
        // A folder has files in it.
        if begins_completion(self.editor.text(), self.editor.cursor()) {
            self.effects.push(Effect::Complete {
                asked: CompletionAsked::ByItself,
            });
        }
    }
}

fn replayed(tool: &str, arguments: &Arguments, columns: usize) -> Line {
    let mut line = Line::new("● ", Style::PLAIN.dim());
    line.append(titled(tool, arguments, columns.saturating_sub(2)));
    line
}
