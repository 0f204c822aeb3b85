//! Tests of who waits for whom.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cocode_core::OAuth;
use cocode_wire::HttpClient;

use super::OAuthCredentials;
use crate::command::CommandSettings;
use crate::oauth::current::Current;
use crate::oauth::{
    Client, ClientAuthentication, ClientKind, Grant, SignIn, Site, Sources, Stamp, TokenKind,
    Tokens, Vault,
};
use crate::secret::Secret;
use crate::store::{StoreChoice, StoreOptions};

fn credentials(directory: &tempfile::TempDir) -> OAuthCredentials {
    let vault = Vault::new(StoreOptions {
        choice: StoreChoice::File,
        directory: directory.path().to_owned(),
        session_bus: None,
    });
    let sign_in = SignIn {
        server: "s".to_owned(),
        url: "https://mcp.example/mcp".parse().unwrap(),
        oauth: OAuth::default(),
        sources: Sources {
            variable: Arc::new(|_| None),
            commands: CommandSettings::new(Vec::new()),
        },
    };
    OAuthCredentials::new(Site::new(sign_in, HttpClient::default(), vault), None)
}

fn current() -> Current {
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
        access: Secret::new("token"),
        kind: TokenKind::Bearer,
        expires_at: None,
        issued_at: 0,
        refresh: None,
        scopes: None,
    });
    Current::of(&grant, None).unwrap().unwrap()
}

#[tokio::test]
async fn a_request_with_a_good_token_waits_for_nobody_who_renews_or_signs_in() {
    let directory = tempfile::tempdir().unwrap();
    let credentials = credentials(&directory);
    {
        let mut held = credentials.held();
        held.read = Some(Stamp::default());
        held.use_now(Some(Arc::new(current())));
    }
    let turn = credentials.0.turn.wait().await;
    // It is time to look at the store, which somebody else is busy with.
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(loaded) = pin!(credentials.loaded()).poll(&mut context) else {
        panic!("it waits");
    };
    assert_eq!(loaded.unwrap().authorization, "Bearer token");
    drop(turn);
}
