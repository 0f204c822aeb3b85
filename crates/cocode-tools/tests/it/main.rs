//! The tools as a caller sees them, on real directories.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

#[cfg(target_os = "linux")]
mod developer_tools;
#[cfg(target_os = "linux")]
mod hook_files;
mod reading;
#[cfg(target_os = "linux")]
mod sandbox;
mod shell;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use cocode_tools::{Block, NoProgress, Permissions, ToolError, ToolOutput, Workspace};
use serde_json::Value;
use tempfile::TempDir;

/// All that a workspace can be given.
const ALL: Permissions = Permissions {
    write: true,
    shell: true,
};

/// A workspace and a place beside it that nothing may touch.
struct House {
    base: TempDir,
    workspace: Workspace,
}

impl House {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("root")).unwrap();
        fs::create_dir(base.path().join("outside")).unwrap();
        fs::write(base.path().join("outside/secret.txt"), "secret\n").unwrap();
        let workspace = Workspace::open(&base.path().join("root"), ALL).unwrap();
        Self { base, workspace }
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.base.path().join("root").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.base.path().join("outside").join(path)
    }

    /// Puts a file into the workspace, with its directories.
    fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.inside(path)).unwrap();
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let output = self.workspace.call(tool, &arguments, &NoProgress).await;
        if let Ok(output) = &output {
            self.check_schema(tool, output);
        }
        output
    }

    /// The text of an answer that is no refusal.
    async fn text(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await.unwrap();
        assert!(!output.is_error, "{output:?}");
        text(&output).to_owned()
    }

    /// The text of a refusal.
    async fn refusal(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await.unwrap();
        assert!(output.is_error && output.structured.is_none(), "{output:?}");
        text(&output).to_owned()
    }

    /// The message about arguments that are not taken.
    async fn wrong_arguments(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments).await {
            Err(ToolError::Arguments { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Structured output is as the definition says it is.
    fn check_schema(&self, tool: &str, output: &ToolOutput) {
        let definitions = self.workspace.definitions();
        let definition = definitions.iter().find(|known| known.name == tool).unwrap();
        match (&definition.output_schema, &output.structured) {
            (Some(schema), Some(structured)) => {
                jsonschema::validate(schema, structured).unwrap();
            }
            (Some(_), None) => assert!(output.is_error, "{output:?}"),
            (None, structured) => assert_eq!(*structured, None),
        }
    }
}

fn text(output: &ToolOutput) -> &str {
    match output.content.as_slice() {
        [Block::Text(text)] => text,
        other => panic!("{other:?}"),
    }
}
