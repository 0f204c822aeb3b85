//! Private keys: read from PEM files, made for one server, kept in the store. Nothing else sees what
//! they consist of; others get signatures and the public half.

mod algorithm;
mod der;
mod jwk;
mod pem;
mod point;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair as RsaKeyPair, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256,
    RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding,
};
use zeroize::Zeroizing;

use self::algorithm::KeyType;
use self::der::{Curve, Material};
use super::random::NoRandomness;
use crate::secret::Secret;

pub use self::algorithm::SigningAlgorithm;
pub use self::jwk::PublicJwk;

/// A private key and how it signs. Copies share the key.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Pair>,
    algorithm: SigningAlgorithm,
    /// The key in DER and base64.
    stored: Secret,
}

enum Pair {
    Curve(Curve, EcdsaKeyPair),
    Rsa { pair: RsaKeyPair, pss_only: bool },
    Ed25519(Ed25519KeyPair),
}

/// Why a private key cannot be used. Says nothing of what is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error(
        "there is no private key in PEM form: a line `-----BEGIN PRIVATE KEY-----` is expected"
    )]
    NoKey,
    /// Only its owner could open it.
    #[error(
        "the private key is protected by a passphrase, which is not supported: \
         write it without one by `openssl pkey -in KEY -out NEW`"
    )]
    Encrypted,
    /// The other half.
    #[error("this is a public key or a certificate: the private key is needed")]
    Public,
    /// A form that only ssh uses.
    #[error(
        "the private key is in the form of OpenSSH: \
         rewrite a copy of it by `ssh-keygen -p -m PKCS8 -f COPY`"
    )]
    OpenSsh,
    /// Not readable.
    #[error("the private key is damaged: {0}")]
    Damaged(&'static str),
    /// Nothing we can sign with.
    #[error(
        "the private key is of a type that is not supported ({0}): \
         use P-256, P-384, Ed25519, or RSA with 2048 to 4096 bits"
    )]
    Unsupported(&'static str),
    /// ring does not take it.
    #[error("the private key cannot be used: {0}")]
    Rejected(String),
    /// The key signs in another way.
    #[error("{algorithm} needs {needed}, but this is {found}")]
    WrongAlgorithm {
        /// What was asked for.
        algorithm: SigningAlgorithm,
        /// The key for it.
        needed: &'static str,
        /// The key that there is.
        found: &'static str,
    },
    /// No way to sign that we know.
    #[error(
        "the signing algorithm {0:?} is unknown: \
         use ES256, ES384, EdDSA, RS256, RS384, RS512, PS256, PS384 or PS512"
    )]
    UnknownAlgorithm(String),
    /// Keys for this cannot be made here.
    #[error("keys for {0} cannot be made here: use ES256, ES384 or EdDSA")]
    NotMade(SigningAlgorithm),
    /// Making a key or a signature failed, which only happens without random numbers.
    #[error("the system gave no random numbers to sign with")]
    Randomness,
}

impl SigningKey {
    /// Reads a key in PEM form: PKCS#8, PKCS#1 or SEC1. Without an algorithm it signs as is usual for
    /// its type: ES256, ES384, `EdDSA`, or RS256 (PS256, if it is for PSS only).
    pub fn from_pem(pem: &Secret, algorithm: Option<SigningAlgorithm>) -> Result<Self, KeyError> {
        Self::from_der(&pem::private_key(pem.expose())?, algorithm)
    }

    /// Makes a key for ES256, ES384 or `EdDSA`.
    pub fn generate(algorithm: SigningAlgorithm) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let document = match algorithm {
            SigningAlgorithm::Es256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            }
            SigningAlgorithm::Es384 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random)
            }
            SigningAlgorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
            SigningAlgorithm::Rs256
            | SigningAlgorithm::Rs384
            | SigningAlgorithm::Rs512
            | SigningAlgorithm::Ps256
            | SigningAlgorithm::Ps384
            | SigningAlgorithm::Ps512 => return Err(KeyError::NotMade(algorithm)),
        };
        let document = document.map_err(|_unspecified| KeyError::Randomness)?;
        Self::from_der(document.as_ref(), Some(algorithm))
    }

    /// Reads what [`SigningKey::stored`] gave. The algorithm is the usual one of its type.
    pub fn from_stored(stored: &Secret) -> Result<Self, KeyError> {
        Self::from_der(&pem::decoded(stored.expose())?, None)
    }

    /// The key for the store: base64 of PKCS#8, or of the older form that it was read from.
    pub fn stored(&self) -> &Secret {
        &self.stored
    }

    /// How it signs.
    pub fn algorithm(&self) -> SigningAlgorithm {
        self.algorithm
    }

    /// The same key with an algorithm that the other side takes: its own if that is among them, or
    /// else another one that fits. Nothing, if none does.
    pub fn fitting(&self, offered: &[String]) -> Option<Self> {
        let is_offered =
            |algorithm: &SigningAlgorithm| offered.iter().any(|name| name == algorithm.as_str());
        let others = self.pair.key_type().algorithms().iter().copied();
        let algorithm = std::iter::once(self.algorithm)
            .chain(others)
            .find(is_offered)?;
        Some(Self {
            algorithm,
            ..self.clone()
        })
    }

    /// The public half.
    pub fn public_jwk(&self) -> PublicJwk {
        match &*self.pair {
            Pair::Curve(curve, pair) => {
                PublicJwk::of_point(curve.name(), pair.public_key().as_ref())
            }
            Pair::Rsa { pair, .. } => {
                let PublicKeyComponents { n, e } =
                    PublicKeyComponents::<Vec<u8>>::from(pair.public());
                PublicJwk::of_rsa(&n, &e)
            }
            Pair::Ed25519(pair) => PublicJwk::of_ed25519(pair.public_key().as_ref()),
        }
    }

    /// The signature as a JSON Web Signature has it.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        let failed = |_unspecified| KeyError::Randomness;
        match &*self.pair {
            Pair::Curve(_, pair) => {
                let signature = pair.sign(&random, message).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Rsa { pair, .. } => {
                let padding = rsa_padding(self.algorithm).ok_or_else(|| self.mismatch())?;
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }

    fn from_der(der: &[u8], algorithm: Option<SigningAlgorithm>) -> Result<Self, KeyError> {
        let pair = Pair::new(&der::parse(der)?)?;
        let usual = pair.key_type().usual();
        let key = Self {
            algorithm: algorithm.unwrap_or(usual),
            pair: Arc::new(pair),
            stored: Secret::new(STANDARD.encode(der)),
        };
        if key.pair.key_type().algorithms().contains(&key.algorithm) {
            Ok(key)
        } else {
            Err(key.mismatch())
        }
    }

    fn mismatch(&self) -> KeyError {
        KeyError::WrongAlgorithm {
            algorithm: self.algorithm,
            needed: self.algorithm.needs(),
            found: self.pair.key_type().described(),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({}, …)", self.algorithm)
    }
}

impl From<NoRandomness> for KeyError {
    fn from(_none: NoRandomness) -> Self {
        Self::Randomness
    }
}

impl Pair {
    fn new(material: &Material<'_>) -> Result<Self, KeyError> {
        match *material {
            Material::Curve {
                curve,
                private,
                public,
            } => Self::on_curve(curve, private, public),
            Material::Rsa { pkcs1, pss_only } => RsaKeyPair::from_der(pkcs1)
                .map(|pair| Self::Rsa { pair, pss_only })
                .map_err(|error| rejected(&error)),
            Material::Ed25519 { seed, public } => match public {
                Some(public) => Ed25519KeyPair::from_seed_and_public_key(seed, public),
                None => Ed25519KeyPair::from_seed_unchecked(seed),
            }
            .map(Self::Ed25519)
            .map_err(|error| rejected(&error)),
        }
    }

    fn on_curve(curve: Curve, private: &[u8], public: Option<&[u8]>) -> Result<Self, KeyError> {
        let (algorithm, length) = match curve {
            Curve::P256 => (&ECDSA_P256_SHA256_FIXED_SIGNING, 32),
            Curve::P384 => (&ECDSA_P384_SHA384_FIXED_SIGNING, 48),
        };
        let computed;
        let public = match public {
            // Uncompressed, which is the only form that ring takes.
            Some(point) if point.first() == Some(&4) => point,
            Some(_) | None => {
                computed = point::of(curve, private)
                    .ok_or(KeyError::Damaged("its number is too long for its curve"))?;
                &computed
            }
        };
        // Some tools leave out leading zeros, some add one.
        let digits = private.iter().position(|&byte| byte != 0);
        let digits = private
            .get(digits.unwrap_or(private.len())..)
            .unwrap_or_default();
        let zeros = length - digits.len().min(length);
        let mut padded = Zeroizing::new(Vec::with_capacity(length.max(private.len())));
        padded.resize(zeros, 0);
        padded.extend_from_slice(digits);
        EcdsaKeyPair::from_private_key_and_public_key(
            algorithm,
            &padded,
            public,
            &SystemRandom::new(),
        )
        .map(|pair| Self::Curve(curve, pair))
        .map_err(|error| rejected(&error))
    }

    fn key_type(&self) -> KeyType {
        match self {
            Self::Curve(Curve::P256, _) => KeyType::P256,
            Self::Curve(Curve::P384, _) => KeyType::P384,
            Self::Rsa { pss_only: true, .. } => KeyType::RsaPss,
            Self::Rsa {
                pss_only: false, ..
            } => KeyType::Rsa,
            Self::Ed25519(_) => KeyType::Ed25519,
        }
    }
}

impl Curve {
    fn name(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
        }
    }
}

/// ring's word for it in ours, where it tells what to do.
fn rejected(error: &ring::error::KeyRejected) -> KeyError {
    let code = error.to_string();
    KeyError::Rejected(match code.as_str() {
        "TooSmall" => "it is too short, RSA needs at least 2048 bits".to_owned(),
        "TooLarge" => "it is too long, RSA may have at most 4096 bits".to_owned(),
        "InconsistentComponents" => "its parts do not belong together".to_owned(),
        _ => code,
    })
}

fn rsa_padding(algorithm: SigningAlgorithm) -> Option<&'static dyn RsaEncoding> {
    match algorithm {
        SigningAlgorithm::Rs256 => Some(&RSA_PKCS1_SHA256),
        SigningAlgorithm::Rs384 => Some(&RSA_PKCS1_SHA384),
        SigningAlgorithm::Rs512 => Some(&RSA_PKCS1_SHA512),
        SigningAlgorithm::Ps256 => Some(&RSA_PSS_SHA256),
        SigningAlgorithm::Ps384 => Some(&RSA_PSS_SHA384),
        SigningAlgorithm::Ps512 => Some(&RSA_PSS_SHA512),
        SigningAlgorithm::Es256 | SigningAlgorithm::Es384 | SigningAlgorithm::EdDsa => None,
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
