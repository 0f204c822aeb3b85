//! The tools of the workspace, as the sandbox lets them work.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use cocode_core::{
    Dialect, Doing, OutputLimits, ProviderTool, SandboxMode, estimate_tokens, split_at_tokens,
};
use cocode_tools::{
    Block as ToolBlock, Permissions, ToolDefinition, ToolError, ToolOutput, Workspace,
};
use serde_json::{Value, json};

use super::{OnProgress, Outcome, Own};
use crate::content::Block;
use crate::record::Settings;

/// The argument of `shell` by which a model asks to leave the sandbox, and the one that says why.
const OUTSIDE: &str = "outside_sandbox";
const JUSTIFICATION: &str = "justification";

/// The tools of a workspace.
pub(crate) struct Hands {
    workspace: Workspace,
    tools: Vec<Tool>,
    is_confined: bool,
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
    source: cocode_tools::OpenError,
}

/// What a call is to these tools.
pub(super) enum Handled {
    Planned(Own),
    Mistaken(String),
    NotOurs,
}

impl Hands {
    /// The tools for what a conversation works in.
    pub(crate) fn open(
        settings: &Settings,
        environment: &[(OsString, OsString)],
    ) -> Result<Self, HandsError> {
        let path: &Path = &settings.cwd;
        let permissions = Permissions {
            write: true,
            shell: true,
        };
        let workspace = Workspace::open(path, permissions).map_err(|source| HandsError {
            path: path.to_owned(),
            source,
        })?;
        let workspace = workspace.with_environment(environment.iter().cloned());
        let is_confined = settings.sandbox != SandboxMode::DangerFullAccess;
        let tools = workspace.definitions().into_iter();
        Ok(Self {
            tools: tools
                .map(|definition| Tool {
                    definition,
                    shown: None,
                })
                .collect(),
            workspace,
            is_confined,
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
            let mut schema = input_schema.clone();
            if *name == "shell" && self.is_confined {
                with_way_out(&mut schema);
            }
            tool.shown = super::own_tool(dialect, name, description, &schema);
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

    pub(super) fn plan(&self, name: &str, arguments: &Value) -> Handled {
        let found = self.tools.iter().find(|tool| tool.definition.name == name);
        let Some(Tool { definition, shown }) = found else {
            return Handled::NotOurs;
        };
        let mut arguments = match shown {
            Some(shown) => shown.arguments_back(arguments.clone()),
            None => arguments.clone(),
        };
        let mut doing = match definition.name {
            "shell" => Doing::Command,
            _ if definition.read_only => Doing::Reading,
            _ => Doing::Writing,
        };
        let mut justification = None;
        if doing == Doing::Command
            && let Some(members) = arguments.as_object_mut()
        {
            let outside = members.remove(OUTSIDE);
            justification = members.remove(JUSTIFICATION);
            match outside {
                Some(Value::Bool(true)) => doing = Doing::UnconfinedCommand,
                None | Some(Value::Bool(false) | Value::Null) => {}
                Some(_) => {
                    return Handled::Mistaken(format!("`{OUTSIDE}` must be true or false."));
                }
            }
        }
        Handled::Planned(Own {
            name: definition.name,
            arguments,
            doing,
            justification: justification.and_then(|words| words.as_str().map(str::to_owned)),
        })
    }

    pub(super) async fn run(
        &self,
        own: &Own,
        on_progress: &OnProgress,
        limits: &OutputLimits,
    ) -> Outcome {
        let heard = Heard(on_progress);
        match self.workspace.call(own.name, &own.arguments, &heard).await {
            Ok(output) => outcome(output, limits),
            Err(error @ ToolError::Arguments { .. }) => Outcome::error(error.to_string()),
            Err(error) => {
                tracing::warn!(tool = own.name, %error, "a tool of the workspace failed");
                Outcome::error(format!("{error}."))
            }
        }
    }
}

/// Lets a model ask for what the sandbox does not allow.
fn with_way_out(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(
            OUTSIDE.to_owned(),
            json!({
                "type": "boolean",
                "description": "Run it outside of the sandbox, after a person has agreed. Only for \
                    what cannot work inside; then say why in `justification`."
            }),
        );
        properties.insert(
            JUSTIFICATION.to_owned(),
            json!({
                "type": "string",
                "description": "Why this has to run outside of the sandbox, in one sentence for the \
                    person who is asked."
            }),
        );
    }
}

fn outcome(output: ToolOutput, limits: &OutputLimits) -> Outcome {
    let ToolOutput {
        content, is_error, ..
    } = output;
    let content = content.into_iter().map(|block| match block {
        ToolBlock::Text(text) => Block::text(cut(text, limits.cap_tokens)),
        ToolBlock::Image { data_base64, mime } => Block::Image {
            media_type: mime.to_owned(),
            data: data_base64,
        },
    });
    Outcome {
        content: content.collect(),
        is_error,
        was_confined: false,
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
            is_confined,
        } = self;
        formatter
            .debug_struct("Hands")
            .field("workspace", workspace)
            .field("is_confined", is_confined)
            .finish_non_exhaustive()
    }
}
