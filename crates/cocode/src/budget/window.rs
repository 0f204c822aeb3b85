//! Which context window tools are compared with, and when the model that has it searches.

use cocode_config::Settings;
use cocode_core::{SearchPolicy, Searcher};

use crate::error::CliError;
use crate::tool_search::in_environment;
use crate::workspace::Workspace;

/// Tokens of a context window that nobody told of.
const DEFAULT_WINDOW: u64 = 200_000;

/// The model that would be shown the tools, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    /// Tokens of its context window.
    pub(crate) window: u64,
    /// Who says so, for people.
    pub(super) from: String,
    /// Whether anybody says so.
    pub(crate) is_told: bool,
    /// Whether it can call tools.
    pub(super) calls_tools: bool,
}

impl Model {
    /// A model of which nothing is known but this.
    pub(super) fn of_window(given: Option<u64>) -> Self {
        Self {
            window: given.unwrap_or(DEFAULT_WINDOW),
            from: if given.is_some() {
                "--window"
            } else {
                "default"
            }
            .to_owned(),
            is_told: given.is_some(),
            calls_tools: true,
        }
    }

    pub(super) fn searcher(&self) -> Searcher {
        Searcher {
            context_window: Some(self.window),
            calls_tools: self.calls_tools,
        }
    }
}

/// The model that is used where none is named, with the given window if there is one.
pub(super) fn model(given: Option<u64>, workspace: &Workspace) -> Result<Model, CliError> {
    Ok(model_of(given, &workspace.config()?.settings))
}

/// The same, by these settings.
pub(crate) fn model_of(given: Option<u64>, settings: &Settings) -> Model {
    let mut model = Model::of_window(given);
    let of_provider = || {
        let provider = settings.providers.get(&settings.provider.as_ref()?.value)?;
        provider.model.as_ref()
    };
    let named = settings.model.as_ref().map(|setting| &setting.value);
    let Some(name) = named.or_else(of_provider) else {
        return model;
    };
    let Some(known) = settings.models.get(name) else {
        return model;
    };
    model.calls_tools = known.tools.unwrap_or(true);
    if let (None, Some(window)) = (given, known.context_window) {
        model.window = window;
        model.from = format!("model {name}");
        model.is_told = true;
    }
    model
}

/// When models search, by the files and the environment.
pub(super) fn policy(workspace: &Workspace) -> Result<SearchPolicy, CliError> {
    let settings = &workspace.config()?.settings.tool_search;
    let mode = in_environment(&workspace.environment.variables)?;
    Ok(SearchPolicy {
        mode: mode.unwrap_or(settings.mode.value),
        threshold_percent: settings.threshold_percent.value,
        min_context_window: settings.min_context_window.value,
    })
}
