//! Whole sessions, with a host that follows a script and a terminal that understands what is
//! written to it.

use std::sync::Mutex;

use cocode_agent::{
    ApprovalAnswer, Arguments, Block, Ending, Notice, ToolCall, Usage, Work, text_of,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::approval::question_for_tests;
use crate::completion::Completer;
use crate::host::{Question, QuestionKind};
use crate::status::StatusFacts;
use crate::virtual_terminal::Terminal;

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// What a terminal would obey, and what must be left of it.
const EVIL: &str = "a\u{1b}]0;evil\u{7}\u{1b}[2J\u{9b}31m\u{1b}Pq\u{7}b";

type Script = dyn Fn(String, Company) -> Work<'static, TurnOutcome> + Send + Sync;

/// A host whose turns are a function.
struct Scripted {
    turn: Box<Script>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Host for Scripted {
    fn submit(&self, said: Vec<Block>, company: Company) -> Work<'_, TurnOutcome> {
        let said = text_of(&said);
        self.said.lock().unwrap().push(said.clone());
        (self.turn)(said, company)
    }

    fn command(&self, line: String, _company: Company) -> Work<'_, CommandOutcome> {
        Box::pin(async move {
            match line.as_str() {
                "/prompt" => CommandOutcome::Submit {
                    shown: "/prompt".to_owned(),
                    content: vec![Block::text("from a prompt")],
                },
                other => CommandOutcome::Failed {
                    message: format!("{other}{EVIL}"),
                    hints: vec![EVIL.to_owned()],
                },
            }
        })
    }

    fn completer(&self) -> Arc<dyn Completer> {
        Arc::new(EvilWords)
    }

    fn status(&self) -> StatusFacts {
        StatusFacts {
            model: format!("model {EVIL}"),
            ..StatusFacts::default()
        }
    }
}

struct EvilWords;

impl Completer for EvilWords {
    fn complete<'a>(&'a self, input: &'a str, cursor: usize) -> Work<'a, Vec<Candidate>> {
        Box::pin(async move {
            if !input.contains('@') {
                return Vec::new();
            }
            let candidate = |label: &str| Candidate {
                from: cursor.saturating_sub(1),
                text: label.to_owned(),
                label: format!("{label}{EVIL}"),
                detail: EVIL.to_owned(),
            };
            vec![candidate("@one"), candidate("@two")]
        })
    }
}

/// Keys from a channel.
struct Keys(mpsc::Receiver<Event>);

impl Input for Keys {
    fn next(&mut self) -> Work<'_, Option<io::Result<Event>>> {
        Box::pin(async { self.0.recv().await.map(Ok) })
    }

    fn size(&self) -> io::Result<Size> {
        Ok(Size {
            columns: COLUMNS,
            rows: ROWS,
        })
    }
}

/// A session that runs.
struct Held {
    terminal: Terminal,
    keys: mpsc::Sender<Event>,
    say: mpsc::Sender<HostNotice>,
    said: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    session: JoinSet<Result<(), TerminalError>>,
}

fn options(notices: mpsc::Receiver<HostNotice>, stop: CancellationToken) -> TerminalOptions {
    TerminalOptions {
        palette: Palette::Mono,
        is_dumb: false,
        history: None,
        rings: false,
        greeting: Vec::new(),
        first: None,
        notices,
        stop,
    }
}

impl Held {
    fn start<F>(turn: impl Fn(String, Company) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = TurnOutcome> + Send + 'static,
    {
        let terminal = Terminal::new(COLUMNS, ROWS);
        let (keys, events) = mpsc::channel(1000);
        let (say, notices) = mpsc::channel(10);
        let stop = CancellationToken::new();
        let said = Arc::new(Mutex::new(Vec::new()));
        let host = Arc::new(Scripted {
            turn: Box::new(move |said, company| Box::pin(turn(said, company))),
            said: Arc::clone(&said),
        });
        let output = Box::new(terminal.clone());
        let mut session = JoinSet::new();
        session.spawn(run(
            options(notices, stop.clone()),
            host,
            Box::new(Keys(events)),
            output,
        ));
        Self {
            terminal,
            keys,
            say,
            said,
            stop,
            session,
        }
    }

    fn press(&self, code: KeyCode, modifiers: KeyModifiers) {
        let key = KeyEvent::new(code, modifiers);
        self.keys.try_send(Event::Key(key)).unwrap();
    }

    fn control(&self, character: char) {
        self.press(KeyCode::Char(character), KeyModifiers::CONTROL);
    }

    fn text(&self, text: &str) {
        for character in text.chars() {
            self.press(KeyCode::Char(character), KeyModifiers::NONE);
        }
    }

    fn enter(&self, text: &str) {
        self.text(text);
        self.press(KeyCode::Enter, KeyModifiers::NONE);
    }

    /// Waits until a text is shown; time passes as fast as nobody does anything.
    #[track_caller]
    fn sees(&self, text: &str) -> impl Future<Output = String> {
        self.shows(text, true)
    }

    #[track_caller]
    fn sees_no_more(&self, text: &str) -> impl Future<Output = String> {
        self.shows(text, false)
    }

    #[track_caller]
    fn shows(&self, text: &str, wanted: bool) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        let terminal = self.terminal.clone();
        let text = text.to_owned();
        async move {
            for _ in 0..3000 {
                let shown = terminal.shown().join("\n");
                if shown.contains(&text) == wanted {
                    return shown;
                }
                sleep(Duration::from_millis(10)).await;
            }
            let shown = terminal.shown().join("\n");
            panic!("{caller}: {text:?} should be shown: {wanted}\n{shown}");
        }
    }

    async fn end(mut self) -> Result<(), TerminalError> {
        self.session.join_next().await.unwrap().unwrap()
    }
}

fn done() -> TurnOutcome {
    TurnOutcome::Ended(Ending::Done)
}

fn replied(text: &str) -> Notice {
    Notice::Replied {
        content: vec![Block::text(text)],
        usage: Usage::default(),
        cost: None,
        context: (1, 2),
    }
}

#[tokio::test(start_paused = true)]
async fn text_that_was_not_told_piece_by_piece_is_shown_once() {
    let held = Held::start(|said, company| async move {
        company
            .listener
            .hear(&replied(&format!("You said *{said}*.")));
        company.listener.hear(&Notice::Text("Streamed.".into()));
        company.listener.hear(&replied("Streamed."));
        done()
    });
    held.enter("hi");
    let shown = held.sees("Streamed.").await;
    assert_eq!(shown.matches("You said hi.").count(), 1, "{shown}");
    assert_eq!(shown.matches("Streamed.").count(), 1, "{shown}");
    held.control('d');
    held.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_asked_for_again_leaves_no_half_text() {
    let held = Held::start(|_, company| async move {
        company.listener.hear(&Notice::Text("Half a sen".into()));
        sleep(Duration::from_secs(1)).await;
        company.listener.hear(&Notice::Restarting {
            why: "the connection was lost".into(),
            after: Duration::from_secs(2),
        });
        company
            .listener
            .hear(&Notice::Text("A whole sentence.".into()));
        company.listener.hear(&replied("A whole sentence."));
        done()
    });
    held.enter("hi");
    held.sees("Half a sen").await;
    let shown = held.sees("A whole sentence.").await;
    assert!(shown.contains("asked for again in 2s: the connection was lost"));
    assert!(!shown.contains("Half a sen"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_in_their_order_and_withdrawn_ones_vanish() {
    let held = Held::start(|_, company| async move {
        let question = |tool: &str| {
            let mut question = question_for_tests();
            tool.clone_into(&mut question.tool);
            question
        };
        let withdrawn = timeout(
            Duration::from_secs(2),
            company.approver.ask(question("withdrawn")),
        );
        assert!(withdrawn.await.is_err());
        let (first, second) = tokio::join!(
            company.approver.ask(question("first")),
            company.approver.ask(question("second")),
        );
        let text = format!("{first:?} then {second:?}");
        company.listener.hear(&replied(&text));
        done()
    });
    held.enter("hi");
    held.sees("May withdrawn be called?").await;
    held.sees_no_more("May withdrawn be called?").await;
    held.sees("May first be called?").await;
    held.sees("y yes").await;
    held.text("y");
    held.sees("May second be called?").await;
    held.sees("y yes").await;
    held.text("a");
    held.sees("Once then Always").await;
}

#[tokio::test(start_paused = true)]
async fn a_question_is_not_answered_by_the_rest_of_a_word() {
    let held = Held::start(|_, company| async move {
        let answer = company.approver.ask(question_for_tests()).await;
        company.listener.hear(&replied(&format!("{answer:?}")));
        done()
    });
    held.enter("hi");
    held.sees("May shell be called?").await;
    held.text("yany");
    held.sees("> yany").await;
    held.sees("y yes").await;
    held.text("n");
    held.text("why?");
    held.press(KeyCode::Enter, KeyModifiers::NONE);
    let shown = held.sees("Refused(Some(\"why?\"))").await;
    assert!(shown.contains("> yany"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_after_an_interruption_is_abandoned() {
    let held = Held::start(|said, company| async move {
        if said == "stubborn" {
            let call = ToolCall {
                id: "1".into(),
                name: "shell".into(),
                arguments: Arguments::Json(json!({ "command": "sleep 9" })),
            };
            company.listener.hear(&Notice::CallBegun(call));
            std::future::pending::<()>().await;
        }
        done()
    });
    held.enter("stubborn");
    held.sees("◌ shell sleep 9").await;
    held.control('c');
    held.sees("Ctrl-C again abandons it").await;
    held.control('c');
    held.sees("● shell sleep 9 interrupted").await;
    held.sees("! abandoned").await;
    held.enter("next");
    held.sees("> next").await;
    held.control('d');
    held.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_stopped_lets_its_turn_end() {
    let held = Held::start(|_, company| async move {
        company.listener.hear(&Notice::Text("Working".into()));
        company.interrupt.cancelled().await;
        company.listener.hear(&Notice::Text(" no more.".into()));
        TurnOutcome::Ended(Ending::Interrupted)
    });
    held.enter("go");
    held.sees("Working").await;
    held.stop.cancel();
    let terminal = held.terminal.clone();
    held.end().await.unwrap();
    let shown = terminal.shown().join("\n");
    assert!(shown.contains("Working no more."), "{shown}");
    assert!(shown.ends_with("■ interrupted  what was done until then stays done"));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_stopped_does_not_wait_for_ever() {
    let held = Held::start(|_, company| async move {
        company.listener.hear(&Notice::Text("Stubborn.".into()));
        std::future::pending().await
    });
    held.enter("go");
    held.sees("Stubborn.").await;
    held.stop.cancel();
    let terminal = held.terminal.clone();
    timeout(GOODBYE_TIME * 2, held.end())
        .await
        .unwrap()
        .unwrap();
    let shown = terminal.shown().join("\n");
    assert!(shown.contains("did not end in time"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_is_typed_during_a_turn_is_said_after_it() {
    let (release, gate) = tokio::sync::watch::channel(false);
    let held = Held::start(move |_, _| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await.unwrap();
            done()
        }
    });
    held.enter("one");
    held.enter("two");
    held.enter("three");
    held.sees("next: three").await;
    held.press(KeyCode::Up, KeyModifiers::NONE);
    held.sees("> three").await;
    held.enter("!");
    held.sees("next: three!").await;
    release.send(true).unwrap();
    held.sees_no_more("next:").await;
    held.enter("/prompt");
    held.sees("> /prompt").await;
    held.control('d');
    let said = Arc::clone(&held.said);
    held.end().await.unwrap();
    assert_eq!(
        *said.lock().unwrap(),
        ["one", "two", "three!", "from a prompt"]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_that_anybody_says_reaches_the_terminal_raw() {
    let held = Held::start(|_, company| async move {
        let evil = || EVIL.to_owned();
        let mut question = question_for_tests();
        question.tool = evil();
        question.summary = evil();
        question.why = evil();
        question.justification = Some(evil());
        question.arguments = json!({ "evil": EVIL });
        let answer = company.approver.ask(question).await;
        assert_eq!(answer, ApprovalAnswer::Once);
        let call = ToolCall {
            id: "1".into(),
            name: evil(),
            arguments: Arguments::Malformed(evil()),
        };
        for notice in [
            Notice::Asking {
                step: 1,
                model: evil(),
            },
            Notice::Reasoning(evil()),
            Notice::Text(format!(
                "{EVIL} `{EVIL}` [{EVIL}](http://x/{EVIL})\n\n```{EVIL}\n{EVIL}"
            )),
            Notice::Writing { tool: evil() },
            Notice::CallBegun(call),
            Notice::CallProgressed {
                id: "1".into(),
                done: 1.0,
                total: None,
                message: Some(evil()),
            },
            Notice::Warning(evil()),
        ] {
            company.listener.hear(&notice);
            sleep(Duration::from_millis(200)).await;
        }
        company.listener.hear(&Notice::CallEnded {
            id: "1".into(),
            tool: evil(),
            content: vec![Block::text(evil())],
            is_error: false,
            took: Duration::ZERO,
        });
        TurnOutcome::Ended(Ending::Failed(evil()))
    });
    held.enter("hi");
    held.sees("y yes").await;
    held.text("y");
    held.sees("✗ ").await;
    held.enter("/evil");
    held.text("@");
    held.sees("› @one").await;
    let (reply, _answer) = tokio::sync::oneshot::channel();
    let question = Question {
        title: EVIL.to_owned(),
        detail: EVIL.to_owned(),
        kind: QuestionKind::Text {
            initial: EVIL.to_owned(),
            is_secret: false,
        },
        follows: false,
        reply,
    };
    held.say.send(HostNotice::Ask(question)).await.unwrap();
    held.sees("Enter answers").await;
    let bytes = held.terminal.take_bytes();
    assert!(bytes.contains("a<9B>31m␛Pq␇b"), "{bytes}");
    for raw in ["\u{1b}]", "\u{1b}[2J", "\u{9b}", "\u{1b}P", "\u{7}"] {
        assert!(!bytes.contains(raw), "{raw:?} in {bytes:?}");
    }
    // Without colors, none is set.
    assert!(
        !bytes.contains("[31m") && !bytes.contains(";33m"),
        "{bytes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_cannot_move_its_cursor_is_refused() {
    let (_say, notices) = mpsc::channel(1);
    let mut options = options(notices, CancellationToken::new());
    options.is_dumb = true;
    let host = Arc::new(Scripted {
        turn: Box::new(|_, _| Box::pin(async { done() })),
        said: Arc::default(),
    });
    let (_keys, events) = mpsc::channel(1);
    let output = Box::new(Terminal::new(COLUMNS, ROWS));
    let refused = run(options, host, Box::new(Keys(events)), output).await;
    assert!(matches!(refused, Err(TerminalError::Dumb)), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_keys_is_the_end_of_the_session() {
    let held = Held::start(|_, _| async { done() });
    held.sees("> ask for something").await;
    let Held {
        keys, mut session, ..
    } = held;
    drop(keys);
    session.join_next().await.unwrap().unwrap().unwrap();
}
