//! Serves within this process, with servers that nobody else uses.

use std::sync::Arc;
use std::time::Duration;

use cocode_gateway::Gateway;
use cocode_wire::serve::{Endpoint, LineOptions, Patience, serve_lines, stdio};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::warned::WarnedEndpoint;
use super::{endpoint, shape};
use crate::args::serve::ServeArgs;
use crate::configured;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::serving::{Serving, Supervision};
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// How long requests in flight may go on after the client has ended its side, for scripts that send
/// everything at once.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

/// Serves, and tells the client this warning.
pub(super) fn run(
    args: &ServeArgs,
    warning: Option<String>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    on_runtime(workspace, serve(args, warning, workspace))
}

async fn serve(
    args: &ServeArgs,
    warning: Option<String>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let mut local = Local::begin(args, workspace).await?;
    // A server that is served as it is may not have log messages.
    if let Some(warning) = warning.filter(|_| args.wanted.server.is_none()) {
        local.endpoint = Arc::new(WarnedEndpoint::new(local.endpoint, warning));
    }
    for warning in local.serving.warnings() {
        workspace.printer.warn(&warning);
    }
    let mut signaled = None;
    let shutdown = async {
        signaled = Some(interrupts.next().await);
        // Subscriptions end as they should.
        local.gateway.begin_end();
        local.gateway.begin_drain();
    };
    let closed = stdio(&*local.endpoint, options(), shutdown).await;
    tracing::debug!(%closed, "the client is served no longer");
    local.end().await;
    Ok(signaled.unwrap_or(Exit::Ok))
}

/// How a client is served, whoever does it.
pub(crate) fn options() -> LineOptions {
    LineOptions {
        patience: Patience {
            linger: LINGER,
            ..Patience::default()
        },
        ..LineOptions::default()
    }
}

/// Whatever serves within this process.
pub(super) struct Local {
    endpoint: Arc<dyn Endpoint>,
    serving: Serving,
    gateway: Gateway,
    clients: JoinSet<()>,
    setup: Setup,
}

impl Local {
    pub(super) async fn begin(args: &ServeArgs, workspace: &Workspace) -> Result<Self, CliError> {
        let setup = Setup::new(Purpose::Serving, workspace)?;
        let gateway = Gateway::new();
        let wanted = &args.wanted;
        let only = wanted.server.as_deref();
        let shape = shape(wanted, workspace)?;
        let manager = setup.options(|options| options.log_level = None);
        let nobody = Supervision::default();
        let serving = Serving::of(workspace, manager, &gateway, shape, nobody).await?;
        let Some(endpoint) = endpoint(serving.view(), only) else {
            let name = only.unwrap_or_default();
            return Err(configured::unusable(name, workspace.config()?));
        };
        let mut clients = JoinSet::new();
        let printer = Arc::clone(&workspace.printer);
        let warnings = serving.warnings();
        let warning = serving.warn(warnings, move |warning| printer.warn(warning));
        clients.spawn(async move { match warning.await {} });
        Ok(Self {
            endpoint,
            serving,
            gateway,
            clients,
            setup,
        })
    }

    /// A connection to it, as if it were elsewhere.
    pub(super) fn connect(&mut self) -> Result<UnixStream, CliError> {
        let (ours, theirs) = UnixStream::pair().map_err(|error| {
            CliError::new(Code::SetupFailed, "cannot make a pair of sockets").because(&error)
        })?;
        let endpoint = Arc::clone(&self.endpoint);
        self.clients.spawn(async move {
            let (source, sink) = theirs.into_split();
            let forever = std::future::pending();
            let closed = serve_lines(source, sink, &*endpoint, options(), forever).await;
            tracing::debug!(%closed, "the client is served no longer");
        });
        Ok(ours)
    }

    /// Ends the servers.
    pub(super) async fn end(self) {
        let Self {
            endpoint,
            serving,
            gateway,
            mut clients,
            setup,
        } = self;
        clients.shutdown().await;
        serving.settle().await;
        drop((endpoint, serving));
        gateway.finish().await;
        setup.end();
    }
}
