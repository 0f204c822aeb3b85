//! Says which file decides what about a server: the entry that counts with the line of each value,
//! the entries that do not and why, the policy's verdict, and where was looked at all.

use cocode_config::{Candidate, Config, Loss, PolicyVerdict, Server, visible};
use serde::Serialize;
use serde_json::Value;

use super::exchange::provenance;
use super::report::{EntryReport, ProblemReport, ServerReport, pending};
use crate::args::manage::ExplainArgs;
use crate::error::{CliError, Exit};
use crate::naming;
use crate::printer::{Style, print_json};
use crate::text::plain;
use crate::workspace::{Workspace, told};

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    server: ServerReport<'a>,
    values: Vec<ValueReport>,
    #[serde(rename = "importedFrom", skip_serializing_if = "Option::is_none")]
    imported_from: Option<String>,
    trust: &'static str,
    policy: PolicyReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    overridden: Option<String>,
    others: Vec<OtherReport<'a>>,
    problems: Vec<ProblemReport<'a>>,
}

#[derive(Serialize)]
struct ValueReport {
    key: String,
    value: Value,
    file: String,
    line: Option<u32>,
}

#[derive(Serialize)]
struct PolicyReport {
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct OtherReport<'a> {
    why: &'static str,
    #[serde(flatten)]
    entry: EntryReport<'a>,
}

pub(crate) fn run(args: &ExplainArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let name = args.name.as_str();
    let Some(server) = config.servers.get(name) else {
        workspace.warn_of_files(config);
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        return Err(naming::unknown(name, &names)
            .hint("`cocode config files` lists the files that were looked for"));
    };
    if workspace.printer.json() {
        return print_json(&workspace.printer, &report(name, server)).map(|()| Exit::Ok);
    }
    let text = lines(name, server, config, workspace).join("\n");
    workspace.printer.out(format!("{text}\n"))?;
    Ok(Exit::Ok)
}

fn report<'a>(name: &'a str, server: &'a Server) -> Report<'a> {
    let problems = server.problems().into_iter();
    Report {
        server: ServerReport::of(name, server),
        values: values(&server.winner),
        imported_from: provenance::of(&server.winner.found.origin),
        trust: if server.winner.scope.needs_trust() {
            server.winner.trust.as_str()
        } else {
            "not needed"
        },
        policy: match &server.policy {
            None => PolicyReport {
                verdict: "unknown",
                reason: None,
            },
            Some(PolicyVerdict::Allowed) => PolicyReport {
                verdict: "allowed",
                reason: None,
            },
            Some(PolicyVerdict::Blocked { reason, .. }) => PolicyReport {
                verdict: "blocked",
                reason: Some(reason.clone()),
            },
        },
        overridden: server.overridden.as_ref().map(|one| one.origin.to_string()),
        others: server
            .others
            .iter()
            .map(|(other, loss)| OtherReport {
                why: loss_name(*loss),
                entry: EntryReport::of(other),
            })
            .collect(),
        problems: problems.map(ProblemReport::of).collect(),
    }
}

fn values(winner: &Candidate) -> Vec<ValueReport> {
    let lines = winner.found.entry.lines().into_iter();
    lines
        .map(|line| {
            let origin = winner.found.origin_of(&line.key);
            ValueReport {
                value: serde_json::from_str(&line.masked).unwrap_or(Value::Null),
                key: line.key,
                file: origin.file.display().to_string(),
                line: origin.line,
            }
        })
        .collect()
}

fn lines(name: &str, server: &Server, config: &Config, workspace: &Workspace) -> Vec<String> {
    let paint = workspace.printer.paint();
    let winner = &server.winner;
    let mut lines = Vec::new();
    let mut say = |line: String| lines.push(line);
    let report = ServerReport::of(name, server);
    say(format!(
        "{} is {}",
        paint.paint(Style::Bold, &visible(name)),
        paint.paint(Style::Bold, report.state)
    ));
    if let Some(reason) = &report.reason {
        say(format!("  {}", plain(reason)));
    }
    say(String::new());
    let scope = match &winner.plugin {
        Some(plugin) => format!("plugin {}", plugin.name),
        None => format!("{} scope", winner.scope),
    };
    say(plain(&format!(
        "decided by {} ({scope}){}",
        winner.found.origin,
        provenance::told(&winner.found.origin)
    )));
    for line in winner.found.entry.lines() {
        let at = winner.found.origin_of(&line.key).line;
        let at = at.map(|at| format!("line {at}")).unwrap_or_default();
        say(format!(
            "  {} = {}  {}",
            line.shown_key(),
            line.shown(),
            paint.paint(Style::Dim, &at)
        ));
    }
    if let Some(one) = &server.overridden {
        let what = if one.enabled { "on" } else { "off" };
        say(plain(&format!("switched {what} by {}", one.origin)));
    }
    say(String::new());
    say(plain(&match &server.policy {
        None => "policy: cannot be told before the entry is in order".to_owned(),
        Some(PolicyVerdict::Allowed) if config.policy.is_present() => {
            format!("policy: allowed by {}", workspace.places.policy().display())
        }
        Some(PolicyVerdict::Allowed) => "policy: there is none".to_owned(),
        Some(PolicyVerdict::Blocked { reason, .. }) => format!("policy: blocked: {reason}"),
    }));
    if winner.scope.needs_trust() {
        say(plain(&format!("trust: {}", pending(name, winner))));
    } else {
        say(format!("trust: not needed for the {} scope", winner.scope));
    }
    if !server.others.is_empty() {
        say(String::new());
        say("not counted".to_owned());
        for (other, loss) in &server.others {
            let entry = other.found.entry.summary();
            let why = match loss {
                Loss::Pending => pending(name, other),
                Loss::Shadowed | Loss::Broken => loss_name(*loss).to_owned(),
            };
            say(plain(&format!(
                "  {} ({} scope): {why}: {entry}",
                other.found.origin, other.scope
            )));
        }
    }
    let problems = server.problems();
    if !problems.is_empty() {
        say(String::new());
        say("problems".to_owned());
        for problem in problems {
            say(plain(&format!("  {}", told(problem))));
        }
    }
    lines
}

fn loss_name(loss: Loss) -> &'static str {
    match loss {
        Loss::Shadowed => "shadowed",
        Loss::Pending => "pending",
        Loss::Broken => "broken",
    }
}
