//! When clients search for tools: what the command line says, else the environment, else the profile,
//! else the files.

use std::fmt;

use cocode_config::{GatewayProfile, SettingOrigin, ToolSearchSettings};
use cocode_core::{SearchPolicy, ToolSearchMode};
use cocode_gateway::SearchOptions;
use serde::Serialize;

use crate::args::tool_search::{ModeArg, ToolSearchArgs};
use crate::environment::Variables;
use crate::error::{CliError, Code};

/// The variable that says it, as in other tools.
pub(crate) const VARIABLE: &str = "ENABLE_TOOL_SEARCH";

/// When clients search, and who says so.
#[derive(Clone, Debug)]
pub(crate) struct ToolSearch {
    pub(crate) options: SearchOptions,
    from: From,
}

/// Who has said whether clients search.
#[derive(Clone, Debug, PartialEq)]
enum From {
    CommandLine,
    Environment,
    File(SettingOrigin),
    Nobody,
}

/// The same, as scripts see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolSearchReport {
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    threshold_percent: f64,
    min_context_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
}

impl ToolSearch {
    pub(crate) fn new(
        args: ToolSearchArgs,
        profile: Option<&GatewayProfile>,
        settings: &ToolSearchSettings,
        variables: &Variables,
    ) -> Result<Self, CliError> {
        let (mode, from) = if let Some(ModeArg(mode)) = args.tool_search {
            (mode, From::CommandLine)
        } else if let Some(mode) = in_environment(variables)? {
            (mode, From::Environment)
        } else if let Some(profile) = profile
            && let Some(mode) = profile.tool_search
        {
            (mode, From::File(profile.from.clone()))
        } else {
            let from = settings.mode.from.clone();
            (settings.mode.value, from.map_or(From::Nobody, From::File))
        };
        let policy = SearchPolicy {
            mode,
            threshold_percent: settings.threshold_percent.value,
            min_context_window: settings.min_context_window.value,
        };
        Ok(Self {
            options: SearchOptions {
                policy,
                context_window: args.context_window.or_else(|| profile?.context_window),
                on_list_changed: settings.on_list_changed.value,
            },
            from,
        })
    }

    pub(crate) fn report(&self) -> ToolSearchReport {
        let SearchOptions {
            policy,
            context_window,
            on_list_changed: _,
        } = self.options;
        ToolSearchReport {
            mode: policy.mode.to_string(),
            from: (self.from != From::Nobody).then(|| self.from.to_string()),
            threshold_percent: policy.threshold_percent,
            min_context_window: policy.min_context_window,
            context_window,
        }
    }
}

/// What the environment says.
pub(crate) fn in_environment(variables: &Variables) -> Result<Option<ToolSearchMode>, CliError> {
    let text = variables.text(VARIABLE).filter(|text| !text.is_empty());
    let mode = text.map(|text| text.parse::<ToolSearchMode>()).transpose();
    mode.map_err(|error| {
        let message = format!("the variable {VARIABLE} cannot be used");
        CliError::new(Code::InvalidUsage, message).because(&error)
    })
}

impl fmt::Display for From {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => formatter.write_str("--tool-search"),
            Self::Environment => formatter.write_str(VARIABLE),
            Self::File(from) => from.fmt(formatter),
            Self::Nobody => formatter.write_str("the default"),
        }
    }
}

/// What clients have to expect, in one line.
impl fmt::Display for ToolSearch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, from } = self;
        let policy = &options.policy;
        write!(formatter, "tool search: {} ({from}), ", policy.mode)?;
        let percent = match policy.mode {
            ToolSearchMode::Off => return formatter.write_str("clients are shown all tools"),
            ToolSearchMode::On => {
                return formatter.write_str("clients search unless they say otherwise");
            }
            ToolSearchMode::Auto => policy.threshold_percent,
            ToolSearchMode::AutoFrom(percent) => f64::from(percent),
        };
        write!(formatter, "from {percent}% of a context window on, ")?;
        match options.context_window {
            Some(window) => write!(
                formatter,
                "which has {window} tokens unless clients say otherwise"
            ),
            None => formatter.write_str("for clients that say how large theirs is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use cocode_config::merge_settings;
    use cocode_core::ToolSearchMode;

    use super::{ToolSearch, VARIABLE};
    use crate::args::tool_search::{ModeArg, ToolSearchArgs};
    use crate::environment::Variables;

    fn of(line: Option<ToolSearchMode>, variable: Option<&str>) -> Result<String, String> {
        let (settings, _) = merge_settings(&[]);
        let pairs = variable.map(|value| (OsString::from(VARIABLE), OsString::from(value)));
        let variables: Variables = pairs.into_iter().collect();
        let args = ToolSearchArgs {
            tool_search: line.map(ModeArg),
            context_window: None,
        };
        let search = ToolSearch::new(args, None, &settings.tool_search, &variables);
        search
            .map(|search| search.to_string())
            .map_err(|error| error.causes.join(" "))
    }

    #[test]
    fn the_command_line_counts_more_than_the_environment_and_that_more_than_files() {
        assert_eq!(
            of(None, None).unwrap(),
            "tool search: auto (the default), from 10% of a context window on, for clients that say how \
             large theirs is"
        );
        assert_eq!(
            of(None, Some("true")).unwrap(),
            "tool search: true (ENABLE_TOOL_SEARCH), clients search unless they say otherwise"
        );
        assert_eq!(
            of(Some(ToolSearchMode::Off), Some("true")).unwrap(),
            "tool search: false (--tool-search), clients are shown all tools"
        );
        assert_eq!(of(None, Some("")), of(None, None));
        let error = of(None, Some("yes")).unwrap_err();
        assert!(error.contains("`yes` is not one of auto"), "{error}");
    }
}
