//! The proof that whoever redeems an authorization code is the one who asked for it, RFC 7636. Only
//! S256: the plain method would show the verifier to everybody who sees the browser's address.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::random::{NoRandomness, unguessable};
use crate::secret::Secret;

/// How much of the verifier cannot be guessed. In base64url it has the 43 characters that RFC 7636
/// asks for at least.
const VERIFIER_BYTES: usize = 32;

/// A secret, and what may be shown of it beforehand.
#[derive(Clone, Debug)]
pub struct Pkce {
    /// Goes to the token endpoint together with the code.
    pub verifier: Secret,
    /// Goes through the browser.
    pub challenge: String,
}

impl Pkce {
    /// How the challenge is made, as authorization servers call it.
    pub const METHOD: &'static str = "S256";

    /// A new one for one sign-in.
    pub fn generate() -> Result<Self, NoRandomness> {
        unguessable(VERIFIER_BYTES).map(Self::of)
    }

    fn of(verifier: Secret) -> Self {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose()));
        Self {
            verifier,
            challenge,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pkce;
    use crate::secret::Secret;

    #[test]
    fn the_challenge_is_that_of_the_example_in_the_rfc() {
        let pkce = Pkce::of(Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_eq!(
            pkce.challenge,
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }

    #[test]
    fn every_verifier_is_long_enough_and_new() {
        let (one, other) = (Pkce::generate().unwrap(), Pkce::generate().unwrap());
        assert_eq!(one.verifier.expose().len(), 43);
        assert_ne!(one.challenge, other.challenge);
        assert!(!format!("{one:?}").contains(one.verifier.expose()));
    }
}
