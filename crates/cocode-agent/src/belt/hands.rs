//! The tools of the workspace, as the sandbox lets them work.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_core::{
    ApprovalPolicy, Dialect, Doing, OutputLimits, ProviderTool, SandboxMode, estimate_tokens,
    split_at_tokens,
};
use cocode_tools::{
    Block as ToolBlock, Confinement, Leaving, OpenError, PathHandle, Permissions,
    TemporaryDirectory, ToolDefinition, ToolError, ToolOutput, Workspace,
};
use serde_json::Value;

use super::{OnProgress, Outcome, Own};
use crate::content::Block;
use crate::record::Settings;

/// The tools of a workspace.
pub(crate) struct Hands {
    pub(crate) workspace: Workspace,
    tools: Vec<Tool>,
}

struct Tool {
    definition: ToolDefinition,
    shown: Option<Arc<ProviderTool>>,
}

/// Why there are none.
#[derive(Debug, thiserror::Error)]
#[error("the directory {} cannot be worked in", path.display())]
pub struct HandsError {
    path: std::path::PathBuf,
    #[source]
    source: OpenError,
}

impl Hands {
    /// The tools for what a conversation works in.
    pub(crate) fn open(settings: &Settings, host: &SandboxHost) -> Result<Self, HandsError> {
        let path: &Path = &settings.cwd;
        let workspace = open_workspace(settings, host).map_err(|source| HandsError {
            path: path.to_owned(),
            source,
        })?;
        let tools = workspace.definitions().into_iter();
        Ok(Self {
            tools: tools
                .map(|definition| Tool {
                    definition,
                    shown: None,
                })
                .collect(),
            workspace,
        })
    }

    /// Describes them in the dialect of a provider.
    pub(super) fn shown_to(mut self, dialect: Dialect) -> Self {
        for tool in &mut self.tools {
            let ToolDefinition {
                name,
                description,
                input_schema,
                ..
            } = &tool.definition;
            tool.shown = super::own_tool(dialect, name, description, input_schema);
        }
        self
    }

    pub(super) fn definitions(&self, is_shown: impl Fn(&str) -> bool) -> Vec<Arc<ProviderTool>> {
        let shown = self
            .tools
            .iter()
            .filter(|tool| is_shown(tool.definition.name));
        shown.filter_map(|tool| tool.shown.clone()).collect()
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.tools.iter().map(|tool| tool.definition.name).collect()
    }

    /// What a call would do, if it is one of these tools.
    pub(super) fn plan(&self, name: &str, arguments: &Value) -> Option<Own> {
        let mut tools = self.tools.iter();
        let Tool { definition, shown } = tools.find(|tool| tool.definition.name == name)?;
        let arguments = match shown {
            Some(shown) => shown.arguments_back(arguments.clone()),
            None => arguments.clone(),
        };
        let leaves = self.workspace.asks_to_leave(definition.name, &arguments);
        let doing = match (definition.name, &leaves) {
            ("shell", Some(_)) => Doing::UnconfinedCommand,
            ("shell", None) => Doing::Command,
            _ if definition.read_only => Doing::Reading,
            _ => Doing::Writing,
        };
        Some(Own {
            name: definition.name,
            arguments,
            doing,
            // What is not let out is never run that way: somebody is asked first.
            is_let_out: leaves.is_some(),
            justification: leaves.and_then(|leaves| leaves.justification),
        })
    }

    pub(super) async fn run(
        &self,
        own: &Own,
        on_progress: &OnProgress,
        limits: &OutputLimits,
    ) -> Outcome {
        let heard = Heard(on_progress);
        let workspace = if own.is_let_out {
            &self.workspace.unconfined()
        } else {
            &self.workspace
        };
        match workspace.call(own.name, &own.arguments, &heard).await {
            Ok(output) => outcome(output, limits),
            Err(error @ ToolError::Arguments { .. }) => Outcome::error(error.to_string()),
            Err(error) => {
                tracing::warn!(tool = own.name, %error, "a tool of the workspace failed");
                Outcome::error(format!("{error}."))
            }
        }
    }
}

/// Directories of the host that commands in a sandbox are kept from, and their environment.
pub(crate) struct SandboxHost<'a> {
    pub(crate) environment: &'a [(OsString, OsString)],
    /// Hidden from commands.
    pub(crate) state: Option<&'a Path>,
    /// Protected from commands.
    pub(crate) config: Option<&'a Path>,
    /// The directory for temporary files of commands.
    pub(crate) temporary: Option<PathBuf>,
}

/// Opens the workspace of a conversation, whose path has no links: no directory is looked up again after this.
fn open_workspace(settings: &Settings, host: &SandboxHost) -> Result<Workspace, OpenError> {
    let permissions = Permissions {
        write: true,
        shell: true,
    };
    let mut workspace = Workspace::at(PathHandle::open(&settings.cwd)?, permissions)?;
    let mut environment = host.environment.to_vec();
    let mut confinement = match settings.sandbox {
        SandboxMode::DangerFullAccess => return Ok(workspace.with_environment(environment)),
        SandboxMode::ReadOnly => Confinement::read_only(),
        SandboxMode::WorkspaceWrite => {
            let writable = Confinement::workspace_write(workspace.handle().clone());
            writable.with_writable(&settings.writable)?
        }
    };
    if let Some(path) = &host.temporary {
        let directory = TemporaryDirectory::open(path)?;
        environment.retain(|(name, _)| name != "TMPDIR");
        environment.push(("TMPDIR".into(), directory.path().into()));
        confinement = confinement.with_temporary(Arc::new(directory));
    }
    if let Some(state) = host.state {
        confinement = confinement.with_hidden(state);
        workspace = workspace.with_baselines(state.join("workspaces"));
    }
    if let Some(config) = host.config {
        confinement = confinement.with_protected(config);
    }
    if settings.network {
        confinement = confinement.with_network();
    }
    Ok(workspace
        .with_environment(environment)
        .with_confinement(confinement, leaving(settings)))
}

/// Whether a model may ask to leave the sandbox: not where nobody is asked.
fn leaving(settings: &Settings) -> Leaving {
    match settings.approval {
        ApprovalPolicy::Never => Leaving::NotOffered,
        _ => Leaving::Offered,
    }
}

fn outcome(output: ToolOutput, limits: &OutputLimits) -> Outcome {
    let ToolOutput {
        content,
        structured: _,
        is_error,
        denial,
        changes,
    } = output;
    let content = content.into_iter().map(|block| match block {
        ToolBlock::Text(text) => Block::text(cut(text, limits.cap_tokens)),
        ToolBlock::Image { data_base64, mime } => Block::image(mime, data_base64),
    });
    Outcome {
        content: content.collect(),
        is_error,
        was_confined: denial.is_some(),
        changes,
    }
}

/// What is longer than a model is shown loses its end, and says so.
fn cut(text: String, cap_tokens: u64) -> String {
    let tokens = estimate_tokens(&text);
    if tokens <= cap_tokens {
        return text;
    }
    let (shown, rest) = split_at_tokens(&text, cap_tokens);
    format!(
        "{shown}\n[cut here: {} more characters, about {} tokens]",
        rest.chars().count(),
        tokens.saturating_sub(cap_tokens)
    )
}

/// Passes on how far a tool is.
struct Heard<'a>(&'a OnProgress);

impl cocode_tools::Progress for Heard<'_> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "how far it is need not be exact"
    )]
    fn report(&self, done: u64, total: Option<u64>, message: &str) {
        let message = Some(message).filter(|message| !message.is_empty());
        (self.0)(done as f64, total.map(|total| total as f64), message);
    }
}

impl std::fmt::Debug for Hands {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            workspace,
            tools: _,
        } = self;
        formatter
            .debug_struct("Hands")
            .field("workspace", workspace)
            .finish_non_exhaustive()
    }
}
