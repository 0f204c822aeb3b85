//! The agent as a server of the gateway.

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, Script, ScriptedModel};
use serde_json::Value;

use crate::gateway::Running;
use crate::gateway_access::token;
use crate::harness::{Finished, mcp_by};
use crate::home::Home;
use crate::http::ByHand;
use crate::status::entry;

/// A gateway with an agent that has this model.
fn with_agent(home: &Home, model: &ScriptedModel, words: &[&str]) -> Running {
    let mut command = home.command(["gateway", "--listen", ":0", "--json", "--agent"]);
    command
        .args(words)
        .env("ANTHROPIC_BASE_URL", model.base_url())
        .env("ANTHROPIC_API_KEY", "key");
    Running::of(&mut command)
}

fn call(url: &str, token: &str, words: &[&str]) -> Finished {
    let words: Vec<&str> = ["call", "--json"].iter().chain(words).copied().collect();
    mcp_by(token, &words, url)
}

fn json(answer: &Finished) -> Value {
    serde_json::from_str(&answer.stdout).unwrap()
}

fn session_id(answer: &Finished) -> String {
    let result = json(answer);
    let id = result["structuredContent"]["session_id"].as_str();
    id.unwrap().to_owned()
}

#[test]
fn it_works_with_the_servers_of_the_gateway_and_goes_on_after_a_restart() {
    let home = Home::new();
    let one = Script::new().stdio();
    home.user_file("mcp.toml", &entry("one", &one));
    home.user_file(
        "config.toml",
        "[permissions]\nallow = [\"mcp__one__echo\"]\n",
    );
    let echo = serde_json::json!({"text": "hello"});
    let model = ModelScript::new()
        .turn(ModelTurn::new().call("c1", "mcp__one__echo", &echo))
        .turn(ModelTurn::new().text("It said hello."))
        .turn(ModelTurn::new().text("Still here."))
        .start(ModelFormat::Anthropic);
    let mut gateway = with_agent(&home, &model, &[]);
    gateway.until_ready(&["one", "cocode"]);
    let token = gateway.token();
    let words = ["cocode", "prompt=say hello"];
    let answer = call(&gateway.server("cocode"), &token, &words).with_code(0);
    let id = session_id(&answer);
    assert_eq!(
        json(&answer)["structuredContent"]["response"],
        "It said hello."
    );
    let body = model.bodies()[1].to_string();
    assert!(body.contains("hello"), "{body}");
    let ended = gateway.end("-TERM");
    assert_eq!(ended.0, Some(0), "{}", ended.1);

    let mut gateway = with_agent(&home, &model, &[]);
    gateway.until_ready(&["cocode"]);
    let id = format!("session_id={id}");
    let words = ["mcp__cocode__cocode-reply", &id, "message=and now?"];
    assert!(gateway.first["token"].is_null(), "it is shown once");
    let answer = call(&gateway.url, &token, &words).with_code(0);
    assert_eq!(
        json(&answer)["structuredContent"]["response"],
        "Still here."
    );
    let ended = gateway.end("-TERM");
    assert_eq!(ended.0, Some(0), "{}", ended.1);
    model.assert_no_violations();
}

#[test]
fn callers_get_no_more_than_whoever_runs_it_allows() {
    let home = Home::new();
    let model = ModelScript::new().start(ModelFormat::Anthropic);
    let mut gateway = with_agent(&home, &model, &["--max-sandbox", "read-only"]);
    gateway.until_ready(&["cocode"]);
    let url = gateway.server("cocode");
    let refused = [
        (
            ["cocode", "prompt=x", "sandbox=workspace-write"],
            "read-only",
        ),
        (["cocode", "prompt=x", "cwd=/"], "not below"),
        (
            ["cocode", "prompt=x", "config:={\"modle\":\"m\"}"],
            "did you mean `model`",
        ),
    ];
    for (words, part) in refused {
        let answer = call(&url, &gateway.token(), &words).with_code(1);
        let text = json(&answer)["content"][0]["text"].to_string();
        assert!(text.contains(part), "{words:?}: {text}");
    }
    assert!(model.bodies().is_empty());
    let ended = gateway.end("-TERM");
    assert_eq!(ended.0, Some(0), "{}", ended.1);
}

#[test]
fn a_name_that_is_taken_is_said() {
    let home = Home::new();
    let one = Script::new().stdio();
    home.user_file("mcp.toml", &entry("cocode", &one));
    let refused = home.run(["gateway", "--agent", "--json"]).with_code(2);
    assert_eq!(refused.error()["code"], "invalid-usage");
}

#[test]
fn the_agent_of_a_principal_knows_of_no_server_that_is_not_theirs() {
    let home = Home::new();
    // Lists that a server calls public are remembered for everybody who may see that server.
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    home.user_file("mcp.toml", &(entry("garden", &one) + &entry("vault", &two)));
    home.user_file(
        "config.toml",
        "[gateway.principals.bob]\nservers = [\"garden\", \"cocode\"]\n",
    );
    let (ana, bob) = (token(&home, "ana"), token(&home, "bob"));
    let model = ModelScript::new()
        .turn(ModelTurn::new().text("Good morning, ana."))
        .turn(ModelTurn::new().text("Good morning, bob."))
        .start(ModelFormat::Anthropic);
    let mut gateway = with_agent(&home, &model, &[]);
    gateway.until_ready(&["garden", "vault", "cocode"]);
    for token in [&ana, &bob] {
        let client = ByHand::new(&gateway.server("cocode"), Some(token)).initialized();
        let answer = client.call("cocode", &serde_json::json!({ "prompt": "hello" }));
        assert!(answer["result"].is_object(), "{answer}");
    }
    let asked = model.bodies();
    let told = |number: usize| asked[number].to_string();
    assert!(told(0).contains("vault"), "{}", told(0));
    assert!(told(1).contains("garden"), "{}", told(1));
    assert!(!told(1).contains("vault"), "{}", told(1));
    model.assert_no_violations();
}

#[test]
fn the_agent_of_a_principal_writes_nothing_that_the_gateway_obeys() {
    let home = Home::new();
    let ana = token(&home, "ana");
    home.project_file("work/hello.txt", "good morning\n");
    let model = ModelScript::new()
        .turn(ModelTurn::new().text("Good morning."))
        .start(ModelFormat::Anthropic);
    let arguments = serde_json::json!({ "prompt": "hello", "sandbox": "workspace-write" });
    for (words, is_let) in [(&[][..], false), (&["--root", "work"][..], true)] {
        let mut gateway = with_agent(&home, &model, words);
        gateway.until_ready(&["cocode"]);
        let client = ByHand::new(&gateway.server("cocode"), Some(&ana)).initialized();
        let answer = client.call("cocode", &arguments);
        assert_eq!(answer["result"]["isError"] != true, is_let, "{answer}");
        assert_eq!(
            !answer.to_string().contains("read-only"),
            is_let,
            "{answer}"
        );
        let (code, said) = gateway.end("-TERM");
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(
            !said.contains("agents of principals only read"),
            is_let,
            "{said}"
        );
    }
}

#[test]
fn the_agent_of_a_principal_writes_in_no_root_with_files_of_the_gateway() {
    let home = Home::new();
    home.project_file("work/hello.txt", "good morning\n");
    // Every sandbox lets commands write in the directory for temporary files.
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (user, free) = (scratch.path().join("user"), scratch.path().join("free"));
    let plugins = user.join("state/plugins");
    for made in [&plugins, &free] {
        std::fs::create_dir_all(made).unwrap();
    }
    let roots = [&user, &plugins, &free].map(|root| root.display().to_string());
    let config = format!("[agent]\nwritable_roots = {roots:?}\n");
    std::fs::write(user.join("config.toml"), config).unwrap();
    let mut script = ModelScript::new();
    for root in &roots {
        let command = serde_json::json!({ "command": format!("echo x > {root}/made") });
        script = script
            .turn(ModelTurn::new().call("c1", "shell", &command))
            .turn(ModelTurn::new().text("Tried."));
    }
    let model = script.start(ModelFormat::Anthropic);
    let start = |root: &str| {
        let words = [
            "gateway", "--listen", ":0", "--json", "--agent", "--root", root,
        ];
        let mut command = home.command(words);
        command
            .env("COCODE_HOME", &user)
            .env("ANTHROPIC_BASE_URL", model.base_url())
            .env("ANTHROPIC_API_KEY", "key");
        let mut gateway = Running::of(&mut command);
        gateway.until_ready(&["cocode"]);
        gateway
    };
    let gateway = start("work");
    let token = gateway.token();
    let client = ByHand::new(&gateway.server("cocode"), Some(&token)).initialized();
    let prompt = serde_json::json!({
        "prompt": "write", "sandbox": "workspace-write", "approval-policy": "never",
    });
    for _ in &roots {
        let answer = client.call("cocode", &prompt);
        assert!(answer["result"]["isError"] != true, "{answer}");
    }
    for (root, could) in roots.iter().zip([false, false, true]) {
        let is_made = std::path::Path::new(root).join("made").exists();
        assert_eq!(is_made, could, "{root}");
    }
    let (code, said) = gateway.end("-TERM");
    assert_eq!(code, Some(0), "{said}");
    let warnings = said.matches("agents of principals do not write in").count();
    assert_eq!(warnings, 2, "{said}");
    // A root inside of what the gateway keeps is no better than one around it.
    let gateway = start(&roots[1]);
    let client = ByHand::new(&gateway.server("cocode"), Some(&token)).initialized();
    let answer = client.call("cocode", &prompt).to_string();
    assert!(answer.contains("`read-only` at most"), "{answer}");
    let (code, said) = gateway.end("-TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("agents of principals only read"), "{said}");
    assert!(said.contains("the built-in tools for"), "{said}");
}

/// Asks at a socket who one is, and prints what is said.
const WHO_AM_I: &str = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect(sys.argv[1])
try:
    s.sendall(b'GET /api/v1/session HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')
except OSError:
    pass
print('ANSWER', s.recv(4096).decode())
";

#[test]
fn no_command_of_the_agent_is_served_at_the_socket_of_the_gateway() {
    let home = Home::new();
    home.project_file("who.py", WHO_AM_I);
    let bob = token(&home, "bob");
    let socket = |gateway: &Running| {
        assert!(gateway.url().starts_with("http://"));
        let status = home.run(["mcp", "daemon", "status", "--json"]);
        let status: Value = serde_json::from_str(&status.with_code(0).stdout).unwrap();
        status["socket"].as_str().unwrap().to_owned()
    };
    let first = ModelScript::new().start(ModelFormat::Anthropic);
    let place = {
        let mut gateway = with_agent(&home, &first, &[]);
        gateway.until_ready(&["cocode"]);
        let place = socket(&gateway);
        // Whoever is not in a sandbox is an administrator there.
        let mut ask = std::process::Command::new("python3");
        let said = ask.arg(home.project().join("who.py")).arg(&place).output();
        let said = String::from_utf8(said.unwrap().stdout).unwrap();
        assert!(said.contains("isAdmin"), "{said}");
        assert_eq!(gateway.end("-TERM").0, Some(0));
        place
    };
    let command = serde_json::json!({ "command": format!("python3 who.py {place}") });
    let model = ModelScript::new()
        .turn(ModelTurn::new().call("c1", "shell", &command))
        .turn(ModelTurn::new().text("They did not let me in."))
        .start(ModelFormat::Anthropic);
    let mut gateway = with_agent(&home, &model, &[]);
    gateway.until_ready(&["cocode"]);
    assert_eq!(socket(&gateway), place);
    let client = ByHand::new(&gateway.server("cocode"), Some(&bob)).initialized();
    let answer = client.call("cocode", &serde_json::json!({ "prompt": "who are you?" }));
    assert!(answer["result"].is_object(), "{answer}");
    let told = model.bodies()[1].to_string();
    assert!(told.contains("Operation not permitted"), "{told}");
    assert!(!told.contains("isAdmin"), "{told}");
}
