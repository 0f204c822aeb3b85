//! All scopes together: one answer for each server name, and why.

mod earlier;
mod resolve;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cocode_core::{Narrowed, RuleSet, ServerSpec};

use crate::entry::Entry;
use crate::expand::Variables;
use crate::layers::{self, Override};
use crate::parse::Found;
use crate::plugins::{self, Plugin};
use crate::policy::{Policy, PolicyVerdict, bare_command};
use crate::problem::{Origin, Problem};
use crate::scope::{Place, Places, Scope, format_of};
use crate::settings::{AgentBounds, AgentSettings, RawSettings, SettingOrigin, Settings};
use crate::settings_files::{self, PendingSettings};
use crate::specify::{Base, specify};
use crate::trust::{Trust, TrustContent, TrustItem, TrustStore};

pub(crate) use earlier::Earlier;
pub use earlier::{Kept, KeptPart};
use resolve::{Resolver, overridden};

/// Everything that the files say, and what follows from it.
#[derive(Debug)]
pub struct Config {
    /// Every server that any file names, by name.
    pub servers: BTreeMap<String, Server>,
    /// The settings that belong to no server.
    pub settings: Settings,
    /// The settings files of the work tree that wait for approval.
    pub pending_settings: Vec<PendingSettings>,
    /// What the organization allows.
    pub policy: Policy,
    /// The plugins that the user added.
    pub plugins: Vec<Plugin>,
    /// Every file that was looked for, most important first.
    pub files: Vec<FileReport>,
    /// What is wrong with files as a whole, and with settings. What is wrong with a server is
    /// said there.
    pub problems: Vec<Problem>,
    /// Those of the problems that may have been meant to keep somebody out of a gateway, or to watch them.
    /// While there are any, a gateway should not begin, and one that runs goes on by what it knew.
    pub gateway_doubts: Vec<Problem>,
    /// The file that fixes all servers, if the organization has one.
    pub managed_by: Option<PathBuf>,
    /// The work tree that project files were looked for in.
    pub work_tree: Option<PathBuf>,
    /// What the user decided beside the entries.
    overrides: Vec<Override>,
    /// What each file with settings says.
    settings_by_file: BTreeMap<PathBuf, RawSettings>,
    /// What the user approved.
    pub(crate) trust: TrustStore,
    /// What counts as it was at an earlier reading.
    pub(crate) kept: Vec<Kept>,
}

/// A file that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Whose it is.
    pub scope: Scope,
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is there.
    pub exists: bool,
    /// How many servers it has.
    pub servers: usize,
}

/// One server: the entry that counts, what it comes to, and those that do not count.
#[derive(Debug)]
pub struct Server {
    /// The entry that counts.
    pub winner: Candidate,
    /// The entries that do not, most important first.
    pub others: Vec<(Candidate, Loss)>,
    /// How many of the others are more important than the one that counts.
    n_passed_over: usize,
    /// What it comes to.
    pub state: State,
    /// What the organization says to it, as far as that can be told.
    pub policy: Option<PolicyVerdict>,
    /// What the user decided beside the entry.
    pub overridden: Option<Override>,
}

/// One entry for a server.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Where it is from.
    pub scope: Scope,
    /// The plugin it came with.
    pub plugin: Option<PluginRoot>,
    /// What the file says.
    pub found: Found,
    /// Whether the user approved it.
    pub trust: Trust,
}

/// The plugin an entry came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRoot {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
}

/// Why an entry does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A more important scope has the server too.
    Shadowed,
    /// The user has not approved it.
    Pending,
    /// It is broken.
    Broken,
}

/// What a server comes to.
#[derive(Clone, Debug)]
pub enum State {
    /// It may be used.
    Ready(Box<ServerSpec>),
    /// It is switched off, here.
    Disabled(Origin),
    /// It came with a work tree or plugin, and the user has not approved it. Nothing of it is run.
    Pending,
    /// The organization does not want it.
    Blocked {
        /// Why, in a sentence.
        reason: String,
    },
    /// It cannot be used as it is written.
    Invalid(Vec<Problem>),
}

impl Config {
    /// Reads everything. Never fails: what cannot be used is said in the result.
    pub fn load(places: &Places, variables: Variables<'_>) -> Self {
        Self::load_after(places, variables, &Earlier::default())
    }

    /// Reads everything again. Where the policy, the user's overrides or rules for tools cannot be
    /// understood any more, what they said earlier still counts.
    pub(crate) fn load_after(places: &Places, variables: Variables<'_>, earlier: &Earlier) -> Self {
        let mut problems = Vec::new();
        let mut kept = Vec::new();
        let policy = earlier.policy(Policy::read(&places.policy()), &mut problems, &mut kept);
        let trust = TrustStore::load(places.approvals()).unwrap_or_else(|error| {
            let origin = Origin::file(places.approvals());
            problems.push(Problem::error(origin, error.to_string()));
            TrustStore::empty(places.approvals())
        });
        let mut gathered = Gathered {
            trust: &trust,
            earlier,
            kept,
            candidates: BTreeMap::new(),
            overrides: Vec::new(),
            files: Vec::new(),
            problems,
        };
        let managed = places.managed().into_iter();
        let managed: Vec<_> = managed.filter(|path| layers::may_exist(path)).collect();
        let managed_by = managed.first().cloned();
        let mut plugins = Vec::new();
        if managed_by.is_some() {
            for path in managed {
                let format = format_of(&path);
                gathered.file(&Place::new(Scope::Enterprise, path, format));
            }
        } else {
            for place in places.server_files() {
                gathered.file(&place);
            }
            if places.explicit.is_empty() {
                plugins = plugins::added(&places.plugins(), &mut gathered.problems);
                gathered.plugins(&plugins);
            }
        }
        let work_tree = places.work_tree();
        let Gathered {
            candidates,
            overrides,
            files,
            mut problems,
            mut kept,
            ..
        } = gathered;
        let resolver = Resolver {
            variables,
            policy: &policy,
            overrides: &overrides,
            work_tree: work_tree.as_deref(),
        };
        let servers = candidates
            .into_iter()
            .filter_map(|(name, candidates)| Some((name, resolver.server(candidates)?)))
            .collect();
        let read = settings_files::load(places, &trust, &earlier.settings, &mut problems);
        kept.extend(read.kept);
        Self {
            servers,
            settings: read.settings,
            pending_settings: read.pending,
            policy,
            plugins,
            files,
            problems,
            gateway_doubts: read.gateway_doubts,
            managed_by,
            work_tree,
            overrides,
            settings_by_file: read.by_file,
            trust,
            kept,
        }
    }

    /// What the user decided about an entry, beside it.
    pub(crate) fn overridden(&self, candidate: &Candidate) -> Option<&Override> {
        overridden(&self.overrides, self.work_tree.as_deref(), candidate)
    }

    /// The servers that may be used, in the order of their names.
    pub fn ready(&self) -> impl Iterator<Item = &ServerSpec> {
        self.servers
            .values()
            .filter_map(|server| match &server.state {
                State::Ready(spec) => Some(&**spec),
                _ => None,
            })
    }

    /// The rules for tools, of the organization and of all settings.
    pub fn rules(&self) -> RuleSet<SettingOrigin> {
        self.settings.permissions.rule_set(&self.policy)
    }

    /// What the organization lets anybody ask of an agent.
    pub fn agent_bounds(&self) -> AgentBounds {
        self.policy.agent_bounds()
    }

    /// What agents may do: the settings, within what the organization allows.
    pub fn agent(&self) -> AgentSettings {
        self.agent_bounds().applied_to(&self.settings.agent)
    }

    /// The rules for the tools of one server. Answers are remembered by its name, and a work tree or
    /// plugin gives its server any name it likes: there, no remembered answer allows anything.
    pub fn rules_for(&self, server: &str) -> RuleSet<SettingOrigin> {
        if self.remembers_answers_for(server) {
            return self.rules();
        }
        let permissions = self.settings.permissions.without_allowing_answers(server);
        permissions.rule_set(&self.policy)
    }

    /// The rules for the tools of one server when somebody uses them who has connected to a gateway. Their
    /// own rules only take away: what is denied to everybody is denied to them, what is asked of everybody
    /// is asked of them, and what neither their `allow` nor their `ask` names is denied, if they have an
    /// `allow`. No answer that was remembered answers for them what only they are asked.
    pub fn rules_of(&self, principal: &str, server: &str) -> Narrowed<SettingOrigin> {
        let own = self.settings.gateway.principal(principal);
        let own = own.map_or_else(RuleSet::new, |own| own.rules_for(server));
        Narrowed::new(self.rules_for(server), own)
    }

    /// Whether clients of every gateway have to say who they are, and where the organization says so.
    pub fn authentication_required(&self) -> Option<SettingOrigin> {
        self.policy.requires_authentication()
    }

    /// Whether what is answered about the tools of a server may be remembered: its name means one
    /// server, and the user or the organization gave it.
    pub fn remembers_answers_for(&self, server: &str) -> bool {
        let server = self.servers.get(server);
        server.is_some_and(|server| !server.winner.scope.needs_trust())
    }

    /// Whatever is wrong with files so that servers may be missing, or rules for tools.
    pub fn file_problems(&self) -> impl Iterator<Item = &Problem> {
        let of_plugins = self.plugins.iter().flat_map(|plugin| &plugin.problems);
        let has_servers = |problem: &Problem| {
            self.files
                .iter()
                .any(|file| *file.path == *problem.origin.file)
        };
        self.problems
            .iter()
            .chain(of_plugins)
            .filter(move |problem| problem.is_error() || has_servers(problem))
    }

    /// Whether a server that stands in no file may be used: why not, if not.
    pub fn refuses_unlisted(&self, spec: &ServerSpec) -> Option<String> {
        if let Some(file) = &self.managed_by {
            let file = file.display();
            return Some(format!(
                "all servers are fixed by your organization, in {file}"
            ));
        }
        match self.policy.verdict(spec) {
            PolicyVerdict::Allowed => None,
            PolicyVerdict::Blocked { reason, .. } => Some(reason),
        }
    }

    /// What the organization wrote that a user can get around: programs by name alone, in the policy
    /// and among the servers that it fixes.
    pub fn policy_warnings(&self) -> Vec<Problem> {
        let managed = self.servers.iter().filter_map(|(name, server)| {
            let Candidate { scope, found, .. } = &server.winner;
            let command = found.entry.command.as_deref()?;
            let is_managed = *scope == Scope::Enterprise && !found.is_broken();
            let problem = bare_command(found.origin_of("command"), command)?;
            is_managed.then(|| problem.server(name).key("command"))
        });
        let of_policy = self.policy.warnings().into_iter();
        of_policy.chain(managed).collect()
    }

    /// Everything that is wrong, servers included; those that are not used aside.
    pub fn all_problems(&self) -> Vec<&Problem> {
        let of_plugins = self.plugins.iter().flat_map(|plugin| &plugin.problems);
        let of_servers = self.servers.values().flat_map(Server::problems);
        let all = self.problems.iter().chain(self.policy.problems());
        all.chain(of_plugins).chain(of_servers).collect()
    }
}

impl Server {
    /// The entries that are more important than the one that counts, and do not count.
    pub fn passed_over(&self) -> &[(Candidate, Loss)] {
        self.others.get(..self.n_passed_over).unwrap_or_default()
    }

    /// What is wrong with its entries, the one that counts first.
    pub fn problems(&self) -> Vec<&Problem> {
        let mut problems: Vec<&Problem> = self.winner.found.problems.iter().collect();
        if let State::Invalid(more) = &self.state {
            problems.extend(
                more.iter()
                    .filter(|one| !self.winner.found.problems.contains(one)),
            );
        }
        let others = self.others.iter();
        problems.extend(others.flat_map(|(other, _)| &other.found.problems));
        problems
    }
}

impl State {
    /// The name, as scripts see it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::Disabled(_) => "disabled",
            Self::Pending => "pending",
            Self::Blocked { .. } => "blocked",
            Self::Invalid(_) => "invalid",
        }
    }
}

/// What an entry comes to by itself, wherever it is going to be written: what it takes to reach the
/// server, or everything that is wrong with it.
pub fn check_entry(
    name: &str,
    entry: &Entry,
    variables: Variables<'_>,
) -> Result<ServerSpec, Vec<Problem>> {
    let found = Found {
        name: name.to_owned(),
        entry: entry.clone(),
        origin: Origin::file("(given)"),
        lines: BTreeMap::new(),
        problems: Vec::new(),
    };
    specify(&found, variables, Base::Unknown)
}

/// What was read so far.
struct Gathered<'a> {
    trust: &'a TrustStore,
    earlier: &'a Earlier,
    kept: Vec<Kept>,
    candidates: BTreeMap<String, Vec<Candidate>>,
    overrides: Vec<Override>,
    files: Vec<FileReport>,
    problems: Vec<Problem>,
}

impl Gathered<'_> {
    fn file(&mut self, place: &Place) {
        let layer = layers::layer(place);
        if place.scope == Scope::Explicit && !layer.exists {
            let origin = Origin::file(&*place.path);
            self.problems
                .push(Problem::error(origin, "there is no such file"));
        }
        self.files.push(FileReport {
            scope: place.scope,
            path: place.path.clone(),
            exists: layer.exists,
            servers: layer.servers.len(),
        });
        let doubt = layer.problems.iter().find(|one| one.server.is_none());
        let earlier = self.earlier.overrides(&place.path, doubt, &layer.overrides);
        self.overrides.extend(earlier.overrides);
        self.kept.extend(earlier.kept);
        self.problems.extend(layer.problems);
        self.overrides.extend(layer.overrides);
        for found in layer.servers {
            self.candidate(place.scope, None, found);
        }
    }

    fn plugins(&mut self, plugins: &[Plugin]) {
        for plugin in plugins {
            self.files.push(FileReport {
                scope: Scope::Plugin,
                path: plugin.path.clone(),
                exists: plugin.path.is_dir(),
                servers: plugin.servers.len(),
            });
            if !plugin.enabled {
                continue;
            }
            let root = PluginRoot {
                name: plugin.name.clone(),
                path: plugin.path.clone(),
            };
            for found in &plugin.servers {
                self.candidate(Scope::Plugin, Some(root.clone()), found.clone());
            }
        }
    }

    fn candidate(&mut self, scope: Scope, plugin: Option<PluginRoot>, found: Found) {
        let trust = if scope.needs_trust() {
            self.trust.verdict(&TrustItem {
                file: &found.origin.file,
                name: &found.name,
                content: TrustContent::Server(&found.entry),
            })
        } else {
            Trust::Approved
        };
        let name = found.name.clone();
        self.candidates.entry(name).or_default().push(Candidate {
            scope,
            plugin,
            found,
            trust,
        });
    }
}
