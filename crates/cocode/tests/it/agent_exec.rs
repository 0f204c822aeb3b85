//! `cocode exec` and `cocode sessions` from end to end: a scripted model speaks what providers
//! document, and complains about everything that a provider would refuse.

mod formats;
mod interrupted;
#[cfg(target_os = "linux")]
mod killed;
mod lists;
mod models;
mod servers;
mod settings;
mod troubles;
mod words;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, ScriptedModel};
use serde_json::{Value, json};

use crate::harness::{Finished, start};
use crate::home::Home;

/// What is true of one interface has to be true of all.
const FORMATS: [ModelFormat; 3] = [
    ModelFormat::Anthropic,
    ModelFormat::Responses,
    ModelFormat::Chat,
];

/// What lets us in.
const KEY: &str = "sk-very-secret-4711";

/// A user, and the model that they work with. At the end, the model may have nothing to complain about.
struct Stage {
    home: Home,
    model: ScriptedModel,
    format: ModelFormat,
}

impl Stage {
    fn new(format: ModelFormat, script: ModelScript) -> Self {
        Self {
            home: Home::new(),
            model: script.start(format),
            format,
        }
    }

    fn provider(&self) -> &'static str {
        match self.format {
            ModelFormat::Anthropic => "anthropic",
            ModelFormat::Responses => "openai",
            ModelFormat::Chat => "ollama",
        }
    }

    /// The model that is used where a test wants no other.
    fn model_name(&self) -> &'static str {
        match self.format {
            ModelFormat::Anthropic => "claude-sonnet-4-5",
            ModelFormat::Responses => "gpt-5",
            ModelFormat::Chat => "qwen3",
        }
    }

    /// `cocode WORDS…`, which finds the model and what lets us in.
    fn cocode(&self, words: &[&str]) -> Command {
        let (url, key) = match self.format {
            ModelFormat::Anthropic => ("ANTHROPIC_BASE_URL", Some("ANTHROPIC_API_KEY")),
            ModelFormat::Responses => ("OPENAI_BASE_URL", Some("OPENAI_API_KEY")),
            ModelFormat::Chat => ("OLLAMA_BASE_URL", None),
        };
        let mut command = self.home.command(words);
        command.env(url, self.model.base_url());
        if let Some(key) = key {
            command.env(key, KEY);
        }
        command
    }

    /// `cocode exec WORDS…` with the usual model.
    fn exec(&self, words: &[&str]) -> Command {
        let usual = ["--provider", self.provider(), "--model", self.model_name()];
        let words: Vec<&str> = ["exec"]
            .iter()
            .chain(words)
            .chain(&usual)
            .copied()
            .collect();
        self.cocode(&words)
    }

    fn run(&self, words: &[&str]) -> Finished {
        Finished::of(self.exec(words).output().unwrap())
    }

    /// Runs `cocode exec WORDS…` with this piped in.
    fn run_with_stdin(&self, words: &[&str], stdin: &str) -> Finished {
        let mut child = start(self.exec(words).stdin(Stdio::piped()));
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(stdin.as_bytes()).unwrap();
        drop(pipe);
        Finished::of(child.wait_with_output().unwrap())
    }

    /// The events of `cocode exec --json WORDS…`, which ends with this code.
    #[track_caller]
    fn events(&self, words: &[&str], code: i32) -> Events {
        let words: Vec<&str> = ["--json"].iter().chain(words).copied().collect();
        let finished = self.run(&words).with_code(code);
        Events::read(&finished.stdout)
    }

    /// What `cocode sessions show` has of a conversation.
    #[track_caller]
    fn shown(&self, id: &str) -> Value {
        self.home.json(&["sessions", "show", id])
    }

    /// The records of a conversation of this kind.
    #[track_caller]
    fn records(&self, id: &str, kind: &str) -> Vec<Value> {
        let shown = self.shown(id);
        let events = shown["events"].as_array().unwrap();
        let records = events.iter().map(|event| event["event"].clone());
        records.filter(|record| record["record"] == kind).collect()
    }

    /// What the model was asked, from the first request on.
    fn bodies(&self) -> Vec<Value> {
        self.model.bodies()
    }

    /// What tools said, as the request of this number has it at its end.
    #[track_caller]
    fn results(&self, request: usize) -> Vec<String> {
        let bodies = self.bodies();
        let body = bodies.get(request);
        let body = body.unwrap_or_else(|| panic!("only {} requests", bodies.len()));
        results(self.format, body)
    }

    /// The names of the tools that the request of this number offers.
    #[track_caller]
    fn tools(&self, request: usize) -> Vec<String> {
        let bodies = self.bodies();
        let tools = bodies[request]["tools"].as_array().cloned();
        let tools = tools.unwrap_or_default().into_iter();
        let names = tools.map(|tool| {
            let name = tool.get("name").or_else(|| tool.pointer("/function/name"));
            name.and_then(Value::as_str).unwrap().to_owned()
        });
        names.collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.model.assert_no_violations();
        }
    }
}

/// What tools said, at the end of a request.
fn results(format: ModelFormat, body: &Value) -> Vec<String> {
    let (list, kind) = match format {
        ModelFormat::Anthropic => {
            let last = body["messages"].as_array().unwrap().last().unwrap();
            (last["content"].as_array().cloned(), "tool_result")
        }
        ModelFormat::Responses => (body["input"].as_array().cloned(), "function_call_output"),
        ModelFormat::Chat => (body["messages"].as_array().cloned(), "tool"),
    };
    let list = list.unwrap_or_default();
    let is_result = |item: &&Value| item["type"] == kind || item["role"] == kind;
    // In two of the formats all results are in one list, with those of earlier steps.
    let last_step = list.iter().rev().skip_while(|item| !is_result(item));
    let mut found: Vec<String> = last_step
        .take_while(is_result)
        .map(|item| {
            let said = item.get("content").or_else(|| item.get("output")).unwrap();
            match said {
                Value::String(text) => text.clone(),
                Value::Array(parts) => {
                    let texts = parts.iter().filter_map(|part| part["text"].as_str());
                    texts.collect::<Vec<_>>().join("\n")
                }
                other => other.to_string(),
            }
        })
        .collect();
    found.reverse();
    found
}

/// What `--json` printed.
#[derive(Debug)]
struct Events(Vec<Value>);

impl Events {
    #[track_caller]
    fn read(text: &str) -> Self {
        let lines = text.lines().map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        Self(lines.collect())
    }

    /// The conversation, which is told first.
    #[track_caller]
    fn id(&self) -> String {
        let first = self.0.first().unwrap();
        assert_eq!(first["type"], "conversation");
        first["session_id"].as_str().unwrap().to_owned()
    }

    /// Those of a type.
    fn of(&self, kind: &str) -> Vec<&Value> {
        let fits = self.0.iter().filter(|event| event["type"] == kind);
        fits.collect()
    }

    /// The last one, which tells how the turn ended.
    #[track_caller]
    fn end(&self) -> &Value {
        let last = self.0.last().unwrap();
        assert_eq!(last["type"], "ended", "{:#?}", self.0);
        last
    }
}

/// A running `cocode exec --json`, whose events are read as they come.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = start(command);
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// The next event; nothing if there is no more.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        // Half a line is what the program was killed in.
        if self.lines.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
            return None;
        }
        let event: Value = serde_json::from_str(&line).unwrap();
        self.seen.push(event.clone());
        Some(event)
    }

    /// Reads until an event of this type has come.
    #[track_caller]
    fn until(&mut self, kind: &str) -> Value {
        while let Some(event) = self.next() {
            if event["type"] == kind {
                return event;
            }
        }
        panic!("there was no `{kind}`: {:#?}", self.seen);
    }

    /// Reads the rest, and gives the code.
    fn finish(mut self) -> (Option<i32>, Events) {
        while self.next().is_some() {}
        let code = self.child.wait().unwrap().code();
        (code, Events(self.seen))
    }
}

/// A model that says this and is done.
fn says(text: &str) -> ModelTurn {
    ModelTurn::new().text(text)
}

/// A model that calls one tool.
fn calls(id: &str, tool: &str, arguments: &Value) -> ModelTurn {
    ModelTurn::new().call(id, tool, arguments)
}

/// A model that runs a command.
fn shell(id: &str, command: &str) -> ModelTurn {
    calls(id, "shell", &json!({ "command": command }))
}

/// The first so many letters of an id.
fn beginning(id: &str, letters: usize) -> &str {
    id.get(..letters).unwrap()
}

#[track_caller]
fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in:\n{text}");
}
