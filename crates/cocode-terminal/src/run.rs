//! The loop of a session: carries events to the state, draws it, and does what it wants done. Owns
//! every task of the session.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cocode_agent::Company;
use crossterm::event::Event;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::app::{App, CompletionAsked, Effect, Place};
use crate::completion::Candidate;
use crate::history::History;
use crate::host::{CommandOutcome, Host, HostNotice, TurnOutcome};
use crate::keyboard::Input;
use crate::mailbox::{Asker, Mailbox, Pending};
use crate::screen::{Screen, Size};
use crate::style::{Line, Palette};

/// What happens by itself is drawn this often at most; keys are answered at once.
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(33);

/// How long somebody may take to say what can be written.
const COMPLETION_TIME: Duration = Duration::from_secs(3);

/// How long what runs may take to end when the session does.
const GOODBYE_TIME: Duration = Duration::from_secs(5);

/// What a session is begun with.
#[derive(Debug)]
pub struct TerminalOptions {
    /// What may be shown: `Mono` where `NO_COLOR` is set.
    pub palette: Palette,
    /// The terminal cannot move its cursor (`TERM=dumb`).
    pub is_dumb: bool,
    /// The file that keeps what was typed; nothing is kept without.
    pub history: Option<PathBuf>,
    /// Whether the terminal rings when the person is asked, and at the end of a long turn.
    pub rings: bool,
    /// What is printed first.
    pub greeting: Vec<Line>,
    /// What is said first, as if the person had typed it.
    pub first: Option<String>,
    /// What the host says by itself.
    pub notices: mpsc::Receiver<HostNotice>,
    /// Ends the session, as SIGTERM should.
    pub stop: CancellationToken,
}

/// Why a session could not be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// There is no terminal.
    #[error("there is no terminal to talk in: use `cocode exec` where input or output is none")]
    NotATerminal(#[source] io::Error),
    /// The terminal can only write line after line.
    #[error("this terminal cannot move its cursor (TERM=dumb): use another one, or `cocode exec`")]
    Dumb,
    /// Keys cannot be read any more.
    #[error("the terminal cannot be read any more; the conversation is kept")]
    Read(#[source] io::Error),
    /// Nothing can be shown any more.
    #[error("the terminal cannot be written to any more; the conversation is kept")]
    Write(#[source] io::Error),
}

/// Holds a session until the person or the token ends it. The terminal is as before when it returns,
/// and when the future is dropped.
pub async fn run(
    options: TerminalOptions,
    host: Arc<dyn Host>,
    mut input: Box<dyn Input>,
    output: Box<dyn Write + Send>,
) -> Result<(), TerminalError> {
    let TerminalOptions {
        palette,
        is_dumb,
        history,
        rings,
        greeting,
        first,
        notices,
        stop,
    } = options;
    if is_dumb {
        return Err(TerminalError::Dumb);
    }
    let size = input.size().map_err(TerminalError::NotATerminal)?;
    let (remembered, history_trouble) = remember(history);
    let (asker, approvals) = Asker::new();
    let mut session = Session {
        app: App::new(Arc::clone(&host), remembered, size),
        screen: Screen::new(output, size, palette),
        host,
        mailbox: Arc::new(Mailbox::default()),
        asker,
        approvals,
        notices: Some(notices),
        tasks: JoinSet::new(),
        main: None,
        completing: None,
        has_lost_terminal: false,
        rings,
        draw_at: Some(Instant::now()),
        last_drawing: Instant::now(),
    };
    session.app.greet(greeting);
    if let Some(trouble) = history_trouble {
        session.app.warn(&trouble);
    }
    session.screen.enter().map_err(TerminalError::Write)?;
    if let Some(first) = first {
        session.app.type_first(&first, Instant::now());
    }
    let served = session.serve(input.as_mut(), &stop).await;
    session.goodbye().await;
    session.screen.leave().map_err(TerminalError::Write)?;
    served
}

fn remember(path: Option<PathBuf>) -> (History, Option<String>) {
    let Some(path) = path else {
        return (History::default(), None);
    };
    match History::load(&path) {
        Ok(history) => (history, None),
        Err(error) => {
            let path = path.display();
            let trouble = format!("what was typed before cannot be read from {path}: {error}");
            (History::default(), Some(trouble))
        }
    }
}

/// What a task of the session came to.
enum Finished {
    Turn(TurnOutcome),
    Command(CommandOutcome, Place),
    Completed {
        input: String,
        cursor: usize,
        candidates: Vec<Candidate>,
        asked: CompletionAsked,
    },
}

/// What goes on in the main place.
struct Main {
    task: AbortHandle,
}

struct Session {
    app: App,
    screen: Screen<Box<dyn Write + Send>>,
    host: Arc<dyn Host>,
    mailbox: Arc<Mailbox>,
    asker: Arc<Asker>,
    approvals: mpsc::Receiver<Pending>,
    notices: Option<mpsc::Receiver<HostNotice>>,
    tasks: JoinSet<Finished>,
    main: Option<Main>,
    completing: Option<AbortHandle>,
    /// A panic hook may have given the terminal back.
    has_lost_terminal: bool,
    rings: bool,
    /// When something is to be drawn, if anything.
    draw_at: Option<Instant>,
    last_drawing: Instant,
}

/// Whether the session goes on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl Session {
    async fn serve(
        &mut self,
        input: &mut dyn Input,
        stop: &CancellationToken,
    ) -> Result<(), TerminalError> {
        loop {
            if self.perform(input).await? == Next::End {
                return Ok(());
            }
            let now = Instant::now();
            if self.draw_at.is_some_and(|at| at <= now) {
                // Its event may still be on the way, and what is drawn for another size is cut.
                if let Ok(size) = input.size() {
                    self.resize(size);
                }
                self.draw(now).map_err(TerminalError::Write)?;
            }
            let waking = [self.draw_at, self.app.next_change(now)];
            let waking = waking.into_iter().flatten().min();
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                event = input.next() => match event {
                    Some(Ok(event)) => self.take_event(event),
                    Some(Err(error)) => return Err(TerminalError::Read(error)),
                    None => return Ok(()),
                },
                Some(finished) = self.tasks.join_next_with_id() => {
                    // All that a task said comes before its outcome.
                    self.hear_all();
                    self.take_finished(finished);
                }
                Some(pending) = self.approvals.recv() => {
                    self.app.ask(pending, Instant::now());
                    self.draw_now();
                }
                () = self.mailbox.arrival() => self.hear_all(),
                notice = next_of(&mut self.notices) => {
                    match notice {
                        Some(notice) => self.app.host_says(notice, Instant::now()),
                        None => self.notices = None,
                    }
                    self.draw_soon();
                }
                () = self.app.withdrawal() => {
                    self.app.drop_withdrawn(Instant::now());
                    self.draw_now();
                }
                () = at(waking) => self.draw_soon(),
            }
        }
    }

    fn take_event(&mut self, event: Event) {
        match event {
            Event::Key(key) => self.app.key(key, Instant::now()),
            Event::Paste(text) => self.app.paste(&text),
            Event::Resize(columns, rows) => {
                self.resize(Size { columns, rows });
            }
            _ => return,
        }
        self.draw_now();
    }

    fn resize(&mut self, size: Size) {
        self.app.resize(size);
        self.screen.resize(size);
    }

    fn hear_all(&mut self) {
        let now = Instant::now();
        for notice in self.mailbox.take() {
            self.app.hear(&notice, now);
        }
        self.draw_soon();
    }

    fn take_finished(&mut self, finished: Result<(tokio::task::Id, Finished), JoinError>) {
        let now = Instant::now();
        match finished {
            Ok((_, Finished::Turn(outcome))) => {
                self.main = None;
                self.app.turn_ended(outcome, now);
            }
            Ok((_, Finished::Command(outcome, Place::Main))) => {
                self.main = None;
                self.app.main_command_ended(outcome, now);
            }
            Ok((_, Finished::Command(outcome, Place::Beside))) => {
                self.app.command_ended(outcome, now);
            }
            Ok((
                _,
                Finished::Completed {
                    input,
                    cursor,
                    candidates,
                    asked,
                },
            )) => self.app.completed(&input, cursor, candidates, asked),
            Err(error) => self.take_failure(&error, now),
        }
        self.draw_now();
    }

    /// A task was abandoned, or failed in a way that nobody expected.
    fn take_failure(&mut self, error: &JoinError, now: Instant) {
        let is_main = self
            .main
            .as_ref()
            .is_some_and(|main| main.task.id() == error.id());
        self.has_lost_terminal |= error.is_panic();
        if is_main {
            self.main = None;
            let why = if error.is_cancelled() {
                "abandoned: it may still be going on elsewhere"
            } else {
                "this ended by a fault of the program; the conversation is kept"
            };
            self.app.main_abandoned(why, now);
        } else if error.is_panic() {
            self.app.warn("a command ended by a fault of the program");
        }
    }

    /// Does what the state wants done.
    async fn perform(&mut self, input: &mut dyn Input) -> Result<Next, TerminalError> {
        if std::mem::take(&mut self.has_lost_terminal) {
            input.reclaim().map_err(TerminalError::Read)?;
            self.screen.enter_again().map_err(TerminalError::Write)?;
        }
        for effect in self.app.take_effects() {
            match effect {
                Effect::Quit => return Ok(Next::End),
                Effect::Submit { said, interrupt } => {
                    let company = self.company(interrupt);
                    let host = Arc::clone(&self.host);
                    let turn = async move { Finished::Turn(host.submit(said, company).await) };
                    let task = self.tasks.spawn(turn);
                    self.main = Some(Main { task });
                }
                Effect::Command {
                    line,
                    interrupt,
                    place,
                } => self.run_command(line, interrupt, place),
                Effect::Complete { asked } => self.complete(asked),
                Effect::Abandon => {
                    if let Some(main) = &self.main {
                        main.task.abort();
                    }
                }
                Effect::Ring if self.rings => self.screen.ring().map_err(TerminalError::Write)?,
                Effect::Ring => {}
                Effect::Clear => {
                    self.screen.clear().map_err(TerminalError::Write)?;
                    self.draw_now();
                }
                Effect::Suspend => {
                    self.screen.leave().map_err(TerminalError::Write)?;
                    input.suspend().await.map_err(TerminalError::Read)?;
                    self.screen.enter().map_err(TerminalError::Write)?;
                    self.draw_now();
                }
            }
        }
        Ok(Next::GoOn)
    }

    fn run_command(&mut self, line: String, interrupt: CancellationToken, place: Place) {
        let company = self.company(interrupt);
        let host = Arc::clone(&self.host);
        let command = async move { Finished::Command(host.command(line, company).await, place) };
        let task = self.tasks.spawn(command);
        if place == Place::Main {
            self.main = Some(Main { task });
        }
    }

    /// Asks what can be written; an earlier question is taken back.
    fn complete(&mut self, asked: CompletionAsked) {
        if let Some(earlier) = self.completing.take() {
            earlier.abort();
        }
        let completer = self.host.completer();
        let (input, cursor) = self.app.input();
        self.completing = Some(self.tasks.spawn(async move {
            let candidates = timeout(COMPLETION_TIME, completer.complete(&input, cursor)).await;
            Finished::Completed {
                candidates: candidates.unwrap_or_default(),
                input,
                cursor,
                asked,
            }
        }));
    }

    fn company(&self, interrupt: CancellationToken) -> Company {
        Company {
            listener: Arc::clone(&self.mailbox) as _,
            approver: Arc::clone(&self.asker) as _,
            sampler: None,
            interrupt,
        }
    }

    fn draw_now(&mut self) {
        self.draw_at = Some(Instant::now());
    }

    fn draw_soon(&mut self) {
        let soon = self.last_drawing + BETWEEN_DRAWINGS;
        self.draw_at = Some(self.draw_at.map_or(soon, |at| at.min(soon)));
    }

    fn draw(&mut self, now: Instant) -> io::Result<()> {
        self.draw_at = None;
        self.last_drawing = now;
        for line in self.app.take_finished() {
            self.screen.print(line);
        }
        self.screen.draw(self.app.view(now))
    }

    /// Lets what runs end, so that it can keep what it has, and prints the last of it.
    async fn goodbye(&mut self) {
        self.app.interrupt();
        self.app.answer_nothing();
        self.approvals.close();
        let deadline = Instant::now() + GOODBYE_TIME;
        while self.app.is_running() && self.main.is_some() {
            match timeout_at(deadline, self.tasks.join_next_with_id()).await {
                Ok(Some(finished)) => {
                    self.hear_all();
                    self.take_finished(finished);
                }
                Ok(None) => break,
                Err(_too_long) => {
                    self.app
                        .warn("what ran did not end in time and was abandoned");
                    break;
                }
            }
        }
        self.tasks.shutdown().await;
        for line in self.app.take_finished() {
            self.screen.print(line);
        }
    }
}

async fn next_of(notices: &mut Option<mpsc::Receiver<HostNotice>>) -> Option<HostNotice> {
    match notices {
        Some(notices) => notices.recv().await,
        None => std::future::pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
