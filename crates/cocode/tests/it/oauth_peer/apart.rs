//! What was given for one server, authorization server or client is not shown to another: as the
//! servers themselves see it.

use cocode_auth::oauth::{LoginOptions, OAuthCredentials};
use cocode_client::CredentialsErrorKind;
use cocode_core::{Grant, OAuth};
use serde_json::json;

use super::{SECRET, World, connect, connect_refusal, whoami};

/// Fails unless a request that is let in by nothing is all that the server of `url` sees.
async fn assert_nothing_is_shown(world: &World, seen: &World, url: &str, oauth: OAuth) {
    let mut before = seen.peer.state();
    let missing = seen.peer.count("/unauthorized/missing");
    let credentials = OAuthCredentials::new(world.site_at(url, oauth), None);
    let outcome = connect(url, credentials).await;
    let refused = connect_refusal(&outcome);
    assert_eq!(refused.kind, CredentialsErrorKind::NeedsAuth, "{refused}");
    let mut after = seen.peer.state();
    assert!(seen.peer.count("/unauthorized/missing") > missing);
    for state in [&mut before, &mut after] {
        state["unauthorized"]["missing"].take();
    }
    // Neither was a token shown, nor was one asked for with what is stored.
    assert_eq!(after, before);
}

#[tokio::test]
async fn another_address_gets_none_of_the_tokens() {
    let (world, other) = (World::start(), World::start());
    world.log_in().await;
    // As if the address of the server had been changed.
    assert_nothing_is_shown(&world, &other, other.peer.mcp(), OAuth::default()).await;
    // The same server, of another tenant.
    let tenant = format!("{}?tenant=2", world.peer.mcp());
    assert_nothing_is_shown(&world, &world, &tenant, OAuth::default()).await;
    assert_eq!(whoami(&world.session().await).await["sub"], "alice");
}

#[tokio::test]
async fn another_client_authorization_server_resource_or_grant_does_not_use_the_tokens() {
    let world = World::start();
    world.log_in().await;
    let plain = OAuth::default;
    let others = [
        OAuth {
            client_id: Some(world.peer.public_client().to_owned()),
            ..plain()
        },
        OAuth {
            issuer: Some("http://127.0.0.1:9".to_owned()),
            ..plain()
        },
        OAuth {
            resource: Some("http://127.0.0.1:9/other".to_owned()),
            ..plain()
        },
    ];
    for oauth in others {
        // The same must hold when they have ended and would have to be renewed.
        assert_nothing_is_shown(&world, &world, world.peer.mcp(), oauth.clone()).await;
        world.let_end_in(-5).await;
        assert_nothing_is_shown(&world, &world, world.peer.mcp(), oauth).await;
        world.let_end_in(3600).await;
    }
    assert_eq!(whoami(&world.session().await).await["sub"], "alice");
    // Who signs in by itself does not act for a person, and the other way round.
    let (id, _) = world.peer.confidential_client();
    let machine = OAuth {
        client_id: Some(id.to_owned()),
        client_secret_env: Some(SECRET.to_owned()),
        grant: Grant::ClientCredentials,
        ..plain()
    };
    let credentials = OAuthCredentials::new(world.site_with(machine.clone()), None);
    let session = connect(world.peer.mcp(), credentials).await.unwrap();
    assert_eq!(whoami(&session).await["client_id"], id);
    let person = OAuth {
        grant: Grant::AuthorizationCode,
        ..machine
    };
    assert_nothing_is_shown(&world, &world, world.peer.mcp(), person).await;
}

#[tokio::test]
async fn a_client_registered_beforehand_is_not_shown_to_another_authorization_server() {
    let world = World::start();
    let (id, _) = world.peer.confidential_client();
    let oauth = OAuth {
        client_id: Some(id.to_owned()),
        client_secret_env: Some(SECRET.to_owned()),
        issuer: Some("http://127.0.0.1:9".to_owned()),
        ..OAuth::default()
    };
    let site = world.site_with(oauth);
    let outcome = world.log_in_at(&site, LoginOptions::default()).await;
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("http://127.0.0.1:9"), "{error}");
    assert_eq!(world.peer.count("/authorizations/started"), 0);
    assert_eq!(world.peer.state()["tokens"], json!({}));
}
