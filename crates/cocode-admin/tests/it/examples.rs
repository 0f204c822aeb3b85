//! Every route once, as it is meant to be used. A route without an example fails here.

use std::collections::BTreeMap;

use cocode_admin::model::{ConsentArgument, ConsentCall};
use cocode_admin::{NewCall, Question, QuestionKind};
use serde_json::{Value, json};

use crate::client::Place;
use crate::document::{Operation, check_answer, document, operations};
use crate::house::raw;

/// How a route is used: the names in its path, a body, the status of the answer, and what the house
/// is then seen to have done.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) body: Option<Value>,
    pub(crate) status: u16,
    pub(crate) deed: Option<&'static str>,
}

fn example(name: &'static str, body: Option<Value>, status: u16) -> Example {
    Example {
        name,
        body,
        status,
        deed: None,
    }
}

fn doing(mut example: Example, deed: &'static str) -> Example {
    example.deed = Some(deed);
    example
}

/// The examples, by the name of the operation.
pub(crate) fn examples() -> BTreeMap<&'static str, Example> {
    let all = [reading(), gateway(), servers(), using(), deciding()];
    all.into_iter().flatten().collect()
}

type Examples = Vec<(&'static str, Example)>;

fn reading() -> Examples {
    let operations = [
        "getSession",
        "getStatus",
        "getBudget",
        "listen",
        "getDocument",
        "getHealth",
        "getReadiness",
        "getMetrics",
        "listServers",
        "getShared",
        "getServer",
        "getServerLogs",
        "listTools",
        "listResources",
        "listPrompts",
        "searchTools",
        "listCalls",
        "getLatencies",
        "listPendingTrust",
        "listElicitations",
        "listTokens",
        "listSessions",
        "getAudit",
    ];
    let read = |operation| (operation, example("files", None, 200));
    let mut all: Examples = operations.map(read).into();
    all.push(("getLogin", example("search", None, 200)));
    all
}

fn gateway() -> Examples {
    let code = json!({ "code": "CODE" });
    let token = json!({ "name": "bob", "expiresInDays": 3 });
    vec![
        ("signIn", example("", Some(code), 200)),
        ("makeCode", example("", None, 201)),
        ("signOut", example("", None, 204)),
        ("stop", doing(example("", None, 202), "root: stop")),
        (
            "addToken",
            doing(example("", Some(token), 201), "root: add token bob"),
        ),
        (
            "revokeToken",
            doing(example("ana", None, 204), "root: revoke ana"),
        ),
    ]
}

fn servers() -> Examples {
    let new = json!({ "name": "new", "command": "x", "env": { "KEY": "hunter2" } });
    let files = |status, deed| doing(example("files", None, status), deed);
    let odd = example("a%2Fb%20%22%C3%A9%22", Some(json!({})), 200);
    vec![
        (
            "addServer",
            doing(example("", Some(new), 201), "root: add new"),
        ),
        ("removeServer", files(204, "root: remove files")),
        ("enableServer", files(200, "root: Enable files")),
        ("disableServer", files(200, "root: Disable files")),
        ("connectServer", files(200, "root: Connect files")),
        ("disconnectServer", files(200, "root: Disconnect files")),
        ("restartServer", doing(odd, "root: Restart a/b \"é\"")),
        ("restartShared", files(200, "root: restart all files")),
    ]
}

fn using() -> Examples {
    let files = |body, deed| doing(example("files", Some(body), 200), deed);
    let search = |body, status, deed| doing(example("search", body, status), deed);
    let completion = json!({ "code": "c", "state": "s" });
    vec![
        (
            "callTool",
            files(
                json!({ "tool": "echo", "arguments": { "n": 1 } }),
                "root: call files echo {\"n\":1}",
            ),
        ),
        (
            "readResource",
            files(json!({ "uri": "file:///a" }), "root: read files file:///a"),
        ),
        (
            "getPrompt",
            files(json!({ "name": "review" }), "root: prompt files review"),
        ),
        ("startLogin", search(None, 200, "root: login search None")),
        (
            "completeLogin",
            search(Some(completion), 200, "root: complete search by code"),
        ),
        (
            "dropCredentials",
            search(None, 204, "root: drop credentials search"),
        ),
    ]
}

fn deciding() -> Examples {
    let shared = |deed| doing(example("shared", Some(json!({ "hash": "abc" })), 200), deed);
    let no = json!({ "action": "decline" });
    vec![
        ("approve", shared("root: Approve shared")),
        ("reject", shared("root: Reject shared")),
        ("answerElicitation", example("ID", Some(no), 200)),
    ]
}

/// A place in which every example works; the path and the body of this one there.
pub(crate) async fn stage(operation: &Operation, example: &Example) -> (Place, String, String) {
    let place = Place::new();
    place.desk.calls.begin(NewCall {
        principal: "ana".to_owned(),
        server: Some("files".to_owned()),
        method: "tools/call".to_owned(),
        name: "echo".to_owned(),
    });
    let mut name = example.name.to_owned();
    let mut body = example
        .body
        .as_ref()
        .map_or(String::new(), Value::to_string);
    match operation.id.as_str() {
        "signIn" => {
            let code = place.admin.new_code().unwrap();
            body = body.replace("CODE", code.code.expose());
        }
        "answerElicitation" => {
            let question = Question {
                server: "files".to_owned(),
                principal: Some("ci".to_owned()),
                tool: Some("write".to_owned()),
                message: "May the tool `write` of server `files` be called?".to_owned(),
                consent: Some(ConsentCall {
                    client: Some("nightly".to_owned()),
                    arguments: vec![ConsentArgument {
                        name: "path".to_owned(),
                        value: r#""a.txt""#.to_owned(),
                    }],
                    reason: Some("asked because of your rule `mcp__files__write`".to_owned()),
                }),
                kind: QuestionKind::Form(raw("{}")),
            };
            let wait = std::time::Duration::from_mins(1);
            let asked = place.desk.inbox.ask(question, wait).unwrap();
            name = place.desk.inbox.pending().remove(0).id;
            // Somebody waits for the answer while the test goes on.
            let mut waiting = tokio::task::JoinSet::new();
            waiting.spawn(asked.reply());
            waiting.detach_all();
        }
        "getLogin" | "completeLogin" => {
            let login = place.post("/api/v1/servers/search/login", "{}");
            assert_eq!(login.admin().send().await.status, 200);
            place.house.deeds();
        }
        _ => {}
    }
    let path = operation
        .path
        .replace("{name}", &name)
        .replace("{id}", &name);
    (place, path, body)
}

#[tokio::test(start_paused = true)]
async fn every_route_does_what_it_is_for_and_answers_as_the_document_says() {
    let document = document(&Place::new()).await;
    let mut examples = examples();
    for operation in operations(&document) {
        let example = examples.remove(operation.id.as_str());
        let example = example.unwrap_or_else(|| panic!("{} has no example", operation.id));
        let (place, path, body) = stage(&operation, &example).await;
        let mut asking = place.ask(&operation.method, &path).admin();
        if !body.is_empty() {
            asking = asking.json(&body);
        }
        if operation.id == "listen" {
            // It would not end; see `events`.
            let (status, ..) = asking.open().await;
            assert_eq!(status, 200);
            continue;
        }
        let answer = asking.send().await;
        assert_eq!(answer.status, example.status, "{} {answer:?}", operation.id);
        assert_eq!(
            place.house.deeds(),
            Vec::from_iter(example.deed),
            "{}",
            operation.id
        );
        match answer.kind() {
            "application/json" => {
                check_answer(&document, &operation, answer.status, &answer.json());
            }
            "" => assert_eq!(answer.text, "", "{}", operation.id),
            kind => assert!(kind.starts_with("text/plain"), "{} {kind}", operation.id),
        }
        assert_eq!(
            answer.header("cache-control"),
            "no-store",
            "{}",
            operation.id
        );
    }
    assert!(
        examples.is_empty(),
        "there are examples of routes that do not exist"
    );
}

#[tokio::test]
async fn what_servers_said_arrives_byte_for_byte() {
    let place = Place::new();
    let body = r#"{"tool":"echo","arguments":{"big":12345678901234567890123}}"#;
    let answer = place
        .post("/api/v1/servers/files/call", body)
        .admin()
        .send()
        .await;
    assert!(
        answer.text.contains("\"big\": 12345678901234567890123"),
        "{answer:?}"
    );
    let deeds = place.house.deeds();
    assert_eq!(
        deeds,
        ["root: call files echo {\"big\":12345678901234567890123}"]
    );
}

#[tokio::test]
async fn lists_are_as_long_as_was_asked_for() {
    let place = Place::new();
    let get = |path: &str| place.get(path).admin().send();
    let length =
        |answer: &crate::client::Answer, key: &str| answer.json()[key].as_array().unwrap().len();
    let answer = get("/api/v1/servers/files/logs?lines=2").await;
    assert_eq!(length(&answer, "lines"), 2);
    let answer = get("/api/v1/tools?query=read+%C3%A9&limit=3").await;
    assert_eq!(length(&answer, "tools"), 3);
    assert_eq!(answer.json()["tools"][0]["name"], "read é 0");
    assert_eq!(length(&get("/api/v1/audit?limit=1").await, "entries"), 1);
    assert_eq!(length(&get("/api/v1/audit").await, "entries"), 100);
    let status = get("/api/v1/status").await.json();
    assert_eq!(status["servers"]["needsAuth"], 1);
    assert_eq!(status["servers"]["ready"], 1);
    assert_eq!(status["sessions"], 1);
}

#[tokio::test]
async fn what_is_wrong_in_the_files_can_be_asked_for_at_any_time() {
    let place = Place::new();
    let status = async || place.get("/api/v1/status").admin().send().await.json();
    assert_eq!(status().await["problems"], json!([]));
    let problem = "/srv/mcp.toml:3: this is no TOML".to_owned();
    place.desk.bulletin.set_problems(vec![problem.clone()]);
    for _ in 0..2 {
        assert_eq!(status().await["problems"], json!([problem]));
    }
    place.desk.bulletin.set_problems(Vec::new());
    assert_eq!(status().await["problems"], json!([]));
}

#[tokio::test]
async fn what_was_rejected_is_listed_apart_and_can_be_approved_after_all() {
    let place = Place::new();
    let decide = |verdict: &str| {
        let path = format!("/api/v1/trust/shared/{verdict}");
        place.post(&path, r#"{"hash":"abc"}"#).admin().send()
    };
    let rejected = decide("reject").await.json();
    assert_eq!(rejected["pending"], json!([]));
    assert_eq!(rejected["rejected"][0]["name"], "shared");
    assert_eq!(rejected["rejected"][0]["isRejected"], true);
    let approved = decide("approve").await.json();
    assert_eq!(approved, json!({ "pending": [], "rejected": [] }));
}
