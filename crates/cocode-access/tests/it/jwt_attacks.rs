//! Access tokens that must not let anybody in, each with the reason that its sender is told, and those
//! that must.

use cocode_access::{Algorithm, PrincipalKind, Refusal};
use cocode_testkit::{Signer, encoded, now};
use serde_json::{Value, json};

use crate::issuer::{Issuer, RESOURCE, comes, door};

/// The issuer of these tests, and its keys.
struct House {
    issuer: Issuer,
    rsa: Signer,
    p256: Signer,
}

fn house() -> House {
    let (rsa, p256) = (Signer::rsa("rsa"), Signer::p256("p256"));
    let issuer = Issuer::start(&[&rsa, &p256]);
    House { issuer, rsa, p256 }
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

fn without(mut claims: Value, name: &str) -> Value {
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn assert_invalid(refusal: &Refusal, why: &str) {
    assert_eq!(refusal.message(), why);
    assert_eq!(
        (refusal.status().as_u16(), refusal.code()),
        (401, "invalid_token")
    );
    let challenge = refusal.www_authenticate().unwrap().to_str().unwrap();
    let expected = format!(
        "Bearer realm=\"cocode\", error=\"invalid_token\", error_description=\"{why}\", \
         resource_metadata=\"https://gateway.example/.well-known/oauth-protected-resource/mcp\""
    );
    assert_eq!(challenge, expected);
}

#[tokio::test]
async fn honest_tokens_of_every_allowed_signature_let_in_whom_they_name() {
    let rsa = Signer::rsa("rsa");
    let (p256, p384) = (Signer::p256("p256"), Signer::p384("p384"));
    let ed25519 = Signer::ed25519("ed25519");
    let issuer = Issuer::start(&[&rsa, &p256, &p384, &ed25519]);
    let door = issuer.door();
    for algorithm in Algorithm::ALL {
        let signer = match algorithm {
            Algorithm::Es256 => &p256,
            Algorithm::Es384 => &p384,
            Algorithm::EdDsa => &ed25519,
            _ => &rsa,
        };
        let token = signer.good(algorithm.as_str(), &issuer.claims());
        let alice = comes(&door, &token).await.unwrap();
        assert_eq!(alice.name.as_str(), "alice", "{algorithm}");
        assert_eq!(alice.kind, PrincipalKind::Jwt);
        assert_eq!(*alice.scopes, ["mcp:basic", "mcp:write"]);
        assert!(!alice.is_admin && alice.until.is_some());
    }
    assert_eq!(issuer.asked("/keys"), 1, "the keys are fetched once");
}

#[tokio::test]
async fn a_token_that_nobody_signed_is_refused() {
    let house = house();
    let door = house.issuer.door();
    for name in ["none", "None", "NONE", "nOnE"] {
        let header = json!({ "alg": name, "kid": "rsa", "typ": "JWT" });
        let signed = house.rsa.token(&header, &house.issuer.claims());
        let unsigned = format!("{}.", signed.rsplit_once('.').unwrap().0);
        for token in [signed, unsigned] {
            let refusal = comes(&door, &token).await.unwrap_err();
            assert_invalid(&refusal, "the token is not signed");
        }
    }
}

#[tokio::test]
async fn a_public_key_is_never_the_secret_of_a_symmetric_signature() {
    let house = house();
    let door = house.issuer.door();
    let jwk = house.rsa.jwk();
    let secrets = [
        Signer::RSA_PEM.as_bytes().to_vec(),
        jwk.to_string().into_bytes(),
        jwk["n"].as_str().unwrap().as_bytes().to_vec(),
        Vec::new(),
    ];
    for secret in secrets {
        let header = json!({ "alg": "HS256", "kid": "rsa", "typ": "at+jwt" });
        let message = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(house.issuer.claims().to_string())
        );

        let signature = Signer::hs256(&secret, message.as_bytes());
        let token = format!("{message}.{}", encoded(signature));
        let refusal = comes(&door, &token).await.unwrap_err();
        let why = "the token is signed with an algorithm that is not allowed here";
        assert_invalid(&refusal, why);
    }
}

#[tokio::test]
async fn the_algorithm_of_a_token_has_to_fit_the_key_that_it_names() {
    let House { issuer, rsa, p256 } = house();
    let mut only = rsa.jwk();
    only["kid"] = json!("only-rs256");
    only["alg"] = json!("RS256");
    issuer.publish("/keys", &json!({ "keys": [rsa.jwk(), p256.jwk(), only] }));
    let door = issuer.door();
    for (signer, algorithm, key) in [
        (&rsa, "RS256", "p256"),
        (&p256, "ES256", "rsa"),
        (&p256, "ES384", "p256"),
        (&p256, "EdDSA", "p256"),
        (&rsa, "PS256", "only-rs256"),
        (&rsa, "RS512", "only-rs256"),
    ] {
        let header = json!({ "alg": algorithm, "kid": key });
        let token = signer.token(&header, &issuer.claims());
        let refusal = comes(&door, &token).await.unwrap_err();
        let why = "the token is signed with an algorithm that does not fit the key of the issuer";
        assert_invalid(&refusal, why);
    }
    let header = json!({ "alg": "RS256", "kid": "only-rs256" });
    let token = rsa.token(&header, &issuer.claims());
    assert!(comes(&door, &token).await.is_ok());
}

#[tokio::test]
async fn only_configured_algorithms_are_taken() {
    let House { issuer, rsa, p256 } = house();
    let mut options = issuer.options();
    options.algorithms = vec![Algorithm::Es256];
    let door = door(options);
    let refusal = comes(&door, &rsa.good("RS256", &issuer.claims())).await;
    let why = "the token is signed with an algorithm that is not allowed here";
    assert_invalid(&refusal.unwrap_err(), why);
    let token = p256.good("ES256", &issuer.claims());
    assert!(comes(&door, &token).await.is_ok());
}

#[tokio::test]
async fn keys_that_a_token_brings_along_count_for_nothing() {
    let house = house();
    let door = house.issuer.door();
    let mallory = Signer::other_rsa("rsa");
    let evil = Issuer::start(&[&mallory]);
    for (name, value) in [
        ("jwk", mallory.jwk()),
        ("jku", json!(format!("{}/keys", evil.url()))),
        ("x5u", json!(format!("{}/keys", evil.url()))),
        ("x5c", json!(["AAAA"])),
    ] {
        let mut header = json!({ "alg": "RS256", "kid": "rsa", "typ": "at+jwt" });
        header[name] = value;
        let token = mallory.token(&header, &house.issuer.claims());
        let refusal = comes(&door, &token).await.unwrap_err();
        assert_invalid(&refusal, "the signature of the token is wrong");
        // They do no harm either.
        let token = house.rsa.token(&header, &house.issuer.claims());
        assert!(comes(&door, &token).await.is_ok(), "{name}");
    }
    assert_eq!(evil.asked("/keys"), 0);
}

#[tokio::test]
async fn critical_headers_are_refused_whatever_they_are() {
    let house = house();
    let door = house.issuer.door();
    for critical in [json!(["exp"]), json!(["b64"]), json!([]), Value::Null] {
        let header = json!({ "alg": "RS256", "kid": "rsa", "crit": critical, "b64": false });
        let token = house.rsa.token(&header, &house.issuer.claims());
        let refusal = comes(&door, &token).await.unwrap_err();
        let why = "the token has critical headers, and none are known here";
        assert_invalid(&refusal, why);
    }
}

#[tokio::test]
async fn tokens_for_other_purposes_are_refused_by_their_type() {
    let house = house();
    let door = house.issuer.door();
    let typed = |typ: Option<&str>| {
        let mut header = json!({ "alg": "RS256", "kid": "rsa" });
        if let Some(typ) = typ {
            header["typ"] = json!(typ);
        }
        house.rsa.token(&header, &house.issuer.claims())
    };
    for typ in [
        "dpop+jwt",
        "logout+jwt",
        "id_token",
        "secevent+jwt",
        "JWE",
        "",
    ] {
        let refusal = comes(&door, &typed(Some(typ))).await.unwrap_err();
        let why = "the token is of another type than at+jwt and JWT";
        assert_invalid(&refusal, why);
    }
    for typ in ["at+jwt", "AT+JWT", "JWT", "jwt", "application/at+jwt"] {
        assert!(comes(&door, &typed(Some(typ))).await.is_ok(), "{typ}");
    }
    assert!(comes(&door, &typed(None)).await.is_ok());
}

#[tokio::test]
async fn times_are_checked_with_a_minute_of_leeway() {
    let house = house();
    let door = house.issuer.door();
    let claims = || house.issuer.claims();
    for (claims, why) in [
        (
            with(claims(), "exp", json!(now() - 61)),
            "the token has expired",
        ),
        (with(claims(), "exp", json!(0)), "the token has expired"),
        (
            without(claims(), "exp"),
            "the token does not say when it expires",
        ),
        (with(claims(), "exp", json!("soon")), "the token is no JWT"),
        (with(claims(), "exp", json!(-1)), "the token is no JWT"),
        (with(claims(), "exp", json!(1e300)), "the token is no JWT"),
        (with(claims(), "exp", Value::Null), "the token is no JWT"),
        (
            with(claims(), "nbf", json!(now() + 120)),
            "the token is not valid yet",
        ),
        (
            with(claims(), "iat", json!(now() + 120)),
            "the token was issued at a time that cannot be",
        ),
        (
            with(
                with(claims(), "iat", json!(now() + 30)),
                "exp",
                json!(now() + 20),
            ),
            "the token was issued at a time that cannot be",
        ),
    ] {
        let refusal = comes(&door, &house.rsa.good("RS256", &claims)).await;
        assert_invalid(&refusal.unwrap_err(), why);
    }
    let fractions = json!(f64::from(u32::try_from(now()).unwrap()) + 60.5);
    for claims in [
        with(
            with(claims(), "iat", json!(now() - 100)),
            "exp",
            json!(now() - 30),
        ),
        with(claims(), "nbf", json!(now() + 30)),
        with(claims(), "iat", json!(now() + 30)),
        without(claims(), "iat"),
        with(claims(), "exp", fractions),
    ] {
        let token = house.rsa.good("RS256", &claims);
        assert!(comes(&door, &token).await.is_ok(), "{claims}");
    }
}

#[tokio::test]
async fn tokens_of_other_issuers_and_for_other_audiences_are_refused() {
    let house = house();
    let door = house.issuer.door();
    let claims = || house.issuer.claims();
    let slash = format!("{}/", house.issuer.url());
    let upper = house.issuer.url().to_uppercase();
    for issuer in [
        json!(slash),
        json!(upper),
        json!("https://evil.example"),
        json!([house.issuer.url()]),
    ] {
        let token = house.rsa.good("RS256", &with(claims(), "iss", issuer));
        let refusal = comes(&door, &token).await.unwrap_err();
        let why = "the token is not of an issuer that is trusted here";
        assert_invalid(&refusal, why);
    }
    let nobody = house.rsa.good("RS256", &without(claims(), "iss"));
    assert_eq!(comes(&door, &nobody).await.unwrap_err().status(), 401);
    for audience in [
        json!("https://other.example/mcp"),
        json!("https://gateway.example"),
        json!("https://gateway.example/mcp/files"),
        json!(["https://other.example", 7]),
        json!([]),
        json!({ "a": RESOURCE }),
        Value::Null,
    ] {
        let token = house.rsa.good("RS256", &with(claims(), "aud", audience));
        let refusal = comes(&door, &token).await.unwrap_err();
        assert_invalid(&refusal, "the token is not for this audience");
    }
    let missing = house.rsa.good("RS256", &without(claims(), "aud"));
    assert_eq!(comes(&door, &missing).await.unwrap_err().status(), 401);
    let among = json!(["https://other.example", RESOURCE]);
    let token = house.rsa.good("RS256", &with(claims(), "aud", among));
    assert!(comes(&door, &token).await.is_ok());
    assert_eq!(
        house.issuer.asked("/keys"),
        1,
        "nothing is fetched for tokens that cannot be good"
    );
}

#[tokio::test]
async fn whoever_has_no_fit_name_does_not_come_in() {
    let house = house();
    let door = house.issuer.door();
    for name in [
        json!(""),
        json!(7),
        Value::Null,
        json!("local"),
        json!("*"),
        json!("new\nline"),
        json!("\u{1b}[31m"),
        json!("a".repeat(256)),
    ] {
        let claims = with(house.issuer.claims(), "sub", name);
        let refusal = comes(&door, &house.rsa.good("RS256", &claims)).await;
        let why = "the token names nobody whom it could be of";
        assert_invalid(&refusal.unwrap_err(), why);
    }
}

#[tokio::test]
async fn a_token_that_is_bound_to_a_key_is_not_taken_without_a_proof() {
    let house = house();
    let door = house.issuer.door();
    for bound in [
        json!({ "jkt": "x" }),
        json!({ "x5t#S256": "x" }),
        Value::Null,
    ] {
        let claims = with(house.issuer.claims(), "cnf", bound);
        let refusal = comes(&door, &house.rsa.good("RS256", &claims)).await;
        let why = "the token is bound to a key, and proofs of keys are not checked here";
        assert_invalid(&refusal.unwrap_err(), why);
    }
}

#[tokio::test]
async fn changed_and_foreign_signatures_are_refused() {
    let house = house();
    let door = house.issuer.door();
    let good = house.p256.good("ES256", &house.issuer.claims());
    assert!(comes(&door, &good).await.is_ok());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let header = message.split_once('.').unwrap().0;
    let admin = with(house.issuer.claims(), "sub", json!("admin"));
    let zeros = encoded([0; 64]);
    for token in [
        format!("{header}.{}.{signature}", encoded(admin.to_string())),
        format!("{message}.{}", encoded([1; 64])),
        format!("{message}.{zeros}"),
        format!("{message}.{}", encoded([])),
        format!("{message}.{}", signature.split_at(40).0),
        Signer::p256("p256").good("ES256", &house.issuer.claims()),
        Signer::other_rsa("rsa").good("RS256", &house.issuer.claims()),
    ] {
        let refusal = comes(&door, &token).await.unwrap_err();
        assert_invalid(&refusal, "the signature of the token is wrong");
    }
}

#[tokio::test]
async fn what_is_no_jwt_or_too_long_is_refused_without_asking_anybody() {
    let house = house();
    let door = house.issuer.door();
    let good = house.rsa.good("RS256", &house.issuer.claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (_, claims) = message.split_once('.').unwrap();
    let twice = encoded(r#"{"alg":"none","alg":"RS256","kid":"rsa"}"#);
    for token in [
        "x".to_owned(),
        "a.b".to_owned(),
        "..".to_owned(),
        format!("{good}.{claims}.x"),
        format!("{message}.{signature}="),
        format!("{message}=.{signature}"),
        format!("{}.{claims}.{signature}", encoded("not json")),
        format!("{}.{claims}.{signature}", encoded("{}")),
        format!("{twice}.{claims}.{signature}"),
        house.rsa.good("RS256", &json!([1])),
    ] {
        let refusal = comes(&door, &token).await.unwrap_err();
        assert_invalid(&refusal, "the token is no JWT");
    }
    let long = with(house.issuer.claims(), "x", json!("a".repeat(16 * 1024)));
    let refusal = comes(&door, &house.rsa.good("RS256", &long)).await;
    assert_invalid(
        &refusal.unwrap_err(),
        "the token is longer than 16384 bytes",
    );
    assert_eq!(house.issuer.asked("/keys"), 0);
}

#[tokio::test]
async fn a_token_that_allows_too_little_is_told_what_it_lacks() {
    let House { issuer, rsa, .. } = house();
    let mut options = issuer.options();
    options.required_scopes = vec!["mcp:basic".to_owned(), "mcp:use".to_owned()];
    options.admin_scope = Some("mcp:admin".to_owned());
    let door = door(options);
    let token = rsa.good("RS256", &issuer.claims());
    for _again in 0..2 {
        let refusal = comes(&door, &token).await.unwrap_err();
        assert_eq!(
            (refusal.status().as_u16(), refusal.code()),
            (403, "insufficient_scope")
        );
        let challenge = refusal.www_authenticate().unwrap().to_str().unwrap();
        assert!(
            challenge.contains("error=\"insufficient_scope\""),
            "{challenge}"
        );
        assert!(
            challenge.contains("scope=\"mcp:basic mcp:use\""),
            "{challenge}"
        );
        assert!(challenge.contains("resource_metadata="), "{challenge}");
    }
    for (claim, scopes, is_admin) in [
        ("scope", json!("mcp:use mcp:basic"), false),
        ("scope", json!("mcp:use mcp:admin mcp:basic"), true),
        ("scp", json!(["mcp:use", "mcp:basic", "mcp:admin"]), true),
    ] {
        let claims = with(without(issuer.claims(), "scope"), claim, scopes);
        let principal = comes(&door, &rsa.good("RS256", &claims)).await.unwrap();
        assert_eq!(principal.is_admin, is_admin, "{claims}");
    }
}

#[tokio::test]
async fn another_claim_can_name_the_principal_and_another_audience_be_ours() {
    let House { issuer, rsa, .. } = house();
    let mut options = issuer.options();
    options.principal_claim = "email".to_owned();
    options.audiences = vec!["api://gateway".to_owned()];
    let door = door(options);
    let claims = with(issuer.claims(), "email", json!("alice@example.com"));
    let claims = with(claims, "aud", json!("api://gateway"));
    let alice = comes(&door, &rsa.good("RS256", &claims)).await.unwrap();
    assert_eq!(alice.name.as_str(), "alice@example.com");
    // Clients ask for tokens for the resource, whatever else is ours.
    let resource = with(claims.clone(), "aud", json!(RESOURCE));
    assert!(comes(&door, &rsa.good("RS256", &resource)).await.is_ok());
    let other = with(claims, "aud", json!("api://other"));
    assert!(comes(&door, &rsa.good("RS256", &other)).await.is_err());
}

#[tokio::test]
async fn the_resource_is_an_audience_as_it_is_advertised_however_it_is_configured() {
    let House { issuer, rsa, .. } = house();
    for (configured, advertised, metadata) in [
        (
            "https://mcp.example.com/",
            "https://mcp.example.com",
            "https://mcp.example.com/.well-known/oauth-protected-resource",
        ),
        (
            "https://MCP.example.com:443/mcp",
            "https://mcp.example.com/mcp",
            "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
        ),
        (
            "https://mcp.example.com:8443/mcp/",
            "https://mcp.example.com:8443/mcp",
            "https://mcp.example.com:8443/.well-known/oauth-protected-resource/mcp",
        ),
    ] {
        let mut options = issuer.options();
        options.resource = configured.parse().unwrap();
        // As a gateway does it: with what stands in its configuration.
        options.audiences = vec![configured.to_owned(), "api://gateway".to_owned()];
        let as_url = options.resource.to_string();
        let door = door(options);
        let document = door.oauth().unwrap().metadata();
        let document: Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(document["resource"], advertised);
        let slashed = format!("{advertised}/");
        for audience in [configured, advertised, &as_url, &slashed, "api://gateway"] {
            let claims = with(issuer.claims(), "aud", json!(audience));
            let came = comes(&door, &rsa.good("RS256", &claims)).await;
            assert!(came.is_ok(), "{configured} {audience}: {came:?}");
        }
        for audience in [
            "https://mcp.example.com/mcpx",
            "https://mcp.example.com.evil.example/mcp",
            "http://mcp.example.com/mcp",
        ] {
            let claims = with(issuer.claims(), "aud", json!(audience));
            let refusal = comes(&door, &rsa.good("RS256", &claims)).await.unwrap_err();
            let challenge = refusal.www_authenticate().unwrap().to_str().unwrap();
            let told = format!("resource_metadata=\"{metadata}\"");
            assert!(challenge.contains(&told), "{challenge}");
        }
    }
}
