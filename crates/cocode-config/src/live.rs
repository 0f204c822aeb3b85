//! Configuration that is read again while it is used: which servers count now, what changed, and
//! what goes on as it was because what is written now cannot be understood.
//!
//! Reading again gives what a start would give, with one exception: **what cannot be understood says
//! nothing**. Whoever saves a file in the middle of an edit, or with a comma too few, did not mean
//! to stop every server in it.
//!
//! - A server that can be used as it is written counts as it is written, at once.
//! - A server that was removed, switched off or denied is gone at once, as is one whose file is gone.
//!   (A file named on the command line has to be there: if it is not, its servers stay.)
//! - A server goes on as it was if its entry is broken now, or if it is missing from a file with
//!   which something is wrong. But only if the organization and the user still allow it as it was:
//!   policy, approvals and switches count as they are now. And only as long as its own file does
//!   not say otherwise: if that has another entry now, or none, a broken entry elsewhere brings the
//!   old one not back.
//! - An entry of a work tree or plugin that was changed **waits for approval again, and the server
//!   stops until it is given**. What ran was approved, but not together with what the file says
//!   now; the next start would not run it, so it does not go on unseen either. The change is listed
//!   as [`Gone::Pending`], and whoever uses it should say so and offer to approve. Only a broken
//!   entry, which cannot be approved, leaves the approved one in place, and a withdrawn approval
//!   ends that too.
//! - A policy that cannot be understood leaves the last good one in place. Where none is known,
//!   it blocks everything, as at any start.
//! - Overrides of a file with which something is wrong still count, so that nothing that the user
//!   switched off comes on because of a typing error.
//! - Settings whose rules cannot be understood make every tool ask, as at any start, and rules that
//!   denied or asked still do. Values that cannot be read are those of before.
//! - A list of approvals that cannot be read approves nothing: only cocode writes it.
//!
//! Nothing here watches anything: see [`Watcher`](crate::Watcher). Nothing is ever connected or
//! stopped here either.

mod decide;
mod files;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cocode_core::ServerSpec;

use crate::config::{Config, Earlier, Kept, State};
use crate::problem::{Origin, Problem};
use crate::scope::Places;

use decide::{Decided, Good, decide};

/// Where values of variables come from, for as long as the configuration is used.
type OwnVariables = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The configuration as it is, and what of it was good before.
pub struct Live {
    places: Places,
    variables: OwnVariables,
    /// Never changed: another takes its place.
    config: Arc<Config>,
    servers: BTreeMap<String, Good>,
    kept: Vec<Kept>,
}

/// What came of reading again.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Reload {
    /// The servers that are other than before, by name.
    pub changes: Vec<ServerChange>,
    /// Whether settings, rules for tools or the policy are other than before.
    pub settings_changed: bool,
    /// Everything that counts as it was, whether or not it did so already.
    pub kept: Vec<Kept>,
    /// What is wrong now and was not before.
    pub problems: Vec<Problem>,
}

/// A server that is other than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerChange {
    /// Its name.
    pub server: String,
    /// What became of it.
    pub kind: ChangeKind,
}

/// What became of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It may be used now.
    Added,
    /// It is to be used in another way.
    Changed {
        /// Whether a connection that was made before does not serve any more.
        needs_restart: bool,
    },
    /// It may not be used any more.
    Removed(Gone),
}

/// Why a server may not be used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// No file has it.
    Removed,
    /// It is switched off, here.
    Disabled(Origin),
    /// It was changed, or its approval was withdrawn, and the user has not approved it.
    Pending,
    /// The organization does not want it.
    Blocked {
        /// Why, in a sentence.
        reason: String,
    },
    /// It cannot be used as it is written, nor as it was.
    Invalid,
}

impl Live {
    /// Reads everything for the first time. Whoever watches the files does best to begin before
    /// that, so that no change is missed.
    pub fn new(
        places: Places,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let config = Config::load(&places, &variables);
        let Decided { servers, kept, .. } = decide(&BTreeMap::new(), &config, &places);
        Self {
            places,
            variables: Box::new(variables),
            config: Arc::new(config),
            servers,
            kept,
        }
    }

    /// Reads everything again, and says what is other than before.
    pub fn reload(&mut self) -> Reload {
        let earlier = Earlier::of(&self.config);
        let config = Config::load_after(&self.places, &*self.variables, &earlier);
        let decided = decide(&self.servers, &config, &self.places);
        let before = self.config.all_problems();
        let problems = config.all_problems().into_iter();
        let problems = problems.filter(|problem| !before.contains(problem));
        let reload = Reload {
            changes: changes(&self.servers, &decided, &config),
            settings_changed: self.config.settings != config.settings
                || self.config.policy != config.policy,
            kept: decided.kept.clone(),
            problems: problems.cloned().collect(),
        };
        self.config = Arc::new(config);
        self.servers = decided.servers;
        self.kept = decided.kept;
        reload
    }

    /// The servers that count now, in the order of their names.
    pub fn specs(&self) -> impl Iterator<Item = &ServerSpec> {
        self.servers.values().map(|good| &good.spec)
    }

    /// What the files say now, and what follows from it. A server that goes on as it was is broken
    /// or missing here: to know what to use, see [`specs`](Self::specs).
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The same, for whoever keeps it while the files are read again.
    pub fn shared_config(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    /// What counts as it was.
    pub fn kept(&self) -> &[Kept] {
        &self.kept
    }

    /// Where everything is.
    pub fn places(&self) -> &Places {
        &self.places
    }
}

impl Reload {
    /// Whether there is nothing to do and nothing to tell.
    pub fn is_quiet(&self) -> bool {
        let Self {
            changes,
            settings_changed,
            kept,
            problems,
        } = self;
        changes.is_empty() && !settings_changed && kept.is_empty() && problems.is_empty()
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Live")
            .field("places", &self.places)
            .field("servers", &self.servers.keys())
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

fn changes(
    before: &BTreeMap<String, Good>,
    decided: &Decided,
    config: &Config,
) -> Vec<ServerChange> {
    let after = &decided.servers;
    let gone = |name: &String| {
        let refused = decided.refused.get(name).cloned();
        refused.unwrap_or_else(|| gone(name, config))
    };
    let of_names = |name: &String| match (before.get(name), after.get(name)) {
        (None, Some(_)) => Some(ChangeKind::Added),
        (Some(_), None) => Some(ChangeKind::Removed(gone(name))),
        (Some(old), Some(new)) if old.spec != new.spec => Some(ChangeKind::Changed {
            needs_restart: old.spec.needs_restart(&new.spec),
        }),
        _ => None,
    };
    let added = after.keys().filter(|name| !before.contains_key(*name));
    let mut names: Vec<&String> = before.keys().chain(added).collect();
    names.sort_unstable();
    let changes = names.into_iter().filter_map(|name| {
        let kind = of_names(name)?;
        let server = name.clone();
        Some(ServerChange { server, kind })
    });
    changes.collect()
}

fn gone(name: &str, config: &Config) -> Gone {
    match config.servers.get(name).map(|server| &server.state) {
        None => Gone::Removed,
        Some(State::Disabled(origin)) => Gone::Disabled(origin.clone()),
        Some(State::Pending) => Gone::Pending,
        Some(State::Blocked { reason }) => Gone::Blocked {
            reason: reason.clone(),
        },
        // One that is ready is not gone.
        Some(State::Invalid(_) | State::Ready(_)) => Gone::Invalid,
    }
}

/// One sentence without its full stop.
impl fmt::Display for ServerChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "server `{}` ", crate::visible(&self.server))?;
        match &self.kind {
            ChangeKind::Added => formatter.write_str("is new"),
            ChangeKind::Changed {
                needs_restart: true,
            } => formatter.write_str("has changed, and is started anew"),
            ChangeKind::Changed {
                needs_restart: false,
            } => formatter.write_str("has changed, and goes on"),
            ChangeKind::Removed(Gone::Removed) => formatter.write_str("was removed"),
            ChangeKind::Removed(Gone::Disabled(origin)) => {
                write!(formatter, "was switched off at {origin}")
            }
            ChangeKind::Removed(Gone::Pending) => {
                formatter.write_str("is not approved as it is now, and waits for approval")
            }
            ChangeKind::Removed(Gone::Blocked { reason }) => {
                write!(formatter, "is blocked: {reason}")
            }
            ChangeKind::Removed(Gone::Invalid) => {
                formatter.write_str("cannot be used as it is written, nor as it was")
            }
        }
    }
}
