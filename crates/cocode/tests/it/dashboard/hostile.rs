//! Servers that say nothing but what is to be obeyed, in every text that a server can say, and a person who
//! looks at all of it.

use cocode_testkit::{HttpServer, Script, StdioServer};
use serde_json::{Value, json};

use super::drive;
use crate::gateway::Running;
use crate::gateway_peers::script;
use crate::home::Home;

/// A picture of one point.
const POINT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// Something that is obeyed where it is taken for an address.
const OBEYED: &str = "javascript:window.__xss=1";

fn payloads() -> Vec<String> {
    let payloads = std::fs::read_to_string(script("dashboard/payloads.json")).unwrap();
    // Halves of pairs are no text in Rust; they are for the tests of the pages.
    let payloads: Vec<&str> = payloads
        .lines()
        .filter(|line| !line.contains("\\ud800"))
        .collect();
    serde_json::from_str(&payloads.join("\n")).unwrap()
}

/// Pictures that are none, and one that would be fetched from elsewhere.
fn icons() -> Value {
    json!([
        { "src": OBEYED, "mimeType": "image/svg+xml", "sizes": ["<b>"] },
        { "src": "https://attacker.example/icon.png" },
        { "src": "data:image/svg+xml,<svg onload=window.__xss=1>", "mimeType": "image/png" },
    ])
}

/// A schema whose every text is this one.
fn schema(text: &str) -> Value {
    let words = json!({ "title": text, "description": text });
    let with = |mut value: Value| {
        let members = words.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(members);
        value
    };
    json!({
        "type": "object", "title": text, "description": text, "required": [text, "pattern"],
        "properties": {
            text: with(json!({ "type": "string", "default": text, "enum": [text] })),
            "pattern": with(json!({ "type": "string", "pattern": text, "format": text, "examples": [text] })),
            "named": with(json!({ "type": "string", "enum": ["a", text], "enumNames": [text, text] })),
            "one": with(json!({ "oneOf": [{ "const": text, "title": text }, { "const": "b", "title": text }] })),
            "many": with(json!({ "type": "array", "items": { "anyOf": [{ "const": text, "title": text }] } })),
            "number": with(json!({ "type": "number", "default": text, "minimum": text })),
            "flag": with(json!({ "type": "boolean", "default": text })),
            "object": with(json!({ "type": "object", "properties": { text: { "$ref": text } } })),
        },
    })
}

/// What a question may be about: texts, lists of words with names, defaults, patterns.
fn question(text: &str) -> Value {
    let named =
        json!({ "type": "string", "title": text, "enum": ["a", "b"], "enumNames": [text, text] });
    let one = json!({ "type": "string", "oneOf": [{ "const": "a", "title": text }] });
    let many = json!({
        "type": "array", "title": text,
        "items": { "anyOf": [{ "const": "a", "title": text }] },
    });
    let plain = json!({ "type": "string", "title": text, "description": text, "default": text });
    json!({
        "message": text,
        "requestedSchema": { "type": "object", "properties": {
            text: plain, "named": named, "one": one, "many": many,
        } },
    })
}

/// A server that is hostile in everything that is listed and read, and in what comes of five calls in turn: a
/// result, a failure of a tool, an error, a question, and an address.
#[expect(
    clippy::too_many_lines,
    reason = "it is one long list of what a server can say"
)]
fn server() -> StdioServer {
    let payloads = payloads();
    let all = payloads.join(" ");
    let indexed = || payloads.iter().enumerate();
    let tools = indexed().map(|(index, text)| {
        json!({
            "name": format!("tool-{index}"), "title": text, "description": text,
            "annotations": { "title": text }, "icons": icons(),
            "inputSchema": schema(text), "outputSchema": schema(text),
        })
    });
    let named = payloads
        .iter()
        .map(|text| json!({ "name": text, "inputSchema": { "type": "object" } }));
    let tools: Vec<Value> = tools.chain(named).collect();
    let resources = indexed().map(|(index, text)| {
        let uri = if index % 2 == 0 {
            format!("x://{index}")
        } else {
            format!("{OBEYED}//{index}")
        };
        json!({
            "uri": uri, "name": text, "title": text, "description": text, "mimeType": text,
            "icons": icons(), "annotations": { "audience": [text], "lastModified": text },
        })
    });
    let resources: Vec<Value> = resources.collect();
    let templates = payloads.iter().map(|text| {
        json!({
            "uriTemplate": format!("{OBEYED}/{{x}}"), "name": text, "title": text,
            "description": text, "mimeType": text, "icons": icons(),
        })
    });
    let templates: Vec<Value> = templates.collect();
    let prompts = payloads.iter().map(|text| {
        json!({
            "name": text, "title": text, "description": text, "icons": icons(),
            "arguments": [{ "name": text, "title": text, "description": text }],
        })
    });
    let prompts: Vec<Value> = prompts.collect();
    let contents = json!([
        { "type": "text", "text": all, "annotations": { "audience": [all] } },
        { "type": "resource_link", "uri": OBEYED, "name": all, "title": all, "description": all,
          "mimeType": all, "icons": icons() },
        { "type": "resource", "resource": { "uri": OBEYED, "mimeType": "text/html", "text": all } },
        { "type": "resource", "resource": { "uri": "x://b", "mimeType": "text/html", "blob": POINT } },
        { "type": "image", "data": POINT, "mimeType": "image/png" },
        { "type": "image", "data": POINT, "mimeType": "image/svg+xml" },
        { "type": "image", "data": "\" onerror=\"window.__xss=1", "mimeType": "image/png" },
        { "type": "audio", "data": POINT, "mimeType": "text/html" },
        { "type": all, "text": all },
    ]);
    let structured: serde_json::Map<String, Value> = payloads
        .iter()
        .map(|text| (text.clone(), json!([text])))
        .collect();
    let progress = json!({ "progressToken": "$token", "progress": 1, "total": 2, "message": all });
    let log = json!({ "level": "warning", "logger": all, "data": { "text": all } });
    let asked_url = json!({
        "mode": "url", "message": all, "url": OBEYED, "elicitationId": all,
    });
    let capabilities = json!({
        "tools": {}, "resources": {}, "prompts": {}, "logging": {}, "completions": {},
    });
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "instructions": all,
        "serverInfo": {
            "name": all, "title": all, "version": all, "websiteUrl": OBEYED, "icons": icons(),
        },
    });
    let empty = json!({ "content": [] });
    Script::new()
        .on("initialize")
        .result(kept(&hello))
        .on("tools/list")
        .result(kept(&json!({ "tools": tools })))
        .on("resources/list")
        .result(kept(&json!({ "resources": resources })))
        .on("resources/templates/list")
        .result(kept(&json!({ "resourceTemplates": templates })))
        .on("prompts/list")
        .result(kept(&json!({ "prompts": prompts })))
        .on("resources/read")
        .result(kept(
            &json!({ "contents": [{ "uri": OBEYED, "mimeType": "text/html", "text": all }] }),
        ))
        .on("prompts/get")
        .result(kept(&json!({ "description": all, "messages": [
            { "role": "user", "content": { "type": "text", "text": all } },
            { "role": "assistant", "content": contents[1] },
        ] })))
        .on("tools/call")
        .nth(1)
        .notify("notifications/progress", kept(&progress))
        .notify("notifications/message", kept(&log))
        .result(kept(
            &json!({ "content": contents, "structuredContent": structured }),
        ))
        .on("tools/call")
        .nth(2)
        .result(kept(&json!({ "content": contents, "isError": true })))
        .on("tools/call")
        .nth(3)
        .line(kept(&json!({ "jsonrpc": "2.0", "id": "$id", "error": {
            "code": -32000, "message": all, "data": { "text": all },
        } })))
        .on("tools/call")
        .nth(4)
        .ask("elicitation/create", kept(&question(&all)))
        .result(empty.clone())
        .on("tools/call")
        .nth(5)
        .ask("elicitation/create", kept(&asked_url))
        .result(empty)
        .stdio()
}

/// A template that becomes this, but for `$id` and `$token`.
fn kept(value: &Value) -> String {
    let text = value.to_string().replace('$', "$$");
    text.replace("\"$$id\"", "\"$id\"")
        .replace("\"$$token\"", "\"$token\"")
}

/// A server whose sign-in leads to what is obeyed, and whose every word about it is hostile.
fn trap() -> HttpServer {
    let all = payloads().join(" ");
    let issuer = Script::new().on_http("GET").json(kept(&json!({
        "issuer": "$$", "authorization_endpoint": OBEYED, "token_endpoint": OBEYED,
        "registration_endpoint": OBEYED, "scopes_supported": [all],
        "authorization_servers": [OBEYED], "resource": OBEYED, "resource_name": all,
        "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
    })));
    let challenge = format!(
        "Bearer error=\"<img>\", error_description=\"{}\", scope=\"<b>\"",
        "<img src=x onerror=window.__xss=1>"
    );
    issuer
        .on_http("POST")
        .unauthorized(&[("WWW-Authenticate", &challenge)])
        .http()
}

#[test]
fn system_nothing_that_a_server_says_is_obeyed() {
    let home = Home::new();
    let (server, trap) = (server(), trap());
    let said = home.project_file("said.txt", &format!("{}\n", payloads().join("\n")));
    // It says the same to stderr; and so does one that ends at once.
    let program = json!(server.program());
    // It says more than fits into a command.
    let in_file = |arg: &String| {
        let path = home.project_file("script.json", arg);
        json!(format!("@{}", path.display()))
    };
    let args = server.args().iter().map(|arg| {
        if arg.starts_with('{') {
            in_file(arg)
        } else {
            json!(arg)
        }
    });
    let args: Vec<Value> = args.collect();
    let speaks = "cat \"$0\" >&2; exec \"$@\"";
    let entry = |name: &str, script: &str, rest: &[Value]| {
        let mut words = vec![json!("-c"), json!(script), json!(said)];
        words.extend(rest.iter().cloned());
        // What it says is no variable of ours.
        let words = Value::from(words).to_string().replace("${", "$${");
        format!("[mcp_servers.{name}]\ncommand = '/bin/sh'\nargs = {words}\n")
    };
    let whole: Vec<Value> = std::iter::once(program).chain(args).collect();
    let file = [
        entry("hostile", speaks, &whole),
        entry("short", "cat \"$0\" >&2; exit 3", &[]),
        format!("[mcp_servers.trap]\nurl = '{}'\n", trap.url()),
    ];
    home.user_file("mcp.toml", &file.concat());
    let mut gateway = Running::start(&home, &[]);
    let mut awaited = vec![("hostile", "ready"), ("trap", "needs-auth")];
    while !awaited.is_empty() {
        let event = gateway.next(|event| event["event"] == "state");
        let server = &event["server"];
        awaited.retain(|(name, state)| server["name"] != **name || server["state"] != **state);
    }
    drive(
        &gateway,
        "xss",
        &[
            ("SERVER", "hostile"),
            ("TOOLS", "tool-0 tool-0 tool-0"),
            ("ASKING_TOOLS", "tool-0 tool-0"),
            ("OTHER_SERVERS", "short trap"),
            ("LOGIN", "trap"),
        ],
    );
}
