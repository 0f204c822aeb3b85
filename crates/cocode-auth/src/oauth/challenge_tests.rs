//! Headers as servers really send them, and headers that nobody sends.

use proptest::prelude::{any, prop, prop_assert, proptest};

use super::{AuthChallenge, Scheme, best};

fn read(headers: &[&str]) -> Vec<AuthChallenge> {
    let headers: Vec<String> = headers.iter().map(|&header| header.to_owned()).collect();
    AuthChallenge::parse_all(&headers)
}

fn bearer() -> AuthChallenge {
    AuthChallenge {
        scheme: Scheme::Bearer,
        ..AuthChallenge::default()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

const METADATA: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";

#[test]
fn all_parameters_of_a_challenge_are_read() {
    let header = format!(
        "Bearer realm=\"mcp\", error=\"insufficient_scope\", error_description=\"Say \\\"please\\\", \
         then wait\", scope=\"files:read files:write\", resource_metadata=\"{METADATA}\""
    );
    let expected = AuthChallenge {
        realm: Some("mcp".to_owned()),
        error: Some("insufficient_scope".to_owned()),
        error_description: Some("Say \"please\", then wait".to_owned()),
        scope: Some(words("files:read files:write")),
        resource_metadata: Some(METADATA.to_owned()),
        ..bearer()
    };
    assert_eq!(read(&[&header]), [expected]);
}

#[test]
fn spelling_and_spacing_do_not_matter() {
    let expected = AuthChallenge {
        error: Some("invalid_token".to_owned()),
        resource_metadata: Some("https://mcp.example/m?a=b".to_owned()),
        ..bearer()
    };
    for header in [
        "Bearer error=\"invalid_token\", resource_metadata=\"https://mcp.example/m?a=b\"",
        "bearer Error = \"invalid_token\" , RESOURCE_METADATA=https://mcp.example/m?a=b",
        "BEARER\terror=invalid_token,resource_metadata = 'https://mcp.example/m?a=b'",
        "Bearer error=\"invalid_token\" resource_metadata=\"https://mcp.example/m?a=b\"",
        " ,, Bearer , error=\"invalid_token\",, resource_metadata=\"https://mcp.example/m?a=b",
        "Bearer unknown=\"x\", error=invalid_token, error=other, resource_metadata=\" https://mcp.example/m?a=b \"",
        "Bearer error=\"invalid_token\", empty=, resource_metadata=https://mcp.example/m?a=b",
    ] {
        assert_eq!(read(&[header]), std::slice::from_ref(&expected), "{header}");
    }
}

#[test]
fn several_challenges_are_told_apart() {
    let header = "Negotiate YWJj==, Basic realm=\"a, b\", NTLM, Bearer scope=\"x\", DPoP algs=\"ES256 PS256\"";
    let schemes: Vec<Scheme> = read(&[header, "Custom opaque", "Bearer"])
        .into_iter()
        .map(|challenge| challenge.scheme)
        .collect();
    let other = |name: &str| Scheme::Other(name.to_owned());
    assert_eq!(
        schemes,
        [
            other("Negotiate"),
            Scheme::Basic,
            other("NTLM"),
            Scheme::Bearer,
            Scheme::Dpop,
            other("Custom"),
            Scheme::Bearer,
        ]
    );
    let challenges = read(&[header]);
    assert_eq!(challenges[1].realm.as_deref(), Some("a, b"));
    assert_eq!(challenges[3].scope, Some(words("x")));
    assert_eq!(challenges[4].algs, Some(words("ES256 PS256")));
}

#[test]
fn scopes_may_lack_their_quotes() {
    let expected = AuthChallenge {
        scope: Some(words("files:read files:write")),
        error: Some("insufficient_scope".to_owned()),
        ..bearer()
    };
    for header in [
        "Bearer scope=files:read files:write, error=\"insufficient_scope\"",
        "Bearer error=insufficient_scope, scope=files:read files:write",
        "Bearer scope=files:read files:write error=insufficient_scope",
    ] {
        assert_eq!(read(&[header]), std::slice::from_ref(&expected), "{header}");
    }
}

#[test]
fn what_is_no_scope_is_left_out() {
    let challenges = read(&["Bearer scope=\"a \\\\ b a \u{fc}\"", "Bearer scope=\"\""]);
    assert_eq!(challenges[0].scope, Some(words("a b")));
    assert_eq!(challenges[1].scope, None);
}

#[test]
fn what_others_wrote_is_made_fit_to_be_shown() {
    let long = format!("Bearer error_description=\"\u{1b}[31m{}\"", "x".repeat(400));
    let description = read(&[&long]).remove(0).error_description.unwrap();
    assert_eq!(description, format!("[31m{}…", "x".repeat(296)));
}

#[test]
fn the_best_challenge_is_one_of_oauth_that_says_something() {
    let cases: [(&[&str], Option<AuthChallenge>); 6] = [
        (&[], None),
        (
            &["Basic realm=\"x\""],
            Some(AuthChallenge {
                scheme: Scheme::Basic,
                realm: Some("x".to_owned()),
                ..AuthChallenge::default()
            }),
        ),
        (&["Basic realm=\"x\", Bearer"], Some(bearer())),
        (
            &["Bearer, DPoP error=\"use_dpop_nonce\", algs=\"ES256\""],
            Some(AuthChallenge {
                scheme: Scheme::Dpop,
                error: Some("use_dpop_nonce".to_owned()),
                algs: Some(words("ES256")),
                ..AuthChallenge::default()
            }),
        ),
        (
            &[
                "DPoP algs=\"ES256\"",
                "Bearer resource_metadata=\"https://a/\", scope=\"s\"",
            ],
            Some(AuthChallenge {
                resource_metadata: Some("https://a/".to_owned()),
                scope: Some(words("s")),
                algs: Some(words("ES256")),
                ..bearer()
            }),
        ),
        (
            &["resource_metadata=\"https://a/\""],
            Some(AuthChallenge {
                resource_metadata: Some("https://a/".to_owned()),
                ..AuthChallenge::default()
            }),
        ),
    ];
    for (headers, expected) in cases {
        let challenge = cocode_wire::Challenge {
            status: 401,
            www_authenticate: headers.iter().map(|&header| header.to_owned()).collect(),
            auth_server: None,
        };
        assert_eq!(best(&challenge), expected, "{headers:?}");
    }
}

#[test]
fn codes_are_recognized() {
    let with = |code: &str| read(&[&format!("DPoP error=\"{code}\"")]).remove(0);
    assert!(with("insufficient_scope").is_insufficient_scope());
    assert!(with("use_dpop_nonce").is_use_dpop_nonce());
    assert!(with("invalid_token").is_invalid_token());
    assert!(!with("invalid_token").is_insufficient_scope());
    assert!(!bearer().is_invalid_token());
}

proptest! {
    #[test]
    fn any_header_is_read_to_its_end(headers in prop::collection::vec(any::<String>(), 0..4)) {
        prop_assert!(AuthChallenge::parse_all(&headers).len() <= super::MAX_CHALLENGES);
    }

    #[test]
    fn anything_made_of_the_signs_of_headers_is_read(header in "([A-Za-z]{1,3}|[ ,=\"\\\\']|scope|é){0,60}") {
        prop_assert!(AuthChallenge::parse_all(&[header]).len() <= super::MAX_CHALLENGES);
    }

    #[test]
    fn quoted_values_come_back_as_they_were(value in "[ -~]{0,60}") {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        let header = format!("Basic realm=\"x\", Bearer a=b, realm=\"{escaped}\", error=\"e\"");
        let challenges = AuthChallenge::parse_all(&[header]);
        prop_assert!(challenges.len() == 2, "{challenges:?}");
        prop_assert!(challenges[1].realm.as_deref() == Some(value.as_str()));
        prop_assert!(challenges[1].error.as_deref() == Some("e"));
    }
}
