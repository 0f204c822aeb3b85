//! The public half of a key as JSON, RFC 7517, and the name that follows from it, RFC 7638.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A public key. Has exactly the members that RFC 7638 names, in its order, so that the thumbprint
/// is the hash of what this serializes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PublicJwk(BTreeMap<&'static str, String>);

impl PublicJwk {
    /// An elliptic curve point, uncompressed.
    pub(super) fn of_point(curve: &str, point: &[u8]) -> Self {
        let coordinates = point.get(1..).unwrap_or_default();
        let (x, y) = coordinates.split_at(coordinates.len() / 2);
        Self(BTreeMap::from([
            ("kty", "EC".to_owned()),
            ("crv", curve.to_owned()),
            ("x", encoded(x)),
            ("y", encoded(y)),
        ]))
    }

    /// Big-endian numbers without leading zeros.
    pub(super) fn of_rsa(modulus: &[u8], exponent: &[u8]) -> Self {
        Self(BTreeMap::from([
            ("kty", "RSA".to_owned()),
            ("n", encoded(modulus)),
            ("e", encoded(exponent)),
        ]))
    }

    pub(super) fn of_ed25519(public: &[u8]) -> Self {
        Self(BTreeMap::from([
            ("kty", "OKP".to_owned()),
            ("crv", "Ed25519".to_owned()),
            ("x", encoded(public)),
        ]))
    }

    /// The name that follows from the key, with SHA-256 and in base64url.
    pub fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.to_value().to_string()))
    }

    /// As it stands in headers.
    pub(crate) fn to_value(&self) -> serde_json::Value {
        // Inserted in the order of the map: sorted, whichever map is behind it.
        let members = self.0.iter();
        members
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::PublicJwk;

    #[test]
    fn the_thumbprint_is_that_of_the_example_in_rfc_7638() {
        let modulus = concat!(
            "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_",
            "BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0",
            "_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWh",
            "AI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        );
        let modulus = URL_SAFE_NO_PAD.decode(modulus).unwrap();
        assert_eq!(
            PublicJwk::of_rsa(&modulus, &[1, 0, 1]).thumbprint(),
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
        );
    }

    #[test]
    fn the_thumbprint_is_that_of_the_example_in_rfc_8037() {
        let public = URL_SAFE_NO_PAD
            .decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
            .unwrap();
        assert_eq!(
            PublicJwk::of_ed25519(&public).thumbprint(),
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        );
    }
}
