//! Tokens end, and nobody notices: renewed ahead of that, after a refusal, again and again, and in
//! the midst of a call.

use std::sync::Arc;

use cocode_client::{RawJson, RequestOptions};
use serde_json::json;
use tokio::sync::mpsc;

use super::{World, now, soon, whoami};

#[tokio::test]
async fn a_token_is_renewed_ahead_of_its_end_so_that_no_request_is_refused() {
    let world = World::start();
    world.log_in().await;
    let refused = world.peer.state()["unauthorized"].clone();
    world.let_end_in(30).await;
    let credentials = world.credentials();
    let session = world.session_by(credentials.clone()).await;
    assert_eq!(whoami(&session).await["sub"], "alice");
    soon("the renewal", credentials.settle()).await;
    assert_eq!(world.n_renewals(), 1);
    assert_eq!(world.peer.state()["unauthorized"], refused);
    // What came of it is stored, with its own end.
    let tokens = world.grant().await.unwrap().tokens.unwrap();
    assert!(tokens.expires_at.unwrap() > now() + 3000);
    whoami(&session).await;
    whoami(&world.session().await).await;
    assert_eq!(world.n_renewals(), 1);
}

#[tokio::test]
async fn a_token_with_most_of_its_life_before_it_is_left_alone() {
    let world = World::start();
    world.log_in().await;
    world.let_end_in(90).await;
    let credentials = world.credentials();
    whoami(&world.session_by(credentials.clone()).await).await;
    soon("nothing", credentials.settle()).await;
    assert_eq!(world.n_renewals(), 0);
}

#[tokio::test]
async fn nobody_waits_for_a_renewal_ahead_of_the_end() {
    let world = World::start();
    world.log_in().await;
    world.let_end_in(30).await;
    world.peer.set(&json!({ "holdRefresh": true }));
    let credentials = world.credentials();
    let session = world.session_by(credentials.clone()).await;
    // The authorization server takes its time, and calls go on.
    assert_eq!(whoami(&session).await["sub"], "alice");
    let peer = world.peer.clone();
    let held = tokio::task::spawn_blocking(move || peer.wait_for("/refreshes_held", 1));
    assert_eq!(soon("a renewal", held).await.unwrap()["refreshes_held"], 1);
    assert_eq!(whoami(&session).await["sub"], "alice");
    world.peer.set(&json!({ "holdRefresh": false }));
    soon("the renewal", credentials.settle()).await;
    assert_eq!(world.n_renewals(), 1);
    // The new one is in use: without it, nothing would be accepted.
    let tokens = world.grant().await.unwrap().tokens.unwrap();
    assert!(tokens.expires_at.unwrap() > now() + 3000);
    whoami(&session).await;
    assert_eq!(world.peer.state()["unauthorized"]["expired"], json!(null));
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_and_the_request_sent_again() {
    let world = World::start();
    world.log_in().await;
    let session = world.session().await;
    whoami(&session).await;
    world.peer.expire();
    assert_eq!(whoami(&session).await["sub"], "alice");
    assert_eq!(world.n_renewals(), 1);
    assert_eq!(world.peer.count("/unauthorized/expired"), 1);
    let renewals = world.requests("token");
    let renewal = renewals.last().unwrap();
    assert_eq!(renewal["resource"], world.peer.resource());
    assert_eq!(renewal["client_authentication"], "none");
}

#[tokio::test]
async fn many_requests_at_once_that_are_refused_renew_once() {
    let world = World::start();
    world.log_in().await;
    let session = world.session().await;
    world.peer.expire();
    let calls = (0..20).map(|_| whoami(&session));
    for identity in futures_util::future::join_all(calls).await {
        assert_eq!(identity["sub"], "alice");
    }
    assert_eq!(world.n_renewals(), 1);
    assert_eq!(world.peer.count("/refresh_reuse"), 0);
}

#[tokio::test]
async fn each_expiry_rotates_the_refresh_token_and_the_newest_is_stored() {
    let world = World::start();
    world.log_in().await;
    let (first, second) = (world.session().await, world.session().await);
    let mut refresh_tokens = Vec::new();
    for n_expiries in 1..=5 {
        world.peer.expire();
        // The second one finds what the first has stored.
        whoami(&first).await;
        whoami(&second).await;
        assert_eq!(world.n_renewals(), n_expiries);
        let tokens = world.grant().await.unwrap().tokens.unwrap();
        refresh_tokens.push(tokens.refresh.unwrap().expose().to_owned());
    }
    refresh_tokens.sort();
    refresh_tokens.dedup();
    assert_eq!(refresh_tokens.len(), 5);
    assert_eq!(world.peer.count("/refresh_reuse"), 0);
    world.assert_stored_well();
}

#[tokio::test]
async fn tokens_that_last_a_second_are_enough_to_go_on_for_ever() {
    let world = World::start_with(&json!({ "accessTokenTtl": 1 }));
    world.log_in().await;
    let session = world.session().await;
    while world.n_renewals() < 4 {
        assert_eq!(whoami(&session).await["sub"], "alice");
    }
    assert_eq!(world.peer.count("/refresh_reuse"), 0);
    assert_eq!(world.peer.count("/tokens/refresh_token/invalid_grant"), 0);
}

#[tokio::test]
async fn a_call_outlives_the_token_that_it_began_with_and_the_next_renews() {
    let world = World::start();
    world.log_in().await;
    let session = world.session().await;
    let (told, mut reports) = mpsc::channel(16);
    let options = RequestOptions {
        on_progress: Some(Arc::new(move |report| {
            told.try_send(report.progress).unwrap();
        })),
        ..RequestOptions::default()
    };
    let arguments = RawJson::parse(r#"{"ms": 2000, "steps": 4}"#).unwrap();
    let (result, ()) = tokio::join!(
        session.call_tool("slow", Some(&arguments), options),
        async {
            soon("the first step", reports.recv()).await.unwrap();
            world.peer.expire();
            // It goes on, as the next step shows.
            soon("another step", reports.recv()).await.unwrap();
        }
    );
    let result = result.unwrap();
    assert!(!result.is_error && result.raw.as_str().contains("done in 4 steps"));
    assert_eq!(world.n_renewals(), 0);
    assert_eq!(whoami(&session).await["sub"], "alice");
    assert_eq!(world.n_renewals(), 1);
}

#[tokio::test]
async fn a_renewal_that_nobody_waits_for_any_more_is_stored_all_the_same() {
    let world = World::start();
    world.log_in().await;
    let credentials = world.credentials();
    let session = super::connect(world.peer.mcp(), credentials.clone())
        .await
        .unwrap();
    world.peer.expire();
    world.peer.set(&json!({ "holdRefresh": true }));
    {
        let peer = world.peer.clone();
        let held = tokio::task::spawn_blocking(move || peer.wait_for("/refreshes_held", 1));
        tokio::select! {
            identity = whoami(&session) => panic!("{identity}"),
            held = held => assert_eq!(held.unwrap()["refreshes_held"], 1),
        }
    }
    // Whoever called has gone.
    world.peer.set(&json!({ "holdRefresh": false }));
    soon("the renewal", credentials.settle()).await;
    assert_eq!(world.n_renewals(), 1);
    assert_eq!(whoami(&world.session().await).await["sub"], "alice");
    assert_eq!(whoami(&session).await["sub"], "alice");
    assert_eq!(world.n_renewals(), 1);
    assert_eq!(world.peer.count("/refresh_reuse"), 0);
}
