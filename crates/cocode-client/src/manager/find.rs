//! Finds the tool that a call means, and what its schemas say.

use std::sync::{Arc, LazyLock};

use cocode_core::{ServerName, ToolName};
use cocode_wire::RawJson;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::call_error::CallError;
use super::calls::CallContext;
use super::lists::CatalogTool;
use super::options::ListReading;
use super::server::{NoSession, Server};
use super::shared::Shared;
use crate::clock::Deadlines;
use crate::features::{Annotations, CallResult};
use crate::list_cache::ListKind;
use crate::schema::{Checked, Mismatch, SchemaCell};

/// What a call without arguments is checked as.
static NO_ARGUMENTS: LazyLock<RawJson> =
    LazyLock::new(|| RawJson::from(RawValue::from_string("{}".into()).unwrap_or_default()));

/// The tool that is called.
#[derive(Clone)]
pub(super) enum Callee {
    Listed(Arc<CatalogTool>),
    /// The server will know.
    Unlisted(ToolName),
}

impl Callee {
    pub(super) fn name(&self) -> &ToolName {
        match self {
            Self::Listed(tool) => &tool.name,
            Self::Unlisted(name) => name,
        }
    }

    pub(super) fn annotations(&self) -> Annotations {
        match self {
            Self::Listed(tool) => tool.tool.annotations,
            Self::Unlisted(_) => Annotations::default(),
        }
    }
}

pub(super) fn find(shared: &Shared, name: &str) -> Option<(Arc<Server>, Callee)> {
    let catalog = shared.catalog.borrow();
    let found = catalog.resolve(name)?;
    let tool = Callee::Listed(Arc::clone(found.tool));
    Some((shared.server(found.server)?, tool))
}

/// A tool of a server that its filters admit.
pub(super) fn find_in(server: &Server, tool: &str) -> Option<Callee> {
    if !server.spec().tools.admits(tool) {
        return None;
    }
    server.lists(|lists| {
        let tools = lists.tools.items();
        let place = tools.binary_search_by(|listed| listed.name.as_str().cmp(tool));
        let found = tools.get(place.ok()?)?;
        Some(Callee::Listed(Arc::clone(found)))
    })
}

/// How long a call may take.
pub(super) fn patience(
    shared: &Shared,
    server: &Server,
    tool: &str,
    context: &CallContext,
) -> Deadlines {
    let (options, spec) = (&shared.options, server.spec());
    let configured = spec.tool_total_timeout.or(options.tool_total_timeout);
    if let Some(Deadlines { idle, total }) = context.deadlines {
        // The idle timeout of the caller overrides the configured total timeout.
        let total = configured.map_or(total, |configured| total.min(configured.max(idle)));
        return Deadlines { idle, total };
    }
    let of_tool = || spec.timeout_of(tool);
    let idle = options.tool_timeout.unwrap_or_else(of_tool);
    let total = configured.unwrap_or_else(|| options.timeouts.call.total.max(idle));
    Deadlines { idle, total }
}

/// Makes sure that the tools of a server were read on a connection, just now.
pub(super) async fn relist(
    shared: &Shared,
    server: &Arc<Server>,
    until: Instant,
) -> Result<(), CallError> {
    let is_unread = server.current().is_some() || shared.options.lists == ListReading::OnDemand;
    let session = server.session(until).await;
    let session = session.map_err(|error| unavailable(server, error))?;
    if is_unread {
        let kinds = [ListKind::Tools].into();
        let reading = super::listing::read(shared, server, &session, &kinds);
        // What could not be read in time is what it was; the caller looks at it.
        drop(tokio::time::timeout_at(until, reading).await);
    }
    Ok(())
}

pub(super) fn unavailable(server: &Server, error: NoSession) -> CallError {
    let (state, in_time) = match error {
        NoSession::State(state) => (state, true),
        NoSession::TooLate(state) => (state, false),
    };
    CallError::Unavailable {
        server: server.name.clone(),
        state,
        in_time,
    }
}

pub(super) fn unknown(shared: &Shared, server: &ServerName, tool: &str) -> CallError {
    let catalog = shared.catalog.borrow().clone();
    let of_server = catalog.server(server);
    let names = of_server.map(|server| server.tools.iter()).into_iter();
    let names = names.flatten().map(|tool| tool.name.as_str());
    CallError::UnknownTool {
        name: format!("{server}.{tool}"),
        near: cocode_core::nearest(tool, names)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

pub(super) fn mismatch(tool: &CatalogTool, arguments: Option<&RawJson>) -> Option<Mismatch> {
    let checked = match arguments {
        Some(arguments) => tool.input.check(arguments),
        None => tool.input.check(&NO_ARGUMENTS),
    };
    match checked {
        Checked::Mismatch(mismatch) => Some(mismatch),
        Checked::Fits | Checked::NotCheckable(_) => None,
    }
}

pub(super) fn output_mismatch(promised: &SchemaCell, result: &CallResult) -> Option<Mismatch> {
    let Some(structured) = result.structured() else {
        return Some(Mismatch::of_whole(
            "has no structured content, which the tool promises",
        ));
    };
    match promised.check(&structured) {
        Checked::Mismatch(mismatch) => Some(mismatch),
        Checked::Fits | Checked::NotCheckable(_) => None,
    }
}
