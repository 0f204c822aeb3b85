//! An installed agent with a home of its own, and the servers that every test uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cocode_config::{
    Change, Entry, HomePlaces, Place, PlaceScope, Text, Tool, read_foreign, write_foreign,
};
use serde_json::Value;
use tempfile::TempDir;

/// Nobody listens here: what the agents would ask of the world fails at once.
const NOWHERE: &str = "http://127.0.0.1:9";

/// An address of a server that is not there.
pub(crate) const ADDRESS: &str = "http://127.0.0.1:9/mcp";

/// An agent, a home directory and a project.
pub(crate) struct Agent {
    tool: Tool,
    program: PathBuf,
    /// Removed with the agent.
    _directory: TempDir,
    places: HomePlaces,
    project: PathBuf,
}

impl Agent {
    pub(crate) fn new(tool: Tool) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // Agents that ask where they are get the path without links.
        let root = directory.path().canonicalize().expect("a path");
        let (home, project) = (root.join("home"), root.join("project"));
        for directory in [&home, &project.join(".git")] {
            std::fs::create_dir_all(directory).expect("a directory");
        }
        let mut places = HomePlaces::of_home(&home, cfg!(target_os = "macos"));
        places.project = Some(project.clone());
        Self {
            tool,
            program: program(tool),
            _directory: directory,
            places,
            project,
        }
    }

    /// What the agent prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.output(arguments).concat()
    }

    /// What the agent prints, as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let [stdout, _] = self.output(arguments);
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// Both streams of the agent, which must end well.
    fn output(&self, arguments: &[&str]) -> [String; 2] {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(&self.project)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.places.home)
            .env("NO_COLOR", "1")
            .env("NO_PROXY", "127.0.0.1")
            .env("MCP_TIMEOUT", "5000")
            .stdin(Stdio::null());
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
        let output = command.output().expect("the agent starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.success(),
            "{} {arguments:?}: {}\n{stdout}\n{stderr}",
            self.tool,
            output.status
        );
        [stdout, stderr]
    }

    /// The files of a scope.
    fn places(&self, scope: PlaceScope) -> impl Iterator<Item = Place> {
        let places = self.tool.places(&self.places).into_iter();
        places.filter(move |place| place.scope == scope)
    }

    /// The servers that the agent keeps, as ours. Nothing of them may be left out.
    pub(crate) fn read(&self, scope: PlaceScope) -> BTreeMap<String, Entry> {
        let mut servers = BTreeMap::new();
        for place in self.places(scope) {
            let Some(text) = existing(&place.path) else {
                continue;
            };
            let foreign = read_foreign(self.tool, &place, &text).expect("a file of the agent");
            assert_eq!(foreign.problems, []);
            let found = foreign.servers.into_iter();
            servers.extend(found.map(|server| (server.name, server.entry)));
        }
        servers
    }

    /// Gives servers of ours to the agent. Nothing of them may be left out.
    pub(crate) fn write(&self, scope: PlaceScope, servers: &BTreeMap<String, Entry>) {
        let servers: Vec<_> = servers.clone().into_iter().collect();
        self.change(scope, Change::Add(&servers));
        let written = self.read(scope);
        for (name, entry) in &servers {
            assert_eq!(written.get(name), Some(entry), "what was written is there");
        }
    }

    pub(crate) fn remove(&self, scope: PlaceScope, name: &str) {
        self.change(scope, Change::Remove(&[name.to_owned()]));
    }

    fn change(&self, scope: PlaceScope, change: Change<'_>) {
        let places: Vec<_> = self.places(scope).collect();
        let exists = |place: &&Place| place.path.exists();
        let place = places.iter().find(exists).or(places.first());
        let place = place.expect("a place");
        let before = existing(&place.path);
        let written =
            write_foreign(self.tool, place, before.as_deref(), change).expect("it is written");
        assert_eq!(written.problems, []);
        let directory = place.path.parent().expect("a directory");
        std::fs::create_dir_all(directory).expect("a directory");
        std::fs::write(&place.path, written.text).expect("a file");
    }
}

fn existing(path: &Path) -> Option<String> {
    path.exists()
        .then(|| std::fs::read_to_string(path).expect("a text"))
}

/// Servers under names.
pub(crate) fn servers<const N: usize>(servers: [(&str, Entry); N]) -> BTreeMap<String, Entry> {
    let servers = servers.into_iter();
    servers
        .map(|(name, entry)| (name.to_owned(), entry))
        .collect()
}

/// A server that ends at once when it is started.
pub(crate) fn program_entry(args: &[&str], env: &[(&str, &str)]) -> Entry {
    Entry {
        command: Some("/bin/false".to_owned()),
        args: args.iter().map(|word| (*word).to_owned()).collect(),
        env: values(env),
        ..Entry::default()
    }
}

/// A server at an address.
pub(crate) fn address_entry(headers: &[(&str, &str)]) -> Entry {
    Entry {
        url: Some(ADDRESS.to_owned()),
        headers: values(headers),
        ..Entry::default()
    }
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, Text> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), Text::from(*value)))
        .collect()
}

/// Where the agent of this machine's kind is installed.
fn program(tool: Tool) -> PathBuf {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        system => system,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        machine => machine,
    };
    let path = match tool {
        Tool::ClaudeCode => format!("@anthropic-ai/claude-code-{system}-{machine}/claude"),
        Tool::Codex => {
            let rest = if system == "darwin" {
                "apple-darwin"
            } else {
                "unknown-linux-musl"
            };
            let triple = format!("{}-{rest}", std::env::consts::ARCH);
            format!("@openai/codex-{system}-{machine}/vendor/{triple}/bin/codex")
        }
        Tool::OpenCode => format!("opencode-{system}-{machine}-baseline/bin/opencode"),
        tool => unreachable!("{tool} is not installed"),
    };
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let program = root.join("agents/node_modules").join(path);
    assert!(
        program.exists(),
        "{} is missing: run `cargo xtask peers`",
        program.display()
    );
    program
}
