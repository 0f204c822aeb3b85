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

#[test]
fn no_request_that_the_document_suggests_breaks_a_gateway() {
    let home = Home::new();
    let made = home.run(["gateway", "token", "add", "root", "--admin"]);
    let root = made.with_code(0).stdout.trim().to_owned();
    token(&home, "spare");
    let program = [installed(NODE), installed(EVERYTHING)];
    let program = program.map(|path| path.to_str().unwrap().to_owned());
    for name in ["everything", "spare"] {
        let words = ["mcp", "add", name, "--"].map(str::to_owned);
        home.run(words.iter().chain(&program)).with_code(0);
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
    let judge = ApiJudge {
        directory: home.home().join("judge"),
        document: document.clone(),
        token: root.clone(),
        settings: include_str!("schemathesis.toml").to_owned(),
        examples: 5,
        request_seconds: 30,
    };
    let said = judge.content();
    let described = get(&document).json();
    let count = operations(&described) - NOT_TESTED;
    assert!(said.contains(&format!("Tested: {count}")), "{said}");
    // It is what it was: it answers, and what it has written down holds together.
    get(&format!("{address}/healthz"));
    assert_eq!(gateway.end("-TERM").0, Some(0));
    for line in heard.join().unwrap().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["event"].is_string(), "{event}");
    }
    home.run(["audit", "verify"]).with_code(0);
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
