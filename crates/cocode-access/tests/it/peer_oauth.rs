//! Tokens of a real authorization server, `oidc-provider`, found by its own metadata and verified with its
//! own keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cocode_access::{OAuthOptions, PrincipalKind};
use cocode_testkit::OAuthPeer;
use cocode_wire::HttpClient;
use http::Request;
use serde_json::Value;

use crate::issuer::{comes, door};

/// A token that a client gets for itself.
async fn token(peer: &OAuthPeer, scope: &str) -> String {
    let (id, secret) = peer.confidential_client();
    let resource: String =
        url::form_urlencoded::byte_serialize(peer.resource().as_bytes()).collect();
    let form = format!("grant_type=client_credentials&scope={scope}&resource={resource}");
    let request = Request::post(format!("{}/token", peer.issuer()))
        .header(
            "authorization",
            format!("Basic {}", STANDARD.encode(format!("{id}:{secret}"))),
        )
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Bytes::from(form))
        .unwrap();
    let answer = HttpClient::default()
        .fetch(request, 64 * 1024)
        .await
        .unwrap();
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    body["access_token"]
        .as_str()
        .unwrap_or_else(|| panic!("{body}"))
        .to_owned()
}

#[tokio::test]
async fn peer_oidc_provider_issues_tokens_that_let_their_owner_in() {
    let peer = tokio::task::spawn_blocking(OAuthPeer::start).await.unwrap();
    let usual = || OAuthOptions::new(peer.resource().parse().unwrap(), peer.issuer());
    let token = token(&peer, "mcp:basic").await;
    let mut options = usual();
    options.required_scopes = vec!["mcp:basic".to_owned()];
    let principal = comes(&door(options.clone()), &token).await.unwrap();
    assert_eq!(principal.name.as_str(), peer.confidential_client().0);
    assert_eq!(principal.kind, PrincipalKind::Jwt);
    assert_eq!(*principal.scopes, ["mcp:basic"]);

    options.required_scopes = vec!["mcp:write".to_owned()];
    let refusal = comes(&door(options), &token).await.unwrap_err();
    assert_eq!(refusal.status(), 403);
    let mut options = usual();
    options.resource = "https://other.example/mcp".parse().unwrap();
    let refusal = comes(&door(options), &token).await.unwrap_err();
    assert_eq!(refusal.message(), "the token is not for this audience");
    let mut changed = token.clone();
    let last = changed.pop().unwrap();
    let middle = changed.pop().unwrap();
    changed.extend([if middle == 'A' { 'B' } else { 'A' }, last]);
    let refusal = comes(&door(usual()), &changed).await.unwrap_err();
    assert_eq!(refusal.message(), "the signature of the token is wrong");
}
