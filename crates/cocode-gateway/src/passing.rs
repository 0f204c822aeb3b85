//! A request on its way to one server, whatever the eras of the two.
//!
//! | client | server | questions of the server |
//! |---|---|---|
//! | legacy | legacy | are passed on as they are |
//! | modern | modern | are in the result, which is passed on as it is |
//! | legacy | modern | are put to the client, and the request is made again with the answers |
//! | modern | legacy | the request is parked, the client told what is asked; it comes back with answers |
//!
//! A modern server may send its question as a request all the same: a legacy client is asked, and a
//! modern one refuses.
//!
//! What a client cannot be asked is put into the inbox of its view, if somebody reads that: a server of
//! the older era waits for the answer, one of the other is asked again with it.

use std::sync::Arc;

use cocode_core::Era;
use cocode_wire::encode::push_member;
use cocode_wire::members::{Members, begins_or_ends_with, never_mentions};
use cocode_wire::{Frame, RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::caller::{Abilities, Caller};
use crate::instance::{Instance, Passed};
use crate::parked::{Parking, is_accepted, without_answers};
use crate::reply::Reply;
use crate::request::Request;
use crate::results::adapted;
use crate::traffic::{Kept, TaskOwner};

/// How often a server may ask for more before a request is done.
const MAX_ROUNDS: usize = 16;

/// How often a server may name addresses to be visited before a request is done.
const MAX_VISITS: usize = 4;

/// Carries a request to `instance`, and gives what is to be answered. `tool` is the tool that it
/// calls, and `params` what the server is sent. Only those for whom a task is are let at it.
pub(crate) async fn pass(
    instance: Arc<Instance>,
    request: &Request,
    tool: Option<String>,
    params: Option<RawJson>,
    parking: &Parking,
) -> Reply {
    let traffic = Arc::clone(&instance.traffic);
    let party = request.from.party();
    let is_about_task = request.method.starts_with("tasks/");
    if is_about_task && !traffic.may_ask_about_task(params.as_ref(), party.principal()) {
        return RpcError::new(code::INVALID_PARAMS, "Unknown task").into();
    }
    let deed = request.deed.get();
    let may_begin_task = request.method == "tools/call"
        && (request.said.wants_task || party.principal().is_some() || deed.is_some());
    let named = params.as_ref().filter(|_| is_about_task).cloned();
    let called = tool.as_ref().filter(|_| may_begin_task).cloned();
    let reply = carry(instance, request, tool, params, parking).await;
    if may_begin_task && let Some(result) = reply.result() {
        let owner = TaskOwner {
            // Where requests stand alone, nobody is left to be told.
            session: request.said.wants_task.then_some(request.session),
            principal: party.shared_principal(),
        };
        traffic.task_begun(&result, owner, || Kept {
            tool: called.map(Into::into),
            counted: deed.and_then(|deed| deed.keep_counting()),
            ending: deed.map(|deed| deed.ending(request, traffic.name())),
        });
    }
    if is_about_task && let Some(result) = reply.result() {
        traffic.task_answered(&request.method, named.as_ref(), &result);
    }
    reply
}

async fn carry(
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
        caller,
        session: request.session,
        wants_progress: request.progress.is_some(),
        witness: request.witness(instance.name(), tool.as_deref()),
        tool,
    };
    let asks_inbox = server == Era::Modern && may_ask(&request.method) && offer_inbox(&mut passed);
    let answer = match (client, server) {
        (Era::Modern, Era::Legacy) if may_ask(&request.method) => {
            return Box::pin(parking.pass(instance, request, passed)).await;
        }
        (Era::Legacy, Era::Modern) => Box::pin(answering(instance, passed, Whom::ClientToo)).await,
        (Era::Modern, Era::Modern) if asks_inbox => {
            Box::pin(answering(instance, passed, Whom::InboxOnly)).await
        }
        _ => {
            if client != server {
                // A result of this cannot ask for input, so nobody can be asked.
                let mut caller = Caller::clone(&request.caller);
                caller.can = Abilities::default();
                passed.caller = Arc::new(caller);
                let tool = passed.tool.as_deref();
                passed.witness = request.witness_of(instance.name(), tool, &passed.caller);
            }
            relay(&instance, &passed).await
        }
    };
    match answer {
        Ok(frame) => adapted(&request.method, frame, server, client),
        Err(error) => error.into(),
    }
}

/// Offers a stateless server to ask what the inbox can be asked, and the client cannot. Says whether
/// there is anything.
fn offer_inbox(passed: &mut Passed) -> bool {
    let can = passed.witness.can_by_inbox();
    if can.any() {
        passed.caller = Arc::new(passed.caller.also(can));
    }
    can.any()
}

/// Passes a request on. Addresses that the server wants to be visited first are put into the inbox, if
/// the client knows nothing of such.
pub(crate) async fn relay(instance: &Instance, passed: &Passed) -> Result<Frame, RpcError> {
    let frame = instance.relay(passed).await?;
    if !frame.is_error() {
        return Ok(frame);
    }
    let visits = frame.error().as_ref().and_then(visits_in);
    passed.witness.tells_of(&visits.unwrap_or_default());
    if !passed.witness.can_by_inbox().url {
        return Ok(frame);
    }
    // Rare, and kept out of the size of every other request.
    Box::pin(visiting(instance, passed, frame)).await
}

async fn visiting(
    instance: &Instance,
    passed: &Passed,
    mut frame: Frame,
) -> Result<Frame, RpcError> {
    for _visit in 0..MAX_VISITS {
        let Some(visits) = frame.error().as_ref().and_then(visits_in) else {
            break;
        };
        for visit in visits {
            let answer = passed.witness.ask("elicitation/create", Some(visit)).await;
            if !answer.is_ok_and(|answer| is_accepted(&answer)) {
                return Ok(frame);
            }
        }
        passed.witness.begins_again();
        frame = instance.relay(passed).await?;
    }
    Ok(frame)
}

/// The addresses that an error says are to be visited first, each as the parameters of a question.
pub(crate) fn visits_in(error: &RpcError) -> Option<Vec<RawJson>> {
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        elicitations: Vec<&'a RawValue>,
    }
    if error.code != code::URL_ELICITATION_REQUIRED {
        return None;
    }
    let data = error.data.as_ref()?;
    let Data { elicitations } = data.decode().ok()?;
    let visits = elicitations.into_iter().map(|visit| data.share(visit));
    let visits: Vec<_> = visits.collect();
    (!visits.is_empty()).then_some(visits)
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

/// Who is asked what a server wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// The client, and whoever answers for it what it cannot.
    ClientToo,
    /// Only whoever answers for it: what the client can answer is passed on to it.
    InboxOnly,
}

/// Asks whatever the server wants to know, until there is a result that is none of ours to answer.
async fn answering(instance: Arc<Instance>, passed: Passed, whom: Whom) -> Result<Frame, RpcError> {
    let mut params = passed.params.clone();
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
        let Some(answers) = answers(&passed, &result, whom).await? else {
            return Ok(frame);
        };
        // What a client came back with is in the state that the server gives.
        let first = passed.params.as_ref().map(without_answers);
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

/// The members to be added to the next attempt; nothing if there is none of ours to make. An attempt
/// that answers only a part is one, too: the server asks again for the rest.
async fn answers(
    passed: &Passed,
    result: &RawJson,
    whom: Whom,
) -> Result<Option<Vec<u8>>, RpcError> {
    let odd = |error: serde_json::Error| {
        let what = format!("the server asks for input in an odd way: {error}");
        RpcError::new(code::INTERNAL_ERROR, what)
    };
    let required: InputRequired<'_> = result.decode().map_err(odd)?;
    let mut ours = Vec::new();
    for (key, request) in required.requests.iter().flat_map(|requests| &requests.0) {
        let request: InputRequest<'_> = serde_json::from_str(request.get()).map_err(odd)?;
        let params = request.params.map(|params| result.share(params));
        let needed = Abilities::needed_for(&request.method, params.as_ref());
        if whom == Whom::ClientToo || passed.witness.can_by_inbox().and(needed).any() {
            ours.push((key, request.method, params));
        }
    }
    if whom == Whom::InboxOnly && ours.is_empty() {
        return Ok(None);
    }
    let mut text = Vec::new();
    if required.requests.is_some() {
        text.extend_from_slice(b"\"inputResponses\":{");
        for (index, (key, method, params)) in ours.into_iter().enumerate() {
            let answer = passed.witness.ask(&method, params).await?;
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
    Ok(Some(text))
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
