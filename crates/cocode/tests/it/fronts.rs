//! Clients of `cocode mcp serve`, and the daemon that is ended with the test.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Home;

/// A user whose agents share a daemon.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) home: Home,
}

impl Site {
    /// A user with these servers.
    pub(crate) fn new(servers: &str) -> Self {
        let home = Home::new();
        home.user_file("mcp.toml", servers);
        Self { home }
    }

    /// `cocode mcp serve WORDS…` in the project.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.home.command(["mcp", "serve"].iter().chain(words))
    }

    pub(crate) fn front(&self, words: &[&str]) -> Client {
        Client::start(&mut self.command(words))
    }

    /// What the daemon says of itself.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.home.json(&["mcp", "daemon", "status"])
    }

    /// The process of the daemon.
    #[track_caller]
    pub(crate) fn daemon(&self) -> u32 {
        let status = self.status();
        let pid = status["pid"].as_u64();
        u32::try_from(pid.unwrap_or_else(|| panic!("{status}"))).unwrap()
    }

    /// How many daemons have listened here.
    pub(crate) fn n_daemons(&self) -> usize {
        self.n_logged("listening")
    }

    /// How often the daemons here have said so.
    pub(crate) fn n_logged(&self, what: &str) -> usize {
        let log = std::fs::read_to_string(self.home.home().join("state/daemon.log")).unwrap();
        log.lines().filter(|line| line.contains(what)).count()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let stopped = self.home.mcp(&["daemon", "stop"]);
        assert!(stopped.code == Some(0) || std::thread::panicking());
    }
}

/// An agent with a front.
#[derive(Debug)]
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    skips_notifications: bool,
}

impl Client {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            skips_notifications: false,
        }
    }

    /// From now on, only answers and requests are received.
    pub(crate) fn skip_notifications(&mut self) {
        self.skips_notifications = true;
    }

    pub(crate) fn child(&self) -> &Child {
        &self.child
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    #[track_caller]
    pub(crate) fn receive(&mut self) -> Value {
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if !self.skips_notifications || message.get("id").is_some() {
                return message;
            }
        }
    }

    /// Sends a request, and gives the next message, which has to be its answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.request(id, method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], json!(id), "{answer}");
        answer
    }

    pub(crate) fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Opens a session of the older era.
    #[track_caller]
    pub(crate) fn open(&mut self, capabilities: &Value) -> Value {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "agent", "version": "1"},
        });
        let answer = self.ask(0, "initialize", &hello);
        assert!(answer["result"].is_object(), "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// Calls a tool whose daemon was just killed, once more if it was so late that the call is lost
    /// with it.
    #[track_caller]
    pub(crate) fn call_or_again(&mut self, id: u64, tool: &str) -> String {
        let params = json!({"name": tool, "arguments": {"n": id}});
        let answer = self.ask(id, "tools/call", &params);
        match answer["error"]["data"]["code"].as_str() {
            Some("daemon-lost") => self.call(id, tool),
            _ => text_of(&answer),
        }
    }

    /// Calls a tool, and gives the text of its result.
    #[track_caller]
    pub(crate) fn call(&mut self, id: u64, tool: &str) -> String {
        let params = json!({"name": tool, "arguments": {"n": id}});
        let answer = self.ask(id, "tools/call", &params);
        text_of(&answer)
    }

    /// Ends its side, and still listens.
    pub(crate) fn say_no_more(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits until people are told this, and gives everything that they were told until then.
    pub(crate) fn until_told(&mut self, part: &str) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut told = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&told).contains(part) || byte != [b'\n'] {
            stderr.read_exact(&mut byte).unwrap();
            told.extend_from_slice(&byte);
        }
        String::from_utf8(told).unwrap()
    }

    /// Ends the session as agents do. Gives the code, and what people were told.
    pub(crate) fn leave(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits until the front has ended by itself.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let mut told = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut told).unwrap();
        (code, told)
    }
}

/// The text of a result.
#[track_caller]
fn text_of(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

impl Drop for Client {
    fn drop(&mut self) {
        // One that has left already cannot be killed any more.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Kills a process as nobody can catch it.
pub(crate) fn kill(pid: u32) {
    let sent = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Whether the process exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let found = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    let state = String::from_utf8(found.stdout).unwrap();
    !matches!(state.trim().chars().next(), None | Some('Z'))
}

/// Comes back when it is no longer so. The test runner ends a test that waits forever.
pub(crate) fn wait_while(mut is_so: impl FnMut() -> bool) {
    while is_so() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file with other rights or another time is another program to us.
pub(crate) fn another_build(directory: &Path) -> std::path::PathBuf {
    let copy = directory.join("cocode-of-another-build");
    std::fs::copy(env!("CARGO_BIN_EXE_cocode"), &copy).unwrap();
    copy
}
