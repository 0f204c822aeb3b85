//! Records: what is written can be read, and what cannot be read is told without values.

use serde_json::{Value, json};

use super::*;
use crate::oauth::client::{ClientAuthentication, ClientKind};
use crate::oauth::tokens::TokenKind;

fn url() -> Url {
    Url::parse("https://mcp.example/api?key=hunter2").unwrap()
}

fn client() -> Client {
    Client {
        id: "client".to_owned(),
        secret: Some(Secret::new("hunter2-secret")),
        authentication: ClientAuthentication::SecretPost,
        kind: ClientKind::Dynamic,
        redirect_uris: vec!["http://127.0.0.1:4321/callback".to_owned()],
        secret_expires_at: Some(7),
        registration_access_token: Some(Secret::new("hunter2-registration")),
        registration_uri: Some("https://login.example/clients/1".to_owned()),
    }
}

fn grant(signed_in_at: Option<u64>) -> Grant {
    Grant {
        tokens: Some(Tokens {
            access: Secret::new("hunter2-access"),
            kind: TokenKind::Dpop,
            expires_at: Some(3600),
            issued_at: 1,
            refresh: Some(Secret::new("hunter2-refresh")),
            scopes: Some(vec!["read".to_owned()]),
        }),
        resource: Some(url().into()),
        revocation_endpoint: Some("https://login.example/revoke?hunter2".to_owned()),
        dpop_key: Some(Secret::new("hunter2-key")),
        requested_scopes: vec!["read".to_owned(), "write".to_owned()],
        wanted_scopes: vec!["admin".to_owned()],
        signed_in_at,
        ..Grant::new(client(), "https://login.example/token?hunter2")
    }
}

fn full() -> Record {
    let mut record = Record::new(&url());
    record.set_current("https://login.example", grant(Some(5)));
    record.revision = 3;
    record
}

/// The text of a record as JSON, to be changed.
fn written(record: &Record) -> Value {
    serde_json::from_str(record.to_text().unwrap().expose()).unwrap()
}

#[test]
fn what_is_written_can_be_read() {
    let record = full();
    let read = Record::parse(record.to_text().unwrap().expose()).unwrap();
    assert_eq!(written(&read), written(&record));
    assert_eq!(
        written(&read),
        json!({
            "version": 1,
            "url": "https://mcp.example/api?key=hunter2",
            "revision": 3,
            "issuer": "https://login.example",
            "grants": {"https://login.example": {
                "client": {
                    "id": "client",
                    "secret": "hunter2-secret",
                    "authentication": "client_secret_post",
                    "kind": "dynamic",
                    "redirect_uris": ["http://127.0.0.1:4321/callback"],
                    "secret_expires_at": 7,
                    "registration_access_token": "hunter2-registration",
                    "registration_uri": "https://login.example/clients/1",
                },
                "tokens": {
                    "access": "hunter2-access",
                    "kind": "dpop",
                    "expires_at": 3600,
                    "issued_at": 1,
                    "refresh": "hunter2-refresh",
                    "scopes": ["read"],
                },
                "resource": "https://mcp.example/api?key=hunter2",
                "token_endpoint": "https://login.example/token?hunter2",
                "revocation_endpoint": "https://login.example/revoke?hunter2",
                "dpop_key": "hunter2-key",
                "requested_scopes": ["read", "write"],
                "wanted_scopes": ["admin"],
                "signed_in_at": 5,
            }},
        })
    );
}

#[test]
fn what_is_optional_may_be_missing_and_what_is_unknown_is_passed_over() {
    let text = r#"{"version": 1, "url": "https://mcp.example/", "revision": 1, "later": [1],
        "grants": {"https://login.example": {"token_endpoint": "https://login.example/token",
            "client": {"id": "x", "authentication": "none", "kind": "preregistered", "more": 1}}}}"#;
    let record = Record::parse(text).unwrap();
    assert_eq!(record.issuer, None);
    assert!(record.current().is_none());
    let grant = &record.grants["https://login.example"];
    assert_eq!(grant.client.authentication, ClientAuthentication::None);
    assert!(grant.tokens.is_none() && grant.requested_scopes.is_empty());
}

#[test]
fn what_is_no_record_is_refused_without_its_values() {
    let change = |path: &str, value: Value| {
        let mut json = written(&full());
        *json.pointer_mut(path).unwrap() = value;
        json.to_string()
    };
    let grant = "/grants/https:~1~1login.example";
    let text = full().to_text().unwrap();
    let half: String = text.expose().chars().take(300).collect();
    let cases = [
        String::new(),
        "hunter2".to_owned(),
        half,
        change("/version", json!("hunter2")),
        change("/revision", json!(-1)),
        change("/url", json!(["hunter2"])),
        change(&format!("{grant}/client/authentication"), json!("hunter2")),
        change(&format!("{grant}/client/kind"), json!("hunter2")),
        change(&format!("{grant}/tokens/access"), json!({"hunter2": 1})),
        change(&format!("{grant}/tokens/kind"), json!("hunter2")),
        change(&format!("{grant}/tokens/expires_at"), json!("hunter2")),
        change(&format!("{grant}/wanted_scopes"), json!("hunter2")),
    ];
    for text in cases {
        let error = Record::parse(&text).unwrap_err();
        assert!(matches!(error, RecordError::Malformed { .. }), "{text}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_newer_version_is_told_before_anything_else() {
    assert_eq!(
        Record::parse(r#"{"version": 2, "sealed": "…"}"#).unwrap_err(),
        RecordError::NewerVersion(2)
    );
}

#[test]
fn debug_output_hides_secrets_and_queries() {
    let shown = format!("{:?} {:#?}", full(), full());
    assert!(!shown.contains("hunter2"), "{shown}");
    for told in ["https://mcp.example/api", "https://login.example/token"] {
        assert!(shown.contains(told), "{shown}");
    }
}

#[test]
fn the_oldest_sign_ins_are_forgotten_and_never_the_current_one() {
    let issuers = |record: &Record| record.grants.keys().cloned().collect::<Vec<_>>();
    let mut record = Record::new(&url());
    for (issuer, signed_in_at) in [
        ("a", Some(30)),
        ("b", Some(10)),
        ("c", None),
        ("d", Some(20)),
    ] {
        record.set_current(issuer, grant(signed_in_at));
    }
    assert_eq!(issuers(&record), ["a", "b", "c", "d"]);
    // The newest in use, though its sign-in is not done.
    record.set_current("e", grant(None));
    assert_eq!(issuers(&record), ["a", "b", "d", "e"]);
    record.set_current("f", grant(Some(40)));
    assert_eq!(issuers(&record), ["a", "b", "d", "f"]);
    record.set_current("g", grant(Some(50)));
    assert_eq!(issuers(&record), ["a", "d", "f", "g"]);
    assert_eq!(record.issuer.as_deref(), Some("g"));
    // Going back to one that is known throws nothing away.
    record.set_current("a", grant(Some(60)));
    assert_eq!(issuers(&record), ["a", "d", "f", "g"]);
}

#[test]
fn one_server_has_one_address() {
    let cases = [
        ("https://mcp.example", "https://mcp.example/"),
        ("HTTPS://MCP.Example:443/Api", "https://mcp.example/Api"),
        ("https://me:pass@mcp.example/#part", "https://mcp.example/"),
        ("https://mcp.example/?a=1#b", "https://mcp.example/?a=1"),
        ("http://mcp.example:443/", "http://mcp.example:443/"),
        ("https://mcp.example/api/", "https://mcp.example/api/"),
        ("wss://mcp.example:443/x", "wss://mcp.example/x"),
    ];
    for (text, expected) in cases {
        let url = Url::parse(text).unwrap();
        assert_eq!(canonical_url(&url).as_str(), expected);
        assert_eq!(Record::new(&url).url, expected);
    }
}
