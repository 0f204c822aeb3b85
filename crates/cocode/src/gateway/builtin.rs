//! The built-in workspace tools as an MCP server in this process, reached like any other server.

mod answers;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_client::Reached;
use cocode_config::Config;
use cocode_core::{ServerName, ServerSpec};
use cocode_tools::{Permissions, Workspace as Tools};

use self::server::ToolServer;
use super::in_process::Connections;
use crate::access::Access;
use crate::args::gateway::BuiltInArgs;
use crate::configured::blocked;
use crate::error::{CliError, Code};
use crate::printer::Printer;
use crate::workspace::Workspace;

/// What the server is called.
pub(crate) const NAME: &str = "workspace";

/// What stands in the place of a program.
const PROGRAM: &str = "cocode-workspace-tools";

/// The tools that are to be served, and what makes them a server.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    spec: ServerSpec,
    root: PathBuf,
    server: Arc<ToolServer>,
    /// One task for each connection.
    connections: Connections,
}

impl BuiltIn {
    /// The built-in tools, if they are wanted and allowed: because a root is given for them, or
    /// because there is nothing else.
    pub(crate) fn wanted(
        args: &BuiltInArgs,
        access: &Access,
        workspace: &Workspace,
    ) -> Result<Option<Self>, CliError> {
        let config = workspace.config()?;
        if args.root.is_none() && !config.servers.is_empty() {
            let given = [
                ("--allow-write", args.allow_write),
                ("--allow-shell", args.allow_shell),
            ];
            return match given.iter().find(|(_, is_given)| *is_given) {
                None => Ok(None),
                Some((option, _)) => {
                    let message = format!(
                        "`{option}` is for the built-in tools, which are not served here: servers \
                         are configured"
                    );
                    Err(CliError::new(Code::InvalidUsage, message)
                        .hint("`--root DIR` serves them as well"))
                }
            };
        }
        if config.servers.contains_key(NAME) {
            let message = format!("the built-in tools are served as `{NAME}`, which is taken");
            return Err(CliError::new(Code::InvalidUsage, message)
                .hint(format!(
                    "a server of this name is configured: `cocode mcp explain {NAME}`"
                ))
                .hint("leave out `--root`, or give that server another name"));
        }
        let built_in = Self::open(args, workspace)?;
        let reason = config.refuses_unlisted(&built_in.spec);
        let refused = reason.map(|reason| blocked("the built-in server of tools", &reason));
        let shown = kept_below(&built_in.root, workspace).filter(|_| access.is_asked());
        let Some(refused) = refused.or_else(|| Some(shows_too_much(&built_in.root, &shown?)))
        else {
            return Ok(Some(built_in));
        };
        if args.root.is_some() {
            return Err(refused);
        }
        workspace.printer.warn(&refused.message);
        Ok(None)
    }

    fn open(args: &BuiltInArgs, workspace: &Workspace) -> Result<Self, CliError> {
        let here = workspace.places.directory.as_deref();
        let root = args.root.as_deref().unwrap_or_else(|| Path::new("."));
        let root = here.map_or_else(|| root.to_owned(), |here| here.join(root));
        let permissions = Permissions {
            write: args.allow_write,
            shell: args.allow_shell,
        };
        let tools = Tools::open(&root, permissions).map_err(|error| {
            CliError::new(
                Code::FileError,
                "the root of the built-in tools cannot be used",
            )
            .because(&error)
        })?;
        let tools = tools.with_environment(workspace.environment.variables.for_servers());
        let name: ServerName = NAME.parse().map_err(|error| {
            CliError::new(Code::SetupFailed, "a server without a name").because(&error)
        })?;
        let root = tools.root().to_owned();
        let mut words = vec![root.display().to_string()];
        words.extend(args.allow_write.then(|| "--allow-write".to_owned()));
        words.extend(args.allow_shell.then(|| "--allow-shell".to_owned()));
        Ok(Self {
            spec: ServerSpec::program(name, PROGRAM, words),
            root,
            server: Arc::new(ToolServer::new(tools)),
            connections: Connections::default(),
        })
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Says what is served, where nobody has asked for it.
    pub(crate) fn introduce(&self, config: &Config, printer: &Printer) {
        let root = self.root.display();
        if config.servers.is_empty() {
            printer.note(&format!(
                "no servers are configured (`cocode mcp add`, `cocode mcp import`): serving the \
                 built-in tools for {root}"
            ));
        }
    }

    /// Whether this is what a specification means.
    pub(crate) fn is(&self, spec: &ServerSpec) -> bool {
        self.spec.name == spec.name && self.spec.reach == spec.reach
    }

    /// A connection to the server. Has to be called within a runtime.
    pub(crate) fn reach(&self) -> Reached {
        self.connections
            .reach(Arc::<ToolServer>::clone(&self.server))
    }
}

/// What the gateway keeps for itself, if it is below this directory: its tokens, its log, credentials.
fn kept_below(root: &Path, workspace: &Workspace) -> Option<PathBuf> {
    let kept = [&workspace.places.state, &workspace.places.user].into_iter();
    let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    kept.map(real).find(|path| path.starts_with(root))
}

fn shows_too_much(root: &Path, kept: &Path) -> CliError {
    let message = format!(
        "the built-in tools are not served for {}: whoever has a token could read {}, which is the gateway's own",
        root.display(),
        kept.display()
    );
    CliError::new(Code::InvalidUsage, message).hint("`--root DIR` serves another directory")
}
