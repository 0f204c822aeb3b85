//! What becomes of a request, before it is written down as an answer.

use bytes::Bytes;
use cocode_wire::serve::Answer;
use cocode_wire::{Frame, RawJson, RpcError, code};

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// What a server answered, as it came.
    Frame(Frame),
    /// A result of our own making, or one that had to be changed.
    Result(RawJson),
    /// A result in two parts, which together are JSON.
    Parts(String, Bytes),
    /// No result.
    Error(RpcError),
}

impl Reply {
    /// The answer to request `id`.
    pub(crate) fn answer(self, id: &RawJson) -> Answer {
        match self {
            Self::Result(result) => Answer::result(id, &result),
            Self::Parts(head, tail) => Answer::result_of_parts(id, &[head.as_bytes(), &tail]),
            Self::Error(error) => Answer::error(id, &error),
            Self::Frame(frame) => match (frame.result(), frame.error()) {
                (Some(result), _) => Answer::result(id, &result),
                (None, Some(error)) => Answer::error(id, &error),
                (None, None) => {
                    let what = "the server answered with neither a result nor an error";
                    Answer::error(id, &RpcError::new(code::INTERNAL_ERROR, what))
                }
            },
        }
    }

    /// The result, if it is one and in one piece.
    pub(crate) fn result(&self) -> Option<RawJson> {
        match self {
            Self::Frame(frame) => frame.result(),
            Self::Result(result) => Some(result.clone()),
            Self::Parts(..) | Self::Error(_) => None,
        }
    }

    /// A result made of a value.
    pub(crate) fn of(value: &serde_json::Value) -> Self {
        match RawJson::of(value) {
            Ok(result) => Self::Result(result),
            Err(error) => Self::Error(RpcError::new(code::INTERNAL_ERROR, error.to_string())),
        }
    }

    /// The result that says nothing.
    pub(crate) fn empty() -> Self {
        Self::of(&serde_json::json!({}))
    }
}

impl From<RpcError> for Reply {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}
