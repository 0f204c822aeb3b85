//! The tools of all servers that are ready, side by side. A server that fails is a warning, and the
//! others are listed all the same; one that is not ready is never started.

use cocode_client::{Listing, Session, Tool};
use cocode_config::State;
use cocode_core::ServerSpec;
use serde::Serialize;
use serde_json::value::RawValue;

use super::listing::{quarantined_row, warnings};
use super::tools::row_of;
use crate::args::TargetArgs;
use crate::configured::warn_of_passed_over;
use crate::error::{CliError, Code, Exit};
use crate::gate::Gate;
use crate::hints::{Doing, request_error};
use crate::interrupt::Interrupts;
use crate::printer::{Printer, print_json};
use crate::render::{Row, rows};
use crate::session::on_runtime;
use crate::survey::{self, Manner, error_object, short};
use crate::workspace::Workspace;

/// What one server lists, after filters and rules.
struct Tools {
    listing: Listing<Tool>,
    hidden: usize,
}

#[derive(Serialize)]
struct Report<'a> {
    servers: Vec<OneReport<'a>>,
    /// Servers that are configured and were left alone.
    #[serde(rename = "notContacted")]
    not_contacted: Vec<LeftAlone<'a>>,
}

#[derive(Serialize)]
struct OneReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct LeftAlone<'a> {
    name: &'a str,
    state: &'static str,
}

pub(crate) fn run(target: &TargetArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let for_one = [
        ("--root", !target.root.is_empty()),
        ("--answer", !target.answer.is_empty()),
        ("--max-message-bytes", target.max_message_bytes.is_some()),
    ];
    if let Some((option, _)) = for_one.iter().find(|(_, is_given)| *is_given) {
        let message = format!("`{option}` is for one server, and none is named");
        return Err(CliError::new(Code::InvalidUsage, message));
    }
    on_runtime(list(target, workspace))
}

async fn list(target: &TargetArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    workspace.warn_of_files(config);
    for server in config.servers.values() {
        if matches!(server.state, State::Ready(_)) {
            warn_of_passed_over(server, workspace);
        }
    }
    let ready: Vec<&ServerSpec> = config.ready().collect();
    let names: Vec<&str> = ready.iter().map(|spec| spec.name.as_str()).collect();
    let manner = Manner {
        workspace,
        target: target.clone(),
        more_time: "--connect-timeout",
    };
    let mut interrupts = Interrupts::catch()?;
    let visited = survey::visit(&names, &workspace.printer, &mut interrupts, |index| {
        let (spec, manner) = (ready.get(index).copied(), &manner);
        async move {
            match spec {
                Some(spec) => tools(spec, manner).await,
                None => (None, None),
            }
        }
    })
    .await?;
    let outcomes = visited.outcomes.iter().map(Option::as_ref);
    let found: Vec<(&str, &Result<Tools, CliError>)> = names
        .iter()
        .zip(outcomes)
        .filter_map(|(name, outcome)| Some((*name, outcome?)))
        .collect();
    let printed = print(&found, workspace);
    let none_worked = !found.is_empty() && found.iter().all(|(_, outcome)| outcome.is_err());
    visited.close(&mut interrupts).await;
    printed?;
    Ok(if none_worked { Exit::Server } else { Exit::Ok })
}

async fn tools(
    spec: &ServerSpec,
    manner: &Manner<'_>,
) -> (Option<Result<Tools, CliError>>, Option<Session>) {
    // As with one server, but nobody waits for a download of one of many.
    let patience = spec.startup_timeout.min(spec.connect_timeout);
    let asked = manner.target.timeout.map(|limit| limit.min(patience));
    let limit = manner.target.connect_timeout.or(asked).unwrap_or(patience);
    let gate = match Gate::new(Some(spec), manner.workspace) {
        Ok(gate) => gate,
        Err(error) => return (Some(Err(error)), None),
    };
    let session = match manner.connect(spec, limit).await {
        Ok(session) => session,
        Err(failure) => return (Some(Err(failure.error)), None),
    };
    let listed = session.tools().await.map(|mut listing| {
        let all = listing.items.len();
        listing
            .items
            .retain(|tool| gate.shows(&tool.name, tool.annotations));
        let hidden = all - listing.items.len();
        Tools { listing, hidden }
    });
    let listed = listed.map_err(|error| {
        let mut error = request_error(&error, Doing::Other);
        let cause = std::mem::replace(
            &mut error.message,
            format!("the tools of `{}` could not be listed", spec.name),
        );
        error.causes.insert(0, cause);
        error
    });
    (Some(listed), Some(session))
}

fn print(
    found: &[(&str, &Result<Tools, CliError>)],
    workspace: &Workspace,
) -> Result<(), CliError> {
    let printer = &workspace.printer;
    let servers = workspace.config()?.servers.iter();
    let left_alone: Vec<LeftAlone<'_>> = servers
        .filter(|(_, server)| !matches!(server.state, State::Ready(_)))
        .map(|(name, server)| LeftAlone {
            name,
            state: server.state.as_str(),
        })
        .collect();
    if printer.json() {
        let report = Report {
            servers: found
                .iter()
                .map(|(name, outcome)| OneReport {
                    name,
                    tools: outcome.as_ref().ok().map(raw),
                    error: outcome.as_ref().err().and_then(error_object),
                })
                .collect(),
            not_contacted: left_alone,
        };
        return print_json(printer, &report);
    }
    let mut list = Vec::new();
    for (name, outcome) in found {
        match outcome {
            Ok(tools) => {
                for warning in warnings("tool", &tools.listing) {
                    printer.warn(&format!("server `{name}`: {warning}"));
                }
                if tools.hidden > 0 {
                    let all = tools.hidden + tools.listing.items.len();
                    let hidden = tools.hidden;
                    printer.note(&format!(
                        "server `{name}`: {hidden} of {all} tools are hidden by filters or rules"
                    ));
                }
                list.extend(tools_of(name, &tools.listing, printer));
            }
            Err(error) => {
                let reason = short(error);
                printer.warn(&format!(
                    "server `{name}`: {reason} (`cocode mcp doctor {name}`)"
                ));
            }
        }
    }
    note_left_alone(&left_alone, workspace);
    if found.is_empty() {
        printer.note("no server is ready: `cocode mcp list` shows all");
    } else if list.is_empty() && found.iter().any(|(_, outcome)| outcome.is_ok()) {
        printer.warn("there are no tools");
    }
    printer.out(rows(&list, printer.width(), printer.paint()))
}

fn tools_of(server: &str, listing: &Listing<Tool>, printer: &Printer) -> Vec<Row> {
    let usable = listing.items.iter().map(|tool| row_of(tool, printer));
    let all = usable.chain(listing.quarantined.iter().map(quarantined_row));
    let named = all.map(|row| Row {
        name: format!("{server}.{}", row.name),
        ..row
    });
    named.collect()
}

/// The tools as the server sent them.
fn raw(tools: &Tools) -> Vec<&RawValue> {
    let items = tools.listing.items.iter();
    items.filter_map(|tool| tool.raw.decode().ok()).collect()
}

fn note_left_alone(left_alone: &[LeftAlone<'_>], workspace: &Workspace) {
    for (state, what, way_out) in [
        (
            "pending",
            "wait for approval",
            "`cocode mcp trust` shows them and asks",
        ),
        (
            "blocked",
            "are blocked by your organization",
            "`cocode policy check` says why",
        ),
        (
            "invalid",
            "cannot be used as they are written",
            "`cocode mcp list` says why",
        ),
    ] {
        let names: Vec<&str> = left_alone
            .iter()
            .filter(|one| one.state == state)
            .map(|one| one.name)
            .collect();
        if !names.is_empty() {
            workspace.printer.note(&format!(
                "not started, because they {what}: {} ({way_out})",
                names.join(", ")
            ));
        }
    }
}
