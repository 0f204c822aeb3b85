//! A running gateway that takes access tokens of a scripted issuer: tokens that must not let anybody in, and
//! that nothing comes of them.

use cocode_testkit::{HttpServer, Issuer, Script, Signer, encoded, now};
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::gateway_access::token;
use crate::home::Home;
use crate::http::{Answer, ByHand, ask, open};

/// The gateway as tokens name it.
const RESOURCE: &str = "https://gateway.example/mcp";
/// The server behind it.
const SERVER: &str = "counted";
const TOOL: &str = "mcp__counted__tool-0";

/// A gateway, the issuer that it believes, and a server that counts its calls.
struct House {
    gateway: Running,
    issuer: Issuer,
    server: HttpServer,
    /// The token of who may look after it.
    root: String,
    home: Home,
}

impl House {
    fn new(keys: &[&Signer]) -> Self {
        Self::with(Issuer::start(keys), &[], "")
    }

    /// With more issuers, and more in the configuration.
    fn with(issuer: Issuer, others: &[&Issuer], more: &str) -> Self {
        let home = Home::new();
        let server = Script::new().tools(1, 10).http();
        let entry = format!("[mcp_servers.{SERVER}]\nurl = '{}'\n", server.url());
        home.user_file("mcp.toml", &entry);
        let issuers: Vec<&str> = std::iter::once(&issuer)
            .chain(others.iter().copied())
            .map(Issuer::url)
            .collect();
        let config = format!(
            "[gateway.oauth]\nissuers = {}\nresource = '{RESOURCE}'\n{more}",
            json!(issuers)
        );
        home.user_file("config.toml", &config);
        let made = home.run(["gateway", "token", "add", "root", "--admin"]);
        let root = made.with_code(0).stdout.trim().to_owned();
        let mut gateway = Running::start(&home, &[]);
        gateway.until_state(SERVER, "ready");
        Self {
            gateway,
            issuer,
            server,
            root,
            home,
        }
    }

    fn claims(&self, subject: &str) -> Value {
        self.issuer.claims(RESOURCE, subject)
    }

    fn client(&self, token: &str) -> ByHand {
        ByHand::new(self.gateway.url(), Some(token))
    }

    /// The address of something else than `/mcp`.
    fn place(&self, path: &str) -> String {
        let url = self.gateway.url();
        format!("{}{path}", url.strip_suffix("/mcp").unwrap())
    }

    /// What the management API says.
    #[track_caller]
    fn api(&self, path: &str) -> Value {
        let bearer = format!("Bearer {}", self.root);
        let url = self.place(&format!("/api/v1{path}"));
        ask(&url, "GET", &[("Authorization", &bearer)], "")
            .with_status(200)
            .json()
    }

    fn calls(&self) -> usize {
        let is_call = |request: &cocode_testkit::HttpRequest| {
            request.body.windows(10).any(|part| part == b"tools/call")
        };
        self.server.requests().count(is_call)
    }

    /// How many were turned away because nobody knows who they are.
    fn turned_away(&self) -> u64 {
        let bearer = format!("Bearer {}", self.root);
        let url = self.place("/metrics");
        let metrics = ask(&url, "GET", &[("Authorization", &bearer)], "").with_status(200);
        let wanted = "cocode_refused_total{reason=\"authentication\"} ";
        let mut lines = metrics.body.lines();
        let count = lines.find_map(|line| line.strip_prefix(wanted)).unwrap();
        count.parse().unwrap()
    }

    /// Tries everything that would do something, and says how it was answered: all alike.
    #[track_caller]
    fn attempts(&self, token: &str) -> Answer {
        let client = self.client(token);
        let refused = modern_call(&client);
        let alike = [
            client.request("initialize", &json!({})),
            client.send("GET", ""),
            client.send("DELETE", ""),
            self.by_get("/sse", token),
            self.by_get("/ws", token),
            self.by_get("/messages?sessionId=x", token),
            self.by_get(&format!("/mcp/{SERVER}"), token),
        ];
        for other in alike {
            let told = |answer: &Answer| {
                let challenge = answer.header("www-authenticate").map(str::to_owned);
                (answer.status, challenge, answer.body.clone())
            };
            assert_eq!(told(&other), told(&refused));
        }
        let all = format!("{refused:?}");
        let repeats = |part: &str| part.len() > 8 && all.contains(part);
        assert!(!token.split('.').any(repeats), "it was echoed: {all}");
        refused
    }

    fn by_get(&self, path: &str, token: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("Authorization", &*bearer),
            ("Accept", "text/event-stream"),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let headers = if path == "/ws" {
            &headers[..]
        } else {
            &headers[..2]
        };
        ask(&self.place(path), "GET", headers, "")
    }

    /// That nobody has done anything: nothing was called, opened or written down.
    #[track_caller]
    fn is_untouched(&self) {
        assert_eq!(self.calls(), 0);
        assert_eq!(self.api("/sessions")["sessions"], json!([]));
        assert_eq!(self.api("/calls")["calls"], json!([]));
        let written = self.api("/audit")["entries"].to_string();
        assert!(!written.contains("tools/call"), "{written}");
        assert!(!written.contains("alice"), "{written}");
    }
}

/// A call as clients without sessions make it, in one request.
fn modern_call(client: &ByHand) -> Answer {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": TOOL, "arguments": {}, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let bearer = client.token.as_ref().map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", TOOL),
    ];
    headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
    ask(&client.url, "POST", &headers, &message.to_string())
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

/// A token that is signed with a secret that everybody knows: the public key.
fn confused(jwk: &Value, claims: &Value) -> Vec<String> {
    let header = json!({ "alg": "HS256", "kid": "rsa", "typ": "at+jwt" });
    let message = format!(
        "{}.{}",
        encoded(header.to_string()),
        encoded(claims.to_string())
    );
    let secrets = [
        Signer::RSA_PEM.to_owned(),
        jwk.to_string(),
        jwk["n"].as_str().unwrap().to_owned(),
    ];
    let sign = |secret: &String| encoded(Signer::hs256(secret.as_bytes(), message.as_bytes()));
    secrets
        .iter()
        .map(|secret| format!("{message}.{}", sign(secret)))
        .collect()
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one issuer and one gateway for all tokens that are tried"
)]
fn tokens_that_must_not_let_anybody_in_do_not_and_nothing_comes_of_them() {
    let (rsa, p256) = (Signer::rsa("rsa"), Signer::p256("p256"));
    let mallory = Signer::p256("p256");
    let house = House::new(&[&rsa, &p256]);
    let good = house.claims("alice");
    let says = |name: &str, value: Value| p256.good("ES256", &with(good.clone(), name, value));
    let none = p256.token(&json!({ "alg": "none", "kid": "p256" }), &good);
    let unsigned = format!("{}.", none.rsplit_once('.').unwrap().0);
    let wrong_kind = p256.token(&json!({ "alg": "ES256", "kid": "rsa" }), &good);
    let mut attacks = vec![
        (
            "expired",
            says("exp", json!(now() - 3600)),
            "the token has expired",
        ),
        (
            "not yet",
            says("nbf", json!(now() + 3600)),
            "the token is not valid yet",
        ),
        (
            "another's",
            says("aud", json!("https://other.example/mcp")),
            "the token is not for this audience",
        ),
        (
            "wrong issuer",
            says("iss", json!("https://evil.example")),
            "the token is not of an issuer that is trusted here",
        ),
        ("none", none.clone(), "the token is not signed"),
        ("none, bare", unsigned, "the token is not signed"),
        (
            "wrong kind of key",
            wrong_kind,
            "the token is signed with an algorithm that does not fit the key of the issuer",
        ),
        (
            "forged",
            mallory.good("ES256", &good),
            "the signature of the token is wrong",
        ),
        (
            "unknown key",
            Signer::p256("elsewhere").good("ES256", &good),
            "the token is signed with a key that the issuer does not publish",
        ),
        (
            "a name with an end of a line",
            says("sub", json!("alice\n{\"principal\":\"root\"}")),
            "the token names nobody whom it could be of",
        ),
        (
            "nobody at an open gateway",
            says("sub", json!("local")),
            "the token names nobody whom it could be of",
        ),
    ];
    for token in confused(&rsa.jwk(), &good) {
        let why = "the token is signed with an algorithm that is not allowed here";
        attacks.push(("confused", token, why));
    }
    let n_before = house.turned_away();
    let mut reasons = Vec::new();
    for (what, token, why) in &attacks {
        let refused = house.attempts(token).with_status(401);
        let challenge = refused.header("www-authenticate").unwrap();
        for part in [
            "error=\"invalid_token\"",
            "resource_metadata=\"https://gateway.example/.well-known/oauth-protected-resource/mcp\"",
        ] {
            assert!(challenge.contains(part), "{what}: {challenge}");
        }
        let said = refused.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        if said != *why {
            reasons.push((*what, said, *why));
        }
        // Nor may they look after the gateway.
        let bearer = format!("Bearer {token}");
        let api = house.place("/api/v1/status");
        ask(&api, "GET", &[("Authorization", &bearer)], "").with_status(401);
    }
    assert_eq!(reasons, []);
    house.is_untouched();
    let n_attempts = attacks.len() as u64 * 9;
    assert_eq!(house.turned_away() - n_before, n_attempts);
    // And the honest one is let in.
    let honest = house.client(&p256.good("ES256", &good));
    let called = modern_call(&honest).with_status(200).json();
    assert!(called["result"]["content"].is_array(), "{called}");
    assert_eq!(house.calls(), 1);
    let who = format!("alice {}", house.issuer.url());
    let written = house.api("/audit")["entries"][0].clone();
    assert_eq!(written["principal"], *who, "{written}");
    assert_eq!(written["outcome"], "ok", "{written}");
    let refused = ask(
        &house.place("/api/v1/status"),
        "GET",
        &[(
            "Authorization",
            &format!("Bearer {}", honest.token.unwrap()),
        )],
        "",
    );
    refused.with_status(403);
    assert_eq!(house.gateway.end("-TERM").0, Some(0));
}

#[test]
fn a_token_counts_in_the_header_and_nowhere_else() {
    let key = Signer::p256("p256");
    let house = House::new(&[&key]);
    let good = key.good("ES256", &house.claims("alice"));
    let url = house.gateway.url().to_owned();
    for name in ["access_token", "token", "api_key", "ACCESS_TOKEN"] {
        for token in [&good, &house.root] {
            let place = format!("{url}?{name}={token}");
            let alone = ByHand::new(&place, None);
            let both = ByHand::new(&place, Some(&good));
            for client in [alone, both] {
                let refused = modern_call(&client).with_status(400);
                assert_eq!(
                    refused.json()["error"]["code"],
                    "token_in_url",
                    "{refused:?}"
                );
                assert!(!format!("{refused:?}").contains(token), "it was echoed");
                client.send("GET", "").with_status(400);
            }
            for path in [
                "/sse",
                "/ws",
                "/messages",
                "/api/v1/status",
                "/metrics",
                "/",
            ] {
                let place = house.place(&format!("{path}?{name}={token}"));
                ask(&place, "GET", &[], "").with_status(400);
            }
        }
    }
    // In a form, as RFC 6750 would allow it, in a cookie, and in the message itself.
    let nobody = ByHand::new(&url, None);
    let form = format!("access_token={good}");
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    ask(&url, "POST", &[kind], &form).with_status(401);
    let cookie = format!("access_token={good}; cocode_session={good}");
    let headers = [("Cookie", &*cookie), ("Content-Type", "application/json")];
    ask(&url, "POST", &headers, "{}").with_status(401);
    let params = json!({ "access_token": good, "_meta": { "authorization": good } });
    nobody.request("initialize", &params).with_status(401);
    for scheme in ["Basic", "DPoP", "Token", ""] {
        let value = format!("{scheme} {good}");
        let headers = [("Authorization", value.trim()), kind];
        let refused = ask(&url, "POST", &headers, "{}").with_status(401);
        assert!(!format!("{refused:?}").contains(&good), "it was echoed");
    }
    house.is_untouched();
}

#[test]
fn clients_are_told_where_tokens_are_got() {
    let key = Signer::p256("p256");
    let more = "required_scopes = ['mcp:basic']\nadmin_scope = 'mcp:admin'\n";
    let house = House::with(Issuer::start(&[&key]), &[], more);
    let expected = json!({
        "resource": RESOURCE,
        "authorization_servers": [house.issuer.url()],
        "bearer_methods_supported": ["header"],
        "resource_name": "cocode gateway",
        "scopes_supported": ["mcp:basic", "mcp:admin"],
    });
    let well_known = "/.well-known/oauth-protected-resource";
    for rest in ["", "/mcp", "/mcp/counted"] {
        let told = ask(&house.place(&format!("{well_known}{rest}")), "GET", &[], "");
        let told = told.with_status(200);
        assert_eq!(told.header("content-type"), Some("application/json"));
        assert_eq!(told.json(), expected);
    }
    ask(&house.place(&format!("{well_known}/other")), "GET", &[], "").with_status(404);
    let nobody = ByHand::new(house.gateway.url(), None);
    let refused = modern_call(&nobody).with_status(401);
    assert_eq!(
        refused.header("www-authenticate"),
        Some(
            "Bearer realm=\"cocode\", scope=\"mcp:basic\", \
             resource_metadata=\"https://gateway.example/.well-known/oauth-protected-resource/mcp\""
        )
    );
    // A good token that allows too little, and one that allows to look after the gateway.
    let of = |scope: &str| key.good("ES256", &with(house.claims("alice"), "scope", json!(scope)));
    let refused = modern_call(&house.client(&of("other"))).with_status(403);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"insufficient_scope\""),
        "{challenge}"
    );
    let api = house.place("/api/v1/status");
    let looks = |scope: &str| {
        let bearer = format!("Bearer {}", of(scope));
        ask(&api, "GET", &[("Authorization", &bearer)], "").status
    };
    assert_eq!(looks("mcp:basic"), 403);
    assert_eq!(looks("mcp:basic mcp:admin"), 200);
    house.is_untouched();
}

#[test]
fn keys_may_change_and_be_away_while_it_runs() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let house = House::new(&[&old]);
    // Before anything is known of the issuer: nobody is sent away to sign in again.
    house.issuer.set_down(true);
    let before = old.good("ES256", &house.claims("alice"));
    let refused = modern_call(&house.client(&before)).with_status(503);
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(refused.header("www-authenticate"), None);
    assert_eq!(house.calls(), 0);
    house.issuer.set_down(false);
    let comes = |token: &str| modern_call(&house.client(token)).status;
    while comes(&before) == 503 {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(comes(&before), 200);
    let n_calls = house.calls();
    // The issuer withdraws its key, and has another. That counts as soon as the gateway may ask again.
    house.issuer.publish_keys(&[&new]);
    let after = new.good("ES256", &house.claims("alice"));
    let mut answers = vec![comes(&after)];
    while answers.last() == Some(&401) {
        std::thread::sleep(std::time::Duration::from_millis(500));
        answers.push(comes(&after));
    }
    assert_eq!(answers.last(), Some(&200), "{answers:?}");
    assert_eq!(house.calls(), n_calls + 1);
    let withdrawn = modern_call(&house.client(&before)).with_status(401);
    assert!(withdrawn.header("www-authenticate").is_some());
    assert_eq!(house.calls(), n_calls + 1);
    // Known keys count while the issuer is away; what cannot be judged is not refused for good.
    house.issuer.set_down(true);
    assert_eq!(comes(&after), 200);
}

#[test]
fn one_name_of_a_token_and_of_two_issuers_is_three_principals() {
    let (one, two) = (Signer::p256("one"), Signer::p256("two"));
    let (issuer, other) = (Issuer::start(&[&one]), Issuer::start(&[&two]));
    let more = format!(
        "[gateway.principals.\"ana {}\"]\ncalls_per_minute = 1\n\
         [gateway.principals.bob]\nadmin = true\n",
        issuer.url()
    );
    let house = House::with(issuer, &[&other], &more);
    let ids = [
        "ana".to_owned(),
        format!("ana {}", house.issuer.url()),
        format!("ana {}", other.url()),
    ];
    let tokens = [
        token(&house.home, "ana"),
        one.good("ES256", &house.claims("ana")),
        two.good("ES256", &other.claims(RESOURCE, "ana")),
    ];
    let clients = tokens
        .clone()
        .map(|token| house.client(&token).initialized());
    // A session is its principal's alone.
    for (place, owner) in clients.iter().enumerate() {
        for (whose, token) in tokens.iter().enumerate() {
            if whose != place {
                let thief = ByHand {
                    token: Some(token.clone()),
                    ..owner.clone()
                };
                thief.request("tools/list", &json!({})).with_status(404);
                thief.send("GET", "").with_status(404);
                thief.send("DELETE", "").with_status(404);
            }
        }
        assert!(!owner.tools().is_empty());
    }
    // A limit is its principal's alone.
    for _ in 0..2 {
        for client in &clients {
            client.call(TOOL, &json!({}));
        }
    }
    let entries = house.api("/audit")["entries"].clone();
    let told = |id: &str, outcome: &str| {
        let is_meant = |entry: &&Value| entry["principal"] == *id && entry["outcome"] == *outcome;
        entries.as_array().unwrap().iter().filter(is_meant).count()
    };
    assert_eq!(
        ids.each_ref()
            .map(|id| (told(id, "ok"), told(id, "limited"))),
        [(2, 0), (1, 1), (2, 0)],
        "{entries:#}"
    );
    let sessions = house.api("/sessions");
    for id in &ids {
        assert!(
            sessions.to_string().contains(&format!("\"{id}\"")),
            "{sessions}"
        );
    }
    // Who has the name of a token that may look after the gateway may not, nor anything else.
    let bob = one.good("ES256", &house.claims("bob"));
    let refused = modern_call(&house.client(&bob)).with_status(403);
    assert_eq!(
        refused.json()["error"]["code"],
        "unclear_principal",
        "{refused:?}"
    );
    let bearer = format!("Bearer {bob}");
    let api = house.place("/api/v1/status");
    ask(&api, "GET", &[("Authorization", &bearer)], "").with_status(403);
    // Revoking a token sends nobody else away.
    house
        .home
        .run(["gateway", "token", "revoke", "ana"])
        .with_code(0);
    let comes = |client: &ByHand| client.request("tools/list", &json!({})).status;
    while comes(&clients[0]) == 200 {}
    assert_eq!(clients.each_ref().map(comes), [401, 200, 200]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one house for every transport")]
fn the_session_of_another_is_not_there_over_any_transport() {
    let key = Signer::p256("p256");
    let house = House::new(&[&key]);
    let of = |name: &str| key.good("ES256", &house.claims(name));
    let (ana, bob) = (of("ana"), of("bob"));
    let bearer = |token: &str| format!("Bearer {token}");
    // HTTP+SSE: the session is in an address that its client is told.
    let stream_headers = [
        ("Authorization", &*bearer(&ana)),
        ("Accept", "text/event-stream"),
    ];
    let mut stream = open(&house.place("/sse"), "GET", &stream_headers, "");
    assert_eq!(stream.answer.status, 200);
    let place = stream.next_data();
    assert!(place.starts_with("/messages?"), "{place}");
    let place = house.place(&place);
    let params = json!({
        "protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": TOOL, "arguments": {} },
    });
    let post = |token: Option<&str>, message: &Value| {
        let authorization = token.map(bearer);
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(
            authorization
                .as_deref()
                .map(|value| ("Authorization", value)),
        );
        ask(&place, "POST", &headers, &message.to_string())
    };
    for message in [&hello, &call] {
        post(None, message).with_status(401);
        let stolen = post(Some(&bob), message).with_status(404);
        let absent = place.replace("sessionId=", "sessionId=x");
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", &*bearer(&bob)),
        ];
        let absent = ask(&absent, "POST", &headers, &message.to_string());
        assert_eq!(
            stolen.body,
            absent.with_status(404).body,
            "they are told apart"
        );
    }
    assert_eq!(house.calls(), 0);
    post(Some(&ana), &hello).with_status(202);
    let answered: Value = serde_json::from_str(&stream.next_data()).unwrap();
    assert_eq!(answered["id"], 1, "{answered}");
    post(Some(&ana), &call).with_status(202);
    let answered: Value = serde_json::from_str(&stream.next_data()).unwrap();
    assert!(answered["result"]["content"].is_array(), "{answered}");
    assert_eq!(house.calls(), 1);
    // Streamable HTTP.
    let owner = house.client(&ana).initialized();
    let thief = ByHand {
        token: Some(bob.clone()),
        ..owner.clone()
    };
    let message = json!({ "name": TOOL, "arguments": {} });
    thief.request("tools/call", &message).with_status(404);
    thief.send("GET", "").with_status(404);
    thief.send("DELETE", "").with_status(404);
    // A WebSocket is a session of its own: that of another is not gone on with there.
    let session = owner.session.clone().unwrap();
    let headers = [
        ("Authorization", &*bearer(&bob)),
        ("Mcp-Session-Id", &*session),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let upgraded = open(&house.place("/ws"), "GET", &headers, "");
    assert_eq!(upgraded.answer.status, 101);
    let whose = |name: &str| {
        let id = format!("{name} {}", house.issuer.url());
        let sessions = house.api("/sessions")["sessions"].clone();
        let sessions = sessions.as_array().unwrap().clone();
        sessions
            .iter()
            .filter(|one| one["principal"] == *id)
            .count()
    };
    assert_eq!(whose("ana"), 2, "{}", house.api("/sessions"));
    assert_eq!(house.calls(), 1);
    assert!(!owner.tools().is_empty());
    drop(upgraded);
}
