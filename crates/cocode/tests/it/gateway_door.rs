//! The doors of a gateway: what is taken in of strangers, what one principal may take, and what ends when
//! somebody may not stay, also where the gateway is looked after.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::Running;
use crate::home::Home;
use crate::http::{ByHand, Open, ask, open};

/// How long a test waits for the next byte; what never comes is a failure.
const BYTE_WITHIN: Duration = Duration::from_secs(30);

/// Where a gateway is looked after, if not where clients find it.
const OFFICE: &str = "[gateway]\nadmin_listen = \"127.0.0.2:0\"\n";

#[track_caller]
fn token(home: &Home, words: &[&str]) -> String {
    let made = home.run(["gateway", "token", "add"].iter().chain(words));
    made.with_code(0).stdout.trim().to_owned()
}

fn gateway(home: &Home) -> Running {
    let mut gateway = Running::start(home, &[]);
    gateway.until_state("workspace", "ready");
    gateway
}

/// Where a gateway is looked after, without a slash at the end.
fn office(gateway: &Running) -> String {
    let url = gateway.first["dashboard"]["url"].as_str().unwrap();
    url.strip_suffix('/').unwrap().to_owned()
}

/// The stream of events, for somebody with this token.
#[track_caller]
fn events(office: &str, token: &str) -> Open {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let stream = open(&format!("{office}/api/v1/events"), "GET", &headers, "");
    assert_eq!(stream.answer.status, 200, "{:?}", stream.answer);
    stream
}

/// What is answered to a body of which nothing comes but that it is large.
fn announced(url: &str, line: &str, headers: &[&str]) -> (u16, String) {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BYTE_WITHIN)).unwrap();
    let more = headers.join("\r\n");
    let end = if more.is_empty() { "\r\n" } else { "\r\n\r\n" };
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: 16000000\r\n{more}{end}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    let status = first.split(' ').nth(1).unwrap().parse().unwrap();
    (status, rest)
}

#[test]
fn nothing_is_taken_in_of_who_has_not_shown_who_they_are() {
    let home = Home::new();
    let (ana, root) = (token(&home, &["ana"]), token(&home, &["root", "--admin"]));
    let gateway = gateway(&home);
    let url = gateway.url().strip_suffix("/mcp").unwrap();
    for (line, status) in [
        ("POST /nothing", 404),
        ("POST /", 405),
        ("GET /healthz", 200),
        ("POST /api/v1/servers", 401),
        ("POST /api/v1/servers/workspace/call", 401),
        ("DELETE /api/v1/servers/workspace", 401),
        ("POST /mcp", 401),
        ("POST /mcp/workspace", 401),
        ("POST /messages?sessionId=x", 401),
    ] {
        let (found, answer) = announced(url, line, &[]);
        assert_eq!(found, status, "{line}: {answer}");
        let (found, answer) = announced(url, line, &["Cookie: cocode_session=nobodys"]);
        assert_eq!(found, status, "{line}: {answer}");
    }
    let (status, answer) = announced(url, "POST /api/v1/sign-in", &[]);
    assert_eq!(status, 413, "{answer}");
    assert!(answer.contains("body-too-large"), "{answer}");
    // Who is known gets as far as the route goes.
    for token in [&ana, &root] {
        let bearer = format!("Authorization: Bearer {token}");
        let (status, answer) = announced(url, "POST /api/v1/servers", &[&bearer]);
        assert_eq!(status, 413, "{answer}");
        assert!(answer.contains("body-too-large"), "{answer}");
        let (status, _) = announced(url, "POST /nothing", &[&bearer]);
        assert_eq!(status, 404);
    }
}

#[test]
fn a_revoked_token_ends_what_is_open_where_the_gateway_is_looked_after() {
    let home = Home::new();
    home.user_file("config.toml", OFFICE);
    let (root, other) = (
        token(&home, &["root", "--admin"]),
        token(&home, &["other", "--admin"]),
    );
    let gateway = gateway(&home);
    let office = office(&gateway);
    assert_ne!(office, gateway.url().strip_suffix("/mcp").unwrap());
    let by_command = events(&office, &root);
    home.run(["gateway", "token", "revoke", "root"])
        .with_code(0);
    by_command.rest();
    // Also if it is done there.
    let root = token(&home, &["root", "--admin"]);
    let by_page = events(&office, &root);
    let bearer = format!("Bearer {other}");
    let headers = [("Authorization", bearer.as_str())];
    ask(
        &format!("{office}/api/v1/tokens/root"),
        "DELETE",
        &headers,
        "",
    )
    .with_status(204);
    by_page.rest();
}

#[test]
fn who_is_no_administrator_any_more_hears_no_more_events() {
    let home = Home::new();
    home.user_file("config.toml", OFFICE);
    let root = token(&home, &["root", "--admin"]);
    let ana = token(&home, &["ana"]);
    let gateway = gateway(&home);
    let office = office(&gateway);
    let stream = events(&office, &root);
    let session = ByHand::new(gateway.url(), Some(&root)).initialized();
    home.user_file(
        "config.toml",
        &format!(
            "{OFFICE}[gateway.principals.root]\nadmin = false\n[gateway.principals.ana]\nadmin = true\n"
        ),
    );
    stream.rest();
    // They may use servers as before.
    assert!(!session.tools().is_empty());
    // And who is one by the configuration alone is so for as long as that says it.
    let stream = events(&office, &ana);
    home.user_file("config.toml", OFFICE);
    stream.rest();
}

#[test]
fn metrics_are_open_where_somebody_says_so() {
    let home = Home::new();
    home.user_file("config.toml", OFFICE);
    token(&home, &["ana"]);
    let running = gateway(&home);
    ask(&format!("{}/metrics", office(&running)), "GET", &[], "").with_status(401);
    assert_eq!(running.end("-TERM").0, Some(0));
    home.user_file("config.toml", &format!("{OFFICE}metrics = \"open\"\n"));
    let running = gateway(&home);
    let office = office(&running);
    let metrics = ask(&format!("{office}/metrics"), "GET", &[], "").with_status(200);
    assert!(
        metrics.body.contains("cocode_build_info"),
        "{}",
        metrics.body
    );
    ask(&format!("{office}/api/v1/status"), "GET", &[], "").with_status(401);
    // Not where clients are.
    let url = running.url().strip_suffix("/mcp").unwrap();
    ask(&format!("{url}/metrics"), "GET", &[], "").with_status(404);
}

#[test]
fn a_principal_has_so_many_sessions_and_it_is_told_whose_they_are() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[gateway.principals.bob]\nmax_sessions = 2\n",
    );
    let (ana, bob) = (token(&home, &["ana", "--admin"]), token(&home, &["bob"]));
    let gateway = gateway(&home);
    let url = gateway.url();
    let of = |token: &str| ByHand::new(url, Some(token)).initialized();
    let sessions = [of(&bob), of(&bob)];
    let refused = ByHand::new(url, Some(&bob)).request("initialize", &json!({}));
    let refused = refused.with_status(429);
    assert!(
        refused.body.contains("You may have 2 sessions"),
        "{refused:?}"
    );
    let anas = of(&ana);
    let bearer = format!("Bearer {ana}");
    let headers = [("Authorization", bearer.as_str())];
    let listed = format!("{}/api/v1/sessions", url.strip_suffix("/mcp").unwrap());
    let listed = ask(&listed, "GET", &headers, "").with_status(200).json();
    let listed: Vec<_> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| [&session["principal"], &session["client"]].map(Value::clone))
        .collect();
    let client = json!("by-hand by-hand");
    let whose = |name: &str| [json!(name), client.clone()];
    assert_eq!(listed, [whose("bob"), whose("bob"), whose("ana")]);
    // Whoever ends one may begin another, and more may be allowed while it runs.
    sessions[0].send("DELETE", "").with_status(204);
    of(&bob);
    home.user_file(
        "config.toml",
        "[gateway.principals.bob]\nmax_sessions = 3\n",
    );
    let again = || ByHand::new(url, Some(&bob)).request("initialize", &json!({}));
    while again().status == 429 {}
    assert!(!anas.tools().is_empty());
}

#[test]
fn what_listens_everywhere_is_warned_of_and_found_at_one_address() {
    let home = Home::new();
    home.user_file("config.toml", "[gateway]\nadmin_listen = \"0.0.0.0:0\"\n");
    token(&home, &["ana"]);
    let running = gateway(&home);
    let office = office(&running);
    assert!(office.starts_with("http://127.0.0.1:"), "{office}");
    ask(&format!("{office}/healthz"), "GET", &[], "").with_status(200);
    let (code, told) = running.end("-TERM");
    assert_eq!(code, Some(0));
    for part in ["0.0.0.0:0", "--tls-cert", "--allow-host"] {
        assert!(told.contains(part), "{part} in {told}");
    }
}
