//! What comes back for a request: whether it is its answer, and what that says.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::Outcome;
use crate::Failure;
use crate::http::{HttpAnswer, messages};

/// The one answer in what came back for a request; none if it was cancelled.
pub(crate) fn only(answer: &HttpAnswer, id: u64) -> Result<Option<Answer>, Failure> {
    let messages = if answer.is_events {
        messages(&answer.body)
    } else if answer.body.is_empty() {
        Vec::new()
    } else {
        vec![answer.body.clone()]
    };
    let mut found = None;
    for message in messages {
        if let Some(answer) = Answer::read(&message)?.of(id)?
            && found.replace(answer).is_some()
        {
            return Err(format!("request {id} was answered twice").into());
        }
    }
    Ok(found)
}

/// A message that may be an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) id: Option<u64>,
    has_method: bool,
    result: Option<String>,
    error: Option<String>,
    whole: String,
}

impl Answer {
    pub(crate) fn read(message: &[u8]) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Message<'a> {
            id: Option<u64>,
            method: Option<String>,
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            #[serde(borrow)]
            error: Option<&'a RawValue>,
        }
        let whole = String::from_utf8_lossy(message).into_owned();
        let message: Message<'_> =
            serde_json::from_slice(message).map_err(|error| format!("{error} in {whole}"))?;
        Ok(Self {
            id: message.id,
            has_method: message.method.is_some(),
            result: message.result.map(|result| result.get().to_owned()),
            error: message.error.map(|error| error.get().to_owned()),
            whole,
        })
    }

    /// Itself if it answers `id`, nothing if it answers nothing. An answer to anything else belongs
    /// to somebody else.
    pub(crate) fn of(self, id: u64) -> Result<Option<Self>, Failure> {
        if self.has_method {
            return Ok(None);
        }
        if self.id == Some(id) {
            return Ok(Some(self));
        }
        Err(format!("instead of an answer to {id} came {}", self.whole).into())
    }

    /// Whether it is what was asked for: `text`, or an error that names the server.
    pub(crate) fn outcome(&self, text: &str, server: &str) -> Result<Outcome, Failure> {
        if let Some(error) = &self.error {
            return refusal(error, Some(server));
        }
        let result = self.result.as_deref().unwrap_or_default();
        let result: Value = serde_json::from_str(result)?;
        if result["content"][0]["text"] == *text {
            return Ok(Outcome::Answered);
        }
        Err(format!("instead of `{text}` came {}", self.whole).into())
    }

    /// Whether a session was opened.
    pub(crate) fn opened(&self, place: Option<&str>) -> Result<Outcome, Failure> {
        match &self.error {
            Some(error) => refusal(error, place),
            None => Ok(Outcome::Answered),
        }
    }
}

/// What an error says, which has to name the server.
fn refusal(error: &str, server: Option<&str>) -> Result<Outcome, Failure> {
    if server.is_some_and(|server| !error.contains(server)) {
        return Err(format!("an error does not name the server: {error}").into());
    }
    let value: Value = serde_json::from_str(error)?;
    let kind = match value["data"]["code"].as_str() {
        Some(kind) => kind.to_owned(),
        None => format!("{}", value["code"]),
    };
    Ok(Outcome::Refused(kind))
}
