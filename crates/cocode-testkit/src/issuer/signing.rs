//! Keys that sign, and tokens as honest and dishonest issuers make them.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::{Value, json};

/// A key of an issuer, which signs whatever it is told to.
#[derive(Debug)]
pub struct Signer {
    id: &'static str,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Base64 as it is in tokens.
pub fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The seconds since 1970, as they are in tokens.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.expect("it is later than 1970");
    since.as_secs()
}

impl Signer {
    /// The text of the key of [`Self::rsa`].
    pub const RSA_PEM: &str = include_str!("keys/rsa.pem");

    /// The same RSA key each time.
    pub fn rsa(id: &'static str) -> Self {
        Self::from_pem(id, Self::RSA_PEM)
    }

    /// Not the key of [`Self::rsa`].
    pub fn other_rsa(id: &'static str) -> Self {
        Self::from_pem(id, include_str!("keys/other-rsa.pem"))
    }

    fn from_pem(id: &'static str, pem: &str) -> Self {
        let lines = pem.lines().filter(|line| !line.starts_with('-'));
        let der = STANDARD.decode(lines.collect::<String>());
        let key = RsaKeyPair::from_pkcs8(&der.expect("base64")).expect("a key");
        let key = Key::Rsa(Box::new(key));
        Self { id, key }
    }

    /// Another key each time, as those that follow.
    pub fn p256(id: &'static str) -> Self {
        let key = Key::P256(curve(&ECDSA_P256_SHA256_FIXED_SIGNING));
        Self { id, key }
    }

    /// For ES384.
    pub fn p384(id: &'static str) -> Self {
        let key = Key::P384(curve(&ECDSA_P384_SHA384_FIXED_SIGNING));
        Self { id, key }
    }

    /// For `EdDSA`.
    pub fn ed25519(id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let document = document.expect("random numbers");
        let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("it was just made");
        let key = Key::Ed25519(key);
        Self { id, key }
    }

    /// The public half.
    pub fn jwk(&self) -> Value {
        let point = |curve: &str, key: &[u8]| {
            let (x, y) = key[1..].split_at((key.len() - 1) / 2);
            json!({ "kty": "EC", "crv": curve, "x": encoded(x), "y": encoded(y) })
        };
        let mut jwk = match &self.key {
            Key::Rsa(key) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({ "kty": "RSA", "n": encoded(public.n), "e": encoded(public.e) })
            }
            Key::P256(key) => point("P-256", key.public_key().as_ref()),
            Key::P384(key) => point("P-384", key.public_key().as_ref()),
            Key::Ed25519(key) => {
                let x = encoded(key.public_key());
                json!({ "kty": "OKP", "crv": "Ed25519", "x": x })
            }
        };
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    /// A symmetric signature, which no honest issuer makes for others.
    pub fn hs256(secret: &[u8], message: &[u8]) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        hmac::sign(&key, message).as_ref().to_vec()
    }

    /// A token with these headers and claims, signed as `alg` says where the key can do that.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let message = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let algorithm = header["alg"].as_str().expect("the name of an algorithm");
        let signature = self.sign(algorithm, message.as_bytes());
        format!("{message}.{}", encoded(signature))
    }

    /// An honest token of this key.
    pub fn good(&self, algorithm: &str, claims: &Value) -> String {
        let header = json!({ "alg": algorithm, "kid": self.id, "typ": "at+jwt" });
        self.token(&header, claims)
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Rsa(key) => {
                let padding: &dyn ring::signature::RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public().modulus_len()];
                let signed = key.sign(padding, &random, message, &mut signature);
                signed.expect("the key can sign");
                signature
            }
            Key::P256(key) | Key::P384(key) => {
                let signed = key.sign(&random, message);
                signed.expect("the key can sign").as_ref().to_vec()
            }
            Key::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }
}

fn curve(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
    let document = document.expect("random numbers");
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("it was just made")
}
