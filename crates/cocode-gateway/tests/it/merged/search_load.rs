//! How much less a model is told where it searches: fifty servers with twenty tools each.

use cocode_core::estimate_tokens;
use cocode_gateway::Announced;
use cocode_testkit::Script;
use serde_json::{Value, json};

use super::house::{House, ask};
use crate::support::Server;

const VERBS: [&str; 10] = [
    "list", "get", "create", "update", "delete", "search", "export", "import", "archive", "share",
];
const THINGS: [&str; 10] = [
    "issues",
    "invoices",
    "customers",
    "documents",
    "calendars",
    "deployments",
    "tickets",
    "orders",
    "repositories",
    "messages",
];

/// A tool as servers describe them: a few sentences, and a schema with a handful of properties.
fn tool(server: usize, number: usize) -> Value {
    let (verb, thing) = (VERBS[number % 10], THINGS[(server + number / 10) % 10]);
    json!({
        "name": format!("{verb}_{thing}"),
        "description": format!(
            "Lets you {verb} {thing} of the workspace that the user has signed in to. Use this when \
             the user asks about {thing}, and pass the identifiers exactly as other tools gave them. \
             Answers are sorted by the time of the last change, and given in pages."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "workspace": { "type": "string", "description": "The identifier of the workspace" },
                "query": { "type": "string", "description": format!("Which {thing} are meant, in words") },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100, "description": "How many on one page" },
                "cursor": { "type": "string", "description": "Where the last page has ended" },
                "fields": { "type": "array", "items": { "type": "string" }, "description": "What to tell of each" },
            },
            "required": ["workspace"],
        },
        "annotations": { "readOnlyHint": number % 10 < 2 },
    })
}

#[tokio::test]
async fn fifty_servers_with_a_thousand_tools_take_a_twentieth_of_the_context() {
    let scripts: Vec<_> = (0..50)
        .map(|server| {
            let tools: Vec<_> = (0..20).map(|number| tool(server, number)).collect();
            let script = Script::new()
                .on("tools/list")
                .result(json!({ "tools": tools }));
            (format!("server-{server:02}"), script)
        })
        .collect();
    let house = House::over_http(&scripts).await;
    assert!(
        house
            .servers
            .iter()
            .all(|server| matches!(server, Server::Http(_)))
    );
    let mut client = house.raw().await;
    let all = ask(&mut client, "tools/list", "{}").await;
    assert_eq!(all.matches("\"inputSchema\"").count(), 1_000);
    let announced = Announced::parse(Some("200000"), None).unwrap();
    let mut client = house.raw_at(house.view.all_for(announced)).await;
    let few = ask(&mut client, "tools/list", "{}").await;
    assert_eq!(
        few.matches("\"inputSchema\"").count(),
        3,
        "with that of the results"
    );
    let query = r#"{"name":"tool_search","arguments":{"query":"create invoices","limit":5}}"#;
    let found = ask(&mut client, "tools/call", query).await;
    assert_eq!(found.matches("\\\"inputSchema\\\"").count(), 5, "{found}");
    let [all, few, found] = [all, few, found].map(|text| estimate_tokens(&text));
    assert!(few * 20 <= all, "{few} of {all}");
    assert!((few + found) * 20 <= all, "{few} and {found} of {all}");
}
