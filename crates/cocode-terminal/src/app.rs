//! The session as a state: what it shows and what it waits for. Keys, notices and outcomes go in;
//! finished lines, the live area and effects come out. It does nothing by itself.

mod keys;
mod outcome;
mod view;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cocode_agent::{ApprovalAnswer, Block, Notice, text_of};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::approval::ApprovalBox;
use crate::calls::{Calls, Ended};
use crate::completion::Menu;
use crate::editor::Editor;
use crate::history::History;
use crate::host::{Host, HostNotice};
use crate::mailbox::Pending;
use crate::markdown::Stream;
use crate::pick::Picker;
use crate::question::QuestionBox;
use crate::screen::Size;
use crate::style::{Color, Line, Style};

/// Texts that wait for the end of a turn.
const MAX_QUEUED: usize = 32;

/// Bytes of what a model thinks that are kept to be shown.
const MAX_REASONING_BYTES: usize = 8 * 1024;

/// After a turn of this length, somebody may be looking elsewhere.
const LONG_TURN: Duration = Duration::from_secs(20);

/// How long Ctrl-C must be repeated to quit.
const QUIT_AGAIN: Duration = Duration::from_secs(2);

/// What is to be done outside.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Run a turn.
    Submit {
        said: Vec<Block>,
        interrupt: CancellationToken,
    },
    /// Run a command.
    Command {
        line: String,
        interrupt: CancellationToken,
        place: Place,
    },
    /// Ask what can be written where the cursor is.
    Complete { asked: CompletionAsked },
    /// End what runs without waiting for it.
    Abandon,
    /// Call the person.
    Ring,
    /// Empty the terminal.
    Clear,
    /// Give the terminal to the shell until it gives it back.
    Suspend,
    /// The session is over.
    Quit,
}

/// Where a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the place of a turn.
    Main,
    /// Beside whatever runs.
    Beside,
}

/// Why completion is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionAsked {
    /// By Tab: a single candidate is taken at once.
    ByKey,
    /// Because of what was typed.
    ByItself,
}

/// The session.
pub(crate) struct App {
    host: Arc<dyn Host>,
    size: Size,
    editor: Editor,
    history: History,
    menu: Option<Menu>,
    search: Option<Search>,
    stream: Stream,
    /// Something of this reply was printed or is about to be.
    has_spoken: bool,
    reasoning: String,
    calls: Calls,
    approvals: VecDeque<ApprovalBox>,
    questions: VecDeque<QuestionBox>,
    picker: Option<Picker>,
    running: Option<Running>,
    queued: VecDeque<Typed>,
    quit_asked: Option<Instant>,
    /// Lines for the scrollback, and whether the last one is empty.
    finished: Vec<Line>,
    ends_with_gap: bool,
    effects: Vec<Effect>,
}

/// A turn, or a command in its place.
#[derive(Debug)]
struct Running {
    what: String,
    began: Instant,
    interrupt: CancellationToken,
    is_interrupted: bool,
}

/// What a person typed: as it was shown, and as it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Typed {
    shown: String,
    meant: String,
}

/// A search in what was typed before.
#[derive(Debug, Default)]
struct Search {
    wanted: String,
    found: Option<usize>,
}

impl App {
    pub(crate) fn new(host: Arc<dyn Host>, history: History, size: Size) -> Self {
        Self {
            host,
            size,
            editor: Editor::default(),
            history,
            menu: None,
            search: None,
            stream: Stream::default(),
            has_spoken: false,
            reasoning: String::new(),
            calls: Calls::default(),
            approvals: VecDeque::new(),
            questions: VecDeque::new(),
            picker: None,
            running: None,
            queued: VecDeque::new(),
            quit_asked: None,
            finished: Vec::new(),
            ends_with_gap: true,
            effects: Vec::new(),
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
    }

    /// Columns that may be used. The last is left free, so that a terminal that reflows its text never
    /// joins two rows.
    fn columns(&self) -> usize {
        usize::from(self.size.columns).saturating_sub(1).max(10)
    }

    /// Takes what is to be done outside.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes the lines that are finished.
    pub(crate) fn take_finished(&mut self) -> Vec<Line> {
        let columns = self.columns();
        let spoken = self.stream.take_complete(columns);
        self.print_spoken(spoken);
        std::mem::take(&mut self.finished)
    }

    /// What is typed, and where in it the cursor is.
    pub(crate) fn input(&self) -> (String, usize) {
        (self.editor.text().to_owned(), self.editor.cursor())
    }

    /// When something changes on the screen without an event.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let tick =
            (self.running.is_some() || !self.calls.is_empty()).then(|| now + crate::status::TICK);
        let armed = match (self.approvals.front(), self.questions.front()) {
            (Some(asked), _) => asked.armed_at(now),
            (None, Some(asked)) => asked.armed_at(now),
            (None, None) => None,
        };
        let quit = self.quit_asked.map(|asked| asked + QUIT_AGAIN);
        [tick, armed, quit].into_iter().flatten().min()
    }

    /// Waits until a question that is shown is withdrawn. Cancel safe.
    pub(crate) async fn withdrawal(&mut self) {
        match (self.approvals.front_mut(), self.questions.front_mut()) {
            (Some(asked), _) => asked.withdrawal().await,
            (None, Some(asked)) => asked.withdrawal().await,
            (None, None) => std::future::pending().await,
        }
    }

    /// Forgets questions whose answer nobody waits for.
    pub(crate) fn drop_withdrawn(&mut self, now: Instant) {
        self.approvals.retain(|asked| !asked.is_withdrawn());
        self.questions.retain(|asked| !asked.is_withdrawn());
        self.show_next_question(now);
    }

    /// Another question is at the front: its keys count after another pause.
    fn show_next_question(&mut self, now: Instant) {
        if let Some(next) = self.approvals.front_mut() {
            next.show(now);
        } else if let Some(next) = self.questions.front_mut() {
            next.show(now);
        }
    }

    /// A call needs an answer.
    pub(crate) fn ask(&mut self, pending: Pending, now: Instant) {
        self.approvals.push_back(ApprovalBox::new(pending, now));
        self.effects.push(Effect::Ring);
    }

    /// The host says something by itself.
    pub(crate) fn host_says(&mut self, notice: HostNotice, now: Instant) {
        match notice {
            HostNotice::Changed => {}
            HostNotice::Said(line) => self.print_block(vec![line]),
            HostNotice::Ask(question) => {
                self.questions.push_back(QuestionBox::new(question, now));
                self.effects.push(Effect::Ring);
            }
        }
    }

    /// Something happened in a turn.
    pub(crate) fn hear(&mut self, notice: &Notice, now: Instant) {
        let columns = self.columns();
        match notice {
            Notice::Asking { model, .. } => {
                self.finish_speaking();
                self.now_doing(format!("waiting for {model}"));
            }
            Notice::Text(text) => {
                self.reasoning.clear();
                self.stream.push(text);
                self.now_doing("answering".to_owned());
            }
            Notice::Reasoning(text) => {
                self.think(text);
                self.now_doing("thinking".to_owned());
            }
            Notice::Writing { tool } => self.now_doing(format!("writing a call of {tool}")),
            Notice::Restarting { why, after } => {
                self.stream = Stream::default();
                self.has_spoken = false;
                self.reasoning.clear();
                let after = crate::status::in_words(*after);
                self.warn(&format!("the reply is asked for again in {after}: {why}"));
            }
            Notice::Replied { content, .. } => {
                // Not every provider tells its text piece by piece.
                if !self.has_spoken && self.stream.is_empty() {
                    self.stream.push(&text_of(content));
                }
                self.finish_speaking();
            }
            Notice::CallBegun(call) => {
                self.finish_speaking();
                self.calls.begin(call, now);
                self.now_doing("working".to_owned());
            }
            Notice::CallProgressed {
                id,
                done,
                total,
                message,
            } => self.calls.progress(id, *done, *total, message.as_ref()),
            Notice::CallEnded {
                id,
                tool,
                content,
                is_error,
                took,
            } => {
                let ended = Ended {
                    id,
                    tool,
                    content,
                    is_error: *is_error,
                    took: *took,
                };
                let lines = self.calls.end(&ended, columns);
                self.print_block(lines);
            }
            Notice::Compacting => self.now_doing("summing up the conversation".to_owned()),
            Notice::Compacted { before, after } => {
                let text = format!("summed up: about {before} tokens before, {after} now");
                self.print_block(vec![Line::new(&text, Style::PLAIN.dim())]);
            }
            Notice::Warning(text) => self.warn(text),
            // The outcome of the turn says how it ended. What is new is not known how to be shown.
            _ => {}
        }
    }

    fn now_doing(&mut self, what: String) {
        if let Some(running) = &mut self.running
            && !running.is_interrupted
        {
            running.what = what;
        }
    }

    /// Keeps the end of what the model thinks.
    fn think(&mut self, text: &str) {
        self.reasoning.push_str(text);
        let excess = self.reasoning.len().saturating_sub(MAX_REASONING_BYTES);
        let from = self.reasoning.ceil_char_boundary(excess);
        self.reasoning.drain(..from);
    }

    /// Nothing more will be said of this reply.
    fn finish_speaking(&mut self) {
        let columns = self.columns();
        let rest = self.stream.finish(columns);
        self.print_spoken(rest);
        self.has_spoken = false;
        self.reasoning.clear();
    }

    /// Prints more of a reply; its beginning stands apart from what was before.
    fn print_spoken(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        if std::mem::replace(&mut self.has_spoken, true) {
            self.print(lines);
        } else {
            self.print_block(lines);
        }
    }

    /// Prints lines that stand apart from what was before.
    fn print_block(&mut self, lines: Vec<Line>) {
        if !self.ends_with_gap && !lines.is_empty() {
            self.finished.push(Line::default());
        }
        self.print(lines);
    }

    fn print(&mut self, lines: Vec<Line>) {
        if let Some(last) = lines.last() {
            self.ends_with_gap = last.is_empty();
        }
        self.finished.extend(lines);
    }

    /// Prints what the person should know.
    pub(crate) fn warn(&mut self, text: &str) {
        let lines = Line::lines(text, Style::PLAIN.color(Color::Yellow));
        self.print_block(marked("! ", Color::Yellow, lines));
    }

    /// Prints what went wrong, and what to do about it.
    fn complain(&mut self, message: &str, hints: &[String]) {
        let lines = Line::lines(message, Style::PLAIN.color(Color::Red));
        let mut lines = marked("✗ ", Color::Red, lines);
        for hint in hints {
            lines.push(Line::new(&format!("  {hint}"), Style::PLAIN.dim()));
        }
        self.print_block(lines);
    }

    /// Prints lines that were there before the session began to speak.
    pub(crate) fn greet(&mut self, lines: Vec<Line>) {
        self.print_block(lines);
    }

    fn clear_screen(&mut self) {
        self.ends_with_gap = true;
        self.effects.push(Effect::Clear);
    }

    /// Asks what runs to end soon.
    pub(crate) fn interrupt(&mut self) {
        if let Some(running) = &mut self.running {
            running.is_interrupted = true;
            "interrupting".clone_into(&mut running.what);
            running.interrupt.cancel();
        }
    }

    /// The session ends: nobody will answer what is asked.
    pub(crate) fn answer_nothing(&mut self) {
        for asked in self.approvals.drain(..) {
            asked.answer(ApprovalAnswer::Stopped);
        }
        for asked in self.questions.drain(..) {
            asked.answer(None);
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Does what was typed: runs it, or lets it wait for the end of what runs.
    fn carry_out(&mut self, typed: Typed, now: Instant) {
        let is_command = self.host.is_command(&typed.meant);
        let beside = is_command && self.host.runs_beside_turn(&typed.meant);
        if self.running.is_some() && !beside {
            if self.queued.len() < MAX_QUEUED {
                self.queued.push_back(typed);
            } else {
                self.warn("too much waits already; this was put back into the input");
                self.editor.set(&typed.meant);
            }
            return;
        }
        self.print_typed(&typed.shown);
        if is_command {
            let place = if beside { Place::Beside } else { Place::Main };
            self.run_command(typed.meant, place, now);
        } else {
            self.run_turn(vec![Block::text(typed.meant)], now);
        }
    }

    /// Says the first thing, as if it had been typed.
    pub(crate) fn type_first(&mut self, text: &str, now: Instant) {
        let typed = Typed {
            shown: text.to_owned(),
            meant: text.to_owned(),
        };
        self.carry_out(typed, now);
    }

    fn print_typed(&mut self, shown: &str) {
        let style = Style::PLAIN.bold();
        let lines = Line::lines(shown, style);
        self.print_block(marked("> ", Color::Cyan, lines));
    }

    fn run_turn(&mut self, said: Vec<Block>, now: Instant) {
        let interrupt = self.begin("working", now);
        self.effects.push(Effect::Submit { said, interrupt });
    }

    fn run_command(&mut self, line: String, place: Place, now: Instant) {
        let interrupt = match place {
            Place::Main => self.begin(&line, now),
            Place::Beside => CancellationToken::new(),
        };
        self.effects.push(Effect::Command {
            line,
            interrupt,
            place,
        });
    }

    fn begin(&mut self, what: &str, now: Instant) -> CancellationToken {
        let interrupt = CancellationToken::new();
        self.running = Some(Running {
            what: what.to_owned(),
            began: now,
            interrupt: interrupt.clone(),
            is_interrupted: false,
        });
        interrupt
    }
}

/// The first line with a mark before it, the others indented by as much.
fn marked(mark: &str, color: Color, lines: Vec<Line>) -> Vec<Line> {
    let indent = " ".repeat(crate::text::width(mark));
    lines
        .into_iter()
        .enumerate()
        .map(|(place, line)| {
            let mut marked = match place {
                0 => Line::new(mark, Style::PLAIN.bold().color(color)),
                _ => Line::plain(&indent),
            };
            marked.append(line);
            marked
        })
        .collect()
}
