//! The seam to whoever runs the session: what it is asked to do, and what it says by itself.

use std::sync::Arc;

use cocode_agent::{Block, Company, Ending, Message, Work};
use tokio::sync::oneshot;

use crate::completion::Completer;
use crate::pick::{PickEntry, PickList};
use crate::status::StatusFacts;
use crate::style::Line;

/// Whoever runs the session: it has the conversation, the models and the servers.
///
/// The futures run in tasks of the session. They end soon after their company is interrupted; if
/// not, a person can abandon them, and then they are dropped.
pub trait Host: Send + Sync {
    /// The person said something: runs a turn to its end. What happens in it is told to the company.
    fn submit(&self, said: Vec<Block>, company: Company) -> Work<'_, TurnOutcome>;

    /// The person gave a command: one that was typed, such as `/mcp restart github`, or the value of
    /// an entry that was picked from a list which a command gave.
    fn command(&self, line: String, company: Company) -> Work<'_, CommandOutcome>;

    /// Whether what was typed is a command. A path such as `/etc/hosts` is none.
    fn is_command(&self, typed: &str) -> bool {
        let first = typed.split_whitespace().next().unwrap_or_default();
        first
            .strip_prefix('/')
            .is_some_and(|name| !name.is_empty() && !name.contains('/'))
    }

    /// Whether a command may run while a turn does. Others wait for its end.
    fn runs_beside_turn(&self, _line: &str) -> bool {
        false
    }

    /// Who knows what can be written.
    fn completer(&self) -> Arc<dyn Completer>;

    /// What the status line says. It is asked before every drawing, so it must be quick.
    fn status(&self) -> StatusFacts;
}

/// What became of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// It ended like this.
    Ended(Ending),
    /// It could not begin.
    NotBegun {
        /// Why.
        message: String,
        /// What to do about it, each a sentence.
        hints: Vec<String>,
    },
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandOutcome {
    /// There is nothing to say about it.
    Done,
    /// This is shown.
    Said(Vec<Line>),
    /// This is shown, as Markdown.
    Markdown(String),
    /// It was not done.
    Failed {
        /// Why.
        message: String,
        /// What to do about it, each a sentence.
        hints: Vec<String>,
    },
    /// This is said to the model, as if the person had.
    Submit {
        /// What is shown of it.
        shown: String,
        /// What is said.
        content: Vec<Block>,
    },
    /// The person is to pick something; the value of the entry is the next command.
    Pick(PickList),
    /// Another conversation goes on from here: the end of it is shown.
    Resumed(Vec<Message>),
    /// Another conversation begins: the terminal is empty, what was there is in the scrollback.
    Cleared,
    /// The session is over.
    Quit,
}

/// What a host says by itself.
#[derive(Debug)]
pub enum HostNotice {
    /// The status line says something else now.
    Changed,
    /// This is shown.
    Said(Line),
    /// The person is asked.
    Ask(Question),
}

/// A question to the person that is not about a call: what a server wants to know, the code of a
/// sign-in.
#[derive(Debug)]
pub struct Question {
    /// Who asks for what, in one line.
    pub title: String,
    /// The rest; may be empty.
    pub detail: String,
    /// What an answer is.
    pub kind: QuestionKind,
    /// The person has just answered a question of which this is the next part, and so expects it: its keys
    /// count at once.
    pub follows: bool,
    /// Hears the answer, or nothing if the person does not answer. If the receiver is dropped, nobody
    /// wants to know any more.
    pub reply: oneshot::Sender<Option<String>>,
}

/// What an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// A line of text.
    Text {
        /// What is there already.
        initial: String,
        /// Nobody may see what is typed, and it is not remembered.
        is_secret: bool,
    },
    /// The value of one of these.
    OneOf(Vec<PickEntry>),
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Host for Nobody {
        fn submit(&self, _said: Vec<Block>, _company: Company) -> Work<'_, TurnOutcome> {
            Box::pin(async { TurnOutcome::Ended(Ending::Done) })
        }

        fn command(&self, _line: String, _company: Company) -> Work<'_, CommandOutcome> {
            Box::pin(async { CommandOutcome::Done })
        }

        fn completer(&self) -> Arc<dyn Completer> {
            Arc::new(Self)
        }

        fn status(&self) -> StatusFacts {
            StatusFacts::default()
        }
    }

    impl Completer for Nobody {
        fn complete<'a>(
            &'a self,
            _input: &'a str,
            _cursor: usize,
        ) -> Work<'a, Vec<crate::Candidate>> {
            Box::pin(async { Vec::new() })
        }
    }

    #[test]
    fn a_path_is_no_command() {
        for (typed, expected) in [
            ("/help", true),
            ("/mcp restart x/y", true),
            ("/etc/hosts says what?", false),
            ("/", false),
            ("help", false),
        ] {
            assert_eq!(Nobody.is_command(typed), expected, "{typed}");
        }
    }
}
