//! One request and its reply, for all providers that speak HTTP: what differs is a [`Reader`].

use std::time::Duration;

use cocode_wire::{FetchError, StreamEvent, chain};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::complaint::{About, Complaint, shown};
use super::http::{Endpoint, MAX_ERROR_BYTES};
use crate::content::Block;
use crate::provider::{Delta, ProviderError, Reply};

/// A whole reply that does not come in events, in bytes.
const MAX_WHOLE_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// How long the words of an error may take once its status is there.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);

/// Who hears what a model says while it says it.
pub(super) type OnDelta<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// Reads a reply event by event.
pub(super) trait Reader: Send {
    /// Takes an event. Those that it does not know mean nothing.
    fn take(&mut self, event: &StreamEvent, on_delta: OnDelta<'_>) -> Result<Progress, Fault>;

    /// Takes a reply that came whole, although events were asked for.
    fn take_whole(&mut self, _reply: &Value, _on_delta: OnDelta<'_>) -> Result<(), Fault> {
        Err(Fault::NotUnderstood("it is no stream of events".into()))
    }

    /// Whether the reply is whole although the last event did not say so.
    fn is_whole(&self) -> bool {
        false
    }

    /// The reply, at its end.
    fn finish(self) -> Result<Reply, Fault>;

    /// What was said so far, without calls that are not whole.
    fn said(self) -> Vec<Block>;
}

/// Whether a reply goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    More,
    /// This was the end.
    End,
}

/// What is wrong with a reply.
#[derive(Debug)]
pub(super) enum Fault {
    /// The provider says what.
    Complaint(Complaint),
    /// It is not what the provider documents.
    NotUnderstood(String),
}

/// Posts a request and reads the reply.
pub(super) async fn exchange(
    endpoint: &Endpoint,
    model: &str,
    request: &Value,
    mut reader: impl Reader,
    on_delta: OnDelta<'_>,
) -> Result<Reply, ProviderError> {
    let about = About {
        provider: &endpoint.name,
        model,
    };
    let fault = |fault: Fault| match fault {
        Fault::Complaint(mut complaint) => {
            complaint.message = endpoint.without_key(&complaint.message);
            complaint.judge(about)
        }
        Fault::NotUnderstood(why) => not_understood(about, &why),
    };
    let deadline = Instant::now() + endpoint.patience.whole;
    let (head, mut body) = endpoint.post(request).await?.into_parts();
    tracing::debug!(
        provider = about.provider,
        model,
        status = head.status.as_u16(),
        "answer"
    );
    if !head.status.is_success() {
        // The status is what counts; its words are worth a moment.
        let body = timeout(ERROR_BODY_WAIT, body.into_start(MAX_ERROR_BYTES)).await;
        let body = body.unwrap_or_default();
        let complaint = Complaint::of_answer(head.status, &head.headers, &body);
        return Err(fault(Fault::Complaint(complaint)));
    }
    if !body.is_event_stream() {
        let body = body.into_bytes(MAX_WHOLE_REPLY_BYTES).await;
        let body = body.map_err(|error| broke_off(about, &error, Vec::new()))?;
        let reply: Value = serde_json::from_slice(&body)
            .map_err(|_no_json| not_understood(about, "it is neither events nor JSON"))?;
        if reply.get("error").is_some_and(|error| !error.is_null()) {
            return Err(fault(Fault::Complaint(Complaint::of_event(&reply))));
        }
        reader.take_whole(&reply, on_delta).map_err(fault)?;
        return reader.finish().map_err(fault);
    }
    loop {
        let Ok(next) = timeout_at(deadline, body.next()).await else {
            let minutes = endpoint.patience.whole.as_secs() / 60;
            return Err(ProviderError::BrokeOff {
                provider: about.provider.to_owned(),
                why: format!("it was not whole after {minutes} minutes"),
                said: reader.said(),
            });
        };
        match next {
            Ok(Some(event)) => match reader.take(&event, &mut *on_delta).map_err(fault)? {
                Progress::More => {}
                Progress::End => return reader.finish().map_err(fault),
            },
            // What would have followed a whole reply is no loss.
            Ok(None) | Err(_) if reader.is_whole() => return reader.finish().map_err(fault),
            Ok(None) => {
                return Err(ProviderError::BrokeOff {
                    provider: about.provider.to_owned(),
                    why: "the stream ended before the reply did".into(),
                    said: reader.said(),
                });
            }
            Err(error) => return Err(broke_off(about, &error, reader.said())),
        }
    }
}

/// The data of an event as JSON.
pub(super) fn json(event: &StreamEvent) -> Result<Value, Fault> {
    serde_json::from_slice(&event.data)
        .map_err(|error| Fault::NotUnderstood(format!("the data of an event is no JSON: {error}")))
}

/// The text of a member, or nothing.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number of a member, or zero.
pub(super) fn number(value: &Value, pointer: &str) -> u64 {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

fn not_understood(about: About<'_>, why: &str) -> ProviderError {
    ProviderError::NotUnderstood {
        provider: about.provider.to_owned(),
        why: shown(why),
    }
}

fn broke_off(about: About<'_>, error: &FetchError, said: Vec<Block>) -> ProviderError {
    let why = chain(error);
    if Endpoint::is_too_large(error) {
        return not_understood(about, &why);
    }
    ProviderError::BrokeOff {
        provider: about.provider.to_owned(),
        why: shown(&why),
        said,
    }
}
