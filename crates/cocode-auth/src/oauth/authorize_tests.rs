//! Questions and answers as tables.

use super::*;

const ISSUER: &str = "https://auth.example.com";

fn server(endpoint: &str) -> AuthorizationServer {
    serde_json::from_value(serde_json::json!({
        "issuer": ISSUER,
        "authorization_endpoint": endpoint,
    }))
    .unwrap()
}

fn pkce() -> Pkce {
    Pkce {
        verifier: Secret::new("the-verifier"),
        challenge: "the-challenge".to_owned(),
    }
}

fn parameters() -> AuthorizationParameters<'static> {
    AuthorizationParameters {
        client_id: "me",
        redirect_uri: "http://127.0.0.1:4000/callback",
        scopes: None,
        resource: None,
    }
}

fn request() -> AuthorizationRequest {
    AuthorizationRequest::new(&server("https://auth.example.com/a"), &parameters(), pkce()).unwrap()
}

fn strict() -> AuthorizationRequest {
    let mut server = server("https://auth.example.com/a");
    server.authorization_response_iss_parameter_supported = true;
    AuthorizationRequest::new(&server, &parameters(), pkce()).unwrap()
}

/// The query of the address without the state, which must be there once.
fn asked(endpoint: &str, parameters: &AuthorizationParameters<'_>) -> Vec<(String, String)> {
    let request = AuthorizationRequest::new(&server(endpoint), parameters, pkce()).unwrap();
    let (states, rest): (Vec<_>, Vec<_>) = request
        .url
        .query_pairs()
        .into_owned()
        .partition(|(name, _)| name == "state");
    assert_eq!(
        states,
        [("state".to_owned(), request.state.expose().to_owned())]
    );
    rest
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn everything_that_the_server_needs_is_asked() {
    let scopes = ["read".to_owned(), "write".to_owned()];
    let parameters = AuthorizationParameters {
        scopes: Some(&scopes),
        resource: Some("https://mcp.example.com/mcp"),
        ..parameters()
    };
    assert_eq!(
        asked("https://auth.example.com/a", &parameters),
        pairs(&[
            ("response_type", "code"),
            ("client_id", "me"),
            ("redirect_uri", "http://127.0.0.1:4000/callback"),
            ("code_challenge", "the-challenge"),
            ("code_challenge_method", "S256"),
            ("resource", "https://mcp.example.com/mcp"),
            ("scope", "read write"),
        ])
    );
}

#[test]
fn consent_is_demanded_only_for_offline_access() {
    let cases: [(&[&str], bool); 4] = [
        (&["read", "offline_access"], true),
        (&["offline_access"], true),
        (&["read", "offline_access_not"], false),
        (&[], false),
    ];
    for (scopes, expected) in cases {
        let owned: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let parameters = AuthorizationParameters {
            scopes: Some(&owned),
            ..parameters()
        };
        let query = asked("https://auth.example.com/a", &parameters);
        let prompt = query.iter().find(|(name, _)| name == "prompt");
        assert_eq!(
            prompt.map(|(_, value)| value.as_str()),
            expected.then_some("consent"),
            "{scopes:?}"
        );
        assert_eq!(
            query.iter().any(|(name, _)| name == "scope"),
            !scopes.is_empty(),
            "{scopes:?}"
        );
    }
}

#[test]
fn the_query_of_the_endpoint_stays_and_its_fragment_goes() {
    let endpoint = "https://auth.example.com/a?tenant=x%26y&client_id=other&prompt=login#part";
    let query = asked(endpoint, &parameters());
    assert_eq!(
        query[..2],
        pairs(&[("tenant", "x&y"), ("prompt", "login")])[..]
    );
    let clients: Vec<_> = query
        .iter()
        .filter(|(name, _)| name == "client_id")
        .collect();
    assert_eq!(clients, [&("client_id".to_owned(), "me".to_owned())]);
    let request = AuthorizationRequest::new(&server(endpoint), &parameters(), pkce()).unwrap();
    assert_eq!(request.url.fragment(), None);
    assert_eq!(request.url.path(), "/a");
}

#[test]
fn only_addresses_of_the_web_are_opened() {
    for (endpoint, fits) in [
        ("https://auth.example.com/a", true),
        ("http://127.0.0.1:9/a", true),
        ("http://localhost:9/a", true),
        ("http://auth.example.com/a", false),
        ("file:///bin/sh", false),
        ("javascript:alert(1)", false),
        ("ms-settings:network", false),
    ] {
        let made = AuthorizationRequest::new(&server(endpoint), &parameters(), pkce());
        assert_eq!(made.is_ok(), fits, "{endpoint}");
    }
    let mut silent = server("https://auth.example.com/a");
    silent.authorization_endpoint = None;
    let error = AuthorizationRequest::new(&silent, &parameters(), pkce()).unwrap_err();
    assert!(matches!(error, AuthorizeError::NoEndpoint { .. }));
}

#[test]
fn every_request_has_its_own_state() {
    let (one, other) = (request(), request());
    assert_ne!(one.state.expose(), other.state.expose());
    assert!(one.state.expose().len() >= 43, "256 bits in base64");
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Code,
    StateMissing,
    StateMismatch,
    Duplicate(&'static str),
    IssuerMissing,
    IssuerMismatch,
    Refused,
    NoCode,
}

fn judged(request: &AuthorizationRequest, answer: &str) -> Verdict {
    let query = answer.replace("STATE", request.state.expose());
    match request.accept(&query) {
        Ok(code) => {
            assert_eq!(code.expose(), "the/code", "{answer}");
            Verdict::Code
        }
        Err(CallbackError::StateMissing) => Verdict::StateMissing,
        Err(CallbackError::StateMismatch) => Verdict::StateMismatch,
        Err(CallbackError::Duplicate { parameter }) => Verdict::Duplicate(parameter),
        Err(CallbackError::IssuerMissing { .. }) => Verdict::IssuerMissing,
        Err(CallbackError::IssuerMismatch { .. }) => Verdict::IssuerMismatch,
        Err(CallbackError::Refused { .. }) => Verdict::Refused,
        Err(CallbackError::NoCode { .. }) => Verdict::NoCode,
    }
}

#[test]
fn state_comes_first_and_then_duplicates_and_codes() {
    let request = request();
    for (answer, expected) in [
        ("code=the%2Fcode&state=STATE", Verdict::Code),
        ("?code=the%2Fcode&state=STATE", Verdict::Code),
        ("other=1&other=2&state=STATE&code=the%2Fcode", Verdict::Code),
        ("code=the%2Fcode", Verdict::StateMissing),
        ("", Verdict::StateMissing),
        ("error=access_denied", Verdict::StateMissing),
        ("code=the%2Fcode&state=", Verdict::StateMismatch),
        ("code=the%2Fcode&state=STATEx", Verdict::StateMismatch),
        ("error=access_denied&state=x", Verdict::StateMismatch),
        ("code=a&code=b&state=x", Verdict::StateMismatch),
        (
            "code=a&state=STATE&state=STATE",
            Verdict::Duplicate("state"),
        ),
        ("code=a&state=STATE&state=x", Verdict::Duplicate("state")),
        ("code=a&code=a&state=STATE", Verdict::Duplicate("code")),
        ("error=a&error=b&state=STATE", Verdict::Duplicate("error")),
        (
            "code=a&state=STATE&iss=https%3A%2F%2Fauth.example.com&iss=https%3A%2F%2Fevil.example",
            Verdict::Duplicate("iss"),
        ),
        ("state=STATE", Verdict::NoCode),
        ("code=&state=STATE", Verdict::NoCode),
        ("error=access_denied&state=STATE", Verdict::Refused),
        ("error=access_denied&code=a&state=STATE", Verdict::Refused),
    ] {
        assert_eq!(judged(&request, answer), expected, "{answer}");
    }
}

#[test]
fn the_issuer_is_compared_as_the_specification_says() {
    let (lax, strict) = (request(), strict());
    for (issuer, from_lax, from_strict) in [
        (None, Verdict::Code, Verdict::IssuerMissing),
        (
            Some("https://auth.example.com"),
            Verdict::Code,
            Verdict::Code,
        ),
        (
            Some("https%3A%2F%2Fauth.example.com"),
            Verdict::Code,
            Verdict::Code,
        ),
        (
            Some("https://auth.example.com/"),
            Verdict::IssuerMismatch,
            Verdict::IssuerMismatch,
        ),
        (
            Some("https://AUTH.example.com"),
            Verdict::IssuerMismatch,
            Verdict::IssuerMismatch,
        ),
        (
            Some("https://auth.example.com:443"),
            Verdict::IssuerMismatch,
            Verdict::IssuerMismatch,
        ),
        (
            Some("https://auth.ex%2561mple.com"),
            Verdict::IssuerMismatch,
            Verdict::IssuerMismatch,
        ),
        (Some(""), Verdict::IssuerMismatch, Verdict::IssuerMismatch),
    ] {
        let issuer = issuer
            .map(|issuer| format!("&iss={issuer}"))
            .unwrap_or_default();
        let answer = format!("code=the%2Fcode&state=STATE{issuer}");
        assert_eq!(judged(&lax, &answer), from_lax, "{answer}");
        assert_eq!(judged(&strict, &answer), from_strict, "{answer}");
    }
}

#[test]
fn an_error_from_the_wrong_issuer_is_neither_acted_on_nor_shown() {
    let answer = "error=access_denied&error_description=Call+0900&state=STATE";
    for (request, answer) in [
        (strict(), answer.to_owned()),
        (request(), format!("{answer}&iss=https://evil.example")),
    ] {
        let query = answer.replace("STATE", request.state.expose());
        let error = request.accept(&query).unwrap_err();
        let all = format!("{error} {error:?} {}", error.hint());
        assert!(!error.is_denied(), "{all}");
        assert!(
            !all.contains("0900") && !all.contains("access_denied"),
            "{all}"
        );
    }
}

#[test]
fn errors_are_explained() {
    let request = request();
    for (error, meaning, advice) in [
        ("access_denied", "denied access", "agree"),
        ("invalid_scope", "scopes", "--scopes"),
        ("server_error", "failed", "later"),
        ("temporarily_unavailable", "overloaded", "later"),
        ("login_required", "sign in first", "same browser"),
        ("interaction_required", "sign in first", "same browser"),
        ("consent_required", "agree", "same browser"),
        ("invalid_request", "did not understand", "register anew"),
        ("unauthorized_client", "this client", "client id"),
        ("unsupported_response_type", "codes", "token"),
        ("invalid_target", "no tokens for this server", "address"),
        ("brand_new_error", "refused", "try again"),
    ] {
        let query = format!(
            "error={error}&error_description=Because.&state={}",
            request.state.expose()
        );
        let refused = request.accept(&query).unwrap_err();
        let shown = refused.to_string();
        for part in [ISSUER, error, meaning, "Because."] {
            assert!(shown.contains(part), "{shown:?} lacks {part:?}");
        }
        assert!(refused.hint().contains(advice), "{}", refused.hint());
        assert_eq!(refused.is_denied(), error == "access_denied", "{error}");
        assert!(!refused.is_foreign(), "{error}");
    }
}

#[test]
fn words_of_the_server_cannot_steer_the_terminal_or_fill_it() {
    let request = request();
    let long = "x".repeat(5000);
    let query: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("state", request.state.expose())
        .append_pair("error", "bad\u{1b}[2J")
        .append_pair("error_description", &format!("a\r\nb\u{202e}c {long}"))
        .finish();
    let shown = request.accept(&query).unwrap_err().to_string();
    assert!(shown.contains("(bad[2J): abc xxx"), "{shown}");
    assert!(shown.ends_with("x…"), "{shown}");
    assert!(shown.chars().count() < 500, "{shown}");
}

#[test]
fn nothing_secret_is_ever_shown() {
    let request = strict();
    let state = request.state.expose();
    let shown = format!("{request:?} {request:#?}");
    for secret in [state, "the-verifier", "the-challenge"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    for answer in [
        "code=hunter2",
        "code=hunter2&state=hunter2",
        "code=hunter2&code=hunter2&state=STATE",
        "code=hunter2&state=STATE&state=STATE",
        "code=hunter2&state=STATE",
        "code=hunter2&state=STATE&iss=STATE",
        "code=hunter2&state=STATE&iss=https://auth.example.com&error=STATE\
         &error_description=the+state+was+STATE",
        "state=STATE&iss=https://auth.example.com",
    ] {
        let error = request.accept(&answer.replace("STATE", state)).unwrap_err();
        let shown = format!("{error} {error:?} {error:#?} {}", error.hint());
        for secret in [state, "hunter2", "the-verifier"] {
            assert!(!shown.contains(secret), "{answer}: {shown}");
        }
    }
    let code = request.accept(&format!("code=hunter2&state={state}&iss={ISSUER}"));
    assert_eq!(format!("{code:?}"), "Ok(Secret(…))");
}
