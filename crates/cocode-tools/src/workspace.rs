//! A root and the tools for it.

use std::ffi::OsString;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use cocode_process::{Confinement, PathHandle};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::confine::{Resolver, Root};
use crate::definition::ToolDefinition;
use crate::error::{OpenError, ToolError};
use crate::limits::{MAX_EDIT_BYTES, MAX_FILE_CALLS, MAX_SEARCH_CALLS, MAX_SHELL_CALLS};
use crate::output::ToolOutput;
use crate::progress::Progress;
use crate::sandbox::{LeaveRequest, Leaving, Sandbox};
use crate::tool::{Call, Shared, Tool};
use crate::tools::{Edit, Find, Grep, List, Read, SHELL, Shell, Write};

/// Where a shell command finds its programs when no environment is given.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What may be done in a workspace besides reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Files may be written: `edit` and `write`.
    pub write: bool,
    /// Commands may be run: `shell`. They can do whatever this process can, unless the workspace is given a
    /// confinement.
    pub shell: bool,
}

/// A directory, and the tools that work in it and nowhere else.
///
/// Clones are cheap. They share the directory, and wait for each other as calls of one workspace do.
#[derive(Clone)]
pub struct Workspace {
    shared: Arc<Shared>,
    tools: Arc<[Entry]>,
    permissions: Permissions,
    environment: Arc<[(OsString, OsString)]>,
    sandbox: Sandbox,
}

/// Values of an environment may be secret.
impl fmt::Debug for Workspace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            shared,
            tools: _,
            permissions,
            environment: _,
            sandbox,
        } = self;
        formatter
            .debug_struct("Workspace")
            .field("root", &shared.root.path())
            .field("permissions", permissions)
            .field("sandbox", sandbox)
            .finish_non_exhaustive()
    }
}

struct Entry {
    definition: ToolDefinition,
    needs: Need,
    tool: Box<dyn Tool>,
}

#[derive(Clone, Copy, Debug)]
enum Need {
    Nothing,
    Write,
    Shell,
}

impl Workspace {
    /// Opens a directory. It may be named by a link; what it is at this moment is the workspace,
    /// also if it is moved later.
    pub fn open(root: &Path, permissions: Permissions) -> Result<Self, OpenError> {
        Ok(Self::with(Root::open(root, Resolver::System)?, permissions))
    }

    /// The workspace in a directory that was opened before.
    pub fn at(root: PathHandle, permissions: Permissions) -> Result<Self, OpenError> {
        Ok(Self::with(Root::at(root, Resolver::System)?, permissions))
    }

    /// The tools for a root that is open.
    pub(crate) fn with(root: Root, permissions: Permissions) -> Self {
        let environment = vec![(OsString::from("PATH"), OsString::from(SEARCH_PATH))];
        let tools: [(Need, Box<dyn Tool>); 7] = [
            (Need::Nothing, Box::new(Read)),
            (Need::Nothing, Box::new(List)),
            (Need::Nothing, Box::new(Find)),
            (Need::Nothing, Box::new(Grep)),
            (Need::Write, Box::new(Edit)),
            (Need::Write, Box::new(Write)),
            (Need::Shell, Box::new(Shell)),
        ];
        Self {
            shared: Arc::new(Shared {
                root,
                writing: Mutex::new(()),
                baselines: OnceLock::new(),
                file_room: Arc::new(Semaphore::new(MAX_FILE_CALLS)),
                search_room: Arc::new(Semaphore::new(MAX_SEARCH_CALLS)),
                shell_room: Arc::new(Semaphore::new(MAX_SHELL_CALLS)),
            }),
            tools: tools
                .into_iter()
                .map(|(needs, tool)| Entry {
                    definition: tool.definition(),
                    needs,
                    tool,
                })
                .collect(),
            permissions,
            environment: environment.into(),
            sandbox: Sandbox::None,
        }
    }

    /// Gives shell commands this environment, complete: nothing is added. Without one they have a
    /// `PATH` and nothing else.
    #[must_use]
    pub fn with_environment(
        mut self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.environment = environment.into_iter().collect();
        self
    }

    /// Confines shell commands, and keeps `edit` and `write` from files that decide what other programs do:
    /// those of git, and the configuration of cocode. Whether a command may ask to run without is up to
    /// `leaving`; it never does so by itself.
    #[must_use]
    pub fn with_confinement(mut self, confinement: Confinement, leaving: Leaving) -> Self {
        self.shared.root.reserve(&confinement);
        self.sandbox = Sandbox::Confined(Arc::new(confinement), leaving);
        self
    }

    /// Shares the state before running commands with other processes, in a directory that commands cannot write. A
    /// command that began while one of another process had changed a file would take that change for the original.
    #[must_use]
    pub fn with_baselines(self, directory: PathBuf) -> Self {
        self.shared.baselines.get_or_init(|| directory);
        self
    }

    /// Keeps the file tools from the hidden and protected directories of a confinement that commands do not have.
    #[must_use]
    pub fn with_reserved(self, confinement: &Confinement) -> Self {
        self.shared.root.reserve(confinement);
        self
    }

    /// The same workspace, for calls that somebody lets out of the sandbox. Their arguments mean the same.
    #[must_use]
    pub fn unconfined(&self) -> Self {
        Self {
            sandbox: Sandbox::None,
            ..self.clone()
        }
    }

    /// The same workspace with other permissions, for calls that somebody allows or no longer does.
    #[must_use]
    pub fn with_permissions(&self, permissions: Permissions) -> Self {
        Self {
            permissions,
            ..self.clone()
        }
    }

    /// What confines the commands, if anything does.
    pub fn confinement(&self) -> Option<&Confinement> {
        self.sandbox.confinement()
    }

    /// Whether a call asks to run without the sandbox, and why. [`call`](Self::call) refuses it then; whoever
    /// decides makes it by [`unconfined`](Self::unconfined). Always nothing where there is no sandbox.
    pub fn asks_to_leave(&self, tool: &str, arguments: &Value) -> Option<LeaveRequest> {
        self.confinement()?;
        (tool == SHELL).then(|| LeaveRequest::read(arguments))?
    }

    /// The root as it was opened.
    pub fn handle(&self) -> &PathHandle {
        self.shared.root.handle()
    }

    /// The root, without links.
    pub fn root(&self) -> &Path {
        self.shared.root.path()
    }

    /// The tools that the permissions allow, in a fixed order.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools
            .iter()
            .filter(|entry| self.missing(entry.needs).is_none())
            .map(|entry| match (&self.sandbox, entry.needs) {
                (Sandbox::Confined(_, leaving), Need::Shell) => {
                    Shell::confined_definition(*leaving)
                }
                _ => entry.definition.clone(),
            })
            .collect()
    }

    /// Runs one tool. `arguments` is an object, or null for none.
    ///
    /// Dropping the future cancels the call: a search stops, a file that is not yet replaced stays
    /// as it is, and every process of a shell command is ended.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        progress: &dyn Progress,
    ) -> Result<ToolOutput, ToolError> {
        let Some(entry) = self
            .tools
            .iter()
            .find(|entry| entry.definition.name == tool)
        else {
            return Err(ToolError::Unknown {
                tool: tool.to_owned(),
            });
        };
        let name = entry.definition.name;
        if let Some(permission) = self.missing(entry.needs) {
            return Err(ToolError::NotPermitted {
                tool: name,
                permission,
            });
        }
        let call = Call {
            tool: name,
            shared: &self.shared,
            environment: &self.environment,
            sandbox: &self.sandbox,
            arguments,
            progress,
        };
        entry.tool.run(call).await
    }

    /// The text of a file that is there, as far as it is worth showing.
    pub fn current_text(&self, path: &str) -> Option<String> {
        let path = self.shared.root.inside(path).ok()?;
        let file = self.shared.root.open_file(&path).ok()?.file;
        let mut content = Vec::new();
        file.take(MAX_EDIT_BYTES).read_to_end(&mut content).ok()?;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    /// The permission that is needed and was not given.
    fn missing(&self, needs: Need) -> Option<&'static str> {
        let Permissions { write, shell } = self.permissions;
        match needs {
            Need::Write if !write => Some("write"),
            Need::Shell if !shell => Some("shell"),
            Need::Nothing | Need::Write | Need::Shell => None,
        }
    }
}
