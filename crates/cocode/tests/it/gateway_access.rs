//! Who may use a gateway: tokens, what each principal sees, and that nothing of one reaches another.

use serde_json::{Value, json};

use crate::gateway::Running;
use crate::harness::Finished;
use crate::home::Home;
use crate::http::{ByHand, ask};

/// A token for somebody.
#[track_caller]
pub(crate) fn token(home: &Home, name: &str) -> String {
    let made = home.run(["gateway", "token", "add", name]).with_code(0);
    made.stdout.trim().to_owned()
}

/// A gateway with the built-in tools, which are there.
fn gateway(home: &Home) -> Running {
    let mut gateway = Running::start(home, &[]);
    gateway.until_state("workspace", "ready");
    gateway
}

#[test]
fn once_there_is_a_token_everybody_has_to_show_one() {
    let home = Home::new();
    let ana = token(&home, "ana");
    let gateway = gateway(&home);
    let url = gateway.url();
    let nobody = ByHand::new(url, None);
    let refused = nobody.request("initialize", &json!({})).with_status(401);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer"), "{challenge}");
    assert!(
        refused.body.contains("Authorization: Bearer"),
        "{refused:?}"
    );
    for method in ["GET", "DELETE"] {
        nobody.send(method, "").with_status(401);
    }
    for path in ["/sse", "/ws", "/messages?sessionId=x", "/mcp/workspace"] {
        let url = format!("{}{path}", url.strip_suffix("/mcp").unwrap());
        ask(&url, "GET", &[("Accept", "text/event-stream")], "").with_status(401);
    }
    let mut wrong = ana.clone();
    wrong.pop();
    wrong.push('x');
    for bad in ["cocode_nonsense", &wrong, "eyJhbGciOiJub25lIn0.e30."] {
        let refused = ByHand::new(url, Some(bad)).request("initialize", &json!({}));
        let refused = refused.with_status(401);
        let challenge = refused.header("www-authenticate").unwrap();
        assert!(challenge.contains("invalid_token"), "{challenge}");
        assert!(!format!("{refused:?}").contains(bad), "it was echoed");
    }
    let mut by_address = ByHand::new(&format!("{url}?access_token={ana}"), None);
    by_address
        .request("initialize", &json!({}))
        .with_status(400);
    by_address.token = Some(ana.clone());
    by_address
        .request("initialize", &json!({}))
        .with_status(400);
    let twice = [
        ("Authorization", &*format!("Bearer {ana}")),
        ("Authorization", "Bearer x"),
    ];
    ask(url, "GET", &twice, "").with_status(400);
    let ana = ByHand::new(url, Some(&ana)).initialized();
    assert!(ana.tools().contains(&"mcp__workspace__grep".to_owned()));
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

#[test]
fn a_session_is_its_principals_alone() {
    let home = Home::new();
    let (ana, bob) = (token(&home, "ana"), token(&home, "bob"));
    let gateway = gateway(&home);
    let ana = ByHand::new(gateway.url(), Some(&ana)).initialized();
    let stolen = ByHand {
        token: Some(bob),
        ..ana.clone()
    };
    let listed = stolen.request("tools/list", &json!({})).with_status(404);
    let unknown = ByHand {
        session: Some("nobodys".to_owned()),
        ..stolen.clone()
    };
    let unknown = unknown.request("tools/list", &json!({})).with_status(404);
    assert_eq!(listed.body, unknown.body, "they are told apart");
    stolen.send("GET", "").with_status(404);
    stolen.send("DELETE", "").with_status(404);
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    stolen.send("POST", response).with_status(404);
    // It has hurt nobody.
    assert!(!ana.tools().is_empty());
}

#[test]
fn principals_see_and_use_what_is_theirs_and_a_forbidden_tool_reads_as_unknown() {
    let home = Home::new();
    home.project_file("hello.txt", "good morning\n");
    home.user_file(
        "config.toml",
        "[gateway.principals.bob]\ndeny = [\"mcp__workspace__grep\"]\n\
         [gateway.principals.eve]\nservers = []\n",
    );
    let [ana, bob, eve] = ["ana", "bob", "eve"].map(|name| token(&home, name));
    let gateway = gateway(&home);
    let of = |token: &String| ByHand::new(gateway.url(), Some(token)).initialized();
    let (ana, bob, eve) = (of(&ana), of(&bob), of(&eve));
    let grep = "mcp__workspace__grep".to_owned();
    assert!(ana.tools().contains(&grep));
    assert!(!bob.tools().contains(&grep) && bob.tools().len() == 3);
    assert_eq!(eve.tools(), [] as [String; 0]);
    let arguments = json!({ "pattern": "morning" });
    let found = ana.call(&grep, &arguments);
    assert!(found.to_string().contains("hello.txt"), "{found}");
    for (whose, client) in [("bob", &bob), ("eve", &eve)] {
        let refused = client.call(&grep, &arguments);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("Unknown tool: mcp__workspace__grep"),
            "{whose}: {refused}"
        );
        let absent = client.call("mcp__workspace__grab", &arguments);
        assert_eq!(refused["error"]["code"], absent["error"]["code"], "{whose}");
    }
    let alone = format!("{}/workspace", gateway.url());
    let bob_alone = ByHand {
        url: alone.clone(),
        session: None,
        ..bob
    };
    assert!(!bob_alone.initialized().tools().contains(&"grep".to_owned()));
    // A server that is not theirs is not there.
    let eve_alone = ByHand {
        url: alone,
        session: None,
        ..eve
    };
    let gone = eve_alone.request("initialize", &json!({})).with_status(404);
    assert!(!gone.body.contains("workspace"), "{gone:?}");
}

#[test]
fn a_revoked_token_ends_what_was_opened_with_it() {
    let home = Home::new();
    let (ana, bob) = (token(&home, "ana"), token(&home, "bob"));
    let gateway = gateway(&home);
    let ana = ByHand::new(gateway.url(), Some(&ana)).initialized();
    let bob = ByHand::new(gateway.url(), Some(&bob)).initialized();
    let stream = ana.listen();
    assert_eq!(stream.answer.status, 200);
    home.run(["gateway", "token", "revoke", "ana"]).with_code(0);
    // It ends, whatever the client does.
    stream.rest();
    ana.request("tools/list", &json!({})).with_status(401);
    assert!(!bob.tools().is_empty());
    // The last token opens no door.
    home.run(["gateway", "token", "revoke", "bob"]).with_code(0);
    let closed = || bob.request("tools/list", &json!({})).status;
    while closed() == 200 {}
    assert_eq!(closed(), 401);
    ByHand::new(gateway.url(), None)
        .request("initialize", &json!({}))
        .with_status(401);
}

#[test]
fn rules_of_principals_count_while_it_runs() {
    let home = Home::new();
    let ana = token(&home, "ana");
    let gateway = gateway(&home);
    let ana = ByHand::new(gateway.url(), Some(&ana)).initialized();
    assert_eq!(ana.tools().len(), 4);
    home.user_file(
        "config.toml",
        "[gateway.principals.\"*\"]\nallow = [\"mcp__workspace__read\"]\n",
    );
    while ana.tools().len() == 4 {}
    assert_eq!(ana.tools(), ["mcp__workspace__read"]);
    home.user_file("config.toml", "[gateway.principals.ana]\nservers = []\n");
    while !ana.tools().is_empty() {}
}

#[test]
fn limits_of_a_principal_are_told_with_when_to_come_again() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[gateway.principals.bob]\ncalls_per_minute = 2\n",
    );
    let (ana, bob) = (token(&home, "ana"), token(&home, "bob"));
    let gateway = gateway(&home);
    let of = |token: &String| ByHand::new(gateway.url(), Some(token)).initialized();
    let (ana, bob) = (of(&ana), of(&bob));
    let call = |client: &ByHand| client.call("mcp__workspace__list", &json!({}));
    for _ in 0..2 {
        assert!(call(&bob)["result"].is_object());
    }
    let refused = call(&bob);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("`bob` may make 2 calls per minute: try again in"),
        "{refused}"
    );
    let seconds = &refused["error"]["data"]["retryAfterSeconds"];
    assert!(
        seconds.as_u64().is_some_and(|seconds| seconds <= 30),
        "{refused}"
    );
    for _ in 0..3 {
        assert!(call(&ana)["result"].is_object());
    }
}

#[test]
fn every_call_is_written_down_and_nobody_can_forge_a_line() {
    let home = Home::new();
    home.project_file("hello.txt", "good morning\n");
    home.user_file(
        "config.toml",
        "[gateway.principals.bob]\ndeny = [\"mcp__workspace__grep\"]\n",
    );
    let (ana, bob) = (token(&home, "ana"), token(&home, "bob"));
    let gateway = gateway(&home);
    let of = |token: &String| ByHand::new(gateway.url(), Some(token)).initialized();
    let (ana, bob) = (of(&ana), of(&bob));
    ana.call("mcp__workspace__read", &json!({ "path": "hello.txt" }));
    ana.call("mcp__workspace__read", &json!({ "path": "absent.txt" }));
    bob.call(
        "mcp__workspace__grep",
        &json!({ "pattern": "secret-words" }),
    );
    let forged = "x\n{\"seq\":99,\"principal\":\"ana\"}\u{2028}\u{1b}[2J";
    let single = ByHand {
        url: format!("{}/workspace", gateway.url()),
        session: None,
        ..bob
    };
    single.initialized().call(forged, &json!({}));
    assert_eq!(gateway.end("-TERM").0, Some(0));
    let shown = home.run(["audit", "show", "--json"]).with_code(0).stdout;
    let told: Vec<_> = shown
        .lines()
        .map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            (text("principal"), text("name"), text("outcome"))
        })
        .collect();
    let has = |who: &str, what: &str, outcome: &str| {
        let wanted = (who.to_owned(), what.to_owned(), outcome.to_owned());
        assert!(told.contains(&wanted), "{wanted:?} in {told:#?}");
    };
    has("ana", "read", "ok");
    has("ana", "read", "tool-error");
    has("bob", "grep", "denied");
    assert_eq!(
        told.iter().filter(|(who, ..)| who == "ana").count(),
        2,
        "{told:#?}"
    );
    let directory = home.home().join("state/audit");
    let files = std::fs::read_dir(&directory).unwrap();
    let whole: String = files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert!(
        !whole.contains("secret-words"),
        "arguments are not asked for"
    );
    assert!(
        !whole.contains('\u{1b}') && !whole.contains('\u{2028}'),
        "{whole:?}"
    );
    home.run(["audit", "verify"]).with_code(0);
    // Whoever changes a word is found out.
    for file in std::fs::read_dir(&directory).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("tool-error", "ok")).unwrap();
    }
    let broken = home.run(["audit", "verify"]);
    assert_ne!(broken.code, Some(0), "{broken:?}");
}

#[test]
fn calls_are_written_down_from_the_first_token_on() {
    let home = Home::new();
    home.project_file("hello.txt", "good morning\n");
    let gateway = gateway(&home);
    let read = |token: Option<&str>| {
        let client = ByHand::new(gateway.url(), token).initialized();
        client.call("mcp__workspace__read", &json!({ "path": "hello.txt" }))
    };
    assert!(read(None)["result"].is_object());
    let ana = token(&home, "ana");
    let nobody = ByHand::new(gateway.url(), None);
    while nobody.request("initialize", &json!({})).status != 401 {}
    assert!(read(Some(&ana))["result"].is_object());
    assert_eq!(gateway.end("-TERM").0, Some(0));
    let shown = home.run(["audit", "show", "--json"]).with_code(0).stdout;
    let mut entries: Vec<Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    entries.retain(|entry| entry["method"] != "audit");
    let [entry] = entries.as_slice() else {
        panic!("{shown}");
    };
    assert_eq!(
        [&entry["principal"], &entry["name"], &entry["outcome"]],
        ["ana", "read", "ok"]
    );
}

#[test]
fn nobody_is_served_the_directory_that_the_gateway_keeps_its_tokens_in() {
    let home = Home::new();
    let start = || {
        let mut command = home.command(["gateway", "--listen", ":0", "--json"]);
        let mut gateway = Running::of(command.current_dir(home.home()));
        gateway.until_state("workspace", "ready");
        gateway
    };
    // Not even those who come with the first token, while it runs.
    let gateway = start();
    let owner = ByHand::new(gateway.url(), None).initialized();
    assert_eq!(owner.tools().len(), 4);
    let ana = token(&home, "ana");
    while owner.request("tools/list", &json!({})).status != 401 {}
    let client = ByHand::new(gateway.url(), Some(&ana)).initialized();
    assert_eq!(client.tools(), [""; 0]);
    assert_eq!(gateway.end("-TERM").0, Some(0));
    let gateway = start();
    let client = ByHand::new(gateway.url(), Some(&ana)).initialized();
    assert_eq!(client.tools(), [""; 0]);
    let (code, said) = gateway.end("-TERM");
    assert_eq!(code, Some(0));
    assert!(said.contains("are not served to principals"), "{said}");
}

#[test]
fn clients_without_a_token_of_the_gateway_are_told_how_to_get_one() {
    let home = Home::new();
    home.run(["gateway", "token", "add", "ana"]).with_code(0);
    let gateway = Running::start(&home, &[]);
    let client = Home::new();
    let token = "`cocode gateway token add NAME`";
    let said = "Bearer realm=\"cocode\"";
    let bare = client
        .run(["mcp", "tools", "--url", gateway.url()])
        .with_code(4);
    bare.complains(&[token, said, "auth-required"]);
    client
        .mcp(&["add", "gate", "--url", gateway.url()])
        .with_code(0);
    client
        .mcp(&["login", "gate", "--no-browser"])
        .with_code(4)
        .complains(&[token]);
    let fixed = [
        "add",
        "fixed",
        "--url",
        gateway.url(),
        "--bearer-token-env-var",
        "GATE",
    ];
    client.mcp(&fixed).with_code(0);
    let mut wrong = client.command(["mcp", "tools", "fixed"]);
    let wrong = Finished::of(wrong.env("GATE", "cocode_wrong").output().unwrap());
    wrong
        .with_code(4)
        .complains(&[token, said, "`bearer_token_env_var`"]);
}
