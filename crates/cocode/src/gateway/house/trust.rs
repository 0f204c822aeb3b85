//! What waits for approval, and the decisions about it, as `mcp trust` asks for them. Whoever decides
//! sees all of what they approve, and approves that and nothing that took its place.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cocode_admin::model::{PendingTrust, TrustKind, TrustState};
use cocode_admin::{Decision, Refusal, RefusalStatus};
use cocode_config::{
    Approval, Candidate, Config, Difference, KeyChange, PendingSettings, Shown, Text, Trust,
    TrustItem, visible,
};

use super::interior::Interior;
use crate::error::CliError;
use crate::manage::trust;

/// Stands for the scope of settings, which come with the work tree.
const SETTINGS_SCOPE: &str = "project";

/// What is written down of a decision.
pub(super) fn act_of(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "trust/approve",
        Decision::Reject => "trust/reject",
    }
}

/// What came of looking for something to decide about.
enum Found {
    Decided,
    /// Something of that name waits, but not with this content.
    Another,
    /// Nothing of that name waits.
    Nothing,
}

impl Interior {
    pub(super) fn pending_trust(&self) -> Vec<PendingTrust> {
        pending(&self.present().config)
    }

    pub(super) async fn decide_trust(
        &self,
        name: &str,
        hash: String,
        decision: Decision,
    ) -> Result<(), Refusal> {
        let wanted = name.to_owned();
        let found = self.change(name, move |workspace| {
            let config = workspace.config()?;
            let approval = match decision {
                Decision::Approve => Some(Approval::Approved),
                Decision::Reject => None,
            };
            let decide = |item: &TrustItem<'_>| trust::decide(item, approval, workspace);
            decide_among(config, &wanted, &hash, decide)
        });
        match found.await? {
            Found::Decided => Ok(()),
            Found::Another => {
                let message = format!("`{name}` says something else now than what was shown");
                Err(
                    Refusal::new(RefusalStatus::Conflict, "changed-since", message)
                        .hint("look at what it says now, and decide about that"),
                )
            }
            Found::Nothing if self.server(name).is_ok() => {
                let message = format!("nothing of `{name}` waits for approval");
                Err(Refusal::new(
                    RefusalStatus::Conflict,
                    "nothing-waits",
                    message,
                ))
            }
            Found::Nothing => {
                let message = "nothing of this name waits for approval";
                Err(Refusal::new(
                    RefusalStatus::Unknown,
                    "unknown-server",
                    message,
                ))
            }
        }
    }
}

/// Decides about what is of this name and content.
fn decide_among(
    config: &Config,
    name: &str,
    hash: &str,
    decide: impl Fn(&TrustItem<'_>) -> Result<(), CliError>,
) -> Result<Found, CliError> {
    let servers = trust::waiting(config).into_iter();
    let servers = servers.map(|(name, candidate)| (name, trust::item(candidate)));
    let settings = config.pending_settings.iter();
    let settings = settings.map(|file| (file.name(), file.item()));
    let mut found = Found::Nothing;
    for (_, item) in servers.chain(settings).filter(|(own, _)| *own == name) {
        if item.hash() == hash {
            decide(&item)?;
            return Ok(Found::Decided);
        }
        found = Found::Another;
    }
    Ok(found)
}

/// Something that is not approved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unapproved {
    pub(super) name: String,
    hash: String,
    /// The file, if it is one of settings, and no server.
    pub(super) settings: Option<PathBuf>,
}

/// Everything that is not approved, and whether it waits for that or was rejected.
pub(super) fn unapproved(config: &Config) -> BTreeMap<Unapproved, TrustState> {
    let of = |item: &TrustItem<'_>, settings, trust: &Trust| {
        let entry = Unapproved {
            name: item.name.to_owned(),
            hash: item.hash(),
            settings,
        };
        let state = match trust {
            Trust::Refused => TrustState::Rejected,
            _ => TrustState::Pending,
        };
        (entry, state)
    };
    let servers = trust::waiting(config).into_iter();
    let servers = servers.map(|(_, candidate)| of(&trust::item(candidate), None, &candidate.trust));
    let settings = config.pending_settings.iter();
    let settings = settings.map(|file| of(&file.item(), Some(file.path.clone()), &file.trust));
    servers.chain(settings).collect()
}

/// The same, as it is shown.
fn pending(config: &Config) -> Vec<PendingTrust> {
    let servers = trust::waiting(config).into_iter();
    let servers = servers.map(|(name, candidate)| of_server(name, candidate));
    let settings = config.pending_settings.iter().map(of_settings);
    let mut all: Vec<PendingTrust> = servers.chain(settings).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn of_server(name: &str, candidate: &Candidate) -> PendingTrust {
    let lines = candidate.found.entry.lines();
    let lines: Vec<(String, String)> = lines
        .iter()
        .map(|line| (line.key.clone(), line.in_full()))
        .collect();
    let before = match &candidate.trust {
        Trust::Changed(difference) => Some(before(&lines, difference)),
        _ => None,
    };
    PendingTrust {
        name: name.to_owned(),
        kind: TrustKind::Server,
        scope: candidate.scope.as_str().to_owned(),
        file: candidate.found.origin.file.display().to_string(),
        hash: trust::item(candidate).hash(),
        is_new: before.is_none(),
        is_rejected: candidate.trust == Trust::Refused,
        before: before.map(|lines| text(&lines)),
        after: text(&lines),
    }
}

fn of_settings(file: &PendingSettings) -> PendingTrust {
    let lines = file.text().lines();
    let lines: Vec<String> = lines
        .map(|line| visible(&line.replace('\t', "    ")))
        .collect();
    PendingTrust {
        name: file.name().to_owned(),
        kind: TrustKind::Settings,
        scope: SETTINGS_SCOPE.to_owned(),
        file: file.path.display().to_string(),
        hash: file.item().hash(),
        is_new: !matches!(file.trust, Trust::Changed(_)),
        is_rejected: file.trust == Trust::Refused,
        // No more than a hash was kept of it.
        before: None,
        after: lines.join("\n"),
    }
}

/// What an entry said before: what it says now, with what has changed undone.
fn before(after: &[(String, String)], difference: &Difference) -> Vec<(String, String)> {
    let of = |wanted: &str| {
        let mut changes = difference.changes.iter();
        changes.find(|change| key(change) == wanted)
    };
    let kept = after.iter().filter_map(|(key, value)| match of(key) {
        None | Some(KeyChange::Removed { .. }) => Some((key.clone(), value.clone())),
        Some(KeyChange::Changed { before, .. }) => Some((key.clone(), shown(before))),
        Some(KeyChange::Added { .. }) => None,
    });
    let mut lines: Vec<(String, String)> = kept.collect();
    for change in &difference.changes {
        if let KeyChange::Removed { key, before } = change {
            lines.push((key.clone(), shown(before)));
        }
    }
    lines
}

fn key(change: &KeyChange) -> &str {
    let (KeyChange::Added { key, .. }
    | KeyChange::Removed { key, .. }
    | KeyChange::Changed { key, .. }) = change;
    key
}

fn shown(value: &Shown) -> String {
    match value {
        Shown::Value(Text(value)) => visible(value),
        Shown::Masked(value) => format!("{} (only a hash was kept)", visible(value)),
    }
}

/// A line for each key, so that nothing in a value makes a line of its own.
fn text(lines: &[(String, String)]) -> String {
    let lines = lines.iter();
    let lines: Vec<String> = lines
        .map(|(key, value)| format!("{} = {value}", visible(key)))
        .collect();
    lines.join("\n")
}
