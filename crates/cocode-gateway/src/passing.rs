//! A request on its way to one server, whatever the eras of the two.
//!
//! | client | server | questions of the server |
//! |---|---|---|
//! | legacy | legacy | are passed on as they are |
//! | modern | modern | are in the result, which is passed on as it is |
//! | legacy | modern | are put to the client, and the request is made again with the answers |
//! | modern | legacy | the request is parked, the client told what is asked; it comes back with answers |

use std::sync::Arc;

use cocode_core::Era;
use cocode_wire::encode::push_member;
use cocode_wire::members::{Members, begins_or_ends_with, never_mentions};
use cocode_wire::{Frame, RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::caller::{Abilities, Caller};
use crate::instance::{Instance, Passed};
use crate::parked::Parking;
use crate::reply::Reply;
use crate::request::Request;
use crate::results::adapted;

/// How often a server may ask for more before a request is done.
const MAX_ROUNDS: usize = 16;

/// Carries a request to `instance`, and gives what is to be answered. `tool` is the tool that it
/// calls, and `params` what the server is sent.
pub(crate) async fn pass(
    instance: Arc<Instance>,
    request: &Request,
    tool: Option<String>,
    params: Option<RawJson>,
    parking: &Parking,
) -> Reply {
    let server = match instance.session().await {
        Ok(session) => session.server().era(),
        Err(error) => return error.into(),
    };
    let client = request.caller.era();
    let caller = match (client, server) {
        (Era::Legacy, Era::Modern) => with_level(request),
        _ => Arc::clone(&request.caller),
    };
    let mut passed = Passed {
        method: request.method.clone(),
        params,
        tool,
        caller,
        session: request.session,
        wants_progress: request.said.progress_token.is_some(),
        witness: request.witness(instance.name()),
    };
    let answer = match (client, server) {
        (Era::Modern, Era::Legacy) if may_ask(&request.method) => {
            return Box::pin(parking.pass(instance, request, passed)).await;
        }
        (Era::Legacy, Era::Modern) => Box::pin(answering(instance, passed)).await,
        _ => {
            if client != server {
                // A result of this cannot ask for input, so nobody can be asked.
                let mut caller = Caller::clone(&request.caller);
                caller.can = Abilities::default();
                passed.caller = Arc::new(caller);
                passed.witness = request.witness_of(instance.name(), &passed.caller);
            }
            instance.relay(&passed).await
        }
    };
    match answer {
        Ok(frame) => adapted(&request.method, frame, server, client),
        Err(error) => error.into(),
    }
}

/// Whether results of this may ask for input.
fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// A client with a session has said once which log messages it wants, or leaves that to the server;
/// a stateless server has to be told with each request.
fn with_level(request: &Request) -> Arc<Caller> {
    let mut caller = Caller::clone(&request.caller);
    caller.behalf.log_level = Some(request.from.log_level().as_str().to_owned());
    Arc::new(caller)
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
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Asks the client whatever the server wants to know, until there is a result.
async fn answering(instance: Arc<Instance>, passed: Passed) -> Result<Frame, RpcError> {
    let first = passed.params.clone();
    let mut params = first.clone();
    for _round in 0..MAX_ROUNDS {
        let next = Passed {
            method: passed.method.clone(),
            params,
            tool: passed.tool.clone(),
            caller: Arc::clone(&passed.caller),
            session: passed.session,
            wants_progress: passed.wants_progress,
            witness: Arc::clone(&passed.witness),
        };
        let frame = instance.relay(&next).await?;
        let Some(result) = frame.result().filter(asks_for_input) else {
            return Ok(frame);
        };
        let answers = answers(&passed, &result).await?;
        params = Some(with_members(first.as_ref(), &answers)?);
        passed.witness.begins_again();
    }
    let what = format!("the server still wants to know more after {MAX_ROUNDS} rounds");
    Err(RpcError::new(code::INTERNAL_ERROR, what))
}

/// Whether a result asks for input.
pub(crate) fn asks_for_input(result: &RawJson) -> bool {
    if begins_or_ends_with(result, r#""resultType":"complete""#)
        || never_mentions(result, "input_required")
    {
        return false;
    }
    let members = result.decode::<Members<'_>>().unwrap_or_default();
    let kind = members.get("resultType");
    kind.is_some_and(|kind| kind.get() == "\"input_required\"")
}

/// The members to be added to the next attempt.
async fn answers(passed: &Passed, result: &RawJson) -> Result<Vec<u8>, RpcError> {
    let odd = |error: serde_json::Error| {
        let what = format!("the server asks for input in an odd way: {error}");
        RpcError::new(code::INTERNAL_ERROR, what)
    };
    let required: InputRequired<'_> = result.decode().map_err(odd)?;
    let mut text = Vec::new();
    if let Some(requests) = required.requests {
        text.extend_from_slice(b"\"inputResponses\":{");
        for (index, (key, request)) in requests.0.iter().enumerate() {
            let request: InputRequest<'_> = serde_json::from_str(request.get()).map_err(odd)?;
            let params = request.params.map(|params| result.share(params));
            let answer = passed.witness.ask(&request.method, params).await?;
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

/// Parameters with more members at their end.
fn with_members(params: Option<&RawJson>, members: &[u8]) -> Result<RawJson, RpcError> {
    let text = params.map_or("{}", RawJson::as_str).trim();
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let Some(inside) = inside else {
        let what = "the parameters are no JSON object";
        return Err(RpcError::new(code::INVALID_PARAMS, what));
    };
    let mut text = Vec::with_capacity(inside.len() + members.len() + 3);
    text.push(b'{');
    text.extend_from_slice(inside.trim().as_bytes());
    if !inside.trim().is_empty() && !members.is_empty() {
        text.push(b',');
    }
    text.extend_from_slice(members);
    text.push(b'}');
    RawJson::parse(text).map_err(|error| RpcError::new(code::INVALID_PARAMS, error.to_string()))
}
