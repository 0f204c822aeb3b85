//! Servers that somebody may not use, and tools that a rule denies: nothing of them is listed, found or
//! read, and nothing tells them from such as nobody has.

use std::sync::Arc;

use cocode_client::{Annotations, ManagerOptions, Protocol};
use cocode_core::{ServerName, Verdict};
use cocode_gateway::{Gate, View, ViewOptions};
use cocode_testkit::{Message, Script};
use serde_json::{Value, json};

use crate::merged::house::{House, ask, with_tools};
use crate::merged::search::searching;
use crate::support::Server;
use crate::watched::BOTH;

/// The server that is not for everybody.
const SECRET: &str = "secret";
/// One that there is not, of a name that is as far from all others.
const NOBODYS: &str = "mumble";

/// A server with something of each kind that no other has.
fn secret() -> Script {
    with_tools(Script::dual(), &["echo", "betray"])
        .on("tools/call")
        .text_result("done")
        .on("prompts/list")
        .result(json!({ "prompts": [{ "name": "greet" }, { "name": "confess" }] }))
        .on("prompts/get")
        .result(json!({ "messages": [] }))
        .on("resources/list")
        .result(json!({ "resources": [
            { "uri": "scripted://hello", "name": "hello" },
            { "uri": "secret://plan", "name": "plan" },
        ] }))
        .on("resources/templates/list")
        .result(json!({ "resourceTemplates": [{ "uriTemplate": "secret://{x}", "name": "any" }] }))
        .on("resources/read")
        .result(json!({ "contents": [] }))
}

/// A gateway whose view is ann's, who may use everything. All of it is known.
async fn house() -> House {
    let scripts = [
        ("x", Script::dual()),
        ("y", Script::dual()),
        (SECRET, secret()),
    ];
    let options = ViewOptions {
        principal: Some("ann".into()),
        ..searching()
    };
    let house = House::with(&scripts, options, |_| {}).await;
    for method in LISTS {
        answer(&house, &house.view, Protocol::Legacy, method, json!({})).await;
    }
    house
}

const LISTS: [&str; 4] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
];

/// A view of the same gateway for bob, with its first servers only.
async fn for_bob(house: &House, n_servers: usize) -> View {
    let view = house.gateway.view(ViewOptions {
        manager: ManagerOptions::with_environment(std::env::vars_os()),
        principal: Some("bob".into()),
        ..searching()
    });
    apply(house, &view, n_servers).await;
    view
}

async fn apply(house: &House, view: &View, n_servers: usize) {
    let named = house.servers.iter().zip(["x", "y", SECRET]);
    let specs = named.map(|(server, name)| server.spec_as(name));
    view.apply(specs.take(n_servers)).await;
}

async fn answer(house: &House, view: &View, era: Protocol, method: &str, params: Value) -> String {
    if era == Protocol::Modern {
        let mut client = house.stateless_at(view.all());
        return client.modern(7, method, params).await.to_string();
    }
    let mut client = house.raw_at(view.all()).await;
    let answer = ask(&mut client, method, &params.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer.to_string()
}

/// Requests for what a server has, by all names that lead to it.
fn requests(server: &str) -> Vec<(&'static str, Value)> {
    let argument = json!({ "name": "a", "value": "" });
    let complete = |reference: Value| {
        let params = json!({ "ref": reference, "argument": argument });
        ("completion/complete", params)
    };
    let mut requests = vec![
        (
            "tools/call",
            json!({ "name": format!("mcp__{server}__echo") }),
        ),
        (
            "tools/call",
            json!({ "name": format!("mcp__{server}__betray") }),
        ),
        ("tools/call", tool_call(&format!("mcp__{server}__betray"))),
        ("tools/call", tool_search(server, None)),
        ("tools/call", tool_search("echo", Some(server))),
        (
            "prompts/get",
            json!({ "name": format!("mcp__{server}__greet") }),
        ),
        (
            "prompts/get",
            json!({ "name": format!("mcp__{server}__confess") }),
        ),
        ("tasks/get", json!({ "taskId": format!("{server}:7") })),
        complete(json!({ "type": "ref/prompt", "name": format!("mcp__{server}__confess") })),
    ];
    for uri in [
        format!("{server}://plan"),
        format!("{server}://anything"),
        format!("cocode://{server}/{server}://plan"),
        format!("cocode://{server}/scripted://hello"),
    ] {
        requests.push(("resources/read", json!({ "uri": uri })));
        requests.push(("resources/subscribe", json!({ "uri": uri })));
    }
    for uri in [
        format!("{server}://{{x}}"),
        format!("cocode://{server}/{server}://{{x}}"),
    ] {
        requests.push(complete(json!({ "type": "ref/resource", "uri": uri })));
    }
    requests
}

fn tool_call(name: &str) -> Value {
    json!({ "name": "tool_call", "arguments": { "name": name } })
}

fn tool_search(query: &str, server: Option<&str>) -> Value {
    json!({ "name": "tool_search", "arguments": { "query": query, "server": server } })
}

/// Whether a server is asked for something that it has.
fn is_about_something(message: &Message) -> bool {
    matches!(
        message.method().unwrap_or_default(),
        "tools/call"
            | "prompts/get"
            | "resources/read"
            | "resources/subscribe"
            | "completion/complete"
            | "tasks/get"
    )
}

/// Whether an answer is that there is nothing of the kind.
fn is_nothing(answer: &str) -> bool {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let found = &answer["result"]["structuredContent"]["tools"];
    answer["error"].is_object()
        || answer["result"]["isError"] == true
        || found.as_array().is_some_and(Vec::is_empty)
}

#[tokio::test]
async fn what_a_forbidden_server_has_is_answered_like_what_nobody_has() {
    let house = house().await;
    let bob = for_bob(&house, 2).await;
    let Server::Stdio(server) = &house.servers[2] else {
        panic!("a program");
    };
    for era in BOTH {
        for ((method, params), (_, nobodys)) in requests(SECRET).into_iter().zip(requests(NOBODYS))
        {
            let said = params.to_string();
            let forbidden = answer(&house, &bob, era, method, params).await;
            assert!(is_nothing(&forbidden), "{method} {said} {forbidden}");
            let unknown = answer(&house, &bob, era, method, nobodys).await;
            assert_eq!(
                forbidden.replace(SECRET, NOBODYS),
                unknown,
                "{era:?} {method} {said}"
            );
        }
    }
    assert_eq!(server.received().count(is_about_something), 0);
    // There is all of it for those who may use it.
    for (method, params) in requests(SECRET) {
        if !matches!(method, "tasks/get" | "resources/subscribe") {
            let said = params.to_string();
            let found = answer(&house, &house.view, Protocol::Modern, method, params).await;
            assert!(!is_nothing(&found), "{method} {said} {found}");
        }
    }
}

#[tokio::test]
async fn nothing_of_a_forbidden_server_is_in_any_list_or_greeting() {
    let house = house().await;
    let bob = for_bob(&house, 2).await;
    let words = [SECRET, "betray", "confess"];
    let tells = |answer: &str| words.iter().any(|word| answer.contains(word));
    for era in BOTH {
        for method in LISTS.into_iter().skip(1) {
            let whole = answer(&house, &house.view, era, method, json!({})).await;
            assert!(tells(&whole), "{method} {whole}");
            let listed = answer(&house, &bob, era, method, json!({})).await;
            assert!(listed.contains("\"result\"") && !tells(&listed), "{listed}");
        }
        let listed = answer(&house, &bob, era, "tools/list", json!({})).await;
        assert!(!tells(&listed), "{listed}");
        let query = tool_search("echo answers betray", None);
        let found = answer(&house, &bob, era, "tools/call", query).await;
        assert!(found.contains("mcp__x__echo") && !found.contains("mcp__secret"));
    }
    let (_, told) = house.greeted(bob.all(), "2025-11-25").await;
    assert!(told.is_object() && !tells(&told.to_string()), "{told}");
    let mut client = house.stateless_at(bob.all());
    let told = client.modern(1, "server/discover", json!({})).await;
    assert!(!tells(&told.to_string()), "{told}");
}

#[tokio::test]
async fn by_itself_a_forbidden_server_is_nowhere_also_for_those_who_were_there() {
    let house = house().await;
    let bob = for_bob(&house, 3).await;
    let endpoint = bob.server(SECRET).unwrap();
    let mut session = house.raw_at(Arc::clone(&endpoint)).await;
    apply(&house, &bob, 2).await;
    for name in [SECRET, NOBODYS] {
        assert!(bob.server(name).is_none());
    }
    let Server::Stdio(server) = &house.servers[2] else {
        panic!("a program");
    };
    let gone = json!({ "code": -32603, "message": "server `secret` is not served any more" });
    let mut stateless = house.stateless_at(endpoint);
    let others = LISTS.into_iter().map(|method| (method, json!({})));
    for (method, params) in [
        ("tools/call", json!({ "name": "betray" })),
        ("prompts/get", json!({ "name": "confess" })),
        ("resources/read", json!({ "uri": "secret://plan" })),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "confess" },
                "argument": { "name": "a", "value": "" },
            }),
        ),
    ]
    .into_iter()
    .chain(others)
    {
        let refused = ask(&mut session, method, &params.to_string()).await;
        let refused: Value = serde_json::from_str(&refused).unwrap();
        assert_eq!(refused["error"], gone, "{method}");
        let refused = stateless.modern(7, method, params).await;
        assert_eq!(refused["error"], gone, "{method}");
    }
    assert_eq!(server.received().count(is_about_something), 0);
}

/// Denies all tools of one server, and one of another.
struct Denying;

impl Gate for Denying {
    fn decide(&self, server: &ServerName, tool: &str, _annotations: Annotations) -> Verdict {
        match (server.as_str(), tool) {
            (SECRET, _) | ("x", "betray") => Verdict::Deny,
            _ => Verdict::Allow,
        }
    }
}

#[tokio::test]
async fn denied_tools_are_neither_found_nor_told_apart_by_searching_calling_or_completing() {
    let scripts = [
        ("x", with_tools(Script::dual(), &["echo", "betray"])),
        ("y", with_tools(Script::dual(), &["echo"])),
        (SECRET, with_tools(Script::dual(), &["betray"])),
    ];
    let options = ViewOptions {
        gate: Arc::new(Denying),
        ..searching()
    };
    let house = House::with(&scripts, options, |_| {}).await;
    answer(
        &house,
        &house.view,
        Protocol::Legacy,
        "tools/list",
        json!({}),
    )
    .await;
    let complete = |name: &str| {
        let reference = json!({ "type": "ref/prompt", "name": name });
        json!({ "ref": reference, "argument": { "name": "a", "value": "" } })
    };
    let cases = |server: &str, tool: &str| {
        let own = format!("mcp__x__{tool}");
        let other = format!("mcp__{server}__{tool}");
        vec![
            ("tools/call", tool_search(tool, None)),
            ("tools/call", tool_search(tool, Some("x"))),
            ("tools/call", tool_search("echo", Some(server))),
            ("tools/call", tool_call(&own)),
            ("tools/call", tool_call(&other)),
            ("tools/call", json!({ "name": own })),
            ("tools/call", json!({ "name": other })),
            ("completion/complete", complete(&own)),
            ("completion/complete", complete(&other)),
        ]
    };
    for era in BOTH {
        let denied = cases(SECRET, "betray");
        for ((method, params), (_, nobodys)) in denied.into_iter().zip(cases(NOBODYS, "guzzlu")) {
            let said = params.to_string();
            let denied = answer(&house, &house.view, era, method, params).await;
            assert!(is_nothing(&denied), "{method} {said} {denied}");
            let unknown = answer(&house, &house.view, era, method, nobodys).await;
            let denied = denied.replace(SECRET, NOBODYS).replace("betray", "guzzlu");
            assert_eq!(denied, unknown, "{era:?} {method} {said}");
        }
    }
}
