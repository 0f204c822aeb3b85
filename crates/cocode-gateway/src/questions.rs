//! Questions of servers that wait until a client of the stateless era comes back with answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cocode_wire::{RawJson, RpcError, code, encode};
use tokio::sync::{Notify, oneshot};

/// Questions of one call that may be open at once.
const MAX_OPEN: usize = 16;

/// The open questions of one call.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<Open>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    by_key: BTreeMap<String, Question>,
}

/// One question.
#[derive(Debug)]
struct Question {
    method: String,
    params: Option<RawJson>,
    reply: oneshot::Sender<RawJson>,
}

impl Questions {
    /// Puts a question, and waits for its answer. Dropping the future takes it back.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        let (reply, answer) = oneshot::channel();
        let key = {
            let mut open = self.lock();
            if open.by_key.len() >= MAX_OPEN {
                let what = "too many questions at once";
                return Err(RpcError::new(code::INTERNAL_ERROR, what));
            }
            open.next += 1;
            let key = format!("question-{}", open.next);
            let question = Question {
                method: method.to_owned(),
                params,
                reply,
            };
            open.by_key.insert(key.clone(), question);
            key
        };
        let _taken_back = TakenBack {
            questions: self,
            key: &key,
        };
        self.arrived.notify_one();
        let gone = |_| RpcError::new(code::INTERNAL_ERROR, "the client is gone");
        answer.await.map_err(gone)
    }

    /// Resolves when there is a question that nobody was told of yet.
    pub(crate) async fn arrived(&self) {
        loop {
            self.arrived.notified().await;
            if self.is_waiting() {
                return;
            }
        }
    }

    /// Whether a question is open.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.lock().by_key.is_empty()
    }

    /// The open questions as `inputRequests`: a JSON object.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let open = self.lock();
        let mut text = b"{".to_vec();
        for (key, question) in &open.by_key {
            if text.len() > 1 {
                text.push(b',');
            }
            push_request(&mut text, key, &question.method, question.params.as_ref());
        }
        text.push(b'}');
        text
    }

    /// Gives the answers that are there. What is answered that nobody asked is ignored.
    pub(crate) fn answer(&self, answers: &[(String, RawJson)]) {
        let mut open = self.lock();
        for (key, answer) in answers {
            if let Some(question) = open.by_key.remove(key) {
                // Whoever asked may have gone meanwhile.
                drop(question.reply.send(answer.clone()));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends one member of `inputRequests`.
pub(crate) fn push_request(text: &mut Vec<u8>, key: &str, method: &str, params: Option<&RawJson>) {
    encode::push_string(text, key);
    text.extend_from_slice(b":{\"method\":");
    encode::push_string(text, method);
    text.push(b',');
    encode::push_member(text, "params", params.map_or("{}", RawJson::as_str));
    text.push(b'}');
}

struct TakenBack<'a> {
    questions: &'a Questions,
    key: &'a str,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.questions.lock().by_key.remove(self.key);
    }
}
