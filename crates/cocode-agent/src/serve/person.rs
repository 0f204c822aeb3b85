//! Whoever is on the other side of a client, as a turn knows them: the person who says what may be
//! done, and the model of the client.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::approval;
use super::asking::{AskError, Asker};
use super::client::Caller;
use super::progress::Reporter;
use crate::company::{ApprovalAnswer, ApprovalQuestion, Approver};
use crate::provider::{Sampler, Work};

/// The method by which a client is asked for its model.
pub(super) const SAMPLING_METHOD: &str = "sampling/createMessage";

/// Asks whoever called.
pub(super) struct Person {
    pub(super) asker: Asker,
    pub(super) caller: Arc<Caller>,
    pub(super) reporter: Arc<Reporter>,
    /// Ends the turn: nobody is there who could be asked anything.
    pub(super) interrupt: CancellationToken,
}

impl Person {
    async fn approval(&self, question: ApprovalQuestion) -> ApprovalAnswer {
        let client = self.caller.now();
        if !client.can.form {
            return ApprovalAnswer::Unasked;
        }
        self.reporter
            .say(&format!("waiting for approval: {}", question.summary));
        let form = approval::form(&question, client.revision);
        match self.ask(approval::METHOD, form).await {
            Ok(answer) => approval::answer(&answer),
            Err(AskError::Refused(error)) => {
                tracing::warn!(%error, "the client does not ask its user");
                ApprovalAnswer::Unasked
            }
            Err(AskError::TooMany) => ApprovalAnswer::Unasked,
            Err(AskError::Gone | AskError::Late(_)) => ApprovalAnswer::Stopped,
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, AskError> {
        let answer = self.asker.ask(method, params).await;
        if let Err(error @ (AskError::Gone | AskError::Late(_))) = &answer {
            tracing::warn!(%error, method, "a turn is interrupted");
            self.interrupt.cancel();
            // The turn drops this before anything else is made of the silence, such as another try.
            std::future::pending::<()>().await;
        }
        answer
    }
}

impl Approver for Person {
    fn can_ask(&self) -> bool {
        self.caller.now().can.form
    }

    fn ask(&self, question: ApprovalQuestion) -> Work<'_, ApprovalAnswer> {
        Box::pin(self.approval(question))
    }
}

impl Sampler for Person {
    fn takes_tools(&self) -> bool {
        self.caller.now().can.sampling_tools
    }

    fn create_message(&self, params: Value) -> Work<'_, Result<Value, String>> {
        Box::pin(async move {
            if !self.caller.now().can.sampling {
                return Err("the client does not offer its model any more".to_owned());
            }
            let result = self.ask(SAMPLING_METHOD, params).await;
            result.map_err(|error| error.to_string())
        })
    }
}
