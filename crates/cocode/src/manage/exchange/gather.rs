//! Finds the servers of other tools, and decides for each what would be done with it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use cocode_config::{
    Config, Entry, Foreign, Origin, Place, PlaceScope, Problem, Scope, Tool, check_entry,
    read_foreign,
};

use super::{homes, is_in_work_tree, note, plain_secrets, read_text, real_path, tool};
use crate::args::manage::ImportArgs;
use crate::environment::text_variable;
use crate::error::{CliError, Code};
use crate::itself::{gateways, is_cocode};
use crate::workspace::{Workspace, with_problems};

/// What is done with a server of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    Replace,
    /// It is there, and says the same.
    Same,
    /// It is there, and says something else.
    Differs,
    /// An earlier one has the name already.
    Duplicate,
    /// We read the file ourselves.
    InUse,
    /// It is cocode, which would serve itself.
    Itself,
    /// It came with the work tree, and would be used without approval.
    Unnamed,
    /// The organization does not want it.
    Blocked,
    /// It cannot be understood.
    Broken,
    /// It could not be written.
    Failed,
}

/// A server of another tool.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) tool: Tool,
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// Where it goes.
    pub(crate) target: Option<(Scope, PathBuf)>,
    pub(crate) entry: Entry,
    pub(crate) action: Action,
    pub(crate) reason: Option<String>,
    /// What does not come along, and what to know.
    pub(crate) notes: Vec<String>,
    /// Whether it was the user's own, and so needs no approval.
    pub(crate) is_own: bool,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) rows: Vec<Row>,
    /// Files that cannot be used.
    pub(crate) problems: Vec<Problem>,
    /// The files that exist.
    pub(crate) files: Vec<(Tool, PathBuf)>,
}

impl Action {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Duplicate => "duplicate",
            Self::InUse => "in-use",
            Self::Itself => "itself",
            Self::Unnamed => "unnamed",
            Self::Blocked => "blocked",
            Self::Broken => "broken",
            Self::Failed => "failed",
        }
    }

    /// Whether something is to be written.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Add | Self::Replace)
    }
}

/// Looks for servers, and decides about each.
pub(crate) fn gather(
    args: &ImportArgs,
    config: &Config,
    workspace: &Workspace,
) -> Result<Gathered, CliError> {
    let named: Vec<Tool> = args
        .from
        .iter()
        .map(|word| tool(word))
        .collect::<Result<_, _>>()?;
    let mut gathered = Gathered::default();
    for Source {
        tool,
        place,
        is_own,
    } in sources(args, &named, workspace)?
    {
        let text = match read_text(&place.path) {
            Ok(Some(text)) => text,
            Ok(None) if args.file.is_some() => {
                let message = format!("there is no file `{}`", place.path.display());
                return Err(CliError::new(Code::FileError, message));
            }
            Ok(None) => continue,
            Err(problem) => {
                gathered.unusable(args, *problem)?;
                continue;
            }
        };
        let file = (tool, place.path.clone());
        if !gathered.files.contains(&file) {
            gathered.files.push(file);
        }
        match read_foreign(tool, &place, &text) {
            Ok(foreign) => gathered.take(tool, &place, is_own, foreign, args),
            Err(problem) => gathered.unusable(args, *problem)?,
        }
    }
    let has_addresses = gathered.rows.iter().any(|row| row.entry.url.is_some());
    let gateways = if has_addresses {
        gateways(config, workspace)
    } else {
        Vec::new()
    };
    let decide = Decide {
        args,
        config,
        workspace,
        gateways,
    };
    let mut taken = BTreeSet::new();
    for row in &mut gathered.rows {
        decide.row(row);
        let Some((_, file)) = &row.target else {
            continue;
        };
        let is_known = !matches!(row.action, Action::Broken | Action::InUse | Action::Itself);
        if is_known && !taken.insert((file.clone(), row.name.clone())) {
            row.action = Action::Duplicate;
            row.reason = Some("one of this name comes first in this list".to_owned());
        }
    }
    Ok(gathered)
}

/// A file to look at.
struct Source {
    tool: Tool,
    place: Place,
    /// Whether what is in it is the user's own.
    is_own: bool,
}

impl Source {
    fn new(tool: Tool, place: Place) -> Self {
        let is_own = place.scope != PlaceScope::Project;
        Self {
            tool,
            place,
            is_own,
        }
    }
}

/// The files to look at, each once. What counts most in a tool comes first.
fn sources(
    args: &ImportArgs,
    named: &[Tool],
    workspace: &Workspace,
) -> Result<Vec<Source>, CliError> {
    if let Some(file) = &args.file {
        let [tool] = named else {
            let message = "`--file` needs the one tool whose file it is";
            return Err(CliError::new(Code::InvalidUsage, message)
                .hint("as in: cocode mcp import codex --file FILE"));
        };
        return Ok(sources_in(file, *tool, workspace));
    }
    let homes = homes(workspace)?;
    let tools = if named.is_empty() { &Tool::ALL } else { named };
    let mut found: Vec<Source> = Vec::new();
    for tool in tools {
        let mut places = tool.places(&homes);
        places.sort_by_key(|place| std::cmp::Reverse(place.scope));
        for place in places {
            // `.mcp.json` is of several tools.
            if !found.iter().any(|other| other.place == place) {
                found.push(Source::new(*tool, place));
            }
        }
    }
    Ok(found)
}

/// What to look at in a file that is named.
fn sources_in(file: &Path, tool: Tool, workspace: &Workspace) -> Vec<Source> {
    let directory = workspace.places.directory.as_deref();
    let path = directory.map_or_else(|| file.to_owned(), |directory| directory.join(file));
    let project = workspace.places.work_tree();
    // Where the tool itself looks is known, also if the whole home is a work tree.
    let mut known =
        homes(workspace).map_or_else(|_homeless| Vec::new(), |homes| tool.places(&homes));
    known.retain(|place| real_path(&place.path) == real_path(&path));
    if !known.is_empty() {
        known.sort_by_key(|place| std::cmp::Reverse(place.scope));
        let sources = known.into_iter().map(|place| Source::new(tool, place));
        return sources.collect();
    }
    // Whoever made the tree put the file there, or the link.
    let is_in_tree = is_in_work_tree(&path, workspace);
    // Only Claude Code keeps servers for one work tree in a file of the user.
    let local = (tool == Tool::ClaudeCode).then_some(PlaceScope::Local);
    let for_all = if is_in_tree {
        PlaceScope::Project
    } else {
        PlaceScope::User
    };
    let scopes = local.into_iter().chain([for_all]);
    let source = |scope| Source {
        tool,
        place: Place {
            path: path.clone(),
            scope,
            project: project.clone(),
        },
        is_own: !is_in_tree,
    };
    scopes.map(source).collect()
}

impl Gathered {
    /// A file that was asked for by name is never passed over.
    fn unusable(&mut self, args: &ImportArgs, problem: Problem) -> Result<(), CliError> {
        if args.file.is_none() {
            self.problems.push(problem);
            return Ok(());
        }
        let error = CliError::new(Code::InvalidConfig, "the file cannot be used");
        Err(with_problems(error, &[&problem]))
    }

    fn take(
        &mut self,
        tool: Tool,
        place: &Place,
        is_own: bool,
        foreign: Foreign,
        args: &ImportArgs,
    ) {
        let Foreign { servers, problems } = foreign;
        let is_wanted =
            |name: &str| args.only.is_empty() || args.only.iter().any(|one| one == name);
        let scope = match place.scope {
            PlaceScope::User => Scope::User,
            PlaceScope::Project | PlaceScope::Local => Scope::Local,
        };
        let scope = args.scope.map_or(scope, Scope::from);
        let row = |name: &str, origin: &Origin| Row {
            tool,
            name: name.to_owned(),
            origin: origin.clone(),
            target: Some((scope, PathBuf::new())),
            entry: Entry::default(),
            action: Action::Add,
            reason: None,
            notes: Vec::new(),
            is_own,
        };
        let first = self.rows.len();
        for server in servers {
            if is_wanted(&server.name) {
                let entry = server.entry;
                self.rows.push(Row {
                    entry,
                    ..row(&server.name, &server.origin)
                });
            }
        }
        for problem in problems {
            let Some(name) = problem.server.clone() else {
                self.problems.push(problem);
                continue;
            };
            if !is_wanted(&name) {
                continue;
            }
            let rows = self.rows.get_mut(first..).unwrap_or_default();
            let found = rows.iter_mut().find(|row| row.name == name);
            match found {
                Some(row) if row.action == Action::Broken && row.reason.is_none() => {
                    row.reason = Some(note(&problem));
                }
                Some(row) => row.notes.push(note(&problem)),
                None => self.rows.push(Row {
                    action: Action::Broken,
                    reason: Some(note(&problem)),
                    target: None,
                    ..row(&name, &problem.origin)
                }),
            }
        }
    }
}

/// What decides about a server.
struct Decide<'a> {
    args: &'a ImportArgs,
    config: &'a Config,
    workspace: &'a Workspace,
    /// Where gateways of ours listen.
    gateways: Vec<SocketAddr>,
}

impl Decide<'_> {
    fn row(&self, row: &mut Row) {
        let Some((scope, _)) = row.target else { return };
        let places = &self.workspace.places;
        let scope = if places.explicit.is_empty() {
            scope
        } else {
            Scope::Explicit
        };
        let Some(file) = places.servers_file(scope) else {
            row.target = None;
            row.action = Action::Failed;
            row.reason = Some(format!("the {scope} scope has no file here"));
            return;
        };
        row.notes
            .extend(plain_secrets(&row.entry).iter().map(|key| {
            format!(
                "`{key}`: it is in plain text there, and would be here; `cocode secret set NAME` \
                 and `keyring:NAME` keep it out of files"
            )
        }));
        (row.action, row.reason) = self.action(row, scope, &file);
        row.target = (row.action != Action::Itself).then_some((scope, file));
    }

    fn action(
        &self,
        row: &mut Row,
        scope: Scope,
        file: &std::path::Path,
    ) -> (Action, Option<String>) {
        let because = |reason: &str| Some(reason.to_owned());
        if is_cocode(&row.entry, &self.gateways) {
            return (
                Action::Itself,
                because("it is cocode itself, which would serve itself without end"),
            );
        }
        let is_named = self.args.only.contains(&row.name);
        let taken_for_good = is_named && self.args.scope.is_some() && !scope.needs_trust();
        let source = real_path(&row.origin.file);
        let mut files = self.config.files.iter();
        if !taken_for_good && files.any(|file| file.exists && real_path(&file.path) == source) {
            return (
                Action::InUse,
                because("cocode reads this file itself; `cocode mcp list` shows it"),
            );
        }
        if let Some(managed) = &self.config.managed_by {
            let managed = managed.display();
            let reason = format!("all servers are fixed by your organization, in {managed}");
            return (Action::Blocked, Some(reason));
        }
        match check_entry(&row.name, &row.entry, &text_variable) {
            Ok(spec) => {
                if let Some(reason) = self.config.refuses_unlisted(&spec) {
                    return (Action::Blocked, Some(reason));
                }
            }
            // It may be in order as soon as a variable is set. The policy is asked again then.
            Err(problems) => row.notes.extend(problems.iter().map(note)),
        }
        if !row.is_own && !scope.needs_trust() && !is_named {
            let reason = "it comes with this work tree: `--only NAME` takes it over for everywhere";
            return (Action::Unnamed, because(reason));
        }
        let Some(server) = self.config.servers.get(&row.name) else {
            return (Action::Add, None);
        };
        let others = server.others.iter().map(|(other, _)| other);
        let mut there = std::iter::once(&server.winner).chain(others);
        let there = there.find(|there| there.scope == scope && *there.found.origin.file == *file);
        match there {
            Some(there) if !there.found.is_broken() && there.found.entry == row.entry => {
                (Action::Same, None)
            }
            Some(_) if self.args.force => (Action::Replace, None),
            Some(there) => {
                let reason = format!("another one is in {}: `--force`", there.found.origin);
                (Action::Differs, Some(reason))
            }
            None => {
                if server.winner.scope < scope {
                    let origin = &server.winner.found.origin;
                    row.notes.push(format!(
                        "the one of {origin} counts more than this one will"
                    ));
                }
                (Action::Add, None)
            }
        }
    }
}
