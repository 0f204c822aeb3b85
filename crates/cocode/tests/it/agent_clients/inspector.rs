//! The MCP Inspector: its `--cli`, which makes one request and ends, and its `mcpdo`, which holds a
//! connection and has whoever calls it answer questions.

use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};

use super::{Desk, begin, endless, refusal, response};
use crate::fronts::wait_while;
use crate::gateway_peers::commands::INSPECTOR;
use crate::gateway_peers::{NODE, each, installed, printed};
use crate::harness::{Finished, start};
use crate::interrupting::signal;

const MCPDO: &str =
    "clients/node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js";

/// The Inspector of a user who has configured the agent.
struct Inspector {
    desk: Desk,
    era: &'static str,
}

impl Inspector {
    fn new(era: &'static str) -> Self {
        let desk = Desk::new();
        let servers = json!({ "mcpServers": { "agent": desk.agent() } });
        desk.home.user_file("inspector.json", &servers.to_string());
        Self { desk, era }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.desk.client(NODE);
        // It starts more of itself by name, and is not to look for a keychain.
        let node = installed(NODE)
            .parent()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        command
            .env("PATH", format!("{node}:/usr/bin:/bin"))
            .env("MCP_INSPECTOR_SECRET_STORE", "file")
            .arg(installed(program));
        command
    }

    fn config(&self) -> String {
        let file = self.desk.home.home().join("inspector.json");
        file.to_str().unwrap().to_owned()
    }

    /// `mcp-inspector --cli`.
    fn cli(&self, words: &[&str]) -> Command {
        let mut command = self.command(INSPECTOR);
        command
            .args(["--cli", "--config", &self.config(), "--server", "agent"])
            .args(["--protocol-era", self.era, "--format", "json", "-q"])
            .arg("--method")
            .args(words);
        command
    }

    /// What one request of the `--cli` gave.
    #[track_caller]
    fn ask(&self, words: &[&str]) -> Value {
        let printed = printed(Finished::of(self.cli(words).output().unwrap()));
        printed["result"].clone()
    }

    /// What a call of the `--cli` gave.
    #[track_caller]
    fn ask_tool(&self, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        self.ask(&[
            "tools/call",
            "--tool-name",
            tool,
            "--tool-args-json",
            &arguments,
        ])
    }

    /// `mcpdo`.
    fn mcpdo(&self, words: &[&str]) -> Command {
        let mut command = self.command(MCPDO);
        command.args(["--format", "json"]).args(words);
        command
    }

    /// What `mcpdo` printed.
    #[track_caller]
    fn run(&self, words: &[&str]) -> Value {
        printed(Finished::of(self.mcpdo(words).output().unwrap()))
    }

    /// Connects `mcpdo` with the agent.
    #[track_caller]
    fn connect(&self) -> Value {
        let connected = self.run(&[
            "connect",
            "agent",
            "--config",
            &self.config(),
            "--era",
            self.era,
        ]);
        assert_eq!(connected["protocolEra"], self.era);
        connected
    }

    /// What `mcpdo` got from the agent.
    #[track_caller]
    fn of_agent(&self, words: &[&str]) -> Value {
        self.run(&[&["--connection", "agent"], words].concat())
    }

    #[track_caller]
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        self.of_agent(&["tools/call", tool, "--tool-args-json", &arguments])
    }

    /// Answers what a call asks, and gives what comes of it.
    #[track_caller]
    fn decide(&self, asks: &Value, decision: &str) -> Value {
        let id = asks["elicitationPending"]["elicitationId"].as_str();
        let id = id.unwrap_or_else(|| panic!("nothing is asked: {asks}"));
        self.of_agent(&["elicitation/respond", id, &format!("decision:={decision}")])
    }
}

/// `mcpdo` leaves a daemon behind, which ends with the test.
struct Connection<'a>(&'a Inspector);

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let stopped = self.0.mcpdo(&["daemon", "stop"]).output().unwrap();
        assert!(stopped.status.success() || std::thread::panicking());
    }
}

/// The process that wrote this file, once it is there.
fn process_in(file: &str) -> u32 {
    let read = || std::fs::read_to_string(file).unwrap_or_default();
    wait_while(|| !read().ends_with('\n'));
    let process = read().trim().parse().unwrap();
    assert!(is_there(process), "it ended by itself");
    process
}

fn is_there(process: u32) -> bool {
    let asked = Command::new("kill")
        .args(["-0", &process.to_string()])
        .output();
    asked.unwrap().status.success()
}

#[test]
fn the_inspector_sees_all_that_the_agent_has() {
    for era in ["legacy", "modern"] {
        let inspector = Inspector::new(era);
        let prompt = "Review {{what}}.";
        inspector.desk.home.user_file("prompts/review.md", prompt);
        // It also judges the schemas of tools.
        let listed = inspector.ask(&["tools/list", "--strict"]);
        assert_eq!(each(&listed["tools"], "name"), ["cocode", "cocode-reply"]);
        assert_eq!(inspector.ask(&["resources/list"])["resources"], json!([]));
        let templates = inspector.ask(&["resources/templates/list"]);
        let templates = each(&templates["resourceTemplates"], "uriTemplate");
        assert_eq!(templates, ["cocode://conversations/{session_id}"]);
        let prompts = inspector.ask(&["prompts/list"]);
        assert_eq!(each(&prompts["prompts"], "name"), ["review"]);
        let words = [
            "prompts/get",
            "--prompt-name",
            "review",
            "--prompt-args",
            "what=this",
        ];
        let prompt = inspector.ask(&words);
        assert_eq!(prompt["messages"][0]["content"]["text"], "Review this.");
    }
}

/// Each turn is a request of its own, to an agent that begins and ends with it.
#[track_caller]
fn one_process_for_each_turn(era: &'static str) {
    let inspector = Inspector::new(era);
    let begun = inspector.ask_tool("cocode", &json!({ "prompt": "keep this" }));
    assert_eq!(response(&begun), "heard: keep this");
    let id = begun["structuredContent"]["session_id"].as_str().unwrap();
    let reply = json!({ "session_id": id, "message": "recall" });
    let gone_on = inspector.ask_tool("cocode-reply", &reply);
    assert_eq!(response(&gone_on), "said: keep this | recall");
    let uri = format!("cocode://conversations/{id}");
    let listed = inspector.ask(&["resources/list"]);
    assert_eq!(each(&listed["resources"], "uri"), [&uri]);
    let read = inspector.ask(&["resources/read", "--uri", &uri]);
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("said: keep this | recall"), "{text}");
    // The `--cli` says that it cannot ask anybody, and the agent goes on without.
    let begun = inspector.ask_tool("cocode", &begin("run echo done > made"));
    assert!(response(&begun).contains("nobody can be asked"), "{begun}");
    assert!(!Path::new(&inspector.desk.file("made")).exists());
    let unknown = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let reply = json!({ "session_id": unknown, "message": "recall" }).to_string();
    let words = ["--tool-name", "cocode-reply", "--tool-args-json", &reply];
    let mut command = inspector.cli(&[&["tools/call"], &words[..]].concat());
    // An error of a tool may be told by the exit code as well.
    let finished = Finished::of(command.output().unwrap());
    let result: Value = serde_json::from_str(&finished.stdout).unwrap();
    let said = refusal(&result["result"]).to_owned();
    assert!(said.contains(unknown), "{said}");
}

#[test]
fn the_inspector_holds_a_conversation_turn_by_turn_with_a_handshake() {
    one_process_for_each_turn("legacy");
}

#[test]
fn the_inspector_holds_a_conversation_turn_by_turn_without_a_handshake() {
    one_process_for_each_turn("modern");
}

/// Somebody is asked twice in a conversation of one connection.
#[track_caller]
fn agrees_and_refuses(era: &'static str) {
    let inspector = Inspector::new(era);
    let _connection = Connection(&inspector);
    let connected = inspector.connect();
    let listed = inspector.of_agent(&["tools/list"]);
    assert_eq!(each(&listed["tools"], "name"), ["cocode", "cocode-reply"]);
    assert_eq!(
        inspector.of_agent(&["resources/list"])["resources"],
        json!([])
    );
    assert_eq!(inspector.of_agent(&["prompts/list"])["prompts"], json!([]));

    let asks = inspector.call("cocode", &begin("run echo done > made; cat made"));
    let message = asks["elicitationPending"]["message"].as_str().unwrap();
    assert!(message.contains("echo done > made; cat made"), "{message}");
    assert!(!Path::new(&inspector.desk.file("made")).exists());
    let begun = inspector.decide(&asks, "once");
    assert!(response(&begun).starts_with("given: done"), "{begun}");

    let id = begun["structuredContent"]["session_id"].as_str().unwrap();
    let reply = |message: &str| json!({ "session_id": id, "message": message });
    let gone_on = inspector.call("cocode-reply", &reply("recall"));
    let said = "said: run echo done > made; cat made | recall";
    assert_eq!(response(&gone_on), said);

    let asks = inspector.call("cocode-reply", &reply("run rm made"));
    let refused = inspector.decide(&asks, "refuse");
    assert!(response(&refused).starts_with("given: "), "{refused}");
    assert!(Path::new(&inspector.desk.file("made")).exists());
    // All of this was one connection.
    let now = inspector.run(&["connections/list"]);
    assert_eq!(
        now["connections"][0]["connectedAt"],
        connected["connectedAt"]
    );
}

#[test]
fn a_person_with_the_inspector_agrees_and_refuses_with_a_handshake() {
    agrees_and_refuses("legacy");
}

#[test]
fn a_person_with_the_inspector_agrees_and_refuses_without_a_handshake() {
    agrees_and_refuses("modern");
}

/// Who interrupts the `--cli` ends the agent, and whatever it had begun.
#[test]
fn a_call_of_the_inspector_ends_with_it() {
    for era in ["legacy", "modern"] {
        let inspector = Inspector::new(era);
        let file = inspector.desk.file("process");
        let arguments = json!({
            "prompt": endless(&file),
            "approval-policy": "never",
            "sandbox": "workspace-write",
        });
        let arguments = arguments.to_string();
        let words = ["--tool-name", "cocode", "--tool-args-json", &arguments];
        let mut command = inspector.cli(&[&["tools/call"], &words[..]].concat());
        let child = start(&mut command);
        let process = process_in(&file);
        signal(&child, "-INT");
        wait_while(|| is_there(process));
        child.wait_with_output().unwrap();
    }
}

/// An `mcpdo` waits for a minute, whatever it is told, and then takes its call back. Its connection stays,
/// and so does the agent.
#[test]
fn the_inspector_takes_back_a_call_that_takes_too_long() {
    let inspectors = ["legacy", "modern"].map(Inspector::new);
    let connections = inspectors.each_ref().map(Connection);
    let waiting: Vec<(Child, u32, Value)> = inspectors
        .iter()
        .map(|inspector| {
            let connected = inspector.connect();
            let file = inspector.desk.file("process");
            let arguments = json!({
                "prompt": endless(&file),
                "approval-policy": "never",
                "sandbox": "workspace-write",
            });
            let arguments = arguments.to_string();
            let words = ["tools/call", "cocode", "--tool-args-json", &arguments];
            let words = [&["--connection", "agent"], &words[..]].concat();
            let child = start(&mut inspector.mcpdo(&words));
            (child, process_in(&file), connected["connectedAt"].clone())
        })
        .collect();
    for (inspector, (child, process, connected)) in inspectors.iter().zip(waiting) {
        let finished = Finished::of(child.wait_with_output().unwrap()).with_code(1);
        finished.complains(&["timed out"]);
        wait_while(|| is_there(process));
        let listed = inspector.of_agent(&["resources/list"]);
        let uri = each(&listed["resources"], "uri")[0].to_owned();
        let id = uri.rsplit('/').next().unwrap();
        let reply = json!({ "session_id": id, "message": "still there?" });
        let gone_on = inspector.call("cocode-reply", &reply);
        assert_eq!(response(&gone_on), "heard: still there?");
        let now = inspector.run(&["connections/list"]);
        assert_eq!(now["connections"][0]["connectedAt"], connected);
    }
    drop(connections);
}
