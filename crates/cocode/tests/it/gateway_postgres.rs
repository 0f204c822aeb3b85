//! Two gateways that keep what they share in one database: tokens, the audit log, sessions and conversations, and
//! what happens while it is away.

mod takeover;

use std::process::Command;

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, PostgresPeer, Script};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::harness::{Finished, mcp_by};
use crate::home::Home;
use crate::http::ByHand;
use crate::status::entry;

/// A machine with a gateway whose store is the database.
pub(crate) struct Machine {
    pub(crate) home: Home,
    password: &'static str,
    secret: &'static str,
}

impl Machine {
    pub(crate) fn new(peer: &PostgresPeer) -> Self {
        let home = Home::new();
        let port = peer.port();
        let store = format!("postgres://cocode:${{DB_PASSWORD}}@127.0.0.1:{port}/cocode");
        home.user_file("config.toml", &format!("[gateway]\nstore = \"{store}\"\n"));
        Self {
            home,
            password: peer.password(),
            secret: peer.secret(),
        }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command.env("DB_PASSWORD", self.password);
        command
    }

    /// Runs the program; nothing of the password is ever seen.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Finished {
        let finished = Finished::of(self.command(words).output().unwrap());
        self.check(&finished.stdout);
        self.check(&finished.stderr);
        finished
    }

    #[track_caller]
    fn check(&self, text: &str) {
        assert!(!text.contains(self.secret), "{text}");
    }

    fn token(&self, name: &str) -> String {
        let made = self.run(&["gateway", "token", "add", name, "-q"]).clean();
        made.trim().to_owned()
    }

    fn gateway(&self) -> Running {
        let words = ["gateway", "--listen", ":0", "--json", "-v"];
        let mut gateway = Running::of(&mut self.command(&words));
        gateway.until_ready(&["one"]);
        gateway
    }

    /// How many calls the audit log has.
    fn entries(&self) -> usize {
        let shown = self.run(&["audit", "show", "--limit", "1000", "--json"]);
        let is_call = |line: &&str| !line.contains("\"method\":\"audit\"");
        let shown = shown.with_code(0).stdout;
        shown.lines().filter(is_call).count()
    }

    #[track_caller]
    fn end(&self, gateway: Running) {
        let (code, stderr) = gateway.end("-TERM");
        assert_eq!(code, Some(0), "{stderr}");
        self.check(&stderr);
    }
}

fn call(client: &ByHand) -> Value {
    client.call("mcp__one__echo", &json!({ "message": "hello" }))
}

fn is_done(answer: &Value) -> bool {
    answer["result"].is_object()
}

#[test]
fn system_two_gateways_share_tokens_and_the_audit_log_in_one_database() {
    let mut peer = PostgresPeer::start();
    let server = Script::new().stdio();
    let machines = [Machine::new(&peer), Machine::new(&peer)];
    let [one, other] = &machines;
    for machine in &machines {
        machine.home.user_file("mcp.toml", &entry("one", &server));
    }
    let shown = one.run(&["config", "show"]).with_code(0).stdout;
    assert!(shown.contains("${DB_PASSWORD}"), "{shown}");
    let (ana, bob) = (one.token("ana"), other.token("bob"));
    let taken = other.run(&["gateway", "token", "add", "ana", "--json"]);
    assert_eq!(taken.with_code(2).error()["code"], "already-there");
    let listed = one.run(&["gateway", "token", "list"]).with_code(0).stdout;
    assert!(listed.contains("ana") && listed.contains("bob"), "{listed}");

    // Whoever has a token is let in everywhere, and what they do is written down in one log.
    let gateways = [one.gateway(), other.gateway()];
    let of = |gateway: &Running, token: &str| ByHand::new(gateway.url(), Some(token)).initialized();
    let anas = gateways.each_ref().map(|gateway| of(gateway, &ana));
    let bobs = gateways.each_ref().map(|gateway| of(gateway, &bob));
    for client in anas.iter().chain(&bobs) {
        assert!(is_done(&call(client)));
    }
    // A session goes on at the other one, for whom it belongs to.
    let moving = of(&gateways[0], &bob);
    let url = gateways[1].url().to_owned();
    let token = Some(ana.clone());
    let moved = ByHand { url, ..moving };
    let stolen = ByHand {
        token,
        ..moved.clone()
    };
    stolen.request("tools/list", &json!({})).with_status(404);
    assert!(is_done(&call(&moved)));
    while other.entries() < 5 {}
    assert_eq!(one.entries(), 5);
    let verified = one.run(&["audit", "verify"]).with_code(0).stdout;
    assert!(verified.contains("intact: 7 entries"), "{verified}");
    for file in ["state/audit", "state/gateway/tokens.json"] {
        assert!(!one.home.home().join(file).exists(), "{file}");
    }

    // One that is revoked by somebody is worth nothing at any of them.
    one.run(&["gateway", "token", "revoke", "ana"]).with_code(0);
    for client in &anas {
        while client.request("tools/list", &json!({})).status == 200 {}
        client.request("tools/list", &json!({})).with_status(401);
    }
    let mut n_done = 5 + bobs.iter().filter(|bob| is_done(&call(bob))).count();
    assert_eq!(n_done, 7);

    while one.entries() < n_done {}
    peer.stop();
    n_done += nothing_is_done_while_it_is_away(&bobs);
    let refused = one.run(&["gateway", "--listen", ":0", "--json"]);
    let error = refused.with_code(3).error();
    assert_eq!(error["code"], "store-unavailable");
    assert!(
        error["hints"].to_string().contains("config.toml"),
        "{error}"
    );
    for words in [
        &["gateway", "token", "list", "--json"][..],
        &["audit", "verify", "--json"],
    ] {
        let error = other.run(words).with_code(3).error();
        assert_eq!(error["code"], "store-unavailable", "{words:?}");
    }

    // It comes back, and so does everything else. What was done before is written down once.
    peer.start_again();
    for bob in &bobs {
        while !is_done(&call(bob)) {}
        n_done += 1;
    }
    while other.entries() < n_done {}
    for (machine, gateway) in machines.iter().zip(gateways) {
        machine.end(gateway);
    }
    assert_eq!(one.entries(), n_done);
    let verified = other.run(&["audit", "verify"]).with_code(0).stdout;
    assert!(verified.contains("intact"), "{verified}");
    assert!(!peer.log().contains(peer.secret()));
}

/// Who was let in stays, but nothing is done that cannot be written down: a gateway may learn that from
/// the first call that it made. Gives how many were made.
fn nothing_is_done_while_it_is_away(clients: &[ByHand]) -> usize {
    let mut n_done = 0;
    for client in clients {
        let refused = loop {
            let answer = call(client);
            if !is_done(&answer) {
                break answer;
            }
            n_done += 1;
        };
        assert!(refused["error"].is_object(), "{refused}");
        client.request("tools/list", &json!({})).with_status(200);
    }
    n_done
}

#[test]
fn system_a_conversation_goes_on_at_another_gateway() {
    let peer = PostgresPeer::start();
    let machines = [Machine::new(&peer), Machine::new(&peer)];
    let model = ModelScript::new()
        .turn(ModelTurn::new().text("Noted."))
        .turn(ModelTurn::new().text("Still here."))
        .start(ModelFormat::Anthropic);
    let token = machines[0].token("ana");
    let ask = |machine: &Machine, words: &[&str]| {
        let start = ["gateway", "--listen", ":0", "--json", "--agent"];
        let mut command = machine.command(&start);
        command
            // Machines that share conversations have their work at the same place.
            .current_dir(machines[0].home.project())
            .env("ANTHROPIC_BASE_URL", model.base_url())
            .env("ANTHROPIC_API_KEY", "key");
        let mut gateway = Running::of(&mut command);
        gateway.until_ready(&["cocode"]);
        let words: Vec<&str> = ["call", "--json"].iter().chain(words).copied().collect();
        let answer = mcp_by(&token, &words, gateway.url()).with_code(0).stdout;
        machine.end(gateway);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["structuredContent"].clone()
    };
    let first = ask(
        &machines[0],
        &["mcp__cocode__cocode", "prompt=remember this"],
    );
    assert_eq!(first["response"], "Noted.");
    let id = format!("session_id={}", first["session_id"].as_str().unwrap());
    let words = ["mcp__cocode__cocode-reply", &id, "message=and now?"];
    let second = ask(&machines[1], &words);
    assert_eq!(second["response"], "Still here.");
    let said = model.bodies()[1].to_string();
    assert!(said.contains("remember this"), "{said}");
    model.assert_no_violations();
    for machine in &machines {
        assert!(!machine.home.home().join("state/conversations").exists());
    }
}
