//! Agents as programs: how each is started, with a home that is thrown away in the end.
//!
//! Nobody has to be logged in, nothing of the user is read or changed, and no agent reaches the network.

pub(crate) mod talk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::Failure;
use crate::peers::Peers;

/// Nobody listens here: what agents would ask of the world fails at once.
const NOWHERE: &str = "http://127.0.0.1:9";

/// An agent that other programs can use as a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    Cocode,
    ClaudeCode,
    Codex,
}

impl Agent {
    pub(crate) const ALL: [Self; 3] = [Self::Cocode, Self::ClaudeCode, Self::Codex];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cocode => "cocode mcp serve --agent",
            Self::ClaudeCode => "claude mcp serve",
            Self::Codex => "codex mcp-server",
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Cocode => &["mcp", "serve", "--agent"],
            Self::ClaudeCode => &["mcp", "serve"],
            Self::Codex => &["mcp-server"],
        }
    }
}

/// The programs, and a directory for all that they write.
#[derive(Debug)]
pub(crate) struct Stage {
    directory: PathBuf,
    cocode: PathBuf,
    claude: PathBuf,
    codex: PathBuf,
}

impl Stage {
    pub(crate) fn set() -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let cocode = program.with_file_name("cocode");
        if !cocode.is_file() {
            let message = "the program `cocode` is not built beside this one: cargo xtask bench";
            return Err(message.into());
        }
        let peers = Peers::find()?;
        let claude = peers.agent("agents", "@anthropic-ai/claude-code")?;
        let codex = peers.agent("agent-servers", "@openai/codex")?;
        // Not among temporary files: Codex does less in a home there.
        let target = program.parent().and_then(Path::parent);
        let target = target.ok_or("this program lies nowhere")?;
        let directory = target.join(format!("bench-agent-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("project/.git"))?;
        let stage = Self {
            directory,
            cocode,
            claude: claude.join("claude"),
            codex: native_codex(&codex)?,
        };
        for agent in Agent::ALL {
            std::fs::create_dir_all(stage.home(&format!("{agent:?}")))?;
        }
        Ok(stage)
    }

    /// An agent as a server, with pipes.
    pub(crate) fn server(&self, agent: Agent) -> Command {
        let program = match agent {
            Agent::Cocode => &self.cocode,
            Agent::ClaudeCode => &self.claude,
            Agent::Codex => &self.codex,
        };
        let mut command = self.command(program, &self.home(&format!("{agent:?}")));
        command
            .args(agent.words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    /// Our own program with a home of this name, which can be written before.
    pub(crate) fn cocode(&self, home: &str) -> Command {
        self.command(&self.cocode, &self.home(home))
    }

    pub(crate) fn home(&self, name: &str) -> PathBuf {
        self.directory.join("homes").join(name)
    }

    fn command(&self, program: &Path, home: &Path) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "a whole program is timed, which has no guard"
        )]
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(environment(home))
            .current_dir(self.directory.join("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What is left among built files harms nobody.
        let _left = std::fs::remove_dir_all(&self.directory);
    }
}

fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("NO_COLOR".into(), "1".into()),
        ("NO_PROXY".into(), "127.0.0.1".into()),
    ];
    for name in ["HOME", "COCODE_HOME", "CODEX_HOME"] {
        all.push((name.into(), home.into()));
    }
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        all.push((name.into(), NOWHERE.into()));
    }
    for name in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
    ] {
        all.push((name.into(), "1".into()));
    }
    all
}

/// The program in a package of Codex, which lies in a directory named by the kind of machine. The
/// wrapper for Node is left out: it would only add to the time.
fn native_codex(package: &Path) -> Result<PathBuf, Failure> {
    let vendor = package.join("vendor");
    for kind in std::fs::read_dir(&vendor)? {
        let program = kind?.path().join("bin/codex");
        if program.is_file() {
            return Ok(program);
        }
    }
    Err(format!("there is no program in {}", vendor.display()).into())
}
