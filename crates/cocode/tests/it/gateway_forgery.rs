//! What other pages would have a signed-in browser do to a real gateway, and what clients and servers would have
//! its logs say.

use cocode_testkit::{HttpRequest, Script, StdioServer};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::gateway_access::token;
use crate::harness::start;
use crate::home::Home;
use crate::http::{Answer, ByHand, ask, open};
use crate::interrupting::signal;
use crate::status::entry;

/// A browser that has signed in, as pages use it.
struct SignedIn {
    /// The address of the gateway, without a path.
    address: String,
    cookie: String,
    csrf: String,
}

impl SignedIn {
    fn new(gateway: &Running) -> Self {
        let address = gateway.url().strip_suffix("/mcp").unwrap().to_owned();
        let code = json!({ "code": gateway.first["dashboard"]["code"] });
        let url = format!("{address}/api/v1/sign-in");
        let kind = [("Content-Type", "application/json")];
        let answer = ask(&url, "POST", &kind, &code.to_string()).with_status(200);
        let cookie = answer.header("set-cookie").unwrap();
        assert!(
            cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
            "{cookie}"
        );
        Self {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            csrf: answer.json()["csrf"].as_str().unwrap().to_owned(),
            address,
        }
    }

    fn ask(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Answer {
        let mut headers = vec![("Cookie", &*self.cookie)];
        headers.extend(more);
        ask(&format!("{}{path}", self.address), method, &headers, body)
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &[], "").with_status(200).json()
    }
}

/// What would be done by each changing operation, if it were done: the name in its path, and a body.
fn deed(operation: &str) -> (&'static str, Value) {
    match operation {
        "signIn" => ("", json!({ "code": "AAAA-AAAA-AAAA-AAAA" })),
        "addToken" => ("", json!({ "name": "forged", "admin": true })),
        "revokeToken" => ("ana", json!({})),
        "addServer" => ("", json!({ "name": "forged", "command": "/bin/true" })),
        "callTool" => ("counted", json!({ "tool": "tool-0" })),
        "readResource" => ("counted", json!({ "uri": "x://1" })),
        "getPrompt" => ("counted", json!({ "name": "x" })),
        "completeLogin" => ("counted", json!({ "code": "c", "state": "s" })),
        "approve" | "reject" => ("shared", json!({})),
        "answerElicitation" => ("1", json!({ "action": "decline" })),
        "stop" | "makeCode" | "signOut" => ("", json!({})),
        "removeServer" | "enableServer" | "disableServer" | "connectServer"
        | "disconnectServer" | "restartServer" | "restartShared" | "startLogin"
        | "dropCredentials" => ("counted", json!({})),
        other => panic!("`{other}` changes something: what would it do?"),
    }
}

/// The changing operations of a document: their names, methods and paths.
fn changing(document: &Value) -> Vec<(String, String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().unwrap().clone();
        let path = path.clone();
        let methods = methods.into_iter().filter(|(method, _)| method != "get");
        methods.map(move |(method, facts)| {
            let id = facts["operationId"].as_str().unwrap().to_owned();
            (id, method.to_uppercase(), path.clone())
        })
    };
    paths.iter().flat_map(of).collect()
}

/// Who tries, with which headers, and whether browsers of other pages send those.
type Attempt<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one gateway for all routes and all who try"
)]
fn no_other_page_can_make_a_signed_in_browser_change_anything() {
    let home = Home::new();
    token(&home, "ana");
    let counted = Script::new().tools(1, 10).http();
    let file = format!("[mcp_servers.counted]\nurl = '{}'\n", counted.url());
    home.user_file("mcp.toml", &file);
    let shared = Script::new().stdio();
    home.project_file(".mcp.toml", &entry("shared", &shared));
    let mut gateway = Running::start(&home, &[]);
    gateway.until_state("counted", "ready");
    let browser = SignedIn::new(&gateway);
    let facts = || {
        [
            "/api/v1/tokens",
            "/api/v1/trust",
            "/api/v1/elicitations",
            "/api/v1/session",
        ]
        .map(|path| browser.get(path))
    };
    let states = || {
        let servers = browser.get("/api/v1/servers")["servers"].clone();
        let of = |server: &Value| [server["name"].clone(), server["state"].clone()];
        servers
            .as_array()
            .unwrap()
            .iter()
            .map(of)
            .collect::<Vec<_>>()
    };
    let before = (facts(), states());
    // Whoever signed in is written down.
    let written = browser.get("/api/v1/audit");
    let csrf = ("X-Cocode-CSRF", &*browser.csrf);
    let json_kind = ("Content-Type", "application/json");
    let own = ("Sec-Fetch-Site", "same-origin");
    let attacker = ("Origin", "https://attacker.example");
    // With what a page cannot know, too: it may have been read by another hole.
    let attempts: [Attempt<'_>; 9] = [
        (
            "another site",
            &[json_kind, csrf, ("Sec-Fetch-Site", "cross-site")],
            true,
        ),
        (
            "another port",
            &[json_kind, csrf, ("Sec-Fetch-Site", "same-site")],
            true,
        ),
        ("an older browser", &[json_kind, csrf, attacker], true),
        (
            "a page without an origin",
            &[json_kind, csrf, ("Origin", "null")],
            true,
        ),
        (
            "a liar",
            &[json_kind, csrf, attacker, ("Sec-Fetch-Site", "cross-site")],
            true,
        ),
        ("a form", &[("Content-Type", "text/plain"), attacker], true),
        ("nobody who says so", &[json_kind, csrf], false),
        ("our page without its value", &[json_kind, own], false),
        (
            "our page with another value",
            &[json_kind, own, ("X-Cocode-CSRF", "x")],
            false,
        ),
    ];
    let document = browser.get("/api/v1/openapi.json");
    let all = changing(&document);
    assert!(all.len() >= 20, "{all:?}");
    for (id, method, path) in &all {
        let (name, body) = deed(id);
        let path = path.replace("{name}", name).replace("{id}", name);
        for (who, headers, is_page) in attempts {
            // Signing in is for those who have no cookie: only that it is meant has to be shown.
            if id == "signIn" && !is_page {
                continue;
            }
            let answer = browser.ask(method, &path, headers, &body.to_string());
            assert_eq!(answer.status, 403, "{who}: {id}: {answer:?}");
        }
        // Nor is anybody invited to ask on behalf of others.
        let asked = [("Access-Control-Request-Method", &**method), attacker];
        let asked = browser.ask("OPTIONS", &path, &asked, "");
        assert!(
            !asked.head.to_lowercase().contains("access-control-allow"),
            "{asked:?}"
        );
    }
    // Servers are not used by other pages either, at any address where they are.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool-0"}}"#;
    for path in [
        "/mcp",
        "/mcp/counted",
        "/messages?sessionId=x",
        "/sse",
        "/ws",
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let answer = browser.ask(method, path, &[json_kind, attacker], call);
            assert!(
                [401, 403].contains(&answer.status),
                "{method} {path}: {answer:?}"
            );
        }
    }
    assert_eq!((facts(), states()), before);
    let is_call =
        |request: &HttpRequest| request.body.windows(10).any(|part| part == b"tools/call");
    assert_eq!(counted.requests().count(is_call), 0);
    assert_eq!(browser.get("/api/v1/calls")["calls"], json!([]));
    assert_eq!(browser.get("/api/v1/audit"), written);
    // And our own page can: the end, at last.
    let meant = [json_kind, own, csrf];
    browser
        .ask("POST", "/api/v1/stop", &meant, "{}")
        .with_status(202);
    gateway.next(|event| event["event"] == "ending");
}

/// Text that would be lines of its own, or steer a terminal, wherever it is written as it is.
const FORGED: &str = "x\r\n{\"seq\":99,\"principal\":\"root\",\"event\":\"forged\"}\nWARN forged\n\ndata: {\"forged\":true}\n\n\
                      event: forged\u{2028}forged\u{1b}[2J\u{1b}]0;forged\u{7}\u{9b}1m\u{202e}\" 1\n# forged\ncocode_forged 1\n";

/// A server that says that, wherever it says something.
fn forger() -> StdioServer {
    let tool = json!({ "name": FORGED, "title": FORGED, "description": FORGED,
                       "inputSchema": { "type": "object" } });
    let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "logging": {} },
        "serverInfo": { "name": FORGED, "title": FORGED, "version": FORGED }, "instructions": FORGED,
    });
    let progress =
        json!({ "progressToken": "$token", "progress": 1, "total": 2, "message": FORGED });
    let log = json!({ "level": "error", "logger": FORGED, "data": FORGED });
    let error = json!({ "jsonrpc": "2.0", "id": "$id",
                        "error": { "code": -32000, "message": FORGED, "data": FORGED } });
    Script::new()
        .on("initialize")
        .result(hello)
        .on("tools/list")
        .result(json!({ "tools": [tool, good] }))
        .on("tools/call")
        .notify("notifications/progress", progress)
        .notify("notifications/message", log)
        .line(error)
        .stdio()
}

/// An entry for it, which also says it to stderr, and one for a server that ends with it.
#[must_use]
fn forgers(home: &Home) -> StdioServer {
    let server = forger();
    let said = home.project_file("said.txt", FORGED);
    let entry = |name: &str, script: &str, rest: &[Value]| {
        let mut words = vec![json!("-c"), json!(script), json!(said)];
        words.extend(rest.iter().cloned());
        let words = Value::from(words).to_string().replace("${", "$${");
        format!("[mcp_servers.{name}]\ncommand = '/bin/sh'\nargs = {words}\n")
    };
    let mut whole = vec![json!(server.program())];
    whole.extend(server.args().iter().map(|arg| json!(arg)));
    let file = [
        entry("forger", "cat \"$0\" >&2; exec \"$@\"", &whole),
        entry("'we\"ird\\'", "cat \"$0\" >&2; exit 3", &[]),
    ];
    home.user_file("mcp.toml", &file.concat());
    server
}

/// That a text is lines, and nothing in it steers what shows it.
#[track_caller]
fn is_tame(text: &str) {
    let steers = |character: &char| {
        character.is_control() && *character != '\n' || matches!(character, '\u{2028}' | '\u{202e}')
    };
    assert_eq!(text.chars().find(steers), None, "{text:?}");
}

/// Uses the server in ways that are written down somewhere, as `ana`, whose client is called as is forged.
fn use_it(gateway: &Running, ana: &str) {
    let alone = format!("{}/forger", gateway.url());
    let by_hand = ByHand::new(&alone, Some(ana)).initialized_as(FORGED);
    let meta = json!({ "progressToken": FORGED });
    for tool in ["good", FORGED] {
        let params = json!({ "name": tool, "arguments": { FORGED: FORGED }, "_meta": meta });
        by_hand.request("tools/call", &params).with_status(200);
    }
    for (method, params) in [
        (FORGED, json!({})),
        ("resources/read", json!({ "uri": FORGED })),
        ("prompts/get", json!({ "name": FORGED })),
    ] {
        by_hand.request(method, &params);
    }
    // Headers can hold no end of a line, but almost anything else.
    let bearer = format!("Bearer {ana}");
    let agent = "x\u{9b}2J \"forged\" {} \\n";
    let headers = [("Authorization", &*bearer), ("User-Agent", agent)];
    ask(&alone, "GET", &headers, "");
    ask(&format!("{alone}%0d%0aforged"), "GET", &headers, "");
    let path = format!("{}/../forged%1b[2J?x=%0aforged", gateway.url());
    ask(&path, "GET", &headers, "");
}

#[test]
fn nobody_can_forge_lines_of_any_log() {
    let home = Home::new();
    home.user_file("config.toml", "[gateway.audit]\narguments = true\n");
    let _server = forgers(&home);
    let ana = token(&home, "ana");
    let made = home.run(["gateway", "token", "add", "root", "--admin"]);
    let root = made.with_code(0).stdout.trim().to_owned();
    let log = home.project().join("gateway.log");
    let mut command = home.command(["gateway", "--listen", ":0", "--json", "-vvv", "--log-file"]);
    let mut gateway = Running::of(command.arg(&log).env("COCODE_LOG", "trace"));
    gateway.until_state("forger", "ready");
    let heard = gateway.overheard();
    let address = gateway.url().strip_suffix("/mcp").unwrap().to_owned();
    let bearer = format!("Bearer {root}");
    let admin = [("Authorization", &*bearer)];
    let mut events = open(&format!("{address}/api/v1/events"), "GET", &admin, "");
    assert_eq!(events.answer.status, 200);
    use_it(&gateway, &ana);
    // Metrics: every line is one of ours.
    let metrics = ask(&format!("{address}/metrics"), "GET", &admin, "").with_status(200);
    is_tame(&metrics.body);
    for line in metrics.body.lines() {
        let is_ours = ["# HELP cocode_", "# TYPE cocode_", "cocode_"];
        assert!(is_ours.iter().any(|one| line.starts_with(one)), "{line:?}");
        assert!(!line.contains("forged"), "{line:?}");
    }
    // Events: whatever is said is within the data of an event of ours.
    let wanted = json!("call");
    loop {
        let event = events.next_event();
        assert!(
            !event
                .iter()
                .any(|(name, _)| !["event", "data", "id", "retry", ""].contains(&&**name)),
            "{event:?}"
        );
        let of = |wanted: &str| -> Vec<String> {
            let meant = event.iter().filter(|(name, _)| name == wanted);
            meant.map(|(_, text)| text.clone()).collect()
        };
        let kinds = of("event");
        assert!(!kinds.contains(&"forged".to_owned()), "{event:?}");
        let data = of("data");
        if data.is_empty() {
            continue;
        }
        let [data] = data.as_slice() else {
            panic!("more than one line: {event:?}");
        };
        let told: Value = serde_json::from_str(data).unwrap();
        assert!(told.get("forged").is_none(), "{told}");
        if kinds.first().map(|kind| json!(kind)) == Some(wanted.clone()) && told["state"] == "error"
        {
            break;
        }
    }
    drop(events);
    assert_eq!(gateway.end("-TERM").0, Some(0));
    // What the gateway says.
    let said = heard.join().unwrap();
    is_tame(&said);
    for line in said.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let known = ["state", "configuration", "ending"];
        assert!(known.contains(&event["event"].as_str().unwrap()), "{event}");
    }
    // What it logs: every line begins with a time.
    let logged = std::fs::read_to_string(&log).unwrap();
    is_tame(&logged);
    for line in logged.lines() {
        assert!(line.starts_with("20"), "{line:?}");
    }
    audited(&home);
    logs_of_servers(&home);
}

/// The audit log is whole, and says of nobody what they have not done.
fn audited(home: &Home) {
    home.run(["audit", "verify"]).with_code(0);
    let directory = home.home().join("state/audit");
    let mut n_lines = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        is_tame(&text);
        for line in text.lines() {
            n_lines += 1;
            let entry: Value = serde_json::from_str(line).unwrap();
            assert_eq!(entry["seq"], n_lines, "{entry}");
            if n_lines == 1 {
                assert_eq!(entry["event"]["kind"], "started", "{entry}");
                continue;
            }
            assert_eq!(entry["principal"], "ana", "{entry}");
            assert_eq!(entry["event"], Value::Null, "{entry}");
        }
    }
    assert!(n_lines >= 4, "{n_lines}");
    let shown = home.run(["audit", "show"]).with_code(0).stdout;
    is_tame(&shown);
    // A line for each entry, and one for the head of the table.
    assert_eq!(shown.lines().count(), n_lines + 1, "{shown}");
}

/// What servers wrote is a line of theirs each, with the time and where it comes from.
fn logs_of_servers(home: &Home) {
    for name in ["forger", "we\"ird\\"] {
        let shown = home.mcp(&["logs", name]).with_code(0).stdout;
        is_tame(&shown);
        assert!(shown.contains("forged"), "{shown}");
        for line in shown.lines() {
            let mut words = line.split(' ');
            let time = words.next().unwrap();
            assert!(time.starts_with("20") && time.ends_with('Z'), "{line:?}");
            let source = words.next().unwrap();
            let known = ["stderr", "state", "message:error", "log"];
            assert!(known.contains(&source), "{line:?}");
            assert!(
                source != "state" || !line.contains("WARN forged"),
                "{line:?}"
            );
        }
        for line in home
            .mcp(&["logs", name, "--json"])
            .with_code(0)
            .stdout
            .lines()
        {
            let record: Value = serde_json::from_str(line).unwrap();
            assert!(record.get("seq").is_none(), "{record}");
        }
    }
}

#[test]
fn nobody_can_forge_what_people_are_told() {
    let home = Home::new();
    let _server = forgers(&home);
    let ana = token(&home, "ana");
    let mut command = home.command(["gateway", "--listen", ":0", "-vv"]);
    let child = start(&mut command);
    let mut child = child;
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    let mut until = |wanted: &str| {
        let from = said.len();
        while !said.get(from..).is_some_and(|new| new.contains(wanted)) {
            let length = std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
            assert!(length > 0, "it has ended: {said}");
        }
        said.clone()
    };
    let first = until("listening at ");
    let url = first.split("listening at ").nth(1).unwrap();
    let url = url.split(',').next().unwrap().to_owned();
    until("forger ready");
    let alone = ByHand::new(&format!("{url}/forger"), Some(&ana)).initialized_as(FORGED);
    alone.call("good", &json!({}));
    alone.call(FORGED, &json!({}));
    signal(&child, "-TERM");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut lines, &mut rest).unwrap();
    let told = format!("{said}{rest}");
    let mut complained = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    std::io::Read::read_to_string(stderr, &mut complained).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    is_tame(&told);
    is_tame(&complained);
    let begins = [
        "forged",
        "data:",
        "event:",
        "{\"seq\"",
        "WARN forged",
        "# forged",
        "cocode_forged",
    ];
    for line in told.lines().chain(complained.lines()) {
        assert!(!begins.iter().any(|one| line.starts_with(one)), "{line:?}");
    }
}
