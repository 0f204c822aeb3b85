//! What is refused about signing in, and what goes along.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cocode_core::{Dpop, Reach, Registration};

use super::*;
use crate::check_entry;
use crate::entry::Entry;
use crate::expand::Variables;
use crate::parse::Found;
use crate::specify::specify;

fn variables(name: &str) -> Option<String> {
    (name == "HOME").then(|| "/h".to_owned())
}

fn signing_in(oauth: OAuthEntry) -> Entry {
    Entry {
        url: Some("https://h".to_owned()),
        oauth,
        ..Entry::default()
    }
}

/// What is wrong with an entry about signing in: the key without `oauth.`, and the message.
fn objections(oauth: OAuthEntry) -> Vec<(String, String)> {
    let problems = match check_entry("s", &signing_in(oauth), &variables) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    };
    let problems = problems.into_iter();
    let about = problems.map(|problem| {
        let key = problem.key.unwrap_or_default();
        let key = key.strip_prefix("oauth.").unwrap_or("none").to_owned();
        (key, problem.message)
    });
    about.collect()
}

#[test]
fn addresses_for_signing_in_are_safe_or_refused() {
    type Set = fn(&mut OAuthEntry, String);
    let keys: [(&str, Set); 5] = [
        ("callback_url", |oauth, url| oauth.callback_url = Some(url)),
        ("client_metadata_url", |oauth, url| {
            oauth.client_metadata_url = Some(url);
        }),
        ("issuer", |oauth, url| oauth.issuer = Some(url)),
        ("idp_issuer", |oauth, url| oauth.idp_issuer = Some(url)),
        ("idp_token_endpoint", |oauth, url| {
            oauth.idp_token_endpoint = Some(url);
        }),
    ];
    let only_https = "it must begin with https://";
    let safe = "it must begin with https://, or with http:// and be on this machine";
    let document = "it must have a path, as in https://example.com/client.json";
    let (query, fragment) = (
        "it must have neither a query nor a fragment",
        "it must not have a fragment",
    );
    // What each of the keys says to an address, in the order above.
    for (url, expected) in [
        ("https://h/c", [""; 5]),
        ("https://${HOST:-h}/c", [""; 5]),
        ("https://h", ["", document, "", "", ""]),
        ("http://127.0.0.1:1/c", ["", only_https, "", "", ""]),
        ("http://[::1]:1/c", ["", only_https, "", "", ""]),
        ("http://localhost/c", ["", only_https, "", "", ""]),
        ("http://h/c", [safe, only_https, safe, safe, safe]),
        ("http://127.0.0.1.h/c", [safe, only_https, safe, safe, safe]),
        ("http://10.0.0.1/c", [safe, only_https, safe, safe, safe]),
        ("com.app:/c", [safe, only_https, safe, safe, safe]),
        ("nowhere", ["it is not a URL"; 5]),
        ("https://u:p@h/c", ["it must not hold credentials"; 5]),
        ("https://h/c?q", ["", "", query, query, ""]),
        (
            "https://h/c#f",
            [fragment, fragment, query, query, fragment],
        ),
    ] {
        for ((key, set), expected) in keys.into_iter().zip(expected) {
            let mut oauth = OAuthEntry::default();
            set(&mut oauth, url.to_owned());
            let said = objections(oauth);
            let expected: Vec<_> = std::iter::once((key.to_owned(), expected.to_owned()))
                .filter(|(_, message)| !message.is_empty())
                .collect();
            assert_eq!(said, expected, "{key} = {url}");
        }
    }
}

#[test]
fn a_way_to_sign_in_needs_what_it_needs() {
    let client = "`client_id`";
    let proof = "`client_secret_env`, `private_key_file` or `private_key_env`";
    let assertion = "`assertion_env`, `assertion_file` or `assertion_command`";
    let provider = "`idp_issuer` or `idp_token_endpoint`";
    // What is written, and what is missing.
    for (grant, written, missing) in [
        ("authorization_code", &[][..], &[][..]),
        ("client_credentials", &[], &[client, proof]),
        ("client_credentials", &["client_id"], &[proof]),
        ("client_credentials", &["client_secret_env"], &[client]),
        (
            "client_credentials",
            &["client_id", "client_secret_env"],
            &[],
        ),
        ("client_credentials", &["client_id", "private_key_env"], &[]),
        (
            "client_credentials",
            &["client_id", "private_key_file"],
            &[],
        ),
        ("jwt_bearer", &[], &[client, assertion]),
        ("jwt_bearer", &["client_id", "idp_issuer"], &[assertion]),
        ("jwt_bearer", &["assertion_env"], &[client]),
        ("jwt_bearer", &["client_id", "assertion_env"], &[]),
        ("jwt_bearer", &["client_id", "assertion_file"], &[]),
        ("jwt_bearer", &["client_id", "assertion_command"], &[]),
        ("enterprise", &[], &[client, assertion, provider]),
        ("enterprise", &["client_id", "assertion_env"], &[provider]),
        ("enterprise", &["assertion_env", "idp_issuer"], &[client]),
        ("enterprise", &["client_id", "idp_issuer"], &[assertion]),
        (
            "enterprise",
            &["client_id", "assertion_env", "idp_issuer"],
            &[],
        ),
        (
            "enterprise",
            &["client_id", "assertion_file", "idp_token_endpoint"],
            &[],
        ),
    ] {
        let keys = written.iter().map(|key| {
            let value = if key.starts_with("idp_") {
                "https://i"
            } else {
                "A"
            };
            format!("\"{key}\": \"{value}\", ")
        });
        let keys: String = keys.collect();
        let text = format!(r#"{{"url": "https://h", "oauth": {{{keys}"grant": "{grant}"}}}}"#);
        let (entry, _) = crate::entry_from_json("s", &text).unwrap();
        let missing = missing.iter();
        let expected: Vec<_> = missing
            .map(|missing| {
                (
                    "grant".to_owned(),
                    format!("{grant} needs {missing} beside it"),
                )
            })
            .collect();
        assert_eq!(objections(entry.oauth), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_true_about_signing_in_is_refused() {
    let text = |text: &str| Some(text.to_owned());
    let callback = |port: u16, url: &str| OAuthEntry {
        callback_port: Some(port),
        callback_url: text(url),
        ..OAuthEntry::default()
    };
    for (oauth, expected) in vec![
        (callback(1, "http://127.0.0.1:1/c"), None),
        (callback(1, "http://127.0.0.1/c"), None),
        (callback(1, "https://h:2/c"), None),
        (
            callback(1, "http://localhost:2/c"),
            Some((
                "callback_port",
                "it is 1, but `callback_url` has the port 2",
            )),
        ),
        (
            OAuthEntry {
                callback_port: Some(0),
                ..OAuthEntry::default()
            },
            Some(("callback_port", "it must be a port from 1 to 65535")),
        ),
        (
            OAuthEntry {
                private_key_env: text("A"),
                private_key_file: text("a"),
                ..OAuthEntry::default()
            },
            Some((
                "private_key_env",
                "it has both `private_key_file` and `private_key_env`: only one can be meant",
            )),
        ),
        (
            OAuthEntry {
                assertion_command: text("a"),
                assertion_env: text("A"),
                ..OAuthEntry::default()
            },
            Some((
                "assertion_command",
                "it has both `assertion_env` and `assertion_command`: only one can be meant",
            )),
        ),
        (
            OAuthEntry {
                signing_algorithm: text("none"),
                ..OAuthEntry::default()
            },
            Some((
                "signing_algorithm",
                "it must be one of ES256, ES384, RS256, RS384, RS512, PS256, PS384, PS512, EdDSA",
            )),
        ),
        (
            OAuthEntry {
                assertion_env: text("eyJhbGciOi"),
                private_key_env: text("-----BEGIN"),
                ..OAuthEntry::default()
            },
            Some(("private_key_env", "its value is not the name of a variable")),
        ),
        (
            OAuthEntry {
                idp_client_secret_env: text("${X}"),
                ..OAuthEntry::default()
            },
            Some((
                "idp_client_secret_env",
                "its value is not the name of a variable",
            )),
        ),
    ] {
        let shown = format!("{oauth:?}");
        let expected = expected.map(|(key, message)| (key.to_owned(), message.to_owned()));
        assert_eq!(objections(oauth), Vec::from_iter(expected), "{shown}");
    }
}

#[test]
fn files_for_signing_in_are_found_where_the_entry_stands() {
    let (found, variables): (_, Variables<'_>) = (
        Found {
            name: "s".to_owned(),
            entry: signing_in(OAuthEntry {
                private_key_file: Some("keys/${NAME:-a}.pem".to_owned()),
                assertion_file: Some("~/token".to_owned()),
                ..OAuthEntry::default()
            }),
            origin: crate::Origin::file("/p/.mcp.toml"),
            lines: BTreeMap::new(),
            problems: Vec::new(),
        },
        &variables,
    );
    for base in [Base::Start(Path::new("/p")), Base::Beside(Path::new("/p"))] {
        let spec = specify(&found, variables, base).unwrap();
        let Reach::Remote(remote) = spec.reach else {
            panic!("it is an address");
        };
        let key = remote.oauth.private_key_file;
        assert_eq!(key.as_deref(), Some(Path::new("/p/keys/a.pem")));
        let token = remote.oauth.assertion_file;
        assert_eq!(token.as_deref(), Some(Path::new("/h/token")));
    }
}

#[test]
fn everything_that_is_said_about_signing_in_goes_along() {
    let text = |text: &str| Some(text.to_owned());
    let said = OAuthEntry {
        client_id: text("id"),
        client_secret_env: text("SECRET"),
        callback_port: Some(8080),
        callback_url: text("https://h/back"),
        scopes: vec!["read".to_owned()],
        resource: text("https://r/"),
        registration: Some(Registration::Dcr),
        client_metadata_url: text("https://h/client.json"),
        issuer: text("https://i"),
        grant: Some(Grant::Enterprise),
        private_key_file: text("/key.pem"),
        private_key_env: None,
        signing_algorithm: text("ES256"),
        assertion_env: None,
        assertion_file: None,
        assertion_command: text("print ${TOKEN}"),
        idp_issuer: text("https://idp"),
        idp_token_endpoint: text("https://idp/token"),
        idp_client_id: text("other"),
        idp_client_secret_env: text("OTHER"),
        dpop: Some(Dpop::Always),
        allow_private_network: Some(true),
    };
    let spec = check_entry("s", &signing_in(said), &variables).unwrap();
    let Reach::Remote(remote) = spec.reach else {
        panic!("it is an address");
    };
    let expected = OAuth {
        client_id: text("id"),
        client_secret_env: text("SECRET"),
        callback_port: Some(8080),
        callback_url: text("https://h/back"),
        scopes: vec!["read".to_owned()],
        resource: text("https://r/"),
        registration: Registration::Dcr,
        client_metadata_url: text("https://h/client.json"),
        issuer: text("https://i"),
        grant: Grant::Enterprise,
        private_key_file: text("/key.pem").map(PathBuf::from),
        private_key_env: None,
        signing_algorithm: text("ES256"),
        assertion_env: None,
        assertion_file: None,
        assertion_command: text("print ${TOKEN}"),
        idp_issuer: text("https://idp"),
        idp_token_endpoint: text("https://idp/token"),
        idp_client_id: text("other"),
        idp_client_secret_env: text("OTHER"),
        dpop: Dpop::Always,
        allow_private_network: true,
    };
    assert_eq!(remote.oauth, expected);
}
