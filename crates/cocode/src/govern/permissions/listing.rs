//! All rules, defaults and remembered answers, in the order in which they decide.

use cocode_config::SettingOrigin;
use cocode_core::{Authority, Condition, RuleEntry, Verdict};
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
    // The organization's are named first where both say the same.
    let mut entries: Vec<&RuleEntry<SettingOrigin>> = rules.rules().collect();
    entries.sort_by_key(|entry| {
        let kind = KINDS.iter().position(|kind| *kind == entry.kind);
        (kind, entry.authority == Authority::User)
    });
    let authorities = [Authority::Organization, Authority::User];
    let defaults = authorities.map(|authority| (authority, rules.default_of(authority)));
    let printer = &workspace.printer;
    let is_broken = config.settings.permissions.is_broken();
    if printer.json() {
        let mut default_reports = Vec::new();
        for (authority, default) in defaults {
            let organization = authority == Authority::Organization;
            let verdict = match default {
                Some((verdict, _)) => verdict,
                None if organization => continue,
                None => Verdict::Allow,
            };
            default_reports.push(DefaultReport {
                verdict: verdict.as_str(),
                organization,
                place: default.map(|(_, place)| PlaceReport::of(place)),
            });
        }
        let listing = Listing {
            rules: entries.into_iter().map(RuleReport::of).collect(),
            defaults: default_reports,
            remembered: rules
                .answers()
                .map(|(tool, answer, place)| AnswerReport {
                    tool: tool_name(tool),
                    answer: answer.verdict().as_str(),
                    place: PlaceReport::of(place),
                })
                .collect(),
            pending: config
                .pending_settings
                .iter()
                .map(|file| file.path.display().to_string())
                .collect(),
            broken: is_broken,
        };
        return print_json(printer, &listing).map(|()| Exit::Ok);
    }
    workspace.warn_of_files(config);
    if is_broken {
        printer.warn("every tool asks, because something is broken that may have been a rule");
    }
    for file in &config.pending_settings {
        let message = format!(
            "{} is not approved: only what makes things stricter counts of it",
            file.path.display()
        );
        printer.warn(&message);
    }
    let mut rows = Vec::new();
    for entry in entries {
        rows.push(row(
            entry.kind,
            &entry.rule.to_string(),
            owner(entry.authority),
            entry.origin.to_string(),
        ));
    }
    for (tool, answer, place) in rules.answers() {
        let tool = tool_name(tool);
        rows.push(row(
            answer.verdict(),
            &tool,
            "remembered",
            place.to_string(),
        ));
    }
    for (authority, default) in defaults {
        match default {
            Some((verdict, place)) => {
                rows.push(row(
                    verdict,
                    "(default)",
                    owner(authority),
                    place.to_string(),
                ));
            }
            None if authority == Authority::Organization => {}
            None => rows.push(row(
                Verdict::Allow,
                "(default)",
                owner(authority),
                "nobody said otherwise".to_owned(),
            )),
        }
    }
    let text = table(
        &["KIND", "TOOLS", "WHOSE", "WRITTEN IN"],
        &rows,
        printer.paint(),
    );
    printer.out(text)?;
    Ok(Exit::Ok)
}

fn owner(authority: Authority) -> &'static str {
    match authority {
        Authority::Organization => "organization",
        Authority::User => "yours",
    }
}

fn row(kind: Verdict, tools: &str, owner: &str, place: String) -> Vec<Cell> {
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
