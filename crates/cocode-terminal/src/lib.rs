//! The interactive session of an agent in a terminal: what was said is in the scrollback of the
//! terminal, what goes on is in a live area below it, with questions and an input line.
//!
//! It knows nothing of models and MCP: whoever runs it is its [`Host`].

#![deny(missing_docs)]

mod app;
mod approval;
mod calls;
mod completion;
mod diff;
mod editor;
mod history;
mod host;
mod keyboard;
mod mailbox;
mod markdown;
mod pause;
mod pick;
mod question;
mod run;
mod screen;
mod status;
mod style;
mod text;
#[cfg(test)]
mod virtual_terminal;
mod wrap;

pub use completion::{Candidate, Completer};
pub use host::{CommandOutcome, Host, HostNotice, Question, QuestionKind, TurnOutcome};
pub use keyboard::{Input, Keyboard, leave_raw_mode, standard_output};
pub use pick::{PickEntry, PickList};
pub use run::{TerminalError, TerminalOptions, run};
pub use screen::{Size, restoring_bytes};
pub use status::{ServerCounts, StatusFacts};
pub use style::{Color, Line, Palette, Span, Style};
