//! The ways to sign that we know, by the names of RFC 7518 and RFC 8037.

use std::fmt;
use std::str::FromStr;

use super::KeyError;

/// How something is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// RSA with PKCS#1 v1.5 and SHA-256.
    Rs256,
    /// RSA with PKCS#1 v1.5 and SHA-384.
    Rs384,
    /// RSA with PKCS#1 v1.5 and SHA-512.
    Rs512,
    /// RSA with PSS and SHA-256.
    Ps256,
    /// RSA with PSS and SHA-384.
    Ps384,
    /// RSA with PSS and SHA-512.
    Ps512,
    /// Ed25519.
    EdDsa,
}

/// What kind of key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyType {
    P256,
    P384,
    Rsa,
    /// RSA that says of itself that it is for PSS only.
    RsaPss,
    Ed25519,
}

impl SigningAlgorithm {
    const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
    ];

    /// As the headers of tokens and the metadata of authorization servers call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The key that it needs, in words.
    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Es256 => "a P-256 key",
            Self::Es384 => "a P-384 key",
            Self::Rs256 | Self::Rs384 | Self::Rs512 => "an RSA key that is not for PSS only",
            Self::Ps256 | Self::Ps384 | Self::Ps512 => "an RSA key",
            Self::EdDsa => "an Ed25519 key",
        }
    }
}

impl fmt::Display for SigningAlgorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for SigningAlgorithm {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == text);
        found.ok_or_else(|| KeyError::UnknownAlgorithm(text.chars().take(40).collect()))
    }
}

impl KeyType {
    /// What it can sign by.
    pub(super) fn algorithms(self) -> &'static [SigningAlgorithm] {
        use SigningAlgorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        match self {
            Self::P256 => &[Es256],
            Self::P384 => &[Es384],
            Self::Rsa => &[Rs256, Rs384, Rs512, Ps256, Ps384, Ps512],
            Self::RsaPss => &[Ps256, Ps384, Ps512],
            Self::Ed25519 => &[EdDsa],
        }
    }

    /// What it signs by if nothing is said.
    pub(super) fn usual(self) -> SigningAlgorithm {
        match self {
            Self::P256 => SigningAlgorithm::Es256,
            Self::P384 => SigningAlgorithm::Es384,
            Self::Rsa => SigningAlgorithm::Rs256,
            Self::RsaPss => SigningAlgorithm::Ps256,
            Self::Ed25519 => SigningAlgorithm::EdDsa,
        }
    }

    /// In words.
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::P256 => "a P-256 key",
            Self::P384 => "a P-384 key",
            Self::Rsa => "an RSA key",
            Self::RsaPss => "an RSA key for PSS only",
            Self::Ed25519 => "an Ed25519 key",
        }
    }
}
