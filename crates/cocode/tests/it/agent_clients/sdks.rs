//! The clients of the public SDKs, which start the agent themselves.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Desk, begin, endless, refusal, response};
use crate::gateway_peers::{NODE, printed, script};
use crate::harness::{Finished, start};

/// A client, and the era that it speaks here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// The Python SDK 1, which only knows handshakes.
    Python1,
    /// The Python SDK 2.
    Python2(Era),
    /// The TypeScript SDK 1, which only knows handshakes.
    TypeScript1,
    /// The TypeScript SDK 2.
    TypeScript2(Era),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

impl Client {
    pub(super) fn era(self) -> Era {
        match self {
            Self::Python1 | Self::TypeScript1 => Era::Legacy,
            Self::Python2(era) | Self::TypeScript2(era) => era,
        }
    }

    /// Follows a plan. Gives what the client was asked, and what each step gave.
    #[track_caller]
    pub(super) fn follows(self, desk: &Desk, mut plan: Value) -> (Vec<Value>, Vec<Value>) {
        let (program, file) = match self {
            Self::Python1 => ("websocket/bin/python", "python/client1.py"),
            Self::Python2(_) => ("python/bin/python", "python/client.py"),
            Self::TypeScript1 => (NODE, "clients/sdk1.mjs"),
            Self::TypeScript2(_) => (NODE, "clients/sdk2.mjs"),
        };
        let (era, version) = match self.era() {
            Era::Legacy => ("legacy", "2025-11-25"),
            Era::Modern => ("modern", "2026-07-28"),
        };
        plan["era"] = era.into();
        let mut child = start(desk.client(program).arg(script(file)).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(plan.to_string().as_bytes()).unwrap();
        drop(stdin);
        let seen = printed(Finished::of(child.wait_with_output().unwrap()));
        assert_eq!(seen["version"], version, "{self:?}");
        let list = |field: &str| seen[field].as_array().unwrap().clone();
        (list("asked"), list("seen"))
    }

    /// As [`Self::follows`], with an agent that the client starts by itself.
    #[track_caller]
    fn starts(self, desk: &Desk, steps: &Value) -> (Vec<Value>, Vec<Value>) {
        let plan = json!({
            "transport": "stdio",
            "program": desk.agent(),
            "elicit": { "decision": "once" },
            "steps": steps,
        });
        self.follows(desk, plan)
    }
}

/// The arguments of `cocode-reply` in the conversation that a step began.
pub(super) fn reply(step: usize, message: &str) -> Value {
    let id = format!("${{{step}.structuredContent.session_id}}");
    json!({ "session_id": id, "message": message })
}

/// Reports of progress come in order, each with a larger number. The TypeScript clients say of their own
/// when they answer a question, and forget what came right before a result: also from other servers.
#[track_caller]
pub(super) fn is_told_in_order(client: Client, result: &Value, words: &[&str]) {
    let message = |report: &Value| report["message"].as_str().unwrap().to_owned();
    let mut progress = result["progress"].as_array().unwrap().clone();
    progress.retain(|report| !message(report).starts_with("Fulfilling input"));
    let numbers = progress
        .iter()
        .map(|report| report["progress"].as_f64().unwrap());
    assert!(numbers.is_sorted_by(|one, next| one < next), "{progress:?}");
    if matches!(client, Client::TypeScript1 | Client::TypeScript2(_)) {
        return;
    }
    let mut told = progress.iter().map(message);
    for word in words {
        let found = told.any(|told| told.contains(word));
        assert!(found, "{word} is not told in its place: {progress:?}");
    }
}

/// All that a client does with the agent, in one conversation.
#[track_caller]
fn conversation(client: Client) {
    let desk = Desk::new();
    desk.home.user_file("prompts/review.md", "Review {{what}}.");
    let process = desk.file("process");
    let (asked, seen) = client.starts(
        &desk,
        &json!([
            { "list": "tools" },
            { "list": "resources" },
            { "list": "templates" },
            { "list": "prompts" },
            { "prompt": "review", "with": { "what": "this" } },
            { "call": "cocode", "with": begin("run echo done > made; cat made") },
            { "call": "cocode-reply", "with": reply(5, "recall") },
            { "call": "cocode-reply", "with": reply(5, &endless(&process)), "cancel": process },
            { "ended": process },
            { "call": "cocode-reply", "with": reply(5, "still there?") },
            { "list": "resources" },
            { "read": "cocode://conversations/${5.structuredContent.session_id}" },
        ]),
    );
    let [
        tools,
        before,
        templates,
        prompts,
        prompt,
        begun,
        gone_on,
        canceled,
        ended,
        after,
        resources,
        read,
    ] = &seen[..]
    else {
        panic!("{seen:?}");
    };
    assert_eq!(*tools, json!(["cocode", "cocode-reply"]));
    assert_eq!(*before, json!([]));
    assert_eq!(*templates, json!(["cocode://conversations/{session_id}"]));
    assert_eq!(*prompts, json!(["review"]));
    assert_eq!(prompt["messages"][0]["content"]["text"], "Review this.");

    assert!(response(begun).starts_with("given: done"), "{begun}");
    assert_eq!(
        std::fs::read_to_string(desk.file("made")).unwrap(),
        "done\n"
    );
    let told = [
        "began",
        "thinking (step 1)",
        "calls shell",
        "waiting for approval",
    ];
    is_told_in_order(
        client,
        begun,
        &[&told[..], &["shell done", "thinking (step 2)", "writes"]].concat(),
    );
    assert_eq!(
        response(gone_on),
        "said: run echo done > made; cat made | recall"
    );
    assert_eq!(canceled["canceled"], true);
    assert_eq!(
        *ended, true,
        "the process of the call that was taken back is there"
    );
    assert_eq!(response(after), "heard: still there?");
    let id = begun["structuredContent"]["session_id"].as_str().unwrap();
    assert_eq!(*resources, json!([format!("cocode://conversations/{id}")]));
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("still there?"), "{text}");

    // Once for each command.
    let methods: Vec<&Value> = asked.iter().map(|asked| &asked["method"]).collect();
    assert_eq!(methods, ["elicitation/create", "elicitation/create"]);
    let message = asked[0]["params"]["message"].as_str().unwrap();
    assert!(message.contains("echo done > made; cat made"), "{message}");
}

#[test]
fn the_first_python_client_holds_a_conversation() {
    conversation(Client::Python1);
}

#[test]
fn the_python_client_holds_a_conversation_with_a_handshake() {
    conversation(Client::Python2(Era::Legacy));
}

#[test]
fn the_python_client_holds_a_conversation_without_a_handshake() {
    conversation(Client::Python2(Era::Modern));
}

#[test]
fn the_first_typescript_client_holds_a_conversation() {
    conversation(Client::TypeScript1);
}

#[test]
fn the_typescript_client_holds_a_conversation_with_a_handshake() {
    conversation(Client::TypeScript2(Era::Legacy));
}

#[test]
fn the_typescript_client_holds_a_conversation_without_a_handshake() {
    conversation(Client::TypeScript2(Era::Modern));
}

/// Everything that is thought is thought by the model of the client: no key is set, and the model that a
/// key would lead to is asked nothing.
#[track_caller]
fn sampled(client: Client) {
    let desk = Desk::new();
    let command = "echo sampled > made; cat made";
    let call =
        json!({ "type": "tool_use", "id": "1", "name": "shell", "input": { "command": command } });
    let say = |text: &str| json!({ "content": { "type": "text", "text": text }, "stopReason": "endTurn" });
    let plan = json!({
        "transport": "stdio",
        "program": {
            "command": desk.agent()["command"],
            "args": ["mcp", "serve", "--agent"],
            "env": desk.variables_without_key(),
            "cwd": desk.home.project(),
        },
        "elicit": { "decision": "once" },
        "sampling_tools": true,
        "sample": [
            { "content": [call], "stopReason": "toolUse" },
            say("it is made"),
            say("it is remembered"),
        ],
        "steps": [
            { "call": "cocode", "with": begin("make it") },
            { "call": "cocode-reply", "with": reply(0, "what was it?") },
        ],
    });
    let (asked, seen) = client.follows(&desk, plan);
    assert_eq!(response(&seen[0]), "it is made");
    assert_eq!(response(&seen[1]), "it is remembered");
    assert_eq!(
        std::fs::read_to_string(desk.file("made")).unwrap(),
        "sampled\n"
    );
    let methods: Vec<&Value> = asked.iter().map(|asked| &asked["method"]).collect();
    let (model, person) = ("sampling/createMessage", "elicitation/create");
    assert_eq!(methods, [model, person, model, model]);
    let tools = asked[0]["params"]["tools"].as_array().unwrap();
    assert!(
        tools.iter().any(|tool| tool["name"] == "shell"),
        "{tools:?}"
    );
    let result = asked[2]["params"]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert!(result.to_string().contains("sampled"), "{result}");
    let messages = asked[3]["params"]["messages"].to_string();
    for said in ["make it", "it is made", "what was it?"] {
        assert!(messages.contains(said), "{messages}");
    }
    assert_eq!(desk.model.bodies(), [] as [Value; 0]);
}

#[test]
fn the_model_of_the_first_python_client_drives_a_conversation() {
    sampled(Client::Python1);
}

#[test]
fn the_model_of_the_python_client_drives_a_conversation_with_a_handshake() {
    sampled(Client::Python2(Era::Legacy));
}

#[test]
fn the_model_of_the_python_client_drives_a_conversation_without_a_handshake() {
    sampled(Client::Python2(Era::Modern));
}

#[test]
fn the_model_of_the_first_typescript_client_drives_a_conversation() {
    sampled(Client::TypeScript1);
}

#[test]
fn the_model_of_the_typescript_client_drives_a_conversation_without_a_handshake() {
    sampled(Client::TypeScript2(Era::Modern));
}

/// A model that takes no tools can still talk.
#[test]
fn a_model_without_tools_drives_a_conversation() {
    for era in [Era::Legacy, Era::Modern] {
        let desk = Desk::new();
        let variables = desk.variables_without_key();
        let plan = json!({
            "transport": "stdio",
            "program": desk.agent_in("", &variables),
            "sample": "a thought",
            "steps": [{ "call": "cocode", "with": { "prompt": "think" } }],
        });
        let (asked, seen) = Client::Python2(era).follows(&desk, plan);
        assert_eq!(response(&seen[0]), "a thought");
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0]["params"]["tools"], Value::Null);
    }
}

/// Somebody may say no to what their model is asked. In the modern era the client then leaves, and the
/// agent is not told: whoever says something else later has to be heard all the same.
#[test]
fn a_conversation_goes_on_after_a_client_has_refused_to_think() {
    for client in [
        Client::Python1,
        Client::Python2(Era::Modern),
        Client::TypeScript1,
        Client::TypeScript2(Era::Modern),
    ] {
        let desk = Desk::new();
        let say = |text: &str| json!({ "content": { "type": "text", "text": text }, "stopReason": "endTurn" });
        let variables = desk.variables_without_key();
        let plan = json!({
            "transport": "stdio",
            "program": desk.agent_in("", &variables),
            "sample": [say("one"), { "error": "not now" }, say("three")],
            "steps": [
                { "call": "cocode", "with": { "prompt": "first" } },
                { "call": "cocode-reply", "with": reply(0, "second"), "fails": true },
                { "call": "cocode-reply", "with": reply(0, "third") },
            ],
        });
        let (asked, seen) = client.follows(&desk, plan);
        assert_eq!(response(&seen[0]), "one", "{client:?}");
        let why = match client.era() {
            Era::Legacy => refusal(&seen[1]),
            Era::Modern => seen[1]["error"]["message"].as_str().unwrap(),
        };
        assert!(why.contains("not now"), "{client:?}: {why}");
        assert_eq!(response(&seen[2]), "three", "{client:?}");
        let messages = asked[2]["params"]["messages"].to_string();
        for said in ["first", "one", "second", "third"] {
            assert!(messages.contains(said), "{messages}");
        }
    }
}

#[test]
fn conversations_go_on_at_once_and_do_not_mix() {
    for client in [
        Client::Python2(Era::Legacy),
        Client::Python2(Era::Modern),
        Client::TypeScript1,
    ] {
        let desk = Desk::new();
        let each = ["one", "two", "three", "four"];
        let begin = each.map(|name| {
            let prompt = format!("run echo {name} > {name}; cat {name}");
            json!({ "call": "cocode", "with": begin(&prompt) })
        });
        let go_on = [0, 1, 2, 3].map(|at| {
            let id = format!("${{0.{at}.structuredContent.session_id}}");
            json!({ "call": "cocode-reply", "with": { "session_id": id, "message": "recall" } })
        });
        let steps = json!([{ "together": begin }, { "together": go_on }]);
        let (asked, seen) = client.starts(&desk, &steps);
        assert_eq!(asked.len(), each.len(), "{client:?}");
        for (at, name) in each.iter().enumerate() {
            let given = response(&seen[0][at]);
            assert!(given.starts_with(&format!("given: {name}")), "{given}");
            let recalled = format!("said: run echo {name} > {name}; cat {name} | recall");
            assert_eq!(response(&seen[1][at]), recalled, "{client:?}");
        }
    }
}

#[test]
fn a_conversation_goes_on_in_another_process() {
    for client in [
        Client::Python1,
        Client::Python2(Era::Modern),
        Client::TypeScript1,
        Client::TypeScript2(Era::Modern),
    ] {
        let desk = Desk::new();
        let (_, seen) = client.starts(
            &desk,
            &json!([
                { "call": "cocode", "with": begin("keep this") },
                { "reconnect": true },
                { "call": "cocode-reply", "with": reply(0, "recall") },
                { "list": "resources" },
            ]),
        );
        assert_eq!(response(&seen[2]), "said: keep this | recall", "{client:?}");
        assert_eq!(seen[3].as_array().unwrap().len(), 1, "{client:?}");
    }
}

#[test]
fn sessions_that_cannot_be_gone_on_with_are_named() {
    for client in [
        Client::Python1,
        Client::Python2(Era::Modern),
        Client::TypeScript2(Era::Legacy),
    ] {
        let desk = Desk::new();
        let (_, seen) = client.starts(
            &desk,
            &json!([{ "call": "cocode", "with": begin("hello") }]),
        );
        let id = seen[0]["structuredContent"]["session_id"].as_str().unwrap();
        let go_on = |id: &str| {
            let with = json!({ "session_id": id, "message": "go on" });
            json!({ "call": "cocode-reply", "with": with })
        };
        let uri = format!("cocode://conversations/{id}");
        let unknown = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let mut misfit = go_on("yesterday");
        misfit["fails"] = json!(true);
        // Another directory has other conversations.
        let plan = json!({
            "transport": "stdio",
            "program": desk.agent_in("sub", &desk.variables()),
            "steps": [
                go_on(id),
                { "list": "resources" },
                { "read": uri, "fails": true },
                go_on(unknown),
                misfit,
            ],
        });
        let (_, seen) = client.follows(&desk, plan);
        let [foreign, resources, read, unknown_said, misfit] = &seen[..] else {
            panic!("{seen:?}");
        };
        let told = [
            (foreign, id, "there is no conversation"),
            (unknown_said, unknown, "there is no conversation"),
        ];
        for (result, id, word) in told {
            let said = refusal(result);
            assert!(said.contains(id) && said.contains(word), "{said}");
        }
        assert_eq!(*resources, json!([]));
        let message = read["error"]["message"].as_str().unwrap();
        assert!(message.contains(&uri), "{read}");
        assert_eq!(misfit["error"]["code"], -32602, "{misfit}");
        let message = misfit["error"]["message"].as_str().unwrap();
        assert!(message.contains("`session_id`"), "{message}");

        desk.finish(id);
        let (_, seen) = client.starts(&desk, &json!([go_on(id)]));
        assert!(refusal(&seen[0]).contains("finished"), "{seen:?}");
    }
}
