//! The interactive session of an agent in a terminal: what was said is in the scrollback of the
//! terminal, what goes on is in a live area below it, with questions and an input line.
//!
//! It knows nothing of models and MCP: whoever runs it is its [`Host`].

#![deny(missing_docs)]

mod completion;
mod diff;
mod editor;
mod history;
mod markdown;
mod pick;
mod screen;
mod style;
mod text;
mod wrap;

pub use completion::{Candidate, Completer};
pub use pick::{PickEntry, PickList};
pub use screen::{Size, restoring_bytes};
pub use style::{Color, Line, Palette, Span, Style};
