//! The tools of a conversation: those of the workspace, those of all servers, and one to wait for
//! servers. Knows what a call would do, and does it; whether it may be done is decided elsewhere.

mod hands;
mod results;
mod waiting;

use std::sync::Arc;

use cocode_client::{
    Annotations, CallContext, Catalog, Manager, QualifiedName, RawJson, Said, ServerName,
    ServerSpec, Toolbox, ToolboxOptions,
};
use cocode_core::{
    Dialect, Doing, Hints, OutputLimits, ProviderTool, Ruled, ToolName, ToolRef, Verdict,
};
use cocode_tools::HookChanges;
use serde_json::Value;

use crate::content::{Arguments, Block, ToolCall};
use crate::rules::Rules;

pub use hands::HandsError;
pub(crate) use hands::{Hands, SandboxHost};

/// How far a call is: done, of how much, in words.
pub(crate) type OnProgress = Arc<dyn Fn(f64, Option<f64>, Option<&str>) + Send + Sync>;

/// The tools of one conversation.
pub(crate) struct Belt {
    pub(crate) hands: Hands,
    manager: Option<Manager>,
    toolbox: Toolbox,
    rules: Arc<dyn Rules>,
    limits: OutputLimits,
    /// The last catalog, and what is left of it when the rules have taken away what is denied.
    seen: Option<(Arc<Catalog>, Arc<Catalog>)>,
    waits: Option<Arc<ProviderTool>>,
}

/// What a call would do.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Nothing more: this is what it comes to.
    Settled(Outcome),
    /// A tool of the workspace.
    Own(Own),
    /// A tool of a server.
    Server {
        name: QualifiedName,
        server: ServerName,
        tool: ToolName,
        hints: Hints,
        /// How its server is reached; one that is gone has none.
        spec: Option<Arc<ServerSpec>>,
        arguments: Value,
    },
    /// Wait for servers.
    Wait,
}

/// A call of a tool of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) name: &'static str,
    pub(crate) arguments: Value,
    pub(crate) doing: Doing,
    /// It runs without the sandbox.
    pub(crate) is_let_out: bool,
    /// What the model says it needs to leave the sandbox for.
    pub(crate) justification: Option<String>,
}

/// What became of a call.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) content: Vec<Block>,
    pub(crate) is_error: bool,
    /// The sandbox was probably in the way.
    pub(crate) was_confined: bool,
    /// Files that other programs execute, as the command has changed them.
    pub(crate) changes: Option<HookChanges>,
}

impl Outcome {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::text(text)],
            is_error: true,
            was_confined: false,
            changes: None,
        }
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            is_error: false,
            ..Self::error(text)
        }
    }
}

impl Plan {
    /// Whether it may read data outside of the workspace: commands and local servers read what the user can.
    pub(crate) fn reads_outside(&self) -> bool {
        match self {
            Self::Own(own) => matches!(own.doing, Doing::Command | Doing::UnconfinedCommand),
            Self::Server { spec, .. } => spec.as_ref().is_some_and(|spec| !spec.is_remote()),
            Self::Settled(_) | Self::Wait => false,
        }
    }

    /// Whether it may be done beside others: what only reads is in nobody's way.
    pub(crate) fn is_parallel(&self) -> bool {
        match self {
            Self::Settled(_) | Self::Wait => true,
            Self::Own(own) => own.doing == Doing::Reading,
            Self::Server { hints, .. } => hints.is_read_only() && !hints.is_destructive(),
        }
    }
}

/// What a belt is made with.
pub(crate) struct BeltOptions {
    pub(crate) hands: Hands,
    pub(crate) manager: Option<Manager>,
    pub(crate) toolbox: ToolboxOptions,
    pub(crate) rules: Arc<dyn Rules>,
    pub(crate) limits: OutputLimits,
}

impl Belt {
    pub(crate) fn new(options: BeltOptions) -> Self {
        let BeltOptions {
            hands,
            manager,
            toolbox,
            rules,
            limits,
        } = options;
        let dialect = toolbox.dialect;
        Self {
            waits: waiting::definition(dialect),
            hands: hands.shown_to(dialect),
            manager,
            toolbox: Toolbox::new(toolbox),
            rules,
            limits,
            seen: None,
        }
    }

    /// Takes note of the tools that there are now, and gives what the model is shown.
    pub(crate) fn refresh(&mut self) -> Vec<Arc<ProviderTool>> {
        let rules = &self.rules;
        let is_shown = |tool: ToolRef<'_>, hints: Hints| {
            rules.ruling(tool, hints).ruled != Ruled::By(Verdict::Deny)
        };
        let own = self.hands.definitions(|name| {
            let hints = Hints::default();
            is_shown(ToolRef::BuiltIn { name }, hints)
        });
        let mut shown: Vec<Arc<ProviderTool>> = own;
        let Some(manager) = &self.manager else {
            return shown;
        };
        let catalog = manager.catalog();
        let known = self.seen.as_ref();
        let is_known = known.is_some_and(|(known, _)| Arc::ptr_eq(known, &catalog));
        if !is_known {
            let seen = catalog.with_tools(|server, tool| {
                let tool_ref = ToolRef::Mcp {
                    server,
                    tool: &tool.name,
                };
                is_shown(tool_ref, hints(tool.tool.annotations))
            });
            self.seen = Some((catalog, Arc::new(seen)));
        }
        if let Some((_, seen)) = &self.seen {
            // What is shown otherwise is seen in the definitions.
            let _change = self.toolbox.update(seen);
        }
        shown.extend(self.toolbox.shared_definitions());
        if !waiting::on_their_way(manager).is_empty() {
            shown.extend(self.waits.clone());
        }
        shown
    }

    /// Servers that are still being started.
    pub(crate) fn on_their_way(&self) -> Vec<ServerName> {
        let manager = self.manager.as_ref();
        manager.map(waiting::on_their_way).unwrap_or_default()
    }

    /// What servers say about how they want to be used, by name.
    pub(crate) fn instructions(&self) -> Vec<(String, String)> {
        let Some((_, seen)) = &self.seen else {
            return Vec::new();
        };
        let offered = seen.servers().filter(|server| server.is_offered);
        let told = offered.filter_map(|server| {
            let words = server.instructions.as_deref()?.trim();
            (!words.is_empty()).then(|| (server.name.to_string(), words.to_owned()))
        });
        told.collect()
    }

    /// What a call would do. Searches for tools are done here.
    pub(crate) fn plan(&mut self, call: &ToolCall) -> Plan {
        let arguments = match &call.arguments {
            Arguments::Json(arguments) => arguments,
            Arguments::Malformed(text) => return Plan::Settled(malformed(&call.name, text)),
        };
        if let Some(own) = self.hands.plan(&call.name, arguments) {
            return Plan::Own(own);
        }
        if call.name == waiting::NAME && self.manager.is_some() {
            return Plan::Wait;
        }
        match self.toolbox.handle(&call.name, arguments) {
            Said::Answer(text) => Plan::Settled(Outcome::text(text)),
            Said::Unknown(text) => Plan::Settled(Outcome::error(self.with_own_names(text))),
            Said::Mistaken(text) => Plan::Settled(Outcome::error(text)),
            Said::Call { name, arguments } => self.plan_server(name, arguments),
        }
    }

    fn plan_server(&self, name: QualifiedName, arguments: Value) -> Plan {
        let found = self
            .seen
            .as_ref()
            .and_then(|(_, seen)| seen.resolve(name.as_str()));
        let Some(found) = found else {
            return Plan::Settled(Outcome::error(format!("There is no tool `{name}`.")));
        };
        let manager = self.manager.as_ref();
        Plan::Server {
            spec: manager.and_then(|manager| manager.spec(found.server)),
            server: found.server.clone(),
            tool: found.tool.name.clone(),
            hints: hints(found.tool.tool.annotations),
            name,
            arguments,
        }
    }

    /// Does it. Dropping the future ends whatever was begun.
    pub(crate) async fn run(&self, plan: &Plan, on_progress: OnProgress) -> Outcome {
        match plan {
            Plan::Settled(outcome) => outcome.clone(),
            Plan::Own(own) => self.hands.run(own, &on_progress, &self.limits).await,
            Plan::Wait => match &self.manager {
                Some(manager) => waiting::wait(manager).await,
                None => Outcome::error("There are no servers."),
            },
            Plan::Server {
                name, arguments, ..
            } => self.call(name, arguments, on_progress).await,
        }
    }

    async fn call(
        &self,
        name: &QualifiedName,
        arguments: &Value,
        on_progress: OnProgress,
    ) -> Outcome {
        let Some(manager) = &self.manager else {
            return Outcome::error("There are no servers.");
        };
        let arguments = match RawJson::of(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Outcome::error(format!("The arguments are no JSON: {error}.")),
        };
        let context = CallContext {
            on_progress: Some(Arc::new(move |report: &cocode_client::Progress| {
                on_progress(report.progress, report.total, report.message.as_deref());
            })),
            ..CallContext::default()
        };
        match manager.call(name.as_str(), Some(&arguments), context).await {
            Ok(called) => Outcome {
                content: results::blocks(&called.result),
                is_error: called.result.is_error,
                was_confined: false,
                changes: None,
            },
            Err(error) => Outcome::error(error.for_model()),
        }
    }

    fn with_own_names(&self, text: String) -> String {
        let names = self.hands.names();
        if names.is_empty() {
            return text;
        }
        format!("{text} Tools of the workspace: {}.", names.join(", "))
    }
}

/// What a tool says about its effects, as rules know it.
fn hints(annotations: Annotations) -> Hints {
    Hints {
        read_only: annotations.read_only,
        destructive: annotations.destructive,
    }
}

fn malformed(tool: &str, text: &str) -> Outcome {
    let why = match serde_json::from_str::<Value>(text) {
        Ok(_) => String::new(),
        Err(error) => format!(": {error}"),
    };
    Outcome::error(format!(
        "The arguments of `{tool}` are no JSON{why}. Nothing was called. Write them again, as one JSON \
         object."
    ))
}

/// A tool of our own in the dialect of a provider; none if that cannot be said in it, which does not
/// happen with the schemas that we write.
fn own_tool(
    dialect: Dialect,
    name: &str,
    description: &str,
    input_schema: &Value,
) -> Option<Arc<ProviderTool>> {
    let source = cocode_core::ToolSource {
        name,
        description: Some(description),
        input_schema,
    };
    let converted = match dialect {
        Dialect::OpenAiStrict => cocode_core::convert_best(&source),
        dialect => cocode_core::convert(&source, dialect),
    };
    match converted {
        Ok(tool) => Some(Arc::new(tool)),
        Err(error) => {
            tracing::error!(name, %error, "a tool of our own cannot be described");
            None
        }
    }
}

impl std::fmt::Debug for Belt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Belt")
            .field("hands", &self.hands)
            .field("has_servers", &self.manager.is_some())
            .finish_non_exhaustive()
    }
}
