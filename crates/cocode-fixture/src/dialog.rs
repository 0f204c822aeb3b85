//! Asks the client in the middle of a request, in whichever way its era has.
//!
//! A legacy client is sent requests, and the tool waits for the answers. A modern one gets the
//! questions as the result; it sends its request again with the answers, and the tool runs from its
//! beginning and finds them. So a tool is written once for both.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use rmcp::model::{
    ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    SealOptions, ServerRequest,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use crate::era::is_modern;
use crate::questions::{can_answer, is_answer, needed};
use crate::shared::Shared;

/// Why a request ends before its result is there.
pub(crate) enum Stop {
    /// The client has to answer first.
    Ask(InputRequiredResult),
    Fail(ErrorData),
}

impl From<ErrorData> for Stop {
    fn from(error: ErrorData) -> Self {
        Self::Fail(error)
    }
}

/// Whether answers are kept in the state that a modern client sends back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    None,
    Sealed,
}

/// Answers by the name of their question.
pub(crate) type Answers = BTreeMap<String, Value>;

pub(crate) struct Dialog<'a> {
    context: &'a RequestContext<RoleServer>,
    shared: &'a Shared,
    memory: Memory,
    /// The tool or prompt; a state of one is worth nothing for another.
    subject: &'a str,
    /// What the client sent with its request.
    responses: InputResponses,
    /// Whether the client sent the state back, if there is a memory.
    resumed: bool,
    /// Answers of this and earlier rounds.
    known: Answers,
}

impl<'a> Dialog<'a> {
    pub(crate) fn new(
        context: &'a RequestContext<RoleServer>,
        shared: &'a Shared,
        subject: &'a str,
        memory: Memory,
    ) -> Self {
        Self {
            context,
            shared,
            memory,
            subject,
            responses: InputResponses::new(),
            resumed: false,
            known: Answers::new(),
        }
    }

    /// With what a modern client sent along.
    pub(crate) fn resumed(
        mut self,
        responses: Option<InputResponses>,
        state: Option<&str>,
    ) -> Result<Self, ErrorData> {
        self.responses = responses.unwrap_or_default();
        if let Some(state) = state.filter(|_| self.memory == Memory::Sealed) {
            self.known = self.recall(state)?;
            self.resumed = true;
        }
        Ok(self)
    }

    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    /// Asks all questions at once.
    pub(crate) async fn ask<const N: usize>(
        &mut self,
        questions: [(&str, InputRequest); N],
    ) -> Result<Answers, Stop> {
        self.ask_all(
            questions
                .into_iter()
                .map(|(name, question)| (name.to_owned(), question))
                .collect(),
        )
        .await
    }

    pub(crate) async fn ask_all(&mut self, questions: InputRequests) -> Result<Answers, Stop> {
        let capabilities = self.capabilities();
        for question in questions.values() {
            if !can_answer(&capabilities, question) {
                return Err(self.cannot_be_asked(question).into());
            }
        }
        if is_modern(self.context) {
            self.find(questions)
        } else {
            self.wait_for(questions).await
        }
    }

    fn cannot_be_asked(&self, question: &InputRequest) -> ErrorData {
        let needed = needed(question);
        if is_modern(self.context) {
            return ErrorData::missing_required_client_capability(needed);
        }
        let needed = serde_json::to_value(needed).unwrap_or_default();
        ErrorData::invalid_request(format!("the client lacks the capability {needed}"), None)
    }

    /// Looks for the answers in what came with the request.
    fn find(&mut self, questions: InputRequests) -> Result<Answers, Stop> {
        // Whoever should remember the question and does not has not been asked it.
        if self.memory == Memory::None || self.resumed {
            for (name, question) in &questions {
                let Some(answer) = self.responses.get(name) else {
                    continue;
                };
                if !is_answer(question, answer) {
                    let message = format!("`{name}` is not an answer to what was asked");
                    return Err(ErrorData::invalid_params(message, None).into());
                }
                self.known.insert(name.clone(), answer.clone());
            }
        }
        let open: InputRequests = questions
            .into_iter()
            .filter(|(name, _)| !self.known.contains_key(name))
            .collect();
        if open.is_empty() {
            return Ok(self.known.clone());
        }
        let state = (self.memory == Memory::Sealed).then(|| self.seal());
        Err(Stop::Ask(InputRequiredResult::new(Some(open), state)))
    }

    fn seal(&self) -> String {
        let known = serde_json::to_vec(&self.known).expect("JSON can be written");
        let options = SealOptions::new().associated_data(self.subject.as_bytes());
        self.shared.memory.seal_with(&known, &options)
    }

    /// The answers of earlier rounds.
    fn recall(&self, state: &str) -> Result<Answers, ErrorData> {
        let refuse = |error: &dyn std::fmt::Display| {
            ErrorData::invalid_params(format!("requestState: {error}"), None)
        };
        let known = self
            .shared
            .memory
            .open_with(state, self.subject.as_bytes())
            .map_err(|error| refuse(&error))?;
        serde_json::from_slice(&known).map_err(|error| refuse(&error))
    }

    /// Sends the questions, all before the first answer.
    async fn wait_for(&self, questions: InputRequests) -> Result<Answers, Stop> {
        let answers = questions.into_iter().map(|(name, question)| async move {
            let answer = self.send(question).await?;
            Ok::<_, ErrorData>((name, answer))
        });
        Ok(try_join_all(answers).await?.into_iter().collect())
    }

    async fn send(&self, question: InputRequest) -> Result<Value, ErrorData> {
        let request = match question {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err(ErrorData::internal_error("a question of a new kind", None)),
        };
        let answer = self.context.peer.send_request(request).await;
        let answer = answer.map_err(|error| match error {
            ServiceError::McpError(error) => error,
            error => ErrorData::internal_error(format!("the client was asked: {error}"), None),
        })?;
        serde_json::to_value(answer)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}
