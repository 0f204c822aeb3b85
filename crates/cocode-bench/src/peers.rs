//! The public servers that `cargo xtask peers` installs, and how to start them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::managed::environment;

/// A server as a command line.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// Where peers are installed, and our own scripts for them.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    installed: PathBuf,
    scripts: PathBuf,
    /// Folders and files that servers may work in.
    scratch: PathBuf,
}

impl Peers {
    pub(crate) fn find() -> Result<Self, Failure> {
        #[expect(
            clippy::disallowed_methods,
            reason = "cargo says where the source tree is, and the caller where the peers are"
        )]
        let (manifest, peers) = (
            std::env::var_os("CARGO_MANIFEST_DIR"),
            std::env::var_os("COCODE_PEERS"),
        );
        let manifest = manifest.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = manifest.parent().and_then(Path::parent);
        let root = root.ok_or("the source tree is not where it was")?;
        let installed = peers.map_or_else(|| root.join("target/peers"), PathBuf::from);
        let scratch = std::env::temp_dir().join(format!("cocode-bench-{}", std::process::id()));
        Ok(Self {
            installed,
            scripts: root.join("peers/python"),
            scratch,
        })
    }

    /// Twenty servers: every package that is there, three or four times with other arguments.
    pub(crate) fn twenty(&self) -> Result<Vec<Peer>, Failure> {
        let zones = ["UTC", "Europe/Berlin", "Asia/Tokyo"];
        let mut all = Vec::new();
        for number in 0..4 {
            let folder = self.scratch.join(format!("folder-{number}"));
            std::fs::create_dir_all(&folder)?;
            let folder = folder.display().to_string();
            let everything = self.npm("everything", number, &["stdio"])?;
            let filesystem = self.npm("filesystem", number, &[&folder])?;
            all.extend([everything, filesystem]);
        }
        for (number, zone) in zones.into_iter().enumerate() {
            let mut memory = self.npm("memory", number, &[])?;
            let file = self.scratch.join(format!("memory-{number}.jsonl"));
            memory
                .environment
                .push(("MEMORY_FILE_PATH".into(), file.into()));
            let time = self.python("mcp-server-time", number, &["--local-timezone", zone])?;
            let level = ["-v", "-vv", "-vvv"];
            let git = self.python("mcp-server-git", number, &level[number..=number])?;
            let script = self.scripts.join("fastmcp_server.py");
            let script = format!("{}:server", script.display());
            let log_level = ["ERROR", "WARNING", "CRITICAL"];
            let words = [
                "run",
                "--no-banner",
                "--log-level",
                log_level[number],
                &script,
            ];
            let fastmcp = self.python("fastmcp", number, &words)?;
            all.extend([memory, time, git, fastmcp]);
        }
        Ok(all)
    }

    /// A server of the protocol's own npm packages, on the Node that is installed beside it.
    fn npm(&self, package: &str, number: usize, words: &[&str]) -> Result<Peer, Failure> {
        let (program, script) = self.node_server(package)?;
        let script = script.display().to_string();
        let words = std::iter::once(script.as_str()).chain(words.iter().copied());
        Ok(Peer {
            name: format!("{package}-{number}"),
            program,
            args: words.map(str::to_owned).collect(),
            environment: environment(),
        })
    }

    /// The Node that is installed, and the script of a server.
    pub(crate) fn node_server(&self, package: &str) -> Result<(PathBuf, PathBuf), Failure> {
        let modules = "npm/node_modules";
        let node = self.existing(&format!("{modules}/.bin/node"))?;
        let package = format!("@modelcontextprotocol/server-{package}");
        let script = self.existing(&format!("{modules}/{package}/dist/index.js"))?;
        Ok((node, script))
    }

    /// Where the package of an agent lies that is made for this kind of machine.
    pub(crate) fn agent(&self, group: &str, package: &str) -> Result<PathBuf, Failure> {
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            system => system,
        };
        let machine = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            machine => machine,
        };
        let path = self.installed.join(group).join("node_modules");
        let path = path.join(format!("{package}-{system}-{machine}"));
        if path.exists() {
            return Ok(path);
        }
        let path = path.display();
        let message = format!("{path} is not there: `cargo xtask bench agent` installs it");
        Err(message.into())
    }

    fn python(&self, program: &str, number: usize, words: &[&str]) -> Result<Peer, Failure> {
        Ok(Peer {
            name: format!("{program}-{number}"),
            program: self.existing(&format!("python/bin/{program}"))?,
            args: words.iter().map(|word| (*word).to_owned()).collect(),
            environment: environment(),
        })
    }

    fn existing(&self, path: &str) -> Result<PathBuf, Failure> {
        let path = self.installed.join(path);
        if path.exists() {
            return Ok(path);
        }
        let path = path.display();
        let message = format!("{path} is not there: `cargo xtask peers` installs it");
        Err(message.into())
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // What is left in a temporary directory harms nobody.
        let _left = std::fs::remove_dir_all(&self.scratch);
    }
}
