//! A server that wants a token which allows more: somebody who is there is asked for all of it, and
//! where nobody is, the next sign-in asks.

use std::sync::Arc;

use cocode_auth::oauth::OAuthCredentials;
use cocode_client::CredentialsErrorKind;
use cocode_core::OAuth;
use serde_json::json;

use super::{World, connect, refusal, whoami, words, write_note};

const ALL: [&str; 3] = ["mcp:basic", "mcp:write", "offline_access"];

#[tokio::test]
async fn who_is_there_is_asked_for_all_that_was_allowed_and_what_is_wanted() {
    let world = World::start();
    let asking = OAuthCredentials::new(world.site(), Some(Arc::new(world.person())));
    let session = connect(world.peer.mcp(), asking).await.unwrap();
    assert_eq!(whoami(&session).await["scopes"], json!(["mcp:basic"]));
    assert_eq!(write_note(&session).await.unwrap(), "written: hello");
    assert_eq!(world.peer.count("/forbidden/mcp:write"), 1);
    let asked = world.requests("authorization");
    assert_eq!(asked.len(), 2);
    assert_eq!(words(&asked[0]["scope"]), ["mcp:basic", "offline_access"]);
    assert_eq!(words(&asked[1]["scope"]), ALL);
    // Its client was registered for less.
    let registrations = world.requests("registration");
    assert_eq!(registrations.len(), 2);
    assert_eq!(words(&registrations[1]["scope"]), ALL);
    // The same session goes on.
    let scopes = whoami(&session).await["scopes"].clone();
    assert_eq!(words(&json!(joined(&scopes))), ["mcp:basic", "mcp:write"]);
    // It stays so after a renewal.
    world.peer.expire();
    assert_eq!(write_note(&session).await.unwrap(), "written: hello");
    assert_eq!(world.n_renewals(), 1);
    assert_eq!(world.peer.count("/authorizations/started"), 2);
}

fn joined(scopes: &serde_json::Value) -> String {
    let scopes = scopes.as_array().unwrap().iter();
    let scopes: Vec<&str> = scopes.map(|scope| scope.as_str().unwrap()).collect();
    scopes.join(" ")
}

#[tokio::test]
async fn where_nobody_is_there_what_is_wanted_is_told_and_kept_for_the_next_sign_in() {
    let world = World::start();
    world.log_in().await;
    let session = world.session().await;
    let error = write_note(&session).await.unwrap_err();
    let refused = refusal(&error);
    assert_eq!(refused.kind, CredentialsErrorKind::NeedsAuth);
    assert_eq!(
        refused.to_string(),
        "server `notes` wants more than you have allowed: mcp:write"
    );
    assert_eq!(refused.hints, ["sign in with `cocode mcp login notes`"]);
    assert_eq!(world.grant().await.unwrap().wanted_scopes, ["mcp:write"]);
    // What is allowed goes on.
    assert_eq!(whoami(&session).await["sub"], "alice");

    world.log_in().await;
    let asked = world.requests("authorization");
    assert_eq!(words(&asked.last().unwrap()["scope"]), ALL);
    // The session that was refused uses the new token.
    assert_eq!(write_note(&session).await.unwrap(), "written: hello");
    assert_eq!(world.grant().await.unwrap().wanted_scopes, [""; 0]);
}

#[tokio::test]
async fn scopes_that_the_user_fixed_are_widened_by_what_is_wanted() {
    let world = World::start();
    let fixed = OAuth {
        scopes: vec!["mcp:basic".to_owned()],
        ..OAuth::default()
    };
    let asking = OAuthCredentials::new(world.site_with(fixed), Some(Arc::new(world.person())));
    let session = connect(world.peer.mcp(), asking).await.unwrap();
    assert_eq!(write_note(&session).await.unwrap(), "written: hello");
    let asked = world.requests("authorization");
    assert_eq!(asked.len(), 2);
    assert_eq!(words(&asked[1]["scope"]), ALL);
}
