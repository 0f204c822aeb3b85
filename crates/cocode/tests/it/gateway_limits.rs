//! Limits and the audit log of a running gateway, as its settings say.

use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::gateway_access::token;
use crate::home::Home;
use crate::http::{ByHand, ask};
use crate::status::entry;

fn call(client: &ByHand, tool: &str) -> Value {
    client.call(tool, &json!({}))
}

/// What somebody is told who asks for too much.
#[track_caller]
fn refusal(answer: &Value) -> String {
    assert_eq!(
        answer["error"]["data"]["reason"], "limit-reached",
        "{answer}"
    );
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_server_has_its_own_rate() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[gateway.limits.servers.workspace]\ncalls_per_minute = 1\n",
    );
    let mut gateway = Running::start(&home, &[]);
    gateway.until_state("workspace", "ready");
    let client = ByHand::new(gateway.url(), None).initialized();
    assert!(call(&client, "mcp__workspace__list")["result"].is_object());
    let refused = refusal(&call(&client, "mcp__workspace__list"));
    assert!(refused.contains("1 call per minute"), "{refused}");
}

#[test]
fn what_is_under_way_is_bounded_for_a_principal_and_for_a_server() {
    for (settings, who) in [
        ("[gateway.principals.ana]\nmax_concurrent = 1\n", "ana"),
        ("[gateway.limits.servers.one]\nmax_concurrent = 1\n", "one"),
    ] {
        let home = Home::new();
        let gate = Gate::new();
        let script = Script::new().on("tools/call").hold(&gate);
        let one = script.text_result("late, but there").stdio();
        home.user_file("mcp.toml", &entry("one", &one));
        home.user_file("config.toml", settings);
        let ana = token(&home, "ana");
        let mut gateway = Running::start(&home, &[]);
        gateway.until_ready(&["one"]);
        let client = ByHand::new(gateway.url(), Some(&ana)).initialized();
        let other = ByHand::new(gateway.url(), Some(&ana)).initialized();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| call(&client, "mcp__one__echo"));
            one.received()
                .wait_for_blocking(|message| message.is("tools/call"));
            let refused = call(&other, "mcp__one__echo");
            gate.open();
            let refused = refusal(&refused);
            assert!(refused.contains(who), "{refused}");
            assert!(first.join().unwrap()["result"].is_object());
        });
        assert!(
            call(&client, "mcp__one__echo")["result"].is_object(),
            "{who}"
        );
    }
}

#[test]
fn where_nothing_can_be_written_down_calls_are_refused_or_made_as_the_settings_say() {
    for (on_failure, is_made) in [("refuse", false), ("continue", true)] {
        let home = Home::new();
        home.project_file("hello.txt", "good morning\n");
        // A file stands where a directory would have to be.
        home.user_file("taken", "");
        home.user_file(
            "config.toml",
            &format!(
                "[gateway.audit]\ndirectory = \"taken/audit\"\non_failure = \"{on_failure}\"\n"
            ),
        );
        let ana = token(&home, "ana");
        let made = home.run(["gateway", "token", "add", "root", "--admin"]);
        let admin = made.with_code(0).stdout.trim().to_owned();
        let mut gateway = Running::start(&home, &[]);
        gateway.until_state("workspace", "ready");
        let client = ByHand::new(gateway.url(), Some(&ana)).initialized();
        // Who signs in at the dashboard is told nothing of it, and can do so later with the same code.
        let office = gateway.first["dashboard"].clone();
        let sign_in = format!("{}api/v1/sign-in", office["url"].as_str().unwrap());
        let body = json!({ "code": office["code"] }).to_string();
        let json = [("Content-Type", "application/json")];
        for _ in 0..2 {
            let answer = ask(&sign_in, "POST", &json, &body);
            assert!(!answer.body.contains("taken"), "{answer:?}");
            if !is_made {
                answer.with_status(503);
            }
        }
        // Those who look after it see what is wrong, in any case.
        let bearer = format!("Bearer {admin}");
        let headers = [("Authorization", bearer.as_str())];
        let see = |path: &str| {
            let url = format!("{}{path}", office["url"].as_str().unwrap());
            ask(&url, "GET", &headers, "").with_status(200).body
        };
        assert!(see("api/v1/status").contains("the audit log cannot be written"));
        assert!(see("metrics").contains("cocode_troubles 1"));
        // From the first one on.
        for _ in 0..3 {
            let answer = call(&client, "mcp__workspace__list");
            assert_eq!(answer["result"].is_object(), is_made, "{answer}");
            assert!(!answer.to_string().contains("taken"), "{answer}");
        }
    }
}

/// Lists pages of tools without end, each of 4 MiB.
const FLOOD: &str = r#"import json, sys
filler, page = "x" * (4 << 20), 0
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {}
    if request["method"] == "initialize":
        version = request["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}},
                  "serverInfo": {"name": "flood", "version": "1"}}
    elif request["method"] == "tools/list":
        page += 1
        tool = {"name": f"t{page}", "description": filler, "inputSchema": {"type": "object"}}
        result = {"tools": [tool], "nextCursor": str(page)}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

#[test]
fn server_that_lists_without_end_is_cut_off_and_named() {
    let home = Home::new();
    let program = home.project_file("flood.py", FLOOD);
    let entry = format!(
        "[mcp_servers.flood]\ncommand = 'python3'\nargs = ['{}']\n",
        program.display()
    );
    home.user_file("mcp.toml", &entry);
    let refused = home.mcp(&["tools", "flood", "--protocol", "legacy"]);
    let refused = refused.with_code(3);
    refused.complains(&["flood", "tools/list", "more than 64 MiB"]);
}
