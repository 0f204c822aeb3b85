//! Round trips with agents that nobody here wrote, installed by `cargo xtask peers`: what they add
//! is imported, and what is exported to them they list.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::Home;

/// Nobody listens here: what the agents would ask of the world fails at once.
const NOWHERE: &str = "http://127.0.0.1:9";
const ADDRESS: &str = "http://127.0.0.1:9/mcp";

/// Where an agent is installed, for this kind of machine.
fn installed(agent: &str) -> PathBuf {
    let (system, rest) = match std::env::consts::OS {
        "macos" => ("darwin", "apple-darwin"),
        system => (system, "unknown-linux-musl"),
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        machine => machine,
    };
    let path = match agent {
        "claude" => format!("@anthropic-ai/claude-code-{system}-{machine}/claude"),
        "codex" => {
            let triple = format!("{}-{rest}", std::env::consts::ARCH);
            format!("@openai/codex-{system}-{machine}/vendor/{triple}/bin/codex")
        }
        _ => format!("opencode-{system}-{machine}-baseline/bin/opencode"),
    };
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let program = root.join("agents/node_modules").join(path);
    let shown = program.display();
    assert!(
        program.exists(),
        "{shown} is missing: run `cargo xtask peers`"
    );
    program
}

/// What an agent prints that lives in the same home and works in the same project.
#[track_caller]
fn agent(home: &Home, name: &str, words: &[&str]) -> String {
    let mut command = Command::new(installed(name));
    command
        .args(words)
        .current_dir(home.project())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.home().parent().unwrap())
        .env("NO_COLOR", "1")
        .env("NO_PROXY", "127.0.0.1")
        .env("MCP_TIMEOUT", "5000")
        .stdin(Stdio::null());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, NOWHERE);
    }
    for name in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_MODELS_FETCH",
    ] {
        command.env(name, "1");
    }
    let output = command.output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{name} {words:?}\n{stdout}\n{stderr}"
    );
    stdout.into_owned()
}

#[track_caller]
fn entry(home: &Home, name: &str) -> Value {
    home.json(&["mcp", "get", name])["entry"].clone()
}

/// A home with a program and an address of ours, of which the agents know nothing.
fn with_servers() -> Home {
    let home = Home::new();
    let words = ["add", "ours", "--scope", "user", "--", "/bin/false", "a b"];
    home.mcp(&words).with_code(0);
    let words = ["add", "ours-web", ADDRESS, "--scope", "user"];
    home.mcp(&words).with_code(0);
    home
}

#[test]
fn servers_go_from_claude_code_and_back() {
    let home = with_servers();
    let words = ["mcp", "add", "theirs", "--scope", "user", "--env", "A=b"];
    agent(
        &home,
        "claude",
        &[&words[..], &["--", "/bin/false", "x y"]].concat(),
    );
    let words = ["mcp", "add", "--transport", "http", "theirs-web", ADDRESS];
    agent(&home, "claude", &words);
    let words = ["import", "claude-code", "--write"];
    home.mcp(&words).with_code(0);
    let program = entry(&home, "theirs");
    assert_eq!(program["command"], "/bin/false");
    assert_eq!(program["args"], json!(["x y"]));
    assert!(program["env"].get("A").is_some(), "{program}");
    assert_eq!(entry(&home, "theirs-web")["url"], ADDRESS);
    // Without a scope, it adds for the user in this project alone.
    let scope = home.json(&["mcp", "get", "theirs-web"])["scope"].clone();
    assert_eq!(scope, "local");
    let words = ["export", "claude-code", "--write"];
    home.mcp(&words).with_code(0);
    let listed = agent(&home, "claude", &["mcp", "list"]);
    for line in ["ours: /bin/false a b", "ours-web: http://127.0.0.1:9/mcp"] {
        assert!(listed.contains(line), "{line} is not in:\n{listed}");
    }
}

#[test]
fn servers_go_from_codex_and_back() {
    let home = with_servers();
    let words = ["mcp", "add", "theirs", "--", "/bin/false", "x y"];
    agent(&home, "codex", &words);
    let token = ["--url", ADDRESS, "--bearer-token-env-var", "WEB_TOKEN"];
    let words = ["mcp", "add", "theirs-web"];
    agent(&home, "codex", &[&words[..], &token].concat());
    home.mcp(&["import", "codex", "--write"]).with_code(0);
    let program = entry(&home, "theirs");
    assert_eq!(program, json!({"command": "/bin/false", "args": ["x y"]}));
    let web = entry(&home, "theirs-web");
    assert_eq!(web["bearer_token_env_var"], "WEB_TOKEN");
    home.mcp(&["export", "codex", "--write"]).with_code(0);
    let listed: Value =
        serde_json::from_str(&agent(&home, "codex", &["mcp", "list", "--json"])).unwrap();
    let find = |name: &str| {
        let mut servers = listed.as_array().unwrap().iter();
        let found = servers.find(|server| server["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {listed:#}"))["transport"].clone()
    };
    assert_eq!(find("ours")["args"], json!(["a b"]));
    assert_eq!(find("ours-web")["url"], ADDRESS);
    // Taken back, it lists its own only.
    home.mcp(&["export", "codex", "--undo"]).with_code(0);
    let listed = agent(&home, "codex", &["mcp", "list"]);
    assert!(listed.contains("theirs"), "{listed}");
    assert!(!listed.contains("ours"), "{listed}");
}

#[test]
fn servers_go_from_opencode_and_back() {
    let home = with_servers();
    let words = ["mcp", "add", "theirs", "--", "/bin/false", "x y"];
    agent(&home, "opencode", &words);
    home.mcp(&["import", "opencode", "--write"]).with_code(0);
    let theirs = entry(&home, "theirs");
    assert_eq!(theirs["command"], "/bin/false");
    assert_eq!(theirs["args"], json!(["x y"]));
    home.mcp(&["export", "opencode", "--write"]).with_code(0);
    let known: Value =
        serde_json::from_str(&agent(&home, "opencode", &["debug", "config"])).unwrap();
    assert_eq!(
        known["mcp"]["ours"]["command"],
        json!(["/bin/false", "a b"])
    );
    assert_eq!(known["mcp"]["ours-web"]["url"], ADDRESS);
    let theirs = json!(["/bin/false", "x y"]);
    assert_eq!(known["mcp"]["theirs"]["command"], theirs);
}
