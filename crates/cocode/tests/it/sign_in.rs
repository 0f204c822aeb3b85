//! A user with one configured server that wants people to sign in, and a browser that does.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use cocode_testkit::{Browser, Decision, OAuthPeer};
use serde_json::Value;

use crate::harness::Finished;
use crate::home::Home;

/// The name of the server.
pub(crate) const NOTES: &str = "notes";

pub(crate) struct SignIn {
    pub(crate) home: Home,
    pub(crate) peer: OAuthPeer,
}

impl SignIn {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With more in the entry of the server.
    pub(crate) fn with(oauth: &str) -> Self {
        Self::at(OAuthPeer::start(), oauth)
    }

    pub(crate) fn at(peer: OAuthPeer, oauth: &str) -> Self {
        let home = Home::new();
        let entry = format!("[mcp_servers.{NOTES}]\nurl = '{}'\n{oauth}", peer.mcp());
        home.user_file("mcp.toml", &entry);
        Self { home, peer }
    }

    /// `cocode mcp WORDS…` with a browser in which the user decides so.
    pub(crate) fn command(&self, words: &[&str], decision: Decision) -> Command {
        let mut command = self.home.command(["mcp"].iter().chain(words));
        command.env("BROWSER", self.peer.browser(Browser::Plain, decision));
        command
    }

    pub(crate) fn login(&self, words: &[&str]) -> Finished {
        self.login_at(NOTES, words)
    }

    pub(crate) fn login_at(&self, server: &str, words: &[&str]) -> Finished {
        let words: Vec<&str> = ["login", server].iter().chain(words).copied().collect();
        Finished::of(self.command(&words, Decision::Allow).output().unwrap())
    }

    /// What browsers saw in the end, as soon as there are so many. They go on for a moment after they
    /// have come back. The test runner ends a test that waits forever.
    pub(crate) fn visits(&self, count: usize) -> Vec<Value> {
        loop {
            let visits = self.peer.visits();
            if visits.len() >= count {
                return visits;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What `whoami` says.
    #[track_caller]
    pub(crate) fn whoami(&self) -> Value {
        self.whoami_at(NOTES)
    }

    /// What `whoami` of another entry says.
    #[track_caller]
    pub(crate) fn whoami_at(&self, name: &str) -> Value {
        let finished = self.home.mcp(&["call", name, "whoami", "--json"]);
        let result: Value = serde_json::from_str(&finished.with_code(0).stdout).unwrap();
        result["structuredContent"].clone()
    }

    /// The scopes that the token of a call allows, in order.
    #[track_caller]
    pub(crate) fn scopes(&self) -> Vec<String> {
        let whoami = self.whoami();
        let scopes = whoami["scopes"].as_array().unwrap();
        let mut scopes: Vec<String> = scopes
            .iter()
            .map(|scope| scope.as_str().unwrap().to_owned())
            .collect();
        scopes.sort();
        scopes
    }

    pub(crate) fn credentials_file(&self) -> PathBuf {
        self.home.home().join("state/credentials.json")
    }

    /// Everything that is stored and must never be shown.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.credentials_file()).unwrap();
        let mut found = Vec::new();
        collect(&serde_json::from_str(&text).unwrap(), &mut found);
        assert!(!found.is_empty(), "no secrets are in {text}");
        found
    }
}

/// The texts of all members with such names, also in texts that are JSON themselves.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let is_secret = ["token", "access", "refresh", "secret", "key"]
                    .iter()
                    .any(|part| name.contains(part));
                match member {
                    // An address where tokens come from is none.
                    Value::String(text) if is_secret && !text.contains(['{', '/']) => {
                        if text.len() > 15 {
                            found.push(text.clone());
                        }
                    }
                    member => collect(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::String(text) => {
            if let Ok(inner @ Value::Object(_)) = serde_json::from_str(text) {
                collect(&inner, found);
            }
        }
        _ => {}
    }
}

/// `cocode mcp login --no-browser --json`, waiting for somebody to sign in.
pub(crate) struct Waiting {
    pub(crate) child: Child,
    stderr: BufReader<ChildStderr>,
    /// What was written to stderr so far.
    pub(crate) seen: String,
    pub(crate) url: String,
    pub(crate) redirect: String,
}

impl Waiting {
    pub(crate) fn start(command: &mut Command) -> Self {
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut waiting = Self {
            child,
            stderr,
            seen: String::new(),
            url: String::new(),
            redirect: String::new(),
        };
        let told = waiting.until(|event| event["signIn"].is_object());
        let text = |key: &str| told["signIn"][key].as_str().unwrap().to_owned();
        (waiting.url, waiting.redirect) = (text("url"), text("redirectUri"));
        waiting
    }

    /// The next line of stderr that is as wanted.
    #[track_caller]
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            let length = self.stderr.read_line(&mut line).unwrap();
            self.seen.push_str(&line);
            assert!(length > 0, "it has ended: {}", self.seen);
            if let Ok(event) = serde_json::from_str(&line)
                && is_wanted(&event)
            {
                return event;
            }
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Waits for the end. What was written to stderr is all of it.
    pub(crate) fn end(mut self) -> Finished {
        loop {
            let mut line = String::new();
            if self.stderr.read_line(&mut line).unwrap() == 0 {
                break;
            }
            self.seen.push_str(&line);
        }
        let mut finished = Finished::of(self.child.wait_with_output().unwrap());
        finished.stderr = self.seen;
        finished
    }
}
