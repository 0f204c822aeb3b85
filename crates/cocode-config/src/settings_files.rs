//! Finds the settings files of all scopes, asks whether those of the work tree are approved, and
//! brings them together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::{Kept, KeptPart};
use crate::entry::Text;
use crate::problem::Problem;
use crate::read;
use crate::scope::{Place, Places, Scope};
use crate::settings::{
    LayerTrust, RawSettings, Settings, SettingsFile, SettingsLayer, is_about_access,
    merge_settings, read_settings, settings_of_text, told_of_organization,
};
use crate::trust::{Trust, TrustContent, TrustItem, TrustStore};

/// Settings of a work tree that the user has not approved.
#[derive(Clone, Debug)]
pub struct PendingSettings {
    /// The file.
    pub path: PathBuf,
    /// Why it waits.
    pub trust: Trust,
    /// Not shown by accident: people write secrets into any file.
    text: Text,
    name: &'static str,
}

impl PendingSettings {
    /// What the file says.
    pub fn text(&self) -> &str {
        &self.text.0
    }

    /// The name under which the file is approved.
    pub fn name(&self) -> &str {
        self.name
    }

    /// What is to be approved.
    pub fn item(&self) -> TrustItem<'_> {
        TrustItem {
            file: &self.path,
            name: self.name,
            content: TrustContent::File(self.text.0.as_bytes()),
        }
    }
}

/// What all files come to.
pub(crate) struct Read {
    pub(crate) settings: Settings,
    /// Those that wait for approval.
    pub(crate) pending: Vec<PendingSettings>,
    /// What each file says, with what was kept.
    pub(crate) by_file: BTreeMap<PathBuf, RawSettings>,
    pub(crate) kept: Vec<Kept>,
    /// What is wrong and may have been meant to keep somebody out of a gateway.
    pub(crate) gateway_doubts: Vec<Problem>,
}

/// The settings of all files. `earlier` is what they said when they were read before.
pub(crate) fn load(
    places: &Places,
    trust: &TrustStore,
    earlier: &BTreeMap<PathBuf, RawSettings>,
    problems: &mut Vec<Problem>,
) -> Read {
    let mut layers = Vec::new();
    let mut pending = Vec::new();
    let mut by_file = BTreeMap::new();
    let mut kept = Vec::new();
    let mut gateway_doubts = Vec::new();
    for Place { scope, path, .. } in places.settings_files() {
        let kind = match scope {
            Scope::Explicit => SettingsFile::WithServers,
            _ => SettingsFile::Alone,
        };
        // Read once, so that what is approved is what counts.
        let text = read::text(&path, read::MAX_FILE_BYTES).ok().flatten();
        let (settings, mut found) = match &text {
            Some(text) => {
                let (settings, found) = settings_of_text(text, &path, kind);
                (Some(settings), found)
            }
            None => read_settings(&path, kind),
        };
        let mut settings = settings;
        if let (Some(settings), Some(earlier)) = (&mut settings, earlier.get(&path)) {
            kept.extend(keep(settings, earlier, scope, &found));
        }
        // A work tree says nothing about that, so nothing can be missing from its files.
        if !scope.needs_trust() {
            gateway_doubts.extend(found.iter().filter(|one| is_about_access(one)).cloned());
        }
        // What is wrong with such a file was said when its servers were read.
        if scope == Scope::Explicit {
            found.retain(|problem| !problems.iter().any(|said| is_same(said, problem)));
        }
        if scope == Scope::Enterprise {
            found.iter_mut().for_each(told_of_organization);
        }
        problems.extend(found);
        let Some(settings) = settings else { continue };
        by_file.insert(path.clone(), settings.clone());
        let trust = layer_trust(scope, path, text, trust, &mut pending);
        layers.push(layer(scope, trust, settings));
    }
    let (settings, found) = merge_settings(&layers);
    let is_theirs = |problem: &Problem| {
        let mut files = places.settings_files().into_iter();
        files.any(|place| *place.path == *problem.origin.file && place.scope.needs_trust())
    };
    let doubts = found.iter().filter(|one| is_about_access(one));
    gateway_doubts.extend(doubts.filter(|one| !is_theirs(one)).cloned());
    problems.extend(found);
    Read {
        settings,
        pending,
        by_file,
        kept,
        gateway_doubts,
    }
}

/// Puts into the settings of a file what cannot be understood of them now, as it was understood
/// earlier: rules that keep tools from running, and values of nobody who would have to be trusted
/// again.
fn keep(
    settings: &mut RawSettings,
    earlier: &RawSettings,
    scope: Scope,
    found: &[Problem],
) -> Option<Kept> {
    let because = found.iter().find(|problem| problem.is_error())?;
    let mut is_kept = settings.has_broken_permissions() && settings.keep_strict_rules(earlier);
    if !scope.needs_trust() {
        let is_broken = |path: &str| {
            let mut keys = found.iter().filter_map(|problem| problem.key.as_deref());
            keys.any(|key| {
                let rest = key.strip_prefix(path);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
            })
        };
        is_kept |= settings.keep_values(earlier, is_broken);
        if found.iter().any(is_about_access) {
            is_kept |= settings.keep_access(earlier);
        }
    }
    is_kept.then(|| Kept {
        what: KeptPart::Settings,
        because: because.clone(),
    })
}

/// Whether two problems are one, whatever is advised.
fn is_same(one: &Problem, other: &Problem) -> bool {
    one.origin == other.origin && one.key == other.key && one.message == other.message
}

fn layer(scope: Scope, trust: LayerTrust, settings: RawSettings) -> SettingsLayer {
    let scope = scope.as_str();
    SettingsLayer {
        scope,
        trust,
        settings,
    }
}

fn layer_trust(
    scope: Scope,
    path: PathBuf,
    text: Option<String>,
    trust: &TrustStore,
    pending: &mut Vec<PendingSettings>,
) -> LayerTrust {
    let name = match scope {
        Scope::Enterprise => return LayerTrust::Organization,
        Scope::Explicit | Scope::User | Scope::Plugin => return LayerTrust::Own,
        Scope::Local => "config.local.toml",
        Scope::Project => "config.toml",
    };
    // A file that cannot be read is nothing that could be approved.
    let Some(text) = text else {
        return LayerTrust::Unapproved;
    };
    let mut waiting = PendingSettings {
        path,
        trust: Trust::New,
        text: Text(text),
        name,
    };
    waiting.trust = trust.verdict(&waiting.item());
    if waiting.trust == Trust::Approved {
        return LayerTrust::Approved;
    }
    pending.push(waiting);
    LayerTrust::Unapproved
}
