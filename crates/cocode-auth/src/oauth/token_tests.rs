//! Whole exchanges with a server that remembers what it was asked.

use std::error::Error as _;

use cocode_wire::{HttpClient, HttpSettings};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::test_server::{Heard, TestServer, answer, json as told};
use super::{IdentityExchange, TokenEndpoint, TokenError, Unbound};
use crate::oauth::client::{Client, ClientAuthentication, ClientKind};
use crate::oauth::dpop::Dpop;
use crate::oauth::guard::Guard;
use crate::oauth::http::Http;
use crate::oauth::jwt::tests::verified;
use crate::oauth::key::{SigningAlgorithm, SigningKey};
use crate::oauth::tokens::TokenKind;
use crate::secret::Secret;

const NOW: u64 = 1_800_000_000;
const RESOURCE: &str = "https://mcp.example/mcp";

pub(in crate::oauth) fn client(authentication: ClientAuthentication) -> Client {
    Client {
        id: "client".to_owned(),
        secret: Some(Secret::new("client-secret")),
        authentication,
        kind: ClientKind::Dynamic,
        redirect_uris: Vec::new(),
        secret_expires_at: None,
        registration_access_token: Some(Secret::new("registration-secret")),
        registration_uri: None,
    }
}

pub(in crate::oauth) fn endpoint<'a>(
    http: &'a Http,
    server: &'a TestServer,
    client: &'a Client,
) -> TokenEndpoint<'a> {
    TokenEndpoint {
        http,
        url: &server.url,
        issuer: "https://auth.example",
        client,
        key: None,
        dpop: None,
        unbound: Unbound::Refused,
        now: NOW,
    }
}

fn granted() -> String {
    told(
        200,
        &json!({"access_token": "granted-token", "token_type": "Bearer"}),
    )
}

fn bound() -> String {
    told(
        200,
        &json!({"access_token": "bound-token", "token_type": "DPoP"}),
    )
}

fn scopes() -> Vec<String> {
    vec!["read".to_owned(), "write".to_owned()]
}

fn dpop() -> Dpop {
    Dpop::new(SigningKey::generate(SigningAlgorithm::Es256).unwrap())
}

/// The claims of the proof in a request.
fn proof(dpop: &Dpop, request: &Heard) -> Value {
    let proof = request.headers[Dpop::HEADER].to_str().unwrap();
    verified(proof, &dpop.key().public_jwk().to_value())
        .unwrap()
        .1
}

#[tokio::test]
async fn a_code_is_redeemed_with_its_verifier() {
    let server = TestServer::start([granted()]).await;
    let (http, client) = (server.http(), client(ClientAuthentication::None));
    let tokens = endpoint(&http, &server, &client)
        .exchange_code(
            &Secret::new("c/ode"),
            &Secret::new("verifier"),
            "http://127.0.0.1:1/callback",
            Some(RESOURCE),
        )
        .await
        .unwrap();
    assert_eq!(tokens.access.expose(), "granted-token");
    assert!(tokens.refresh.is_none());
    let heard = server.heard();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].line, "POST /token?tenant=1 HTTP/1.1");
    assert_eq!(
        heard[0].body,
        "grant_type=authorization_code&code=c%2Fode\
         &redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback&code_verifier=verifier\
         &resource=https%3A%2F%2Fmcp.example%2Fmcp&client_id=client"
    );
    assert_eq!(
        heard[0].headers[CONTENT_TYPE],
        "application/x-www-form-urlencoded"
    );
    assert_eq!(heard[0].headers[ACCEPT], "application/json");
    assert!(!heard[0].headers.contains_key(AUTHORIZATION));
    assert!(!heard[0].headers.contains_key(Dpop::HEADER));
}

#[tokio::test]
async fn a_refresh_token_stays_until_it_is_replaced() {
    let replaced = json!({"access_token": "a", "token_type": "Bearer", "refresh_token": "new"});
    let server = TestServer::start([granted(), told(200, &replaced)]).await;
    let (http, client) = (server.http(), client(ClientAuthentication::SecretBasic));
    let endpoint = endpoint(&http, &server, &client);
    let old = Secret::new("old");
    let tokens = endpoint.refresh(&old, Some(RESOURCE), &[]).await.unwrap();
    assert_eq!(tokens.refresh.unwrap().expose(), "old");
    let tokens = endpoint.refresh(&old, None, &scopes()).await.unwrap();
    assert_eq!(tokens.refresh.unwrap().expose(), "new");
    let heard = server.heard();
    assert_eq!(
        heard[0].body,
        "grant_type=refresh_token&refresh_token=old&resource=https%3A%2F%2Fmcp.example%2Fmcp"
    );
    assert_eq!(
        heard[1].body,
        "grant_type=refresh_token&refresh_token=old&scope=read+write"
    );
    assert_eq!(
        heard[0].headers[AUTHORIZATION],
        "Basic Y2xpZW50OmNsaWVudC1zZWNyZXQ="
    );
}

#[tokio::test]
async fn a_client_asks_in_its_own_name_by_secret_and_by_key() {
    let server = TestServer::start([granted(), granted()]).await;
    let http = server.http();
    let by_secret = client(ClientAuthentication::SecretPost);
    endpoint(&http, &server, &by_secret)
        .client_credentials(Some(RESOURCE), &scopes())
        .await
        .unwrap();
    let by_key = client(ClientAuthentication::PrivateKeyJwt);
    let key = SigningKey::generate(SigningAlgorithm::Es384).unwrap();
    let mut with_key = endpoint(&http, &server, &by_key);
    with_key.key = Some(&key);
    with_key.client_credentials(None, &[]).await.unwrap();
    let heard = server.heard();
    assert_eq!(
        heard[0].body,
        "grant_type=client_credentials&resource=https%3A%2F%2Fmcp.example%2Fmcp\
         &scope=read+write&client_id=client&client_secret=client-secret"
    );
    let (begin, assertion) = heard[1].body.rsplit_once('=').unwrap();
    assert_eq!(
        begin,
        "grant_type=client_credentials&client_id=client&client_assertion_type=\
         urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion"
    );
    let (_, claims) = verified(assertion, &key.public_jwk().to_value()).unwrap();
    assert_eq!(claims["aud"], "https://auth.example");
    assert_eq!(claims["sub"], "client");
}

#[tokio::test]
async fn an_assertion_is_sent_once_whatever_comes_of_it() {
    for error in ["invalid_grant", "invalid_scope", "unauthorized_client"] {
        let server = TestServer::start([told(400, &json!({"error": error}))]).await;
        let (http, client) = (server.http(), client(ClientAuthentication::None));
        let refused = endpoint(&http, &server, &client)
            .jwt_bearer(&Secret::new("a.b.c"), Some(RESOURCE), &scopes())
            .await
            .unwrap_err();
        assert_eq!(refused.refusal().unwrap().error, error);
        let heard = server.heard();
        assert_eq!(heard.len(), 1, "{error}");
        assert_eq!(
            heard[0].body,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c\
             &resource=https%3A%2F%2Fmcp.example%2Fmcp&scope=read+write&client_id=client"
        );
    }
}

#[tokio::test]
async fn an_identity_provider_vouches_for_the_user() {
    let id_jag = "urn:ietf:params:oauth:token-type:id-jag";
    let vouched = json!({
        "issued_token_type": id_jag, "access_token": "id.j.ag", "token_type": "N_A"
    });
    let access = "urn:ietf:params:oauth:token-type:access_token";
    let other = json!({"issued_token_type": access, "access_token": "x", "token_type": "Bearer"});
    let unsaid = json!({"access_token": "x", "token_type": "Bearer"});
    let empty = json!({"issued_token_type": id_jag, "token_type": "N_A"});
    let server =
        TestServer::start([vouched, other, unsaid, empty].map(|body| told(200, &body))).await;
    let (http, client) = (server.http(), client(ClientAuthentication::None));
    let (endpoint, id_token) = (endpoint(&http, &server, &client), Secret::new("i.d.t"));
    let scopes = scopes();
    let exchange = IdentityExchange {
        id_token: &id_token,
        audience: "https://auth.example/",
        resource: RESOURCE,
        scopes: &scopes,
    };
    let assertion = endpoint.exchange_id_token(exchange).await.unwrap();
    assert_eq!(assertion.expose(), "id.j.ag");
    assert_eq!(
        server.heard()[0].body,
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange\
         &requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag\
         &audience=https%3A%2F%2Fauth.example%2F&resource=https%3A%2F%2Fmcp.example%2Fmcp\
         &scope=read+write&subject_token=i.d.t\
         &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token&client_id=client"
    );
    for expected in [
        "it vouches by urn:ietf:params:oauth:token-type:access_token, not by an ID-JAG",
        "it does not say that it is an ID-JAG",
        "there is no ID-JAG in it",
    ] {
        let error = endpoint.exchange_id_token(exchange).await.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[tokio::test]
async fn a_wanted_nonce_is_sent_once_more_and_kept() {
    let wanted = json!({"error": "use_dpop_nonce"}).to_string();
    let server = TestServer::start([
        answer(400, &[("DPoP-Nonce", "first")], &wanted),
        answer(
            200,
            &[("DPoP-Nonce", "second")],
            r#"{"access_token":"bound-token","token_type":"DPoP"}"#,
        ),
        bound(),
    ])
    .await;
    let (http, client, dpop) = (server.http(), client(ClientAuthentication::None), dpop());
    let mut endpoint = endpoint(&http, &server, &client);
    endpoint.dpop = Some(&dpop);
    for _ in 0..2 {
        let tokens = endpoint.client_credentials(None, &[]).await.unwrap();
        assert_eq!(tokens.kind, TokenKind::Dpop);
    }
    let heard = server.heard();
    assert_eq!(heard.len(), 3);
    let proofs: Vec<Value> = heard.iter().map(|request| proof(&dpop, request)).collect();
    assert_eq!(proofs[0].get("nonce"), None);
    assert_eq!(proofs[1]["nonce"], "first");
    assert_eq!(proofs[2]["nonce"], "second");
    assert_ne!(proofs[0]["jti"], proofs[1]["jti"]);
    let mut without_query = server.url.clone();
    without_query.set_query(None);
    assert_eq!(proofs[0]["htu"], without_query.as_str());
    assert_eq!(proofs[0]["htm"], "POST");
    assert_eq!(proofs[0].get("ath"), None);
}

#[tokio::test]
async fn a_server_that_is_never_content_with_a_nonce_is_given_up() {
    let wanted = json!({"error": "use_dpop_nonce"}).to_string();
    let again = |nonce| answer(401, &[("DPoP-Nonce", nonce)], &wanted);
    let server = TestServer::start([again("one"), again("two"), bound()]).await;
    let (http, client, dpop) = (server.http(), client(ClientAuthentication::None), dpop());
    let mut bound = endpoint(&http, &server, &client);
    bound.dpop = Some(&dpop);
    let error = bound.client_credentials(None, &[]).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().error, "use_dpop_nonce");
    assert_eq!(server.heard().len(), 2);

    // Without a nonce there is nothing to try.
    let server = TestServer::start([answer(400, &[], &wanted)]).await;
    let mut bound = endpoint(&http, &server, &client);
    bound.dpop = Some(&dpop);
    bound.client_credentials(None, &[]).await.unwrap_err();
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_proof_that_was_refused_for_its_time_is_made_by_the_clock_of_the_server() {
    let refused = json!({"error": "invalid_dpop_proof"}).to_string();
    let date = ("Date", "Fri, 15 Jan 2027 10:00:00 GMT");
    let server = TestServer::start([
        answer(400, &[date], &refused),
        bound(),
        answer(400, &[date], &refused),
    ])
    .await;
    let (http, client, dpop) = (server.http(), client(ClientAuthentication::None), dpop());
    let mut endpoint = endpoint(&http, &server, &client);
    endpoint.dpop = Some(&dpop);
    endpoint.client_credentials(None, &[]).await.unwrap();
    // The clock is right by now, so a refusal has another reason.
    endpoint.client_credentials(None, &[]).await.unwrap_err();
    let heard = server.heard();
    assert_eq!(heard.len(), 3);
    assert_eq!(proof(&dpop, &heard[0])["iat"], NOW);
    assert_eq!(proof(&dpop, &heard[1])["iat"], NOW + 7200);
}

#[tokio::test]
async fn tokens_that_are_not_bound_are_used_only_if_that_is_allowed() {
    let server = TestServer::start([granted(), granted()]).await;
    let (http, client, dpop) = (server.http(), client(ClientAuthentication::None), dpop());
    let mut endpoint = endpoint(&http, &server, &client);
    endpoint.dpop = Some(&dpop);
    let error = endpoint.client_credentials(None, &[]).await.unwrap_err();
    assert!(matches!(error, TokenError::Malformed { .. }), "{error:?}");
    endpoint.unbound = Unbound::Accepted;
    let tokens = endpoint.client_credentials(None, &[]).await.unwrap();
    assert_eq!(tokens.kind, TokenKind::Bearer);
}

#[tokio::test]
async fn an_exchange_that_broke_is_not_repeated() {
    let server = TestServer::start([String::new(), granted()]).await;
    let (http, client) = (server.http(), client(ClientAuthentication::None));
    let error = endpoint(&http, &server, &client)
        .refresh(&Secret::new("once"), None, &[])
        .await
        .unwrap_err();
    assert!(!error.is_final());
    let TokenError::Temporary(trouble) = error else {
        panic!("{error:?}");
    };
    assert!(trouble.sent);
    assert!(trouble.source().is_some());
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_connection_that_was_not_made_is_tried_twice() {
    // A proxy that connects to nobody counts the attempts.
    let nobody = || answer(502, &[], "");
    let proxy = TestServer::start([nobody(), nobody(), nobody()]).await;
    let settings = HttpSettings {
        https_proxy: Some(proxy.url.origin().ascii_serialization()),
        ..HttpSettings::default()
    };
    let guard = Guard::for_server(&RESOURCE.parse().unwrap());
    let http = Http::new(HttpClient::new(settings), guard);
    let client = client(ClientAuthentication::None);
    let url = "https://auth.example/token".parse().unwrap();
    let mut endpoint = endpoint(&http, &proxy, &client);
    endpoint.url = &url;
    let error = endpoint
        .refresh(&Secret::new("once"), None, &[])
        .await
        .unwrap_err();
    let TokenError::Temporary(trouble) = error else {
        panic!("{error:?}");
    };
    assert!(!trouble.sent);
    let lines: Vec<String> = proxy.heard().into_iter().map(|heard| heard.line).collect();
    assert_eq!(lines, ["CONNECT auth.example:443 HTTP/1.1"; 2]);
}

#[tokio::test]
async fn a_server_that_is_not_there_has_seen_nothing() {
    let server = TestServer::start([]).await;
    let http = server.http();
    let client = client(ClientAuthentication::None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token?secret", listener.local_addr().unwrap());
    drop(listener);
    let url = url.parse().unwrap();
    let mut absent = endpoint(&http, &server, &client);
    absent.url = &url;
    let error = absent.client_credentials(None, &[]).await.unwrap_err();
    let TokenError::Temporary(trouble) = error else {
        panic!("{error:?}");
    };
    assert!(!trouble.sent);
    assert!(!trouble.to_string().contains("secret"), "{trouble}");
}

#[tokio::test]
async fn nothing_goes_where_the_guard_forbids() {
    let server = TestServer::start([granted()]).await;
    let guard = Guard::for_server(&RESOURCE.parse().unwrap());
    let http = Http::new(HttpClient::default(), guard);
    let client = client(ClientAuthentication::None);
    let error = endpoint(&http, &server, &client)
        .client_credentials(None, &[])
        .await
        .unwrap_err();
    assert!(matches!(error, TokenError::Address(_)), "{error:?}");
    assert!(error.is_final());
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn nothing_secret_is_printed() {
    let repeated = json!({
        "error": "invalid_grant",
        "error_description": "old-secret of client-secret is unknown",
    });
    let server = TestServer::start([
        told(200, &json!({
            "access_token": "access-secret", "token_type": "DPoP", "refresh_token": "next-secret",
        })),
        told(400, &repeated),
        String::new(),
    ])
    .await;
    let (http, client) = (server.http(), client(ClientAuthentication::SecretPost));
    let (dpop, refresh) = (dpop(), Secret::new("old-secret"));
    let mut endpoint = endpoint(&http, &server, &client);
    endpoint.dpop = Some(&dpop);
    let tokens = endpoint.refresh(&refresh, None, &[]).await.unwrap();
    let refused = endpoint.refresh(&refresh, None, &[]).await.unwrap_err();
    let broken = endpoint.refresh(&refresh, None, &[]).await.unwrap_err();
    let exchange = IdentityExchange {
        id_token: &refresh,
        audience: "",
        resource: "",
        scopes: &[],
    };
    let printed = format!(
        "{endpoint:?} {endpoint:#?} {client:?} {dpop:?} {tokens:?} {exchange:?} \
         {refused:?} {refused} {broken:?} {broken}"
    );
    assert!(!printed.contains("-secret"), "{printed}");
    assert!(!printed.contains("tenant"), "{printed}");
    assert!(!printed.contains(dpop.key().stored().expose()));
}
