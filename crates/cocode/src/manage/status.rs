//! Connects to every server that is ready, all at once, and shows how each of them is. Servers
//! that are not ready are shown as in the plain list, and never contacted.

use std::time::{Duration, Instant};

use cocode_client::{CallError, Listing, ServerCapabilities, Session};
use cocode_config::{Server, State};
use cocode_core::ServerSpec;
use serde::Serialize;
use serde_json::value::RawValue;

use super::list;
use super::report::{ProblemReport, ServerReport};
use crate::error::{CliError, Exit};
use crate::fleet::{self, Fleet, Wishes, error_object, short, until};
use crate::gate::Gate;
use crate::hints::Doing;
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::printer::{Style, print_json};
use crate::session::on_runtime;
use crate::table::{Cell, table};
use crate::text::duration;
use crate::trouble::About;
use crate::workspace::Workspace;

/// How a server that was contacted is.
enum Status {
    Connected(Box<Connected>),
    Failed { error: CliError, took: Duration },
}

/// What was learned about a server.
struct Connected {
    name: Option<String>,
    version: Option<String>,
    revision: &'static str,
    era: String,
    transport: &'static str,
    tools: Option<usize>,
    /// Tools that filters and rules take away.
    hidden_tools: usize,
    resources: Option<usize>,
    prompts: Option<usize>,
    /// The lists that could not be had, and why.
    unlisted: Vec<(&'static str, CliError)>,
    took: Duration,
}

#[derive(Serialize)]
struct Report<'a> {
    servers: Vec<OneReport<'a>>,
    problems: Vec<ProblemReport<'a>>,
    #[serde(rename = "managedBy", skip_serializing_if = "Option::is_none")]
    managed_by: Option<String>,
}

#[derive(Serialize)]
struct OneReport<'a> {
    #[serde(flatten)]
    server: ServerReport<'a>,
    /// Absent where nobody was contacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<ConnectionReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionReport<'a> {
    status: &'static str,
    milliseconds: u128,
    #[serde(flatten)]
    facts: Option<FactsReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FactsReport<'a> {
    server_name: Option<&'a str>,
    server_version: Option<&'a str>,
    revision: &'a str,
    era: &'a str,
    /// What carries the session, which may not be what was configured.
    transport_used: &'a str,
    /// How many there are; null where the server has none or the list could not be had.
    tools: Option<usize>,
    hidden_tools: usize,
    resources: Option<usize>,
    prompts: Option<usize>,
    unlisted: Vec<UnlistedReport>,
}

#[derive(Serialize)]
struct UnlistedReport {
    list: &'static str,
    error: Option<Box<RawValue>>,
}

pub(crate) fn run(
    servers: &[(&str, &Server)],
    timeout: Option<Duration>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let setup = Setup::new(Purpose::OneThing, workspace)?;
    let outcome = on_runtime(workspace, contact(servers, timeout, &setup, workspace));
    setup.end();
    outcome
}

async fn contact(
    servers: &[(&str, &Server)],
    timeout: Option<Duration>,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let ready: Vec<ServerSpec> = servers
        .iter()
        .filter_map(|(_, server)| match &server.state {
            State::Ready(spec) => Some(hurried(spec, timeout)),
            _ => None,
        })
        .collect();
    let names: Vec<&str> = ready.iter().map(|spec| spec.name.as_str()).collect();
    let mut interrupts = Interrupts::catch()?;
    let wishes = Wishes {
        request_timeout: timeout,
        more_time: "--timeout",
    };
    let fleet = Fleet::new(ready.clone(), wishes, setup, workspace).await?;
    let outcomes = fleet::visit(&names, &workspace.printer, &mut interrupts, |index| {
        let (spec, fleet) = (ready.get(index), &fleet);
        async move {
            match spec {
                Some(spec) => Some(Box::pin(status(spec, fleet, workspace)).await),
                None => None,
            }
        }
    })
    .await?;
    let outcomes = outcomes.iter().map(Option::as_ref);
    let found: Vec<(&str, &Status)> = names
        .iter()
        .zip(outcomes)
        .filter_map(|(name, status)| Some((*name, status?)))
        .collect();
    let printed = print(servers, &found, workspace);
    let exit = exit(&found);
    fleet.close(&mut interrupts).await;
    printed.map(|()| exit)
}

/// Who looks at a list does not wait for a download.
pub(super) fn hurried(spec: &ServerSpec, timeout: Option<Duration>) -> ServerSpec {
    let usual = spec.startup_timeout.min(spec.connect_timeout);
    ServerSpec {
        connect_timeout: timeout.unwrap_or(usual),
        ..spec.clone()
    }
}

/// How one server is, found out within its own time.
async fn status(spec: &ServerSpec, fleet: &Fleet, workspace: &Workspace) -> Status {
    let begun = Instant::now();
    let failed = |error| {
        let took = begun.elapsed();
        Status::Failed { error, took }
    };
    let gate = match Gate::new(Some(spec), workspace) {
        Ok(gate) => gate,
        Err(error) => return failed(error),
    };
    match fleet.session(spec).await {
        Err(failure) => failed(failure.error),
        Ok(session) => {
            let left = spec.connect_timeout.saturating_sub(begun.elapsed());
            let mut connected = Connected::of(&session, begun.elapsed());
            let has = &session.server().capabilities;
            Box::pin(connected.count(has, spec, fleet, &gate, left)).await;
            Status::Connected(Box::new(connected))
        }
    }
}

impl Connected {
    fn of(session: &Session, took: Duration) -> Self {
        let facts = session.server();
        Self {
            name: facts.name.clone(),
            version: facts.version.clone(),
            revision: facts.revision.as_str(),
            era: facts.era().to_string(),
            transport: facts.transport,
            tools: None,
            hidden_tools: 0,
            resources: None,
            prompts: None,
            unlisted: Vec::new(),
            took,
        }
    }

    /// Counts what the server says it has, all lists at once.
    async fn count(
        &mut self,
        has: &ServerCapabilities,
        spec: &ServerSpec,
        fleet: &Fleet,
        gate: &Gate,
        left: Duration,
    ) {
        let (manager, server, about) = (&fleet.manager, &spec.name, fleet.about(spec));
        let (tools, resources, prompts) = tokio::join!(
            listed(has.tools, left, &about, manager.list_tools(server, until())),
            listed(
                has.resources,
                left,
                &about,
                manager.list_resources(server, until())
            ),
            listed(
                has.prompts,
                left,
                &about,
                manager.list_prompts(server, until())
            ),
        );
        if let Some(listing) = self.take("tools", tools) {
            let shown = listing
                .items
                .iter()
                .filter(|tool| gate.shows(&tool.name, tool.annotations))
                .count();
            self.tools = Some(shown);
            self.hidden_tools = listing.items.len() - shown;
        }
        self.resources = self
            .take("resources", resources)
            .map(|listing| listing.items.len());
        self.prompts = self
            .take("prompts", prompts)
            .map(|listing| listing.items.len());
    }

    fn take<T>(
        &mut self,
        list: &'static str,
        outcome: Option<Result<Listing<T>, CliError>>,
    ) -> Option<Listing<T>> {
        match outcome? {
            Ok(listing) => Some(listing),
            Err(error) => {
                self.unlisted.push((list, error));
                None
            }
        }
    }

    fn details(&self) -> String {
        let name = self.name.as_deref().unwrap_or("(no name)");
        let mut parts = vec![match &self.version {
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        }];
        parts.push(format!("{} ({})", self.revision, self.era));
        for (list, error) in &self.unlisted {
            parts.push(format!("{list} could not be listed: {}", reason(error)));
        }
        parts.join(" · ")
    }
}

/// A list, if the server has it, within the time that is left.
async fn listed<T>(
    has: bool,
    left: Duration,
    about: &About,
    list: impl Future<Output = Result<Listing<T>, CallError>>,
) -> Option<Result<Listing<T>, CliError>> {
    if !has {
        return None;
    }
    Some(match tokio::time::timeout(left, list).await {
        Ok(listed) => listed.map_err(|error| about.told(&error, Doing::Other)),
        Err(_elapsed) => {
            let message = "it took too long";
            Err(CliError::with(Exit::Timeout, "request-timeout", message)
                .hint("`--timeout SECONDS` allows more time"))
        }
    })
}

/// What went wrong with a request, with what the server said.
fn reason(error: &CliError) -> String {
    match error.causes.last() {
        Some(cause) => format!("{}: {cause}", error.message),
        None => error.message.clone(),
    }
}

impl Status {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Connected(_) => "connected",
            Self::Failed { error, .. } => match error.exit {
                Exit::Auth if error.code == "auth-required" => "needs-auth",
                Exit::Auth if error.code == "client-registration-required" => {
                    "needs-client-registration"
                }
                Exit::Timeout => "timed out",
                _ => "failed",
            },
        }
    }

    fn took(&self) -> Duration {
        match self {
            Self::Connected(connected) => connected.took,
            Self::Failed { took, .. } => *took,
        }
    }
}

/// 0 if all are connected, 4 if nothing but credentials is missing, else 3.
fn exit(found: &[(&str, &Status)]) -> Exit {
    let mut exit = Exit::Ok;
    for (_, status) in found {
        exit = match status {
            Status::Connected(_) => exit,
            Status::Failed { error, .. } if error.exit == Exit::Auth && exit != Exit::Server => {
                Exit::Auth
            }
            Status::Failed { .. } => Exit::Server,
        };
    }
    exit
}

fn print(
    servers: &[(&str, &Server)],
    found: &[(&str, &Status)],
    workspace: &Workspace,
) -> Result<(), CliError> {
    let status_of = |name: &str| {
        let one = found.iter().find(|(other, _)| *other == name);
        one.map(|(_, status)| *status)
    };
    let config = workspace.config()?;
    let printer = &workspace.printer;
    if printer.json() {
        let problems = config.all_problems().into_iter();
        let report = Report {
            servers: servers
                .iter()
                .map(|(name, server)| OneReport {
                    server: ServerReport::of(name, server),
                    connection: status_of(name).map(connection),
                })
                .collect(),
            problems: problems.map(ProblemReport::of).collect(),
            managed_by: config
                .managed_by
                .as_ref()
                .map(|file| file.display().to_string()),
        };
        return print_json(printer, &report);
    }
    if !list::introduce(servers, config, workspace) {
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = servers
        .iter()
        .map(|(name, server)| row(name, server, status_of(name)))
        .collect();
    let head = [
        "NAME",
        "SCOPE",
        "STATE",
        "TOOLS",
        "RESOURCES",
        "PROMPTS",
        "TIME",
        "SERVER",
    ];
    printer.out(table(&head, &rows, printer.paint()))?;
    let failed: Vec<&str> = found
        .iter()
        .filter(|(_, status)| matches!(status, Status::Failed { .. }))
        .map(|(name, _)| *name)
        .collect();
    if !failed.is_empty() {
        printer.note(&format!(
            "`cocode mcp doctor {}` says more",
            failed.join(" ")
        ));
    }
    Ok(())
}

fn row(name: &str, server: &Server, status: Option<&Status>) -> Vec<Cell> {
    let mut cells = list::row(name, server);
    let Some(status) = status else {
        let last = cells.pop();
        cells.extend([
            Cell::new("-"),
            Cell::new("-"),
            Cell::new("-"),
            Cell::new("-"),
        ]);
        cells.extend(last);
        return cells;
    };
    cells.truncate(2);
    let count = |count: Option<usize>| match count {
        Some(count) => Cell::new(count.to_string()),
        None => Cell::new("-"),
    };
    let took = Cell::new(duration(status.took()));
    let state = Cell::new(status.as_str());
    match status {
        Status::Connected(connected) => {
            let tools = match (connected.tools, connected.hidden_tools) {
                (Some(shown), hidden @ 1..) => Cell::new(format!("{shown} of {}", shown + hidden)),
                (shown, _) => count(shown),
            };
            let state = if connected.unlisted.is_empty() {
                state
            } else {
                state.styled(Style::Yellow)
            };
            cells.extend([
                state,
                tools,
                count(connected.resources),
                count(connected.prompts),
                took,
                Cell::new(connected.details()),
            ]);
        }
        Status::Failed { error, .. } => cells.extend([
            state.styled(Style::Red),
            count(None),
            count(None),
            count(None),
            took,
            Cell::new(short(error)),
        ]),
    }
    cells
}

fn connection(status: &Status) -> ConnectionReport<'_> {
    ConnectionReport {
        status: match status.as_str() {
            "timed out" => "timed-out",
            other => other,
        },
        milliseconds: status.took().as_millis(),
        facts: match status {
            Status::Failed { .. } => None,
            Status::Connected(connected) => Some(FactsReport {
                server_name: connected.name.as_deref(),
                server_version: connected.version.as_deref(),
                revision: connected.revision,
                era: &connected.era,
                transport_used: connected.transport,
                tools: connected.tools,
                hidden_tools: connected.hidden_tools,
                resources: connected.resources,
                prompts: connected.prompts,
                unlisted: connected
                    .unlisted
                    .iter()
                    .map(|(list, error)| UnlistedReport {
                        list,
                        error: error_object(error),
                    })
                    .collect(),
            }),
        },
        error: match status {
            Status::Connected(_) => None,
            Status::Failed { error, .. } => error_object(error),
        },
    }
}
