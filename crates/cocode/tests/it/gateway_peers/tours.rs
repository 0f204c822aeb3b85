//! What a client of an SDK does at the gateway, and what it has to see: at the address of all
//! servers, and at that of each.

use serde_json::{Value, json};

use super::sdks::Visitor;
use super::{EVERYTHING, EVERYTHING_DIRECTORY, PYTHON, Peers, installed, text};

/// What the reference server offers to everybody.
pub(super) const EVERYTHING_TOOLS: [&str; 13] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
];

/// What it offers to clients who can be asked for these things.
const ELICITATION: &str = "trigger-elicitation-request";
const SAMPLING: &str = "trigger-sampling-request";
const URL_ELICITATION: &str = "trigger-url-elicitation";
const ROOTS: &str = "get-roots-list";

pub(super) const EVERYTHING_PROMPTS: [&str; 4] = [
    "args-prompt",
    "completable-prompt",
    "resource-prompt",
    "simple-prompt",
];
const DOCUMENTS: &str = "demo://resource/static/document/";
const DOCUMENT: &str = "instructions.md";
const EVERYTHING_DOCUMENTS: [&str; 7] = [
    "architecture.md",
    "extension.md",
    "features.md",
    "how-it-works.md",
    DOCUMENT,
    "startup.md",
    "structure.md",
];
const EVERYTHING_TEMPLATES: [&str; 2] = [
    "demo://resource/dynamic/blob/{resourceId}",
    "demo://resource/dynamic/text/{resourceId}",
];

pub(super) const PYTHON_TOOLS: [&str; 4] = ["add", "count", "greet", "think"];
pub(super) const PYTHON_PROMPT: &str = "review";
pub(super) const PYTHON_RESOURCE: &str = "peer://greeting";

/// The tools of the reference server for a client that can do these things, in order.
pub(super) fn everything_tools(more: &[&'static str]) -> Vec<&'static str> {
    let mut names = [&EVERYTHING_TOOLS, more].concat();
    names.sort_unstable();
    names
}

/// All tools of the reference server: what it offers where clients share it.
pub(super) fn all_everything_tools() -> Vec<&'static str> {
    everything_tools(&[ELICITATION, SAMPLING, URL_ELICITATION, ROOTS])
}

/// The name that something of a server has among those of others.
pub(super) fn among_others(server: &str, name: &str) -> String {
    format!("mcp__{server}__{name}")
}

/// Looks at all servers at once, uses both, and is asked by both.
#[track_caller]
pub(super) fn all_servers(peers: &Peers, visitor: Visitor) {
    let everything = |name| among_others(EVERYTHING, name);
    let python = |name| among_others(PYTHON, name);
    let mut seen = visitor.visit(
        peers,
        None,
        &json!([
            { "list": "tools" },
            { "list": "prompts" },
            { "list": "resources" },
            { "list": "templates" },
            { "call": everything("get-sum"), "with": { "a": 2, "b": 40 } },
            { "call": everything("trigger-long-running-operation"), "with": { "duration": 0.1, "steps": 2 } },
            { "call": python("count"), "with": { "steps": 3 } },
            { "read": format!("{DOCUMENTS}{DOCUMENT}") },
            { "read": PYTHON_RESOURCE },
            { "prompt": everything("args-prompt"), "with": { "city": "Paris" } },
            { "prompt": python(PYTHON_PROMPT), "with": { "language": "Rust" } },
            { "call": python("greet") },
            { "call": python("think"), "with": { "about": "sleep" } },
            { "call": everything(ELICITATION) },
            { "call": everything(SAMPLING), "with": { "prompt": "Be brief." } },
        ]),
    );
    seen.server(&json!({
        "name": "cocode",
        "title": "cocode gateway",
        "version": env!("CARGO_PKG_VERSION"),
    }));
    let tools = all_everything_tools();
    let tools = tools.into_iter().map(everything);
    let tools: Vec<String> = tools.chain(PYTHON_TOOLS.map(python)).collect();
    assert_eq!(seen.names(), tools);
    let prompts = EVERYTHING_PROMPTS.map(everything);
    let prompts = prompts.into_iter().chain([python(PYTHON_PROMPT)]);
    assert_eq!(seen.names(), prompts.collect::<Vec<_>>());
    let documents = EVERYTHING_DOCUMENTS.map(|name| format!("{DOCUMENTS}{name}"));
    let resources = documents.into_iter().chain([PYTHON_RESOURCE.to_owned()]);
    assert_eq!(seen.names(), resources.collect::<Vec<_>>());
    assert_eq!(seen.names(), EVERYTHING_TEMPLATES);
    assert_eq!(text(&seen.next()), "The sum of 2 and 40 is 42.");
    let operated = seen.next();
    let told = "Long running operation completed. Duration: 0.1 seconds, Steps: 2.";
    assert_eq!(text(&operated), told);
    visitor.has_progress(&operated, 2);
    let counted = seen.next();
    assert_eq!(text(&counted), "counted to 3");
    visitor.has_progress(&counted, 3);
    is_document(&seen.next());
    is_greeting(&seen.next());
    is_prompt(&seen.next(), "What's weather in Paris?");
    is_prompt(&seen.next(), "Review this Rust code.");
    assert_eq!(text(&seen.next()), "Hello, Ada!");
    assert_eq!(text(&seen.next()), "sleep: a thought");
    is_elicited(&seen.next());
    is_sampled(&seen.next());
    was_asked_by_python(&seen.asked[..2]);
    was_asked_by_everything(&seen.asked[2..]);
    peers.has_asked.set(true);
}

/// Searches for tools of both servers, calls what was found, and is asked by both.
#[track_caller]
pub(super) fn searched(peers: &Peers, visitor: Visitor) {
    let search = |query: &str| json!({ "call": "tool_search", "with": { "query": query } });
    let call = |server: &str, tool: &str, arguments: Value| {
        let found = json!({ "name": among_others(server, tool), "arguments": arguments });
        json!({ "call": "tool_call", "with": found })
    };
    let mut seen = visitor.visit(
        peers,
        None,
        &json!([
            { "list": "tools" },
            search("get-sum"),
            call(EVERYTHING, "get-sum", json!({ "a": 2, "b": 40 })),
            { "call": among_others(EVERYTHING, "get-sum"), "with": { "a": 2, "b": 40 } },
            search("greet"),
            call(PYTHON, "count", json!({ "steps": 3 })),
            call(PYTHON, "greet", json!({})),
            call(PYTHON, "think", json!({ "about": "sleep" })),
            call(EVERYTHING, ELICITATION, json!({})),
            call(EVERYTHING, SAMPLING, json!({ "prompt": "Be brief." })),
            call(PYTHON, "gret", json!({})),
        ]),
    );
    assert_eq!(seen.names(), ["tool_search", "tool_call"]);
    let found = seen.next();
    let first = &found["structuredContent"]["tools"][0];
    assert_eq!(
        first["name"],
        among_others(EVERYTHING, "get-sum"),
        "{found}"
    );
    assert_eq!(first["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(text(&seen.next()), "The sum of 2 and 40 is 42.");
    assert_eq!(text(&seen.next()), "The sum of 2 and 40 is 42.");
    let found = seen.next();
    let first = &found["structuredContent"]["tools"][0];
    assert_eq!(first["name"], among_others(PYTHON, "greet"), "{found}");
    let counted = seen.next();
    assert_eq!(text(&counted), "counted to 3");
    visitor.has_progress(&counted, 3);
    assert_eq!(text(&seen.next()), "Hello, Ada!");
    assert_eq!(text(&seen.next()), "sleep: a thought");
    is_elicited(&seen.next());
    is_sampled(&seen.next());
    let unknown = seen.next();
    assert_eq!(unknown["isError"], true, "{unknown}");
    let told = text(&unknown);
    assert!(
        told.contains("Did you mean") && told.contains("`mcp__python__greet`"),
        "{told}"
    );
    was_asked_by_python(&seen.asked[..2]);
    was_asked_by_everything(&seen.asked[2..]);
    peers.has_asked.set(true);
}

/// Looks at the server of handshakes alone, uses it, and is asked by it.
#[track_caller]
pub(super) fn everything_alone(peers: &Peers, visitor: Visitor) {
    let mut seen = visitor.visit(
        peers,
        Some(EVERYTHING),
        &json!([
            { "list": "tools" },
            { "list": "prompts" },
            { "list": "resources" },
            { "list": "templates" },
            { "call": "echo", "with": { "message": "hello" } },
            { "call": "trigger-long-running-operation", "with": { "duration": 0.1, "steps": 2 } },
            { "read": format!("{DOCUMENTS}{DOCUMENT}") },
            { "prompt": "args-prompt", "with": { "city": "Paris" } },
            { "call": ELICITATION },
            { "call": SAMPLING, "with": { "prompt": "Be brief." } },
        ]),
    );
    seen.server(&json!({
        "name": "mcp-servers/everything",
        "title": "Everything Reference Server",
        "version": "2.0.0",
    }));
    // A client that has one of its own is offered what goes with this client.
    let tools = if visitor.is_modern() || !peers.has_asked.get() {
        all_everything_tools()
    } else if visitor.can_open_urls() {
        everything_tools(&[ELICITATION, SAMPLING, URL_ELICITATION])
    } else {
        everything_tools(&[ELICITATION, SAMPLING])
    };
    assert_eq!(seen.sorted_names(), tools);
    assert_eq!(seen.sorted_names(), EVERYTHING_PROMPTS);
    let documents = EVERYTHING_DOCUMENTS.map(|name| format!("{DOCUMENTS}{name}"));
    assert_eq!(seen.sorted_names(), documents);
    assert_eq!(seen.sorted_names(), EVERYTHING_TEMPLATES);
    assert_eq!(text(&seen.next()), "Echo: hello");
    visitor.has_progress(&seen.next(), 2);
    is_document(&seen.next());
    is_prompt(&seen.next(), "What's weather in Paris?");
    is_elicited(&seen.next());
    is_sampled(&seen.next());
    was_asked_by_everything(&seen.asked);
    peers.has_asked.set(true);
}

/// Looks at the server without handshakes alone, uses it, and is asked by it.
#[track_caller]
pub(super) fn python_alone(peers: &Peers, visitor: Visitor) {
    let mut seen = visitor.visit(
        peers,
        Some(PYTHON),
        &json!([
            { "list": "tools" },
            { "list": "prompts" },
            { "list": "resources" },
            { "list": "templates" },
            { "call": "add", "with": { "a": 2, "b": 40 } },
            { "call": "count", "with": { "steps": 3 } },
            { "read": PYTHON_RESOURCE },
            { "prompt": PYTHON_PROMPT, "with": { "language": "Rust" } },
            { "call": "greet" },
            { "call": "think", "with": { "about": "sleep" } },
        ]),
    );
    seen.server(&json!({ "name": "cocode-python-peer", "version": "1.0.0" }));
    assert_eq!(seen.sorted_names(), PYTHON_TOOLS);
    assert_eq!(seen.names(), [PYTHON_PROMPT]);
    assert_eq!(seen.names(), [PYTHON_RESOURCE]);
    assert_eq!(seen.names(), [""; 0]);
    let added = seen.next();
    assert_eq!(text(&added), "42");
    assert_eq!(added["structuredContent"], json!({ "result": 42 }));
    visitor.has_progress(&seen.next(), 3);
    is_greeting(&seen.next());
    is_prompt(&seen.next(), "Review this Rust code.");
    assert_eq!(text(&seen.next()), "Hello, Ada!");
    assert_eq!(text(&seen.next()), "sleep: a thought");
    was_asked_by_python(&seen.asked);
}

#[track_caller]
fn is_document(result: &Value) {
    let file = installed(EVERYTHING_DIRECTORY).join("docs").join(DOCUMENT);
    let content = json!({
        "uri": format!("{DOCUMENTS}{DOCUMENT}"),
        "mimeType": "text/markdown",
        "text": std::fs::read_to_string(file).unwrap(),
    });
    assert_eq!(result["contents"], json!([content]));
}

#[track_caller]
fn is_greeting(result: &Value) {
    let content = json!({
        "uri": PYTHON_RESOURCE,
        "mimeType": "text/plain",
        "text": "hello from python",
    });
    assert_eq!(result["contents"], json!([content]));
}

#[track_caller]
fn is_prompt(result: &Value, text: &str) {
    let content = json!({ "type": "text", "text": text });
    let messages = json!([{ "role": "user", "content": content }]);
    assert_eq!(result["messages"], messages);
}

/// The reference server shows what it was answered.
#[track_caller]
fn is_elicited(result: &Value) {
    assert_eq!(text(result), "✅ User provided the requested information!");
    let inputs = &result["content"][1]["text"];
    assert_eq!(*inputs, "User inputs:\n- Name: Ada", "{result}");
}

#[track_caller]
fn is_sampled(result: &Value) {
    let shown = text(result).strip_prefix("LLM sampling result: \n");
    let answer: Value = serde_json::from_str(shown.unwrap()).unwrap();
    let wanted = json!({
        "role": "assistant",
        "model": "peer",
        "content": { "type": "text", "text": "a thought" },
        "stopReason": "endTurn",
    });
    assert_eq!(answer, wanted);
}

#[track_caller]
fn was_asked_by_everything(asked: &[Value]) {
    let [elicitation, sampling] = asked else {
        panic!("{asked:?}");
    };
    assert_eq!(elicitation["method"], "elicitation/create");
    let params = &elicitation["params"];
    let message = "Please provide inputs for the following fields:";
    assert_eq!(params["message"], message);
    assert_eq!(params["requestedSchema"]["required"], json!(["name"]));
    assert_eq!(sampling["method"], "sampling/createMessage");
    let params = &sampling["params"];
    let text = format!("Resource {SAMPLING} context: Be brief.");
    assert_eq!(params["messages"][0]["content"]["text"], text);
    assert_eq!(params["systemPrompt"], "You are a helpful test server.");
    assert_eq!(params["maxTokens"], 100);
}

#[track_caller]
fn was_asked_by_python(asked: &[Value]) {
    let [elicitation, sampling] = asked else {
        panic!("{asked:?}");
    };
    assert_eq!(elicitation["method"], "elicitation/create");
    let params = &elicitation["params"];
    assert_eq!(params["message"], "Who is there?");
    assert_eq!(params["requestedSchema"]["required"], json!(["name"]));
    assert_eq!(sampling["method"], "sampling/createMessage");
    let params = &sampling["params"];
    let text = "Think about sleep.";
    assert_eq!(params["messages"][0]["content"]["text"], text);
    assert_eq!(params["maxTokens"], 10);
}

/// Every server alone.
#[track_caller]
pub(super) fn each_server(peers: &Peers, visitor: Visitor) {
    everything_alone(peers, visitor);
    python_alone(peers, visitor);
}
