//! Requests that were sent to a client of the older era, until it answers them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cocode_wire::serve::Sink;
use cocode_wire::{Frame, RpcError, code, encode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::asking::AskError;

/// Requests to one client that may be open at once.
const MAX_OPEN: usize = 64;

/// The open requests to one client.
#[derive(Debug, Default)]
pub(super) struct Pending {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    by_id: HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>,
}

impl Pending {
    /// Sends a request, and waits for its answer. Dropping the future tells the client that nobody
    /// wants to know any more.
    pub(super) async fn ask(
        &self,
        stream: &dyn Sink,
        method: &str,
        params: &Value,
    ) -> Result<Value, AskError> {
        let (reply, answer) = oneshot::channel();
        let id = {
            let mut open = self.lock();
            if open.by_id.len() >= MAX_OPEN {
                return Err(AskError::TooMany);
            }
            open.last += 1;
            let id = open.last;
            open.by_id.insert(id, reply);
            id
        };
        let asked = Asked {
            pending: self,
            stream,
            id,
        };
        let request = encode::request(id, method, Some(params.to_string().as_bytes()));
        if !stream.send(Bytes::from(request)) {
            return Err(AskError::Gone);
        }
        let answer = answer.await;
        drop(asked);
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(AskError::Refused(error)),
            Err(_dropped) => Err(AskError::Gone),
        }
    }

    /// A client answers. What answers nothing is ignored.
    pub(super) fn answered(&self, frame: &Frame) {
        let reply = frame
            .numeric_id()
            .and_then(|id| self.lock().by_id.remove(&id));
        let Some(reply) = reply else {
            tracing::debug!("an answer to no question was dropped");
            return;
        };
        let answer = match (frame.error(), frame.result()) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => result
                .decode()
                .map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string())),
            (None, None) => Err(RpcError::new(code::INTERNAL_ERROR, "the answer is empty")),
        };
        // Whoever asked may have gone meanwhile.
        drop(reply.send(answer));
    }

    /// The client is gone: nobody answers any more.
    pub(super) fn clear(&self) {
        self.lock().by_id.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is open, until this is dropped.
struct Asked<'a> {
    pending: &'a Pending,
    stream: &'a dyn Sink,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.pending.lock().by_id.remove(&self.id).is_none() {
            return;
        }
        let params = json!({ "requestId": self.id, "reason": "the answer is not needed any more" });
        let params = params.to_string();
        let told = encode::notification("notifications/cancelled", Some(params.as_bytes()));
        if !self.stream.send(Bytes::from(told)) {
            tracing::debug!("a client was not told that its answer is not needed");
        }
    }
}
