//! From a name and arguments to a result: finds the tool, checks, waits for its server, calls, and
//! repeats what may be repeated.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cocode_core::{ServerName, ToolName};
use cocode_wire::RawJson;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::Manager;
use super::attempts::{RepeatableRequest, RetryTiming, attempts};
use super::call_error::CallError;
use super::call_events::Telling;
use super::events::CallId;
use super::find::{Callee, find, find_in, mismatch, output_mismatch, patience, relist, unknown};
use super::server::Server;
use super::shared::Shared;
use crate::clock::{Deadlines, later};
use crate::error::RequestError;
use crate::features::{Annotations, CallResult};
use crate::list_cache::ListKind;
use crate::options::RequestOptions;
use crate::progress::OnProgress;
use crate::schema::Mismatch;
use crate::session::Session;
use crate::telemetry::{TraceContext, call_span};

use super::output::Output;

/// What a caller decides about one call. Dropping the future of a call cancels it.
#[derive(Clone, Default)]
pub struct CallContext {
    /// How long it may take, instead of what the server's specification says.
    pub deadlines: Option<Deadlines>,
    /// Is told about progress.
    pub on_progress: Option<OnProgress>,
    /// A JSON object whose members go into the `_meta` of the request.
    pub meta: Option<RawJson>,
    /// The trace that this call is a part of.
    pub trace: Option<TraceContext>,
    /// How much of the result is wanted.
    pub output: OutputWanted,
    /// Whether arguments are checked before they are sent.
    pub check: Check,
}

/// How much of a result is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputWanted {
    /// What fits; the rest is kept under a handle. For models, and for people at terminals.
    #[default]
    Limited,
    /// All of it, byte for byte.
    Whole,
}

/// Whether arguments are checked before they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Against the schema of the tool.
    #[default]
    Arguments,
    /// Not at all: the server will say.
    Nothing,
}

/// A result, and what is to be known about it.
#[derive(Clone, Debug)]
pub struct Called {
    /// Which call it was.
    pub call: CallId,
    /// Whose tool.
    pub server: ServerName,
    /// Which tool.
    pub tool: ToolName,
    /// The result, shortened if it had to be.
    pub result: CallResult,
    /// How large it was, and where the whole of it is.
    pub output: Output,
    /// Why its structured content is not what the tool promises, if it is not. The content is
    /// there nevertheless.
    pub output_mismatch: Option<Mismatch>,
    /// How often it was tried.
    pub attempts: u32,
}

impl Manager {
    /// Calls a tool by the name that models know it by: `mcp__server__tool`.
    pub async fn call(
        &self,
        name: &str,
        arguments: Option<&RawJson>,
        context: CallContext,
    ) -> Result<Called, CallError> {
        let shared = self.shared();
        let begun = Instant::now();
        let found = find(shared, name);
        let (server, tool) = match found {
            Some(found) => found,
            // Rare, and kept out of the size of every other call.
            None => Box::pin(self.find_after_all(name, begun, &context)).await?,
        };
        let work = Work::new(shared, server, tool, arguments, context, begun);
        work.run().await
    }

    /// Calls a tool by its server, and the server's own name for it. One that the server has not
    /// listed is called nevertheless if `context` says not to check; one that filters take away is
    /// not.
    pub async fn call_tool(
        &self,
        server: &ServerName,
        tool: &str,
        arguments: Option<&RawJson>,
        context: CallContext,
    ) -> Result<Called, CallError> {
        let shared = self.shared();
        let begun = Instant::now();
        let known = self.server(server)?;
        if !known.spec().tools.admits(tool) {
            return Err(unknown(shared, server, tool));
        }
        let found = find_in(&known, tool);
        let found = match found {
            None if context.check == Check::Arguments => {
                let until = later(begun, patience(shared, &known, tool, &context).idle);
                Box::pin(relist(shared, &known, until)).await?;
                let found = find_in(&known, tool);
                let found = found.ok_or_else(|| unknown(shared, server, tool))?;
                Some(found)
            }
            found => found,
        };
        let name = ToolName::new(tool);
        let tool = found.unwrap_or(Callee::Unlisted(name));
        let work = Work::new(shared, known, tool, arguments, context, begun);
        work.run().await
    }

    /// Refuses arguments that do not fit a tool, as a call would: if what they do not fit may be out
    /// of date, the server is asked for its tools first. A tool that the server has not listed takes
    /// anything.
    pub async fn check_arguments(
        &self,
        server: &ServerName,
        tool: &str,
        arguments: Option<&RawJson>,
    ) -> Result<(), CallError> {
        let shared = self.shared();
        let known = self.server(server)?;
        let Some(tool) = find_in(&known, tool) else {
            return Ok(());
        };
        let context = CallContext::default();
        let mut work = Work::new(shared, known, tool, arguments, context, Instant::now());
        work.check_arguments().await
    }

    /// Keeps a result of a tool within the limits of this manager, as a call does.
    pub async fn limit(
        &self,
        server: &ServerName,
        tool: &str,
        result: CallResult,
    ) -> (CallResult, Output) {
        Output::limit(&self.shared().options, server, &ToolName::new(tool), result).await
    }

    /// A name that is not in the catalog may be the name of a tool whose server is still on its
    /// way, or has not told of it yet.
    async fn find_after_all(
        &self,
        name: &str,
        begun: Instant,
        context: &CallContext,
    ) -> Result<(Arc<Server>, Callee), CallError> {
        let shared = self.shared();
        let is_named = |server: &Server| {
            let prefix = format!("mcp__{}__", server.name);
            name.starts_with(&prefix)
        };
        // Not every name spells out its server: whose tools nobody knows may be meant, too.
        let is_unknown = |server: &Server| {
            server.state().is_on_its_way() && !server.lists(|lists| lists.tools.is_known())
        };
        let servers = shared.servers();
        let (named, others): (Vec<_>, Vec<_>) =
            servers.values().partition(|server| is_named(server));
        let others = others.into_iter().filter(|server| is_unknown(server));
        let mut failure = None;
        for server in named.iter().copied().chain(others) {
            let until = later(begun, patience(shared, server, name, context).idle);
            let listed = relist(shared, server, until).await;
            if let Some(found) = find(shared, name) {
                return Ok(found);
            }
            if is_named(server) {
                failure = failure.or(listed.err());
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        if let Some(withheld) = self.withheld_in(name) {
            return Err(withheld);
        }
        let catalog = shared.catalog.borrow().clone();
        let names = catalog.tools().map(|(name, _)| name.as_str().to_owned());
        let names: Vec<String> = names.collect();
        let near = cocode_core::nearest(name, names.iter().map(String::as_str));
        Err(CallError::UnknownTool {
            name: name.to_owned(),
            near: near.into_iter().map(str::to_owned).collect(),
        })
    }
}

/// One call on its way.
struct Work<'a> {
    shared: &'a Shared,
    server: Arc<Server>,
    tool: Callee,
    arguments: Option<&'a RawJson>,
    context: CallContext,
    call: CallId,
    deadlines: Deadlines,
    begun: Instant,
}

impl<'a> Work<'a> {
    fn new(
        shared: &'a Shared,
        server: Arc<Server>,
        tool: Callee,
        arguments: Option<&'a RawJson>,
        context: CallContext,
        begun: Instant,
    ) -> Self {
        let call = CallId(shared.calls.fetch_add(1, Ordering::Relaxed));
        let deadlines = patience(shared, &server, tool.name().as_str(), &context);
        Self {
            shared,
            server,
            tool,
            arguments,
            context,
            call,
            deadlines,
            begun,
        }
    }

    async fn run(self) -> Result<Called, CallError> {
        let (server, tool) = (self.server.name.as_str(), self.tool.name().as_str());
        let span = call_span(server, tool, self.call);
        if span.is_disabled() {
            return self.told().await;
        }
        self.told().instrument(span).await
    }

    /// The call, with everybody told of its beginning and its end.
    async fn told(mut self) -> Result<Called, CallError> {
        let _in_use = self.server.in_use();
        let mut telling = Telling::begin(
            self.shared,
            &self.server,
            self.tool.name(),
            (self.call, self.begun),
            self.context.trace.as_ref(),
        );
        let traced = match telling.context() {
            None if self.context.meta.as_ref().is_some_and(is_no_object) => {
                Err(self.failed(RequestError::Params {
                    method: "tools/call".into(),
                }))
            }
            None => Ok(()),
            Some(trace) => match trace.added_to(self.context.meta.as_ref()) {
                None => Err(self.failed(RequestError::Params {
                    method: "tools/call".into(),
                })),
                meta => {
                    self.context.meta = meta;
                    Ok(())
                }
            },
        };
        self.context.on_progress = telling.on_progress(self.context.on_progress.take());
        let outcome = match traced {
            Ok(()) => self.carry_out().await,
            Err(error) => Err(error),
        };
        telling.finish(&outcome);
        outcome
    }

    async fn carry_out(&mut self) -> Result<Called, CallError> {
        self.revalidate();
        self.check_arguments().await?;
        let timing = RetryTiming {
            begun: self.begun,
            deadlines: self.deadlines,
            backoff: self.shared.options.health.reconnect,
        };
        let (result, attempts) = attempts(&self.server, &*self, timing).await?;
        let output_mismatch = self.check_output(&result).await;
        let tool = self.tool.name();
        let (result, output) = match self.context.output {
            OutputWanted::Whole => (result, Output::Whole),
            OutputWanted::Limited => {
                Output::limit(&self.shared.options, &self.server.name, tool, result).await
            }
        };
        Ok(Called {
            call: self.call,
            server: self.server.name.clone(),
            tool: tool.clone(),
            result,
            output,
            output_mismatch,
            attempts,
        })
    }

    /// Lets a list that is too old be read again, for the next call: this one does not wait.
    fn revalidate(&self) {
        let now = self.shared.options.list_clock();
        if self
            .server
            .lists(|lists| lists.tools.is_to_be_revalidated(now))
        {
            self.server.changes.told(&[ListKind::Tools]);
        }
    }

    /// Refuses arguments that do not fit, unless what they do not fit is out of date.
    async fn check_arguments(&mut self) -> Result<(), CallError> {
        let Callee::Listed(tool) = &self.tool else {
            return Ok(());
        };
        if self.context.check == Check::Nothing {
            return Ok(());
        }
        let Some(wrong) = mismatch(tool, self.arguments) else {
            return Ok(());
        };
        let server = &self.server;
        let now = self.shared.options.list_clock();
        let is_certain = server.current().is_some()
            && server.lists(|lists| lists.tools.is_first_hand() && !lists.tools.is_stale(now));
        if is_certain {
            return Err(self.refused(wrong));
        }
        let until = later(self.begun, self.deadlines.idle);
        Box::pin(relist(self.shared, server, until)).await?;
        let name = self.tool.name();
        let Some(Callee::Listed(tool)) = find_in(server, name.as_str()) else {
            return Err(unknown(self.shared, &server.name, name.as_str()));
        };
        self.tool = Callee::Listed(Arc::clone(&tool));
        match mismatch(&tool, self.arguments) {
            None => Ok(()),
            Some(wrong) => Err(self.refused(wrong)),
        }
    }

    fn refused(&self, mismatch: Mismatch) -> CallError {
        CallError::Arguments {
            server: self.server.name.clone(),
            tool: self.tool.name().clone(),
            mismatch,
        }
    }

    /// Whether the structured content is what the tool promises, by a schema that is no older
    /// than the connection.
    async fn check_output(&self, result: &CallResult) -> Option<Mismatch> {
        let Callee::Listed(tool) = &self.tool else {
            return None;
        };
        let promised = tool.output.as_ref()?;
        if result.is_error {
            return None;
        }
        let mismatch = output_mismatch(promised, result)?;
        let server = &self.server;
        if server.lists(|lists| lists.tools.is_first_hand()) {
            return Some(mismatch);
        }
        let until = later(self.begun, self.deadlines.idle.min(self.deadlines.total));
        let listed = Box::pin(relist(self.shared, server, until)).await;
        let now = find_in(server, tool.name.as_str()).filter(|_| listed.is_ok());
        match now {
            Some(Callee::Listed(tool)) => output_mismatch(tool.output.as_ref()?, result),
            _ => Some(mismatch),
        }
    }
}

impl RepeatableRequest for Work<'_> {
    type Answer = CallResult;

    fn annotations(&self) -> Annotations {
        self.tool.annotations()
    }

    async fn send(
        &self,
        session: &Session,
        deadlines: Deadlines,
    ) -> Result<CallResult, RequestError> {
        let options = RequestOptions {
            deadlines: Some(deadlines),
            on_progress: self.context.on_progress.clone(),
            meta: self.context.meta.clone(),
        };
        let name = self.tool.name().as_str();
        session.call_tool(name, self.arguments, options).await
    }

    fn repeats(&self, _error: &RequestError) {}

    fn failed(&self, error: RequestError) -> CallError {
        CallError::Request {
            server: self.server.name.clone(),
            tool: self.tool.name().clone(),
            error,
        }
    }
}

fn is_no_object(json: &RawJson) -> bool {
    !json.as_str().trim_start().starts_with('{')
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            deadlines,
            on_progress,
            meta,
            trace,
            output,
            check,
        } = self;
        formatter
            .debug_struct("CallContext")
            .field("deadlines", deadlines)
            .field("on_progress", &on_progress.is_some())
            .field("meta", meta)
            .field("trace", trace)
            .field("output", output)
            .field("check", check)
            .finish()
    }
}
