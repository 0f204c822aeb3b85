//! Whether a call is made: what rules and policy say, and what a person is asked before and after it.

use std::sync::Arc;

use cocode_core::{
    Approval, ApprovalPolicy, Doing, Hints, Ruled, ServerSpec, ToolRef, Verdict, approve,
    make_visible,
};

use super::super::allowance::{allowance, resolved};
use super::{Permission, Shared};
use crate::belt::{Outcome, Plan};
use crate::company::{ApprovalAnswer, ApprovalQuestion, Notice};
use crate::content::{Block, ToolCall};
use crate::describe::describe;
use crate::record::{Record, StoredAnswer};
use crate::rules::{Rules, Ruling};
use crate::store::StoreError;

/// Characters of the names of changed files that a model is told.
const MAX_NAMES_CHARS: usize = 2_000;

impl Shared<'_> {
    /// What rules, policy and sandbox say, and why.
    pub(super) fn approval(&self, plan: &Plan) -> (Approval, String) {
        let settings = self.conversation.settings();
        let Some((doing, ruling)) = self.ruling(plan) else {
            return (Approval::Granted, String::new());
        };
        // What a person has allowed for this conversation is not asked again; rules count more.
        if ruling.ruled == Ruled::Nothing && self.is_allowed(plan) {
            return (Approval::Granted, String::new());
        }
        let approval = approve(settings.approval, settings.sandbox, doing, ruling.ruled);
        let why = match approval {
            Approval::Granted => String::new(),
            Approval::Needed(cocode_core::Why::Rule)
            | Approval::Refused(cocode_core::Why::Rule) => ruling.why,
            Approval::Needed(why) | Approval::Refused(why) => why.to_string(),
        };
        (approval, why)
    }

    /// Whether a person has said "always" to this in this conversation, and could say otherwise.
    pub(super) fn is_allowed(&self, plan: &Plan) -> bool {
        let asks = self.conversation.settings().approval != ApprovalPolicy::Never;
        asks && self.conversation.allowed.contains(&self.allowance(plan))
    }

    /// Asks a person. An answer for the future is about this plan, if one is given.
    pub(super) async fn ask(
        &self,
        question: ApprovalQuestion,
        plan: Option<&Plan>,
        records: &mut Vec<(u64, Record)>,
    ) -> Result<Permission, StoreError> {
        let _turn = self.asking.acquire().await;
        let (id, why) = (question.id.clone(), question.why.clone());
        let asked = Record::ApprovalAsked {
            id: id.clone(),
            why: why.clone(),
        };
        records.push(self.append(asked).await?);
        let answer = if self.company.approver.can_ask() {
            self.company.approver.ask(question).await
        } else {
            ApprovalAnswer::Unasked
        };
        let (stored, permission) = match (answer, plan) {
            (ApprovalAnswer::Always, Some(plan)) => {
                if self.can_write_down(plan) {
                    self.remember(plan);
                }
                let allowed = self.allowance(plan);
                self.newly_allowed.lock().await.push(allowed);
                (StoredAnswer::Always, Permission::Granted)
            }
            (ApprovalAnswer::Once | ApprovalAnswer::Always, _) => {
                (StoredAnswer::Once, Permission::Granted)
            }
            (ApprovalAnswer::Refused(words), _) => {
                let words = words.map(|words| format!(" They say: {words}"));
                let text = format!("Not called: the user said no.{}", words.unwrap_or_default());
                (StoredAnswer::Refused, Permission::Refused(text))
            }
            (ApprovalAnswer::Stopped, _) => (StoredAnswer::Stopped, Permission::Stopped),
            (ApprovalAnswer::Unasked, _) => {
                let text = format!(
                    "Not called: a person has to agree first, because {why}, and nobody can be asked. \
                     Go on without it, or do it in another way."
                );
                (StoredAnswer::Unasked, Permission::Refused(text))
            }
        };
        let answered = Record::ApprovalAnswered { id, answer: stored };
        records.push(self.append(answered).await?);
        Ok(permission)
    }

    pub(super) fn question(&self, call: &ToolCall, plan: &Plan, why: &str) -> ApprovalQuestion {
        let justification = match plan {
            Plan::Own(own) => own.justification.clone(),
            _ => None,
        };
        // A rule that wants to be asked would ask again.
        let is_ruled = self
            .ruling(plan)
            .is_some_and(|(_, ruling)| ruling.ruled != Ruled::Nothing);
        let can_remember = !is_ruled || self.can_write_down(plan);
        let call = resolved(call, plan);
        ApprovalQuestion {
            id: call.id.clone(),
            tool: call.name.clone(),
            summary: match plan {
                // Its arguments are listed one by one; cut off in a line they would mislead.
                Plan::Server { .. } => call.name.clone(),
                _ => describe(&call),
            },
            arguments: call.arguments.to_object(),
            why: why.to_owned(),
            justification,
            can_remember,
            replaced_text: match plan {
                Plan::Own(own) if own.name == "write" => own
                    .arguments
                    .get("path")
                    .and_then(|path| self.belt.hands.workspace.current_text(path.as_str()?)),
                _ => None,
            },
            changed_files: Vec::new(),
        }
    }

    /// Whether the answer can be kept beyond this conversation.
    fn can_write_down(&self, plan: &Plan) -> bool {
        match plan {
            Plan::Server { server, tool, .. } => {
                self.rules().can_remember(ToolRef::Mcp { server, tool })
            }
            _ => false,
        }
    }

    /// What a call would do, and what rules say about its tool; nothing where no tool is used.
    fn ruling(&self, plan: &Plan) -> Option<(Doing, Ruling)> {
        let (doing, tool, hints) = match plan {
            Plan::Settled(_) | Plan::Wait => return None,
            Plan::Own(own) => {
                let tool = ToolRef::BuiltIn { name: own.name };
                (own.doing, tool, Hints::default())
            }
            Plan::Server {
                server,
                tool,
                hints,
                ..
            } => {
                let tool = ToolRef::Mcp { server, tool };
                (Doing::Server(*hints), tool, *hints)
            }
        };
        let mut ruling = self.rules().ruling(tool, hints);
        let is_allowed = ruling.ruled == Ruled::By(Verdict::Allow);
        if !self.discloses(plan) || is_allowed && ruling.is_named {
            return Some((doing, ruling));
        }
        // Permission for many tools is none to send them what was read elsewhere.
        if is_allowed {
            ruling.ruled = Ruled::Nothing;
        }
        Some((Doing::Disclosure, ruling))
    }

    /// Whether a call could send data from outside of the workspace to a remote server that is not trusted.
    fn discloses(&self, plan: &Plan) -> bool {
        let Plan::Server { spec, .. } = plan else {
            return false;
        };
        let is_safe = |spec: &Arc<ServerSpec>| !spec.is_remote() || spec.trust_annotations;
        self.conversation.transcript.has_read_outside && !spec.as_ref().is_some_and(is_safe)
    }

    /// What "always" covers. An answer from before data was read elsewhere does not cover what comes after.
    fn allowance(&self, plan: &Plan) -> String {
        let suffix = if self.discloses(plan) {
            " disclosing"
        } else {
            ""
        };
        allowance(plan) + suffix
    }

    fn remember(&self, plan: &Plan) {
        let Plan::Server { server, tool, .. } = plan else {
            return;
        };
        if let Err(error) = self.rules().remember(ToolRef::Mcp { server, tool }) {
            let what = format!("the answer counts for this conversation only: {error}");
            self.company.listener.hear(&Notice::Warning(what));
        }
    }

    /// What a command has changed of the files that other programs execute is kept if a person wants that, else
    /// undone. An error is an outcome that ends the turn.
    pub(super) async fn settle_changes(
        &self,
        call: &ToolCall,
        plan: &Plan,
        mut outcome: Outcome,
        records: &mut Vec<(u64, Record)>,
    ) -> Result<Result<Outcome, Outcome>, StoreError> {
        let Some(changes) = outcome.changes.take() else {
            return Ok(Ok(outcome));
        };
        let names = make_visible(&changes.paths().join(", "));
        let names: String = names.chars().take(MAX_NAMES_CHARS).collect();
        let why = format!("the command has changed files that other programs execute: {names}");
        let question = ApprovalQuestion {
            can_remember: false,
            changed_files: changes.paths(),
            ..self.question(call, plan, &why)
        };
        let permission = match self.conversation.settings().approval {
            ApprovalPolicy::Never => Permission::Refused(String::new()),
            _ => self.ask(question, None, records).await?,
        };
        if let Permission::Granted = permission {
            changes.keep();
            return Ok(Ok(outcome));
        }
        let what = match changes.undo() {
            Ok(()) => "The changes were undone: they were not approved".to_owned(),
            Err(error) => {
                format!("The changes could not be undone: {error}; restore these files yourself")
            }
        };
        outcome
            .content
            .insert(0, Block::text(format!("Failed: {why}. {what}.")));
        outcome.is_error = true;
        outcome.was_confined = false;
        Ok(match permission {
            Permission::Stopped => Err(outcome),
            _ => Ok(outcome),
        })
    }

    fn rules(&self) -> &dyn Rules {
        &*self.conversation.agent.options().rules
    }
}
