//! Two gateways that share a database, behind nginx, with a crowd of clients that nobody here wrote: one
//! of the gateways is killed in the middle of it, and everybody goes on.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, PostgresPeer, ScriptedModel};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::gateway_peers::{NODE, installed, script};
use crate::gateway_postgres::Machine;
use crate::harness::Finished;
use crate::http::ask;
use crate::nginx::Site;

/// Clients of each era.
const CLIENTS: usize = 100;
/// Answers that each client has to get after one gateway was killed. It takes them some ten seconds, in which the
/// gateway is there again and gets its clients back.
const ANSWERS_AFTER: usize = 15;
/// How long the tool works that takes long.
const LONG_CALL_SECONDS: f64 = 1.5;
/// Conversations with the agent that are held at the time.
const TALKS: usize = 8;

/// What tells a person that a call was lost: our words, or those of an SDK whose stream has broken and that has
/// nobody to ask about it.
const CLEAR: [&str; 2] = [
    "it is not known whether it was carried out",
    "SSE stream ended without a response",
];

const EVERYTHING: &str = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Two machines that have the same servers, the same model and the same database.
struct Nodes {
    machines: [Machine; 2],
    model: ScriptedModel,
}

impl Nodes {
    fn new(database: &PostgresPeer, model: ScriptedModel) -> Self {
        let machines = [Machine::new(database), Machine::new(database)];
        let server = format!(
            "[mcp_servers.everything]\ncommand = '{}'\nargs = ['{}']\n",
            installed(NODE).display(),
            installed(EVERYTHING).display()
        );
        for machine in &machines {
            machine.home.user_file("mcp.toml", &server);
        }
        Self { machines, model }
    }

    fn start(&self, node: usize, listen: &str) -> Running {
        let mut command = self.machines[node].command(&["gateway", "--json", "--agent"]);
        // Conversations go on in directories of the same name.
        let directory = self.machines[0].home.project();
        command
            .current_dir(directory)
            .args(["--listen", listen])
            .env("ANTHROPIC_BASE_URL", self.model.base_url())
            .env("ANTHROPIC_API_KEY", "key");
        let mut gateway = Running::of(&mut command);
        gateway.until_ready(&["everything", "cocode"]);
        gateway
    }
}

/// Where a gateway listens.
fn address(gateway: &Running) -> String {
    let address = gateway.url().strip_prefix("http://").unwrap();
    address.strip_suffix("/mcp").unwrap().to_owned()
}

/// Makes tokens by the management API of a gateway.
fn tokens(gateway: &Running, admin: &str, names: impl Iterator<Item = String>) -> Vec<Value> {
    let url = format!("http://{}/api/v1/tokens", address(gateway));
    let bearer = format!("Bearer {admin}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    names
        .map(|name| {
            let body = json!({ "name": name }).to_string();
            let made = ask(&url, "POST", &headers, &body).with_status(201).json();
            json!({ "name": name, "token": made["token"] })
        })
        .collect()
}

/// A process with many clients.
struct Crowd {
    child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Crowd {
    /// Comes back when every client was answered once.
    fn gather(command: &mut Command, site: &Site, clients: &[Value]) -> Self {
        let plan = json!({
            "url": site.url("https", "/mcp/everything"),
            "clients": clients,
            "echo": "echo",
            "long": "trigger-long-running-operation",
            "seconds": LONG_CALL_SECONDS,
            "after": ANSWERS_AFTER,
        });
        let mut child = command
            .env("COCODE_PEERS", installed(""))
            .env("NODE_EXTRA_CA_CERTS", site.certificate())
            .env("SSL_CERT_FILE", site.certificate())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{plan}").unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            lines,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Tells all of them that from now on it counts.
    fn tell(&mut self) {
        writeln!(self.input, "now").unwrap();
    }

    /// What they have seen.
    fn seen(mut self) -> Value {
        let line = self.line();
        let seen = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        assert!(self.child.wait().unwrap().success());
        seen
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // Only a test that has failed leaves one behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// Nobody got what was meant for somebody else, nobody was left behind, and whoever lost a call lost one
/// and was told why.
fn assert_all_went_on(era: &str, seen: &Value) {
    assert_eq!(seen["wrong"], json!([]), "{era}: answers for others");
    assert_eq!(seen["stuck"], json!([]), "{era}: {seen}");
    assert_eq!(seen["again"], 0, "{era}: sessions had to be begun anew");
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    for failure in seen["failures"].as_array().unwrap() {
        let messages = failure["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "{era}: {failure}");
        let message = messages[0].as_str().unwrap();
        assert!(
            CLEAR.iter().any(|part| message.contains(part)),
            "{era}: {failure}"
        );
        *lost.entry(text(failure, "name")).or_default() += 1;
    }
    for (name, times) in lost {
        assert_eq!(times, 1, "{era}: {name} lost {times} calls");
    }
}

/// A turn of the conversation of one principal, through nginx.
fn talk(site: &Site, token: &str, words: &[&str]) -> Finished {
    let words: Vec<&str> = ["call", "--json"].iter().chain(words).copied().collect();
    site.client(&words, ("https", "/mcp/cocode"), token)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key}: {value}"))
}

/// What came of a turn, by its name.
fn told(turn: Finished, key: &str) -> String {
    let result: Value = serde_json::from_str(&turn.with_code(0).stdout).unwrap();
    text(&result["structuredContent"], key).to_owned()
}

/// How many entries the audit log has, which is intact.
fn entries(machine: &Machine) -> u64 {
    let verified = machine.run(&["audit", "verify"]).with_code(0).stdout;
    let entries = verified.strip_prefix("intact: ").unwrap();
    let (entries, _) = entries.split_once(' ').unwrap();
    entries.parse().unwrap()
}

/// A model that answers every turn of every conversation alike.
fn model() -> ScriptedModel {
    let turns = (0..2 * TALKS).map(|_| ModelTurn::new().text("Noted."));
    let script = turns.fold(ModelScript::new(), ModelScript::turn);
    script.start(ModelFormat::Anthropic)
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the numbers of a run, for who wants to know them"
)]
fn system_one_of_two_gateways_is_killed_and_everybody_goes_on() {
    let database = PostgresPeer::start();
    let nodes = Nodes::new(&database, model());
    let admin = nodes.machines[0].run(&["gateway", "token", "add", "admin", "--admin"]);
    let admin = admin.with_code(0).stdout.trim().to_owned();
    let one = nodes.start(0, ":0");
    let other = nodes.start(1, ":0");
    let place = address(&one);
    let site = Site::new([&place, &address(&other)]);
    let proxy = site.start();

    let named = |kind: &str, n: usize| {
        let names = (0..n).map(|number| format!("{kind}-{number}"));
        tokens(&one, &admin, names.collect::<Vec<_>>().into_iter())
    };
    let (legacy, modern) = (named("legacy", CLIENTS), named("modern", CLIENTS));
    let talkers = named("talker", TALKS);
    let mut node = Command::new(installed(NODE));
    node.arg(script("clients/crowd.mjs"));
    let mut python = Command::new(installed("python/bin/python"));
    python.arg(script("python/crowd.py"));
    let mut with_sessions = Crowd::gather(&mut node, &site, &legacy);
    let mut without = Crowd::gather(&mut python, &site, &modern);
    let talks: Vec<(&str, String)> = talkers
        .iter()
        .map(|talker| {
            let token = text(talker, "token");
            let prompt = format!("prompt=I am {}", text(talker, "name"));
            let begun = talk(&site, token, &["cocode", &prompt]);
            (token, told(begun, "session_id"))
        })
        .collect();
    let begun = std::time::Instant::now();
    assert_eq!(with_sessions.line(), "READY");
    assert_eq!(without.line(), "READY");

    assert_eq!(one.end("-KILL").0, None);
    with_sessions.tell();
    without.tell();
    // Everybody's conversation goes on, wherever it began, and is nobody else's.
    for (number, (token, id)) in talks.iter().enumerate() {
        let id = format!("session_id={id}");
        let words = ["cocode-reply", &id, "message=Who am I?"];
        let (stranger, _) = &talks[(number + 1) % TALKS];
        let refused = talk(&site, stranger, &words);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert_eq!(told(talk(&site, token, &words), "response"), "Noted.");
    }
    let bodies = nodes.model.bodies();
    assert_eq!(bodies.len(), 2 * TALKS);
    for (body, talker) in bodies[TALKS..].iter().zip(&talkers) {
        let name = text(talker, "name");
        let said = body["messages"].to_string();
        assert!(said.contains(&format!("I am {name}")), "{name}: {said}");
    }
    nodes.model.assert_no_violations();

    // It comes back at the same place, and gets its clients back.
    let again = nodes.start(0, &place);
    let (with_sessions, without) = (with_sessions.seen(), without.seen());
    assert_all_went_on("legacy", &with_sessions);
    assert_all_went_on("modern", &without);
    let n_lost = |seen: &Value| seen["failures"].as_array().unwrap().len();
    assert!(
        n_lost(&with_sessions) + n_lost(&without) > 0,
        "the one that was killed had nothing to do"
    );
    drop(proxy);
    for gateway in [again, other] {
        assert_eq!(gateway.end("-TERM").0, Some(0));
    }
    let entries = entries(&nodes.machines[1]);
    // Nothing that was answered is missing, though a gateway was killed; nor is a token that was made.
    let answered = |seen: &Value| seen["calls"].as_u64().unwrap();
    let made = u64::try_from(2 * CLIENTS + TALKS).unwrap();
    let least = answered(&with_sessions) + answered(&without) + made;
    assert!(entries >= least, "{entries} entries, {least} things done");
    println!(
        "{} and {} answers, {} and {} calls lost, {entries} entries, {:.1} s",
        answered(&with_sessions),
        answered(&without),
        n_lost(&with_sessions),
        n_lost(&without),
        begun.elapsed().as_secs_f64()
    );
}
