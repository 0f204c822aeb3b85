//! Which entry of a name counts, and what it comes to.

use std::path::{Path, PathBuf};

use cocode_core::ServerSpec;

use super::{Candidate, Loss, Server, State};
use crate::expand::Variables;
use crate::layers::Override;
use crate::plugins::PLUGIN_ROOT_VARIABLES;
use crate::policy::{Policy, PolicyVerdict};
use crate::problem::Problem;
use crate::scope::Scope;
use crate::specify::{Base, specify};
use crate::trust::Trust;

/// What decides about a server.
pub(super) struct Resolver<'a> {
    pub(super) variables: Variables<'a>,
    pub(super) policy: &'a Policy,
    pub(super) overrides: &'a [Override],
    pub(super) work_tree: Option<&'a Path>,
}

impl Resolver<'_> {
    /// The candidates come most important first.
    pub(super) fn server(&self, candidates: Vec<Candidate>) -> Option<Server> {
        let n_passed_over = choose(&candidates)?;
        let mut others = Vec::new();
        let mut chosen = None;
        for (index, candidate) in candidates.into_iter().enumerate() {
            if index == n_passed_over {
                chosen = Some(candidate);
            } else {
                let loss = candidate.loss().unwrap_or(Loss::Shadowed);
                others.push((candidate, loss));
            }
        }
        let winner = chosen?;
        let overridden = overridden(self.overrides, self.work_tree, &winner).cloned();
        let spec = if winner.found.is_broken() {
            Err(broken(&winner, &others))
        } else {
            winner.specify(self.variables)
        };
        let policy = spec.as_ref().ok().map(|spec| self.policy.verdict(spec));
        let state = state(&winner, overridden.as_ref(), spec, policy.as_ref());
        Some(Server {
            winner,
            others,
            n_passed_over,
            state,
            policy,
            overridden,
        })
    }
}

/// What the user decided about an entry, beside it.
pub(super) fn overridden<'a>(
    overrides: &'a [Override],
    work_tree: Option<&Path>,
    winner: &Candidate,
) -> Option<&'a Override> {
    let plugin = winner.plugin.as_ref().map(|plugin| plugin.name.as_str());
    let is_foreign = matches!(winner.scope, Scope::Project | Scope::Plugin);
    // By any path: the user may have come through a link.
    let is_work_tree = |wanted: &Path| {
        work_tree.is_some_and(|tree| tree == wanted || real_path(tree) == real_path(wanted))
    };
    // The last one counts, as it would in any list of decisions.
    overrides.iter().rev().find(|one| {
        is_foreign
            && one.server == winner.found.name
            && one
                .plugin
                .as_deref()
                .is_none_or(|wanted| plugin == Some(wanted))
            && one.project.as_deref().is_none_or(is_work_tree)
    })
}

impl Candidate {
    /// What it takes to reach the server, wherever it is used, or everything that is wrong with it.
    pub fn specify(&self, variables: Variables<'_>) -> Result<ServerSpec, Vec<Problem>> {
        let root = self.plugin.as_ref().map(|plugin| plugin.path.as_path());
        let variables = |name: &str| match root {
            Some(root) if PLUGIN_ROOT_VARIABLES.contains(&name) => {
                Some(root.to_string_lossy().into_owned())
            }
            _ => variables(name),
        };
        // A path in a project file means the same wherever in the project the user is. What was
        // approved is the file behind all links, so its programs are there, too: a link from another
        // work tree to an approved file must not run what lies beside the link.
        let file = real_path(&self.found.origin.file);
        let beside = file.parent();
        let folder = root.map(real_path);
        let base = match self.scope {
            Scope::Local | Scope::Project => beside.map(Base::Start),
            Scope::Plugin => folder.as_deref().or(beside).map(Base::Start),
            Scope::Enterprise | Scope::Explicit | Scope::User => beside.map(Base::Beside),
        };
        specify(&self.found, &variables, base.unwrap_or(Base::Unknown))
    }

    /// Whether it is broken, and no stranger's: what is used instead may be another system than the
    /// one that was meant. A file that nobody approved may not keep others from working.
    fn stands_in_the_way(&self) -> bool {
        let is_own = match self.trust {
            Trust::Approved | Trust::Changed(_) => true,
            Trust::New | Trust::Refused => false,
        };
        self.found.is_broken() && is_own
    }

    /// Why it cannot be the one that counts, if so.
    fn loss(&self) -> Option<Loss> {
        if self.found.is_broken() {
            Some(Loss::Broken)
        } else if self.trust == Trust::Approved {
            None
        } else {
            Some(Loss::Pending)
        }
    }
}

/// The path without links, or the path as it is if it leads nowhere.
fn real_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_gone| path.to_owned())
}

/// The first that can count; else the first that waits for approval; else the first at all. But
/// never past a broken one of the user's own.
fn choose(candidates: &[Candidate]) -> Option<usize> {
    let first = |wanted: Option<Loss>| {
        let mut losses = candidates.iter().map(Candidate::loss);
        losses.position(|loss| loss == wanted)
    };
    let best = first(None)
        .or_else(|| first(Some(Loss::Pending)))
        .or_else(|| first(Some(Loss::Broken)))?;
    let mut above = candidates.iter().take(best);
    let stopped = above.position(Candidate::stands_in_the_way);
    Some(stopped.unwrap_or(best))
}

/// What is wrong with an entry that nothing is used instead of.
fn broken(winner: &Candidate, others: &[(Candidate, Loss)]) -> Vec<Problem> {
    let mut problems = winner.found.problems.clone();
    let next = others.iter().find(|(_, loss)| *loss == Loss::Shadowed);
    if let Some((next, _)) = next {
        let name = &winner.found.name;
        let message = "nothing else of this name is used until that is mended";
        let origin = winner.found.origin.clone();
        let hint = format!(
            "mend the entry, or remove it to use the one at {}",
            next.found.origin
        );
        problems.push(Problem::error(origin, message).server(name).hint(hint));
    }
    problems
}

fn state(
    winner: &Candidate,
    overridden: Option<&Override>,
    spec: Result<ServerSpec, Vec<Problem>>,
    policy: Option<&PolicyVerdict>,
) -> State {
    if !winner.found.is_broken() && winner.trust != Trust::Approved {
        return State::Pending;
    }
    let switched_off = match overridden {
        Some(one) => (!one.enabled).then(|| one.origin.clone()),
        None => {
            (winner.found.entry.enabled == Some(false)).then(|| winner.found.origin_of("enabled"))
        }
    };
    if let (Some(origin), false) = (switched_off, winner.found.is_broken()) {
        return State::Disabled(origin);
    }
    match (spec, policy) {
        (Err(problems), _) => State::Invalid(problems),
        (Ok(_), Some(PolicyVerdict::Blocked { reason, .. })) => State::Blocked {
            reason: reason.clone(),
        },
        (Ok(spec), _) => State::Ready(Box::new(spec)),
    }
}
