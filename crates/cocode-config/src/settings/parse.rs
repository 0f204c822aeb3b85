//! From a tree of values to the settings of one file. What is wrong with a key stays with that key,
//! except under `[permissions]` and in the entry of a provider or a model.

use std::collections::BTreeMap;
use std::path::Path;

use cocode_core::{Verdict, nearest};

use super::gateway::{OTHERS, is_owners_alone};
use super::keys::{PERMISSIONS, SCHEMA_KEY, SETTINGS, SettingKey, SettingKind};
use super::permissions::{RawPermissions, permissions};
use super::reader::{Given, Reader};
use crate::document::{Format, Member, Node};
use crate::keys::SERVERS;
use crate::layers::OVERRIDES;
use crate::problem::{Origin, Problem};
use crate::read;

/// The named entries that are not at the top of a file.
pub(super) const GATEWAY_PROFILES: &str = "gateway.profiles";
pub(super) const AGENT_PROFILES: &str = "agent.profiles";
pub(super) const PRINCIPALS: &str = "gateway.principals";
pub(super) const LIMITS_OF_SERVERS: &str = "gateway.limits.servers";

const NAMED: [&str; 4] = [
    GATEWAY_PROFILES,
    AGENT_PROFILES,
    PRINCIPALS,
    LIMITS_OF_SERVERS,
];

/// Entries that keep somebody from something: without one that is broken, more would be allowed.
const STRICT: [&str; 2] = [PRINCIPALS, LIMITS_OF_SERVERS];

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawSettings {
    /// By path, as in `health.max_failures`.
    pub(crate) values: BTreeMap<String, (Given, Origin)>,
    /// By table and name, as in `providers` and `local`.
    pub(crate) named: BTreeMap<(&'static str, String), RawEntry>,
    /// Such entries that cannot be understood, and may have been meant to keep somebody from something.
    pub(crate) broken: BTreeMap<(&'static str, String), Origin>,
    pub(crate) permissions: RawPermissions,
}

/// A table with a name of the user's choice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RawEntry {
    pub(crate) origin: Origin,
    pub(crate) values: BTreeMap<&'static str, (Given, Origin)>,
}

/// What else a file with settings may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFile {
    /// Nothing: a `config.toml`.
    Alone,
    /// Servers: a file named on the command line.
    WithServers,
}

impl RawSettings {
    /// What a file says that cannot be read: nothing is known of its rules, so every tool asks.
    pub fn unreadable(origin: Origin) -> Self {
        let mut settings = Self::default();
        settings.permissions.broken.push(origin);
        settings
    }

    /// Whether something is broken that may have been meant to keep tools from running.
    pub fn has_broken_permissions(&self) -> bool {
        !self.permissions.broken.is_empty()
    }

    /// Takes over the rules that keep tools from running. Tells whether there were any.
    pub(crate) fn keep_strict_rules(&mut self, earlier: &Self) -> bool {
        let is_strict = |verdict: Verdict| verdict != Verdict::Allow;
        let mut is_kept = false;
        for (verdict, rule, origin) in &earlier.permissions.rules {
            let mut rules = self.permissions.rules.iter();
            let is_there = rules.any(|(kind, other, _)| (kind, other) == (verdict, rule));
            if is_strict(*verdict) && !is_there {
                let rule = (*verdict, rule.clone(), origin.clone());
                self.permissions.rules.push(rule);
                is_kept = true;
            }
        }
        if let (None, Some((verdict, _))) =
            (&self.permissions.default, &earlier.permissions.default)
            && is_strict(*verdict)
        {
            self.permissions
                .default
                .clone_from(&earlier.permissions.default);
            is_kept = true;
        }
        is_kept
    }

    /// Takes over values that are broken, and all of them if nothing could be read. Tells whether
    /// there were any.
    pub(crate) fn keep_values(&mut self, earlier: &Self, is_broken: impl Fn(&str) -> bool) -> bool {
        let is_unreadable = self.values.is_empty() && self.named.is_empty();
        let mut is_kept = false;
        for (path, value) in &earlier.values {
            let is_lost = is_broken(path) || (is_unreadable && self.has_broken_permissions());
            if is_lost && !self.values.contains_key(path) {
                self.values.insert(path.clone(), value.clone());
                is_kept = true;
            }
        }
        if is_unreadable && self.has_broken_permissions() && !earlier.named.is_empty() {
            self.named.clone_from(&earlier.named);
            is_kept = true;
        }
        is_kept
    }

    /// Takes over who may use a gateway and how much, where what is written now cannot be understood: a
    /// table that is misspelled is a table that is missing. Tells whether there was anything.
    pub(crate) fn keep_access(&mut self, earlier: &Self) -> bool {
        let mut is_kept = false;
        for (path, value) in &earlier.values {
            if is_owners_alone(path) && !self.values.contains_key(path) {
                self.values.insert(path.clone(), value.clone());
                is_kept = true;
            }
        }
        for (place, entry) in &earlier.named {
            if STRICT.contains(&place.0) && !self.named.contains_key(place) {
                self.broken.remove(place);
                self.named.insert(place.clone(), entry.clone());
                is_kept = true;
            }
        }
        is_kept
    }
}

/// The settings of a file, or nothing if there is no such file. One that cannot be read gives
/// [`RawSettings::unreadable`].
pub fn read_settings(path: &Path, kind: SettingsFile) -> (Option<RawSettings>, Vec<Problem>) {
    match read::text(path, read::MAX_FILE_BYTES) {
        Ok(Some(text)) => {
            let (settings, problems) = settings_of_text(&text, path, kind);
            (Some(settings), problems)
        }
        Ok(None) => (None, Vec::new()),
        Err(problem) => {
            let (settings, problems) = unreadable(*problem);
            (Some(settings), problems)
        }
    }
}

/// The settings in a text that was read from a file, so that what is approved is what counts.
pub fn settings_of_text(
    text: &str,
    path: &Path,
    kind: SettingsFile,
) -> (RawSettings, Vec<Problem>) {
    match read::parsed(path, text, Format::Toml) {
        Ok(root) => parse_settings(&root, &Origin::file(path), kind),
        Err(problem) => unreadable(*problem),
    }
}

fn unreadable(problem: Problem) -> (RawSettings, Vec<Problem>) {
    let settings = RawSettings::unreadable(problem.origin.clone());
    let notice = every_tool_asks(&problem.origin);
    (settings, vec![problem, notice])
}

/// The settings in a tree.
pub(crate) fn parse_settings(
    root: &Node,
    origin: &Origin,
    kind: SettingsFile,
) -> (RawSettings, Vec<Problem>) {
    let mut reader = Reader::new(origin);
    let mut settings = RawSettings::default();
    for member in root.members().unwrap_or_default() {
        if member.key == SCHEMA_KEY {
            continue;
        }
        if member.key == SERVERS {
            if kind == SettingsFile::Alone {
                let hint = "servers are written in mcp.toml beside this file".to_owned();
                let message = "this file has no servers";
                reader.report(member.line, SERVERS, message, Some(hint));
            }
            continue;
        }
        if member.key == OVERRIDES && kind == SettingsFile::WithServers {
            continue;
        }
        let Some(key) = reader.known(SETTINGS, "", member) else {
            if nearest(&member.key, ["permissions"]).is_empty() {
                continue;
            }
            settings.permissions.broken.push(origin.at(member.line));
            continue;
        };
        match &key.kind {
            SettingKind::Table(_) if key.name == "permissions" => {
                let read = permissions(&mut reader, member, PERMISSIONS);
                settings.permissions = merged(settings.permissions, read);
            }
            SettingKind::Table(keys) => table(&mut reader, key.name, keys, member, &mut settings),
            SettingKind::Named(keys) => named(&mut reader, key.name, keys, member, &mut settings),
            _ => {
                let origin = origin.at(member.line);
                if let Some(given) = reader.value(key, key.name, &member.node) {
                    settings.values.insert(key.name.to_owned(), (given, origin));
                }
            }
        }
    }
    let first_broken = settings.permissions.broken.first();
    let notice = first_broken.map(every_tool_asks);
    reader.problems.extend(notice);
    (settings, reader.problems)
}

const EVERY_TOOL_ASKS: &str =
    "rules about tools may be missing, so every tool asks until this is mended";
const EVERY_TOOL_IS_DENIED: &str =
    "rules about tools may be missing, so every tool is denied until this is mended";

fn every_tool_asks(origin: &Origin) -> Problem {
    Problem::warning(origin.clone(), EVERY_TOOL_ASKS).key("permissions")
}

/// In a file of the organization the same means more.
pub(crate) fn told_of_organization(problem: &mut Problem) {
    if problem.message == EVERY_TOOL_ASKS {
        EVERY_TOOL_IS_DENIED.clone_into(&mut problem.message);
    }
}

/// A misspelled table may stand before the right one.
fn merged(mut earlier: RawPermissions, mut read: RawPermissions) -> RawPermissions {
    read.broken.append(&mut earlier.broken);
    read
}

/// The values of a table, by their paths.
fn table(
    reader: &mut Reader<'_>,
    path: &str,
    keys: &'static [SettingKey],
    member: &Member,
    settings: &mut RawSettings,
) {
    let prefix = format!("{path}.");
    for member in reader.table(path, &member.node).unwrap_or_default() {
        let Some(key) = reader.known(keys, &prefix, member) else {
            continue;
        };
        let path = format!("{prefix}{}", key.name);
        match &key.kind {
            SettingKind::Named(keys) => match NAMED.into_iter().find(|known| *known == path) {
                Some(known) => named(reader, known, keys, member, settings),
                None => debug_assert!(false, "{path} is in the tables, but not read"),
            },
            SettingKind::Table(keys) => table(reader, &path, keys, member, settings),
            _ => {
                if let Some(given) = reader.value(key, &path, &member.node) {
                    let origin = reader.origin.at(member.line);
                    settings.values.insert(path, (given, origin));
                }
            }
        }
    }
}

/// An entry with anything wrong in it does not count at all: half of a provider would send a key to
/// the wrong place. Where that would allow more, it is known to be broken.
fn named(
    reader: &mut Reader<'_>,
    table: &'static str,
    keys: &'static [SettingKey],
    member: &Member,
    settings: &mut RawSettings,
) {
    for member in reader.table(table, &member.node).unwrap_or_default() {
        let prefix = format!("{table}.{}.", member.key);
        let errors_before = reader.problems.len();
        let mut values = BTreeMap::new();
        let path = format!("{table}.{}", member.key);
        for member in reader.table(&path, &member.node).unwrap_or_default() {
            let Some(key) = reader.known(keys, &prefix, member) else {
                continue;
            };
            let path = format!("{prefix}{}", key.name);
            if let Some(given) = reader.value(key, &path, &member.node) {
                values.insert(key.name, (given, reader.origin.at(member.line)));
            }
        }
        if reader.problems.len() == errors_before {
            match table {
                "providers" => provider_coherence(reader, &path, member.line, &values),
                PRINCIPALS => principal_coherence(reader, &path, member, &values),
                _ => {}
            }
        }
        let origin = reader.origin.at(member.line);
        let place = (table, member.key.clone());
        if reader.problems.len() == errors_before {
            settings.named.insert(place, RawEntry { origin, values });
        } else if STRICT.contains(&table) {
            settings.broken.insert(place, origin);
        }
    }
}

fn provider_coherence(
    reader: &mut Reader<'_>,
    path: &str,
    line: u32,
    values: &BTreeMap<&'static str, (Given, Origin)>,
) {
    let kind = values.get("kind").map(|(given, _)| given);
    if kind.is_none() {
        let message = "it has no `kind`";
        let words = super::ProviderKind::WORDS.join(", ");
        reader.report(line, path, message, Some(format!("one of {words}")));
    }
    let is_compatible = kind == Some(&Given::Text("openai-compatible".to_owned()));
    if is_compatible && !values.contains_key("base_url") {
        reader.error(line, path, "this kind needs `base_url`");
    }
    if values.contains_key("api_key") && values.contains_key("api_key_env") {
        let message = "it has both `api_key` and `api_key_env`";
        reader.error(line, path, message);
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|character: char| character.is_whitespace())
}

fn principal_coherence(
    reader: &mut Reader<'_>,
    path: &str,
    member: &Member,
    values: &BTreeMap<&'static str, (Given, Origin)>,
) {
    if member.key.is_empty() {
        let message = "nobody has an empty name";
        let hint = "`[gateway.principals.\"*\"]` means those who have no table".to_owned();
        reader.report(member.line, path, message, Some(hint));
    }
    let issuer = member.key.split_once(' ').map(|(_, issuer)| issuer);
    if member.key.starts_with(' ') || issuer.is_some_and(|issuer| !is_word(issuer)) {
        let message = "nobody has this name: names have no spaces";
        let hint = "who signs in elsewhere is named by their name there, one space, and the issuer, as in \
                    \"ana https://login.example.com\"";
        reader.report(member.line, path, message, Some(hint.to_owned()));
    }
    let admin = values.get("admin").map(|(given, _)| given);
    if member.key == OTHERS && admin == Some(&Given::Boolean(true)) {
        let message = "everybody who is let in could manage the gateway";
        let hint = "write `admin = true` under the names of those who may".to_owned();
        reader.report(member.line, &format!("{path}.admin"), message, Some(hint));
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
