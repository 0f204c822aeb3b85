//! The tools of the configured servers: what is remembered of them, or what they say now.

use cocode_client::{ListKind, Listing, Tool};
use cocode_config::{Config, State};
use cocode_core::ServerSpec;

use super::{ServerTools, ToolEntry, Toolbox};
use crate::args::search::ToolboxArgs;
use crate::configured::warn_of_passed_over;
use crate::error::{CliError, Code};
use crate::fleet::{self, Fleet, Wishes, short, until};
use crate::gate::Gate;
use crate::hints::Doing;
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::session::on_runtime;
use crate::text::plain;
use crate::verbs::cached::Memory;
use crate::workspace::Workspace;

/// What a server listed, and what it says about itself.
struct Told {
    about: Option<String>,
    listing: Listing<Tool>,
}

pub(super) fn open(args: &ToolboxArgs, workspace: &Workspace) -> Result<Toolbox, CliError> {
    let config = workspace.config()?;
    workspace.warn_of_files(config);
    for server in config.servers.values() {
        if matches!(server.state, State::Ready(_)) {
            warn_of_passed_over(server, workspace);
        }
    }
    let specs: Vec<ServerSpec> = config.ready().cloned().collect();
    note_left_out(config, workspace);
    if specs.is_empty() {
        let message = "no server is ready, so there are no tools";
        return Err(CliError::new(Code::NotCached, message).hint(
            "`cocode mcp list` shows all servers, `cocode mcp add` adds one, and `--catalog FILE` \
             needs none",
        ));
    }
    let asked = if args.refresh {
        ask(&specs, args, workspace)?
    } else {
        specs.iter().map(|_| None).collect()
    };
    let memory = Memory::of(&specs, workspace)?;
    let mut toolbox = Toolbox::default();
    for (spec, asked) in specs.iter().zip(asked) {
        match asked.or_else(|| recall(spec, &memory)) {
            Some(told) => toolbox.servers.push(shown(spec, told, workspace)?),
            None => toolbox.unknown.push(spec.name.as_str().to_owned()),
        }
    }
    told_of_unknown(toolbox, args, workspace)
}

/// Says whose tools nobody knows. If that is all of them, there is nothing to go on with.
fn told_of_unknown(
    toolbox: Toolbox,
    args: &ToolboxArgs,
    workspace: &Workspace,
) -> Result<Toolbox, CliError> {
    let Some(first) = toolbox.unknown.first() else {
        return Ok(toolbox);
    };
    if toolbox.servers.is_empty() {
        if args.refresh {
            let message = "no server could be asked for its tools";
            return Err(CliError::new(Code::NotCached, message)
                .hint("`cocode mcp doctor` finds out what is wrong"));
        }
        let message = "nothing is remembered of the tools of any server";
        return Err(CliError::new(Code::NotCached, message).hint(format!(
            "`--refresh` asks them all now, `cocode mcp tools {first}` one of them"
        )));
    }
    if !args.refresh {
        workspace.printer.warn(&format!(
            "nothing is remembered of the tools of {}: `--refresh` asks all servers, `cocode mcp \
             tools {first}` one",
            toolbox.unknown.join(", ")
        ));
    }
    Ok(toolbox)
}

/// Names servers that are configured and take no part.
fn note_left_out(config: &Config, workspace: &Workspace) {
    let left_out = config.servers.iter().filter_map(|(name, server)| {
        let is_to_say = matches!(
            server.state,
            State::Pending | State::Blocked { .. } | State::Invalid(_)
        );
        is_to_say.then(|| format!("{} ({})", plain(name), server.state.as_str()))
    });
    let left_out: Vec<String> = left_out.collect();
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        let message = format!("left out: {names}; `cocode mcp list` says why");
        workspace.printer.note(&message);
    }
}

fn recall(spec: &ServerSpec, memory: &Memory) -> Option<Told> {
    let mut remembered = memory.recall(spec)?;
    let list = remembered.lists.remove(&ListKind::Tools)?;
    let facts = remembered.facts();
    Some(Told {
        about: facts.and_then(|facts| facts.instructions),
        listing: Listing::<Tool>::from_pages(list.pages).ok()?,
    })
}

/// What may be seen of it.
fn shown(spec: &ServerSpec, told: Told, workspace: &Workspace) -> Result<ServerTools, CliError> {
    let gate = Gate::new(Some(spec), workspace)?;
    let Told { about, listing } = told;
    let tools = listing.items.into_iter();
    let tools = tools.filter(|tool| gate.shows(&tool.name, tool.annotations));
    Ok(ServerTools {
        name: spec.name.as_str().to_owned(),
        about: spec.description.clone().or(about),
        always_load: spec.always_load,
        tools: tools.map(|tool| ToolEntry::of(&tool)).collect(),
    })
}

/// Asks all servers. One that fails is a warning.
fn ask(
    specs: &[ServerSpec],
    args: &ToolboxArgs,
    workspace: &Workspace,
) -> Result<Vec<Option<Told>>, CliError> {
    let hurried = |spec: &ServerSpec| {
        let mut spec = spec.clone();
        let own = spec.connect_timeout.min(spec.startup_timeout);
        spec.connect_timeout = args.timeout.unwrap_or(own);
        spec
    };
    let specs: Vec<ServerSpec> = specs.iter().map(hurried).collect();
    let setup = Setup::new(Purpose::OneThing, workspace)?;
    let outcomes = on_runtime(workspace, asked(&specs, args, &setup, workspace));
    setup.end();
    outcomes
}

async fn asked(
    specs: &[ServerSpec],
    args: &ToolboxArgs,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Vec<Option<Told>>, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let wishes = Wishes {
        request_timeout: args.timeout,
        more_time: "--timeout",
    };
    let fleet = Fleet::new(specs.to_vec(), wishes, setup, workspace).await?;
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let printer = &workspace.printer;
    let outcomes = fleet::visit(&names, printer, &mut interrupts, |index| {
        let (spec, fleet) = (specs.get(index), &fleet);
        async move {
            let spec = spec?;
            let told = Box::pin(one(spec, fleet)).await;
            let failed = |error: CliError| {
                let (name, reason) = (&spec.name, short(&error));
                printer.warn(&format!(
                    "server `{name}`: {reason} (`cocode mcp doctor {name}`)"
                ));
            };
            told.map_err(failed).ok()
        }
    })
    .await?;
    fleet.close(&mut interrupts).await;
    Ok(outcomes)
}

async fn one(spec: &ServerSpec, fleet: &Fleet) -> Result<Told, CliError> {
    let session = fleet.session(spec).await.map_err(|failure| failure.error)?;
    let listing = fleet.manager.list_tools(&spec.name, until()).await;
    let listing = listing.map_err(|error| fleet.about(spec).told(&error, Doing::Other))?;
    let about = session.server().instructions.clone();
    Ok(Told { about, listing })
}
