//! A public server of files in a sandbox: it reads what it always reads, and writes only where it is let.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::home::Home;

const NODE: &str = "npm/node_modules/node/bin/node";
const FILES: &str = "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";

/// A server that `cargo xtask peers` installed.
fn peer(path: &str) -> PathBuf {
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let program = root.join(path);
    assert!(
        program.is_file(),
        "{path} is missing: run `cargo xtask peers`"
    );
    program
}

/// Two directories that the server may touch by its own rules, not among the places for temporary files,
/// and the server, which starts in the first.
struct Files {
    home: Home,
    both: TempDir,
}

impl Files {
    fn new(sandbox: &str) -> Self {
        let both = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["inside", "outside"] {
            fs::create_dir(both.path().join(name)).unwrap();
            fs::write(both.path().join(name).join("kept"), "as it was").unwrap();
        }
        let home = Home::new();
        let (node, files) = (peer(NODE), peer(FILES));
        let (both_path, start) = (both.path(), both.path().join("inside"));
        let entry = format!(
            "[mcp_servers.files]\ncommand = '{}'\nargs = ['{}', '{}']\ncwd = '{}'\nsandbox = '{sandbox}'\n",
            node.display(),
            files.display(),
            both_path.display(),
            start.display(),
        );
        home.user_file("mcp.toml", &entry);
        Self { home, both }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.both.path().join(name)
    }

    /// Has the server write a file, and tells whether it did.
    fn writes(&self, name: &str) -> bool {
        let path = format!("path={}", self.path(name).display());
        let words = ["call", "files.write_file", &path, "content=new"];
        let finished = self.home.mcp(&words);
        let is_there = fs::read_to_string(self.path(name)).is_ok_and(|text| text == "new");
        if !is_there {
            // The server says so itself, with the words of the system.
            let said = format!("{}{}", finished.stdout, finished.stderr);
            assert!(said.contains("EACCES"), "{said}");
        }
        is_there
    }

    fn reads(&self, name: &str) -> String {
        let path = format!("path={}", self.path(name).display());
        let words = ["call", "files.read_text_file", &path];
        self.home.mcp(&words).with_code(0).stdout
    }
}

#[test]
fn a_read_only_peer_reads_and_cannot_write() {
    let files = Files::new("read-only");
    for name in ["inside/new", "outside/new", "outside/kept"] {
        assert!(!files.writes(name), "{name}");
    }
    assert_eq!(files.reads("outside/kept").trim_end(), "as it was");
}

#[test]
fn a_peer_that_writes_its_workspace_writes_nothing_else() {
    let files = Files::new("workspace-write");
    assert!(files.writes("inside/new"));
    for name in ["outside/new", "outside/kept"] {
        assert!(!files.writes(name), "{name}");
    }
    assert_eq!(files.reads("outside/kept").trim_end(), "as it was");
}

#[test]
fn a_peer_without_a_sandbox_writes_wherever_it_may() {
    let files = Files::new("off");
    assert!(files.writes("inside/new") && files.writes("outside/new"));
}

#[test]
fn a_server_that_its_sandbox_keeps_from_starting_is_told_so() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.s]\ncommand = 'sh'\nargs = ['-c', 'LC_ALL=C mkdir \"$HOME/.cache-of-s\"']\n\
         sandbox = 'read-only'\n",
    );
    let finished = home.mcp(&["tools", "s"]).with_code(3);
    finished.complains(&["Permission denied", "its sandbox may be in the way"]);
    assert!(!home.home().join(".cache-of-s").exists());
}
