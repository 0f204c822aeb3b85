//! `cocode mcp serve`: the configured servers on the standard streams of this process, as agents are
//! configured with it. The servers run in the shared daemon if that can be had, else here.

mod front;
mod standalone;
mod warned;

use std::sync::Arc;

use cocode_gateway::View;
use cocode_wire::serve::Endpoint;

pub(crate) use standalone::options;

use crate::agent::served;
use crate::args::serve::{ServeArgs, WantedArgs};
use crate::error::{CliError, Exit};
use crate::gateway::plan::{of_gateway, profile_of};
use crate::itself::is_no_server_of_ours;
use crate::serving::{Selection, Shape};
use crate::tool_search::ToolSearch;
use crate::workspace::Workspace;

/// Result of serving through the daemon.
enum FrontOutcome {
    Served(Exit),
    /// The daemon cannot be used, for this reason unless serving alone finds it out. Nothing was read yet.
    Unavailable(Option<String>),
}

/// Serves until the client leaves.
pub(crate) fn run(args: &ServeArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    // Many clients never read what their servers write to stderr.
    let _aside = workspace.printer.write_aside();
    if args.agent {
        return served::run(args, workspace);
    }
    is_no_server_of_ours(workspace)?;
    let warning = if args.standalone {
        None
    } else {
        match front::run(args, workspace)? {
            FrontOutcome::Served(exit) => return Ok(exit),
            FrontOutcome::Unavailable(warning) => warning,
        }
    };
    standalone::run(args, warning, workspace)
}

/// What a client is to see: the servers that were named, else those of the profile.
pub(crate) fn shape(wanted: &WantedArgs, workspace: &Workspace) -> Result<Shape, CliError> {
    let config = workspace.config()?;
    let WantedArgs {
        servers,
        profile,
        server,
        search,
        tools,
    } = wanted;
    let profile = profile.as_deref();
    let profile = profile.map(|name| profile_of(name, config)).transpose()?;
    let named = match server {
        Some(only) => Some(std::slice::from_ref(only)),
        None if servers.is_empty() => profile.and_then(|profile| profile.servers.as_deref()),
        None => Some(servers.as_slice()),
    };
    let prefix = profile.and_then(|profile| profile.prefix);
    let variables = &workspace.environment.variables;
    let search = ToolSearch::new(*search, profile, &config.settings.tool_search, variables)?;
    Ok(Shape {
        selection: Selection {
            servers: named.map(|names| names.iter().cloned().collect()),
        },
        prefix: of_gateway(prefix.unwrap_or(config.settings.gateway.prefix.value)),
        search: search.options,
        tools: tools.clone(),
    })
}

/// What a client talks to: one server as it is, or all as one. Nothing if the one is not there.
pub(crate) fn endpoint(view: &View, only: Option<&str>) -> Option<Arc<dyn Endpoint>> {
    match only {
        Some(only) => view.server(only),
        None => Some(view.all()),
    }
}
