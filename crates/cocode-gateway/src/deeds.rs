//! What clients have servers do, while an overseer watches: begun once for each request, and ended
//! when there is an answer. Where nobody watches, nothing is read for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_core::ServerName;
use cocode_wire::members::{Members, never_mentions};
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;

use crate::ending::Ending;
use crate::oversight::{Counted, Deed, Ongoing, Outcome, Overseer, Settling};
use crate::party::Party;
use crate::passing::asks_for_input;
use crate::reply::Reply;
use crate::request::Request;
use crate::view::{Entry, Inner};

/// Where a deed is as long as it goes on, for all who tell it something.
pub(crate) struct Slot {
    ongoing: Mutex<Option<Box<dyn Ongoing>>>,
    /// Who watches it.
    overseer: Arc<dyn Overseer>,
}

/// A deed that is watched. Dropped before its end, the client has given it up.
pub(crate) struct Watched {
    slot: Arc<Slot>,
    /// Whether its result is that of a tool.
    is_of_tool: bool,
}

impl Inner {
    /// Begins to watch over a request to a server, if it is one to be watched and somebody does; what
    /// else is passed on is counted. `name` is what it is about, as the server knows it; what the
    /// request says if there is none. Without a server, the gateway does it by itself.
    pub(crate) fn watch(
        &self,
        request: &Request,
        server: Option<&ServerName>,
        name: Option<&str>,
    ) -> Result<Option<Watched>, RpcError> {
        let Some(overseer) = self.overseer_of(request) else {
            return Ok(None);
        };
        if !is_deed(&request.method) {
            overseer.count(&deed(request, server))?;
            return Ok(None);
        }
        let ongoing = self.begin(&**overseer, request, deed(request, server), name)?;
        let slot = Arc::new(Slot {
            ongoing: Mutex::new(Some(ongoing)),
            overseer: Arc::clone(overseer),
        });
        // A request is for one server only.
        drop(request.deed.set(Arc::clone(&slot)));
        Ok(Some(Watched {
            slot,
            is_of_tool: matches!(request.method.as_str(), "tools/call" | "tasks/result"),
        }))
    }

    /// Tells of a request for something that the client may not use, or that nobody has. The client is
    /// told the same of both, also by what they count. `server` has it, if any does.
    pub(crate) fn turn_away(
        &self,
        request: &Request,
        server: Option<&ServerName>,
        name: &str,
        outcome: Outcome,
    ) -> Result<(), RpcError> {
        if let Some(overseer) = self.overseer_of(request) {
            let deed = Deed {
                is_served: false,
                ..deed(request, server)
            };
            let ongoing = self.begin(&**overseer, request, deed, Some(name))?;
            ongoing.ended(outcome);
        }
        Ok(())
    }

    /// Tells of a request that no server hears of because it can be read in two ways, and gives the
    /// answer to it.
    pub(crate) fn refuse(&self, request: &Request, refusal: RpcError) -> RpcError {
        if !is_deed(&request.method) {
            return refusal;
        }
        let name = name_in(request).unwrap_or_default();
        let told = self.turn_away(request, None, &name, not_there(&refusal));
        told.err().unwrap_or(refusal)
    }

    /// Counts a notification that is passed on to a server.
    pub(crate) fn count_notification(
        &self,
        party: &Party,
        server: &ServerName,
        method: &str,
    ) -> Result<(), RpcError> {
        let own = party.overseer();
        let Some(overseer) = own.or_else(|| self.is_watched().then(|| self.overseer())) else {
            return Ok(());
        };
        overseer.count(&Deed {
            principal: party.principal(),
            method,
            server: Some(server),
            is_served: true,
            goes_on: false,
            name: "",
            arguments: None,
            client: None,
        })
    }

    /// The overseer of a request.
    fn overseer_of<'a>(&'a self, request: &'a Request) -> Option<&'a Arc<dyn Overseer>> {
        let own = request.from.party().overseer();
        own.or_else(|| self.is_watched().then(|| self.overseer()))
    }

    fn begin(
        &self,
        overseer: &dyn Overseer,
        request: &Request,
        deed: Deed<'_>,
        name: Option<&str>,
    ) -> Result<Box<dyn Ongoing>, RpcError> {
        let said = match name {
            Some(_) => None,
            None => name_in(request),
        };
        let arguments = arguments_in(request);
        let client = request.caller.name();
        // A task counts from its beginning to its end: nobody has to wait until it is over to ask
        // about it.
        let is_about_task = request.method.starts_with("tasks/");
        let goes_on = |server| is_about_task || self.parking().works_on(server, request);
        overseer.begin(&Deed {
            name: name.or(said.as_deref()).unwrap_or_default(),
            arguments: arguments.as_ref(),
            client: client.as_deref(),
            goes_on: deed.is_served && deed.server.is_some_and(goes_on),
            ..deed
        })
    }
}

impl Entry {
    /// The tool that works on the task that a request is about, if it is about one of its client's. Of a
    /// server that does not run for this client yet, nobody knows a task.
    pub(crate) fn tool_of_task(
        &self,
        request: &Request,
        params: Option<&RawJson>,
    ) -> Option<Arc<str>> {
        if !request.method.starts_with("tasks/") {
            return None;
        }
        let instance = request.from.served_by(self);
        let traffic = &instance.as_ref().unwrap_or(&self.instance).traffic;
        traffic.tool_of_task(params, request.from.party().principal())
    }
}

/// A deed of which not everything is said yet.
fn deed<'a>(request: &'a Request, server: Option<&'a ServerName>) -> Deed<'a> {
    Deed {
        principal: request.from.party().principal(),
        method: &request.method,
        server,
        is_served: true,
        goes_on: false,
        name: "",
        arguments: None,
        client: None,
    }
}

/// What is written down of something that was not there.
pub(crate) fn not_there(error: &RpcError) -> Outcome {
    Outcome::Error {
        code: error.code,
        message: error.message.clone(),
    }
}

impl Slot {
    /// The server reports progress.
    pub(crate) fn progress(&self, params: &RawJson) {
        if let Some(ongoing) = &*self.lock() {
            ongoing.progress(params);
        }
    }

    /// The client may not use this tool, or somebody did not allow it.
    pub(crate) fn denied(&self) {
        let ongoing = self.lock().take();
        if let Some(ongoing) = ongoing {
            ongoing.ended(Outcome::Denied);
        }
    }

    /// Somebody was asked, and has allowed it.
    pub(crate) fn allowed(&self) {
        if let Some(ongoing) = &*self.lock() {
            ongoing.allowed();
        }
    }

    /// The server works on, whatever the client is answered.
    pub(crate) fn keep_counting(&self) -> Option<Counted> {
        self.lock().as_mut()?.keep_counting()
    }

    /// Who is to be told how the call ends that has begun a task.
    pub(crate) fn ending(&self, request: &Request, server: &ServerName) -> Ending {
        Ending {
            overseer: Arc::clone(&self.overseer),
            principal: request.from.party().shared_principal(),
            server: server.clone(),
            client: request.caller.name(),
        }
    }

    fn end(&self, outcome: impl FnOnce() -> Outcome) -> Option<Settling> {
        let ongoing = self.lock().take();
        ongoing?.ended_before_answer(outcome())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Ongoing>>> {
        self.ongoing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// There is an answer, to be given when this is done.
    pub(crate) async fn end(this: Option<Self>, reply: Result<&Reply, &RpcError>) {
        let Some(watched) = this else {
            return;
        };
        let settling = watched.slot.end(|| watched.outcome(reply));
        if let Some(settling) = settling {
            settling.await;
        }
    }

    fn outcome(&self, reply: Result<&Reply, &RpcError>) -> Outcome {
        let failed = |error: &RpcError| Outcome::Error {
            code: error.code,
            message: error.message.clone(),
        };
        let result = match reply {
            Err(error) | Ok(Reply::Error(error)) => return failed(error),
            Ok(Reply::Parts(head, tail)) => {
                let bytes = head.len() + tail.len();
                return Outcome::Ok { bytes };
            }
            Ok(Reply::Result(result)) => result.clone(),
            Ok(Reply::Frame(frame)) => match (frame.result(), frame.error()) {
                (Some(result), _) => result,
                (None, Some(error)) => return failed(&error),
                (None, None) => {
                    let what = "the server answered with neither a result nor an error";
                    return failed(&RpcError::new(code::INTERNAL_ERROR, what));
                }
            },
        };
        let bytes = result.as_bytes().len();
        if asks_for_input(&result) {
            Outcome::AsksForInput
        } else if self.is_of_tool && says_failed(&result) {
            Outcome::ToolError { bytes }
        } else {
            Outcome::Ok { bytes }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Whoever else can tell it something may live for longer.
        let given_up = self.slot.lock().take();
        drop(given_up);
    }
}

/// Whether a request is watched from its beginning to its end. Methods that are not known may do
/// anything at a server.
fn is_deed(method: &str) -> bool {
    !matches!(
        method,
        "initialize"
            | "ping"
            | "server/discover"
            | "tools/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "prompts/list"
            | "logging/setLevel"
            | "subscriptions/listen"
            | "tasks/get"
            | "tasks/list"
            | "tasks/update"
    )
}

/// What a request is about, as it says itself.
fn name_in(request: &Request) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "ref")]
        reference: Reference,
    }
    #[derive(Deserialize)]
    struct Reference {
        name: Option<String>,
        uri: Option<String>,
    }
    match request.method.as_str() {
        "resources/read" => request.said.uri.clone(),
        "completion/complete" => {
            let Params { reference } = request.params.as_ref()?.decode().ok()?;
            reference.name.or(reference.uri)
        }
        method if method.starts_with("tasks/") => request.said.task.clone(),
        _ => request.said.name.clone(),
    }
}

fn arguments_in(request: &Request) -> Option<RawJson> {
    let params = request.params.as_ref()?;
    let key = match request.method.as_str() {
        "completion/complete" => "argument",
        "tasks/result" | "tasks/cancel" => "taskId",
        "tools/call" | "resources/read" | "prompts/get" => "arguments",
        _ => return Some(params.clone()),
    };
    let members: Members<'_> = params.decode().ok()?;
    members.get(key).map(|arguments| params.share(arguments))
}

/// Whether the result of a tool says that the tool has failed.
pub(crate) fn says_failed(result: &RawJson) -> bool {
    if never_mentions(result, "isError") {
        return false;
    }
    let members = result.decode::<Members<'_>>().unwrap_or_default();
    members
        .get("isError")
        .is_some_and(|flag| flag.get() == "true")
}
