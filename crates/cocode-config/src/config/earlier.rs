//! What was understood at an earlier reading, and what of it still counts where a file cannot be
//! understood any more: never less strict than either reading.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Config;
use crate::layers::Override;
use crate::policy::Policy;
use crate::problem::Problem;
use crate::settings::RawSettings;

/// The last good reading of everything but servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Earlier {
    policy: Policy,
    overrides: Vec<Override>,
    pub(crate) settings: BTreeMap<PathBuf, RawSettings>,
}

/// Something that counts as it was, because what is written there now cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What counts as it was.
    pub what: KeptPart,
    /// What cannot be understood, and where.
    pub because: Problem,
}

/// What may count as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KeptPart {
    /// A server, by its name.
    Server(String),
    /// What the organization allows.
    Policy,
    /// Which servers of others the user switched on and off.
    Overrides,
    /// Settings of a file: its rules that deny or ask, and values that cannot be read now.
    Settings,
}

/// Overrides of a file that still count, besides those it has now.
#[derive(Default)]
pub(super) struct EarlierOverrides {
    pub(super) overrides: Vec<Override>,
    pub(super) kept: Option<Kept>,
}

impl Earlier {
    /// What is known after another reading.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            policy: config.policy.clone(),
            overrides: config.overrides.clone(),
            settings: config.settings_by_file.clone(),
        }
    }

    /// The policy that counts. One that is broken blocks everything, as at any start, unless a good
    /// one is known: that one is what its author last said and could be understood.
    pub(super) fn policy(
        &self,
        now: Policy,
        problems: &mut Vec<Problem>,
        kept: &mut Vec<Kept>,
    ) -> Policy {
        let is_known = self.policy.is_present() && !self.policy.is_broken();
        let (true, true, Some(because)) = (is_known, now.is_broken(), now.problems().first())
        else {
            return now;
        };
        kept.push(Kept {
            what: KeptPart::Policy,
            because: because.clone(),
        });
        problems.extend(now.problems().iter().cloned());
        self.policy.clone()
    }

    /// Overrides of a file that is in doubt: those that it had count unless it now says otherwise.
    pub(super) fn overrides(
        &self,
        file: &Path,
        doubt: Option<&Problem>,
        now: &[Override],
    ) -> EarlierOverrides {
        let Some(because) = doubt else {
            return EarlierOverrides::default();
        };
        let is_gone = |one: &&Override| {
            *one.origin.file == *file && !now.iter().any(|other| one.is_same(other))
        };
        let overrides: Vec<Override> = self.overrides.iter().filter(is_gone).cloned().collect();
        let kept = (!overrides.is_empty()).then(|| Kept {
            what: KeptPart::Overrides,
            because: because.clone(),
        });
        EarlierOverrides { overrides, kept }
    }
}

impl Override {
    /// Whether both say the same, wherever they stand.
    fn is_same(&self, other: &Self) -> bool {
        let Self {
            server,
            project,
            plugin,
            enabled,
            origin: _,
        } = self;
        *server == other.server
            && *project == other.project
            && *plugin == other.plugin
            && *enabled == other.enabled
    }
}

impl fmt::Display for KeptPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => write!(formatter, "server `{}`", crate::visible(name)),
            Self::Policy => formatter.write_str("the policy"),
            Self::Overrides => formatter.write_str("what you switched on and off"),
            Self::Settings => formatter.write_str("what can be kept of the settings"),
        }
    }
}

/// One sentence without its full stop.
impl fmt::Display for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, because } = self;
        write!(
            formatter,
            "{what} counts as before until this is mended: {because}"
        )
    }
}
