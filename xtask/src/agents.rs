//! `cargo xtask agents`: starts a gateway with two public servers behind it, and lets agents that
//! nobody here wrote say whether they can connect. Nobody has to be logged in, nothing of the user
//! is read or changed, and no agent reaches the network.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::shell::{built, program, run_and_keep, succeeds};
use crate::{peers, workspace};

/// Nobody listens here: what agents would ask of the world fails at once.
const NOWHERE: &str = "http://127.0.0.1:9";

/// The name of the one server behind the gateway that agents also look at alone.
const ONE: &str = "everything";

/// How long Claude Code waits for a server, in milliseconds: a busy machine takes its time.
const PATIENCE: &str = "60000";

/// What agents call the program that they start themselves, and that finds the gateway.
const FRONT: &str = "cocode-front";
const SERVE: [&str; 2] = ["mcp", "serve"];

/// A gateway that runs, and everything that agents write.
struct Stage {
    directory: PathBuf,
    cocode: PathBuf,
    gateway: Child,
    /// Where the gateway listens, without scheme and path.
    address: String,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask agents"));
    }
    peers::ensure()?;
    let stage = Stage::set(&built("cocode", &["--bin", "cocode"])?)?;
    claude_code(&stage)?;
    open_code(&stage)?;
    stage.is_shared()
}

fn claude_code(stage: &Stage) -> Result<(), Failure> {
    let Some(claude) = installed("@anthropic-ai/claude-code", "claude") else {
        println!("left out: there is no Claude Code for this machine");
        return Ok(());
    };
    let servers = [
        ("cocode", "http", stage.url("http", "/mcp")),
        (
            "cocode-one",
            "http",
            stage.url("http", &format!("/mcp/{ONE}")),
        ),
        ("cocode-sse", "sse", stage.url("http", "/sse")),
        ("cocode-ws", "ws", stage.url("ws", "/ws")),
    ];
    for (name, kind, url) in &servers {
        // Its `mcp add` has no word for WebSockets.
        let entry = json!({ "type": kind, "url": url }).to_string();
        show(stage.agent(&claude).args(["mcp", "add-json", name, &entry]))?;
    }
    let program = stage.cocode.display().to_string();
    let environment = json!({ "COCODE_HOME": stage.home() });
    let entry = json!({ "type": "stdio", "command": program, "args": SERVE, "env": environment });
    let entry = entry.to_string();
    show(
        stage
            .agent(&claude)
            .args(["mcp", "add-json", FRONT, &entry]),
    )?;
    let listed = show(stage.agent(&claude).args(["mcp", "list"]))?;
    wants(
        &listed,
        &format!("{FRONT}: {program} mcp serve - ✔ Connected"),
    )?;
    for (name, kind, url) in &servers {
        let kind = kind.to_uppercase();
        wants(&listed, &format!("{name}: {url} ({kind}) - ✔ Connected"))?;
    }
    Ok(())
}

fn open_code(stage: &Stage) -> Result<(), Failure> {
    let Some(opencode) = installed("opencode", "bin/opencode") else {
        println!("left out: there is no OpenCode for this machine");
        return Ok(());
    };
    let servers = [
        ("cocode", stage.url("http", "/mcp")),
        ("cocode-one", stage.url("http", &format!("/mcp/{ONE}"))),
    ];
    let entries = servers.iter().map(|(name, url)| {
        let entry = json!({ "type": "remote", "url": url });
        ((*name).to_owned(), entry)
    });
    let mut entries: serde_json::Map<String, Value> = entries.collect();
    let command = [&stage.cocode.display().to_string(), SERVE[0], SERVE[1]];
    let environment = json!({ "COCODE_HOME": stage.home() });
    let front = json!({ "type": "local", "command": command, "environment": environment });
    entries.insert(FRONT.to_owned(), front);
    let settings = json!({ "mcp": entries }).to_string();
    write(&stage.directory.join("project/opencode.json"), &settings)?;
    let listed = show(stage.agent(&opencode).args(["mcp", "list"]))?;
    for name in servers.iter().map(|(name, _)| *name).chain([FRONT]) {
        wants(&listed, &format!("✓ {name} connected"))?;
    }
    Ok(())
}

impl Stage {
    fn set(cocode: &Path) -> Result<Self, Failure> {
        let directory = workspace::root().join("target/agents");
        if directory.exists() {
            let removed = fs::remove_dir_all(&directory);
            removed.map_err(|error| Failure::because(directory.display(), error))?;
        }
        for name in ["home", "project"] {
            let path = directory.join(name);
            let created = fs::create_dir_all(&path);
            created.map_err(|error| Failure::because(path.display(), error))?;
        }
        let home = directory.join("home");
        let everything = "@modelcontextprotocol/server-everything/dist/index.js";
        let python = workspace::peers_source().join("python/stdio_server.py");
        let servers = [
            (ONE, peers::node(), peers::npm_package(everything)),
            (
                "python",
                workspace::peers().join("python/bin/python"),
                python,
            ),
        ];
        let entries = servers.map(|(name, command, script)| {
            let (command, script) = (command.display().to_string(), script.display().to_string());
            format!("[mcp_servers.{name}]\ncommand = {command:?}\nargs = [{script:?}]\n")
        });
        write(&home.join("mcp.toml"), &entries.concat())?;
        let mut gateway = program(cocode);
        gateway
            .args(["gateway", "--listen", ":0", "--json"])
            .current_dir(directory.join("project"))
            .env("COCODE_HOME", &home)
            .env("HOME", &home)
            // Agents have none, and are to find the gateway where they look.
            .env_remove("XDG_RUNTIME_DIR")
            .process_group(0)
            .stdout(Stdio::piped());
        let because = |error| Failure::because("the gateway", error);
        let mut stage = Self {
            directory,
            cocode: cocode.to_owned(),
            gateway: gateway.spawn().map_err(because)?,
            address: String::new(),
        };
        let mut line = String::new();
        if let Some(said) = stage.gateway.stdout.take() {
            BufReader::new(said).read_line(&mut line).map_err(because)?;
        }
        let listening: Value = serde_json::from_str(&line)
            .map_err(|error| Failure::because("the gateway does not listen", error))?;
        let url = listening["url"].as_str().unwrap_or_default();
        let address = url.strip_prefix("http://");
        let address = address.and_then(|address| address.strip_suffix("/mcp"));
        let address = address.ok_or_else(|| Failure::new(format!("no address: {line}")))?;
        address.clone_into(&mut stage.address);
        Ok(stage)
    }

    /// Whoever looks from where agents run finds the gateway, and no daemon beside it.
    fn is_shared(&self) -> Result<(), Failure> {
        let mut status = self.agent(&self.cocode);
        status.args(["mcp", "daemon", "status", "--json"]);
        let status = show(status.env("COCODE_HOME", self.home()))?;
        let status: Value = serde_json::from_str(&status)
            .map_err(|error| Failure::because("the status of the daemon", error))?;
        if status["pid"] == self.gateway.id() {
            return Ok(());
        }
        Err(Failure::new(format!("not the gateway serves: {status}")))
    }

    fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.address)
    }

    /// An agent with a home of its own, which cannot reach the network.
    fn agent(&self, agent: &Path) -> Command {
        let mut command = program(agent);
        command
            .env_clear()
            .current_dir(self.directory.join("project"))
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home())
            .env("NO_COLOR", "1")
            .env("NO_PROXY", "127.0.0.1")
            .env("MCP_TIMEOUT", PATIENCE);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, NOWHERE);
        }
        for name in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_MODELS_FETCH",
        ] {
            command.env(name, "1");
        }
        command
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let gateway = self.gateway.id().to_string();
        let asked = succeeds(program("kill").args(["-TERM", &gateway]));
        // It ends its servers first. One that cannot be asked has ended already.
        if !asked || self.gateway.wait().is_err() {
            println!("the gateway (process {gateway}) has ended before its time");
        }
    }
}

/// Runs an agent, and returns what it printed, without colors.
fn show(agent: &mut Command) -> Result<String, Failure> {
    let (status, printed) = run_and_keep(agent)?;
    if !status.success() {
        return Err(Failure::because("the agent", status));
    }
    Ok(without_colors(&printed))
}

/// Where an agent is installed, if it is pinned for this kind of machine.
fn installed(package: &str, file: &str) -> Option<PathBuf> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        system => system,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        machine => machine,
    };
    let directory = workspace::peers().join("agents/node_modules");
    let plain = directory.join(format!("{package}-{system}-{machine}"));
    let baseline = directory.join(format!("{package}-{system}-{machine}-baseline"));
    let mut files = [plain, baseline].into_iter().map(|path| path.join(file));
    files.find(|path| path.exists())
}

fn wants(printed: &str, line: &str) -> Result<(), Failure> {
    if printed.contains(line) {
        return Ok(());
    }
    Err(Failure::new(format!("the agent did not print `{line}`")))
}

/// The text without the sequences that color it: not every agent can be kept from writing them.
fn without_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| {
        let rest = part.split_once(|letter: char| letter.is_ascii_alphabetic());
        kept + rest.map_or("", |(_, rest)| rest)
    })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::because(path.display(), error))
}

#[cfg(test)]
mod tests {
    use super::without_colors;

    #[test]
    fn colors_are_taken_out_of_a_text() {
        let text = "✓ cocode \u{1b}[90mconnected\n\u{1b}[0m";
        assert_eq!(without_colors(text), "✓ cocode connected\n");
        assert_eq!(without_colors("plain"), "plain");
    }
}
