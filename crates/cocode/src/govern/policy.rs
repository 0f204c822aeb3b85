//! What the organization makes of servers: those that are configured, or one that is given here.

use std::path::PathBuf;

use cocode_config::{Config, Origin, PolicyVerdict, Server};
use serde::Serialize;

use crate::args::TargetArgs;
use crate::args::govern::PolicyVerb;
use crate::configured;
use crate::error::{CliError, Code, Exit};
use crate::printer::{Style, print_json};
use crate::table::{Cell, table};
use crate::target::unlisted;
use crate::workspace::{Workspace, told};

pub(crate) fn run(verb: &PolicyVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    let PolicyVerb::Check { names, target } = verb;
    check(names, target, workspace)
}

#[derive(Serialize)]
struct Report {
    /// none, present, or broken.
    policy: &'static str,
    #[serde(rename = "policyFile")]
    policy_file: PathBuf,
    #[serde(rename = "managedBy", skip_serializing_if = "Option::is_none")]
    managed_by: Option<PathBuf>,
    servers: Vec<Checked>,
    /// What allows more than it seems to.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Checked {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

const ALLOWED: &str = "allowed";
const BLOCKED: &str = "blocked";
/// The entry is broken, so that nobody can say what it would reach.
const UNKNOWN: &str = "unknown";

fn check(names: &[String], target: &TargetArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let servers = if target.is_given() {
        if !names.is_empty() {
            let message = "both configured servers and one of its own are given";
            return Err(CliError::new(Code::InvalidUsage, message));
        }
        vec![given(target, config)?]
    } else {
        all_or(names, config)?
    };
    let policy = &config.policy;
    let report = Report {
        policy: match (policy.is_present(), policy.is_broken()) {
            (false, _) => "none",
            (true, false) => "present",
            (true, true) => "broken",
        },
        policy_file: workspace.places.policy(),
        managed_by: config.managed_by.clone(),
        servers,
        warnings: config.policy_warnings().iter().map(told).collect(),
    };
    // A policy that cannot be used blocks even what nobody has configured yet.
    let is_blocked = policy.is_broken() || report.servers.iter().any(|one| one.verdict == BLOCKED);
    let exit = if is_blocked { Exit::Blocked } else { Exit::Ok };
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &report).map(|()| exit);
    }
    for problem in policy.problems() {
        printer.warn(&told(problem));
    }
    for warning in &report.warnings {
        printer.warn(warning);
    }
    let file = report.policy_file.display();
    printer.note(&match report.policy {
        "none" => format!("there is no policy: {file} does not exist"),
        "broken" => format!("the policy {file} cannot be used, so every server is blocked"),
        _ => format!("the policy is {file}"),
    });
    if let Some(file) = &report.managed_by {
        let message = format!(
            "all servers are fixed by your organization: {}",
            file.display()
        );
        printer.note(&message);
    }
    if report.servers.is_empty() {
        printer.note("no servers are configured");
        return Ok(exit);
    }
    let rows: Vec<Vec<Cell>> = report.servers.iter().map(row).collect();
    let text = table(&["NAME", "VERDICT", "WHY"], &rows, printer.paint());
    printer.out(text)?;
    Ok(exit)
}

fn all_or(names: &[String], config: &Config) -> Result<Vec<Checked>, CliError> {
    if names.is_empty() {
        let servers = config.servers.iter();
        return Ok(servers
            .map(|(name, server)| of_server(name, server))
            .collect());
    }
    let checked = names.iter().map(|name| match config.servers.get(name) {
        Some(server) => Ok(of_server(name, server)),
        None => Err(configured::unknown(name, config)),
    });
    checked.collect()
}

fn of_server(name: &str, server: &Server) -> Checked {
    let name = Some(name.to_owned());
    match &server.policy {
        Some(verdict) => of_verdict(name, verdict),
        None => Checked {
            name,
            verdict: UNKNOWN,
            reason: Some("it cannot be used as it is written".to_owned()),
            file: Some(server.winner.found.origin.file.display().to_string()),
            line: server.winner.found.origin.line,
        },
    }
}

fn given(target: &TargetArgs, config: &Config) -> Result<Checked, CliError> {
    let spec = unlisted(target)?;
    if let Some(file) = &config.managed_by {
        return Ok(Checked {
            name: None,
            verdict: BLOCKED,
            reason: config.refuses_unlisted(&spec),
            file: Some(file.display().to_string()),
            line: None,
        });
    }
    Ok(of_verdict(None, &config.policy.verdict(&spec)))
}

fn of_verdict(name: Option<String>, verdict: &PolicyVerdict) -> Checked {
    match verdict {
        PolicyVerdict::Allowed => Checked {
            name,
            verdict: ALLOWED,
            reason: None,
            file: None,
            line: None,
        },
        PolicyVerdict::Blocked { reason, origin } => {
            let Origin { file, line } = origin;
            Checked {
                name,
                verdict: BLOCKED,
                reason: Some(reason.clone()),
                file: Some(file.display().to_string()),
                line: *line,
            }
        }
    }
}

fn row(checked: &Checked) -> Vec<Cell> {
    let verdict = Cell::new(checked.verdict);
    let verdict = match checked.verdict {
        BLOCKED => verdict.styled(Style::Red),
        UNKNOWN => verdict.styled(Style::Yellow),
        _ => verdict,
    };
    let why = match (&checked.reason, checked.verdict) {
        (Some(reason), UNKNOWN) => match &checked.file {
            Some(file) => format!("{reason}: {file}"),
            None => reason.clone(),
        },
        (Some(reason), _) => reason.clone(),
        (None, _) => "nothing is against it".to_owned(),
    };
    vec![
        Cell::new(checked.name.as_deref().unwrap_or("(given)")).styled(Style::Bold),
        verdict,
        Cell::new(why),
    ]
}
