//! A running gateway whose clients sign in at a real authorization server, `oidc-provider`: they find out
//! where by themselves, and nobody has told either of them of the other but by the settings.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use cocode_testkit::{Browser, Decision, OAuthPeer};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::gateway_peers::{NODE, installed, script};
use crate::harness::Finished;
use crate::home::Home;
use crate::http::{ByHand, ask};

const GREP: &str = "mcp__workspace__grep";

/// A gateway that takes tokens of the peer, and somebody else's home.
struct World {
    peer: OAuthPeer,
    /// Whose gateway it is.
    owner: Home,
    gateway: Running,
    /// Who uses it.
    user: Home,
}

impl World {
    fn new(more: &str) -> Self {
        let peer = OAuthPeer::start();
        let owner = Home::new();
        owner.project_file("hello.txt", "good morning\n");
        // Its address is told to both before it runs.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let resource = format!("http://127.0.0.1:{port}/mcp");
        peer.set(&json!({ "resources": [resource] }));
        let config = format!(
            "[gateway.oauth]\nissuers = ['{}']\nresource = '{resource}'\nleeway_sec = 0\n\
             required_scopes = ['mcp:basic']\n{more}",
            peer.issuer()
        );
        owner.user_file("config.toml", &config);
        let mut command = owner.command(["gateway", "--json", "--listen"]);
        let mut gateway = Running::of(command.arg(format!("127.0.0.1:{port}")));
        gateway.until_state("workspace", "ready");
        assert_eq!(gateway.url(), resource);
        let user = Home::new();
        user.user_file(
            "mcp.toml",
            &format!("[mcp_servers.team]\nurl = '{resource}'\n"),
        );
        Self {
            peer,
            owner,
            gateway,
            user,
        }
    }

    /// A token that a client gets for itself, for a resource.
    fn token(&self, resource: &str, scope: &str) -> String {
        let (id, secret) = self.peer.confidential_client();
        let resource: String = url::form_urlencoded::byte_serialize(resource.as_bytes()).collect();
        let form = format!("grant_type=client_credentials&scope={scope}&resource={resource}");
        let basic = format!("Basic {}", base64(&format!("{id}:{secret}")));
        let headers = [
            ("Authorization", &*basic),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        let answer = ask(
            &format!("{}/token", self.peer.issuer()),
            "POST",
            &headers,
            &form,
        );
        let answer = answer.with_status(200).json();
        answer["access_token"].as_str().unwrap().to_owned()
    }

    /// What the log says of calls: who, what, and what came of it.
    fn written(&self) -> Vec<[String; 3]> {
        let shown = self
            .owner
            .run(["audit", "show", "--json"])
            .with_code(0)
            .stdout;
        let entries = shown
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let calls = entries.filter(|entry: &Value| entry["method"] != "audit");
        let calls = calls.map(|entry| {
            ["principal", "name", "outcome"].map(|key| entry[key].as_str().unwrap().to_owned())
        });
        calls.collect()
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn our_own_client_finds_out_where_to_sign_in_and_calls_a_tool() {
    let world = World::new("");
    let call = ["call", "team", GREP, "pattern=morning"];
    let before = world.user.mcp(&call).with_code(4);
    before.complains(&["server `team` wants you to sign in", "code: auth-required"]);
    let mut login = world.user.command(["mcp", "login", "team"]);
    login.env(
        "BROWSER",
        world.peer.browser(Browser::Plain, Decision::Allow),
    );
    let signed_in = Finished::of(login.output().unwrap()).with_code(0);
    let issuer = world.peer.issuer();
    assert!(signed_in.stdout.contains(issuer), "{signed_in:?}");
    for protocol in ["modern", "legacy"] {
        let words = [&call[..], &["--protocol", protocol]].concat();
        let found = world.user.mcp(&words).with_code(0);
        assert!(found.stdout.contains("hello.txt"), "{found:?}");
    }
    let alice = format!("alice {issuer}");
    let called = [&*alice, "grep", "ok"].map(str::to_owned);
    assert_eq!(world.written(), [called.clone(), called]);
    world.owner.run(["audit", "verify"]).with_code(0);
    assert_eq!(world.gateway.end("-TERM").0, Some(0));
}

#[test]
fn a_token_that_expires_is_renewed_and_the_old_one_counts_no_more() {
    let world = World::new("");
    let url = world.gateway.url().to_owned();
    world
        .peer
        .set(&json!({ "accessTokenTtl": 2, "refreshTokens": "always" }));
    let mut login = world.user.command(["mcp", "login", "team"]);
    login.env(
        "BROWSER",
        world.peer.browser(Browser::Plain, Decision::Allow),
    );
    Finished::of(login.output().unwrap()).with_code(0);
    // The machine's own token was issued later than that of the user.
    let token = world.token(&url, "mcp:basic");
    let client = ByHand::new(&url, Some(&token)).initialized();
    let stream = client.listen();
    assert_eq!(stream.answer.status, 200);
    // What it opened ends with it, whatever the client does.
    stream.rest();
    let refused = client.request("tools/list", &json!({}));
    let refused = refused.with_status(401);
    assert!(
        refused.body.contains("the token has expired"),
        "{refused:?}"
    );
    let words = ["call", "team", GREP, "pattern=morning"];
    let found = world.user.mcp(&words).with_code(0);
    assert!(found.stdout.contains("hello.txt"), "{found:?}");
    assert_ne!(world.peer.count("/tokens/refresh_token/success"), 0);
}

#[test]
fn a_token_of_the_same_issuer_for_somebody_else_lets_nobody_in() {
    let more = format!("[gateway.principals.\"*\"]\ndeny = ['{GREP}']\n");
    let world = World::new(&more);
    let url = world.gateway.url().to_owned();
    let comes = |token: &str| ByHand::new(&url, Some(token)).request("initialize", &json!({}));
    let refused = comes(&world.token(world.peer.resource(), "mcp:basic")).with_status(401);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("the token is not for this audience"),
        "{challenge}"
    );
    let refused = comes(&world.token(&url, "mcp:write")).with_status(403);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.contains("insufficient_scope"), "{challenge}");
    // And whoever is let in is told nothing of what is not theirs.
    let machine = ByHand::new(&url, Some(&world.token(&url, "mcp:basic"))).initialized();
    assert!(!machine.tools().contains(&GREP.to_owned()));
    let refused = machine.call(GREP, &json!({ "pattern": "morning" }));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Unknown tool"), "{refused}");
    let who = format!(
        "{} {}",
        world.peer.confidential_client().0,
        world.peer.issuer()
    );
    assert_eq!(
        world.written(),
        [[&*who, "grep", "denied"].map(str::to_owned)]
    );
}

#[test]
fn the_typescript_sdk_finds_out_where_to_sign_in_and_calls_a_tool() {
    let world = World::new("");
    let plan = json!({
        "url": world.gateway.url(),
        "steps": [{ "list": "tools" }, { "call": GREP, "with": { "pattern": "morning" } }],
    });
    let mut command = Command::new(installed(NODE));
    command
        .arg(script("clients/oauth.mjs"))
        .env("COCODE_PEERS", installed("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(plan.to_string().as_bytes()).unwrap();
    drop(stdin);
    let finished = Finished::of(child.wait_with_output().unwrap()).with_code(0);
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert!(told["seen"][0].to_string().contains(GREP), "{told}");
    assert!(told["seen"][1].to_string().contains("hello.txt"), "{told}");
    assert_eq!(world.peer.count("/registrations/success"), 1);
    let alice = format!("alice {}", world.peer.issuer());
    assert_eq!(
        world.written(),
        [[&*alice, "grep", "ok"].map(str::to_owned)]
    );
}
