//! Tests of which stored credentials may be used, and what is asked for at the next sign-in.

use std::sync::Arc;

use cocode_core::{Grant as GrantKind, OAuth};
use cocode_wire::HttpClient;
use tempfile::TempDir;
use url::Url;

use super::Site;
use crate::command::CommandSettings;
use crate::oauth::{
    AuthChallenge, Client, ClientAuthentication, ClientKind, Discovered, Grant, LoginError,
    LoginOptions, Record, SignIn, Sources, TokenKind, Tokens, Vault,
};
use crate::secret::Secret;
use crate::store::{StoreChoice, StoreOptions};

const URL: &str = "https://mcp.example/mcp";

fn site_at(url: &str, oauth: OAuth) -> (Site, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let vault = Vault::new(StoreOptions {
        choice: StoreChoice::File,
        directory: directory.path().to_owned(),
        session_bus: None,
    });
    let sign_in = SignIn {
        server: "s".to_owned(),
        url: url.parse().unwrap(),
        oauth,
        sources: Sources {
            variable: Arc::new(|_| None),
            commands: CommandSettings::new(Vec::new()),
        },
    };
    (Site::new(sign_in, HttpClient::default(), vault), directory)
}

fn site(oauth: OAuth) -> (Site, TempDir) {
    site_at(URL, oauth)
}

fn grant(client_id: &str, redirect_uris: &[&str]) -> Grant {
    let client = Client {
        id: client_id.to_owned(),
        secret: None,
        authentication: ClientAuthentication::None,
        kind: ClientKind::Preregistered,
        redirect_uris: redirect_uris.iter().map(|&uri| uri.to_owned()).collect(),
        secret_expires_at: None,
        registration_access_token: None,
        registration_uri: None,
    };
    let mut grant = Grant::new(client, "https://as.example/token");
    grant.resource = Some(URL.to_owned());
    grant.requested_scopes = vec!["a".to_owned()];
    grant.tokens = Some(Tokens {
        access: Secret::new("token"),
        kind: TokenKind::Bearer,
        expires_at: None,
        issued_at: 0,
        refresh: None,
        scopes: None,
    });
    grant
}

/// What `oauth` would have stored.
fn stored(oauth: &OAuth, grant: Grant) -> Record {
    let mut record = Record::new(&URL.parse::<Url>().unwrap());
    let (site, _directory) = site(oauth.clone());
    record.set_current(site.slot("https://as.example"), grant);
    record
}

fn with_client(id: &str) -> OAuth {
    OAuth {
        client_id: Some(id.to_owned()),
        ..OAuth::default()
    }
}

#[test]
fn what_is_stored_is_used_only_for_what_is_configured() {
    let oauth = OAuth::default;
    let browser = || grant("c", &["http://127.0.0.1/callback"]);
    let by_browser = || stored(&oauth(), browser());
    let by_own_client = || stored(&with_client("c"), browser());
    let by_program = || stored(&with_client("c"), grant("c", &[]));
    let program = || OAuth {
        client_id: Some("c".to_owned()),
        grant: GrantKind::ClientCredentials,
        ..oauth()
    };
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (by_browser(), oauth(), true),
        (by_own_client(), with_client("c"), true),
        (by_own_client(), with_client("other"), false),
        (by_own_client(), oauth(), false),
        (by_browser(), with_client("c"), false),
        (
            by_browser(),
            OAuth {
                issuer: text("https://as.example"),
                ..oauth()
            },
            true,
        ),
        (
            by_browser(),
            OAuth {
                issuer: text("https://other.example"),
                ..oauth()
            },
            false,
        ),
        (
            by_browser(),
            OAuth {
                resource: text("https://mcp.example"),
                ..oauth()
            },
            false,
        ),
        // A person is not asked again because the file names more scopes; a program is.
        (
            by_browser(),
            OAuth {
                scopes: vec!["b".to_owned()],
                ..oauth()
            },
            true,
        ),
        (by_program(), program(), true),
        (
            by_program(),
            OAuth {
                scopes: vec!["b".to_owned()],
                ..program()
            },
            false,
        ),
        (by_program(), oauth(), false),
        (by_own_client(), program(), false),
    ];
    for (record, oauth, expected) in cases {
        let shown = format!("{oauth:?}");
        let (site, _directory) = site(oauth);
        assert_eq!(site.usable(&record).is_some(), expected, "{shown}");
    }
}

#[test]
fn entries_with_clients_of_their_own_leave_each_other_alone() {
    let callback = ["http://127.0.0.1/callback"];
    let mut record = stored(&OAuth::default(), grant("registered", &callback));
    for (index, id) in ["one", "two"].into_iter().enumerate() {
        let (site, _directory) = site(with_client(id));
        let mut grant = grant(id, &callback);
        grant.signed_in_at = Some(index as u64);
        record.set_current(site.slot("https://as.example"), grant);
    }
    for (oauth, expected) in [
        (OAuth::default(), "registered"),
        (with_client("one"), "one"),
        (with_client("two"), "two"),
    ] {
        let (site, _directory) = site(oauth);
        let (issuer, grant) = site.usable(&record).unwrap();
        assert_eq!(
            (issuer, grant.client.id.as_str()),
            ("https://as.example", expected)
        );
    }
    // Once it is signed out, an entry does not take over what another one has.
    let (site, _directory) = site(with_client("three"));
    assert!(site.usable(&record).is_none());
}

fn found(server: &str) -> Discovered {
    Discovered {
        resource: URL.to_owned(),
        protected: None,
        server: serde_json::from_str(server).unwrap(),
        challenge: None,
    }
}

#[test]
fn a_wider_sign_in_asks_for_what_was_granted_before_as_well() {
    let (site, _directory) = site(OAuth::default());
    let found = found(r#"{"issuer": "https://as.example"}"#);
    let challenged = AuthChallenge::parse_all(&[r#"Bearer scope="c""#.to_owned()]);
    let options = LoginOptions {
        challenge: challenged.into_iter().next(),
        ..LoginOptions::default()
    };
    let mut kept = grant("c", &[]);
    kept.signed_in_at = Some(1);
    kept.wanted_scopes = vec!["b".to_owned()];
    let asked =
        |options: &LoginOptions, kept: Option<&Grant>| site.scopes(options, &found, kept).join(" ");
    assert_eq!(asked(&options, None), "c");
    assert_eq!(asked(&options, Some(&kept)), "a b c");
    let decided = LoginOptions {
        scopes: Some(vec!["x".to_owned()]),
        ..options.clone()
    };
    assert_eq!(asked(&decided, Some(&kept)), "x");
    // An end of the tokens is no change of mind; a sign-out is, but for what is missing still.
    kept.tokens = None;
    kept.signed_in_at = Some(1);
    assert_eq!(asked(&options, Some(&kept)), "a b c");
    kept.signed_in_at = None;
    assert_eq!(asked(&options, Some(&kept)), "b c");
}

#[test]
fn a_configured_client_is_shown_to_nobody_else() {
    let known = with_client("c");
    let stored = stored(&known, grant("c", &[]));
    let (site, _directory) = site(known);
    let same = found(r#"{"issuer": "https://as.example"}"#).server;
    let other = found(r#"{"issuer": "https://evil.example"}"#).server;
    site.check_issuer(&same, &stored).unwrap();
    let refused = site.check_issuer(&other, &stored);
    assert!(
        matches!(&refused, Err(LoginError::IssuerChanged { expected, found })
            if expected == "https://as.example" && found == "https://evil.example"),
        "{refused:?}"
    );
    // Of the first sign-in there is nothing to compare with.
    let empty = Record::new(&URL.parse::<Url>().unwrap());
    site.check_issuer(&other, &empty).unwrap();
}

#[test]
fn tokens_are_never_sent_where_others_can_read_them() {
    let cases = [
        ("https://mcp.example/mcp", true),
        ("wss://mcp.example/mcp", true),
        ("http://127.0.0.1:1/mcp", true),
        ("ws://localhost/mcp", true),
        ("http://mcp.example/mcp", false),
        ("ws://mcp.example/mcp", false),
        ("http://192.168.1.2/mcp", false),
    ];
    for (url, expected) in cases {
        let (site, _directory) = site_at(url, OAuth::default());
        assert_eq!(site.check_address().is_ok(), expected, "{url}");
    }
}
