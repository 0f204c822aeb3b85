//! Exact answers: what the fixture lists and returns, in full.

use std::fs;

use serde_json::{Value, json};

use super::mcp::Client;
use crate::failure::Failure;
use crate::workspace;

/// A request, and its whole result.
pub(super) struct Exact {
    pub(super) name: &'static str,
    method: &'static str,
    params: fn() -> Value,
    result: fn() -> Value,
}

/// A list, and the file of the fixture that has all of it.
pub(super) struct List {
    pub(super) name: &'static str,
    method: &'static str,
    items: &'static str,
    file: &'static str,
    /// For how long the fixture says that it is fresh, and whether for everybody.
    ttl_ms: u64,
    public: bool,
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

pub(super) const EXACT: &[Exact] = &[
    Exact {
        name: "a call without arguments gives the text",
        method: "tools/call",
        params: || json!({ "name": "test_simple_text" }),
        result: || json!({ "content": [{ "type": "text", "text": "This is a simple text response for testing." }], "isError": false }),
    },
    Exact {
        name: "an error of a tool is its own",
        method: "tools/call",
        params: || json!({ "name": "test_error_handling", "arguments": {} }),
        result: || json!({ "content": [{ "type": "text", "text": "This tool intentionally returns an error for testing" }], "isError": true }),
    },
    Exact {
        name: "blocks of all kinds come in order",
        method: "tools/call",
        params: || json!({ "name": "test_multiple_content_types", "arguments": {} }),
        result: || {
            json!({ "isError": false, "content": [
            { "type": "text", "text": "Multiple content types test:" },
            { "type": "image", "data": PNG, "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "test://mixed-content-resource",
                "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}" } },
        ] })
        },
    },
    Exact {
        name: "arguments arrive",
        method: "tools/call",
        params: || json!({ "name": "greet", "arguments": { "name": "the probe" } }),
        result: || json!({ "content": [{ "type": "text", "text": "Hello, the probe!" }], "isError": false }),
    },
    Exact {
        name: "a resource has its text",
        method: "resources/read",
        params: || json!({ "uri": "test://static-text" }),
        result: || {
            json!({ "contents": [{ "uri": "test://static-text", "mimeType": "text/plain",
            "text": "This is the content of the static text resource." }] })
        },
    },
    Exact {
        name: "a resource has its bytes",
        method: "resources/read",
        params: || json!({ "uri": "test://static-binary" }),
        result: || json!({ "contents": [{ "uri": "test://static-binary", "mimeType": "image/png", "blob": PNG }] }),
    },
    Exact {
        name: "a prompt has its message",
        method: "prompts/get",
        params: || json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "hello", "arg2": "world" } }),
        result: || {
            json!({ "messages": [{ "role": "user", "content": { "type": "text",
            "text": "Prompt with arguments: arg1='hello', arg2='world'" } }] })
        },
    },
    Exact {
        name: "a completion has its values",
        method: "completion/complete",
        params: || {
            json!({ "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" },
            "argument": { "name": "arg1", "value": "par" } })
        },
        result: || json!({ "completion": { "values": ["paris", "park", "party"], "total": 3, "hasMore": false } }),
    },
];

pub(super) const LISTS: &[List] = &[
    List {
        name: "all tools are listed as they are",
        method: "tools/list",
        items: "tools",
        file: "tools.json",
        ttl_ms: 1_000,
        public: true,
    },
    List {
        name: "all prompts are listed as they are",
        method: "prompts/list",
        items: "prompts",
        file: "prompts.json",
        ttl_ms: 2_000,
        public: true,
    },
    List {
        name: "all resources are listed as they are",
        method: "resources/list",
        items: "resources",
        file: "resources.json",
        ttl_ms: 3_000,
        public: false,
    },
    List {
        name: "all templates are listed as they are",
        method: "resources/templates/list",
        items: "resourceTemplates",
        file: "templates.json",
        ttl_ms: 4_000,
        public: true,
    },
];

/// What a probe that asks nothing answers if it is asked all the same: nonsense.
fn unexpected(_method: &str, _params: &Value) -> Value {
    Value::Null
}

fn result(client: &Client, method: &str, params: &Value) -> Result<Value, String> {
    let outcome = client
        .request(method, params, unexpected)
        .map_err(|failure| failure.to_string())?;
    let result = outcome
        .result
        .map_err(|error| format!("ended with the error {error}"))?;
    if outcome.asked.is_empty() {
        Ok(result)
    } else {
        Err(format!("the client was asked {:?}", outcome.asked))
    }
}

impl Exact {
    /// What is wrong with it, if anything.
    pub(super) fn compare(&self, client: &Client) -> Option<String> {
        let mut result = match result(client, self.method, &(self.params)()) {
            Ok(result) => result,
            Err(complaint) => return Some(complaint),
        };
        if let Some(result) = result.as_object_mut() {
            // What only the modern era has, and what says who answered.
            for key in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                result.remove(key);
            }
        }
        let expected = (self.result)();
        (result != expected).then(|| format!("gave {result}, not {expected}"))
    }
}

impl List {
    /// What is wrong with it, if anything.
    pub(super) fn compare(&self, client: &Client) -> Option<String> {
        let list = match result(client, self.method, &json!({})) {
            Ok(list) => list,
            Err(complaint) => return Some(complaint),
        };
        let expected = match self.expected() {
            Ok(expected) => expected,
            Err(failure) => return Some(failure.to_string()),
        };
        let items = &list[self.items];
        if *items != expected {
            return Some(format!("listed {items}, not {expected}"));
        }
        list.get("nextCursor")
            .map(|cursor| format!("goes on at {cursor}"))
    }

    /// What a modern server says about caches may be made stricter on the way, and never laxer.
    pub(super) fn compare_hints(&self, client: &Client) -> Option<String> {
        let list = match result(client, self.method, &json!({})) {
            Ok(list) => list,
            Err(complaint) => return Some(complaint),
        };
        let fresh = list["ttlMs"].as_u64().is_some_and(|ttl| ttl <= self.ttl_ms);
        let scope = list["cacheScope"].as_str();
        let allowed = scope == Some("private") || (self.public && scope == Some("public"));
        (!fresh || !allowed).then(|| {
            let Self { ttl_ms, public, .. } = self;
            format!(
                "is fresh for {} and {scope:?}, while the server says {ttl_ms} and public: {public}",
                list["ttlMs"]
            )
        })
    }

    fn expected(&self) -> Result<Value, Failure> {
        let path = workspace::root()
            .join("crates/cocode-fixture/catalog")
            .join(self.file);
        let text =
            fs::read_to_string(&path).map_err(|error| Failure::because(path.display(), error))?;
        serde_json::from_str(&text).map_err(|error| Failure::because(path.display(), error))
    }
}
