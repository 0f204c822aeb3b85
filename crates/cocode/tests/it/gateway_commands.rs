//! A gateway whose clients could change files or run commands requires a token, and creates one.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::fronts::Site;
use crate::gateway::Running;
use crate::harness::{mcp_at, mcp_by, start};
use crate::home::Home;
use crate::http::ByHand;
use crate::interrupting::signal;

const FLAGS: [&str; 3] = ["--allow-shell", "--allow-write", "--agent"];

fn names(home: &Home) -> Vec<String> {
    let listed = home.json(&["gateway", "token", "list"]);
    let tokens = listed["tokens"].as_array().unwrap();
    let name = |token: &Value| token["name"].as_str().unwrap().to_owned();
    tokens.iter().map(name).collect()
}

/// Whether any file below a directory has this text.
fn is_kept(directory: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return is_kept(&path, text);
        }
        let bytes = if path.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

#[test]
fn gateway_that_can_change_things_creates_token_and_requires_it() {
    for flag in FLAGS {
        let home = Home::new();
        let log = home.home().join("gateway.log");
        let words = [flag, "-v", "--log-file", log.to_str().unwrap()];
        let mut gateway = Running::start(&home, &words);
        gateway.until_ready(&["workspace"]);
        let nobody = ByHand::new(gateway.url(), None);
        nobody.request("initialize", &json!({})).with_status(401);
        let token = gateway.token();
        assert_eq!(gateway.first["token"]["name"], "initial");
        let clients = gateway.first["clients"].as_object().unwrap();
        for (client, line) in clients {
            assert!(line.as_str().unwrap().contains(&token), "{client}");
        }
        let client = ByHand::new(gateway.url(), Some(&token)).initialized();
        assert!(client.tools().contains(&"mcp__workspace__read".to_owned()));
        let words = ["call", "mcp__workspace__list"];
        mcp_by(&token, &words, gateway.url()).with_code(0);
        let (code, said) = gateway.end("-TERM");
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains(&token), "{flag}");
        assert!(!is_kept(&home.home(), &token), "{flag}");
        assert!(home.home().join("gateway.log").is_file());
    }
}

#[test]
fn gateway_started_again_takes_the_token_and_shows_none() {
    let home = Home::new();
    let gateway = Running::start(&home, &["--allow-shell"]);
    let token = gateway.token();
    assert_eq!(gateway.end("-TERM").0, Some(0));
    assert_eq!(names(&home), ["initial"]);
    for words in [&["--allow-shell"][..], &[]] {
        let mut gateway = Running::start(&home, words);
        gateway.until_ready(&["workspace"]);
        assert!(gateway.first["token"].is_null());
        mcp_at(&["tools"], gateway.url()).with_code(4);
        mcp_by(&token, &["tools"], gateway.url()).with_code(0);
        assert_eq!(gateway.end("-TERM").0, Some(0));
    }
    assert_eq!(names(&home), ["initial"]);
}

#[test]
fn gateway_that_only_reads_stays_open_and_creates_no_token() {
    let home = Home::new();
    let mut gateway = Running::start(&home, &[]);
    gateway.until_ready(&["workspace"]);
    assert!(gateway.first["token"].is_null());
    mcp_at(&["tools"], gateway.url()).with_code(0);
    assert_eq!(names(&home), [""; 0]);
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

#[test]
fn start_that_fails_stores_no_token() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = ["gateway", "--listen", &address, "--allow-write", "--json"];
    let refused = home.run(words).with_code(2);
    assert_eq!(refused.error()["code"], "address-in-use");
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn address_of_others_is_refused_instead_of_creating_a_token() {
    let home = Home::new();
    let words = [
        "gateway",
        "--listen",
        "0.0.0.0:0",
        "--allow-write",
        "--json",
    ];
    let refused = home.run(words).with_code(2);
    assert_eq!(refused.error()["code"], "listen-refused");
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn people_read_the_token_once_and_then_how_to_make_another() {
    let home = Home::new();
    let said = |words: &[&str], n_lines: usize| {
        let mut command = home.command(["gateway", "--listen", ":0"]);
        let mut child = start(command.args(words));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said: Vec<String> = lines.take(n_lines).map(Result::unwrap).collect();
        signal(&child, "-TERM");
        let stderr = child.wait_with_output().unwrap().stderr;
        (said, String::from_utf8(stderr).unwrap())
    };
    let (first, complaints) = said(&["--allow-shell", "-q"], 2);
    let token = first[1].rsplit(' ').next().unwrap();
    assert!(token.starts_with("cocode_"), "{first:?}");
    assert!(first[1].contains("shown this once"), "{first:?}");
    assert!(!complaints.contains(token));
    let (again, complaints) = said(&["--allow-shell"], 6);
    assert!(!complaints.contains("sandbox"), "{complaints}");
    assert!(
        again[1].contains("cocode gateway token add NAME"),
        "{again:?}"
    );
    assert!(again[2].contains("$COCODE_TOKEN"), "{again:?}");
    assert!(!again.concat().contains("cocode_"), "{again:?}");
    // A program gets a sandbox that its entry does not ask for.
    home.user_file("mcp.toml", "[mcp_servers.a]\ncommand = 'true'\n");
    let (_, complaints) = said(&["--allow-shell"], 6);
    assert!(
        complaints.contains("programs run in the sandbox `workspace-write`"),
        "{complaints}"
    );
}

#[test]
fn socket_of_the_user_and_the_dashboard_need_no_token() {
    let site = Site::new("");
    let gateway = Running::start(&site.home, &["--allow-write"]);
    let status = site.home.json(&["gateway", "status"]);
    assert_eq!(status["authentication"], "tokens", "{status}");
    let mut front = site.front(&[]);
    front.open(&json!({}));
    assert_eq!(site.status()["url"], json!(gateway.url()));
    let code = gateway.first["dashboard"]["code"].as_str().unwrap();
    let page = gateway.first["dashboard"]["url"].as_str().unwrap();
    let body = json!({ "code": code }).to_string();
    let headers = [("Content-Type", "application/json")];
    let url = format!("{page}api/v1/sign-in");
    crate::http::ask(&url, "POST", &headers, &body).with_status(200);
}

#[test]
fn file_tools_of_clients_do_not_change_what_the_gateway_obeys() {
    let home = Home::new();
    let root = home.project();
    let audit = root.join("audit");
    let config = format!("[gateway.audit]\ndirectory = \"{}\"\n", audit.display());
    home.project_file("c.toml", &config);
    let words = [
        "--config",
        "c.toml",
        "--root",
        root.to_str().unwrap(),
        "--allow-write",
    ];
    let mut gateway = Running::start(&home, &words);
    gateway.until_ready(&["workspace"]);
    let client = ByHand::new(gateway.url(), Some(&gateway.token())).initialized();
    let write = |path: &str| {
        let arguments = json!({ "path": path, "content": "" });
        client.call("mcp__workspace__write", &arguments).to_string()
    };
    for path in [
        "c.toml",
        ".mcp.toml",
        ".cocode.local.toml",
        ".cocode/config.toml",
        ".git",
        "audit/audit.jsonl",
    ] {
        assert!(write(path).contains("belongs to cocode itself"), "{path}");
    }
    assert!(write("other.toml").contains("created"));
    let read = client.call("mcp__workspace__read", &json!({ "path": "c.toml" }));
    assert!(
        read.to_string().contains("belongs to cocode itself"),
        "{read}"
    );
    assert_eq!(
        std::fs::read_to_string(root.join("c.toml")).unwrap(),
        config
    );
}
