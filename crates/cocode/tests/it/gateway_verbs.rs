//! Looking after a gateway that runs: by its socket, without a token, and at its address, with one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use crate::fronts::{Site, another_build, wait_while};
use crate::gateway::Running;
use crate::harness::{Finished, start};
use crate::home::Home;
use crate::http::{ByHand, ask};
use crate::status::entry;

/// The socket of whoever holds the place.
fn socket(home: &Home) -> PathBuf {
    let status = home.json(&["mcp", "daemon", "status"]);
    status["socket"].as_str().unwrap().into()
}

/// What is answered to a request at a socket: its status, and all of it.
fn request(socket: &Path, text: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.unwrap_or_else(|| panic!("{answer}")), answer)
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
}

#[test]
fn a_gateway_says_how_it_is_and_lets_people_in() {
    let server = Script::new().stdio();
    let home = Home::new();
    home.user_file("mcp.toml", &entry("one", &server));
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["one"]);
    let base = gateway.url().strip_suffix("/mcp").unwrap().to_owned();
    let status = home.json(&["gateway", "status"]);
    assert_eq!(status["url"], json!(gateway.url()));
    assert_eq!(status["dashboard"], json!(format!("{base}/")));
    assert_eq!(status["authentication"], json!("open"));
    assert_eq!(status["servers"]["ready"], json!(1), "{status}");
    let shown = home.run(["gateway", "status"]).clean();
    for word in [
        "every program of that machine",
        "1 ready",
        "0 under way",
        &base,
    ] {
        assert!(shown.contains(word), "{word:?} is not in:\n{shown}");
    }
    // The code of the start is worthless from then on, and the new one lets somebody in.
    let code = home.json(&["gateway", "code"]);
    assert_eq!(code["url"], json!(format!("{base}/")));
    let sign_in = |code: &Value| {
        let body = json!({ "code": code }).to_string();
        let headers = [("Content-Type", "application/json")];
        ask(&format!("{base}/api/v1/sign-in"), "POST", &headers, &body)
    };
    sign_in(&gateway.first["dashboard"]["code"]).with_status(401);
    let signed_in = sign_in(&code["code"]).with_status(200);
    let port = base.rsplit(':').next().unwrap();
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with(&format!("cocode_session_{port}=")),
        "{cookie}"
    );
    let said = home.run(["gateway", "code"]).with_code(0);
    assert!(
        said.stdout
            .starts_with(&format!("dashboard at {base}/, sign in with "))
    );
    said.complains(&["good once"]);
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

#[test]
fn who_is_connected_and_what_was_called_is_shown() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let home = &site.home;
    let mut gateway = Running::start(home, &[]);
    gateway.until_ready(&["one"]);
    let nobody = home.run(["gateway", "sessions"]).with_code(0);
    nobody.complains(&["nobody is connected"]);
    home.run(["gateway", "calls"])
        .with_code(0)
        .complains(&["nothing was called yet"]);
    let client = ByHand::new(gateway.url(), None).initialized();
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    front.skip_notifications();
    let connected = home.json(&["gateway", "sessions"]);
    assert_eq!(
        connected["sessions"][0]["endpoint"],
        json!("/mcp"),
        "{connected}"
    );
    let front_pid = front.child().id();
    assert_eq!(
        connected["fronts"][0]["pid"],
        json!(front_pid),
        "{connected}"
    );
    let shown = home.run(["gateway", "sessions"]).clean();
    for word in ["/mcp", "http", "mcp serve", &format!("process {front_pid}")] {
        assert!(shown.contains(word), "{word:?} is not in:\n{shown}");
    }
    // Calls of both, and one that comes while somebody watches.
    let params = json!({"name": "mcp__one__echo", "arguments": {"n": 1}});
    client.request("tools/call", &params).with_status(200);
    let mut following = start(&mut home.command(["gateway", "calls", "-f", "--json"]));
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!(first["name"], json!("echo"), "{first}");
    assert_eq!(first["state"], json!("ok"), "{first}");
    let params = json!({"name": "mcp__one__echo", "arguments": {"n": 2}});
    client.request("tools/call", &params).with_status(200);
    let second = next();
    assert_eq!(second["state"], json!("ok"), "{second}");
    assert_ne!(second["id"], first["id"]);
    let shown = home.run(["gateway", "calls", "--limit", "1"]).clean();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert!(shown.contains("tools/call echo"), "{shown}");
    // Whoever follows ends with the gateway.
    front.leave();
    assert_eq!(gateway.end("-TERM").0, Some(0));
    Finished::of(following.wait_with_output().unwrap()).with_code(0);
}

#[test]
fn a_gateway_is_stopped_in_order() {
    let gate = Gate::new();
    let script = Script::new().on("tools/call").hold(&gate);
    let server = script.text_result("late, but there").stdio();
    let home = Home::new();
    home.user_file("mcp.toml", &entry("one", &server));
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["one"]);
    let url = gateway.server("one");
    let mut caller = home.command(["mcp", "call", "echo", "--url", &url]);
    let caller = start(&mut caller);
    let messages = server.received();
    messages.wait_for_blocking(|message| message.is("tools/call"));
    let stopping = start(&mut home.command(["gateway", "stop", "--json"]));
    let free = || home.json(&["mcp", "daemon", "status"])["running"] == json!(false);
    wait_while(|| !free());
    gate.open();
    let called = Finished::of(caller.wait_with_output().unwrap()).clean();
    assert!(called.contains("late, but there"), "{called}");
    let stopped = Finished::of(stopping.wait_with_output().unwrap()).with_code(0);
    let stopped: Value = serde_json::from_str(&stopped.stdout).unwrap();
    assert_eq!(stopped["forced"], json!(false), "{stopped}");
    assert!(stopped["stopped"].is_u64(), "{stopped}");
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

#[test]
fn without_a_gateway_it_is_said_what_there_is() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let home = &site.home;
    for verb in ["status", "code", "sessions", "calls", "stop"] {
        let none = home.run(["gateway", verb]).with_code(3);
        none.complains(&[
            "no gateway",
            "`cocode gateway` starts one",
            "--url",
            "no-gateway",
        ]);
    }
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    let daemon = format!(
        "the daemon behind `cocode mcp serve` (process {})",
        site.daemon()
    );
    for verb in ["status", "stop"] {
        let none = home.run(["gateway", verb]).with_code(3);
        none.complains(&[&daemon, "no-gateway"]);
    }
    // It is no gateway, but can be looked after at its socket as far as it goes.
    let socket = socket(home);
    let (status, answer) = request(&socket, &get("/api/v1/servers/one", ""));
    assert_eq!(status, 503, "{answer}");
    assert!(answer.contains("no-gateway"), "{answer}");
    let (status, answer) = request(&socket, &get("/readyz", ""));
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn a_gateway_elsewhere_is_asked_with_the_token_of_an_administrator() {
    let home = Home::new();
    let token = |name: &str, words: &[&str]| {
        let made = home.run(["gateway", "token", "add", name].iter().chain(words));
        made.with_code(0).stdout.trim().to_owned()
    };
    let (ana, bob) = (token("ana", &["--admin"]), token("bob", &[]));
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["workspace"]);
    let url = gateway.url().to_owned();
    // Somebody who shares nothing with the gateway but its address.
    let elsewhere = Home::new();
    let asking = |words: &[&str], variable: &str, token: Option<&str>| {
        let mut command =
            elsewhere.command(["gateway"].iter().chain(words).chain(&["--url", &url]));
        if let Some(token) = token {
            command.env(variable, token);
        }
        Finished::of(command.output().unwrap())
    };
    let unknown = asking(&["status"], "", None).with_code(4);
    unknown.complains(&["refuses", "COCODE_TOKEN", "--admin", "gateway-refused"]);
    let client = asking(&["status"], "COCODE_TOKEN", Some(&bob)).with_code(4);
    client.complains(&["refuses", "gateway-refused"]);
    let wrong = asking(&["status"], "COCODE_TOKEN", Some("cocode_wrong")).with_code(4);
    assert!(!wrong.stderr.contains("cocode_wrong"), "{}", wrong.stderr);
    let unset = asking(&["status", "--token-env", "ELSEWHERE"], "", None).with_code(2);
    unset.complains(&["`ELSEWHERE` is not set"]);
    let status = asking(&["status", "--json"], "COCODE_TOKEN", Some(&ana)).with_code(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["authentication"], json!("tokens"), "{status}");
    let other = asking(
        &["sessions", "--token-env", "ELSEWHERE"],
        "ELSEWHERE",
        Some(&ana),
    );
    other.with_code(0).complains(&["nobody is connected"]);
    let stopped = asking(&["stop"], "COCODE_TOKEN", Some(&ana)).with_code(0);
    assert!(stopped.stdout.contains("the gateway ends"), "{stopped:?}");
    assert_eq!(gateway.wait().0, Some(0));
    let gone = asking(&["status"], "COCODE_TOKEN", Some(&ana)).with_code(3);
    gone.complains(&["cannot be reached", "gateway-unavailable"]);
}

#[test]
fn gateways_beside_a_daemon_have_control_sockets_of_their_own() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let home = &site.home;
    let mut front = site.front(&[]);
    front.open(&json!({}));
    front.skip_notifications();
    let daemon = site.daemon();
    let gateway = Running::start(home, &[]);
    let status = home.json(&["gateway", "status"]);
    assert_eq!(status["url"], json!(gateway.url()), "{status}");
    for verb in ["code", "sessions", "calls"] {
        home.run(["gateway", verb]).with_code(0);
    }
    let another = Running::start(home, &[]);
    let unclear = home.run(["gateway", "stop"]).with_code(2);
    unclear.complains(&[
        "2 gateways of yours",
        gateway.url(),
        another.url(),
        "--url URL",
    ]);
    for mut one in [another, gateway] {
        let stopped = ["gateway", "stop", "--url", one.url()];
        home.run(stopped).with_code(0);
        assert_eq!(one.wait().0, Some(0));
    }
    home.run(["gateway", "status"])
        .with_code(3)
        .complains(&["no-gateway"]);
    assert_eq!(site.daemon(), daemon, "the daemon was ended as well");
    assert_eq!(front.call(7, "mcp__one__echo"), r#"{"n":7}"#);
}

/// Needs the right to make namespaces.
#[test]
#[cfg(target_os = "linux")]
fn system_programs_in_other_namespaces_are_not_served() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let home = &site.home;
    let _gateway = Running::start(home, &[]);
    let program = home.command(["gateway", "code"]);
    for namespaces in [
        "--user",
        "--user --map-root-user --mount --net",
        "--pid --fork",
    ] {
        let mut command = std::process::Command::new("unshare");
        command
            .args(namespaces.split(' '))
            .arg(program.get_program());
        command.args(program.get_args());
        command.env_clear().envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.current_dir(home.project());
        let output = Finished::of(command.output().unwrap());
        assert_ne!(output.code, Some(0), "{namespaces}: {}", output.stdout);
        output.complains(&["sandbox"]);
    }
    home.run(["gateway", "code"]).with_code(0);
}

#[test]
fn server_without_its_secret_has_the_same_state_everywhere() {
    let home = Home::new();
    let entry = "[mcp_servers.shut]\nurl = 'http://127.0.0.1:9/mcp'\nbearer_token_env_var = 'NOT_SET_HERE'\n";
    home.user_file("mcp.toml", entry);
    let command = home.command(["mcp", "status", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&command.stdout).unwrap();
    assert_eq!(listed["servers"][0]["state"], "failed", "{listed}");
    let mut gateway = Running::start(&home, &[]);
    let event = gateway.until_state("shut", "failed");
    assert_eq!(
        event["server"]["error"]["code"], "secret-unavailable",
        "{event}"
    );
    let (status, answer) = request(&socket(&home), &get("/api/v1/servers/shut", ""));
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(r#""state":"failed""#), "{answer}");
}

#[test]
fn who_comes_by_the_socket_is_the_user_and_no_browser() {
    let home = Home::new();
    // Everybody else needs a token.
    home.run(["gateway", "token", "add", "ana"]).with_code(0);
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["workspace"]);
    let socket = socket(&home);
    let (status, answer) = request(&socket, &get("/api/v1/session", ""));
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(r#""name":"local""#), "{answer}");
    assert!(answer.contains(r#""isAdmin":true"#), "{answer}");
    for (headers, refused) in [
        ("Origin: http://localhost:3000\r\n", "cross-origin"),
        ("Sec-Fetch-Site: same-origin\r\n", "cross-origin"),
        ("Origin: https://evil.example\r\n", "origin is not allowed"),
    ] {
        let (status, answer) = request(&socket, &get("/api/v1/tokens", headers));
        assert_eq!(status, 403, "{headers}: {answer}");
        assert!(answer.contains(refused), "{headers}: {answer}");
    }
    let rebound = "GET /api/v1/tokens HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(request(&socket, rebound).0, 403);
    // MCP is not served there.
    assert_eq!(
        request(&socket, &get("/mcp", "Accept: text/event-stream\r\n")).0,
        404
    );
    // Whoever has nothing to say, or says it badly, keeps nobody from ending.
    let _silent = UnixStream::connect(&socket).unwrap();
    let mut half = UnixStream::connect(&socket).unwrap();
    half.write_all(b"GET /api/v1/status HT").unwrap();
    assert_eq!(request(&socket, "GET / nonsense\r\n\r\n").0, 400);
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

#[test]
fn programs_of_another_build_look_after_the_same_gateway() {
    let home = Home::new();
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["workspace"]);
    let other = another_build(&home.home());
    let run = |words: &[&str]| {
        let usual = home.command(words);
        let mut command = std::process::Command::new(&other);
        command.args(usual.get_args());
        for (name, value) in usual.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(home.project());
        Finished::of(command.output().unwrap())
    };
    run(&["gateway", "status"]).with_code(0);
    run(&["mcp", "daemon", "status"]).with_code(0);
    run(&["gateway", "stop"]).with_code(0);
    assert_eq!(gateway.wait().0, Some(0));
}

#[test]
fn a_gateway_of_an_older_version_is_said_to_be_one() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(&["--server", "one"]);
    front.open(&json!({}));
    let socket = socket(&site.home);
    front.leave();
    site.home.mcp(&["daemon", "stop"]).with_code(0);
    // It reads a line, refuses what it does not know, and says of which build it is.
    let listener = UnixListener::bind(&socket).unwrap();
    let old = std::thread::spawn(move || {
        for connected in listener.incoming() {
            let stream = connected.unwrap();
            let mut said = String::new();
            let mut lines = BufReader::new(&stream);
            if lines.read_line(&mut said).unwrap_or(0) == 0 {
                continue;
            }
            if said.starts_with("end") {
                return;
            }
            let refused = if said.starts_with('{') {
                "other-build"
            } else {
                "not-understood"
            };
            let answer =
                json!({"channel": 1, "build": "0.0.1+a.b.c", "pid": 1, "refused": refused});
            let _nobody_may_listen = writeln!(&stream, "{answer}");
        }
    });
    for words in [
        &["gateway", "status"][..],
        &["gateway", "code"],
        &["mcp", "daemon", "status"],
        &["mcp", "restart", "one"],
    ] {
        let refused = site.home.run(words).with_code(3);
        refused.complains(&["it is of version 0.0.1", "`cocode mcp daemon stop` ends it"]);
    }
    // Servers are looked at without it.
    let status = site.home.mcp(&["status"]).with_code(0);
    status.complains(&["it is of version 0.0.1"]);
    let mut end = UnixStream::connect(&socket).unwrap();
    end.write_all(b"end\n").unwrap();
    old.join().unwrap();
    std::fs::remove_file(socket).unwrap();
}

#[test]
fn behind_a_proxy_the_dashboard_is_where_the_settings_say() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[gateway]\nadmin_url = 'https://gate.example'\n",
    );
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["workspace"]);
    let code = home.json(&["gateway", "code"]);
    assert_eq!(code["url"], json!("https://gate.example/"));
    assert_eq!(
        gateway.first["dashboard"]["url"],
        json!("https://gate.example/")
    );
    let base = gateway.url().strip_suffix("/mcp").unwrap().to_owned();
    let port = base.rsplit(':').next().unwrap();
    // As a proxy passes it on, that does not keep the name.
    let origin = ("Origin", "https://gate.example");
    let body = json!({ "code": code["code"] }).to_string();
    let sign_in = |origin: (&str, &str)| {
        let headers = [("Content-Type", "application/json"), origin];
        ask(&format!("{base}/api/v1/sign-in"), "POST", &headers, &body)
    };
    sign_in(("Origin", "http://gate.example")).with_status(403);
    sign_in(("Origin", "https://evil.example")).with_status(403);
    let signed_in = sign_in(origin).with_status(200);
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    let name = format!("__Host-cocode_session_{port}=");
    assert!(cookie.starts_with(&name), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    let csrf = signed_in.json()["csrf"].as_str().unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let stop = |origin: (&str, &str)| {
        let headers = [("Cookie", &*cookie), ("X-Cocode-CSRF", &*csrf), origin];
        ask(&format!("{base}/api/v1/stop"), "POST", &headers, "")
    };
    stop(("Origin", "https://evil.example")).with_status(403);
    stop(origin).with_status(202);
    assert_eq!(gateway.wait().0, Some(0));
    // What is no address of a host is refused before anything else.
    home.user_file(
        "config.toml",
        "[gateway]\nadmin_url = 'https://gate.example/path'\n",
    );
    let refused = home.run(["gateway", "--listen", ":0"]).with_code(2);
    refused.complains(&["gateway.admin_url", "without a path"]);
}
