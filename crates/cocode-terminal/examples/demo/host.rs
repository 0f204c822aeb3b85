//! The host of the demonstration: commands, candidates, the status line.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cocode_agent::{Block, Company, Message, Work, text_of};
use cocode_terminal::{
    Candidate, CommandOutcome, Completer, Host, HostNotice, Line, PickEntry, PickList, Question,
    QuestionKind, ServerCounts, StatusFacts, TurnOutcome,
};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::script;

const COMMANDS: &[(&str, &str)] = &[
    ("/ask", "a question of a server"),
    ("/clear", "another conversation"),
    ("/go", "lets the calls of `work` go on"),
    ("/help", "what there is"),
    ("/panic", "fails in an unexpected way"),
    ("/quit", "the end"),
    ("/resume", "an old conversation"),
    ("/servers", "a list to pick from"),
];

const FILES: &[&str] = &["src/app.rs", "src/lib.rs", "README.md"];

/// The host.
pub(crate) struct Demo {
    say: mpsc::Sender<HostNotice>,
    go: Arc<Notify>,
    n_turns: AtomicU64,
    servers: Mutex<ServerCounts>,
    is_broken: AtomicBool,
}

impl Demo {
    pub(crate) fn new(say: mpsc::Sender<HostNotice>) -> Self {
        Self {
            say,
            go: Arc::new(Notify::new()),
            n_turns: AtomicU64::new(0),
            servers: Mutex::new(ServerCounts {
                ready: 2,
                failed: 1,
                ..ServerCounts::default()
            }),
            is_broken: AtomicBool::new(false),
        }
    }

    async fn ask(&self) -> CommandOutcome {
        let (reply, answer) = oneshot::channel();
        let question = Question {
            title: "files wants to know".to_owned(),
            detail: "What is your name?".to_owned(),
            kind: QuestionKind::Text {
                initial: String::new(),
                is_secret: false,
            },
            follows: false,
            reply,
        };
        if self.say.send(HostNotice::Ask(question)).await.is_err() {
            return CommandOutcome::Done;
        }
        let said = match answer.await {
            Ok(Some(name)) => format!("The name is {name}."),
            _ => "No name was given.".to_owned(),
        };
        CommandOutcome::Said(vec![Line::plain(&said)])
    }

    fn restart(&self) -> CommandOutcome {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        *servers = ServerCounts {
            ready: 3,
            ..ServerCounts::default()
        };
        CommandOutcome::Said(vec![Line::plain("broken was restarted")])
    }
}

impl Host for Demo {
    fn submit(&self, said: Vec<Block>, company: Company) -> Work<'_, TurnOutcome> {
        self.n_turns.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { script::turn(&text_of(&said), &company, &self.go).await })
    }

    fn command(&self, line: String, _company: Company) -> Work<'_, CommandOutcome> {
        Box::pin(async move {
            match line.as_str() {
                "/help" => CommandOutcome::Markdown(
                    "Say `hello`, `work`, `edit`, `wait` or anything else.".to_owned(),
                ),
                "/go" => {
                    self.go.notify_one();
                    CommandOutcome::Done
                }
                "/ask" => self.ask().await,
                "/clear" => CommandOutcome::Cleared,
                "/quit" => CommandOutcome::Quit,
                "/resume" => CommandOutcome::Resumed(vec![
                    Message::user(vec![Block::text("an old question")]),
                    Message::assistant(vec![Block::text("An **old** answer.")]),
                ]),
                "/servers" => CommandOutcome::Pick(servers()),
                "/servers restart broken" => self.restart(),
                "/panic-all" => {
                    self.is_broken.store(true, Ordering::Relaxed);
                    CommandOutcome::Done
                }
                #[expect(clippy::panic, reason = "shows what happens then")]
                "/panic" => panic!("as wanted"),
                other => CommandOutcome::Failed {
                    message: format!("there is no command `{other}`"),
                    hints: vec!["/help says what there is".to_owned()],
                },
            }
        })
    }

    fn runs_beside_turn(&self, line: &str) -> bool {
        matches!(line, "/go" | "/help" | "/servers")
    }

    fn completer(&self) -> Arc<dyn Completer> {
        Arc::new(Words)
    }

    fn status(&self) -> StatusFacts {
        // `/panic-all` shows what happens when the session itself fails.
        let is_broken = self.is_broken.load(Ordering::Relaxed);
        assert!(!is_broken, "as wanted of all");
        let n_turns = self.n_turns.load(Ordering::Relaxed);
        StatusFacts {
            model: "demo-1".to_owned(),
            context: Some((n_turns.saturating_mul(1000), 100_000)),
            cost: None,
            sandbox: "workspace-write".to_owned(),
            approval: String::new(),
            servers: *self.servers.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn servers() -> PickList {
    let entry = |label: &str, detail: &str| PickEntry {
        label: label.to_owned(),
        detail: detail.to_owned(),
        value: format!("/servers restart {label}"),
    };
    PickList {
        title: "Which server is to be restarted?".to_owned(),
        entries: vec![
            entry("files", "ready"),
            entry("git", "ready"),
            entry("broken", "failed: exited at once"),
        ],
    }
}

struct Words;

impl Completer for Words {
    fn complete<'a>(&'a self, input: &'a str, cursor: usize) -> Work<'a, Vec<Candidate>> {
        Box::pin(async move {
            let before = input.get(..cursor).unwrap_or_default();
            let from = before
                .rfind(char::is_whitespace)
                .map_or(0, |space| space + 1);
            let word = before.get(from..).unwrap_or_default();
            if let Some(name) = word.strip_prefix('@') {
                let files = FILES.iter().filter(|file| file.contains(name));
                return files
                    .map(|file| candidate(from, &format!("@{file}"), ""))
                    .collect();
            }
            COMMANDS
                .iter()
                .filter(|(name, _)| word.starts_with('/') && name.starts_with(word))
                .map(|(name, detail)| candidate(from, name, detail))
                .collect()
        })
    }
}

fn candidate(from: usize, label: &str, detail: &str) -> Candidate {
    Candidate {
        from,
        text: format!("{label} "),
        label: label.to_owned(),
        detail: detail.to_owned(),
    }
}
