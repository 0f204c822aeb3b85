//! The authorization server, the MCP server behind it and their user, with a client that knows no
//! more than it must.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use cocode_testkit::{Browser, Decision, OAuthPeer};
use serde_json::{Value, json};

use crate::http_client::{Client, Reply};

/// The example of RFC 7636.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Nobody listens here.
const CALLBACK: &str = "http://127.0.0.1:9/callback";

fn client_of(url: &str) -> Client {
    let authority = url.strip_prefix("http://").unwrap();
    let authority = authority.split('/').next().unwrap();
    Client::connect_to(authority.parse().unwrap())
}

fn authorization_url(peer: &OAuthPeer, callback: &str, scope: &str) -> String {
    format!(
        "{}/auth?response_type=code&client_id={}&redirect_uri={callback}&scope={scope}\
         &resource={}&state=some-state&prompt=consent\
         &code_challenge={CHALLENGE}&code_challenge_method=S256",
        peer.issuer(),
        peer.public_client(),
        peer.resource(),
    )
}

fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(value.replace("%3A", ":").replace("%2F", "/"))
}

/// Asks for tokens; the status and what came.
fn tokens(peer: &OAuthPeer, form: &str) -> (u16, Value) {
    let form = format!(
        "{form}&client_id={}&resource={}",
        peer.public_client(),
        peer.resource()
    );
    let mut client = client_of(peer.issuer());
    let header = ("Content-Type", "application/x-www-form-urlencoded");
    client.send("POST", "/token", &[header], &form);
    let reply = client.reply();
    (reply.status, reply.json())
}

fn initialize(peer: &OAuthPeer, token: &Value) -> Reply {
    let authorization = format!("Bearer {}", token.as_str().unwrap());
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "plain", "version": "1" },
        },
    });
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Content-Type", "application/json"),
    ];
    client_of(peer.mcp()).call(&message, &headers)
}

#[test]
fn oauth_peer_gives_rotating_tokens_to_whoever_the_user_allows() {
    let peer = OAuthPeer::start();
    let url = authorization_url(&peer, CALLBACK, "mcp:basic%20offline_access");
    let back = peer.redirect(&url, Decision::Allow);
    assert!(back.starts_with(CALLBACK), "{back}");
    assert_eq!(parameter(&back, "iss").as_deref(), Some(peer.issuer()));
    let code = parameter(&back, "code").unwrap();
    let form = format!(
        "grant_type=authorization_code&code={code}&code_verifier={VERIFIER}&redirect_uri={CALLBACK}"
    );
    let (status, first) = tokens(&peer, &form);
    assert_eq!(status, 200, "{first}");
    assert_eq!(initialize(&peer, &first["access_token"]).status, 200);

    peer.expire();
    let refused = initialize(&peer, &first["access_token"]);
    assert_eq!(refused.status, 401);
    let challenge = refused.header("WWW-Authenticate").unwrap();
    assert!(challenge.contains(r#"scope="mcp:basic""#), "{challenge}");

    let refresh = |tokens: &Value| {
        let token = tokens["refresh_token"].as_str().unwrap();
        format!("grant_type=refresh_token&refresh_token={token}")
    };
    let (status, second) = tokens(&peer, &refresh(&first));
    assert_eq!(status, 200, "{second}");
    assert_eq!(initialize(&peer, &second["access_token"]).status, 200);
    // The old one once more takes the new ones with it.
    assert_eq!(tokens(&peer, &refresh(&first)).0, 400);
    assert_eq!(initialize(&peer, &second["access_token"]).status, 401);
    assert_eq!(tokens(&peer, &refresh(&second)).0, 400);

    let state = peer.wait_for("/tokens/refresh_token/invalid_grant", 2);
    assert_eq!(state["refresh_reuse"], 1);
    assert_eq!(state["tokens"]["refresh_token"]["success"], 1);
    assert_eq!(state["unauthorized"], json!({ "expired": 1, "revoked": 1 }));
    assert_eq!(peer.count("/accepted"), 2);
    assert_eq!(peer.count("/registrations/success"), 0);
}

#[test]
fn oauth_peer_says_no_for_the_user_and_by_settings() {
    let peer = OAuthPeer::start();
    let url = authorization_url(&peer, CALLBACK, "mcp:basic");
    let denied = peer.redirect(&url, Decision::Deny);
    assert_eq!(
        parameter(&denied, "error").as_deref(),
        Some("access_denied")
    );
    peer.set(&json!({ "consent": "deny" }));
    let denied = peer.redirect(&url, Decision::Allow);
    assert_eq!(
        parameter(&denied, "error").as_deref(),
        Some("access_denied")
    );
    assert_eq!(peer.count("/authorizations/access_denied"), 2);
}

/// A client that shows this page to everyone: its address, and what is asked of it.
fn listen(page: &'static str) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/callback", listener.local_addr().unwrap());
    let (asked, requests) = mpsc::channel();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let asked = asked.clone();
            // Browsers open connections that they may never use.
            thread::spawn(move || show(&socket.unwrap(), page, &asked));
        }
    });
    (address, requests)
}

fn show(socket: &TcpStream, page: &str, asked: &mpsc::Sender<String>) {
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    lines.find(|line| line.as_ref().unwrap().is_empty());
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\
         Content-Security-Policy: default-src 'none'\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    );
    let mut socket = socket;
    socket.write_all(answer.as_bytes()).unwrap();
    // Nobody listens when the test is over.
    let _over = asked.send(request);
}

#[test]
fn oauth_peer_offers_its_user_as_a_browser_command() {
    let peer = OAuthPeer::start();
    let (callback, requests) = listen("<title>Back</title><h1>Thank you</h1>");
    let url = authorization_url(&peer, &callback, "mcp:basic");
    let command = peer.browser(Browser::Plain, Decision::Allow);
    let status = Command::new(command).arg(url).status().unwrap();
    assert!(status.success(), "{}", peer.browser_log());
    assert!(requests.recv().unwrap().contains("code="));
    let report = json!({
        "url_without_query": callback, "status": 200, "title": "Back", "heading": "Thank you",
    });
    assert_eq!(peer.visits(), [report]);
}

#[test]
fn system_oauth_peer_clicks_through_with_chromium() {
    let peer = OAuthPeer::start();
    let (callback, requests) =
        listen("<title>Back</title><h1>Thank you</h1><script>document.title = 'No'</script>");
    let url = authorization_url(&peer, &callback, "mcp:basic");
    let report = peer.browse(&url, Decision::Allow);
    assert!(requests.recv().unwrap().contains("code="));
    assert_eq!(report["url_without_query"], json!(callback));
    assert_eq!(report["title"], "Back", "the script must not run");
    assert_eq!(report["heading"], "Thank you");
    assert_eq!(report["csp_violations"], json!(["script-src-elem: inline"]));
    assert_eq!(report["console_errors"].as_array().unwrap().len(), 1);

    let (callback, requests) = listen("<title>Back</title><h1>What a pity</h1>");
    let url = authorization_url(&peer, &callback, "mcp:basic");
    let report = peer.browse(&url, Decision::Deny);
    assert!(requests.recv().unwrap().contains("error=access_denied"));
    assert_eq!(report["heading"], "What a pity");
    assert_eq!(report["csp_violations"], json!([]));
    assert_eq!(report["console_errors"], json!([]));
}
