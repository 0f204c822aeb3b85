//! Questions that the client of a call cannot answer, for whoever looks after the gateway.

use std::time::SystemTime;

use cocode_admin::{Desk, Question, QuestionKind, Reply};
use cocode_gateway::QuestionMode;
use cocode_wire::{RawJson, RpcError, code};
use futures_util::future::BoxFuture;
use serde_json::json;

/// The inbox of a desk. It is open while somebody looks at the desk.
#[derive(Clone, Debug)]
pub(crate) struct DeskInbox(pub(crate) Desk);

impl cocode_gateway::Inbox for DeskInbox {
    fn is_open(&self) -> bool {
        self.0.bulletin.listeners() > 0
    }

    fn ask(
        &self,
        question: cocode_gateway::Question,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let wait = question.deadline.duration_since(SystemTime::now());
        let kind = match question.mode {
            QuestionMode::Form => QuestionKind::Form(question.requested_schema.unwrap_or_else(any)),
            QuestionMode::Url => QuestionKind::Url(question.url.unwrap_or_default()),
        };
        let asked = self.0.inbox.ask(
            Question {
                server: question.server.to_string(),
                principal: question.principal.map(|name| name.to_string()),
                tool: question.tool.map(|tool| tool.to_string()),
                message: question.message,
                kind,
            },
            wait.unwrap_or_default(),
        );
        Box::pin(async move {
            let asked =
                asked.map_err(|refusal| RpcError::new(code::INTERNAL_ERROR, refusal.message))?;
            let answer = match asked.reply().await {
                Reply::Accept(Some(content)) => {
                    let text = format!(r#"{{"action":"accept","content":{}}}"#, content.as_str());
                    return RawJson::parse(text).map_err(unwritable);
                }
                Reply::Accept(None) => json!({ "action": "accept" }),
                Reply::Decline => json!({ "action": "decline" }),
                Reply::Cancel => json!({ "action": "cancel" }),
                Reply::Expired => {
                    let what = "nobody answered in time at the dashboard of the gateway";
                    return Err(RpcError::new(code::INTERNAL_ERROR, what));
                }
            };
            RawJson::of(&answer).map_err(unwritable)
        })
    }
}

/// A form without fields: there is only yes or no to it.
fn any() -> RawJson {
    let empty = json!({ "type": "object", "properties": {} });
    RawJson::of(&empty)
        .unwrap_or_else(|_| RawJson::from(serde_json::value::RawValue::NULL.to_owned()))
}

fn unwritable(error: impl std::fmt::Display) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, error.to_string())
}
