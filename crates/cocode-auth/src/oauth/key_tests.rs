//! Keys as tools write them, against what Node.js says of the same files.

use serde_json::Map;

use super::{KeyError, SigningAlgorithm, SigningKey};
use crate::oauth::jwt;
use crate::oauth::jwt::tests::verified;
use crate::secret::Secret;

const P256: &str = "oO4xqjHQecURh2XvB_z-rexkvBJSDPW1Tclts7yLl_4";
const P384: &str = "ODe1LcJoiY_UowTHhYkAKXPxLhkSLw9oWjuk9R4ycd8";
const RSA: &str = "6C4C5Fv8unBt7UAZ7gJvGee7tPRRKZAwI2WCUurQzxY";

/// One of the keys for tests.
fn pem(name: &str) -> &'static str {
    let mut sections = include_str!("key/test_keys.txt").split("== ");
    sections
        .find_map(|section| section.strip_prefix(name)?.strip_prefix('\n'))
        .unwrap()
}

fn read(name: &str, algorithm: Option<SigningAlgorithm>) -> Result<SigningKey, KeyError> {
    SigningKey::from_pem(&Secret::new(pem(name)), algorithm)
}

/// Whether a server that knows the public half takes what the key signs.
fn signs(key: &SigningKey) -> bool {
    let token = jwt::signed(key, Map::new(), Map::new()).unwrap();
    verified(token.expose(), &key.public_jwk().to_value()).is_some()
}

#[test]
fn every_usual_form_of_a_private_key_is_read() {
    use SigningAlgorithm::{EdDsa, Es256, Es384, Rs256};
    let cases = [
        ("p256", Es256, P256),
        ("p256-nopub", Es256, P256),
        ("p256-sec1", Es256, P256),
        ("p256-sec1-nopub", Es256, P256),
        ("p256-compressed", Es256, P256),
        (
            "p256-ecparam",
            Es256,
            "wYSfU6CqCufYr_A8Reo954n8n6Ufoxa5BdcMj2320m8",
        ),
        (
            "node-p256",
            Es256,
            "ImkBSskVJuqUtV2B6DFN-PD36ZbXZUTvVzx_Ri3tU-g",
        ),
        ("p384", Es384, P384),
        ("p384-nopub", Es384, P384),
        ("ed", EdDsa, "8i2vEMAtlQoJDG3XdRg-6PnKoOLRyY9Gdq-HP882uZY"),
        ("rsa", Rs256, RSA),
        ("rsa1", Rs256, RSA),
    ];
    for (name, algorithm, thumbprint) in cases {
        let key = read(name, None).unwrap();
        assert_eq!(key.algorithm(), algorithm, "{name}");
        assert_eq!(key.public_jwk().thumbprint(), thumbprint, "{name}");
        assert!(signs(&key), "{name}");
    }
    let key = read("rsapss", None).unwrap();
    assert_eq!(key.algorithm(), SigningAlgorithm::Ps256);
    assert!(signs(&key));
}

#[test]
fn an_rsa_key_signs_in_all_six_ways() {
    for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
        let algorithm: SigningAlgorithm = name.parse().unwrap();
        let key = read("rsa", Some(algorithm)).unwrap();
        assert_eq!(key.algorithm().as_str(), name);
        assert!(signs(&key), "{name}");
    }
}

#[test]
fn what_is_no_usable_key_is_told_apart() {
    let (rsa, encrypted) = (pem("rsa"), KeyError::Encrypted);
    let cut = rsa.replace("-----END PRIVATE KEY-----", "");
    let short: String = rsa.lines().take(5).collect::<Vec<_>>().join("\n");
    let short = format!("{short}\n-----END PRIVATE KEY-----\n");
    let garbled = pem("p256").replace("MIGHAgEA", "!!!!!!!!");
    let ssh = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----";
    let mixed = pem("p256-sec1").replace("AwEHoUQDQgAEPESylyBcQ", "AwEHoUQDQgAEPESylyBcR");
    assert_ne!(mixed, pem("p256-sec1"));
    let apart = "its parts do not belong together".to_owned();
    let too_short = "it is too short, RSA needs at least 2048 bits".to_owned();
    let cases = [
        ("", KeyError::NoKey),
        ("hunter2", KeyError::NoKey),
        (pem("p256-enc"), encrypted.clone()),
        (pem("p256-enc-old"), encrypted),
        (pem("pub"), KeyError::Public),
        (ssh, KeyError::OpenSsh),
        (&cut, KeyError::Damaged("its last line is missing")),
        (&short, KeyError::Damaged("its end is missing")),
        (&garbled, KeyError::Damaged("it is not base64")),
        (&mixed, KeyError::Rejected(apart)),
        (pem("rsa1024"), KeyError::Rejected(too_short)),
        (pem("p521"), KeyError::Unsupported("P-521")),
        (pem("k1"), KeyError::Unsupported("secp256k1")),
        (pem("ed448"), KeyError::Unsupported("Ed448")),
        (
            pem("p256-explicit"),
            KeyError::Unsupported("a curve that is described instead of named"),
        ),
    ];
    for (text, expected) in cases {
        let error = SigningKey::from_pem(&Secret::new(text), None).unwrap_err();
        assert_eq!(error, expected, "{text}");
    }
}

#[test]
fn a_key_for_another_algorithm_is_refused_in_words() {
    let cases = [
        (
            "rsa",
            "ES256",
            "ES256 needs a P-256 key, but this is an RSA key",
        ),
        (
            "p256",
            "ES384",
            "ES384 needs a P-384 key, but this is a P-256 key",
        ),
        (
            "p384",
            "RS256",
            "RS256 needs an RSA key that is not for PSS only, but this is a P-384 key",
        ),
        (
            "ed",
            "PS512",
            "PS512 needs an RSA key, but this is an Ed25519 key",
        ),
        (
            "p256",
            "EdDSA",
            "EdDSA needs an Ed25519 key, but this is a P-256 key",
        ),
        (
            "rsapss",
            "RS256",
            "RS256 needs an RSA key that is not for PSS only, but this is an RSA key for PSS only",
        ),
    ];
    for (name, algorithm, expected) in cases {
        let error = read(name, Some(algorithm.parse().unwrap())).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let unknown = "HS256".parse::<SigningAlgorithm>().unwrap_err();
    assert_eq!(unknown, KeyError::UnknownAlgorithm("HS256".to_owned()));
}

#[test]
fn a_key_from_an_environment_variable_may_have_escaped_line_ends() {
    let text = format!("some words before\n{}", pem("p256")).replace('\n', "\\n");
    let key = SigningKey::from_pem(&Secret::new(text), None).unwrap();
    assert_eq!(key.public_jwk().thumbprint(), P256);
}

#[test]
fn leading_zeros_of_the_private_number_may_be_missing() {
    // SEC1 of the number 7 on P-256, in one byte.
    let der = [
        0x30, 0x12, 2, 1, 1, 4, 1, 7, 0xa0, 0x0a, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7,
    ];
    let key = SigningKey::from_der(&der, None).unwrap();
    assert!(signs(&key));
}

#[test]
fn bytes_that_are_no_key_are_refused_at_every_length() {
    let whole = super::pem::private_key(pem("p256")).unwrap();
    for length in 0..whole.len() {
        let error = SigningKey::from_der(&whole[..length], None);
        assert!(error.is_err(), "{length}");
    }
    assert!(SigningKey::from_der(&whole, None).is_ok());
}

#[test]
fn made_keys_survive_the_store_and_others_cannot_be_made() {
    for name in ["ES256", "ES384", "EdDSA"] {
        let key = SigningKey::generate(name.parse().unwrap()).unwrap();
        let again = SigningKey::from_stored(key.stored()).unwrap();
        assert_eq!(again.public_jwk(), key.public_jwk(), "{name}");
        assert_eq!(again.algorithm(), key.algorithm());
        assert!(signs(&again), "{name}");
    }
    assert_eq!(
        SigningKey::generate(SigningAlgorithm::Rs256).unwrap_err(),
        KeyError::NotMade(SigningAlgorithm::Rs256)
    );
}

#[test]
fn the_algorithm_follows_what_the_server_takes() {
    let cases = [
        ("rsa", &["ES256", "RS256"][..], Some("RS256")),
        ("rsa", &["ES256", "PS256"], Some("PS256")),
        ("rsa", &["ES256"], None),
        ("p256", &["PS256", "ES256"], Some("ES256")),
        ("ed", &[], None),
    ];
    for (name, offered, expected) in cases {
        let offered: Vec<String> = offered.iter().map(|&name| name.to_owned()).collect();
        let fitting = read(name, None).unwrap().fitting(&offered);
        let algorithm = fitting.as_ref().map(|key| key.algorithm().as_str());
        assert_eq!(algorithm, expected, "{name} {offered:?}");
        assert!(fitting.is_none_or(|key| signs(&key)));
    }
}

#[test]
fn a_key_cannot_be_printed() {
    let key = read("p256", None).unwrap();
    assert_eq!(format!("{key:?}"), "SigningKey(ES256, …)");
    assert_eq!(format!("{key:#?}"), "SigningKey(ES256, …)");
}
