//! The one way to ask a client something, whatever its era: by a request of our own, or in the result
//! of the call that it waits for.

use std::sync::Arc;
use std::time::Duration;

use cocode_wire::RpcError;
use cocode_wire::serve::Sink;
use serde_json::Value;
use tokio::time::timeout;

use super::pending::Pending;
use super::questions::Questions;

/// How long a client with a connection may take for an answer: a person may be away from the desk.
const ANSWERS_WITHIN: Duration = Duration::from_hours(1);
/// How long a client may take to come back with answers.
pub(super) const COMES_BACK_WITHIN: Duration = Duration::from_mins(10);

/// Asks one client, for one turn.
pub(super) enum Asker {
    /// By requests that belong to the call.
    Requests {
        pending: Arc<Pending>,
        stream: Arc<dyn Sink>,
    },
    /// In the result of the call.
    Results(Arc<Questions>),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// It says so.
    #[error("the client refuses: {0}")]
    Refused(RpcError),
    /// It is not there.
    #[error("the client is gone")]
    Gone,
    /// It took too long.
    #[error("the client gave no answer within {} minutes", .0.as_secs() / 60)]
    Late(Duration),
    /// It has enough to answer.
    #[error("too many questions to the client are open")]
    TooMany,
}

impl Asker {
    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<Value, AskError> {
        let (within, answer) = match self {
            Self::Requests { pending, stream } => {
                let asking = pending.ask(&**stream, method, &params);
                (ANSWERS_WITHIN, timeout(ANSWERS_WITHIN, asking).await)
            }
            Self::Results(questions) => {
                let asking = questions.ask(method, params);
                (COMES_BACK_WITHIN, timeout(COMES_BACK_WITHIN, asking).await)
            }
        };
        answer.unwrap_or(Err(AskError::Late(within)))
    }
}
