//! The management API of a real gateway with real servers, judged by a program that makes requests from its
//! own description: no answer is a failure of the gateway, and none is one that the description does not have.

use cocode_testkit::{ApiJudge, Script};
use serde_json::Value;

use crate::gateway::Running;
use crate::gateway_access::token;
use crate::gateway_peers::{NODE, installed};
use crate::home::Home;
use crate::http::ask;
use crate::status::entry;

/// The reference server.
const EVERYTHING: &str = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
/// Operations that are left out, and the document itself, which was read already.
const NOT_TESTED: usize = 3;
/// How many servers and tokens there are to be taken away, as `schemathesis.toml` names them.
const SPARE: usize = 10;
/// Operations of which the judge may say that it has no data for them.
const WITHOUT_DATA: [&str; 6] = [
    // Nothing waits in the inbox; cocode-admin has this judged with a question that does.
    "POST /api/v1/elicitations/{id}",
    // There is no server that wants a login.
    "GET /api/v1/servers/{name}/login",
    "POST /api/v1/servers/{name}/login/complete",
    // One of its phases makes up names, whatever it is given; that these were done is seen in the audit log.
    "POST /api/v1/servers/{name}/call",
    "DELETE /api/v1/servers/{name}",
    "DELETE /api/v1/tokens/{name}",
];
/// What has to have been done at least once, and not only refused.
const DONE: [&str; 14] = [
    "gateway/servers/add",
    "gateway/servers/remove",
    "gateway/servers/enable",
    "gateway/servers/disable",
    "gateway/servers/connect",
    "gateway/servers/disconnect",
    "gateway/servers/restart",
    "gateway/tokens/add",
    "gateway/tokens/revoke",
    "gateway/trust/approve",
    "gateway/sign-in/code",
    "tools/call",
    "resources/read",
    "prompts/get",
];

#[test]
fn no_request_that_the_document_suggests_breaks_a_gateway() {
    let home = Home::new();
    let made = home.run(["gateway", "token", "add", "root", "--admin"]);
    let root = made.with_code(0).stdout.trim().to_owned();
    let spares: Vec<String> = (0..SPARE).map(|at| format!("spare-{at}")).collect();
    for spare in &spares {
        token(&home, spare);
    }
    let program = [installed(NODE), installed(EVERYTHING)];
    let program = program.map(|path| path.to_str().unwrap().to_owned());
    let words = ["mcp", "add", "everything", "--"].map(str::to_owned);
    home.run(words.iter().chain(&program)).with_code(0);
    // Whether these come up does not matter.
    for name in spares.iter().map(String::as_str).chain(["switched"]) {
        home.run(["mcp", "add", name, "--", "/bin/false"])
            .with_code(0);
    }
    let shared = Script::new().stdio();
    home.project_file(".mcp.toml", &entry("shared", &shared));
    let nothing = home.project().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let mut command = home.command(["gateway", "--listen", ":0", "--json", "--root", "."]);
    // Whatever is made up as the command or the address of a server leads nowhere.
    command.env("PATH", &nothing);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1");
    }
    let mut gateway = Running::of(&mut command);
    gateway.until_ready(&["workspace", "everything"]);
    let heard = gateway.overheard();
    let address = gateway.url().strip_suffix("/mcp").unwrap().to_owned();
    let document = format!("{address}/api/v1/openapi.json");
    let bearer = format!("Bearer {root}");
    let get = |url: &str| ask(url, "GET", &[("Authorization", &bearer)], "").with_status(200);
    let pending = get(&format!("{address}/api/v1/trust")).json();
    let hash = pending["pending"][0]["hash"].as_str().unwrap();
    let judge = ApiJudge {
        directory: home.home().join("judge"),
        document: document.clone(),
        token: root.clone(),
        settings: include_str!("schemathesis.toml").replace("HASH", hash),
        examples: 5,
        request_seconds: 30,
    };
    let said = judge.content();
    let described = get(&document).json();
    let count = operations(&described) - NOT_TESTED;
    assert!(said.contains(&format!("Tested: {count}")), "{said}");
    let unserved = without_data(&said);
    let unexpected: Vec<_> = unserved
        .iter()
        .filter(|one| !WITHOUT_DATA.contains(one))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:?} only ever got 404");
    let audit = get(&format!("{address}/api/v1/audit?limit=1000")).json();
    let entries = audit["entries"].as_array().unwrap();
    for method in DONE {
        let is_done = |entry: &Value| entry["method"] == method && entry["outcome"] == "ok";
        assert!(entries.iter().any(is_done), "{method} was always refused");
    }
    // It is what it was: it answers, and what it has written down holds together.
    get(&format!("{address}/healthz"));
    assert_eq!(gateway.end("-TERM").0, Some(0));
    for line in heard.join().unwrap().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["event"].is_string(), "{event}");
    }
    home.run(["audit", "verify"]).with_code(0);
}

/// The operations of which the judge says that they only ever answered 404.
fn without_data(said: &str) -> Vec<&str> {
    let lines = said.lines();
    let lines = lines.skip_while(|line| !line.starts_with("Missing test data:"));
    let lines = lines
        .skip(1)
        .take_while(|line| !line.starts_with("Schema validation") && !line.starts_with("==="));
    lines
        .filter_map(|line| line.trim().strip_prefix("- "))
        .collect()
}

fn operations(document: &Value) -> usize {
    let paths = document["paths"].as_object().unwrap().values();
    let methods = ["get", "post", "put", "patch", "delete"];
    let has = |path: &Value| {
        methods
            .iter()
            .filter(|method| path.get(**method).is_some())
            .count()
    };
    paths.map(has).sum()
}
