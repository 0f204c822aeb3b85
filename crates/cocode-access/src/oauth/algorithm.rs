//! The signatures that access tokens may have: asymmetric ones only.

use std::fmt;
use std::str::FromStr;

/// How an access token may be signed. There are no others on purpose: with `none` nobody has signed, and
/// with `HS256` and its like everybody who can check a token can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// RSA with PKCS #1 and SHA-256.
    Rs256,
    /// RSA with PKCS #1 and SHA-384.
    Rs384,
    /// RSA with PKCS #1 and SHA-512.
    Rs512,
    /// RSA with PSS and SHA-256.
    Ps256,
    /// RSA with PSS and SHA-384.
    Ps384,
    /// RSA with PSS and SHA-512.
    Ps512,
    /// The curve P-256 with SHA-256.
    Es256,
    /// The curve P-384 with SHA-384.
    Es384,
    /// The curve Ed25519.
    EdDsa,
}

/// What kind of key a signature is made with. A token never chooses this: its algorithm has to fit the
/// key that the issuer published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// This is no signature that is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is not a signature that is taken: use RS256, RS384, RS512, PS256, PS384, PS512, ES256, \
     ES384 or EdDSA"
)]
pub struct UnknownAlgorithm {
    given: String,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Its name in tokens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The kind of key that it needs.
    pub(super) const fn key_kind(self) -> KeyKind {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => {
                KeyKind::Rsa
            }
            Self::Es256 => KeyKind::P256,
            Self::Es384 => KeyKind::P384,
            Self::EdDsa => KeyKind::Ed25519,
        }
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        // RFC 9864 calls the one curve that is in use by its own name.
        if text == "Ed25519" {
            return Ok(Self::EdDsa);
        }
        let found = Self::ALL.into_iter().find(|known| known.as_str() == text);
        found.ok_or_else(|| UnknownAlgorithm {
            given: text.chars().take(20).collect(),
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
