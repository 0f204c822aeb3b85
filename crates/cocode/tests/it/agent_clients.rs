//! Clients that nobody here wrote, at `cocode mcp serve --agent`: they hold conversations, answer what
//! they are asked, and take calls back, in both eras. `cargo xtask peers` installs all of them.

mod gateway;
mod inspector;
mod model;
mod sdks;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use cocode_agent::{Record, SqliteStore, Store as _};
use cocode_testkit::ScriptedModel;
use serde_json::{Value, json};

use crate::gateway_peers::installed;
use crate::home::Home;

/// What an agent is started with.
const AGENT: [&str; 5] = ["mcp", "serve", "--agent", "--model", "claude-scripted"];

/// A user with a project, and the model that their agent works with.
struct Desk {
    home: Home,
    model: ScriptedModel,
}

impl Desk {
    fn new() -> Self {
        Self {
            home: Home::new(),
            model: model::start(),
        }
    }

    /// What a program needs to know of the model, and of the user.
    fn variables(&self) -> BTreeMap<String, String> {
        let mut variables = self.variables_without_key();
        variables.insert("ANTHROPIC_BASE_URL".into(), self.model.base_url());
        variables.insert("ANTHROPIC_API_KEY".into(), "sk-none".into());
        variables
    }

    fn variables_without_key(&self) -> BTreeMap<String, String> {
        let command = self.home.command(AGENT);
        let variables = command.get_envs();
        let variables = variables.filter_map(|(name, value)| Some((name, value?)));
        let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
        variables
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    /// The agent in a directory of the project, as clients are told to start it.
    fn agent_in(&self, directory: &str, variables: &BTreeMap<String, String>) -> Value {
        json!({
            "command": self.home.command(AGENT).get_program().to_str().unwrap(),
            "args": AGENT,
            "env": variables,
            "cwd": self.home.project().join(directory),
        })
    }

    /// The agent of the project.
    fn agent(&self) -> Value {
        self.agent_in("", &self.variables())
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

    /// Finishes a conversation, as no command does yet.
    fn finish(&self, id: &str) {
        let file = self
            .home
            .home()
            .join("state/conversations/conversations.db");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(&file).unwrap();
            let lease = store.lease(&id.parse().unwrap()).await.unwrap();
            store.append(&lease, &Record::Closed).await.unwrap();
        });
    }

    /// A file of the project.
    fn file(&self, name: &str) -> String {
        let path = self.home.project().join(name);
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.model.assert_no_violations();
        }
    }
}

/// The arguments of `cocode` for a conversation in which a person is asked before commands are run.
fn begin(prompt: &str) -> Value {
    json!({ "prompt": prompt, "approval-policy": "untrusted", "sandbox": "workspace-write" })
}

/// A command that leaves the id of its process in a file, and does not end.
fn endless(file: &str) -> String {
    format!("run echo $$ > {file}; exec sleep 600")
}

/// What the agent answers.
#[track_caller]
fn response(result: &Value) -> &str {
    assert_ne!(result["isError"], true, "{result}");
    let response = result["structuredContent"]["response"].as_str();
    let response = response.unwrap_or_else(|| panic!("no response: {result}"));
    assert_eq!(result["content"][0]["text"], response);
    response
}

/// What a call that could not be served says.
#[track_caller]
fn refusal(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap()
}
