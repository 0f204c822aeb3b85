//! The keys that an issuer publishes, RFC 7517, and the check of a signature with one of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use serde_json::Value;

use super::algorithm::{Algorithm, KeyKind};

/// Keys that are taken of a set; the rest is left out.
pub(super) const MAX_KEYS: usize = 64;
/// Keys that are tried for a token that names none.
const MAX_TRIED_KEYS: usize = 4;

/// The keys of an issuer that can be used here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    id: Option<String>,
    /// The only algorithm that it is for, if it says so.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Point { kind: KeyKind, bytes: Vec<u8> },
}

/// What comes of looking for the key of a token and checking its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The signature is good.
    Good,
    /// There is no such key. The issuer may have a newer one.
    UnknownKey,
    /// The key is there, and is not for this algorithm.
    KeyMismatch,
    /// The token names no key, and too many fit.
    Ambiguous,
    /// The signature is not that of the key.
    Bad,
}

/// A document that holds keys. One that is odd is left out alone.
#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a document. There is none if this is no set of keys.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let Document { keys } = serde_json::from_slice(bytes).ok()?;
        let keys = keys.into_iter().filter_map(Key::read).take(MAX_KEYS);
        let keys = keys.collect();
        Some(Self { keys })
    }

    /// Whether there is no key that could be used.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Checks a signature with the key that the token names.
    pub(super) fn check(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Checked {
        let named: Vec<&Key> = match id {
            Some(id) => {
                let is_named = |key: &&Key| key.id.as_deref() == Some(id);
                self.keys.iter().filter(is_named).collect()
            }
            None => self.keys.iter().collect(),
        };
        if named.is_empty() {
            return Checked::UnknownKey;
        }
        let fitting: Vec<&Key> = named
            .into_iter()
            .filter(|key| key.fits(algorithm))
            .collect();
        match (fitting.len(), id) {
            (0, Some(_)) => return Checked::KeyMismatch,
            (0, None) => return Checked::UnknownKey,
            (MAX_TRIED_KEYS.., _) if fitting.len() > MAX_TRIED_KEYS => return Checked::Ambiguous,
            _ => {}
        }
        let good = |key: &&Key| key.verifies(algorithm, message, signature);
        match (fitting.iter().any(good), id) {
            (true, _) => Checked::Good,
            (false, Some(_)) => Checked::Bad,
            // It may have been made with a key that is newer than what is known.
            (false, None) => Checked::UnknownKey,
        }
    }
}

impl Key {
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let verifies = |operations: &Vec<String>| operations.iter().any(|one| one == "verify");
        let is_for_signatures = jwk
            .purpose
            .as_deref()
            .is_none_or(|purpose| purpose == "sig")
            && jwk.key_ops.as_ref().is_none_or(verifies);
        if !is_for_signatures {
            return None;
        }
        // What is for an algorithm that is not known is for none that is.
        let algorithm = jwk.alg.as_deref().map(str::parse).transpose().ok()?;
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Material::Rsa {
                n: without_leading_zeros(decoded(jwk.n)?),
                e: without_leading_zeros(decoded(jwk.e)?),
            },
            ("EC", Some("P-256")) => point(KeyKind::P256, 32, decoded(jwk.x)?, decoded(jwk.y)?)?,
            ("EC", Some("P-384")) => point(KeyKind::P384, 48, decoded(jwk.x)?, decoded(jwk.y)?)?,
            ("OKP", Some("Ed25519")) => {
                let bytes = decoded(jwk.x).filter(|bytes| bytes.len() == 32)?;
                let kind = KeyKind::Ed25519;
                Material::Point { kind, bytes }
            }
            _ => return None,
        };
        Some(Self {
            id: jwk.kid,
            algorithm,
            material,
        })
    }

    /// Whether a signature of this algorithm can be one of this key. So a key is never used for another
    /// kind of signature than it was published for, whatever a token says.
    fn fits(&self, algorithm: Algorithm) -> bool {
        let kind = match &self.material {
            Material::Rsa { .. } => KeyKind::Rsa,
            Material::Point { kind, .. } => *kind,
        };
        kind == algorithm.key_kind() && self.algorithm.is_none_or(|only| only == algorithm)
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signed: &[u8]) -> bool {
        let rsa = match algorithm {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Algorithm::Es256 => {
                return self.is_signed(&signature::ECDSA_P256_SHA256_FIXED, message, signed);
            }
            Algorithm::Es384 => {
                return self.is_signed(&signature::ECDSA_P384_SHA384_FIXED, message, signed);
            }
            Algorithm::EdDsa => return self.is_signed(&signature::ED25519, message, signed),
        };
        match &self.material {
            Material::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(rsa, message, signed)
                .is_ok(),
            Material::Point { .. } => false,
        }
    }

    fn is_signed(
        &self,
        algorithm: &'static dyn VerificationAlgorithm,
        message: &[u8],
        signed: &[u8],
    ) -> bool {
        match &self.material {
            Material::Point { bytes, .. } => UnparsedPublicKey::new(algorithm, bytes)
                .verify(message, signed)
                .is_ok(),
            Material::Rsa { .. } => false,
        }
    }
}

/// A point of a curve, as it is written without compression.
fn point(kind: KeyKind, length: usize, x: Vec<u8>, y: Vec<u8>) -> Option<Material> {
    if x.len() != length || y.len() != length {
        return None;
    }
    let bytes = [vec![4], x, y].concat();
    Some(Material::Point { kind, bytes })
}

fn decoded(text: Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}

/// Some issuers write a sign that there is none.
fn without_leading_zeros(bytes: Vec<u8>) -> Vec<u8> {
    let digits = bytes.into_iter().skip_while(|byte| *byte == 0);
    digits.collect()
}
