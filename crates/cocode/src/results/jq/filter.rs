//! Runs a filter over JSON, with bounds on its time and its output.
//!
//! A filter runs in a thread of its own, because nothing inside can be told to stop: one that takes
//! too long is left behind, and ends with the program. It reads no files, no other input and no
//! variables of the environment.

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, compile, data, load};
use jaq_json::{Val, read, write};

use crate::text::cut;

/// Filters call themselves deeply.
const STACK_BYTES: usize = 512 * 1024 * 1024;

/// Values that wait to be printed.
const QUEUE: usize = 64;

/// Errors quote the values they are about, which may be long.
const MAX_REASON_CHARACTERS: usize = 200;

type Data = data::JustLut<Val>;

/// How much a filter may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) time: Duration,
    pub(super) output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            output_bytes: 16 * 1024 * 1024,
        }
    }
}

/// How values are printed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Form {
    /// Texts without quotes.
    pub(super) unquoted: bool,
    /// Each value on one line.
    pub(super) one_line: bool,
}

/// Why a filter gave nothing, or nothing more.
#[derive(Debug)]
pub(super) enum FilterError {
    /// It is not written in the language.
    Written(Vec<String>),
    /// It does not fit the values it met.
    Failed(String),
    /// It took too long.
    TooSlow(Duration),
    /// It gave too much.
    TooMuch(usize),
    /// Its thread ended without a word.
    Crashed,
    /// It could not be started.
    NoThread(io::Error),
}

impl fmt::Display for FilterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written(_) => formatter.write_str("the filter is not understood"),
            Self::Failed(_) => formatter.write_str("the filter failed"),
            Self::TooSlow(time) => {
                write!(formatter, "the filter took more than {} s", time.as_secs())
            }
            Self::TooMuch(bytes) => {
                let megabytes = bytes / (1024 * 1024);
                write!(formatter, "the filter gives more than {megabytes} MiB")
            }
            Self::Crashed => formatter.write_str("the filter ended unexpectedly"),
            Self::NoThread(_) => formatter.write_str("the filter cannot be started"),
        }
    }
}

/// The outputs of a filter, each with the end of its line. After an error there is nothing more.
pub(super) struct Outputs {
    /// Nothing once the end is reached.
    values: Option<Receiver<Message>>,
    deadline: Instant,
    limits: Limits,
    bytes: usize,
}

/// What comes from the thread.
enum Message {
    Value(Vec<u8>),
    Failure(FilterError),
    /// All values were sent.
    End,
}

/// Runs a filter over each input in turn.
pub(super) fn evaluate(
    filter: &str,
    inputs: Vec<String>,
    form: Form,
    limits: Limits,
) -> impl Iterator<Item = Result<Vec<u8>, FilterError>> {
    let (sender, receiver) = sync_channel(QUEUE);
    let code = filter.to_owned();
    let failures = sender.clone();
    let started = std::thread::Builder::new()
        .name("filter".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let message = match work(&code, &inputs, form, &sender) {
                Ok(()) => Message::End,
                Err(error) => Message::Failure(error),
            };
            // Nobody listens any more if it took too long.
            drop(sender.send(message));
        });
    if let Err(error) = started {
        // The queue is empty.
        drop(failures.try_send(Message::Failure(FilterError::NoThread(error))));
    }
    Outputs {
        values: Some(receiver),
        deadline: Instant::now() + limits.time,
        limits,
        bytes: 0,
    }
}

impl Iterator for Outputs {
    type Item = Result<Vec<u8>, FilterError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let outcome = match self.values.as_ref()?.recv_timeout(left) {
            Ok(Message::Value(value)) => {
                self.bytes = self.bytes.saturating_add(value.len());
                if self.bytes <= self.limits.output_bytes {
                    return Some(Ok(value));
                }
                Some(FilterError::TooMuch(self.limits.output_bytes))
            }
            Ok(Message::Failure(error)) => Some(error),
            Ok(Message::End) => None,
            Err(RecvTimeoutError::Timeout) => Some(FilterError::TooSlow(self.limits.time)),
            Err(RecvTimeoutError::Disconnected) => Some(FilterError::Crashed),
        };
        self.values = None;
        outcome.map(Err)
    }
}

/// What the thread does.
fn work(
    code: &str,
    inputs: &[String],
    form: Form,
    values: &SyncSender<Message>,
) -> Result<(), FilterError> {
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    // The environment may hold secrets.
    let functions = jaq_core::funs::<Data>()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| *name != "env");
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code, path: () })
        .map_err(|errors| FilterError::Written(unreadable(code, errors)))?;
    let filter = Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| FilterError::Written(undefined(&errors)))?;
    for input in inputs {
        let input = read::parse_single(input.as_bytes())
            .map_err(|error| FilterError::Failed(reason(&error)))?;
        let context = Ctx::<Data>::new(&filter.lut, Vars::new([]));
        for output in filter.id.run((context, input)) {
            let value = match output.map_err(jaq_core::Exn::get_err) {
                Ok(value) => value,
                Err(Ok(error)) => return Err(FilterError::Failed(reason(&error))),
                // It ended by itself, with `halt`.
                Err(Err(_halt)) => return Ok(()),
            };
            let printed =
                printed(&value, form).map_err(|error| FilterError::Failed(reason(&error)))?;
            if values.send(Message::Value(printed)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn printed(value: &Val, form: Form) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    match value {
        Val::TStr(text) if form.unquoted => out.extend_from_slice(text),
        value => {
            let style = write::Pp {
                indent: (!form.one_line).then(|| "  ".to_owned()),
                sep_space: !form.one_line,
                ..write::Pp::default()
            };
            write::write(&mut out, &style, 0, value)?;
        }
    }
    out.push(b'\n');
    Ok(out)
}

/// What went wrong, without the middle of what is quoted: the end says what was asked of it.
fn reason(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    let length = text.chars().count();
    if length <= MAX_REASON_CHARACTERS {
        return text;
    }
    let half = MAX_REASON_CHARACTERS / 2 - 1;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - half).collect();
    format!("{head}…{tail}")
}

/// What is wrong with the text of a filter.
fn unreadable(code: &str, errors: load::Errors<&str, ()>) -> Vec<String> {
    let at = |found: &str| {
        if found.is_empty() {
            return "at its end".to_owned();
        }
        let start = load::span(code, found).start;
        let before = code.get(..start).unwrap_or_default().chars().count();
        format!("at character {}, before `{}`", before + 1, cut(found, 20))
    };
    let expected = |what: &str, found: &str| format!("{what} is expected {}", at(found));
    let of_one = |error: load::Error<&str>| -> Vec<String> {
        match error {
            load::Error::Io(imports) => imports
                .into_iter()
                .map(|(path, _)| format!("modules cannot be imported: `{path}`"))
                .collect(),
            load::Error::Lex(errors) => errors
                .into_iter()
                .map(|(what, found)| expected(what.as_str(), found))
                .collect(),
            load::Error::Parse(errors) => errors
                .into_iter()
                .map(|(what, found)| expected(what.as_str(), found))
                .collect(),
        }
    };
    errors
        .into_iter()
        .flat_map(|(_, error)| of_one(error))
        .collect()
}

/// What a filter speaks of that is not there.
fn undefined(errors: &compile::Errors<&str, ()>) -> Vec<String> {
    let all = errors.iter().flat_map(|(_, errors)| errors);
    all.map(|(name, kind)| match kind {
        compile::Undefined::Filter(arity) if *arity > 0 => {
            format!("there is no filter `{name}` with {arity} arguments")
        }
        kind => format!("there is no {} `{name}`", kind.as_str()),
    })
    .collect()
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
