//! The ways to be a client: registered by ourselves, described by a document, registered beforehand
//! with a secret, and acting for itself with a secret or a key.

use cocode_auth::oauth::{
    ClientKind, LoginOptions, OAuthCredentials, Site, client_metadata_document,
};
use cocode_client::CredentialsErrorKind;
use cocode_core::{Grant, OAuth, Registration};
use serde_json::{Value, json};

use super::{KEY, SECRET, World, connect, connect_refusal, refusal, try_whoami, whoami};

const DOCUMENT: &str = "https://client.example/cocode.json";

/// Who asks when a token is wanted, and how they prove it.
fn last_token_request(world: &World) -> (Value, Value, Value) {
    let requests = world.requests("token");
    let last = requests.last().unwrap();
    let member = |name: &str| last[name].clone();
    (
        member("grant_type"),
        member("client_id"),
        member("client_authentication"),
    )
}

#[tokio::test]
async fn a_client_that_acts_for_itself_needs_nobody_with_its_secret_or_its_key() {
    let world = World::start();
    let (secret_id, key_id) = (
        world.peer.confidential_client().0,
        world.peer.key_client().0,
    );
    let by_secret = OAuth {
        grant: Grant::ClientCredentials,
        client_id: Some(secret_id.to_owned()),
        client_secret_env: Some(SECRET.to_owned()),
        ..OAuth::default()
    };
    let by_key = OAuth {
        grant: Grant::ClientCredentials,
        client_id: Some(key_id.to_owned()),
        private_key_env: Some(KEY.to_owned()),
        ..OAuth::default()
    };
    for (oauth, id, method) in [
        (by_secret, secret_id, "client_secret_basic"),
        (by_key, key_id, "private_key_jwt"),
    ] {
        let credentials = OAuthCredentials::new(world.site_with(oauth), None);
        let session = connect(world.peer.mcp(), credentials.clone())
            .await
            .unwrap();
        assert_eq!(whoami(&session).await["client_id"], id);
        let expected = (json!("client_credentials"), json!(id), json!(method));
        assert_eq!(last_token_request(&world), expected);
        let n_before = world.peer.count("/tokens/client_credentials/success");
        // Stored for the next process, and asked for anew when it has ended.
        let site = credentials.site().clone();
        let again = connect(world.peer.mcp(), OAuthCredentials::new(site, None));
        whoami(&again.await.unwrap()).await;
        assert_eq!(
            world.peer.count("/tokens/client_credentials/success"),
            n_before
        );
        world.peer.expire();
        assert_eq!(whoami(&session).await["client_id"], id);
        let n_after = world.peer.count("/tokens/client_credentials/success");
        assert_eq!(n_after, n_before + 1);
    }
    assert_eq!(world.peer.count("/authorizations/started"), 0);
    assert_eq!(world.peer.count("/registrations/success"), 0);
}

#[tokio::test]
async fn a_client_that_shows_a_wrong_secret_is_told_apart_from_nobody_signed_in() {
    let world = World::start();
    let oauth = OAuth {
        grant: Grant::ClientCredentials,
        client_id: Some(world.peer.confidential_client().0.to_owned()),
        // A key is no secret of this client.
        client_secret_env: Some(KEY.to_owned()),
        ..OAuth::default()
    };
    let credentials = OAuthCredentials::new(world.site_with(oauth), None);
    let outcome = connect(world.peer.mcp(), credentials).await;
    let refused = connect_refusal(&outcome);
    assert_eq!(refused.kind, CredentialsErrorKind::Unusable);
    assert!(
        refused.to_string().contains("does not let us in"),
        "{refused}"
    );
    assert!(!refused.to_string().contains("PRIVATE KEY"));
}

#[tokio::test]
async fn a_client_registered_beforehand_shows_its_secret_to_sign_in_and_to_renew() {
    let world = World::start_with(&json!({ "registration": false }));
    let (id, _) = world.peer.confidential_client();
    let oauth = OAuth {
        client_id: Some(id.to_owned()),
        client_secret_env: Some(SECRET.to_owned()),
        ..OAuth::default()
    };
    let signed_in = world.log_in_with(oauth.clone()).await;
    assert_eq!(signed_in.client, ClientKind::Preregistered);
    let shown = |grant: &str| (json!(grant), json!(id), json!("client_secret_basic"));
    assert_eq!(last_token_request(&world), shown("authorization_code"));
    let credentials = OAuthCredentials::new(world.site_with(oauth), None);
    let session = connect(world.peer.mcp(), credentials).await.unwrap();
    assert_eq!(whoami(&session).await["client_id"], id);
    world.peer.expire();
    assert_eq!(whoami(&session).await["client_id"], id);
    assert_eq!(last_token_request(&world), shown("refresh_token"));
    assert_eq!(world.peer.count("/registrations/success"), 0);
}

#[tokio::test]
async fn a_client_without_a_secret_that_is_known_beforehand_needs_no_registration() {
    let world = World::start_with(&json!({ "registration": false }));
    let id = world.peer.public_client();
    let oauth = OAuth {
        client_id: Some(id.to_owned()),
        ..OAuth::default()
    };
    world.log_in_with(oauth.clone()).await;
    let credentials = OAuthCredentials::new(world.site_with(oauth), None);
    let session = world.session_by(credentials).await;
    assert_eq!(whoami(&session).await["client_id"], id);
    // An entry without this client is another one.
    let outcome = connect(world.peer.mcp(), world.credentials()).await;
    let refused = connect_refusal(&outcome);
    assert_eq!(
        refused.kind,
        CredentialsErrorKind::NeedsClientRegistration,
        "{refused}"
    );
}

fn document(world: &World) -> Site {
    let redirects = ["http://127.0.0.1/callback".to_owned()];
    let document = client_metadata_document(&DOCUMENT.parse().unwrap(), &redirects);
    world.peer.describe_client(DOCUMENT, &document);
    world.site_with(OAuth {
        client_metadata_url: Some(DOCUMENT.to_owned()),
        ..OAuth::default()
    })
}

#[tokio::test]
async fn a_client_described_by_a_document_is_not_registered() {
    let world = World::start();
    let site = document(&world);
    let signed_in = world.log_in_at(&site, LoginOptions::default()).await;
    let signed_in = signed_in.unwrap();
    assert_eq!(signed_in.client, ClientKind::MetadataDocument);
    assert_eq!(signed_in.client_id, DOCUMENT);
    let session = connect(world.peer.mcp(), OAuthCredentials::new(site, None));
    let session = session.await.unwrap();
    assert_eq!(whoami(&session).await["client_id"], DOCUMENT);
    world.peer.expire();
    assert_eq!(whoami(&session).await["client_id"], DOCUMENT);
    assert_eq!(world.n_renewals(), 1);
    assert_eq!(world.peer.count("/registrations/success"), 0);
    assert!(!world.requests("client_document").is_empty());

    // Where the user says so, or documents are not known, we register.
    let dcr = LoginOptions {
        registration: Some(Registration::Dcr),
        ..LoginOptions::default()
    };
    let signed_in = world.log_in_at(&document(&world), dcr).await;
    assert_eq!(signed_in.unwrap().client, ClientKind::Dynamic);
    let without = World::start_with(&json!({ "cimd": false }));
    let site = document(&without);
    let signed_in = without.log_in_at(&site, LoginOptions::default()).await;
    assert_eq!(signed_in.unwrap().client, ClientKind::Dynamic);
}

#[tokio::test]
async fn a_registration_that_was_forgotten_is_made_anew_at_the_next_sign_in() {
    let world = World::start();
    let before = world.log_in().await.client_id;
    let session = world.session().await;
    world.peer.forget_clients();
    world.peer.expire();
    let error = try_whoami(&session).await.unwrap_err();
    assert_eq!(refusal(&error).kind, CredentialsErrorKind::NeedsAuth);
    assert_eq!(world.peer.count("/tokens/refresh_token/invalid_client"), 1);
    // Nobody asks with it again.
    assert!(
        world
            .grant()
            .await
            .is_none_or(|grant| grant.tokens.is_none())
    );
    let after = world.log_in().await.client_id;
    assert_ne!(before, after);
    assert_eq!(world.peer.count("/registrations/success"), 2);
    assert_eq!(whoami(&session).await["client_id"], after);
}
