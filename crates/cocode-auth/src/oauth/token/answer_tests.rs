//! Answers as servers send them.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::{Asked, Binding, MAX_LIFE_SECONDS};
use crate::oauth::token::error::{TokenError, TokenRefusal};
use crate::oauth::token::form::Form;
use crate::oauth::tokens::{TokenKind, Tokens};
use crate::secret::Secret;

const NOW: u64 = 1_800_000_000;
const URL: &str = "https://auth.example/token";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

fn read(
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
    binding: Binding,
) -> Result<Tokens, TokenError> {
    let mut form = Form::empty();
    form.add_secret("code", &Secret::new("the-code"));
    let asked = Asked {
        url: URL,
        form: &form,
        now: NOW,
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let response = response.body(Bytes::from(body.to_owned())).unwrap();
    asked.tokens(&asked.read(&response)?, binding)
}

/// What an answer with these fields beside a token gives.
fn with(fields: &Value) -> Tokens {
    let mut body = json!({"access_token": "token", "token_type": "Bearer"});
    let fields = fields.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(fields);
    read(200, &[], &body.to_string(), Binding::None).unwrap()
}

fn refused(status: u16, headers: &[(&str, &str)], body: &str) -> TokenError {
    read(status, headers, body, Binding::None).unwrap_err()
}

#[test]
fn the_example_of_rfc_6749_is_read() {
    let body = r#"{
       "access_token":"2YotnFZFEjr1zCsicMWpAA",
       "token_type":"example",
       "expires_in":3600,
       "refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA",
       "example_parameter":"example_value"
     }"#;
    let tokens = read(200, &[], body, Binding::None).unwrap();
    assert_eq!(tokens.access.expose(), "2YotnFZFEjr1zCsicMWpAA");
    assert_eq!(tokens.refresh.unwrap().expose(), "tGzv3JOkF0XG5Qx2TlKWIA");
    assert_eq!(tokens.expires_at, Some(NOW + 3600));
    assert_eq!(tokens.issued_at, NOW);
    assert_eq!(tokens.scopes, None);
    assert_eq!(tokens.kind, TokenKind::Bearer);
}

#[test]
fn the_end_of_a_token_is_read_from_numbers_and_texts_and_never_absurd() {
    let cases = [
        (json!(3600), Some(3600)),
        (json!("3600"), Some(3600)),
        (json!(59.9), Some(59)),
        (json!("1800.5"), Some(1800)),
        (json!(0), None),
        (json!(-1), None),
        (json!(null), None),
        (json!("soon"), None),
        (json!("NaN"), None),
        (json!([1]), None),
        (json!(1e300), Some(MAX_LIFE_SECONDS)),
        (json!(u64::MAX), Some(MAX_LIFE_SECONDS)),
        (json!("inf"), Some(MAX_LIFE_SECONDS)),
    ];
    for (value, expected) in cases {
        let tokens = with(&json!({"expires_in": value}));
        assert_eq!(
            tokens.expires_at,
            expected.map(|life| NOW + life),
            "{value}"
        );
    }
}

#[test]
fn scopes_are_read_from_texts_and_lists() {
    let cases = [
        (json!("one two"), Some(&["one", "two"][..])),
        (json!("one"), Some(&["one"])),
        (json!(" one  two,three "), Some(&["one", "two,three"])),
        (json!("repo,gist"), Some(&["repo", "gist"])),
        (json!(["one", "two", 3]), Some(&["one", "two"])),
        (json!(""), None),
        (json!([]), None),
        (json!(null), None),
        (json!(7), None),
    ];
    for (value, expected) in cases {
        let scopes = with(&json!({"scope": value})).scopes;
        let scopes: Option<Vec<&str>> = scopes
            .as_ref()
            .map(|scopes| scopes.iter().map(String::as_str).collect());
        assert_eq!(scopes.as_deref(), expected, "{value}");
    }
}

#[test]
fn the_kind_of_a_token_has_to_fit_what_was_shown() {
    use Binding::{None as Unbound, Offered, Required};
    let cases = [
        (json!("Bearer"), Unbound, Some(TokenKind::Bearer)),
        (json!("bearer"), Unbound, Some(TokenKind::Bearer)),
        (json!("BEARER"), Offered, Some(TokenKind::Bearer)),
        (json!("Bearer"), Required, None),
        (json!("DPoP"), Required, Some(TokenKind::Dpop)),
        (json!("dpop"), Offered, Some(TokenKind::Dpop)),
        (json!("DPoP"), Unbound, None),
        (json!("user"), Unbound, Some(TokenKind::Bearer)),
        (json!("user"), Required, None),
        (json!(null), Unbound, Some(TokenKind::Bearer)),
        (json!(null), Required, None),
        (json!("mac"), Unbound, None),
        (json!("N_A"), Unbound, None),
        (json!("PoP"), Offered, None),
    ];
    for (kind, binding, expected) in cases {
        let body = json!({"access_token": "token", "token_type": kind}).to_string();
        let read = read(200, &[], &body, binding);
        let found = read.map(|tokens| tokens.kind);
        match expected {
            Some(expected) => assert_eq!(found.unwrap(), expected, "{kind} {binding:?}"),
            None => assert!(
                matches!(found, Err(TokenError::Malformed { .. })),
                "{kind} {binding:?}: {found:?}"
            ),
        }
    }
}

#[test]
fn an_empty_refresh_token_is_none() {
    assert!(with(&json!({"refresh_token": ""})).refresh.is_none());
    assert!(with(&json!({"refresh_token": null})).refresh.is_none());
}

#[test]
fn tokens_are_read_from_a_form_too() {
    let body = "access_token=gho_1&scope=repo%2Cgist&token_type=bearer&expires_in=28800";
    let tokens = read(200, &[("Content-Type", FORM)], body, Binding::None).unwrap();
    assert_eq!(tokens.access.expose(), "gho_1");
    assert_eq!(tokens.scopes.unwrap(), ["repo", "gist"]);
    assert_eq!(tokens.expires_at, Some(NOW + 28_800));
}

#[test]
fn answers_without_a_usable_token_say_what_is_wrong() {
    let html = [("Content-Type", "text/html; charset=utf-8")];
    let long = json!({"access_token": "x".repeat(64 * 1024 + 1)}).to_string();
    let cases = [
        (200, &[][..], "{}", "there is no access token in it"),
        (200, &[], "[]", "something instead of JSON"),
        (200, &[], "", "something instead of JSON"),
        (200, &html, "<html>", "text/html instead of JSON"),
        (
            200,
            &[],
            r#"{"access_token":""}"#,
            "there is no access token in it",
        ),
        (
            200,
            &[],
            r#"{"access_token":7}"#,
            "there is no access token in it",
        ),
        (200, &[], &long, "its access token is too long"),
        (
            200,
            &[],
            r#"{"access_token":"a\nb"}"#,
            "its access token has characters that fit into no header",
        ),
        (
            200,
            &[],
            r#"{"access_token":"ü"}"#,
            "its access token has characters that fit into no header",
        ),
        (
            302,
            &[("Location", "https://else.example/")],
            "",
            "it sends us elsewhere (HTTP 302), where we do not go",
        ),
    ];
    for (status, headers, body, expected) in cases {
        let error = refused(status, headers, body);
        assert_eq!(
            error.to_string(),
            format!("{URL} gave an answer that cannot be used: {expected}")
        );
        assert!(error.is_final());
    }
}

/// The name of a variant.
fn kind(error: &TokenError) -> String {
    let shown = format!("{error:?}");
    let end = shown.find(|c: char| !c.is_alphanumeric()).unwrap();
    shown.chars().take(end).collect()
}

#[test]
fn refusals_are_sorted_by_their_code() {
    let json = [("Content-Type", "application/json")];
    let plain = [("Content-Type", "text/plain")];
    let form = [("Content-Type", FORM)];
    let cases = [
        (
            400,
            &json[..],
            r#"{"error":"invalid_grant"}"#,
            "InvalidGrant",
        ),
        (500, &json, r#"{"error":"invalid_grant"}"#, "InvalidGrant"),
        (401, &json, r#"{"error":"invalid_client"}"#, "InvalidClient"),
        (401, &json, r#"{"message":"no"}"#, "OtherRefusal"),
        (401, &form, "hint=no", "OtherRefusal"),
        (400, &json, r#"{"error":"invalid_scope"}"#, "InvalidScope"),
        (
            400,
            &json,
            r#"{"error":"unauthorized_client"}"#,
            "UnauthorizedClient",
        ),
        (
            400,
            &json,
            r#"{"error":"unsupported_grant_type"}"#,
            "UnsupportedGrant",
        ),
        (400, &json, r#"{"error":"invalid_target"}"#, "OtherRefusal"),
        (400, &json, "{}", "OtherRefusal"),
        (404, &plain, "no", "OtherRefusal"),
        (
            200,
            &json,
            r#"{"error":"bad_verification_code"}"#,
            "InvalidGrant",
        ),
        (
            200,
            &json,
            r#"{"ok":false,"error":"invalid_code"}"#,
            "InvalidGrant",
        ),
        (
            200,
            &form,
            "error=incorrect_client_credentials",
            "InvalidClient",
        ),
        (
            400,
            &json,
            r#"{"error":{"code":"invalid_grant"}}"#,
            "InvalidGrant",
        ),
    ];
    for (status, headers, body, expected) in cases {
        let error = refused(status, headers, body);
        assert_eq!(kind(&error), expected, "{status} {body}");
        assert!(error.is_final());
        assert_eq!(error.refusal().unwrap().status, status);
    }
}

#[test]
fn a_refusal_is_told_in_one_line_without_our_secrets() {
    let body = json!({
        "error": "invalid_grant\u{7}",
        "error_description": format!("the-code\nis unknown {}", "x".repeat(400)),
    });
    let error = refused(400, &[], &body.to_string());
    let description = format!("… is unknown {}…", "x".repeat(287));
    assert_eq!(
        error.refusal(),
        Some(&TokenRefusal {
            url: URL.to_owned(),
            status: 400,
            error: "invalid_grant".to_owned(),
            description: Some(description.clone()),
        })
    );
    assert_eq!(
        error.to_string(),
        format!(
            "{URL} does not accept the grant: it has ended, was revoked, or was used before \
             (HTTP 400, invalid_grant: {description})"
        )
    );
    let plain = refused(403, &[("Content-Type", "text/plain")], "blocked: the-code");
    assert_eq!(
        plain.to_string(),
        format!("{URL} refused to give tokens (HTTP 403: blocked: …)")
    );
}

#[test]
fn trouble_that_passes_is_told_apart_with_the_wait_that_is_asked_for() {
    let json = ("Content-Type", "application/json");
    let cases = [
        (503, &[("Retry-After", "30")][..], "", Some(30)),
        (502, &[], "<html>", None),
        (500, &[("Retry-After", "soon")], "", None),
        (429, &[("Retry-After", "9999999")], "", Some(86_400)),
        (
            429,
            &[("Retry-After", "Fri, 15 Jan 2027 08:02:00 GMT")],
            r#"{"error":"invalid_request"}"#,
            Some(120),
        ),
        (408, &[], "", None),
        (401, &[("Retry-After", "5")], "<html>", Some(5)),
        (401, &[("Content-Type", "text/plain")], "no", None),
        (400, &[json], r#"{"error":"temporarily_unavailable"}"#, None),
        (400, &[json], r#"{"error":"server_error"}"#, None),
    ];
    for (status, headers, body, expected) in cases {
        let error = refused(status, headers, body);
        assert!(!error.is_final(), "{status} {error:?}");
        let TokenError::Temporary(trouble) = error else {
            panic!("{status} {error:?}");
        };
        assert_eq!(trouble.retry_after, expected, "{status}");
        assert!(trouble.sent);
    }
}
