//! What the attacks share: a workspace with a forbidden place beside it, and all tools at once.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Resolver, Root};
use crate::output::{Block, ToolOutput};
use crate::progress::NoProgress;
use crate::workspace::{Permissions, Workspace};

/// Every attack is made on both.
pub(super) const RESOLVERS: [Resolver; 2] = [Resolver::System, Resolver::Walker];

/// In every file outside, and nowhere inside.
pub(super) const FORBIDDEN: &str = "FORBIDDEN";

/// Every tool that takes a path, with arguments that would succeed if the path were inside.
pub(super) const TOOLS: [&str; 6] = ["read", "list", "find", "grep", "edit", "write"];

pub(super) struct House {
    base: TempDir,
    pub(super) workspace: Workspace,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl House {
    pub(super) fn new(resolver: Resolver) -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("house");
        fs::create_dir(&root).unwrap();
        let outside = base.path().join("outside");
        for path in ["file.txt", "sub/file.txt", "sub/deep/file.txt"] {
            let path = outside.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{FORBIDDEN}\n")).unwrap();
        }
        let before = snapshot(&outside);
        let permissions = Permissions {
            write: true,
            shell: true,
        };
        let workspace = Workspace::with(Root::open(&root, resolver).unwrap(), permissions);
        Self {
            base,
            workspace,
            before,
        }
    }

    pub(super) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(super) fn inside(&self, path: &str) -> PathBuf {
        self.base().join("house").join(path)
    }

    pub(super) fn outside(&self, path: &str) -> PathBuf {
        self.base().join("outside").join(path)
    }

    /// Puts a file into the workspace, with its directories.
    pub(super) fn file(&self, path: &str, content: &str) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn link(&self, target: impl AsRef<Path>, path: &str) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(super) async fn named_pipe(&self, path: &str) {
        let command = format!("mkfifo {path}");
        let output = self.call("shell", json!({ "command": command })).await;
        assert_eq!(text(&output), "[exit code 0]");
    }

    /// Calls a tool on a path, trying to read or to write what is forbidden.
    pub(super) async fn attack(&self, tool: &str, path: &str) -> ToolOutput {
        let arguments = match tool {
            "read" | "list" => json!({ "path": path }),
            "find" => json!({ "path": path, "glob": "*", "kind": "any" }),
            "grep" => json!({ "path": path, "pattern": "" }),
            "edit" => json!({ "path": path, "old_string": "\n", "new_string": "!\n" }),
            "write" => json!({ "path": path, "content": "attack\n" }),
            other => panic!("{other}"),
        };
        self.call(tool, arguments).await
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        let output = self.workspace.call(tool, &arguments, &NoProgress).await;
        let output = output.unwrap();
        let everything = format!("{output:?}");
        assert!(!everything.contains(FORBIDDEN), "{tool}: {everything}");
        output
    }

    /// Nothing outside was changed, made or removed.
    pub(super) fn check_outside(&self) {
        assert_eq!(snapshot(&self.base().join("outside")), self.before);
        let mut beside: Vec<_> = fs::read_dir(self.base())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        beside.sort();
        assert_eq!(beside, ["house", "outside"]);
    }
}

pub(super) fn text(output: &ToolOutput) -> &str {
    match output.content.as_slice() {
        [Block::Text(text)] => text,
        other => panic!("{other:?}"),
    }
}

/// Every path below a directory, with the content of files.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.insert(entry.path(), Vec::new());
            found.extend(snapshot(&entry.path()));
        } else {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}
