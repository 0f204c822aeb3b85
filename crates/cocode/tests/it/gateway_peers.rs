//! Clients that nobody here wrote, at a gateway before servers that nobody here wrote: one server of
//! each era, and clients of both. `cargo xtask peers` installs all of them.

pub(crate) mod commands;
mod sdks;
mod tours;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Finished, start};
use crate::home::Home;
use crate::interrupting::signal;

/// The reference server of the TypeScript SDK, which only knows handshakes.
const EVERYTHING: &str = "everything";

/// A server of the Python SDK, which is asked without one.
const PYTHON: &str = "python";

/// Where the reference server has what it serves as documents.
const EVERYTHING_DIRECTORY: &str = "npm/node_modules/@modelcontextprotocol/server-everything/dist";

/// Node 24: older ones run neither the Inspector nor a WebSocket.
pub(crate) const NODE: &str = "npm/node_modules/node/bin/node";

/// Something that `cargo xtask peers` installed.
pub(crate) fn installed(path: &str) -> PathBuf {
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let file = root.join(path);
    assert!(file.exists(), "{path} is missing: run `cargo xtask peers`");
    file
}

/// A script of the repository that runs a peer.
pub(crate) fn script(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../peers")
        .join(path)
}

/// A gateway that serves both peers.
struct Peers {
    home: Home,
    child: Child,
    lines: BufReader<ChildStdout>,
    /// Where it listens, without scheme and path.
    address: String,
    /// Whether the server of handshakes has ever asked a client for something. It cannot say which
    /// client it means: from then on, clients that can be asked have one of their own.
    has_asked: Cell<bool>,
}

impl Peers {
    /// Comes back when both servers are ready.
    fn start() -> Self {
        let home = Home::new();
        let everything = [
            installed(NODE),
            installed(EVERYTHING_DIRECTORY).join("index.js"),
        ];
        let python = [
            installed("python/bin/python"),
            script("python/stdio_server.py"),
        ];
        for (name, command) in [(EVERYTHING, everything), (PYTHON, python)] {
            let words = ["mcp", "add", name, "--"].map(str::to_owned);
            let command = command.map(|word| word.to_str().unwrap().to_owned());
            home.run(words.iter().chain(&command)).with_code(0);
        }
        let mut command = home.command(["gateway", "--listen", ":0", "--json", "--log-file"]);
        command.arg(log(&home)).env("COCODE_LOG", "info");
        let mut child = start(&mut command);
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut peers = Self {
            home,
            child,
            lines,
            address: String::new(),
            has_asked: Cell::new(false),
        };
        let listening = peers.next_event();
        let url = listening["url"].as_str();
        let url = url.unwrap_or_else(|| panic!("the gateway does not listen: {listening}"));
        let address = url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap();
        address.clone_into(&mut peers.address);
        let mut waited_for = vec![EVERYTHING, PYTHON];
        while !waited_for.is_empty() {
            let event = peers.next_event();
            let server = &event["server"];
            if server["state"] == "ready" {
                waited_for.retain(|name| server["name"] != *name);
            }
        }
        peers
    }

    fn next_event(&mut self) -> Value {
        let mut line = String::new();
        if self.lines.read_line(&mut line).unwrap() == 0 {
            let mut stderr = String::new();
            let said = self.child.stderr.as_mut().unwrap();
            said.read_to_string(&mut stderr).unwrap();
            panic!("the gateway has ended: {stderr}");
        }
        serde_json::from_str(&line).unwrap()
    }

    /// How many clients of `cocode mcp serve` have used the servers of the gateway.
    fn n_fronts(&self) -> usize {
        let log = std::fs::read_to_string(log(&self.home)).unwrap();
        let fronts = log
            .lines()
            .filter(|line| line.contains("a front is served"));
        fronts.count()
    }

    /// An address of the gateway.
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// `cocode mcp serve` as clients are told to start it: for one server, or for all.
    fn front(&self, server: Option<&str>, searches: bool) -> Value {
        let mut words = vec!["mcp", "serve"];
        words.extend(server.iter().flat_map(|server| ["--server", server]));
        words.extend(searches.then_some("--tool-search"));
        let command = self.home.command(&words);
        let variables = command.get_envs();
        let variables = variables.filter_map(|(name, value)| Some((name.to_str()?, value?)));
        let variables: BTreeMap<_, _> = variables
            .map(|(name, value)| (name, value.to_str().unwrap()))
            .collect();
        json!({
            "command": command.get_program().to_str().unwrap(),
            "args": words,
            "env": variables,
            "cwd": self.home.project(),
        })
    }

    /// A client that knows no configuration but its own.
    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(installed(program));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home.home())
            .env("COCODE_PEERS", installed(""))
            .env("NO_COLOR", "1")
            .current_dir(self.home.project())
            .stdin(Stdio::null());
        command
    }

    /// Ends the gateway, which must not have had anything to complain about.
    fn end(mut self) {
        signal(&self.child, "-TERM");
        let mut events = String::new();
        self.lines.read_to_string(&mut events).unwrap();
        let mut stderr = String::new();
        let said = self.child.stderr.as_mut().unwrap();
        said.read_to_string(&mut stderr).unwrap();
        let code = self.child.wait().unwrap().code();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{events}");
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Only a test that has failed leaves one behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// Where the gateway says what it does.
fn log(home: &Home) -> PathBuf {
    home.home().join("gateway.log")
}

/// The JSON that a client printed.
#[track_caller]
pub(crate) fn printed(finished: Finished) -> Value {
    let finished = finished.with_code(0);
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.stdout, finished.stderr))
}

/// The text of a result's first content.
#[track_caller]
fn text(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {result}"))
}

/// The values of one field of some objects, in order.
pub(crate) fn each<'a>(objects: &'a Value, field: &str) -> Vec<&'a str> {
    let objects = objects.as_array().unwrap().iter();
    let values = objects.map(|object| object[field].as_str().unwrap());
    values.collect()
}
