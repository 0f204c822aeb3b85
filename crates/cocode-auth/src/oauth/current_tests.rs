//! Tests of tokens in use.

use cocode_wire::{Method, RequestLine};

use super::{Current, Unfit};
use crate::oauth::{Client, ClientAuthentication, ClientKind, Grant, SigningAlgorithm, SigningKey};
use crate::oauth::{TokenKind, Tokens};
use crate::secret::Secret;

fn grant(kind: TokenKind, issued_at: u64, expires_at: Option<u64>) -> Grant {
    let client = Client {
        id: "client".to_owned(),
        secret: None,
        authentication: ClientAuthentication::None,
        kind: ClientKind::Dynamic,
        redirect_uris: vec!["http://127.0.0.1/callback".to_owned()],
        secret_expires_at: None,
        registration_access_token: None,
        registration_uri: None,
    };
    let mut grant = Grant::new(client, "https://as.example/token");
    grant.tokens = Some(Tokens {
        access: Secret::new("hush"),
        kind,
        expires_at,
        issued_at,
        refresh: None,
        scopes: None,
    });
    grant
}

fn current(issued_at: u64, expires_at: Option<u64>) -> Current {
    let grant = grant(TokenKind::Bearer, issued_at, expires_at);
    Current::of(&grant, None).unwrap().unwrap()
}

#[test]
fn tokens_are_renewed_a_minute_ahead_or_after_most_of_a_short_life() {
    let cases = [
        // Issued, ends, now, is due, has ended.
        (0, Some(3600), 3539, false, false),
        (0, Some(3600), 3540, true, false),
        (0, Some(3600), 3600, true, true),
        (0, Some(100), 79, false, false),
        (0, Some(100), 80, true, false),
        (0, Some(4), 3, false, false),
        (0, Some(4), 4, true, true),
        // A clock that was set back, and an end that nobody named.
        (5000, Some(4000), 3000, false, false),
        (0, None, u64::MAX, false, false),
    ];
    for (issued_at, expires_at, now, is_due, has_ended) in cases {
        let current = current(issued_at, expires_at);
        assert_eq!(current.is_due(now), is_due, "{expires_at:?} at {now}");
        assert_eq!(current.has_ended(now), has_ended, "{expires_at:?} at {now}");
    }
}

#[test]
fn a_bound_token_comes_with_a_proof_of_its_key_each_time() {
    let mut grant = grant(TokenKind::Dpop, 0, None);
    assert!(matches!(Current::of(&grant, None), Err(Unfit::NoKey)));
    let key = SigningKey::generate(SigningAlgorithm::Es256).unwrap();
    grant.dpop_key = Some(key.stored().clone());
    let current = Current::of(&grant, None).unwrap().unwrap();
    let url = "https://mcp.example/mcp".parse().unwrap();
    let request = RequestLine {
        method: &Method::POST,
        url: &url,
    };
    let (one, other) = (
        current.headers(request, 1).unwrap(),
        current.headers(request, 1).unwrap(),
    );
    assert_eq!(one["authorization"], "DPoP hush");
    assert_ne!(one["dpop"], other["dpop"]);
    // What the key has learned stays when the tokens are renewed.
    let renewed = Current::of(&grant, Some(&current)).unwrap().unwrap();
    assert!(std::sync::Arc::ptr_eq(
        renewed.dpop.as_ref().unwrap(),
        current.dpop.as_ref().unwrap()
    ));
}

#[test]
fn nothing_of_a_token_is_shown() {
    let current = current(0, None);
    let shown = format!(
        "{current:?} {:?} {:?}",
        current.authorization, current.tokens
    );
    assert!(!shown.contains("hush"), "{shown}");
}
