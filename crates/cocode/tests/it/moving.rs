//! Sessions that outlive their gateway: one that is killed and started again, and two behind nginx of
//! which one is killed while clients of the public SDKs wait for an answer.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::gateway_peers::{NODE, installed, script};
use crate::harness::{Finished, start};
use crate::home::Home;
use crate::http::ByHand;
use crate::nginx::Site;
use crate::status::entry;

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn gateway_at(home: &Home, address: &str) -> Running {
    Running::of(&mut home.command(["gateway", "--listen", address, "--json"]))
}

#[track_caller]
fn token(home: &Home, name: &str) -> String {
    let made = home.run(["gateway", "token", "add", name]).with_code(0);
    made.stdout.trim().to_owned()
}

#[test]
fn a_session_goes_on_after_its_gateway_was_killed_and_is_nobody_elses() {
    let home = Home::new();
    home.project_file("hello.txt", "good morning\n");
    let (ana, bob) = (token(&home, "ana"), token(&home, "bob"));
    let address = free_address();
    let gateway = gateway_at(&home, &address);
    let client = || ByHand::new(gateway.url(), Some(&ana)).initialized();
    let (ana_stays, ana_leaves) = (client(), client());
    let tools = ana_stays.tools();
    ana_leaves.send("DELETE", "").with_status(204);
    assert_eq!(gateway.end("-KILL").0, None);

    let gateway = gateway_at(&home, &address);
    let stolen = ByHand {
        token: Some(bob.clone()),
        ..ana_stays.clone()
    };
    let refused = stolen.request("tools/list", &json!({})).with_status(404);
    let guessed = ByHand {
        session: Some("A".repeat(32)),
        ..stolen.clone()
    };
    let unknown = guessed.request("tools/list", &json!({})).with_status(404);
    assert_eq!(refused.body, unknown.body, "they are told apart");
    stolen.send("GET", "").with_status(404);
    stolen.send("DELETE", "").with_status(404);
    let elsewhere = ByHand {
        url: format!("{}/workspace", gateway.url()),
        ..ana_stays.clone()
    };
    elsewhere.request("tools/list", &json!({})).with_status(404);
    let over = ana_leaves.request("tools/list", &json!({}));
    over.with_status(404);
    assert_eq!(ana_stays.tools(), tools);
    let found = ana_stays.call("mcp__workspace__grep", &json!({ "pattern": "morning" }));
    assert!(found.to_string().contains("hello.txt"), "{found}");
    // An end in order leaves it to the next one, and a token that is revoked does not.
    assert_eq!(gateway.end("-TERM").0, Some(0));
    let gateway = gateway_at(&home, &address);
    assert_eq!(ana_stays.tools(), tools);
    home.run(["gateway", "token", "revoke", "ana"]).with_code(0);
    let gone = || ana_stays.request("tools/list", &json!({})).status == 401;
    crate::fronts::wait_while(|| !gone());
    assert_eq!(gateway.end("-TERM").0, Some(0));
    let ana = token(&home, "ana");
    let gateway = gateway_at(&home, &address);
    let again = ByHand {
        token: Some(ana),
        ..ana_stays
    };
    again.request("tools/list", &json!({})).with_status(404);
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

#[test]
fn sessions_in_memory_end_with_their_gateway() {
    let home = Home::new();
    home.user_file("config.toml", "[gateway]\nstore = \"memory\"\n");
    let address = free_address();
    let gateway = gateway_at(&home, &address);
    let client = ByHand::new(gateway.url(), None).initialized();
    assert!(!client.tools().is_empty());
    assert_eq!(gateway.end("-KILL").0, None);
    let gateway = gateway_at(&home, &address);
    client.request("tools/list", &json!({})).with_status(404);
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

/// A client of an SDK that has a session.
#[derive(Clone, Copy)]
enum Sdk {
    Python1,
    Python2,
    TypeScript1,
    TypeScript2,
}

impl Sdk {
    fn command(self) -> Command {
        let (program, file) = match self {
            Self::Python1 => ("websocket/bin/python", "python/client1.py"),
            Self::Python2 => ("python/bin/python", "python/client.py"),
            Self::TypeScript1 => (NODE, "clients/sdk1.mjs"),
            Self::TypeScript2 => (NODE, "clients/sdk2.mjs"),
        };
        let mut command = Command::new(installed(program));
        command.arg(script(file));
        command
    }
}

/// How far the answer to a call has come when its gateway is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Killed {
    BeforeItsStream,
    WithinItsStream,
}

/// Lets a client call a tool through nginx, kills the gateway that works on it, and checks that the client
/// is told, and goes on at the other.
#[track_caller]
fn goes_on(sdk: Sdk, killed: Killed) {
    let home = Home::new();
    let gate = Gate::new();
    let held = Script::new().on("tools/call");
    let held = match killed {
        Killed::BeforeItsStream => held,
        Killed::WithinItsStream => held.progress(1, 2),
    };
    let server = held.hold(&gate).text_result("carried out").stdio();
    home.user_file("mcp.toml", &entry("one", &server));
    // They share a home, and with it the store.
    let mut gateways = [(); 2].map(|()| Running::start(&home, &[]));
    let addresses = gateways.each_mut().map(|gateway| {
        gateway.until_ready(&["one"]);
        let address = gateway.url().strip_prefix("http://").unwrap();
        address.strip_suffix("/mcp").unwrap().to_owned()
    });
    let site = Site::new([&addresses[0], &addresses[1]]);
    let proxy = site.start();
    let call = |more: Value| {
        let mut call = json!({ "call": "mcp__one__echo", "with": {} });
        let all = call.as_object_mut().unwrap();
        all.extend(more.as_object().unwrap().clone());
        call
    };
    let plan = json!({
        "url": site.url("https", "/mcp"),
        "transport": "http",
        "era": "legacy",
        "steps": [
            { "list": "tools" },
            call(json!({ "fails": true })),
            { "list": "tools" },
            call(json!({})),
            call(json!({})),
        ],
    });
    let mut command = sdk.command();
    command
        .env("SSL_CERT_FILE", site.certificate())
        .env("NODE_EXTRA_CA_CERTS", site.certificate());
    let mut client = start(command.stdin(Stdio::piped()));
    let mut stdin = client.stdin.take().unwrap();
    stdin.write_all(plan.to_string().as_bytes()).unwrap();
    drop(stdin);
    let received = server.received();
    received.wait_for_blocking(|message| message.is("tools/call"));
    let log = site.read("access.log");
    let [one, other] = gateways;
    let (loser, winner) = if log.contains(&addresses[0]) {
        (one, other)
    } else {
        (other, one)
    };
    if killed == Killed::WithinItsStream {
        // Until what it said is with the client, which is nowhere to be seen from here.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    assert_eq!(loser.end("-KILL").0, None);
    gate.open();
    let finished = Finished::of(client.wait_with_output().unwrap()).with_code(0);
    let seen: Value = serde_json::from_str(finished.stdout.trim()).unwrap();
    let seen = &seen["seen"];
    let message = seen[1]["error"]["message"].as_str();
    let message = message.unwrap_or_else(|| panic!("{seen}"));
    assert!(
        message.contains("the gateway that worked on this is gone"),
        "{message}"
    );
    assert_eq!(seen[2], seen[0], "the same tools");
    for call in [&seen[3], &seen[4]] {
        assert_eq!(call["content"][0]["text"], "carried out", "{seen}");
    }
    let n_calls = received.count(|message| message.is("tools/call"));
    assert_eq!(n_calls, 3, "nothing was carried out twice");
    drop(proxy);
    assert_eq!(winner.end("-TERM").0, Some(0));
}

#[test]
fn system_peer_the_first_python_client_goes_on_when_its_gateway_is_killed() {
    goes_on(Sdk::Python1, Killed::BeforeItsStream);
    goes_on(Sdk::Python1, Killed::WithinItsStream);
}

#[test]
fn system_peer_the_second_python_client_goes_on_when_its_gateway_is_killed() {
    goes_on(Sdk::Python2, Killed::BeforeItsStream);
    goes_on(Sdk::Python2, Killed::WithinItsStream);
}

#[test]
fn system_peer_the_first_typescript_client_goes_on_when_its_gateway_is_killed() {
    goes_on(Sdk::TypeScript1, Killed::BeforeItsStream);
    goes_on(Sdk::TypeScript1, Killed::WithinItsStream);
}

#[test]
fn system_peer_the_second_typescript_client_goes_on_when_its_gateway_is_killed() {
    goes_on(Sdk::TypeScript2, Killed::BeforeItsStream);
    goes_on(Sdk::TypeScript2, Killed::WithinItsStream);
}
