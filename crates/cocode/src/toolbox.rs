//! All tools that a command searches or weighs, of the configured servers or of a file.

mod catalog;
mod configured;
mod input;

use std::sync::Arc;

use cocode_client::Tool;
use cocode_core::{ToolIndex, ToolText};

use crate::args::search::ToolboxArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::workspace::Workspace;

pub(crate) use catalog::kind;
pub(crate) use input::{STDIN, bad_file, read};

/// Tools, by server.
#[derive(Debug, Default)]
pub(crate) struct Toolbox {
    pub(crate) servers: Vec<ServerTools>,
    /// Servers whose tools nobody knows, which are otherwise ready.
    pub(crate) unknown: Vec<String>,
}

/// The tools of one server, after filters and rules.
#[derive(Debug, Default)]
pub(crate) struct ServerTools {
    pub(crate) name: String,
    /// What the server says about itself.
    pub(crate) about: Option<String>,
    /// Whether models are always shown its tools.
    pub(crate) always_load: bool,
    pub(crate) tools: Vec<ToolEntry>,
}

/// One tool.
#[derive(Debug, Default)]
pub(crate) struct ToolEntry {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// As its server wrote it.
    pub(crate) input_schema: Option<String>,
}

/// What a command works with: its tools, and its workspace unless a file was given in place of all
/// configuration.
pub(crate) struct Opened {
    pub(crate) toolbox: Toolbox,
    pub(crate) workspace: Option<Workspace>,
}

/// Finds the tools that are meant. A workspace is made only if servers are.
pub(crate) fn open(
    args: &ToolboxArgs,
    printer: &Arc<Printer>,
    workspace: impl FnOnce() -> Result<Workspace, CliError>,
) -> Result<Opened, CliError> {
    if let Some(file) = &args.catalog {
        let toolbox = catalog::read(file, printer)?;
        let workspace = None;
        return Ok(Opened { toolbox, workspace });
    }
    let workspace = workspace()?;
    let toolbox = configured::open(args, &workspace)?;
    Ok(Opened {
        toolbox,
        workspace: Some(workspace),
    })
}

impl Toolbox {
    /// All tools, ready to be searched.
    pub(crate) fn index(&self) -> ToolIndex {
        let mut index = ToolIndex::new();
        for server in &self.servers {
            let tools = server.tools.iter().map(ToolEntry::text);
            index.set_server(&server.name, server.about.as_deref(), tools);
        }
        index
    }

    pub(crate) fn tool(&self, server: &str, tool: &str) -> Option<&ToolEntry> {
        let mut servers = self.servers.iter();
        let server = servers.find(|one| one.name == server)?;
        server.tools.iter().find(|one| one.name == tool)
    }
}

impl ToolEntry {
    /// A tool as its server describes it.
    pub(crate) fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: Some(tool.input_schema.as_str().to_owned()),
        }
    }

    fn text(&self) -> ToolText<'_> {
        ToolText {
            name: &self.name,
            title: self.title.as_deref(),
            description: self.description.as_deref(),
            input_schema: self.input_schema.as_deref(),
        }
    }
}

/// The name of a tool as `mcp call` takes it.
pub(crate) fn callable(server: &str, tool: &str) -> String {
    format!("{server}.{tool}")
}
