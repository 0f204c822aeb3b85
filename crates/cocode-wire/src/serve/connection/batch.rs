//! JSON-RPC batches, as revision 2025-03-26 has them: many messages in one text, and their answers
//! in another.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::limits::MAX_BATCH_MESSAGES;
use crate::rpc_error::{RpcError, code};
use crate::serve::service::Serving;

/// The work on a batch. Its answers stand in the order in which they were ready.
#[derive(Default)]
pub(super) struct Batch {
    serving: FuturesUnordered<Serving>,
    answers: Vec<Bytes>,
}

impl Batch {
    pub(super) fn serve(&mut self, serving: Serving) {
        self.serving.push(serving);
    }

    pub(super) fn answered(&mut self, answer: Bytes) {
        self.answers.push(answer);
    }

    /// Whether there is nothing to answer.
    pub(super) fn is_empty(&self) -> bool {
        self.serving.is_empty() && self.answers.is_empty()
    }
}

impl Future for Batch {
    type Output = Bytes;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            match self.serving.poll_next_unpin(context) {
                Poll::Ready(Some(answer)) if answer.body.is_empty() => {}
                Poll::Ready(Some(answer)) => self.answers.push(answer.body),
                Poll::Ready(None) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.answers.is_empty() {
            // All were cancelled.
            return Poll::Ready(Bytes::new());
        }
        let mut text = vec![b'['];
        text.extend_from_slice(&self.answers.join(&b','));
        text.push(b']');
        Poll::Ready(text.into())
    }
}

/// The messages of a batch, not parsed yet. An endless one is not read to its end.
pub(in crate::serve) fn members(text: &Bytes) -> Result<Vec<Bytes>, RpcError> {
    let members: Members<'_> = serde_json::from_slice(text).map_err(|error| {
        if error.classify() == Category::Data {
            RpcError::new(code::INVALID_REQUEST, error.to_string())
        } else {
            RpcError::new(code::PARSE_ERROR, format!("not JSON: {error}"))
        }
    })?;
    if members.0.is_empty() {
        return Err(RpcError::new(code::INVALID_REQUEST, "an empty batch"));
    }
    let part = |raw: &&RawValue| text.slice_ref(raw.get().as_bytes());
    Ok(members.0.iter().map(part).collect())
}

struct Members<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_seq(MembersVisitor).map(Self)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a batch of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = input.next_element()? {
            if members.len() == MAX_BATCH_MESSAGES {
                let message = format!("a batch of more than {MAX_BATCH_MESSAGES} messages");
                return Err(A::Error::custom(message));
            }
            members.push(member);
        }
        Ok(members)
    }
}
