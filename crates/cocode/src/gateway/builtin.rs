//! The built-in workspace tools as an MCP server in this process, reached like any other server.

mod answers;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cocode_client::Reached;
use cocode_config::Config;
use cocode_core::{ServerName, ServerSpec};
use cocode_tools::{Permissions, Workspace as Tools};

use self::server::ToolServer;
use super::in_process::Connections;
use super::own_files::OwnFiles;
use crate::args::gateway::BuiltInArgs;
use crate::configured::blocked;
use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// What the server is called.
pub(crate) const NAME: &str = "workspace";

/// What stands in the place of a program.
const PROGRAM: &str = "cocode-workspace-tools";

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The tools that are to be served, and what makes them a server.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    spec: ServerSpec,
    root: PathBuf,
    /// What lies there and is the gateway's own.
    kept: Option<PathBuf>,
    server: Arc<ToolServer>,
    /// One task for each connection.
    connections: Connections,
    /// Tells it from others with the same root: their environments may differ.
    id: u64,
}

impl BuiltIn {
    /// The built-in tools, if they are wanted and allowed: because a root is given for them, or
    /// because there is nothing else. They keep out of the files with keys.
    pub(crate) fn wanted(
        args: &BuiltInArgs,
        keys: &[PathBuf],
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
        if args.root.is_none() && workspace.places.directory.is_none() {
            return Ok(None);
        }
        let built_in = Self::open(args, keys, workspace)?;
        let Some(reason) = config.refuses_unlisted(&built_in.spec) else {
            return Ok(Some(built_in));
        };
        let refused = blocked("the built-in server of tools", &reason);
        if args.root.is_some() {
            return Err(refused);
        }
        workspace.printer.warn(&refused.message);
        Ok(None)
    }

    fn open(args: &BuiltInArgs, keys: &[PathBuf], workspace: &Workspace) -> Result<Self, CliError> {
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
        let tools = tools
            .with_environment(workspace.environment.variables.for_servers())
            .with_reserved(&OwnFiles::obeyed(workspace)?.reserve(keys.to_vec(), workspace)?);
        let name: ServerName = NAME.parse().map_err(|error| {
            CliError::new(Code::SetupFailed, "a server without a name").because(&error)
        })?;
        let root = tools.root().to_owned();
        let mut words = vec![root.display().to_string()];
        words.extend(args.allow_write.then(|| "--allow-write".to_owned()));
        words.extend(args.allow_shell.then(|| "--allow-shell".to_owned()));
        Ok(Self {
            spec: ServerSpec::program(name, PROGRAM, words),
            kept: OwnFiles::kept(workspace)
                .exposed_by(&root)
                .map(Path::to_owned),
            root,
            server: Arc::new(ToolServer::new(tools)),
            connections: Connections::default(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        })
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Whether principals are served it: not where they could read what the gateway keeps for itself.
    pub(super) fn is_for_principals(&self) -> bool {
        self.kept.is_none()
    }

    /// What to say of that where there are principals.
    pub(super) fn warning(&self) -> Option<String> {
        let (root, kept) = (self.root.display(), self.kept.as_ref()?.display());
        Some(format!(
            "the built-in tools for {root} are not served to principals, who could read {kept}, which is the \
             gateway's own; `--root DIR` serves another directory"
        ))
    }

    /// Note for users without configured servers: the tools are served by default.
    pub(crate) fn introduction(&self, config: &Config) -> Option<String> {
        let root = self.root.display();
        config.servers.is_empty().then(|| {
            format!(
                "no servers are configured (`cocode mcp add`, `cocode mcp import`): serving the \
                 built-in tools for {root}"
            )
        })
    }

    /// Sharing key: no two instances share a connection.
    pub(crate) fn sharing(&self) -> Vec<String> {
        vec![format!("built-in {}", self.id)]
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
