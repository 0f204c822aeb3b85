//! Lists of all servers that are ready, side by side. A server that fails is a warning, and the
//! others are listed all the same; one that is not ready is never started.

mod listed;

use cocode_client::{CallError, ListKind, Listing, Prompt, Resource, ResourceTemplate, Tool};
use cocode_config::State;
use cocode_core::{Dialect, ServerSpec};
use serde::Serialize;
use serde_json::value::RawValue;

use super::cached::{Memory, Remembered};
use super::definitions::{self, Definitions, Details};
use crate::args::{TargetArgs, Verb};
use crate::configured::warn_of_passed_over;
use crate::error::{CliError, Code, Exit};
use crate::fleet::{self, Fleet, Wishes, error_object, short, until};
use crate::gate::Gate;
use crate::hints::{Doing, request_error};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::printer::print_json;
use crate::render::rows;
use crate::session::on_runtime;
use crate::target::{adjusted, timeouts};
use crate::workspace::Workspace;

use listed::Listed;

type Outcome = Result<Listed, CliError>;

#[derive(Serialize)]
struct Report<'a> {
    servers: Vec<OneReport<'a>>,
    /// Servers that are configured and were left alone.
    #[serde(rename = "notContacted")]
    not_contacted: Vec<LeftAlone<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct OneReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(flatten)]
    definitions: Option<Details<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_templates: Option<Vec<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Vec<&'a RawValue>>,
    /// How old the list is, where nobody was asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct LeftAlone<'a> {
    name: &'a str,
    state: &'static str,
}

/// The list of all servers that a verb means, if it names none.
pub(crate) fn meant(verb: &Verb) -> Option<ListKind> {
    if verb.target().is_given() {
        return None;
    }
    match verb {
        Verb::Tools { words, .. } if words.is_empty() => Some(ListKind::Tools),
        Verb::Prompts { words, .. } if words.is_empty() => Some(ListKind::Prompts),
        Verb::Resources {
            server: None,
            templates,
            ..
        } => Some(if *templates {
            ListKind::ResourceTemplates
        } else {
            ListKind::Resources
        }),
        _ => None,
    }
}

pub(crate) fn run(kind: ListKind, verb: &Verb, workspace: &Workspace) -> Result<Exit, CliError> {
    let target = verb.target();
    let for_one = [
        ("--root", !target.root.is_empty()),
        ("--answer", !target.answer.is_empty()),
        ("--max-message-bytes", target.max_message_bytes.is_some()),
    ];
    if let Some((option, _)) = for_one.iter().find(|(_, is_given)| *is_given) {
        let message = format!("`{option}` is for one server, and none is named");
        return Err(CliError::new(Code::InvalidUsage, message));
    }
    let config = workspace.config()?;
    workspace.warn_of_files(config);
    for server in config.servers.values() {
        if matches!(server.state, State::Ready(_)) {
            warn_of_passed_over(server, workspace);
        }
    }
    let specs: Vec<ServerSpec> = config.ready().map(|spec| hurried(spec, target)).collect();
    let work = Work {
        kind,
        dialect: verb.dialect(),
        specs: &specs,
        workspace,
    };
    if verb.is_cached() {
        let memory = Memory::of(&specs, workspace)?;
        let outcomes = specs.iter().map(|spec| work.recall(spec, &memory));
        return work.finish(&outcomes.collect::<Vec<_>>());
    }
    let setup = Setup::new(Purpose::OneThing, workspace)?;
    let outcome = on_runtime(workspace, work.all(target, &setup));
    setup.end();
    outcome
}

/// As with one server, but nobody waits for a download of one of many.
fn hurried(spec: &ServerSpec, target: &TargetArgs) -> ServerSpec {
    let mut spec = spec.clone();
    spec.connect_timeout = spec.connect_timeout.min(spec.startup_timeout);
    adjusted(spec, target)
}

struct Work<'a> {
    kind: ListKind,
    /// How tools are written, if not for people.
    dialect: Option<Dialect>,
    specs: &'a [ServerSpec],
    workspace: &'a Workspace,
}

impl Work<'_> {
    async fn all(&self, target: &TargetArgs, setup: &Setup) -> Result<Exit, CliError> {
        let mut interrupts = Interrupts::catch()?;
        let wishes = Wishes {
            request_timeout: Some(timeouts(target).request),
            more_time: "--connect-timeout",
        };
        let fleet = Fleet::new(self.specs.to_vec(), wishes, setup, self.workspace).await?;
        let names = self.names();
        let printer = &self.workspace.printer;
        let outcomes = fleet::visit(&names, printer, &mut interrupts, |index| {
            let (spec, fleet) = (self.specs.get(index), &fleet);
            async move {
                match spec {
                    Some(spec) => Some(Box::pin(self.list(spec, fleet)).await),
                    None => None,
                }
            }
        })
        .await?;
        let outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
        let finished = self.finish(&outcomes);
        fleet.close(&mut interrupts).await;
        finished
    }

    fn names(&self) -> Vec<&str> {
        self.specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    async fn list(&self, spec: &ServerSpec, fleet: &Fleet) -> Outcome {
        let gate = Gate::new(Some(spec), self.workspace)?;
        let session = fleet.session(spec).await.map_err(|failure| failure.error)?;
        let (manager, name) = (&fleet.manager, &spec.name);
        let has = &session.server().capabilities;
        // A server that has no such list is not asked for it, and nothing is wrong with it.
        let listed = match self.kind {
            ListKind::Tools => {
                let listing = manager.list_tools(name, until()).await;
                listing.map(|listing| self.tools(listing, spec, &gate))
            }
            ListKind::Resources if has.resources => {
                let listing = manager.list_resources(name, until()).await;
                listing.map(|listing| Listed::resources(&listing))
            }
            ListKind::ResourceTemplates if has.resources => {
                let listing = manager.list_resource_templates(name, until()).await;
                listing.map(|listing| Listed::templates(&listing))
            }
            ListKind::Prompts if has.prompts => {
                let listing = manager.list_prompts(name, until()).await;
                listing.map(|listing| Listed::prompts(&listing))
            }
            _ => Ok(Listed::none()),
        };
        listed.map_err(|error| self.not_listed(&error, spec, fleet))
    }

    fn tools(&self, listing: Listing<Tool>, spec: &ServerSpec, gate: &Gate) -> Listed {
        Listed::tools(
            listing,
            gate,
            (&spec.name, self.dialect),
            &self.workspace.printer,
        )
    }

    fn not_listed(&self, error: &CallError, spec: &ServerSpec, fleet: &Fleet) -> CliError {
        let mut error = fleet.about(spec).told(error, Doing::Other);
        let message = format!("the {} of `{}` could not be listed", self.what(), spec.name);
        let cause = std::mem::replace(&mut error.message, message);
        error.causes.insert(0, cause);
        error
    }

    fn what(&self) -> &'static str {
        match self.kind {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::ResourceTemplates => "resource templates",
            ListKind::Prompts => "prompts",
        }
    }

    /// What is remembered of a server's list.
    fn recall(&self, spec: &ServerSpec, memory: &Memory) -> Outcome {
        let Remembered {
            pages,
            age,
            seconds,
            is_fresh: _,
        } = memory.load(self.kind, spec)?;
        let gate = Gate::new(Some(spec), self.workspace)?;
        let listed =
            match self.kind {
                ListKind::Tools => Listing::<Tool>::from_pages(pages)
                    .map(|listing| self.tools(listing, spec, &gate)),
                ListKind::Resources => Listing::<Resource>::from_pages(pages)
                    .map(|listing| Listed::resources(&listing)),
                ListKind::ResourceTemplates => Listing::<ResourceTemplate>::from_pages(pages)
                    .map(|listing| Listed::templates(&listing)),
                ListKind::Prompts => {
                    Listing::<Prompt>::from_pages(pages).map(|listing| Listed::prompts(&listing))
                }
            };
        let mut listed = listed.map_err(|error| request_error(&error, Doing::Other))?;
        listed.age = Some((age, seconds));
        Ok(listed)
    }

    fn finish(&self, outcomes: &[Outcome]) -> Result<Exit, CliError> {
        let names = self.names();
        let found: Vec<(&str, &Outcome)> = names.into_iter().zip(outcomes).collect();
        self.print(&found)?;
        definitions::check(defined(outcomes))?;
        let none_worked = !found.is_empty() && outcomes.iter().all(Result::is_err);
        let is_cache = |outcome: &Outcome| {
            let error = outcome.as_ref().err();
            error.is_some_and(|error| error.code == Code::NotCached.as_str())
        };
        Ok(match none_worked {
            false => Exit::Ok,
            true if outcomes.iter().all(is_cache) => Exit::Usage,
            true => Exit::Server,
        })
    }

    fn print(&self, found: &[(&str, &Outcome)]) -> Result<(), CliError> {
        let workspace = self.workspace;
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
            let servers = found.iter();
            let report = Report {
                servers: servers.map(|(name, one)| self.report(name, one)).collect(),
                not_contacted: left_alone,
            };
            return print_json(printer, &report);
        }
        let what = self.what();
        let mut list = Vec::new();
        for (name, outcome) in found {
            match outcome {
                Ok(listed) => {
                    listed.tell(name, what, printer);
                    list.extend(listed.named(name, self.kind));
                }
                Err(error) => {
                    let reason = short(error);
                    let doctor = if error.code == Code::NotCached.as_str() {
                        String::new()
                    } else {
                        format!(" (`cocode mcp doctor {name}`)")
                    };
                    printer.warn(&format!("server `{name}`: {reason}{doctor}"));
                }
            }
        }
        note_left_alone(&left_alone, workspace);
        if found.is_empty() {
            printer.note("no server is ready: `cocode mcp list` shows all");
        } else if list.is_empty() && found.iter().any(|(_, outcome)| outcome.is_ok()) {
            printer.warn(&format!("there are no {what}"));
        }
        if self.dialect.is_some() {
            return definitions::print_all(defined(found.iter().map(|(_, one)| *one)), printer);
        }
        printer.out(rows(&list, printer.width(), printer.paint()))
    }

    fn report<'a>(&self, name: &'a str, outcome: &'a Outcome) -> OneReport<'a> {
        let mut report = OneReport {
            name,
            ..OneReport::default()
        };
        match outcome {
            Err(error) => report.error = error_object(error),
            Ok(listed) => {
                let raw = listed.raw.iter().filter_map(|item| item.decode().ok());
                let raw = Some(raw.collect());
                match self.kind {
                    ListKind::Tools if listed.definitions.is_some() => {
                        let definitions = listed.definitions.as_ref();
                        report.definitions = definitions.map(Definitions::details);
                    }
                    ListKind::Tools => report.tools = raw,
                    ListKind::Resources => report.resources = raw,
                    ListKind::ResourceTemplates => report.resource_templates = raw,
                    ListKind::Prompts => report.prompts = raw,
                }
                report.age_seconds = listed.age.as_ref().map(|(_, seconds)| *seconds);
            }
        }
        report
    }
}

/// The tools of all servers that have listed them, as a provider takes them.
fn defined<'a>(
    outcomes: impl IntoIterator<Item = &'a Outcome>,
) -> impl Iterator<Item = &'a Definitions> {
    let listed = outcomes.into_iter().flatten();
    listed.filter_map(|listed| listed.definitions.as_ref())
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
