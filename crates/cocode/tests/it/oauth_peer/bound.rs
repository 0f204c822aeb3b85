//! Tokens that are bound to a key of ours: proofs with and without nonces, at both servers.

use std::sync::Arc;

use cocode_auth::oauth::{LoginOptions, OAuthCredentials, TokenKind};
use cocode_core::{Dpop, OAuth};
use serde_json::json;

use super::{World, connect, whoami};

#[tokio::test]
async fn a_server_that_wants_bound_tokens_gets_them_with_proofs_and_nonces() {
    let world = World::start_with(&json!({ "dpopRequired": true, "dpopNonce": true }));
    let asking = OAuthCredentials::new(world.site(), Some(Arc::new(world.person())));
    let session = connect(world.peer.mcp(), asking).await.unwrap();
    let identity = whoami(&session).await;
    assert_eq!(identity["bound"], true);
    assert_eq!(identity["sub"], "alice");
    let grant = world.grant().await.unwrap();
    assert_eq!(grant.tokens.unwrap().kind, TokenKind::Dpop);
    let key = grant.dpop_key.unwrap().expose().to_owned();

    // The nonce is asked for once, and known from then on.
    let asked = world.peer.count("/unauthorized/use_dpop_nonce");
    assert!(asked >= 1);
    for _ in 0..5 {
        whoami(&session).await;
    }
    assert_eq!(world.peer.count("/unauthorized/use_dpop_nonce"), asked);

    // Renewals prove the same key, also those of another process, which has to learn the nonce.
    world.peer.expire();
    assert_eq!(whoami(&session).await["bound"], true);
    world.peer.expire();
    let other = world.session().await;
    assert_eq!(whoami(&other).await["bound"], true);
    assert_eq!(world.n_renewals(), 2);
    let renewals = world.requests("token");
    let renewals = renewals.iter().filter(|request| {
        request["grant_type"] == "refresh_token" && request["outcome"] == "success"
    });
    assert!(renewals.clone().all(|request| request["dpop"] == true));
    let kept = world.grant().await.unwrap();
    assert_eq!(kept.dpop_key.unwrap().expose(), key);
    let state = world.peer.state();
    assert_eq!(state["refresh_reuse"], 0);
    for wrong in ["invalid_dpop_proof", "unbound", "scheme"] {
        assert_eq!(state["unauthorized"][wrong], json!(null), "{wrong}");
    }
}

#[tokio::test]
async fn a_server_that_begins_to_want_nonces_is_given_them() {
    let world = World::start_with(&json!({ "dpopRequired": true }));
    world.log_in().await;
    let session = world.session().await;
    assert_eq!(whoami(&session).await["bound"], true);
    assert_eq!(world.peer.count("/unauthorized/use_dpop_nonce"), 0);
    world.peer.set(&json!({ "dpopNonce": true }));
    assert_eq!(whoami(&session).await["bound"], true);
    assert_eq!(world.peer.count("/unauthorized/use_dpop_nonce"), 1);
    world.peer.expire();
    assert_eq!(whoami(&session).await["bound"], true);
    assert_eq!(world.n_renewals(), 1);
}

#[tokio::test]
async fn whether_tokens_are_bound_can_be_fixed() {
    let fixed = |dpop| OAuth {
        dpop,
        ..OAuth::default()
    };
    // Nobody wants it but the user.
    let world = World::start();
    let signed_in = world.log_in_with(fixed(Dpop::Always)).await;
    assert!(signed_in.bound);
    assert_eq!(whoami(&world.session().await).await["bound"], true);
    let signed_in = world.log_in_with(fixed(Dpop::Never)).await;
    assert!(!signed_in.bound);
    assert_eq!(whoami(&world.session().await).await["bound"], false);

    // The authorization server cannot.
    let world = World::start_with(&json!({ "dpop": false }));
    let site = world.site_with(fixed(Dpop::Always));
    let outcome = world.log_in_at(&site, LoginOptions::default()).await;
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("cannot bind tokens to a key"), "{error}");
    assert_eq!(world.peer.count("/authorizations/started"), 0);
}
