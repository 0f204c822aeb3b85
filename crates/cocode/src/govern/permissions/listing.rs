//! All rules, defaults and remembered answers, in the order in which they decide.

use cocode_config::{Config, SettingOrigin};
use cocode_core::{Authority, Condition, RuleEntry, RuleSet, Verdict};
use serde::Serialize;

use super::{KINDS, tool_name};
use crate::error::{CliError, Exit};
use crate::printer::{Style, print_json};
use crate::table::{Cell, table};
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Listing {
    rules: Vec<RuleReport>,
    defaults: Vec<DefaultReport>,
    remembered: Vec<AnswerReport>,
    /// Settings files of which only what makes things stricter counts, until they are approved.
    #[serde(rename = "pendingFiles")]
    pending: Vec<String>,
    /// Whether something is broken that may have been a stricter rule, so that every tool asks.
    broken: bool,
}

#[derive(Serialize)]
struct RuleReport {
    kind: &'static str,
    rule: String,
    #[serde(rename = "readOnly", skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
    organization: bool,
    #[serde(flatten)]
    place: PlaceReport,
}

#[derive(Serialize)]
struct DefaultReport {
    verdict: &'static str,
    organization: bool,
    #[serde(flatten)]
    place: Option<PlaceReport>,
}

#[derive(Serialize)]
struct AnswerReport {
    tool: String,
    answer: &'static str,
    #[serde(flatten)]
    place: PlaceReport,
}

/// Where something is written.
#[derive(Serialize)]
pub(super) struct PlaceReport {
    scope: &'static str,
    file: String,
    line: Option<u32>,
}

impl PlaceReport {
    pub(super) fn of(place: &SettingOrigin) -> Self {
        let SettingOrigin { scope, origin } = place;
        Self {
            scope,
            file: origin.file.display().to_string(),
            line: origin.line,
        }
    }
}

impl RuleReport {
    fn of(entry: &RuleEntry<SettingOrigin>) -> Self {
        let condition = entry.rule.condition();
        Self {
            kind: entry.kind.as_str(),
            rule: entry.rule.clone().when(Condition::default()).to_string(),
            read_only: condition.read_only,
            destructive: condition.destructive,
            organization: entry.authority == Authority::Organization,
            place: PlaceReport::of(&entry.origin),
        }
    }
}

pub(super) fn run(workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let rules = config.rules();
    if workspace.printer.json() {
        let listing = listing(&rules, config);
        return print_json(&workspace.printer, &listing).map(|()| Exit::Ok);
    }
    print(&rules, config, workspace)?;
    Ok(Exit::Ok)
}

/// The rules in the order in which they decide. Where both say the same, the organization's is
/// named as the reason.
fn in_order(rules: &RuleSet<SettingOrigin>) -> Vec<&RuleEntry<SettingOrigin>> {
    let mut entries: Vec<_> = rules.rules().collect();
    entries.sort_by_key(|entry| {
        let kind = KINDS.iter().position(|kind| *kind == entry.kind);
        (kind, entry.authority == Authority::User)
    });
    entries
}

/// The defaults that hold, and where each is written: that of the user always does.
fn defaults(rules: &RuleSet<SettingOrigin>) -> Vec<(Authority, Verdict, Option<&SettingOrigin>)> {
    let mut defaults = Vec::new();
    for authority in [Authority::Organization, Authority::User] {
        match rules.default_of(authority) {
            Some((verdict, place)) => defaults.push((authority, verdict, Some(place))),
            None if authority == Authority::Organization => {}
            None => defaults.push((authority, Verdict::Allow, None)),
        }
    }
    defaults
}

fn listing(rules: &RuleSet<SettingOrigin>, config: &Config) -> Listing {
    let defaults = defaults(rules).into_iter();
    let pending = config.pending_settings.iter();
    Listing {
        rules: in_order(rules).into_iter().map(RuleReport::of).collect(),
        defaults: defaults
            .map(|(authority, verdict, place)| DefaultReport {
                verdict: verdict.as_str(),
                organization: authority == Authority::Organization,
                place: place.map(PlaceReport::of),
            })
            .collect(),
        remembered: rules
            .answers()
            .map(|(tool, answer, place)| AnswerReport {
                tool: tool_name(tool),
                answer: answer.verdict().as_str(),
                place: PlaceReport::of(place),
            })
            .collect(),
        pending: pending
            .map(|file| file.path.display().to_string())
            .collect(),
        broken: config.settings.permissions.is_broken(),
    }
}

fn print(
    rules: &RuleSet<SettingOrigin>,
    config: &Config,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let printer = &workspace.printer;
    workspace.warn_of_files(config);
    if config.settings.permissions.is_broken() {
        printer.warn(
            "every tool asks or is denied, because something is broken that may have been a rule",
        );
    }
    for file in &config.pending_settings {
        let message = format!(
            "{} is not approved: only what makes things stricter counts of it",
            file.path.display()
        );
        printer.warn(&message);
    }
    let mut rows = Vec::new();
    for entry in in_order(rules) {
        let tools = entry.rule.to_string();
        let whose = owner(entry.authority);
        rows.push(row(entry.kind, &tools, whose, &entry.origin.to_string()));
    }
    for (tool, answer, place) in rules.answers() {
        let tool = tool_name(tool);
        rows.push(row(
            answer.verdict(),
            &tool,
            "remembered",
            &place.to_string(),
        ));
    }
    for (authority, verdict, place) in defaults(rules) {
        let place = match place {
            Some(place) => place.to_string(),
            None => "nobody said otherwise".to_owned(),
        };
        rows.push(row(verdict, "(default)", owner(authority), &place));
    }
    let head = ["KIND", "TOOLS", "WHOSE", "WRITTEN IN"];
    printer.out(table(&head, &rows, printer.paint()))
}

fn owner(authority: Authority) -> &'static str {
    match authority {
        Authority::Organization => "organization",
        Authority::User => "yours",
    }
}

fn row(kind: Verdict, tools: &str, owner: &str, place: &str) -> Vec<Cell> {
    let style = match kind {
        Verdict::Deny => Style::Red,
        Verdict::Ask => Style::Yellow,
        Verdict::Allow => Style::Bold,
    };
    vec![
        Cell::new(kind.as_str()).styled(style),
        Cell::new(tools),
        Cell::new(owner),
        Cell::new(place),
    ]
}
