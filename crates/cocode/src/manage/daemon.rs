//! `cocode mcp daemon`: who is served by the shared daemon, which servers run for whom, and its end.

use std::collections::{BTreeMap, BTreeSet};

use cocode_admin::model::{Front, Instance, SharedServers};
use cocode_gateway::Sharing;

use crate::args::serve::DaemonVerb;
use crate::daemon::{self, How, Place, ask};
use crate::error::{CliError, Exit};
use crate::manage::overview::view::STOPPED;
use crate::manage::sharing::{serves, terms};
use crate::printer::{Paint, Printer, Style, print_json};
use crate::session::on_runtime;
use crate::table::{Cell, table};
use crate::text::duration;
use crate::workspace::Workspace;

pub(crate) fn run(verb: DaemonVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    match verb {
        DaemonVerb::Run => daemon::run(workspace),
        DaemonVerb::Status => on_runtime(workspace, status(workspace)),
        DaemonVerb::Stop => on_runtime(workspace, stop(workspace)),
    }
}

async fn status(workspace: &Workspace) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let place = Place::of(workspace);
    let Some(asking) = ask(place.as_ref()).await? else {
        return none(printer);
    };
    let report = asking.shared().await?;
    if printer.json() {
        print_json(printer, &report)?;
    } else {
        printer.out(told(&report, printer.paint()))?;
    }
    Ok(Exit::Ok)
}

async fn stop(workspace: &Workspace) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let place = Place::of(workspace);
    let Some(ended) = daemon::stop(place.as_ref(), printer).await? else {
        return none(printer);
    };
    let pid = ended.pid;
    let forced = ended.how != How::Asked;
    if printer.json() {
        let report = serde_json::json!({ "stopped": pid, "forced": forced });
        print_json(printer, &report)?;
    } else {
        let how = match ended.how {
            How::Asked => "",
            How::Told => ", which did not answer",
            How::Killed => ", which did not answer: it was killed",
        };
        printer.out_line(&format!("stopped the daemon (process {pid}){how}"))?;
    }
    Ok(Exit::Ok)
}

fn none(printer: &Printer) -> Result<Exit, CliError> {
    if printer.json() {
        print_json(printer, &serde_json::json!({ "running": false }))?;
    } else {
        printer.note("no daemon runs: the next `cocode mcp serve` starts it");
    }
    Ok(Exit::Ok)
}

/// A daemon for people.
fn told(report: &SharedServers, paint: Paint) -> String {
    let SharedServers {
        pid,
        version,
        socket,
        url,
        seconds,
        fronts,
        servers,
    } = report;
    let age = age(*seconds);
    let what = if url.is_some() { "gateway" } else { "daemon" };
    let places: Vec<&str> = socket.iter().chain(url).map(String::as_str).collect();
    let places = places.join(" and ");
    let mut text = format!("{what} {version}, process {pid}, for {age}, at {places}\n\n");
    let head = ["FRONT", "FOR", "SERVES", "DIRECTORY"];
    let rows: Vec<Vec<Cell>> = fronts.iter().map(front).collect();
    text.push_str(&if rows.is_empty() {
        "no fronts\n".to_owned()
    } else {
        table(&head, &rows, paint)
    });
    text.push('\n');
    let head = [
        "NAME",
        "STATE",
        "SHARING",
        "FRONTS",
        "PROCESS",
        "TOOLS",
        "FOR",
        "LAST ERROR",
    ];
    let rows: Vec<Vec<Cell>> = servers.iter().map(server).collect();
    text.push_str(&if rows.is_empty() {
        "no servers\n".to_owned()
    } else {
        table(&head, &rows, paint)
    });
    let terms: BTreeSet<String> = servers.iter().filter_map(terms).collect();
    let stopped = servers.iter().any(|server| server.state == "stopped");
    let stopped = stopped.then(|| format!("a server that is `stopped` is well: {STOPPED}"));
    let notes = terms.into_iter().chain(manifold(servers)).chain(stopped);
    let notes: Vec<String> = notes.collect();
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    text
}

/// Why there are several servers of one name.
fn manifold(servers: &[Instance]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Instance>> = BTreeMap::new();
    // What runs for one session has been told already.
    let of_session = Sharing::PerSession.as_str();
    for server in servers.iter().filter(|one| one.sharing != of_session) {
        by_name.entry(&server.name).or_default().push(server);
    }
    by_name.retain(|_, same| same.len() > 1);
    let told = by_name.into_iter().map(|(name, same)| {
        let entries: BTreeSet<&str> = same.iter().map(|one| one.fingerprint.as_str()).collect();
        let places: BTreeSet<&[String]> = same.iter().map(|one| &*one.directories).collect();
        let why = if entries.len() > 1 {
            "their entries differ"
        } else if places.len() == same.len() {
            "they are used in different directories"
        } else {
            "the variables that they are given differ"
        };
        let each = same.iter().map(|one| {
            let process = one
                .pid
                .map_or_else(|| "not running".to_owned(), |pid| pid.to_string());
            format!("{process} for {}", one.directories.join(" and "))
        });
        let each: Vec<String> = each.collect();
        format!(
            "`{name}` is there {} times because {why}: {}",
            same.len(),
            each.join(", ")
        )
    });
    told.collect()
}

fn front(front: &Front) -> Vec<Cell> {
    let pid = front.pid.map(|pid| pid.to_string());
    vec![
        Cell::new(pid.as_deref().unwrap_or("-")).styled(Style::Bold),
        Cell::new(age(front.seconds)),
        Cell::new(serves(front)),
        Cell::new(front.directory.as_deref().unwrap_or("-")),
    ]
}

fn server(server: &Instance) -> Vec<Cell> {
    let or_dash = |text: Option<String>| Cell::new(text.unwrap_or_else(|| "-".to_owned()));
    let state = Cell::new(&server.state);
    let state = match server.state.as_str() {
        "ready" => state,
        "failed" => state.styled(Style::Red),
        "stopped" => state.styled(Style::Dim),
        _ => state.styled(Style::Yellow),
    };
    vec![
        Cell::new(&server.name).styled(Style::Bold),
        state,
        Cell::new(&server.sharing),
        Cell::new(server.fronts.len().to_string()),
        or_dash(server.pid.map(|pid| pid.to_string())),
        or_dash(server.tools.map(|tools| tools.to_string())),
        Cell::new(age(server.seconds)),
        Cell::new(server.trouble.as_deref().unwrap_or_default()),
    ]
}

fn age(seconds: u64) -> String {
    duration(std::time::Duration::from_secs(seconds))
}
