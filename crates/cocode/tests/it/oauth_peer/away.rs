//! The authorization server is away, or its answer is lost on the way: a token that is good is used,
//! nothing is thrown away, and what is really over is said to be.

use std::time::Duration;

use cocode_client::{CredentialsErrorKind, Session};
use serde_json::{Value, json};

use super::{World, connect, connect_refusal, pass_time, refusal, soon, try_whoami, whoami};

/// How long nobody asks again after a failure.
const PAUSE: Duration = Duration::from_secs(5);

/// How the authorization server fails once: by an answer, or by none.
const FAILURES: [u16; 2] = [503, 0];

fn fail(world: &World, status: u16) {
    world.peer.set(&json!({ "failNextRefresh": status }));
}

/// Fails unless the server could not be asked for new tokens, and nothing was thrown away for it.
async fn assert_temporary(world: &World, session: &Session) {
    let error = try_whoami(session).await.unwrap_err();
    let refused = refusal(&error);
    assert_eq!(refused.kind, CredentialsErrorKind::Temporary, "{refused}");
    let told = "server `notes` has a token that could not be renewed";
    assert!(refused.to_string().starts_with(told), "{refused}");
    assert!(refused.hints.is_empty(), "{refused:?}");
    let grant = world.grant().await.unwrap();
    assert!(grant.tokens.unwrap().refresh.is_some());
}

#[tokio::test]
async fn a_token_that_is_still_good_is_used_while_the_authorization_server_is_away() {
    for status in FAILURES {
        let world = World::start();
        world.log_in().await;
        world.let_end_in(30).await;
        fail(&world, status);
        let credentials = world.credentials();
        let session = world.session_by(credentials.clone()).await;
        soon("the attempt", credentials.settle()).await;
        let failed = format!("/tokens/refresh_token/failed_{status}");
        assert_eq!(world.peer.count(&failed), 1);
        assert_eq!(whoami(&session).await["sub"], "alice");
        soon("nothing", credentials.settle()).await;
        assert_eq!(world.n_renewals(), 0);
        // Later it is tried again.
        pass_time(PAUSE).await;
        assert_eq!(whoami(&session).await["sub"], "alice");
        soon("the attempt", credentials.settle()).await;
        assert_eq!(world.n_renewals(), 1);
        assert_eq!(world.peer.state()["unauthorized"]["expired"], json!(null));
    }
}

#[tokio::test]
async fn a_token_that_has_ended_is_kept_until_the_authorization_server_is_back() {
    for status in FAILURES {
        let world = World::start();
        world.log_in().await;
        let session = world.session().await;
        // Refused by the server.
        world.peer.expire();
        fail(&world, status);
        assert_temporary(&world, &session).await;
        // Who failed a moment ago does not ask again and again.
        let n_asked = asked(&world);
        assert_temporary(&world, &session).await;
        assert_eq!(asked(&world), n_asked);
        pass_time(PAUSE).await;
        assert_eq!(whoami(&session).await["sub"], "alice");
        assert_eq!(world.n_renewals(), 1);

        // Known to have ended before anything is sent.
        world.let_end_in(-5).await;
        fail(&world, status);
        let outcome = connect(world.peer.mcp(), world.credentials()).await;
        let refused = connect_refusal(&outcome);
        assert_eq!(refused.kind, CredentialsErrorKind::Temporary, "{refused}");
        assert_eq!(whoami(&world.session().await).await["sub"], "alice");
        assert_eq!(world.n_renewals(), 2);
        assert_eq!(world.peer.count("/refresh_reuse"), 0);
        assert_eq!(world.peer.count("/authorizations/started"), 1);
    }
}

#[tokio::test]
async fn a_renewal_whose_answer_was_lost_ends_in_a_sign_in_and_keeps_the_registration() {
    let world = World::start();
    let before = world.log_in().await.client_id;
    let session = world.session().await;
    world.peer.expire();
    world.peer.set(&json!({ "loseNextRefresh": true }));
    // Nobody can know that the refresh token is used up.
    assert_temporary(&world, &session).await;
    assert_eq!(world.peer.count("/tokens/refresh_token/lost"), 1);
    pass_time(PAUSE).await;
    let error = try_whoami(&session).await.unwrap_err();
    let refused = refusal(&error);
    assert_eq!(refused.kind, CredentialsErrorKind::NeedsAuth, "{refused}");
    assert_eq!(refused.hints, ["sign in with `cocode mcp login notes`"]);
    assert!(
        refused.to_string().contains("the sign-in has ended"),
        "{refused}"
    );
    let grant = world.grant().await.unwrap();
    assert_eq!(
        (grant.client.id.as_str(), grant.tokens.is_none()),
        (before.as_str(), true)
    );
    // It is asked no more.
    let n_asked = asked(&world);
    try_whoami(&session).await.unwrap_err();
    assert_eq!(asked(&world), n_asked);

    assert_eq!(world.log_in().await.client_id, before);
    assert_eq!(whoami(&session).await["sub"], "alice");
    assert_eq!(world.peer.count("/registrations/success"), 1);
}

/// How many times tokens were asked for with a refresh token.
fn asked(world: &World) -> usize {
    let requests = world.requests("token");
    let is_refresh = |request: &&Value| request["grant_type"] == "refresh_token";
    requests.iter().filter(is_refresh).count()
}
