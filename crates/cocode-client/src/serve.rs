//! Answers requests of a server: one task, which owns a task per request. Only those of the older
//! era should send any.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cocode_wire::{LinkError, Origin, Outgoing, RawJson, RpcError, code, encode};
use futures_util::FutureExt as _;
use http::HeaderMap;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::connection::Connection;
use crate::handler::{Elicitation, ElicitationAnswer, ElicitationMode, Handler, roots_json};
use crate::mux::Incoming;
use crate::relay::Witness;

/// Questions of one server that may be under way at once; more are refused.
const MAX_QUESTIONS: usize = 64;

/// How long a server may take to accept an answer of ours.
const TAKING_TIME: Duration = Duration::from_secs(30);

/// Serves until the link is gone, or this task is aborted with its session.
pub(crate) async fn serve(
    connection: Arc<Connection>,
    mut incoming: mpsc::Receiver<Incoming>,
    handler: Arc<dyn Handler>,
    patience: Duration,
) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<String, AbortHandle> = HashMap::new();
    while let Some(message) = incoming.recv().await {
        while tasks.try_join_next().is_some() {}
        running.retain(|_, task| !task.is_finished());
        match message {
            Incoming::Cancelled { id } => {
                if let Some(task) = running.remove(id.as_str()) {
                    task.abort();
                }
            }
            Incoming::Request { id, .. } if running.len() >= MAX_QUESTIONS => {
                let error = RpcError::new(code::INTERNAL_ERROR, "too many requests at once");
                let body = encode::error_response(&id, &error);
                // Nobody waits here: this task has to keep up with the server.
                connection.link.post(Outgoing {
                    body,
                    headers: HeaderMap::new(),
                    request: None,
                });
            }
            Incoming::Request {
                id,
                method,
                params,
                origin,
                witness,
            } => {
                let (connection, handler) = (Arc::clone(&connection), Arc::clone(&handler));
                let key = id.as_str().to_owned();
                let task = tasks.spawn(async move {
                    let question = Question {
                        method: &method,
                        params,
                        origin,
                        witness,
                    };
                    let answer = answer(&connection, &*handler, question, patience);
                    let body = match AssertUnwindSafe(answer).catch_unwind().await {
                        Ok(Ok(result)) => encode::response(&id, &result),
                        Ok(Err(error)) => encode::error_response(&id, &error),
                        Err(_panic) => {
                            tracing::error!(method, "a handler panicked on a question");
                            let error = RpcError::new(code::INTERNAL_ERROR, "the client failed");
                            encode::error_response(&id, &error)
                        }
                    };
                    if let Err(error) = send(&connection, body).await {
                        connection.mux.answer_refused(origin, &error);
                    }
                });
                running.insert(key, task);
            }
        }
    }
}

/// Something a server asks, in either era.
pub(crate) struct Question<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<RawJson>,
    pub(crate) origin: Origin,
    /// Who is asked instead of the handler.
    pub(crate) witness: Option<Arc<dyn Witness>>,
}

async fn answer(
    connection: &Connection,
    handler: &dyn Handler,
    question: Question<'_>,
    patience: Duration,
) -> Result<RawJson, RpcError> {
    if question.method == "ping" {
        return RawJson::parse("{}").map_err(internal);
    }
    // While a person or a model answers, the server cannot get on with what it was asked.
    let waits_for_us = matches!(
        question.method,
        "elicitation/create" | "sampling/createMessage"
    );
    let _paused = waits_for_us.then(|| connection.mux.pause(question.origin));
    let Question { method, params, .. } = question;
    if let Some(witness) = question.witness {
        let asking = witness.asked(method, params);
        return within(patience, method, asking).await;
    }
    if let Some(asking) = handler.asked(method, params.as_ref()) {
        return within(patience, method, asking).await;
    }
    ask(handler, method, params, patience).await
}

/// Puts a question to the handler, within the time that a person may take.
pub(crate) async fn ask(
    handler: &dyn Handler,
    method: &str,
    params: Option<RawJson>,
    patience: Duration,
) -> Result<RawJson, RpcError> {
    let asking = ask_without_limit(handler, method, params);
    within(patience, method, asking).await
}

async fn within(
    patience: Duration,
    method: &str,
    asking: impl Future<Output = Result<RawJson, RpcError>>,
) -> Result<RawJson, RpcError> {
    match tokio::time::timeout(patience, asking).await {
        Ok(answer) => answer,
        Err(_elapsed) if method == "elicitation/create" => {
            ElicitationAnswer::Cancel.to_json().map_err(internal)
        }
        Err(_elapsed) => Err(RpcError::new(code::INTERNAL_ERROR, "no answer in time")),
    }
}

async fn ask_without_limit(
    handler: &dyn Handler,
    method: &str,
    params: Option<RawJson>,
) -> Result<RawJson, RpcError> {
    let missing = || {
        RpcError::new(
            code::INVALID_PARAMS,
            format!("`{method}` has no parameters"),
        )
    };
    let capabilities = handler.capabilities();
    match method {
        "elicitation/create" if capabilities.elicitation_form || capabilities.elicitation_url => {
            let elicitation = Elicitation::parse(params.ok_or_else(missing)?)?;
            let declared = match &elicitation.mode {
                ElicitationMode::Form(_) => capabilities.elicitation_form,
                ElicitationMode::Url(_) => capabilities.elicitation_url,
            };
            if !declared {
                let refusal = "this client does not support elicitation of this mode";
                return Err(RpcError::new(code::INVALID_PARAMS, refusal));
            }
            handler
                .elicit(elicitation)
                .await
                .to_json()
                .map_err(internal)
        }
        "sampling/createMessage" if capabilities.sampling => {
            handler.sample(params.ok_or_else(missing)?).await
        }
        "roots/list" if capabilities.roots => roots_json(&handler.roots().await?).map_err(internal),
        "elicitation/create" | "sampling/createMessage" | "roots/list" => {
            let refusal = format!("this client does not support `{method}`");
            Err(RpcError::new(code::METHOD_NOT_FOUND, refusal))
        }
        other => handler.request(other, params).await,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "used as a function for map_err"
)]
fn internal(error: serde_json::Error) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, error.to_string())
}

/// Sends an answer. An error says that the server refused it.
async fn send(connection: &Connection, body: Vec<u8>) -> Result<(), LinkError> {
    tracing::trace!(json = %String::from_utf8_lossy(&body), "sent");
    let headers = HeaderMap::new();
    let sending = connection.link.send(Outgoing {
        body,
        headers,
        request: None,
    });
    match tokio::time::timeout(TAKING_TIME, sending).await {
        Ok(Ok(())) => {}
        Ok(Err(error @ LinkError::Closed(_))) => tracing::debug!(%error, "an answer came too late"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the server did not take an answer");
            return Err(error);
        }
        Err(_elapsed) => tracing::warn!("the server did not take an answer in time"),
    }
    Ok(())
}
