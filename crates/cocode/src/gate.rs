//! Which tools of a server may be called: its filters, and the rules of user and organization.

use std::sync::Arc;

use cocode_client::Annotations;
use cocode_config::{SettingOrigin, remember};
use cocode_core::{
    Answer, Decision, Hints, RuleSet, ServerName, ServerSpec, ToolFilter, ToolName, ToolRef,
    ToolUse, Verdict,
};

use crate::elicit::Permission;
use crate::error::{CliError, Code};
use crate::govern::permissions::answers_file;
use crate::govern::permissions::reason::{Owner, Reasons};
use crate::handler::TerminalHandler;
use crate::printer::Printer;
use crate::target::UNLISTED;
use crate::text::plain;
use crate::workspace::Workspace;

/// Stands before every call.
#[derive(Debug)]
pub(crate) struct Gate {
    server: ServerName,
    tools: ToolFilter,
    rules: RuleSet<SettingOrigin>,
    reasons: Reasons,
    /// Whether answers may be remembered.
    remembers: bool,
    /// Where answers are remembered.
    settings: std::path::PathBuf,
    edits: cocode_config::EditContext,
    printer: Arc<Printer>,
}

impl Gate {
    pub(crate) fn new(spec: Option<&ServerSpec>, workspace: &Workspace) -> Result<Self, CliError> {
        let server = match spec {
            Some(spec) => spec.name.clone(),
            None => UNLISTED.parse().map_err(|error| {
                CliError::new(Code::SetupFailed, "a server without a name").because(&error)
            })?,
        };
        let config = workspace.config()?;
        Ok(Self {
            tools: spec.map(|spec| spec.tools.clone()).unwrap_or_default(),
            rules: config.rules_for(server.as_str()),
            reasons: Reasons::of(config),
            remembers: spec.is_some() && config.remembers_answers_for(server.as_str()),
            server,
            settings: answers_file(workspace),
            edits: workspace.edits(),
            printer: Arc::clone(&workspace.printer),
        })
    }

    /// Whether a tool is shown at all.
    pub(crate) fn shows(&self, tool: &str, annotations: Annotations) -> bool {
        let name = ToolName::new(tool);
        let wanted = ToolUse::mcp(&self.server, &name).with_hints(hints(annotations));
        self.tools.admits(tool) && self.rules.decide(&wanted).verdict.allows_listing()
    }

    /// Lets a call through, after asking if a rule wants that, or says which rule does not.
    pub(crate) async fn pass(
        &self,
        tool: &str,
        annotations: Annotations,
        handler: &TerminalHandler,
    ) -> Result<(), CliError> {
        let server = &self.server;
        if !self.tools.admits(tool) {
            let tool = plain(tool);
            let message = format!("the tool `{tool}` of server `{server}` is filtered out");
            return Err(CliError::new(Code::PermissionDenied, message).hint(format!(
                "see `enabled_tools` and `disabled_tools`: `cocode mcp explain {server}`"
            )));
        }
        let name = ToolName::new(tool);
        let wanted = ToolUse::mcp(server, &name).with_hints(hints(annotations));
        let decision = self.rules.decide(&wanted);
        let why = self.reasons.why(&decision);
        let why = match why.place {
            Some(place) => format!("{} ({place})", why.text),
            None => why.text,
        };
        let call = format!("mcp__{server}__{}", plain(tool));
        match decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Deny => Err(denied(format!("`{call}` may not be called: {why}"))),
            Verdict::Ask if handler.can_ask() => {
                let question = format!("May `{call}` be called? {why}");
                let answer = handler.may_call(&question).await.map_err(|error| {
                    denied(format!("`{call}` was not called: nobody could be asked"))
                        .because(&error)
                })?;
                self.answered(answer, &name, decision.is_by_organization())
            }
            Verdict::Ask => {
                let error = denied(format!(
                    "`{call}` may be called only after asking, and there is no terminal: {why}"
                ));
                Err(self.how_scripts_pass(error, tool, &decision))
            }
        }
    }

    /// Says what lets a call through where nobody can be asked.
    fn how_scripts_pass(
        &self,
        error: CliError,
        tool: &str,
        decision: &Decision<'_, SettingOrigin>,
    ) -> CliError {
        let Self { server, .. } = self;
        let tool = plain(tool);
        match self.reasons.decider(decision) {
            // The reason says what to do.
            Owner::Broken => return error,
            Owner::Organization => {
                return error
                    .hint("your organization wants this asked every time: call it at a terminal");
            }
            Owner::User | Owner::Project => {}
        }
        // As one text, an allow rule means no server with `__` in its name.
        let allow = if server.as_str().contains("__") {
            format!("the allow rule {{ server = \"{server}\", tool = \"{tool}\" }}")
        } else {
            format!("`cocode permissions allow 'mcp__{server}__{tool}'`")
        };
        let error = match decision.rule() {
            None => error.hint(format!("{allow} lets scripts call it")),
            Some((rule, place)) => error.hint(format!(
                "{allow} lets scripts call it, but ask rules are stronger: remove or narrow the \
                 ask rule `{rule}` in {place} too"
            )),
        };
        if self.remembers {
            return error.hint("or call it once at a terminal, and answer `always`");
        }
        error
    }

    fn answered(
        &self,
        answer: Permission,
        tool: &ToolName,
        by_organization: bool,
    ) -> Result<(), CliError> {
        let server = &self.server;
        let remembered = match answer {
            Permission::Always => Some(Answer::Allow),
            Permission::Never => Some(Answer::Deny),
            Permission::Once | Permission::Refused => None,
        };
        if let Some(remembered) = remembered {
            if by_organization {
                let message =
                    "your organization wants this asked every time: the answer counts once";
                self.printer.warn(message);
            } else if server.as_str() == UNLISTED {
                // Every other server without a name would be meant too.
                let message =
                    "answers are remembered for configured servers only: this one counts once";
                self.printer.warn(message);
            } else if !self.remembers {
                // Another work tree may have another server of this name.
                let message = format!(
                    "answers are remembered for servers of your own files only, and `{server}` is \
                     one of a work tree or plugin: this one counts once"
                );
                self.printer.warn(&message);
            } else {
                let tool = ToolRef::Mcp { server, tool };
                let written = remember(&self.edits, &self.settings, tool, remembered);
                written.map_err(|error| {
                    let message = "the answer could not be remembered";
                    CliError::new(Code::FileError, message).because(&error)
                })?;
            }
        }
        match answer {
            Permission::Once | Permission::Always => Ok(()),
            Permission::Refused | Permission::Never => {
                let call = format!("mcp__{server}__{}", plain(tool.as_str()));
                Err(denied(format!("`{call}` was not called: you said no")))
            }
        }
    }
}

fn denied(message: String) -> CliError {
    CliError::new(Code::PermissionDenied, message)
        .hint("`cocode permissions list` shows all rules and where they are written")
}

/// What a tool says about its effects, as rules know it.
pub(crate) fn hints(annotations: Annotations) -> Hints {
    Hints {
        read_only: annotations.read_only,
        destructive: annotations.destructive,
    }
}
