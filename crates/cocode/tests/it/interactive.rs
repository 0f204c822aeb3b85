//! The session at the terminal, with a person who types, a scripted model and scripted servers.

mod commands;
mod turns;
mod usage;

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, ScriptedModel, StdioServer};
use serde_json::Value;

use crate::home::Home;
use crate::status::entry;
use crate::tmux::{INPUT, Tmux};

/// A person with a project, a model and servers.
struct Desk {
    home: Home,
    model: ScriptedModel,
}

impl Desk {
    fn new(script: ModelScript) -> Self {
        let home = Home::new();
        home.user_file(
            "config.toml",
            "model = \"claude-scripted\"\n[models.claude-scripted]\ncontext_window = 100000\n",
        );
        Self {
            home,
            model: script.start(ModelFormat::Anthropic),
        }
    }

    /// With this server, called `one`.
    fn with_server(script: ModelScript, server: &StdioServer) -> Self {
        let desk = Self::new(script);
        desk.home.user_file("mcp.toml", &entry("one", server));
        desk
    }

    /// Lets what the server offers be remembered, so that it is known from the first key on.
    fn remembers_lists(&self) {
        for list in ["tools", "resources", "prompts"] {
            self.home.mcp(&[list, "one"]).with_code(0);
        }
    }

    /// Starts the session, and waits until it can be used.
    #[track_caller]
    fn sit_down(&self, words: &[&str]) -> Tmux {
        let tmux = self.run(words);
        tmux.wait_for(INPUT);
        tmux
    }

    /// The same, with a server that is there.
    #[track_caller]
    fn sit_down_with_server(&self) -> Tmux {
        let tmux = self.sit_down(&[]);
        tmux.wait_for("servers: 1 ready");
        tmux
    }

    fn run(&self, words: &[&str]) -> Tmux {
        let mut command = vec![env!("CARGO_BIN_EXE_cocode")];
        command.extend(words);
        let (path, home) = (std::env::var("PATH").unwrap(), self.home.home());
        let base_url = self.model.base_url();
        let home = home.to_str().unwrap();
        let variables = [
            ("PATH", path.as_str()),
            ("HOME", home),
            ("COCODE_HOME", home),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("ANTHROPIC_BASE_URL", &base_url),
            ("ANTHROPIC_API_KEY", "key"),
        ];
        Tmux::start(&self.home.project(), &variables, &command)
    }

    /// All that the model was told in its nth request, from zero.
    fn told(&self, n: usize) -> Vec<Value> {
        let bodies = self.model.bodies();
        let body = bodies.get(n).unwrap_or_else(|| panic!("no request {n}"));
        body["messages"].as_array().unwrap().clone()
    }

    /// The texts of the last message of a request.
    fn last_texts(&self, n: usize) -> Vec<String> {
        let messages = self.told(n);
        let content = messages.last().unwrap()["content"].clone();
        let blocks = content.as_array().unwrap().clone();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        texts.map(str::to_owned).collect()
    }

    /// What the model was told of the result of its call, in its nth request.
    fn result(&self, n: usize) -> String {
        let messages = self.told(n);
        let content = messages.last().unwrap()["content"].clone();
        let blocks = content.as_array().unwrap().clone();
        let results = blocks.iter().filter(|block| block["type"] == "tool_result");
        results.map(|block| block["content"].to_string()).collect()
    }
}

/// A turn in which the model says this and nothing else.
fn says(text: &str) -> ModelTurn {
    ModelTurn::new().text(text)
}

/// A turn in which the model calls the tool of the server.
fn calls_echo(id: &str, text: &str) -> ModelTurn {
    let arguments = serde_json::json!({"text": text});
    ModelTurn::new().call(id, "mcp__one__echo", &arguments)
}

/// The status line of a session with a server.
fn status(context: &str) -> String {
    format!("claude-scripted{context} · servers: 1 ready · workspace-write · on-request")
}
