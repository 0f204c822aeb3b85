//! What a scripted model says, turn by turn.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gate::Gate;
use crate::http::HttpRequest;

/// The turns of a model, each the answer to one request.
#[derive(Default)]
pub struct ModelScript {
    turns: Mutex<VecDeque<Answer>>,
    forever: Option<Answer>,
}

/// A script as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    turns: Vec<ModelTurn>,
    /// What every request is answered with when the turns are over.
    #[serde(default)]
    forever: Option<ModelTurn>,
}

/// Makes a turn from the request that it answers.
type Answer = Arc<dyn Fn(&HttpRequest) -> ModelTurn + Send + Sync>;

/// What a model says in one go, or why it does not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelTurn {
    pub(super) parts: Vec<Part>,
    pub(super) stop: Option<StopWord>,
    pub(super) usage: Tokens,
    pub(super) refusal: Option<Refusal>,
    pub(super) ending: Ending,
    /// How many bytes of the stream go out at once; all if zero.
    pub(super) piece: usize,
}

/// A part of what is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// In as many pieces as there are.
    Text(Vec<String>),
    Thinking {
        text: String,
        signature: String,
    },
    /// A thought that may not be read.
    Redacted(String),
    /// The arguments are text, as a model writes them.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// Waits at a gate.
    Hold(SocketAddr),
    /// A sign of life.
    Ping,
    /// Any event at all, with this data.
    Raw {
        name: String,
        data: String,
    },
}

/// Why a model stops, if not because it is done or waits for tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopWord {
    MaxTokens,
    Refusal(String),
    ContentFilter,
    /// In the words of the provider.
    Other(String),
}

/// Tokens, as they are counted here: the four do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    /// Nothing is said about tokens at all.
    pub(super) unsaid: bool,
}

/// An answer that is no reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The type of the error, or its code.
    pub(super) kind: String,
    pub(super) message: String,
    /// The body, if not the usual one.
    pub(super) body: Option<String>,
}

/// How a stream ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    /// As documented.
    #[default]
    Proper,
    /// With an error where the rest of the reply would be.
    Error { kind: String, message: String },
    /// The stream ends properly, the reply does not.
    Early,
    /// The connection is closed in the middle of an event.
    CutOff,
    /// Nothing more comes, and the connection stays.
    Stall,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            input: 10,
            output: 5,
            cache_read: 0,
            cache_write: 0,
            unsaid: false,
        }
    }
}

impl ModelScript {
    /// A model that says nothing: every request is one too many.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script that a test has written down as JSON.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written: Written = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let turns = written.turns.into_iter().map(always).collect();
        Ok(Self {
            turns: Mutex::new(turns),
            forever: written.forever.map(always),
        })
    }

    /// The next turn.
    #[must_use]
    pub fn turn(self, turn: ModelTurn) -> Self {
        self.push(always(turn));
        self
    }

    /// The next turn, made from the request when it comes.
    #[must_use]
    pub fn computed(
        self,
        compute: impl Fn(&HttpRequest) -> ModelTurn + Send + Sync + 'static,
    ) -> Self {
        self.push(Arc::new(compute));
        self
    }

    /// What every request is answered with when the turns are over.
    #[must_use]
    pub fn forever(mut self, turn: ModelTurn) -> Self {
        self.forever = Some(always(turn));
        self
    }

    /// As [`Self::forever`], made from each request when it comes.
    #[must_use]
    pub fn forever_computed(
        mut self,
        compute: impl Fn(&HttpRequest) -> ModelTurn + Send + Sync + 'static,
    ) -> Self {
        self.forever = Some(Arc::new(compute));
        self
    }

    /// The answer to a request, or nothing when the script is over.
    pub(super) fn next(&self, request: &HttpRequest) -> Option<ModelTurn> {
        let next = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.pop_front().or_else(|| self.forever.clone())
        };
        next.map(|answer| answer(request))
    }

    fn push(&self, answer: Answer) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.push_back(answer);
    }
}

/// The same turn, whatever the request is.
fn always(turn: ModelTurn) -> Answer {
    Arc::new(move |_request| turn.clone())
}

impl fmt::Debug for ModelScript {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        formatter
            .debug_struct("ModelScript")
            .field("turns_left", &turns.len())
            .finish_non_exhaustive()
    }
}

impl ModelTurn {
    /// Nothing is said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer that is no reply.
    pub fn status(status: u16, kind: &str, message: &str) -> Self {
        let refusal = Refusal {
            status,
            kind: kind.to_owned(),
            message: message.to_owned(),
            ..Refusal::default()
        };
        Self {
            refusal: Some(refusal),
            ..Self::default()
        }
    }

    /// A header of an answer that is no reply.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let refusal = self.refusal.get_or_insert_default();
        refusal.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body of an answer that is no reply, if not the usual one.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        self.refusal.get_or_insert_default().body = Some(body.to_owned());
        self
    }

    /// Says something in one piece.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.texts(&[text])
    }

    /// Says something in these pieces.
    #[must_use]
    pub fn texts(self, pieces: &[&str]) -> Self {
        let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
        self.part(Part::Text(pieces))
    }

    /// Thinks something. The signature is what the provider wants back.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        let (text, signature) = (text.to_owned(), signature.to_owned());
        self.part(Part::Thinking { text, signature })
    }

    /// Thinks something that may not be read.
    #[must_use]
    pub fn redacted(self, data: &str) -> Self {
        self.part(Part::Redacted(data.to_owned()))
    }

    /// Calls a tool.
    #[must_use]
    pub fn call(self, id: &str, name: &str, arguments: &Value) -> Self {
        self.malformed_call(id, name, &arguments.to_string())
    }

    /// Calls a tool with arguments that are any text.
    #[must_use]
    pub fn malformed_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.part(Part::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        })
    }

    /// Waits at a gate.
    #[must_use]
    pub fn hold(self, gate: &Gate) -> Self {
        self.part(Part::Hold(gate.address()))
    }

    /// Gives a sign of life, where the interface has one.
    #[must_use]
    pub fn ping(self) -> Self {
        self.part(Part::Ping)
    }

    /// Sends any event at all.
    #[must_use]
    pub fn raw(self, name: &str, data: &str) -> Self {
        let (name, data) = (name.to_owned(), data.to_owned());
        self.part(Part::Raw { name, data })
    }

    /// Stops because it has written as much as it may.
    #[must_use]
    pub fn max_tokens(mut self) -> Self {
        self.stop = Some(StopWord::MaxTokens);
        self
    }

    /// Refuses, in these words where the interface has room for them.
    #[must_use]
    pub fn refuses(mut self, why: &str) -> Self {
        self.stop = Some(StopWord::Refusal(why.to_owned()));
        self
    }

    /// Stops because a filter has found something.
    #[must_use]
    pub fn filtered(mut self) -> Self {
        self.stop = Some(StopWord::ContentFilter);
        self
    }

    /// Stops for a reason in the words of the provider.
    #[must_use]
    pub fn stops(mut self, word: &str) -> Self {
        self.stop = Some(StopWord::Other(word.to_owned()));
        self
    }

    /// The tokens that are reported: read, written, read from a cache, put into one.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64, cache_read: u64, cache_write: u64) -> Self {
        self.usage = Tokens {
            input,
            output,
            cache_read,
            cache_write,
            unsaid: false,
        };
        self
    }

    /// Reports no tokens.
    #[must_use]
    pub fn no_usage(mut self) -> Self {
        self.usage.unsaid = true;
        self
    }

    /// Ends with an error where the rest of the reply would be.
    #[must_use]
    pub fn then_error(mut self, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        self.ending = Ending::Error { kind, message };
        self
    }

    /// Ends the stream properly, but not the reply.
    #[must_use]
    pub fn ends_early(mut self) -> Self {
        self.ending = Ending::Early;
        self
    }

    /// Closes the connection in the middle of the last event.
    #[must_use]
    pub fn cut_off(mut self) -> Self {
        self.ending = Ending::CutOff;
        self
    }

    /// Says nothing more, and keeps the connection.
    #[must_use]
    pub fn stall(mut self) -> Self {
        self.ending = Ending::Stall;
        self
    }

    /// Sends this many bytes of the stream at once.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    pub(super) fn has_calls(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Call { .. }))
    }
}
