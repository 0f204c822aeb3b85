//! The permission rules of the configuration, as the agent asks them, replaced when the files change.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use cocode_agent::{Rules, Ruling};
use cocode_config::{Config, EditContext, SettingOrigin, remember};
use cocode_core::{Answer, DecidedBy, Hints, RuleSet, Ruled, ToolRef, ToolUse};

use crate::error::CliError;
use crate::govern::permissions::answers_file;
use crate::govern::permissions::reason::Reasons;
use crate::workspace::Workspace;

/// The rules that hold now.
#[derive(Debug)]
pub(crate) struct AgentRules {
    current: RwLock<Arc<Current>>,
    /// Where answers are remembered.
    file: PathBuf,
    edits: EditContext,
}

#[derive(Debug)]
struct Current {
    /// For the tools of every server that a file names.
    of: BTreeMap<String, RuleSet<SettingOrigin>>,
    /// For all other tools.
    others: RuleSet<SettingOrigin>,
    /// Servers about whose tools answers are remembered.
    remembering: Vec<String>,
    reasons: Reasons,
}

impl AgentRules {
    pub(crate) fn new(workspace: &Workspace) -> Result<Self, CliError> {
        let current = Current::of(workspace.config()?);
        Ok(Self {
            current: RwLock::new(Arc::new(current)),
            file: answers_file(workspace),
            edits: workspace.edits(),
        })
    }

    /// From now on the rules of this configuration hold.
    pub(crate) fn replace(&self, config: &Config) {
        let current = Arc::new(Current::of(config));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Current {
    fn of(config: &Config) -> Self {
        let names = config.servers.keys();
        let remembering = names.clone();
        Self {
            of: names
                .map(|name| (name.clone(), config.rules_for(name)))
                .collect(),
            others: config.rules(),
            remembering: remembering
                .filter(|name| config.remembers_answers_for(name))
                .cloned()
                .collect(),
            reasons: Reasons::of(config),
        }
    }

    fn rules(&self, tool: ToolRef<'_>) -> &RuleSet<SettingOrigin> {
        match tool {
            ToolRef::Mcp { server, .. } => self.of.get(server.as_str()).unwrap_or(&self.others),
            ToolRef::BuiltIn { .. } => &self.others,
        }
    }
}

impl Rules for AgentRules {
    fn ruling(&self, tool: ToolRef<'_>, hints: Hints) -> Ruling {
        let current = self.current();
        let wanted = ToolUse::new(tool).with_hints(hints);
        let decision = current.rules(tool).decide(&wanted);
        let ruled = match decision.by {
            // Where nobody has said anything, the approval policy decides.
            DecidedBy::Default { set: None } => Ruled::Nothing,
            _ => Ruled::By(decision.verdict),
        };
        let is_named = match decision.by {
            DecidedBy::Rule { rule, .. } => rule.names_server(),
            DecidedBy::Answer { .. } => true,
            DecidedBy::Default { .. } => false,
        };
        let why = current.reasons.why(&decision);
        let why = match why.place {
            Some(place) => format!("{} ({place})", why.text),
            None => why.text,
        };
        Ruling {
            ruled,
            is_named,
            why,
        }
    }

    fn can_remember(&self, tool: ToolRef<'_>) -> bool {
        match tool {
            ToolRef::Mcp { server, .. } => {
                let current = self.current();
                let mut names = current.remembering.iter();
                names.any(|name| name == server.as_str())
            }
            ToolRef::BuiltIn { .. } => false,
        }
    }

    fn remember(&self, tool: ToolRef<'_>) -> Result<(), String> {
        remember(&self.edits, &self.file, tool, Answer::Allow)
            .map(|_edited| ())
            .map_err(|error| cocode_wire::chain(&error))
    }
}
