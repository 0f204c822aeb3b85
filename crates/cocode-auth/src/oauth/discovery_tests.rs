//! From an address and a refusal to an authorization server: the places in their order, and what is
//! not believed.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use url::Url;

use super::super::responder::{Responder, Route, http_for};
use super::{
    Discovered, Discovery, DiscoveryError, Purpose, authorization_server, canonical, is_resource_of,
};
use crate::oauth::AuthChallenge;

const PATH_RESOURCE: &str = "GET /.well-known/oauth-protected-resource/mcp";
const ROOT_RESOURCE: &str = "GET /.well-known/oauth-protected-resource";
const OAUTH: &str = "GET /.well-known/oauth-authorization-server";
const OPENID: &str = "GET /.well-known/openid-configuration";

/// The description of an authorization server with this path. `ORIGIN` is filled in later.
fn server_at(path: &str) -> Value {
    json!({
        "issuer": format!("ORIGIN{path}"),
        "authorization_endpoint": format!("ORIGIN{path}/authorize"),
        "token_endpoint": format!("ORIGIN{path}/token"),
        "code_challenge_methods_supported": ["S256"],
    })
}

fn ok(document: &Value) -> String {
    format!("200 OK\nContent-Type: application/json\n\n{document}")
}

fn with(mut document: Value, key: &str, value: Value) -> Value {
    document[key] = value;
    document
}

struct Search<'a> {
    path: &'a str,
    resource_metadata: Option<&'a str>,
    preferred_issuer: Option<&'a str>,
    purpose: Purpose,
}

const AT_MCP: Search<'static> = Search {
    path: "/mcp",
    resource_metadata: None,
    preferred_issuer: None,
    purpose: Purpose::Browser,
};

fn preferred(issuer: Option<&str>) -> Search<'_> {
    Search {
        preferred_issuer: issuer,
        ..AT_MCP
    }
}

impl Search<'_> {
    async fn run(&self, server: &Responder) -> Result<Discovered, DiscoveryError> {
        let url = server.url(self.path);
        let challenge = self.resource_metadata.map(|address| AuthChallenge {
            resource_metadata: Some(address.replace("ORIGIN", &server.origin)),
            ..AuthChallenge::default()
        });
        let discovery = Discovery {
            http: &http_for(&url),
            server_url: &url,
            challenge: challenge.as_ref(),
            preferred_issuer: self.preferred_issuer,
            purpose: self.purpose,
        };
        discovery.run().await
    }
}

/// What is found where one server is both, and which documents were asked for.
async fn find(
    search: &Search<'_>,
    routes: &[Route<'_>],
) -> (Result<Discovered, DiscoveryError>, Vec<String>) {
    let server = Responder::start(routes).await;
    let found = search.run(&server).await;
    let lines = server.lines();
    let short = |line: &String| line.replace("GET /.well-known/", "");
    (found, lines.iter().map(short).collect())
}

#[tokio::test]
async fn the_places_are_tried_in_the_order_of_the_specification() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    let tenant = ok(&json!({"resource": "ORIGIN", "authorization_servers": ["ORIGIN/tenant1"]}));
    let (root, at_tenant) = (ok(&server_at("")), ok(&server_at("/tenant1")));
    let named = Search {
        resource_metadata: Some("ORIGIN/custom/place.json"),
        ..AT_MCP
    };
    let cases: [(&Search<'_>, &[Route<'_>], &[&str]); 5] = [
        (
            &AT_MCP,
            &[(PATH_RESOURCE, &here), (OAUTH, &root)],
            &["oauth-protected-resource/mcp", "oauth-authorization-server"],
        ),
        (
            &AT_MCP,
            &[(PATH_RESOURCE, &here), (OPENID, &root)],
            &[
                "oauth-protected-resource/mcp",
                "oauth-authorization-server",
                "openid-configuration",
            ],
        ),
        (
            &AT_MCP,
            &[
                (ROOT_RESOURCE, &tenant),
                (
                    "GET /.well-known/oauth-authorization-server/tenant1",
                    &at_tenant,
                ),
            ],
            &[
                "oauth-protected-resource/mcp",
                "oauth-protected-resource",
                "oauth-authorization-server/tenant1",
            ],
        ),
        (
            &named,
            &[
                ("GET /custom/place.json", &tenant),
                ("GET /tenant1/.well-known/openid-configuration", &at_tenant),
            ],
            &[
                "GET /custom/place.json",
                "oauth-authorization-server/tenant1",
                "openid-configuration/tenant1",
                "GET /tenant1/.well-known/openid-configuration",
            ],
        ),
        (
            &Search {
                path: "/",
                ..AT_MCP
            },
            &[
                (ROOT_RESOURCE, &tenant),
                ("GET /.well-known/openid-configuration/tenant1", &at_tenant),
            ],
            &[
                "oauth-protected-resource",
                "oauth-authorization-server/tenant1",
                "openid-configuration/tenant1",
            ],
        ),
    ];
    for (search, routes, expected) in cases {
        let (found, lines) = find(search, routes).await;
        assert_eq!(lines, expected);
        let found = found.unwrap();
        assert!(!found.server.assumed);
        assert!(found.protected.is_some());
    }
}

#[tokio::test]
async fn the_resource_is_sent_as_it_was_published() {
    for published in ["ORIGIN", "ORIGIN/", "ORIGIN/mcp", "ORIGIN/mcp/"] {
        let here = ok(&json!({"resource": published, "authorization_servers": ["ORIGIN"]}));
        let server =
            Responder::start(&[(PATH_RESOURCE, &here), (OAUTH, &ok(&server_at("")))]).await;
        let found = AT_MCP.run(&server).await.unwrap();
        assert_eq!(found.resource, published.replace("ORIGIN", &server.origin));
    }
}

#[tokio::test]
async fn a_description_of_another_resource_is_not_believed() {
    for resource in [
        "https://evil.example/mcp",
        "ORIGIN/other",
        "ORIGIN/m",
        "ORIGIN/mcp#x",
        "mcp",
        "",
    ] {
        let here = ok(&json!({"resource": resource, "authorization_servers": ["ORIGIN"]}));
        let (found, lines) = find(
            &AT_MCP,
            &[(PATH_RESOURCE, &here), (OAUTH, &ok(&server_at("")))],
        )
        .await;
        let error = found.unwrap_err();
        assert!(
            matches!(error, DiscoveryError::ResourceMismatch { .. }),
            "{resource}: {error:?}"
        );
        assert!(!error.is_temporary());
        assert_eq!(lines, ["oauth-protected-resource/mcp"]);
    }
}

#[test]
fn resources_are_compared_by_origin_and_path() {
    let server: Url = "https://mcp.example/a/b?tenant=1".parse().unwrap();
    for (resource, expected) in [
        ("https://mcp.example/a/b", true),
        ("HTTPS://MCP.example:443/a/b/", true),
        ("https://mcp.example/a", true),
        ("https://mcp.example", true),
        ("https://mcp.example/a/b?tenant=1", true),
        ("https://mcp.example/a/b?tenant=2", false),
        ("https://mcp.example/a/b/c", false),
        ("https://mcp.example/A/b", false),
        ("https://mcp.example:444/a/b", false),
        ("http://mcp.example/a/b", false),
        ("https://u@mcp.example/a/b", false),
        ("https://mcp.example.evil/a/b", false),
        ("urn:mcp", false),
    ] {
        assert_eq!(is_resource_of(resource, &server), expected, "{resource}");
    }
    assert_eq!(canonical(&server), "https://mcp.example/a/b");
    assert_eq!(
        canonical(&"https://u:p@MCP.example:443/".parse().unwrap()),
        "https://mcp.example"
    );
    assert_eq!(
        canonical(&"http://h:81/mcp/#f".parse().unwrap()),
        "http://h:81/mcp"
    );
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    for issuer in ["https://honest.example", "ORIGIN/"] {
        let other = ok(&with(server_at(""), "issuer", json!(issuer)));
        let (found, _) = find(&AT_MCP, &[(PATH_RESOURCE, &here), (OAUTH, &other)]).await;
        let error = found.unwrap_err();
        assert!(
            matches!(error, DiscoveryError::IssuerMismatch { .. }),
            "{error:?}"
        );
        // What comes later in the order may be the right one.
        let right = ok(&server_at(""));
        let routes = [
            (PATH_RESOURCE, here.as_str()),
            (OAUTH, &other),
            (OPENID, &right),
        ];
        assert!(find(&AT_MCP, &routes).await.0.is_ok());
    }
}

#[tokio::test]
async fn an_authorization_server_that_publishes_nothing_is_not_assumed() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    let unnamed = ok(&json!({"resource": "ORIGIN/mcp"}));
    for here in [here, unnamed] {
        let (found, _) = find(&AT_MCP, &[(PATH_RESOURCE, &here)]).await;
        let error = found.unwrap_err();
        assert!(
            matches!(error, DiscoveryError::NoMetadata { .. }),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .contains("/.well-known/openid-configuration"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_old_server_is_its_own_authorization_server() {
    for issuer in ["ORIGIN", "ORIGIN/"] {
        let published = ok(&with(server_at("/oauth"), "issuer", json!(issuer)));
        let server = Responder::start(&[(OAUTH, &published)]).await;
        let found = AT_MCP.run(&server).await.unwrap();
        assert_eq!(found.resource, format!("{}/mcp", server.origin));
        assert_eq!(
            found.server.token_endpoint.unwrap(),
            server.url("/oauth/token")
        );
        assert!(!found.server.assumed && found.protected.is_none());
    }
    let foreign = ok(&with(
        server_at(""),
        "issuer",
        json!("https://honest.example"),
    ));
    let (found, _) = find(&AT_MCP, &[(OAUTH, &foreign)]).await;
    assert!(
        matches!(found, Err(DiscoveryError::IssuerMismatch { .. })),
        "{found:?}"
    );
}

#[tokio::test]
async fn the_endpoints_of_an_old_server_without_metadata_are_assumed() {
    let server = Responder::start(&[]).await;
    let found = AT_MCP.run(&server).await.unwrap();
    assert!(found.server.assumed);
    assert_eq!(found.server.issuer, server.origin);
    assert_eq!(
        found.server.registration_endpoint.unwrap(),
        server.url("/register")
    );
    // One that says where it describes itself is not old.
    let named = Search {
        resource_metadata: Some("ORIGIN/gone"),
        ..AT_MCP
    };
    let error = named.run(&server).await.unwrap_err();
    assert!(
        matches!(error, DiscoveryError::NoMetadata { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn pages_for_people_are_no_metadata() {
    let page = "200 OK\nContent-Type: text/html\n\n<html>Hello</html>";
    let other = "200 OK\n\n{\"error\": \"unknown\"}";
    let routes = [
        (PATH_RESOURCE, page),
        (ROOT_RESOURCE, other),
        (OAUTH, page),
        (OPENID, other),
    ];
    let (found, lines) = find(&AT_MCP, &routes).await;
    assert!(found.unwrap().server.assumed);
    assert_eq!(lines.len(), 4);
    let endless = format!("200 OK\n\n{}", " ".repeat(600 * 1024));
    let (found, _) = find(&AT_MCP, &[(PATH_RESOURCE, &endless)]).await;
    assert!(found.unwrap().server.assumed);
}

#[tokio::test]
async fn trouble_is_told_apart_from_absence() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    for status in ["500 No", "502 No", "503 No", "429 Later", "408 Late"] {
        for (routes, n_asked) in [
            (&[(PATH_RESOURCE, status)][..], 4),
            (&[(ROOT_RESOURCE, status)], 4),
            (&[(PATH_RESOURCE, &here), (OAUTH, status)], 3),
            (&[(PATH_RESOURCE, &here), (OPENID, status)], 3),
        ] {
            let (found, lines) = find(&AT_MCP, routes).await;
            let error = found.unwrap_err();
            assert!(
                matches!(error, DiscoveryError::Unavailable { .. }),
                "{error:?}"
            );
            assert!(error.is_temporary());
            assert_eq!(lines.len(), n_asked);
        }
    }
    for status in ["400 No", "401 No", "403 No", "405 No", "501 No"] {
        let (found, _) = find(&AT_MCP, &[(PATH_RESOURCE, status), (OAUTH, status)]).await;
        assert!(found.unwrap().server.assumed, "{status}");
    }
    let gone = "http://127.0.0.1:1/mcp".parse().unwrap();
    let discovery = Discovery {
        http: &http_for(&gone),
        server_url: &gone,
        challenge: None,
        preferred_issuer: None,
        purpose: Purpose::Browser,
    };
    let error = discovery.run().await.unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
}

#[tokio::test]
async fn trouble_at_one_place_does_not_hide_a_document_at_another() {
    let here = ok(&json!({"resource": "ORIGIN", "authorization_servers": ["ORIGIN"]}));
    let (no, own) = ("500 No", ok(&server_at("")));
    for routes in [
        &[(PATH_RESOURCE, no), (ROOT_RESOURCE, &here), (OAUTH, &own)][..],
        &[(ROOT_RESOURCE, &here), (OAUTH, no), (OPENID, &own)],
        &[(PATH_RESOURCE, no), (ROOT_RESOURCE, no), (OAUTH, &own)],
    ] {
        let found = find(&AT_MCP, routes).await.0.unwrap();
        assert!(!found.server.assumed, "{routes:?}");
    }
    // What the server itself names is waited for.
    let named = Search {
        resource_metadata: Some("ORIGIN/place"),
        ..AT_MCP
    };
    let routes = [("GET /place", no), (ROOT_RESOURCE, &here), (OAUTH, &own)];
    let (found, lines) = find(&named, &routes).await;
    assert!(found.unwrap_err().is_temporary());
    assert_eq!(lines, ["GET /place"]);
    // One that names a place where we do not go may describe itself where it should, later.
    let wrong = Search {
        resource_metadata: Some("http://mcp.example/place"),
        ..AT_MCP
    };
    let (found, _) = find(&wrong, &[(PATH_RESOURCE, no)]).await;
    assert!(found.unwrap_err().is_temporary());
}

#[tokio::test]
async fn a_configured_issuer_is_asked_where_the_server_names_nobody() {
    let unnamed = ok(&json!({"resource": "ORIGIN/mcp"}));
    let tenant = ok(&server_at("/tenant1"));
    let at_tenant = format!("{OAUTH}/tenant1");
    for status in ["404 No", "503 No", &unnamed] {
        let routes = [(PATH_RESOURCE, status), (&at_tenant, &tenant)];
        let server = Responder::start(&routes).await;
        let issuer = format!("{}/tenant1", server.origin);
        let found = preferred(Some(&issuer)).run(&server).await.unwrap();
        assert_eq!(found.server.issuer, issuer, "{status}");
        assert_eq!(found.resource, format!("{}/mcp", server.origin));
        // Nobody else is asked in its place.
        let gone = format!("{}/gone", server.origin);
        let error = preferred(Some(&gone)).run(&server).await.unwrap_err();
        assert!(
            matches!(error, DiscoveryError::NoMetadata { .. }),
            "{error:?}"
        );
    }
    // An old server may be configured by its own name.
    let server = Responder::start(&[]).await;
    let found = preferred(Some(&server.origin)).run(&server).await.unwrap();
    assert!(found.server.assumed);
}

#[tokio::test]
async fn authorization_server_of_the_header_is_used_where_no_metadata_names_one() {
    let named = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    let (root, tenant) = (ok(&server_at("")), ok(&server_at("/tenant1")));
    let at_tenant = format!("{OAUTH}/tenant1");
    for (described, expected) in [("404 No", "/tenant1"), (named.as_str(), "")] {
        let routes = [
            (PATH_RESOURCE, described),
            (OAUTH, &root),
            (&at_tenant, &tenant),
        ];
        let server = Responder::start(&routes).await;
        let said = cocode_wire::Challenge {
            status: 401,
            www_authenticate: Vec::new(),
            auth_server: Some(format!("{}/tenant1", server.origin)),
        };
        let (url, challenge) = (server.url("/mcp"), crate::oauth::best_challenge(&said));
        let discovery = Discovery {
            http: &http_for(&url),
            server_url: &url,
            challenge: challenge.as_ref(),
            preferred_issuer: None,
            purpose: Purpose::Browser,
        };
        let found = discovery.run().await.unwrap();
        assert_eq!(found.server.issuer, format!("{}{expected}", server.origin));
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_a_server_names_is_logged_plain_and_short() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let named = ["evil\u{1b}[2J\nline", &"x".repeat(1000)];
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": named}));
    let (found, _) = find(&AT_MCP, &[(PATH_RESOURCE, &here)]).await;
    assert!(found.is_err());
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("cannot be used"), "{text}");
    for raw in ["\u{1b}", "\\u{1b}", "\\n", &"x".repeat(301)] {
        assert!(!text.contains(raw), "{text}");
    }
}

#[tokio::test]
async fn codes_have_to_be_protected_where_there_are_any() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    let machine = Search {
        purpose: Purpose::Machine,
        ..AT_MCP
    };
    for methods in [json!(["plain"]), json!([]), json!(null)] {
        let weak = ok(&with(
            server_at(""),
            "code_challenge_methods_supported",
            methods.clone(),
        ));
        let routes = [(PATH_RESOURCE, here.as_str()), (OAUTH, &weak)];
        let (found, _) = find(&AT_MCP, &routes).await;
        assert!(
            matches!(found, Err(DiscoveryError::NoPkce { .. })),
            "{methods}: {found:?}"
        );
        assert!(find(&machine, &routes).await.0.is_ok());
    }
    for (missing, browser, program) in [
        ("authorization_endpoint", false, true),
        ("token_endpoint", false, false),
    ] {
        let lame = ok(&with(server_at(""), missing, json!(null)));
        let routes = [(PATH_RESOURCE, here.as_str()), (OAUTH, &lame)];
        for (search, expected) in [(&AT_MCP, browser), (&machine, program)] {
            let (found, _) = find(search, &routes).await;
            assert_eq!(found.is_ok(), expected, "{missing}");
        }
    }
}

#[tokio::test]
async fn the_browser_is_not_sent_anywhere() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    for endpoint in [
        "http://as.example/authorize",
        "file:///etc/passwd",
        "https://a@as.example/",
    ] {
        let sent = ok(&with(
            server_at(""),
            "authorization_endpoint",
            json!(endpoint),
        ));
        let (found, _) = find(&AT_MCP, &[(PATH_RESOURCE, &here), (OAUTH, &sent)]).await;
        assert!(
            matches!(found, Err(DiscoveryError::Refused(_))),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn one_of_several_authorization_servers_is_used() {
    let here = json!({"resource": "ORIGIN/mcp", "authorization_servers": ["not an address", "ORIGIN/gone", "ORIGIN/a", "ORIGIN/b"]});
    let (here, a, b) = (ok(&here), ok(&server_at("/a")), ok(&server_at("/b")));
    let place = |name: &str| format!("{OAUTH}/{name}");
    let (at_gone, at_a, at_b) = (place("gone"), place("a"), place("b"));
    let routes = [(PATH_RESOURCE, here.as_str()), (&at_a, &a), (&at_b, &b)];
    let server = Responder::start(&routes).await;
    let issuer = |name: &str| format!("{}/{name}", server.origin);
    for (wanted, expected) in [
        (None, "a"),
        (Some(issuer("b")), "b"),
        (Some(issuer("gone")), "a"),
        (Some("https://elsewhere.example".to_owned()), "a"),
    ] {
        let found = preferred(wanted.as_deref()).run(&server).await.unwrap();
        assert_eq!(found.server.issuer, issuer(expected), "{wanted:?}");
    }
    // Trouble is no reason to leave the one that was used before, but one to take another at first.
    let troubled = [routes.as_slice(), &[(at_gone.as_str(), "503 No")]].concat();
    let server = Responder::start(&troubled).await;
    let gone = format!("{}/gone", server.origin);
    let error = preferred(Some(&gone)).run(&server).await.unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
    assert!(preferred(None).run(&server).await.is_ok());
}

#[tokio::test]
async fn a_server_cannot_make_us_ask_forever() {
    let many: Vec<String> = (0..100).map(|number| format!("ORIGIN/{number}")).collect();
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": many}));
    let (found, lines) = find(&AT_MCP, &[(PATH_RESOURCE, &here)]).await;
    assert!(found.is_err());
    assert_eq!(lines.len(), 1 + 5 * 3);
}

#[tokio::test]
async fn metadata_where_we_do_not_go_is_looked_for_where_it_should_be() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    let wrong = Search {
        resource_metadata: Some("http://mcp.example/.well-known/oauth-protected-resource/mcp"),
        ..AT_MCP
    };
    let routes = [(PATH_RESOURCE, here.as_str()), (OAUTH, &ok(&server_at("")))];
    assert!(find(&wrong, &routes).await.0.is_ok());
    let (found, lines) = find(&wrong, &[]).await;
    assert!(
        matches!(found, Err(DiscoveryError::Refused(_))),
        "{found:?}"
    );
    assert_eq!(
        lines,
        ["oauth-protected-resource/mcp", "oauth-protected-resource"]
    );
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_path_may_be_left_out() {
    let here = ok(&json!({"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}));
    let slash = Search {
        path: "/mcp/?key=1",
        ..AT_MCP
    };
    let place = format!("{PATH_RESOURCE}?key=1");
    let (found, lines) = find(&slash, &[(&place, &here), (OAUTH, &ok(&server_at("")))]).await;
    assert!(found.is_ok());
    assert_eq!(
        lines[..2],
        [
            "oauth-protected-resource/mcp/?key=1",
            "oauth-protected-resource/mcp?key=1"
        ]
    );
}

#[tokio::test]
async fn an_issuer_has_to_be_an_address() {
    let http = http_for(&"http://127.0.0.1:1/".parse().unwrap());
    for issuer in [
        "",
        "as.example",
        "https://as.example/?a",
        "https://as.example/#a",
        "urn:as",
    ] {
        let error = authorization_server(&http, issuer).await.unwrap_err();
        assert!(
            matches!(error, DiscoveryError::BadIssuer { .. }),
            "{issuer}: {error:?}"
        );
    }
}
