//! Calls of tools: found by name, allowed, checked, and their results kept within limits.

use std::sync::Arc;

use cocode_client::{CallError, CallResult, ListKind, Output};
use cocode_core::{Revision, ServerName, Verdict, nearest};
use cocode_wire::encode::push_member;
use cocode_wire::members::{Members, begins_or_ends_with, never_mentions};
use cocode_wire::{RawJson, RpcError, code};

use super::Merged;
use super::pages::with_text;
use crate::deeds::{Watched, not_there};
use crate::instance::{Instance, told};
use crate::oversight::Outcome;
use crate::passing::{asks_for_input, pass};
use crate::reply::Reply;
use crate::request::Request;
use crate::results::completed;
use crate::view::{Entry, Inner};

/// A tool that is called.
struct Callee {
    view: Arc<Inner>,
    entry: Entry,
    /// What its server knows it by.
    tool: String,
}

/// How a tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By its name.
    Name,
    /// By the tool that calls tools: the client knows nothing of what it promises.
    ToolCall,
}

/// Why a tool was not called.
pub(super) enum NotCalled {
    /// There is none of this name.
    Unknown(String),
    /// Anything else.
    Error(RpcError),
}

impl From<RpcError> for NotCalled {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

impl Merged {
    pub(super) async fn call(&self, request: Box<Request>) -> Result<Reply, RpcError> {
        let Some(shown) = request.said.name.clone() else {
            let error = RpcError::new(code::INVALID_PARAMS, "no tool is named");
            let view = self.view()?;
            view.turn_away(&request, None, "", not_there(&error))?;
            return Err(error);
        };
        if let Some(own) = self.own_tool(&shown, &request)? {
            return Box::pin(self.call_own(own, request)).await;
        }
        let called = self.call_named(&shown, request, By::Name).await;
        called.map_err(|not_called| match not_called {
            NotCalled::Unknown(what) => RpcError::new(code::INVALID_PARAMS, what),
            NotCalled::Error(error) => error,
        })
    }

    /// Calls the tool that clients see by this name.
    pub(super) async fn call_named(
        &self,
        shown: &str,
        request: Box<Request>,
        by: By,
    ) -> Result<Reply, NotCalled> {
        let callee = match self.find_tool(shown).await {
            Ok(callee) => callee,
            Err(not_called) => {
                self.turn_away(shown, &request, &not_called)?;
                return Err(not_called);
            }
        };
        let Callee { view, entry, tool } = &callee;
        let server = &entry.spec.name;
        let verdict = view.verdict(entry, tool);
        if verdict == Verdict::Deny {
            view.turn_away(&request, Some(server), tool, Outcome::Denied)?;
            return Err(self.unknown_tool(shown));
        }
        let watched = view.watch(&request, Some(server), Some(tool))?;
        let called = self.call_found(&callee, verdict, request, by).await;
        let called = called.map_err(|not_called| match not_called {
            NotCalled::Unknown(_) => self.unknown_tool(shown),
            error @ NotCalled::Error(_) => error,
        });
        match &called {
            Ok(reply) => Watched::end(watched, Ok(reply)).await,
            Err(NotCalled::Error(error)) => Watched::end(watched, Err(error)).await,
            Err(NotCalled::Unknown(what)) => {
                let error = RpcError::new(code::INVALID_PARAMS, what.as_str());
                Watched::end(watched, Err(&error)).await;
            }
        }
        called
    }

    async fn call_found(
        &self,
        callee: &Callee,
        verdict: Verdict,
        mut request: Box<Request>,
        by: By,
    ) -> Result<Reply, NotCalled> {
        let Callee { view, entry, tool } = callee;
        let server = &entry.spec.name;
        crate::headers::check(&entry.instance, &request, tool)?;
        let arguments = request.arguments()?;
        let manager = entry.instance.manager();
        let checked = manager.check_arguments(server, tool, arguments.as_ref());
        match checked.await {
            Ok(()) => {}
            Err(CallError::UnknownTool { .. }) => return Err(NotCalled::Unknown(String::new())),
            Err(error @ CallError::Arguments { .. }) => return Ok(refused(&request, &error)?),
            Err(error) => return Err(told(server, &error).into()),
        }
        // Nobody is asked about a call that would be refused.
        let reason = || view.reason(entry, tool);
        if verdict == Verdict::Ask {
            let asked = view
                .consents()
                .ask(&mut request, server, tool, reason)
                .await;
            if let Some(reply) = request.unless_refused(asked)? {
                return Ok(reply);
            }
        }
        let params = request.params.as_ref();
        let params = params.and_then(|params| with_text(params, "name", tool));
        let mut instance = self.instance(entry, &request).await?;
        if !Arc::ptr_eq(&instance, &entry.instance) && instance.lacks_tool(tool) {
            // Clients of both eras are shown what the modern one lists.
            instance = Arc::clone(&entry.instance);
        }
        let passed = Arc::clone(&instance);
        let reply = pass(passed, &request, Some(tool.clone()), params, view.parking()).await;
        if verdict == Verdict::Ask {
            view.consents().answered(&request, server, &reply);
        }
        Ok(limited(&instance, tool, reply, by).await)
    }

    /// Tells of a call of a tool that is hidden from this client, or that nobody has.
    fn turn_away(&self, shown: &str, request: &Request, why: &NotCalled) -> Result<(), RpcError> {
        let NotCalled::Unknown(what) = why else {
            return Ok(());
        };
        let (view, snapshot) = self.current()?;
        if let Some((server, tool)) = snapshot.hidden.resolve(shown) {
            return view.turn_away(request, Some(server), tool.as_str(), Outcome::Denied);
        }
        let error = RpcError::new(code::INVALID_PARAMS, what.as_str());
        view.turn_away(request, None, shown, not_there(&error))
    }

    /// The tool of this name. One that nobody knows may be of a server that is still starting.
    async fn find_tool(&self, shown: &str) -> Result<Callee, NotCalled> {
        if let Some(found) = self.find_known_tool(shown)? {
            return Ok(found);
        }
        self.wait_for(ListKind::Tools).await?;
        let found = self.find_known_tool(shown)?;
        found.ok_or_else(|| self.unknown_tool(shown))
    }

    fn find_known_tool(&self, shown: &str) -> Result<Option<Callee>, RpcError> {
        let (view, snapshot) = self.current()?;
        let Some((server, tool)) = snapshot.tools.resolve(shown) else {
            return Ok(None);
        };
        let found = view.entry(server).map(|entry| Callee {
            entry,
            tool: tool.as_str().to_owned(),
            view,
        });
        Ok(found)
    }

    fn unknown_tool(&self, shown: &str) -> NotCalled {
        let mut what = format!("Unknown tool: {shown}");
        if let Ok((_, snapshot)) = self.current() {
            let names = snapshot.tools.iter().map(|(name, ..)| &**name);
            let near = nearest(shown, names);
            let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
            if !near.is_empty() {
                what = format!("{what}. Did you mean {}?", near.join(" or "));
            }
        }
        NotCalled::Unknown(what)
    }
}

/// Arguments that do not fit: a result that a model can learn from, for clients that know that these
/// are results, and an error for the others.
fn refused(request: &Request, error: &CallError) -> Result<Reply, RpcError> {
    let what = error.for_model();
    if request.caller.revision < Revision::V2025_11_25 {
        return Err(RpcError::new(code::INVALID_PARAMS, what));
    }
    let result = serde_json::json!({
        "content": [{ "type": "text", "text": what }],
        "isError": true,
    });
    let internal =
        |error: serde_json::Error| RpcError::new(code::INTERNAL_ERROR, error.to_string());
    let result = RawJson::of(&result).map_err(internal)?;
    Ok(match request.caller.era() {
        cocode_core::Era::Legacy => Reply::Result(result),
        cocode_core::Era::Modern => completed("tools/call", result),
    })
}

/// A result within the limits; whatever is no result of a tool is as it is.
async fn limited(instance: &Instance, tool: &str, reply: Reply, by: By) -> Reply {
    let Some(result) = reply.result() else {
        return reply;
    };
    let server: &ServerName = instance.name();
    let is_complete = begins_or_ends_with(&result, r#""resultType":"complete""#);
    if !is_complete && asks_for_input(&result) {
        return reply;
    }
    if !is_complete
        && is_task(&result)
        && let Some(named) = super::tasks::named_in(server, &result)
    {
        return Reply::Result(named);
    }
    let result = CallResult::parse(result);
    let (result, output) = instance.manager().limit(server, tool, result).await;
    match output {
        Output::Shortened { .. } if by == By::Name && promises_structure(instance, tool) => {
            Reply::Result(as_error(result.raw))
        }
        Output::Shortened { .. } => Reply::Result(result.raw),
        _ => reply,
    }
}

fn promises_structure(instance: &Instance, tool: &str) -> bool {
    let catalog = instance.manager().catalog();
    let found = catalog.find(instance.name(), tool);
    found.is_some_and(|found| found.tool.output.is_some())
}

/// A result without the structured content that its tool promises: clients take that only from a
/// call that failed, and would show nothing of it otherwise.
fn as_error(result: RawJson) -> RawJson {
    let Ok(members) = result.decode::<Members<'_>>() else {
        return result;
    };
    let Ok(yes) = RawJson::of(&true) else {
        return result;
    };
    if let Some(flag) = members.get("isError") {
        return result.with_part(flag, &yes);
    }
    let mut text = b"{\"isError\":true".to_vec();
    for (key, value) in &members.0 {
        text.push(b',');
        push_member(&mut text, key, value.get());
    }
    text.push(b'}');
    RawJson::parse(text).unwrap_or(result)
}

/// Whether a result says that there will be one, and by what to ask for it.
fn is_task(result: &RawJson) -> bool {
    if never_mentions(result, "taskId") {
        return false;
    }
    let members = result.decode::<Members<'_>>().unwrap_or_default();
    let kind = members.get("resultType");
    kind.is_some_and(|kind| kind.get() == "\"task\"")
}
