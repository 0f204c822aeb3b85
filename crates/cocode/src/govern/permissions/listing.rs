//! All rules, defaults and remembered answers, in the order in which they decide.

use cocode_config::{Config, SettingOrigin};
use cocode_core::{Authority, Condition, RuleEntry, RuleSet, Verdict};
use serde::Serialize;

use super::reason::{Owner, Reasons};
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
    /// Where that is.
    #[serde(rename = "brokenPlaces", skip_serializing_if = "Vec::is_empty")]
    broken_places: Vec<PlaceReport>,
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
    /// Whether it is in a file that is not approved.
    pending: bool,
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
    fn of(entry: &RuleEntry<SettingOrigin>, owner: Owner) -> Self {
        let condition = entry.rule.condition();
        Self {
            kind: entry.kind.as_str(),
            rule: entry.rule.clone().when(Condition::default()).to_string(),
            read_only: condition.read_only,
            destructive: condition.destructive,
            organization: owner == Owner::Organization,
            pending: owner == Owner::Project,
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
    let reasons = Reasons::of(config);
    let entries = in_order(rules).into_iter();
    let entries = entries.map(|entry| (entry, reasons.owner_of(entry)));
    let (broken, written): (Vec<_>, Vec<_>) =
        entries.partition(|(_, owner)| *owner == Owner::Broken);
    let (broken, written) = (broken.into_iter(), written.into_iter());
    Listing {
        rules: written
            .map(|(entry, owner)| RuleReport::of(entry, owner))
            .collect(),
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
        broken_places: broken
            .map(|(entry, _)| PlaceReport::of(&entry.origin))
            .collect(),
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
            "every tool asks or is denied, because something is broken that may have been a rule: \
             see `cocode config check`",
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
    let reasons = Reasons::of(config);
    for entry in in_order(rules) {
        let owner = reasons.owner_of(entry);
        let tools = match owner {
            Owner::Broken => "(every tool)".to_owned(),
            _ => entry.rule.to_string(),
        };
        let place = entry.origin.to_string();
        rows.push(row(entry.kind, &tools, owner.as_str(), &place));
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
        let (owner, place) = match place {
            Some(place) => {
                let owner = reasons.owner(authority, None, place);
                (owner, place.to_string())
            }
            None => (Owner::User, "nobody said otherwise".to_owned()),
        };
        rows.push(row(verdict, "(default)", owner.as_str(), &place));
    }
    let head = ["KIND", "TOOLS", "WHOSE", "WRITTEN IN"];
    printer.out(table(&head, &rows, printer.paint()))
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
