//! Chooses the servers that go to another tool, and compares them with what the tool has.

use cocode_config::{
    Change, Config, Entry, Foreign, PLUGIN_ROOT_VARIABLES, Place, PlaceScope, PolicyVerdict,
    Problem, Scope, Server, State, Text, Tool, read_foreign, write_foreign,
};

use super::{note, plain_secrets, real_path};
use crate::error::{CliError, Code};
use crate::manage::report::reason;
use crate::manage::writing;
use crate::workspace::with_problems;

/// What is done with a server of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    Replace,
    /// The tool has it so.
    Same,
    /// The tool has another one of this name.
    Differs,
    /// It is not for others now: not approved, or blocked.
    Withheld,
    /// It cannot go there.
    LeftOut,
}

/// A server of ours, and what is done with it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) entry: Entry,
    pub(crate) action: Action,
    pub(crate) reason: Option<String>,
    pub(crate) notes: Vec<String>,
}

/// What an export comes to.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) rows: Vec<Row>,
    /// The file as it would be; none if nothing changes.
    pub(crate) text: Option<String>,
}

impl Action {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Withheld => "withheld",
            Self::LeftOut => "left-out",
        }
    }

    /// How a difference would show it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Replace => "~",
            Self::Same => "=",
            Self::Differs => "!",
            Self::Withheld | Self::LeftOut => "-",
        }
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Add | Self::Replace)
    }
}

/// The servers of ours, with the reason for those that stay. An empty `only` means all.
pub(crate) fn select(config: &Config, only: &[String], place: &Place) -> Vec<Row> {
    let file = real_path(&place.path);
    let servers = config.servers.iter();
    let servers = servers.filter(|(name, _)| only.is_empty() || only.contains(name));
    servers
        .map(|(name, server)| {
            let mut row = Row {
                name: name.clone(),
                entry: entry(server),
                action: Action::Add,
                reason: None,
                notes: Vec::new(),
            };
            let is_blocked = matches!(server.policy, Some(PolicyVerdict::Blocked { .. }));
            if real_path(&server.winner.found.origin.file) == file {
                row.action = Action::Same;
                row.reason = Some("it comes from this file".to_owned());
            } else if matches!(server.state, State::Invalid(_)) {
                if lacks_only_variables(name, server, config) {
                    row.notes.extend(reason(name, server));
                } else {
                    row.action = Action::LeftOut;
                    row.reason = reason(name, server);
                }
            } else if is_blocked || matches!(server.state, State::Pending | State::Blocked { .. }) {
                row.action = Action::Withheld;
                let blocked = || Some("your organization blocks it".to_owned());
                row.reason = reason(name, server).filter(|_| !is_switched_off(server));
                row.reason = row.reason.or_else(blocked);
            }
            if row.action == Action::Add && is_bound_to_place(server, place) {
                let message = "it starts in its work tree here, and wherever the tool is there";
                row.notes.push(message.to_owned());
            }
            row
        })
        .collect()
}

fn is_switched_off(server: &Server) -> bool {
    matches!(server.state, State::Disabled(_))
}

/// Whether variables that are not set here are all that is wrong: where the tool runs, they may be.
/// What a policy says to such a server cannot be told, so that with a policy it stays.
fn lacks_only_variables(name: &str, server: &Server, config: &Config) -> bool {
    let found = &server.winner.found;
    !found.is_broken()
        && !config.policy.is_present()
        && config.managed_by.is_none()
        && writing::lacks_only_variables(name, &found.entry)
}

fn is_bound_to_place(server: &Server, place: &Place) -> bool {
    let is_of_tree = matches!(server.winner.scope, Scope::Local | Scope::Project);
    let entry = &server.winner.found.entry;
    is_of_tree && place.scope == PlaceScope::User && entry.command.is_some() && entry.cwd.is_none()
}

/// An entry as it counts: switched on or off by whatever decides, with the folder of its plugin.
fn entry(server: &Server) -> Entry {
    let mut entry = server.winner.found.entry.clone();
    entry.enabled = is_switched_off(server).then_some(false);
    let Some(plugin) = &server.winner.plugin else {
        return entry;
    };
    // Our own spelling of a `${` that means itself.
    let root = plugin.path.to_string_lossy().replace("${", "$${");
    let rooted = |text: &mut String| {
        for variable in PLUGIN_ROOT_VARIABLES {
            *text = text.replace(&format!("${{{variable}}}"), &root);
        }
    };
    entry.command.iter_mut().for_each(rooted);
    entry.args.iter_mut().for_each(rooted);
    entry.cwd.iter_mut().for_each(rooted);
    entry.url.iter_mut().for_each(rooted);
    let values = entry.env.values_mut().chain(entry.headers.values_mut());
    values.for_each(|Text(text)| rooted(text));
    entry
}

/// Compares the rows with what the file has, and makes the file as it would be.
pub(crate) fn plan(
    tool: Tool,
    place: &Place,
    text: Option<&str>,
    mut rows: Vec<Row>,
    force: bool,
) -> Result<Plan, CliError> {
    let unusable = |problem: Box<Problem>| {
        let message = format!("the file of {} cannot be used", tool.title());
        let error = CliError::new(Code::InvalidConfig, message);
        with_problems(error, &[&problem]).hint("nothing was changed; mend the file first")
    };
    let theirs = read_foreign(tool, place, text.unwrap_or_default()).map_err(unusable)?;
    let mut servers = Vec::new();
    for row in rows.iter_mut().filter(|row| row.action == Action::Add) {
        let one = [(row.name.clone(), row.entry.clone())];
        let alone = write_foreign(tool, place, None, Change::Add(&one)).map_err(unusable)?;
        let (errors, warnings): (Vec<_>, Vec<_>) = alone
            .problems
            .iter()
            .partition(|problem| problem.is_error());
        if alone.names.is_empty() {
            row.action = Action::LeftOut;
            let errors: Vec<String> = errors.into_iter().map(note).collect();
            row.reason = Some(errors.join("; "));
            continue;
        }
        row.notes.extend(warnings.into_iter().map(note));
        row.notes.extend(
            plain_secrets(&row.entry).iter().map(|key| {
                format!("`{key}`: it goes along in plain text, as it is in the file here")
            }),
        );
        let ours = read_foreign(tool, place, &alone.text).map_err(unusable)?;
        row.action = compared(&ours, &theirs, &row.name, force);
        if row.action.writes() {
            servers.extend(one);
        }
        if row.action == Action::Differs {
            row.reason = Some(format!("{} has another one: `--force`", tool.title()));
        }
    }
    if servers.is_empty() {
        return Ok(Plan { rows, text: None });
    }
    let written = write_foreign(tool, place, text, Change::Add(&servers)).map_err(unusable)?;
    Ok(Plan {
        rows,
        text: Some(written.text),
    })
}

fn compared(ours: &Foreign, theirs: &Foreign, name: &str, force: bool) -> Action {
    let named = |foreign: &Foreign| {
        let mut servers = foreign.servers.iter();
        let found = servers.find(|server| server.name == name);
        found.map(|server| server.entry.clone())
    };
    let mut problems = theirs.problems.iter();
    match named(theirs) {
        Some(theirs) if named(ours).is_some_and(|ours| ours == theirs) => Action::Same,
        None if !problems.any(|problem| problem.server.as_deref() == Some(name)) => Action::Add,
        _ if force => Action::Replace,
        _ => Action::Differs,
    }
}
