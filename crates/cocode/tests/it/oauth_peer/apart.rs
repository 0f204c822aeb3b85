//! What was given for one server, authorization server or client is not shown to another: as the
//! servers themselves see it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use cocode_auth::Secret;
use cocode_auth::oauth::{
    Client, ClientAuthentication, ClientKind, Grant as Kept, LoginError, LoginOptions,
    OAuthCredentials, Record, Site, TokenKind, Tokens,
};
use cocode_client::CredentialsErrorKind;
use cocode_core::{Grant, OAuth};
use serde_json::json;

use super::{REDIRECT_URI, SECRET, World, connect, connect_refusal, now, whoami};

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

/// A server that lets nobody in, and names this authorization server.
struct Turncoat {
    url: String,
    /// What it was shown.
    shown: Arc<Mutex<Vec<String>>>,
}

impl Turncoat {
    fn start(issuer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{origin}/mcp");
        let metadata = json!({ "resource": url, "authorization_servers": [issuer] }).to_string();
        let path = "/.well-known/oauth-protected-resource/mcp";
        let challenge = format!("Bearer resource_metadata=\"{origin}{path}\"");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&shown);
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let (request, authorization) = read_head(&client);
                heard.lock().unwrap().extend(authorization);
                let answer = if request.contains(path) {
                    let length = metadata.len();
                    format!(
                        "200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                         Connection: close\r\n\r\n{metadata}"
                    )
                } else {
                    format!(
                        "401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\n\
                         Content-Length: 0\r\nConnection: close\r\n\r\n"
                    )
                };
                (&client)
                    .write_all(format!("HTTP/1.1 {answer}").as_bytes())
                    .unwrap();
            }
        });
        Self { url, shown }
    }

    /// What is kept from the time when it named another authorization server.
    async fn remember(&self, site: &Site, issuer: &str, client_id: &str) {
        let url = self.url.parse().unwrap();
        let client = Client {
            id: client_id.to_owned(),
            secret: None,
            authentication: ClientAuthentication::None,
            kind: match &site.sign_in().oauth.client_id {
                Some(_) => ClientKind::Preregistered,
                None => ClientKind::Dynamic,
            },
            redirect_uris: vec![REDIRECT_URI.to_owned()],
            secret_expires_at: None,
            registration_access_token: None,
            registration_uri: None,
        };
        let mut grant = Kept::new(client, format!("{issuer}/token"));
        grant.tokens = Some(Tokens {
            access: Secret::new("old-access"),
            kind: TokenKind::Bearer,
            expires_at: Some(now() + 3600),
            issued_at: now(),
            refresh: Some(Secret::new("old-refresh")),
            scopes: None,
        });
        let mut record = Record::new(&url);
        // Clients of the configuration have places of their own.
        let slot = match &site.sign_in().oauth.client_id {
            Some(id) => format!("{issuer} {id}"),
            None => issuer.to_owned(),
        };
        record.set_current(slot, grant);
        let mut transaction = site.vault().transaction(&url).await.unwrap();
        transaction.commit(record).await.unwrap();
    }
}

/// The first line of a request, and what it shows.
fn read_head(client: &TcpStream) -> (String, Option<String>) {
    let mut lines = BufReader::new(client).lines().map(Result::unwrap);
    let request = lines.next().unwrap_or_default();
    let headers = lines.take_while(|line| !line.is_empty());
    let shown = headers.filter(|line| line.to_ascii_lowercase().starts_with("authorization:"));
    (request, shown.last())
}

#[tokio::test]
async fn a_server_that_names_another_authorization_server_gets_nothing_of_the_first_one_for_it() {
    let (first, second) = (World::start(), World::start());
    let turncoat = Turncoat::start(second.peer.issuer());
    let site = second.site_at(&turncoat.url, OAuth::default());
    turncoat
        .remember(&site, first.peer.issuer(), "old-client")
        .await;
    let credentials = OAuthCredentials::new(site.clone(), None);
    let outcome = connect(&turncoat.url, credentials).await;
    let refused = connect_refusal(&outcome);
    assert_eq!(refused.kind, CredentialsErrorKind::NeedsAuth, "{refused}");
    // What is stored was given for the server, and goes back only to who gave it.
    assert!(!turncoat.shown.lock().unwrap().is_empty());
    assert_eq!(first.peer.count("/tokens/refresh_token/invalid_client"), 1);
    let asked_of_second = second.peer.state();
    assert_eq!(asked_of_second["requests"], json!([]));
    assert_eq!(asked_of_second["tokens"], json!({}));

    // To sign in there is to become another client.
    let outcome = site
        .log_in(&second.person(), &LoginOptions::default())
        .await;
    // It gives out no tokens for this server.
    assert!(
        matches!(outcome, Err(LoginError::Callback(_))),
        "{outcome:?}"
    );
    let asked = second.requests("authorization");
    assert_eq!(asked.len(), 1);
    assert_ne!(asked[0]["client_id"], "old-client");
    assert_eq!(second.peer.count("/registrations/success"), 1);
    assert_eq!(second.peer.state()["tokens"], json!({}));
}

#[tokio::test]
async fn a_client_registered_beforehand_stays_with_its_authorization_server() {
    let (first, second) = (World::start(), World::start());
    let turncoat = Turncoat::start(second.peer.issuer());
    let (id, _) = second.peer.confidential_client();
    let oauth = OAuth {
        client_id: Some(id.to_owned()),
        client_secret_env: Some(SECRET.to_owned()),
        ..OAuth::default()
    };
    let site = second.site_at(&turncoat.url, oauth);
    // Somebody signed in with it before the server named another authorization server.
    turncoat.remember(&site, first.peer.issuer(), id).await;
    let outcome = site
        .log_in(&second.person(), &LoginOptions::default())
        .await;
    let Err(LoginError::IssuerChanged { expected, found }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (expected.as_str(), found.as_str()),
        (first.peer.issuer(), second.peer.issuer())
    );
    assert_eq!(second.peer.state()["requests"], json!([]));
}
