//! Calls that a rule allows only after somebody was asked: the client asks them for us.
//!
//! A client with a session is asked on the stream of its call. One of the stateless era is told what
//! is asked, and comes back with the answer, which is good for that one call. What a client can put to
//! nobody goes to the inbox of its view, if somebody reads that.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_core::{Era, ServerName, make_visible, member_lines};
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use tokio::time::Instant;

use crate::inbox::Consent;
use crate::parked::{Handles, digest, input_required, is_accepted, responses, without_answers};
use crate::party::Matter;
use crate::passing::asks_for_input;
use crate::questions::push_request;
use crate::reply::Reply;
use crate::request::Request;

/// How long a client may take to come back with an answer, and how long that holds.
const HOLDS_FOR: Duration = Duration::from_mins(10);
/// Calls that may wait for an answer, or have got one.
const MAX_CALLS: usize = 1024;
/// Those of them that may wait for an answer for one principal: nobody keeps others from asking.
const MAX_CALLS_OF_ONE: usize = 256;
/// What the question is called.
const KEY: &str = "consent";
/// Characters that the values of all arguments share in the question.
const MAX_VALUE_CHARS: usize = 4_000;
/// Arguments whose values are in the question; of further ones only the names are.
const MAX_VALUES: usize = 1_000;

/// Calls of stateless clients that somebody is asked about, or has allowed.
#[derive(Debug, Default)]
pub(crate) struct Consents {
    state: Mutex<State>,
    handles: Handles,
}

#[derive(Debug, Default)]
struct State {
    /// By the handle under which the client comes back.
    asked: HashMap<String, Asked>,
    /// Calls that were allowed and have to come back for another reason: which, with the state that
    /// they come back with, and until when.
    given: HashMap<Vec<u8>, Instant>,
}

/// A call that somebody is asked about.
#[derive(Debug)]
struct Asked {
    call: Vec<u8>,
    until: Instant,
    /// For whom it is.
    principal: Option<Arc<str>>,
}

impl Consents {
    /// Asks whether a tool may be called. Gives what to answer the client meanwhile, or nothing if
    /// the call may go on. `reason` says why somebody has to be asked.
    pub(crate) async fn ask(
        &self,
        request: &mut Request,
        server: &ServerName,
        tool: &str,
        reason: impl FnOnce() -> Option<String> + Send,
    ) -> Result<Option<Reply>, RpcError> {
        let question = question(server, tool, request.arguments()?.as_ref());
        let can_be_asked = request.caller.can.form;
        let answer = if !can_be_asked {
            if self.was_given(request, server) {
                return Ok(None);
            }
            let matter = Matter {
                server: server.clone(),
                tool: Some(tool.into()),
                consent: Some(Consent {
                    client: request.caller.name(),
                    arguments: request.arguments()?.map(|given| given.detached()),
                    reason: reason(),
                }),
            };
            let party = request.from.party();
            match party.ask(matter, "elicitation/create", Some(&question)) {
                Some(answer) => answer.await?,
                None => return Err(refused(server, tool, "this client cannot be asked")),
            }
        } else if request.caller.era() == Era::Modern {
            return self.ask_stateless(request, server, tool, &question);
        } else {
            let witness = request.witness(server, Some(tool));
            witness.ask("elicitation/create", Some(question)).await?
        };
        if is_accepted(&answer) {
            Ok(None)
        } else {
            Err(refused(server, tool, "the answer was no"))
        }
    }

    fn ask_stateless(
        &self,
        request: &mut Request,
        server: &ServerName,
        tool: &str,
        question: &RawJson,
    ) -> Result<Option<Reply>, RpcError> {
        if self.was_given(request, server) {
            return Ok(None);
        }
        let call = digest(server, request);
        let now = Instant::now();
        let handle = request.said.request_state.as_ref();
        let handle = handle.and_then(|state| state.decode::<String>().ok());
        let mut state = self.lock();
        state.asked.retain(|_, asked| asked.until > now);
        let asked = handle.filter(|handle| {
            let known = state.asked.get(handle);
            known.is_some_and(|asked| asked.call == call)
        });
        if let Some(handle) = asked {
            state.asked.remove(&handle);
            let answers = responses(request.said.input_responses.as_ref());
            let answer = answers.iter().find(|(key, _)| key == KEY);
            if !answer.is_some_and(|(_, answer)| is_accepted(answer)) {
                return Err(refused(server, tool, "the answer was no"));
            }
            drop(state);
            // These were for us, and mean nothing to the server.
            request.params = request.params.as_ref().map(without_answers);
            request.said.request_state = None;
            request.said.input_responses = None;
            return Ok(None);
        }
        let principal = request.from.party().shared_principal();
        let own = state.asked.values();
        let own = own.filter(|asked| asked.principal == principal).count();
        let all = state.asked.len() + state.given.len();
        if all >= MAX_CALLS || own >= MAX_CALLS_OF_ONE {
            let what = "too many calls wait for somebody to allow them";
            return Err(RpcError::new(code::INTERNAL_ERROR, what));
        }
        let handle = self.handles.new_handle()?;
        let asked = Asked {
            call,
            until: now + HOLDS_FOR,
            principal,
        };
        state.asked.insert(handle.clone(), asked);
        drop(state);
        let mut text = b"{".to_vec();
        push_request(&mut text, KEY, "elicitation/create", Some(question));
        text.push(b'}');
        Ok(Some(input_required(&text, &handle)))
    }

    /// Whether a call was allowed, and comes back for another reason. It is, once.
    fn was_given(&self, request: &Request, server: &ServerName) -> bool {
        let said = &request.said;
        if said.request_state.is_none() && said.input_responses.is_none() {
            return false;
        }
        let attempt = with_state(&digest(server, request), said.request_state.as_ref());
        let now = Instant::now();
        let mut state = self.lock();
        state.given.retain(|_, until| *until > now);
        state.given.remove(&attempt).is_some()
    }

    /// A call that was allowed has got an answer. If that asks for input, it has to come back, and
    /// is not asked about again.
    pub(crate) fn answered(&self, request: &Request, server: &ServerName, reply: &Reply) {
        if request.caller.era() == Era::Legacy {
            return;
        }
        let Some(result) = reply.result().filter(asks_for_input) else {
            return;
        };
        let members = result.decode::<Members<'_>>().unwrap_or_default();
        let state = members.get("requestState").map(|state| result.share(state));
        let attempt = with_state(&digest(server, request), state.as_ref());
        let mut state = self.lock();
        if state.asked.len() + state.given.len() < MAX_CALLS {
            state.given.insert(attempt, Instant::now() + HOLDS_FOR);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call, together with the state that it comes back with.
fn with_state(call: &[u8], state: Option<&RawJson>) -> Vec<u8> {
    let state = state.map_or(&b""[..], RawJson::as_bytes);
    [call, state].concat()
}

/// The form that asks about a call. It lists the arguments as they are sent, also those of equal names.
fn question(server: &ServerName, tool: &str, arguments: Option<&RawJson>) -> RawJson {
    let tool = make_visible(tool);
    let mut message = format!("May the tool `{tool}` of server `{server}` be called?");
    if let Some(arguments) = arguments {
        let members: Vec<(Cow<'_, str>, &str)> = match arguments.decode::<Members<'_>>() {
            Ok(members) => members
                .0
                .into_iter()
                .map(|(name, value)| (name, value.get()))
                .collect(),
            Err(_no_object) => vec![("arguments".into(), arguments.as_str())],
        };
        for line in member_lines(&members, MAX_VALUE_CHARS, MAX_VALUES) {
            message.extend(["\n  ", &line]);
        }
    }
    let question = serde_json::json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": {} },
    });
    RawJson::of(&question)
        .unwrap_or_else(|_| RawJson::from(serde_json::value::RawValue::NULL.to_owned()))
}

fn refused(server: &ServerName, tool: &str, why: &str) -> RpcError {
    let what = format!(
        "`{tool}` of server `{server}` may be called only after asking: {why}; see the permission \
         rules of the gateway"
    );
    RpcError::new(code::INVALID_REQUEST, what)
}
