//! The clients of the public SDKs: each era, over each transport that they have.

use std::io::Write as _;
use std::process::Stdio;
use std::vec;

use serde_json::{Value, json};

use super::tours::{all_servers, each_server, everything_alone, searched};
use super::{NODE, Peers, printed, script};
use crate::fronts::wait_while;
use crate::harness::{Finished, start};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sdk {
    Python,
    TypeScript1,
    TypeScript2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    Sse,
    WebSocket,
    /// `cocode mcp serve` instead of the gateway.
    Stdio,
}

/// How a client finds out which era to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// It knows only handshakes.
    Legacy,
    /// It asks.
    Auto,
    /// It knows nothing but requests without a handshake.
    Modern,
}

/// A client that connects in one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visitor {
    sdk: Sdk,
    transport: Transport,
    era: Era,
    searches: bool,
}

/// What a client saw.
#[derive(Debug)]
pub(super) struct Seen {
    /// What servers asked it for, in order.
    pub(super) asked: Vec<Value>,
    server: Value,
    results: vec::IntoIter<Value>,
}

impl Visitor {
    fn new(sdk: Sdk, transport: Transport, era: Era) -> Self {
        Self {
            sdk,
            transport,
            era,
            searches: false,
        }
    }

    /// The same, where all servers are one and tools are searched for.
    fn searching(self) -> Self {
        Self {
            searches: true,
            ..self
        }
    }

    /// Whether it does without a handshake here, where it can choose.
    pub(super) fn is_modern(self) -> bool {
        self.era != Era::Legacy
    }

    /// Whether it says that it can show people web pages: this one does so wherever it can ask them.
    pub(super) fn can_open_urls(self) -> bool {
        self.sdk == Sdk::Python
    }

    /// Follows the steps at the address of one server, or of all.
    #[track_caller]
    pub(super) fn visit(self, peers: &Peers, server: Option<&str>, steps: &Value) -> Seen {
        let (scheme, path, transport) = match self.transport {
            Transport::Http => ("http", "/mcp", "http"),
            Transport::Sse => ("http", "/sse", "sse"),
            Transport::WebSocket => ("ws", "/ws", "websocket"),
            Transport::Stdio => ("", "", "stdio"),
        };
        let path = server.map_or_else(|| path.to_owned(), |server| format!("{path}/{server}"));
        let query = if self.searches {
            "?tool_search=true"
        } else {
            ""
        };
        let plan = json!({
            "url": format!("{scheme}://{}{path}{query}", peers.address),
            "program": peers.front(server, self.searches),
            "transport": transport,
            "era": match self.era {
                Era::Legacy => "legacy",
                Era::Auto => "auto",
                Era::Modern => "modern",
            },
            "elicit": { "name": "Ada" },
            "sample": "a thought",
            "steps": steps,
        });
        let (program, file) = match self.sdk {
            Sdk::Python => ("python/bin/python", "python/client.py"),
            Sdk::TypeScript1 => (NODE, "clients/sdk1.mjs"),
            Sdk::TypeScript2 => (NODE, "clients/sdk2.mjs"),
        };
        let mut command = peers.client(program);
        let mut child = start(command.arg(script(file)).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(plan.to_string().as_bytes()).unwrap();
        drop(stdin);
        let seen = printed(Finished::of(child.wait_with_output().unwrap()));
        let version = if self.is_modern() { MODERN } else { LEGACY };
        assert_eq!(seen["version"], version, "{self:?}");
        let list = |field: &str| seen[field].as_array().unwrap().clone();
        let results = list("seen");
        assert_eq!(results.len(), steps.as_array().unwrap().len());
        // Without asking, the Python client never hears what the server is.
        let knows = (self.sdk, self.era) != (Sdk::Python, Era::Modern);
        assert_eq!(seen["server"].is_object(), knows, "{self:?}");
        Seen {
            asked: list("asked"),
            server: seen["server"].clone(),
            results: results.into_iter(),
        }
    }

    /// Fails unless the client heard of every step. Both TypeScript clients forget whom to tell of
    /// progress as soon as the result is there, which over these transports they notice first: also
    /// without a gateway.
    #[track_caller]
    pub(super) fn has_progress(self, result: &Value, n_steps: u32) {
        let heard = result["progress"].as_array().unwrap().iter();
        let heard = heard.map(|update| (update["progress"].as_f64(), update["total"].as_f64()));
        let heard: Vec<_> = heard.collect();
        let total = Some(f64::from(n_steps));
        let steps = (1..=n_steps).map(|step| (Some(f64::from(step)), total));
        let mut steps: Vec<_> = steps.collect();
        if self.sdk != Sdk::Python && self.transport != Transport::Http {
            steps.truncate(heard.len());
        }
        assert_eq!(heard, steps, "{self:?}");
    }
}

impl Seen {
    /// Fails unless this is who the client talked to, if it heard who that is.
    #[track_caller]
    pub(super) fn server(&self, wanted: &Value) {
        assert!(self.server.is_null() || self.server == *wanted);
    }

    /// What the next step gave.
    #[track_caller]
    pub(super) fn next(&mut self) -> Value {
        self.results.next().unwrap()
    }

    /// The names that the next step listed.
    #[track_caller]
    pub(super) fn names(&mut self) -> Vec<String> {
        serde_json::from_value(self.next()).unwrap()
    }

    /// The names that the next step listed, where the server decides about the order.
    #[track_caller]
    pub(super) fn sorted_names(&mut self) -> Vec<String> {
        let mut names = self.names();
        names.sort_unstable();
        names
    }
}

#[test]
fn the_python_client_uses_all_servers_in_either_era() {
    let peers = Peers::start();
    for era in [Era::Legacy, Era::Auto, Era::Modern] {
        all_servers(&peers, Visitor::new(Sdk::Python, Transport::Http, era));
    }
    peers.end();
}

#[test]
fn the_python_client_uses_each_server_with_a_handshake() {
    let peers = Peers::start();
    let visitor = Visitor::new(Sdk::Python, Transport::Http, Era::Legacy);
    each_server(&peers, visitor);
    // The second time, it has a server of its own.
    everything_alone(&peers, visitor);
    peers.end();
}

#[test]
fn the_python_client_uses_each_server_without_a_handshake() {
    let peers = Peers::start();
    each_server(
        &peers,
        Visitor::new(Sdk::Python, Transport::Http, Era::Auto),
    );
    peers.end();
}

#[test]
fn the_python_client_uses_http_with_sse() {
    let peers = Peers::start();
    let visitor = Visitor::new(Sdk::Python, Transport::Sse, Era::Legacy);
    all_servers(&peers, visitor);
    each_server(&peers, visitor);
    peers.end();
}

/// All agents of a user share what `cocode mcp serve` serves, whoever wrote them.
#[test]
fn the_clients_of_all_sdks_share_a_daemon() {
    let peers = Peers::start();
    for (sdk, era) in [
        (Sdk::Python, Era::Legacy),
        (Sdk::TypeScript1, Era::Legacy),
        (Sdk::TypeScript2, Era::Modern),
        (Sdk::Python, Era::Auto),
    ] {
        let n_fronts = peers.n_fronts();
        all_servers(&peers, Visitor::new(sdk, Transport::Stdio, era));
        // Some start more than one, to ask it which era it speaks.
        assert!(peers.n_fronts() > n_fronts, "{sdk:?} {era:?} stood alone");
    }
    wait_while(|| {
        let daemon = peers.home.json(&["mcp", "daemon", "status"]);
        assert_eq!(daemon["pid"], json!(peers.child.id()), "{daemon}");
        daemon["fronts"] != json!([])
    });
    peers.home.mcp(&["daemon", "stop"]).with_code(0);
    peers.end();
}

#[test]
fn the_python_client_uses_one_server_of_the_daemon() {
    let peers = Peers::start();
    let visitor = Visitor::new(Sdk::Python, Transport::Stdio, Era::Legacy);
    each_server(&peers, visitor);
    assert!(peers.n_fronts() > 0, "it stood alone");
    peers.home.mcp(&["daemon", "stop"]).with_code(0);
    peers.end();
}

#[track_caller]
fn typescript_1(transport: Transport) {
    let peers = Peers::start();
    let visitor = Visitor::new(Sdk::TypeScript1, transport, Era::Legacy);
    all_servers(&peers, visitor);
    each_server(&peers, visitor);
    peers.end();
}

#[test]
fn the_first_typescript_client_uses_streamable_http() {
    typescript_1(Transport::Http);
}

#[test]
fn the_first_typescript_client_uses_http_with_sse() {
    typescript_1(Transport::Sse);
}

#[test]
fn the_first_typescript_client_uses_websockets() {
    typescript_1(Transport::WebSocket);
}

#[test]
fn the_second_typescript_client_uses_all_servers_in_either_era() {
    let peers = Peers::start();
    for era in [Era::Legacy, Era::Auto, Era::Modern] {
        let visitor = Visitor::new(Sdk::TypeScript2, Transport::Http, era);
        all_servers(&peers, visitor);
    }
    peers.end();
}

#[test]
fn the_second_typescript_client_uses_each_server_in_either_era() {
    let peers = Peers::start();
    // The second time with a handshake, it has a server of its own.
    for era in [Era::Legacy, Era::Auto, Era::Legacy] {
        each_server(&peers, Visitor::new(Sdk::TypeScript2, Transport::Http, era));
    }
    peers.end();
}

#[test]
fn the_second_typescript_client_uses_http_with_sse() {
    let peers = Peers::start();
    let visitor = Visitor::new(Sdk::TypeScript2, Transport::Sse, Era::Legacy);
    all_servers(&peers, visitor);
    each_server(&peers, visitor);
    peers.end();
}

#[test]
fn the_clients_of_all_sdks_search_for_tools_and_call_what_they_found() {
    let peers = Peers::start();
    for (sdk, transport, era) in [
        (Sdk::Python, Transport::Http, Era::Legacy),
        (Sdk::Python, Transport::Http, Era::Auto),
        (Sdk::Python, Transport::Sse, Era::Legacy),
        (Sdk::TypeScript1, Transport::Http, Era::Legacy),
        (Sdk::TypeScript1, Transport::WebSocket, Era::Legacy),
        (Sdk::TypeScript2, Transport::Http, Era::Legacy),
        (Sdk::TypeScript2, Transport::Http, Era::Modern),
        (Sdk::TypeScript2, Transport::Stdio, Era::Modern),
    ] {
        searched(&peers, Visitor::new(sdk, transport, era).searching());
    }
    peers.home.mcp(&["daemon", "stop"]).with_code(0);
    peers.end();
}
