//! Tokens are checked by what is public alone, as servers do it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Map, Value, json};

use super::signed;
use crate::oauth::key::{SigningAlgorithm, SigningKey};
use crate::secret::Secret;

/// The header and the claims of a token whose signature this public key verifies.
pub(in crate::oauth) fn verified(token: &str, jwk: &Value) -> Option<(Value, Value)> {
    let (message, signature) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let json = |text: &str| serde_json::from_slice::<Value>(&bytes(text)?).ok();
    let (header, claims, signature) = (json(header)?, json(claims)?, bytes(signature)?);
    let member = |name: &str| bytes(jwk.get(name)?.as_str()?);
    let verify = |algorithm: &'static dyn VerificationAlgorithm, key: Vec<u8>| {
        UnparsedPublicKey::new(algorithm, key).verify(message.as_bytes(), &signature)
    };
    let point = || Some([vec![4], member("x")?, member("y")?].concat());
    let rsa = |parameters| {
        let (n, e) = (member("n")?, member("e")?);
        let key = RsaPublicKeyComponents { n, e };
        Some(key.verify(parameters, message.as_bytes(), &signature))
    };
    match header["alg"].as_str()? {
        "ES256" => verify(&signature::ECDSA_P256_SHA256_FIXED, point()?),
        "ES384" => verify(&signature::ECDSA_P384_SHA384_FIXED, point()?),
        "EdDSA" => verify(&signature::ED25519, member("x")?),
        "RS256" => rsa(&signature::RSA_PKCS1_2048_8192_SHA256)?,
        "RS384" => rsa(&signature::RSA_PKCS1_2048_8192_SHA384)?,
        "RS512" => rsa(&signature::RSA_PKCS1_2048_8192_SHA512)?,
        "PS256" => rsa(&signature::RSA_PSS_2048_8192_SHA256)?,
        "PS384" => rsa(&signature::RSA_PSS_2048_8192_SHA384)?,
        "PS512" => rsa(&signature::RSA_PSS_2048_8192_SHA512)?,
        _ => return None,
    }
    .ok()?;
    Some((header, claims))
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

#[test]
fn signatures_hold_for_the_public_half_and_no_other() {
    let key = SigningKey::generate(SigningAlgorithm::Es256).unwrap();
    let other = SigningKey::generate(SigningAlgorithm::Es256).unwrap();
    let token = signed(
        &key,
        object(json!({"typ": "test", "alg": "none"})),
        object(json!({"iss": "ünïcode", "iat": 7})),
    )
    .unwrap();
    assert_eq!(
        verified(token.expose(), &key.public_jwk().to_value()),
        Some((
            json!({"typ": "test", "alg": "ES256"}),
            json!({"iss": "ünïcode", "iat": 7})
        ))
    );
    assert_eq!(
        verified(token.expose(), &other.public_jwk().to_value()),
        None
    );
}

#[test]
fn the_signature_is_that_of_the_example_in_rfc_8037() {
    let stored = "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g";
    let key = SigningKey::from_stored(&Secret::new(stored)).unwrap();
    let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    assert_eq!(
        URL_SAFE_NO_PAD.encode(key.sign(message).unwrap()),
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    );
}
