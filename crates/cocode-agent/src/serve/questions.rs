//! Questions of a turn that wait until a client of the stateless era comes back with answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cocode_wire::{RpcError, code};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};

use super::asking::AskError;

/// Questions of one turn that may be open at once.
const MAX_OPEN: usize = 16;

/// The open questions of one turn.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Mutex<Open>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    by_key: BTreeMap<String, Question>,
}

#[derive(Debug)]
struct Question {
    method: String,
    params: Value,
    reply: oneshot::Sender<Result<Value, RpcError>>,
}

impl Questions {
    /// Puts a question, and waits for its answer. Dropping the future takes it back.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<Value, AskError> {
        let (reply, answer) = oneshot::channel();
        let key = {
            let mut open = self.lock();
            if open.by_key.len() >= MAX_OPEN {
                return Err(AskError::TooMany);
            }
            open.last += 1;
            let key = format!("question-{}", open.last);
            let question = Question {
                method: method.to_owned(),
                params,
                reply,
            };
            open.by_key.insert(key.clone(), question);
            key
        };
        let _open = TakenBack { from: self, key };
        self.arrived.notify_one();
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(AskError::Refused(error)),
            Err(_dropped) => Err(AskError::Gone),
        }
    }

    /// Resolves when a question has arrived since this was last waited for.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// The open questions as `inputRequests`; none if there are none.
    pub(super) fn to_requests(&self) -> Option<Map<String, Value>> {
        let open = self.lock();
        if open.by_key.is_empty() {
            return None;
        }
        let requests = open.by_key.iter().map(|(key, question)| {
            let Question { method, params, .. } = question;
            (key.clone(), json!({ "method": method, "params": params }))
        });
        Some(requests.collect())
    }

    /// Gives the answers that are there. What is answered that nobody asked is ignored.
    pub(super) fn answer(&self, answers: Map<String, Value>) {
        let mut open = self.lock();
        for (key, answer) in answers {
            if let Some(question) = open.by_key.remove(&key) {
                // Whoever asked may have gone meanwhile.
                drop(question.reply.send(Ok(answer)));
            }
        }
    }

    /// Takes back the questions that nobody can answer any more.
    pub(super) fn keep_only(&self, can_answer: impl Fn(&str) -> bool) {
        let mut open = self.lock();
        let lost = open
            .by_key
            .extract_if(.., |_, question| !can_answer(&question.method));
        for (_, question) in lost {
            let what = "the client does not offer this any more";
            let refusal = RpcError::new(code::METHOD_NOT_FOUND, what);
            drop(question.reply.send(Err(refusal)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TakenBack<'a> {
    from: &'a Questions,
    key: String,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.from.lock().by_key.remove(&self.key);
    }
}
