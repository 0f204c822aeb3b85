//! What is in a request when a client proves who it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::json;
use url::form_urlencoded;

use super::{ClientAuthenticationError, ClientProof};
use crate::oauth::client::{Client, ClientAuthentication, ClientKind};
use crate::oauth::jwt::tests::verified;
use crate::oauth::key::{SigningAlgorithm, SigningKey};
use crate::oauth::token::Form;
use crate::secret::Secret;

const NOW: u64 = 1_800_000_000;

fn client(id: &str, secret: Option<&str>, authentication: ClientAuthentication) -> Client {
    Client {
        id: id.to_owned(),
        secret: secret.map(Secret::new),
        authentication,
        kind: ClientKind::Preregistered,
        redirect_uris: Vec::new(),
        secret_expires_at: None,
        registration_access_token: None,
        registration_uri: None,
    }
}

/// The body and the headers with the proof of a client.
fn put(
    client: &Client,
    key: Option<&SigningKey>,
) -> Result<(String, HeaderMap), ClientAuthenticationError> {
    let (mut form, mut headers) = (Form::empty(), HeaderMap::new());
    let proof = ClientProof {
        client,
        key,
        issuer: "https://auth.example/tenant",
        now: NOW,
    };
    proof.put(&mut form, &mut headers)?;
    let body = String::from_utf8(form.body().to_vec()).unwrap();
    Ok((body, headers))
}

#[test]
fn a_public_client_only_says_its_name() {
    let client = client(
        "https://app.example/client.json",
        Some("unused"),
        ClientAuthentication::None,
    );
    let (body, headers) = put(&client, None).unwrap();
    assert_eq!(body, "client_id=https%3A%2F%2Fapp.example%2Fclient.json");
    assert!(headers.is_empty());
}

#[test]
fn a_secret_in_the_header_is_escaped_before_it_is_encoded() {
    let cases = [
        ("s6BhdRkqt3", "gX1fBat3bV", "s6BhdRkqt3:gX1fBat3bV"),
        (
            "with:colon",
            "and %+/=&",
            "with%3Acolon:and%20%25%2B%2F%3D%26",
        ),
        ("a-b.c_d~e*", "ü", "a-b.c_d~e*:%C3%BC"),
    ];
    for (id, secret, expected) in cases {
        let client = client(id, Some(secret), ClientAuthentication::SecretBasic);
        let (body, headers) = put(&client, None).unwrap();
        assert_eq!(body, "", "{id}");
        let value = &headers[AUTHORIZATION];
        assert!(value.is_sensitive());
        let pair = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
        let pair = STANDARD.decode(pair).unwrap();
        assert_eq!(String::from_utf8(pair).unwrap(), expected);
        // Servers undo it like this.
        let encoded = expected.split_once(':').unwrap().1;
        let undone = form_urlencoded::parse(encoded.as_bytes()).next().unwrap();
        assert_eq!(undone.0, secret);
    }
}

#[test]
fn a_secret_in_the_body_stands_beside_the_name() {
    let client = client("name", Some("a&b"), ClientAuthentication::SecretPost);
    let (body, headers) = put(&client, None).unwrap();
    assert_eq!(body, "client_id=name&client_secret=a%26b");
    assert!(headers.is_empty());
}

#[test]
fn a_key_signs_a_short_lived_token_for_the_issuer() {
    let key = SigningKey::generate(SigningAlgorithm::Es256).unwrap();
    let client = client("name", None, ClientAuthentication::PrivateKeyJwt);
    let (body, headers) = put(&client, Some(&key)).unwrap();
    assert!(headers.is_empty());
    let fields: Vec<(String, String)> = form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["client_id", "client_assertion_type", "client_assertion"]
    );
    assert_eq!(fields[0].1, "name");
    assert_eq!(
        fields[1].1,
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    let (header, mut claims) = verified(&fields[2].1, &key.public_jwk().to_value()).unwrap();
    assert_eq!(header, json!({"alg": "ES256", "typ": "JWT"}));
    let name = claims.as_object_mut().unwrap().remove("jti").unwrap();
    assert!(name.as_str().unwrap().len() >= 16);
    assert_eq!(
        claims,
        json!({
            "iss": "name",
            "sub": "name",
            "aud": "https://auth.example/tenant",
            "iat": NOW,
            "exp": NOW + 300,
        })
    );
    let (other, _) = put(&client, Some(&key)).unwrap();
    assert_ne!(body, other);
}

#[test]
fn a_client_without_its_secret_or_key_is_told_so() {
    let cases = [
        (
            ClientAuthentication::SecretBasic,
            "the client \"name\" has to prove who it is by client_secret_basic, \
             but its secret is not known",
        ),
        (
            ClientAuthentication::SecretPost,
            "the client \"name\" has to prove who it is by client_secret_post, \
             but its secret is not known",
        ),
        (
            ClientAuthentication::PrivateKeyJwt,
            "the client \"name\" has to prove who it is by private_key_jwt, \
             but it has no private key",
        ),
    ];
    for (method, expected) in cases {
        let error = put(&client("name", None, method), None).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
