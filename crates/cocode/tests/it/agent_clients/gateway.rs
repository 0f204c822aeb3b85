//! The agent as one of the servers of a gateway: clients of both eras reach it over HTTP.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use super::sdks::{Client, Era, is_told_in_order, reply};
use super::{AGENT, Desk, begin, endless, response};
use crate::harness::start;
use crate::interrupting::signal;

/// A gateway whose only server is the agent.
struct Gateway {
    desk: Desk,
    child: Child,
    lines: BufReader<ChildStdout>,
    url: String,
}

impl Gateway {
    fn start() -> Self {
        let desk = Desk::new();
        let variables = desk.variables();
        Self::with(desk, &variables)
    }

    /// Comes back when the agent is ready.
    fn with(desk: Desk, variables: &BTreeMap<String, String>) -> Self {
        let servers = json!({ "mcpServers": { "agent": {
            "command": desk.agent()["command"],
            "args": AGENT,
        } } });
        desk.home.user_file("mcp.json", &servers.to_string());
        let mut command = desk.home.command(["gateway", "--listen", ":0", "--json"]);
        let mut child = start(command.envs(variables));
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut gateway = Self {
            desk,
            child,
            lines,
            url: String::new(),
        };
        gateway.url = gateway.next_event()["url"].as_str().unwrap().to_owned();
        while gateway.next_event()["server"]["state"] != "ready" {}
        gateway
    }

    fn next_event(&mut self) -> Value {
        let mut line = String::new();
        if self.lines.read_line(&mut line).unwrap() == 0 {
            panic!("the gateway has ended: {}", self.complaints());
        }
        serde_json::from_str(&line).unwrap()
    }

    fn complaints(&mut self) -> String {
        let mut said = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        said
    }

    /// Follows these steps as a client, at the address of the agent or at that of all servers.
    #[track_caller]
    fn visited(&self, client: Client, path: &str, steps: &Value) -> (Vec<Value>, Vec<Value>) {
        let plan = json!({
            "transport": "http",
            "url": format!("{}{path}", self.url),
            "elicit": { "decision": "once" },
            "steps": steps,
        });
        client.follows(&self.desk, plan)
    }

    /// Ends the gateway, which must not have had anything to complain about.
    fn end(mut self) {
        signal(&self.child, "-TERM");
        let complaints = self.complaints();
        let code = self.child.wait().unwrap().code();
        assert_eq!((code, complaints.as_str()), (Some(0), ""));
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Only a test that has failed leaves one behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

#[test]
fn clients_of_both_eras_hold_conversations_through_the_gateway() {
    let gateway = Gateway::start();
    for client in [
        Client::Python1,
        Client::Python2(Era::Legacy),
        Client::Python2(Era::Modern),
        Client::TypeScript1,
        Client::TypeScript2(Era::Modern),
    ] {
        let process = gateway.desk.file(&format!("process-{client:?}"));
        let (asked, seen) = gateway.visited(
            client,
            "/agent",
            &json!([
                { "call": "cocode", "with": begin("run echo done > made; cat made") },
                { "call": "cocode-reply", "with": reply(0, "recall") },
                { "call": "cocode-reply", "with": reply(0, &endless(&format!("'{process}'"))), "cancel": process },
                { "ended": process },
                { "call": "cocode-reply", "with": reply(0, "still there?") },
                { "list": "tools" },
                { "list": "prompts" },
                { "read": "cocode://conversations/${0.structuredContent.session_id}" },
            ]),
        );
        let [begun, gone_on, canceled, ended, after, tools, prompts, read] = &seen[..] else {
            panic!("{seen:?}");
        };
        assert!(response(begun).starts_with("given: done"), "{begun}");
        let told = ["began", "calls shell", "waiting for approval", "shell done"];
        is_told_in_order(client, begun, &told);
        let said = "said: run echo done > made; cat made | recall";
        assert_eq!(response(gone_on), said, "{client:?}");
        assert_eq!(canceled["canceled"], true, "{client:?}");
        assert_eq!(*ended, true, "{client:?}");
        assert_eq!(response(after), "heard: still there?", "{client:?}");
        assert_eq!(*tools, json!(["cocode", "cocode-reply"]));
        assert_eq!(*prompts, json!([]));
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("still there?"), "{text}");
        let methods: Vec<&Value> = asked.iter().map(|asked| &asked["method"]).collect();
        assert_eq!(methods, ["elicitation/create"; 2], "{client:?}");
    }
    gateway.end();
}

#[test]
fn the_agent_is_one_of_the_servers_at_the_address_of_all() {
    let gateway = Gateway::start();
    for era in [Era::Legacy, Era::Modern] {
        let (asked, seen) = gateway.visited(
            Client::Python2(era),
            "",
            &json!([
                { "list": "tools" },
                { "call": "mcp__agent__cocode", "with": begin("run echo done") },
                { "call": "mcp__agent__cocode-reply", "with": reply(1, "recall") },
            ]),
        );
        assert_eq!(
            seen[0],
            json!(["mcp__agent__cocode", "mcp__agent__cocode-reply"])
        );
        assert!(response(&seen[1]).starts_with("given: done"), "{seen:?}");
        assert_eq!(response(&seen[2]), "said: run echo done | recall");
        assert_eq!(asked.len(), 1);
    }
    gateway.end();
}

/// Questions of conversations that go on at once reach the client whose they are.
#[test]
fn conversations_through_the_gateway_do_not_mix() {
    let gateway = Gateway::start();
    for client in [Client::Python2(Era::Legacy), Client::Python2(Era::Modern)] {
        let each = ["one", "two", "three"];
        let calls = each.map(|name| {
            let prompt = format!("run echo {name}");
            json!({ "call": "cocode", "with": begin(&prompt) })
        });
        let (asked, seen) = gateway.visited(client, "/agent", &json!([{ "together": calls }]));
        assert_eq!(asked.len(), each.len());
        for (at, name) in each.iter().enumerate() {
            let given = response(&seen[0][at]);
            assert!(given.starts_with(&format!("given: {name}")), "{given}");
        }
    }
    gateway.end();
}

/// The model of the client is the only one that there is, and may refuse.
#[test]
fn the_models_of_clients_drive_conversations_through_the_gateway() {
    let desk = Desk::new();
    let variables = desk.variables_without_key();
    let gateway = Gateway::with(desk, &variables);
    for client in [
        Client::Python2(Era::Legacy),
        Client::Python2(Era::Modern),
        Client::TypeScript1,
    ] {
        let input = json!({ "command": "echo sampled" });
        let call = json!({ "type": "tool_use", "id": "1", "name": "shell", "input": input });
        let say = |text: &str| json!({ "content": { "type": "text", "text": text }, "stopReason": "endTurn" });
        let plan = json!({
            "transport": "http",
            "url": format!("{}/agent", gateway.url),
            "elicit": { "decision": "once" },
            "sampling_tools": true,
            "sample": [
                { "content": [call], "stopReason": "toolUse" },
                say("one"),
                { "error": "not now" },
                say("three"),
            ],
            "steps": [
                { "call": "cocode", "with": begin("first") },
                { "call": "cocode-reply", "with": reply(0, "second"), "fails": true },
                { "call": "cocode-reply", "with": reply(0, "third") },
            ],
        });
        let (asked, seen) = client.follows(&gateway.desk, plan);
        assert_eq!(response(&seen[0]), "one", "{client:?}");
        let why = seen[1]["error"]["message"].as_str().unwrap();
        assert!(why.contains("not now"), "{client:?}: {why}");
        assert_eq!(response(&seen[2]), "three", "{client:?}");
        let methods: Vec<&Value> = asked.iter().map(|asked| &asked["method"]).collect();
        let (model, person) = ("sampling/createMessage", "elicitation/create");
        assert_eq!(methods, [model, person, model, model, model], "{client:?}");
    }
    gateway.end();
}
