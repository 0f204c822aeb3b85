//! Which servers count after a reading: those that can be used as they are written, and of those
//! before it the ones that nothing that can be understood has changed.

use std::collections::BTreeMap;
use std::path::Path;

use cocode_core::ServerSpec;

use super::Gone;
use crate::config::{Candidate, Config, Kept, KeptPart, PluginRoot, Server, State};
use crate::policy::PolicyVerdict;
use crate::problem::{Origin, Problem};
use crate::scope::{Places, Scope};
use crate::trust::{TrustContent, TrustItem};

/// A server as it was last understood.
#[derive(Clone, Debug)]
pub(super) struct Good {
    pub(super) spec: ServerSpec,
    /// The entry it was made of.
    source: Candidate,
}

/// What came of a reading.
pub(super) struct Decided {
    /// The servers that count, by name.
    pub(super) servers: BTreeMap<String, Good>,
    /// Everything that counts as it was.
    pub(super) kept: Vec<Kept>,
    /// The servers that would count as they were, if somebody had not decided otherwise.
    pub(super) refused: BTreeMap<String, Gone>,
}

/// The servers that count now, after those that counted before.
pub(super) fn decide(before: &BTreeMap<String, Good>, config: &Config, places: &Places) -> Decided {
    let mut servers = BTreeMap::new();
    for (name, server) in &config.servers {
        if let State::Ready(spec) = &server.state {
            let good = Good {
                spec: (**spec).clone(),
                source: server.winner.clone(),
            };
            servers.insert(name.clone(), good);
        }
    }
    let mut kept = config.kept.clone();
    let mut refused = BTreeMap::new();
    let now = Now { config, places };
    for (name, good) in before {
        if servers.contains_key(name) {
            continue;
        }
        let Some(because) = now.doubt(name, good) else {
            continue;
        };
        if let Some(gone) = now.objection(name, good) {
            refused.insert(name.clone(), gone);
            continue;
        }
        servers.insert(name.clone(), good.clone());
        let what = KeptPart::Server(name.clone());
        let because = because.clone();
        kept.push(Kept { what, because });
    }
    Decided {
        servers,
        kept,
        refused,
    }
}

/// What the files say now.
struct Now<'a> {
    config: &'a Config,
    places: &'a Places,
}

impl Now<'_> {
    /// What cannot be understood, if that is why a server does not count any more.
    fn doubt(&self, name: &str, good: &Good) -> Option<&Problem> {
        let server = self.config.servers.get(name);
        let problem = match server.map(|server| &server.state) {
            Some(State::Invalid(problems)) => problems.iter().find(|problem| problem.is_error()),
            // A stranger's entry that nobody approved keeps no other from working.
            None | Some(State::Pending) => None,
            // Somebody decided that.
            Some(State::Ready(_) | State::Disabled(_) | State::Blocked { .. }) => return None,
        };
        match server.and_then(|server| same_place(server, &good.source)) {
            Some(entry) if entry.is_winner => problem,
            // Nothing changed here, and a broken entry elsewhere would count instead of it.
            Some(entry) if entry.candidate.found.entry == good.source.found.entry => problem,
            Some(entry) => {
                let mut problems = entry.candidate.found.problems.iter();
                problems.find(|problem| problem.is_error())
            }
            None => self.file_doubt(&good.source),
        }
    }

    /// What is wrong with the file of an entry, so that the entry may be missing for it.
    fn file_doubt(&self, source: &Candidate) -> Option<&Problem> {
        let config = self.config;
        if config.managed_by.is_some() && source.scope != Scope::Enterprise {
            return None;
        }
        if let Some(root) = &source.plugin {
            return self.plugin_doubt(root);
        }
        let file = &source.found.origin.file;
        let is_looked_at = config.files.iter().any(|report| *report.path == **file);
        about(file, &config.problems).filter(|_| is_looked_at)
    }

    fn plugin_doubt(&self, root: &PluginRoot) -> Option<&Problem> {
        let mut plugins = self.config.plugins.iter();
        match plugins.find(|plugin| plugin.path == root.path) {
            Some(plugin) if !plugin.enabled => None,
            Some(plugin) => {
                let mut problems = plugin.problems.iter();
                problems.find(|problem| problem.server.is_none())
            }
            None => about(&self.places.plugins(), &self.config.problems),
        }
    }

    /// Why a server may not go on as it was, by everything that is decided now.
    fn objection(&self, name: &str, good: &Good) -> Option<Gone> {
        let Good { spec, source } = good;
        let config = self.config;
        let item = TrustItem {
            file: &source.found.origin.file,
            name,
            content: TrustContent::Server(&source.found.entry),
        };
        if source.scope.needs_trust() && !config.trust.verdict(&item).is_approved() {
            return Some(Gone::Pending);
        }
        if let Some(origin) = self.switched_off(name, source) {
            return Some(Gone::Disabled(origin));
        }
        match config.policy.verdict(spec) {
            PolicyVerdict::Allowed => None,
            PolicyVerdict::Blocked { reason, .. } => Some(Gone::Blocked { reason }),
        }
    }

    /// Where a server is switched off. A broken entry may still say so.
    fn switched_off(&self, name: &str, source: &Candidate) -> Option<Origin> {
        if let Some(one) = self.config.overridden(source) {
            return (!one.enabled).then(|| one.origin.clone());
        }
        let server = self.config.servers.get(name)?;
        let found = &same_place(server, source)?.candidate.found;
        (found.entry.enabled == Some(false)).then(|| found.origin_of("enabled"))
    }
}

/// An entry for a server, and whether it is the one that counts.
#[derive(Clone, Copy)]
struct Standing<'a> {
    candidate: &'a Candidate,
    is_winner: bool,
}

/// The entry that stands where another one stood.
fn same_place<'a>(server: &'a Server, source: &Candidate) -> Option<Standing<'a>> {
    let winner = Standing {
        candidate: &server.winner,
        is_winner: true,
    };
    let others = server.others.iter().map(|(candidate, _)| Standing {
        candidate,
        is_winner: false,
    });
    let is_same = |one: &Standing<'_>| {
        let Candidate {
            scope,
            plugin,
            found,
            trust: _,
        } = one.candidate;
        let root = |plugin: &Option<PluginRoot>| plugin.as_ref().map(|root| root.path.clone());
        *scope == source.scope
            && root(plugin) == root(&source.plugin)
            && found.origin.file == source.found.origin.file
    };
    std::iter::once(winner).chain(others).find(is_same)
}

/// What is wrong with a file as a whole, so that something of it may be missing.
fn about<'a>(file: &Path, problems: &'a [Problem]) -> Option<&'a Problem> {
    let mut problems = problems.iter();
    problems.find(|problem| *problem.origin.file == *file && problem.server.is_none())
}
