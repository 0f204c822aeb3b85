//! Rules for tools: lists them in the order in which they decide, writes and removes them, and says
//! what would happen to a call.

mod listing;
mod pattern;
pub(crate) mod reason;
mod test;

use std::path::{Path, PathBuf};

use cocode_config::{
    Approval, EditError, Edited, RuleText, Scope, Text, TrustContent, TrustItem, add_rule, forget,
    remove_rule, unset_value,
};
use cocode_core::{Condition, Rule, ServerName, ToolName, ToolRef, Verdict};
use serde::Serialize;

use self::reason::{Owner, Reasons};
use crate::args::govern::{PermissionsVerb, RuleArgs, RuleScope};
use crate::error::{CliError, Code, Exit};
use crate::manage::trust;
use crate::manage::writing::edits_of;
use crate::naming;
use crate::printer::print_json;
use crate::text::plain;
use crate::workspace::Workspace;

pub(crate) fn run(verb: &PermissionsVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    match verb {
        PermissionsVerb::List => listing::run(workspace),
        PermissionsVerb::Allow(args) => add(Verdict::Allow, args, workspace),
        PermissionsVerb::Ask(args) => add(Verdict::Ask, args, workspace),
        PermissionsVerb::Deny(args) => add(Verdict::Deny, args, workspace),
        PermissionsVerb::Remove(args) => remove(args, workspace),
        PermissionsVerb::Forget { tool } => forget_answers(tool.as_deref(), workspace),
        PermissionsVerb::Test(args) => test::run(args, workspace),
    }
}

/// The verdicts in the order in which they decide.
const KINDS: [Verdict; 3] = [Verdict::Deny, Verdict::Ask, Verdict::Allow];

#[derive(Serialize)]
struct Written<'a> {
    kind: &'static str,
    rule: &'a str,
    scope: &'static str,
    file: String,
    changed: bool,
}

fn add(kind: Verdict, args: &RuleArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let servers: Vec<&str> = config.servers.keys().map(String::as_str).collect();
    let given = args.pattern.as_str();
    let text = pattern::spelled(given, &servers).unwrap_or_else(|| given.to_owned());
    let rule = rule_text(text, args)?;
    let warning = pattern::check(kind, &rule.tool, &parsed(&rule.tool)?, &servers)?;
    let (scope, file) = writable(args, workspace)?;
    let edits = edits_of(scope, workspace);
    let edited = add_rule(&edits, &file, kind, &rule).map_err(|error| not_written(&error))?;
    approve_written(scope, &file, &edited, workspace)?;
    let changed = edited.is_changed();
    let printer = &workspace.printer;
    if printer.json() {
        let report = Written {
            kind: kind.as_str(),
            rule: &rule.tool,
            scope: scope.as_str(),
            file: file.display().to_string(),
            changed,
        };
        print_json(printer, &report)?;
    } else {
        let done = if changed { "added" } else { "already there:" };
        let shown = shown(&rule);
        let file = file.display();
        printer.out_line(&plain(&format!("{done} {kind} `{shown}` in {file}")))?;
    }
    if let Some(warning) = warning {
        workspace.printer.warn(&warning);
    }
    warn_if_stricter(kind, &rule, workspace);
    Ok(Exit::Ok)
}

fn remove(args: &RuleArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let servers: Vec<&str> = config.servers.keys().map(String::as_str).collect();
    let mut rule = rule_text(args.pattern.clone(), args)?;
    let (scope, file) = writable(args, workspace)?;
    let mut removed = remove_from(scope, &file, &rule, workspace)?;
    // Somebody may have written the other spelling by hand, so it comes first as it is.
    if removed.is_empty()
        && let Some(text) = pattern::spelled(&args.pattern, &servers)
    {
        rule = rule_text(text, args)?;
        removed = remove_from(scope, &file, &rule, workspace)?;
    }
    let shown = shown(&rule);
    if removed.is_empty() {
        let file = file.display();
        let message = format!("there is no rule `{}` in {file}", plain(&shown));
        return Err(CliError::new(Code::InvalidUsage, message)
            .hint("`cocode permissions list` shows all rules and where they are written")
            .hint("`--scope` says whose rule is meant, and conditions belong to the rule"));
    }
    let printer = &workspace.printer;
    for kind in removed {
        if printer.json() {
            let report = Written {
                kind: kind.as_str(),
                rule: &rule.tool,
                scope: scope.as_str(),
                file: file.display().to_string(),
                changed: true,
            };
            print_json(printer, &report)?;
        } else {
            let file = file.display();
            printer.out_line(&plain(&format!("removed {kind} `{shown}` from {file}")))?;
        }
    }
    Ok(Exit::Ok)
}

/// Removes a rule from all lists of a file, and gives those that had it.
fn remove_from(
    scope: Scope,
    file: &Path,
    rule: &RuleText,
    workspace: &Workspace,
) -> Result<Vec<Verdict>, CliError> {
    let mut removed = Vec::new();
    for kind in KINDS {
        let edits = edits_of(scope, workspace);
        let edited = remove_rule(&edits, file, kind, rule);
        let edited = edited.map_err(|error| not_written(&error))?;
        if edited.is_changed() {
            approve_written(scope, file, &edited, workspace)?;
            removed.push(kind);
        }
    }
    Ok(removed)
}

/// The rule that is given, once it is sure that it is one.
fn rule_text(tool: String, args: &RuleArgs) -> Result<RuleText, CliError> {
    let condition = Condition {
        read_only: args.read_only,
        destructive: args.destructive,
    };
    parsed(&tool)?;
    Ok(RuleText { tool, condition })
}

fn parsed(text: &str) -> Result<Rule, CliError> {
    let parsed: Result<Rule, _> = text.parse();
    parsed.map_err(|error| {
        CliError::new(Code::InvalidUsage, "this is no rule for tools")
            .because(&error)
            .hint("as in mcp__*, mcp__github__* or mcp__github__create_*")
    })
}

impl From<RuleScope> for Scope {
    fn from(scope: RuleScope) -> Self {
        match scope {
            RuleScope::Local => Self::Local,
            RuleScope::Project => Self::Project,
            RuleScope::User => Self::User,
        }
    }
}

fn shown(rule: &RuleText) -> String {
    let parsed: Result<Rule, _> = rule.tool.parse();
    parsed.map_or_else(
        |_| rule.tool.clone(),
        |parsed| parsed.when(rule.condition).to_string(),
    )
}

/// The file that a rule is written to. One that came with the work tree is not added to before it
/// is approved: to approve our own line would approve the others with it.
fn writable(args: &RuleArgs, workspace: &Workspace) -> Result<(Scope, PathBuf), CliError> {
    let places = &workspace.places;
    let scope = if places.explicit.is_empty() {
        Scope::from(args.scope)
    } else {
        Scope::Explicit
    };
    let Some(file) = places.settings_file(scope) else {
        let message = format!("the {scope} scope has no file for settings here");
        return Err(CliError::new(Code::FileError, message).hint(
            "`--scope user` works everywhere; of `--config`, only a TOML file can have rules",
        ));
    };
    let config = workspace.config()?;
    match config.pending_settings.iter().find(|one| one.path == file) {
        None => Ok((scope, file)),
        Some(pending) => {
            let name = pending.name();
            let message = format!("{} is not approved", file.display());
            Err(CliError::new(Code::PendingTrust, message).hint(format!(
                "`cocode mcp trust {name}` shows it and asks; then it can be added to"
            )))
        }
    }
}

/// Approves a settings file exactly as we wrote it, if what it said before was approved: whatever
/// somebody else put there since we looked waits for the user.
fn approve_written(
    scope: Scope,
    file: &Path,
    edited: &Edited,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let (true, Some(after)) = (scope.needs_trust(), &edited.after) else {
        return Ok(());
    };
    // The files of both scopes are approved under their own names.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let before = edited.before.as_ref();
    let [before, after] = [before, Some(after)].map(|text| {
        text.map(|Text(text)| TrustItem {
            file,
            name: &name,
            content: TrustContent::File(text.as_bytes()),
        })
    });
    let is_known = match before {
        None => true,
        Some(before) => trust::store(workspace)?.verdict(&before).is_approved(),
    };
    if let Some(after) = after.filter(|_| is_known) {
        return trust::decide(&after, Some(Approval::Written), workspace);
    }
    workspace.printer.warn(&format!(
        "{} was changed by somebody else a moment ago: `cocode mcp trust {name}` shows it and asks",
        file.display()
    ));
    Ok(())
}

/// A rule that is written in a stricter list as well does nothing here.
fn warn_if_stricter(kind: Verdict, rule: &RuleText, workspace: &Workspace) {
    let Ok(wanted) = rule.tool.parse::<Rule>() else {
        return;
    };
    let wanted = wanted.when(rule.condition);
    let config = workspace.reloaded();
    let (rules, reasons) = (config.rules(), Reasons::of(&config));
    let stricter = rules.rules().find(|entry| {
        let is_written = reasons.owner_of(entry) != Owner::Broken;
        is_written && entry.kind > kind && entry.rule == wanted
    });
    if let Some(entry) = stricter {
        let message = format!(
            "the same rule is under `{}` too, which counts more: {}",
            entry.kind, entry.origin
        );
        workspace.printer.warn(&message);
    }
}

fn not_written(error: &EditError) -> CliError {
    let told = CliError::new(Code::FileError, "the rule could not be written").because(error);
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

#[derive(Serialize)]
struct Forgotten<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    file: String,
    changed: bool,
}

fn forget_answers(given: Option<&str>, workspace: &Workspace) -> Result<Exit, CliError> {
    let file = answers_file(workspace);
    let edits = workspace.edits();
    let forgotten = match given {
        None => unset_value(&edits, &file, "permissions.remembered"),
        Some(given) => {
            let tool = Tool::parse(given, workspace)?;
            forget(&edits, &file, tool.as_ref())
        }
    };
    let changed = forgotten.map_err(|error| not_written(&error))?;
    let printer = &workspace.printer;
    if printer.json() {
        let report = Forgotten {
            tool: given,
            file: file.display().to_string(),
            changed,
        };
        print_json(printer, &report)?;
    } else {
        let what = match (changed, given) {
            (true, Some(given)) => format!("forgot the answer for `{given}`"),
            (true, None) => "forgot all answers".to_owned(),
            (false, _) => "no answer was remembered".to_owned(),
        };
        printer.out_line(&plain(&what))?;
    }
    Ok(Exit::Ok)
}

/// Where answers are remembered: in the file given by `--config`, else in the user's own.
pub(crate) fn answers_file(workspace: &Workspace) -> PathBuf {
    let places = &workspace.places;
    let explicit = places.settings_file(Scope::Explicit);
    explicit.unwrap_or_else(|| places.user_settings())
}

/// A tool by its name on the command line.
enum Tool {
    Mcp(ServerName, ToolName),
    BuiltIn(String),
}

impl Tool {
    /// Names of configured servers come first, the longest that fits; else the server ends at the
    /// first `__`.
    fn parse(given: &str, workspace: &Workspace) -> Result<Self, CliError> {
        let config = workspace.config()?;
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        let rest = given.strip_prefix("mcp__");
        let split = naming::split(given, &names).or_else(|| {
            let (server, tool) = rest?.split_once("__")?;
            Some((server.to_owned(), tool.to_owned()))
        });
        match (split, rest) {
            (Some((server, tool)), _) => {
                let server = server.parse().map_err(|error| {
                    let message = "this is not the name of a tool";
                    CliError::new(Code::InvalidUsage, message).because(&error)
                })?;
                Ok(Self::Mcp(server, ToolName::new(tool)))
            }
            (None, None) => Ok(Self::BuiltIn(given.to_owned())),
            (None, Some(_)) => {
                let message = format!("`{}` names no tool of a server", plain(given));
                Err(CliError::new(Code::InvalidUsage, message)
                    .hint("write mcp__SERVER__TOOL, as in mcp__github__create_issue"))
            }
        }
    }

    fn as_ref(&self) -> ToolRef<'_> {
        match self {
            Self::Mcp(server, tool) => ToolRef::Mcp { server, tool },
            Self::BuiltIn(name) => ToolRef::BuiltIn { name },
        }
    }
}

/// A tool as rules call it.
fn tool_name(tool: ToolRef<'_>) -> String {
    match tool {
        ToolRef::Mcp { server, tool } => format!("mcp__{server}__{tool}"),
        ToolRef::BuiltIn { name } => name.to_owned(),
    }
}
