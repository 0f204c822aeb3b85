//! `/mcp`: how the servers are, and what can be done with them.

use std::time::Duration;

use cocode_agent::Company;
use cocode_client::{CallError, Manager, ServerName, ServerState, ServerStatus};
use cocode_config::{Config, Server, State};
use cocode_core::{Reach, nearest};
use cocode_terminal::{CommandOutcome, Line, PickEntry, PickList, Style};
use tokio::time::Instant;

use super::notices;
use super::talk::{Talk, failed, refused};
use crate::error::{CliError, Code};
use crate::manage::report::reason;

/// How long a restart is watched.
const RESTARTED_WITHIN: Duration = Duration::from_secs(30);

/// What can be done with a server, and what that is.
const ACTIONS: &[(&str, &str)] = &[
    ("tools", "what it offers"),
    ("restart", "connect to it anew"),
    ("login", "sign in there"),
    ("logout", "forget what was signed in with"),
    ("enable", "switch it on"),
    ("disable", "switch it off"),
];

/// Words that can follow `/mcp`.
pub(super) fn actions() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|(action, _)| *action)
}

/// Servers that nobody has approved yet.
pub(super) fn waiting(config: &Config) -> Vec<&str> {
    let servers = config.servers.iter();
    let waiting = servers.filter(|(_, server)| matches!(server.state, State::Pending));
    waiting.map(|(name, _)| name.as_str()).collect()
}

pub(super) async fn run(talk: &Talk, words: &[&str], company: &Company) -> CommandOutcome {
    match words {
        [] => servers(talk),
        [name] => match known(talk, name) {
            Ok((config, name)) => actions_of(talk, &config, &name),
            Err(error) => failed(error),
        },
        [action, name] => match known(talk, name) {
            Ok((_, name)) => act(talk, action, &name, company).await,
            Err(error) => failed(error),
        },
        _ => failed(
            CliError::new(Code::InvalidUsage, "`/mcp` takes an action and a server")
                .hint("`/mcp` alone lists the servers"),
        ),
    }
}

/// The configuration as it is now, and the server in it.
fn known(talk: &Talk, name: &str) -> Result<(Config, ServerName), CliError> {
    let config = talk.config();
    if let Ok(parsed) = name.parse::<ServerName>()
        && (config.servers.contains_key(name) || status(&talk.manager, &parsed).is_some())
    {
        return Ok((config, parsed));
    }
    let names = config.servers.keys().map(String::as_str);
    let error = CliError::new(Code::UnknownServer, format!("there is no server `{name}`"));
    Err(match nearest(name, names).first() {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("`/mcp` lists the servers"),
    })
}

fn status(manager: &Manager, name: &ServerName) -> Option<ServerStatus> {
    let all = manager.status();
    all.into_iter().find(|server| server.name == *name)
}

fn servers(talk: &Talk) -> CommandOutcome {
    let config = talk.config();
    let mut names: Vec<String> = config.servers.keys().cloned().collect();
    let running = talk.manager.status();
    let unlisted = running.iter().map(|server| server.name.to_string());
    names.extend(unlisted.filter(|name| !config.servers.contains_key(name)));
    names.sort();
    if names.is_empty() {
        let message = "no servers are configured";
        return failed(
            CliError::new(Code::UnknownServer, message)
                .hint("`cocode mcp add NAME -- COMMAND` adds one"),
        );
    }
    let entries = names.iter().map(|name| PickEntry {
        label: name.clone(),
        detail: detail(talk, name, config.servers.get(name)),
        value: format!("/mcp {name}"),
    });
    let entries = entries.collect();
    let title = "Servers".to_owned();
    CommandOutcome::Pick(PickList { title, entries })
}

/// How a server is, in a few words.
fn detail(talk: &Talk, name: &str, server: Option<&Server>) -> String {
    let parsed: Option<ServerName> = name.parse().ok();
    let running = parsed.as_ref().and_then(|name| status(&talk.manager, name));
    if let Some(running) = running {
        let catalog = talk.manager.catalog();
        let tools = catalog
            .server(&running.name)
            .map(|server| server.tools.len());
        return state(&running.state, tools.unwrap_or_default());
    }
    match server {
        Some(server) => {
            let why = reason(name, server).unwrap_or_else(|| "not applied yet".to_owned());
            format!("{}: {why}", server.state.as_str())
        }
        None => String::new(),
    }
}

fn state(state: &ServerState, n_tools: usize) -> String {
    let kind = state.kind();
    match state.trouble() {
        Some(trouble) => format!("{kind}: {}", notices::reason(trouble)),
        None => match n_tools {
            1 => format!("{kind}, 1 tool"),
            n_tools => format!("{kind}, {n_tools} tools"),
        },
    }
}

/// What can be done with one server, as it is now.
fn actions_of(talk: &Talk, config: &Config, name: &ServerName) -> CommandOutcome {
    let server = config.servers.get(name.as_str());
    let is_remote = server.is_some_and(|server| match &server.state {
        State::Ready(spec) => matches!(spec.reach, Reach::Remote(_)),
        _ => false,
    });
    let is_disabled = server.is_some_and(|server| matches!(server.state, State::Disabled(_)));
    let runs = status(&talk.manager, name).is_some();
    let fits = |action: &str| match action {
        "tools" | "restart" | "disable" => runs,
        "login" | "logout" => is_remote,
        "enable" => is_disabled,
        _ => false,
    };
    let actions = ACTIONS.iter().filter(|(action, _)| fits(action));
    let entries: Vec<PickEntry> = actions
        .map(|(action, about)| PickEntry {
            label: (*action).to_owned(),
            detail: (*about).to_owned(),
            value: format!("/mcp {action} {name}"),
        })
        .collect();
    let how = detail(talk, name.as_str(), server);
    if entries.is_empty() {
        return CommandOutcome::Said(vec![Line::plain(&format!("{name}: {how}"))]);
    }
    let title = format!("{name}: {how}");
    CommandOutcome::Pick(PickList { title, entries })
}

async fn act(talk: &Talk, action: &str, name: &ServerName, company: &Company) -> CommandOutcome {
    match action {
        "tools" => tools(talk, name),
        "restart" => tokio::select! {
            outcome = restart(talk, name) => outcome,
            () = company.interrupt.cancelled() => CommandOutcome::Done,
        },
        "login" | "logout" | "enable" | "disable" => {
            let words = ["mcp", action, name.as_str()];
            let run = talk.itself.run(&words, &talk.say, &company.interrupt);
            match run.await {
                Ok(true) => CommandOutcome::Done,
                Ok(false) => {
                    let message = format!("`cocode mcp {action} {name}` was not done");
                    refused(message)
                }
                Err(error) => failed(error),
            }
        }
        _ => {
            let error = CliError::new(
                Code::InvalidUsage,
                format!("nothing of a server is called `{action}`"),
            );
            let all: Vec<&str> = actions().collect();
            failed(error.hint(format!("there are: {}", all.join(", "))))
        }
    }
}

async fn restart(talk: &Talk, name: &ServerName) -> CommandOutcome {
    let cannot = |error: &CallError| refused(cocode_wire::chain(error));
    if let Err(error) = talk.manager.restart(name).await {
        return cannot(&error);
    }
    let until = Instant::now() + RESTARTED_WITHIN;
    match talk.manager.session(name, until).await {
        Ok(_session) => {
            talk.manager.wait_for_lists(name, until).await;
            let how = detail(talk, name.as_str(), None);
            CommandOutcome::Said(vec![Line::plain(&format!("{name} was restarted: {how}"))])
        }
        Err(error) => cannot(&error),
    }
}

fn tools(talk: &Talk, name: &ServerName) -> CommandOutcome {
    let catalog = talk.manager.catalog();
    let Some(server) = catalog.server(name) else {
        let line = format!("nothing is known of what {name} offers");
        return CommandOutcome::Said(vec![Line::plain(&line)]);
    };
    let mut lines: Vec<Line> = Vec::new();
    for tool in &server.tools {
        let about = tool.tool.description.as_deref().unwrap_or_default();
        let about = about.lines().next().unwrap_or_default();
        lines.push(
            Line::new(tool.name.as_str(), Style::PLAIN.bold())
                .with("  ", Style::PLAIN)
                .with(about, Style::PLAIN.dim()),
        );
    }
    let more = [
        (server.filtered_tools, "tools that filters take away"),
        (server.resources.len(), "resources"),
        (server.templates.len(), "resource templates"),
        (server.prompts.len(), "prompts"),
    ];
    for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(Line::new(&format!("{count} {what}"), Style::PLAIN.dim()));
    }
    if lines.is_empty() {
        lines.push(Line::plain(&format!("{name} offers nothing")));
    }
    CommandOutcome::Said(lines)
}
