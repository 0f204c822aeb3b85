//! Requests that come back with questions: the multi round-trip pattern of the stateless era.

use std::borrow::Cow;
use std::time::Duration;

use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::RequestError;
use crate::params::with_members;
use crate::serve::ask;
use crate::session::{Call, Session};
use cocode_core::Era;
use cocode_wire::encode::push_member;
use cocode_wire::members::{Members, begins_or_ends_with, never_mentions};

#[derive(Deserialize)]
struct ResultHead<'a> {
    #[serde(borrow, default, rename = "resultType")]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct InputRequired<'a> {
    #[serde(borrow, default, rename = "inputRequests")]
    requests: Option<Members<'a>>,
    #[serde(borrow, default, rename = "requestState")]
    state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct InputRequest<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl Session {
    /// Makes a call and answers the server's questions until it has a final result.
    pub(crate) async fn call_with_input(&self, call: &Call<'_>) -> Result<RawJson, RequestError> {
        if self.server().era() == Era::Legacy {
            return self.call_after_visits(call).await;
        }
        let begun = Instant::now();
        let mut outcome = self.call_for_any_result(call).await?;
        let mut asked = Duration::ZERO;
        let rounds = self.shared().options.max_input_rounds;
        for _round in 0..rounds {
            if outcome.kind == ResultKind::Complete {
                break;
            }
            let asking = Instant::now();
            let members = self.answers(call.method, &outcome.result).await?;
            // The time in which a person answers counts for no deadline.
            asked += asking.elapsed();
            let not_an_object = |_| RequestError::Params {
                method: call.method.to_owned(),
            };
            let params = with_members(call.params.unwrap_or(b"{}"), &members);
            let params = params.map_err(not_an_object)?;
            let retry = Call {
                method: call.method,
                params: Some(&params),
                name: call.name,
                headers: call.headers.clone(),
                deadlines: call.deadlines.after(begun.elapsed().saturating_sub(asked)),
                reports: call.reports.clone(),
                meta: None,
            };
            outcome = self.call_for_any_result(&retry).await?;
        }
        match outcome.kind {
            ResultKind::Complete => Ok(outcome.result),
            ResultKind::InputRequired => Err(RequestError::InputRounds {
                method: call.method.to_owned(),
                rounds,
            }),
        }
    }

    /// The older era has one kind of result that asks for input: an error that names URLs which the
    /// person has to visit first (revision 2025-11-25).
    async fn call_after_visits(&self, call: &Call<'_>) -> Result<RawJson, RequestError> {
        let rounds = self.shared().options.max_input_rounds;
        let begun = Instant::now();
        let mut asked = Duration::ZERO;
        for round in 0..=rounds {
            let attempt = Call {
                method: call.method,
                params: call.params,
                name: call.name,
                headers: call.headers.clone(),
                deadlines: call.deadlines.after(begun.elapsed().saturating_sub(asked)),
                reports: call.reports.clone(),
                meta: None,
            };
            match self.call(&attempt).await {
                Err(RequestError::Rpc { method, error })
                    if error.code == code::URL_ELICITATION_REQUIRED =>
                {
                    if round == rounds {
                        break;
                    }
                    let asking = Instant::now();
                    if !self.visit(&error).await {
                        return Err(RequestError::Rpc { method, error });
                    }
                    asked += asking.elapsed();
                }
                other => return other,
            }
        }
        Err(RequestError::InputRounds {
            method: call.method.to_owned(),
            rounds,
        })
    }

    /// Whether the person has visited every URL that the error names.
    async fn visit(&self, error: &RpcError) -> bool {
        #[derive(Deserialize)]
        struct Data<'a> {
            #[serde(borrow)]
            elicitations: Vec<&'a RawValue>,
        }
        let Some(data) = &error.data else {
            return false;
        };
        let Ok(Data { elicitations }) = data.decode() else {
            return false;
        };
        let shared = self.shared();
        for elicitation in &elicitations {
            let params = Some(data.share(elicitation));
            let patience = shared.options.timeouts.answer;
            let answer = ask(
                &*shared.options.handler,
                "elicitation/create",
                params,
                patience,
            );
            let accepted = answer.await.is_ok_and(|answer| is_accepted(&answer));
            if !accepted {
                return false;
            }
        }
        !elicitations.is_empty()
    }

    /// The members to add to the next attempt: `inputResponses`, and `requestState` as it came.
    async fn answers(&self, method: &str, result: &RawJson) -> Result<Vec<u8>, RequestError> {
        let unexpected = |reason: String| RequestError::Unexpected {
            method: method.to_owned(),
            reason,
        };
        let required: InputRequired<'_> = result
            .decode()
            .map_err(|error| unexpected(error.to_string()))?;
        if required.requests.is_none() && required.state.is_none() {
            return Err(unexpected("it asks for input without saying which".into()));
        }
        let mut text = Vec::new();
        if let Some(requests) = required.requests {
            text.extend_from_slice(b"\"inputResponses\":{");
            for (index, (key, request)) in requests.0.iter().enumerate() {
                let parsed: Result<InputRequest<'_>, _> = serde_json::from_str(request.get());
                let parsed = parsed.map_err(|error| unexpected(error.to_string()))?;
                let params = parsed.params.map(|params| result.share(params));
                let shared = self.shared();
                let patience = shared.options.timeouts.answer;
                let answer = ask(&*shared.options.handler, &parsed.method, params, patience).await;
                // There is no way to answer with an error: what we cannot give, we must refuse.
                let answer = answer.map_err(|error| {
                    unexpected(format!(
                        "it asks for `{}`: {}",
                        parsed.method, error.message
                    ))
                })?;
                if index > 0 {
                    text.push(b',');
                }
                push_member(&mut text, key, answer.as_str());
            }
            text.push(b'}');
        }
        if let Some(state) = required.state {
            if !text.is_empty() {
                text.push(b',');
            }
            push_member(&mut text, "requestState", state.get());
        }
        Ok(text)
    }
}

fn is_accepted(answer: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct Action<'a> {
        #[serde(borrow)]
        action: Cow<'a, str>,
    }
    answer
        .decode::<Action<'_>>()
        .is_ok_and(|answer| answer.action == "accept")
}

/// A result, and whether it is the last word.
#[derive(Debug)]
pub(crate) struct AnyResult {
    pub(crate) result: RawJson,
    pub(crate) kind: ResultKind,
}

/// What kind of result a server of the stateless era sent. The older era knows one kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultKind {
    Complete,
    InputRequired,
}

/// Whether results of `method` may ask for input.
pub(crate) fn asks_for_input(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

impl AnyResult {
    /// A kind of result that nobody defined is an error.
    pub(crate) fn of(result: RawJson, era: Era, method: &str) -> Result<Self, RequestError> {
        let complete = era == Era::Legacy
            || begins_or_ends_with(&result, r#""resultType":"complete""#)
            || never_mentions(&result, "resultType");
        if complete {
            return Ok(Self {
                result,
                kind: ResultKind::Complete,
            });
        }
        let head = result.decode::<ResultHead<'_>>().ok();
        let kind = match head.as_ref().and_then(|head| head.result_type.as_deref()) {
            None | Some("complete") => ResultKind::Complete,
            Some("input_required") => ResultKind::InputRequired,
            Some(other) => {
                return Err(RequestError::Unexpected {
                    method: method.to_owned(),
                    reason: format!("its result is of the unknown type `{other}`"),
                });
            }
        };
        Ok(Self { result, kind })
    }
}
