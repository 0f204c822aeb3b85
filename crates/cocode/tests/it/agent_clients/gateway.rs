//! The agent as one of the servers of a gateway: clients of both eras reach it over HTTP.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::sdks::{Client, Era, is_told_in_order, reply};
use super::{AGENT, Desk, begin, endless, response};
use crate::gateway::Running;

/// The agent as any program that is configured, and the one within the gateway.
const AGENTS: [&str; 2] = ["agent", "cocode"];

/// Tools of the server `workspace`, which `--root` adds.
const BUILT_IN: usize = 4;

/// A gateway with both.
struct Gateway {
    desk: Desk,
    running: Running,
}

impl Gateway {
    fn start() -> Self {
        let desk = Desk::new();
        let variables = desk.variables();
        Self::with(desk, &variables)
    }

    /// Comes back when the agents are ready.
    fn with(desk: Desk, variables: &BTreeMap<String, String>) -> Self {
        let command = &desk.agent()["command"];
        let args = json!(AGENT);
        let project = desk.file("");
        let mut entry = format!(
            "[mcp_servers.agent]\ncommand = {command}\nargs = {args}\ncwd = '{project}'\nsandbox = 'off'\n"
        );
        // Servers get no variables but those that their entries name.
        if variables.contains_key("ANTHROPIC_API_KEY") {
            let key = r#"ANTHROPIC_API_KEY = "${ANTHROPIC_API_KEY}""#;
            let url = r#"ANTHROPIC_BASE_URL = "${ANTHROPIC_BASE_URL}""#;
            writeln!(entry, "env = {{ {key}, {url} }}").unwrap();
        }
        desk.home.user_file("mcp.toml", &entry);
        let words = ["gateway", "--listen", ":0", "--json", "--agent", "--root"];
        let mut command = desk.home.command(words);
        // Clients with a token write only where the gateway was not started.
        let command = command.arg(&project).current_dir(desk.home.home());
        let mut running = Running::of(command.envs(variables));
        running.until_ready(&AGENTS);
        Self { desk, running }
    }

    /// Follows these steps as a client, at an address below that of all servers.
    #[track_caller]
    fn visited(&self, client: Client, path: &str, steps: &Value) -> (Vec<Value>, Vec<Value>) {
        let plan = json!({
            "transport": "http",
            "url": format!("{}{path}", self.running.url),
            "token": self.running.token(),
            "elicit": { "decision": "once" },
            "steps": steps,
        });
        client.follows(&self.desk, plan)
    }

    /// Ends the gateway, which must not have had anything to complain about.
    fn end(self) {
        let (code, complaints) = self.running.end("-TERM");
        assert_eq!((code, complaints.as_str()), (Some(0), ""));
    }
}

/// Two turns with an approval, a call that is taken back, and a third turn.
#[track_caller]
fn conversation(agent: &str) {
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
            &format!("/{agent}"),
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
fn clients_of_both_eras_hold_conversations_through_the_gateway() {
    conversation("agent");
}

#[test]
fn clients_of_both_eras_hold_conversations_with_the_agent_of_the_gateway() {
    conversation("cocode");
}

#[test]
fn the_agents_are_among_the_servers_at_the_address_of_all() {
    let gateway = Gateway::start();
    for (era, agent) in [
        (Era::Legacy, "agent"),
        (Era::Modern, "agent"),
        (Era::Modern, "cocode"),
    ] {
        let name = |tool: &str| format!("mcp__{agent}__{tool}");
        let (begins, goes_on) = (name("cocode"), name("cocode-reply"));
        let (asked, seen) = gateway.visited(
            Client::Python2(era),
            "",
            &json!([
                { "list": "tools" },
                { "call": begins, "with": begin("run echo done") },
                { "call": goes_on, "with": reply(1, "recall") },
            ]),
        );
        let tools = seen[0].as_array().unwrap();
        assert_eq!(tools.len(), 2 * AGENTS.len() + BUILT_IN, "{tools:?}");
        assert!(tools.contains(&begins.into()) && tools.contains(&goes_on.into()));
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
    for (client, agent) in [
        (Client::Python2(Era::Legacy), "/agent"),
        (Client::Python2(Era::Modern), "/agent"),
        (Client::Python2(Era::Legacy), "/cocode"),
    ] {
        let each = ["one", "two", "three"];
        let calls = each.map(|name| {
            let prompt = format!("run echo {name}");
            json!({ "call": "cocode", "with": begin(&prompt) })
        });
        let (asked, seen) = gateway.visited(client, agent, &json!([{ "together": calls }]));
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
            "url": format!("{}/agent", gateway.running.url),
            "token": gateway.running.token(),
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
