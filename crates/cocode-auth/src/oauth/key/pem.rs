//! Takes the armor off a private key, and says what was given instead of one.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use super::KeyError;

/// Takes base64 with its padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of the private key in a text that may hold other things beside it.
pub(super) fn private_key(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    // Environment variables and JSON often hold the line ends of a key as `\n`.
    let text = Zeroizing::new(text.replace("\\r", "").replace("\\n", "\n"));
    let mut problem = KeyError::NoKey;
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let Some((label, after)) = after.split_once("-----") else {
            break;
        };
        let Some((body, after)) = after.split_once("-----END ") else {
            return Err(KeyError::Damaged("its last line is missing"));
        };
        rest = after;
        match label {
            "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY" => {
                if body.contains("ENCRYPTED") {
                    return Err(KeyError::Encrypted);
                }
                return decoded(body);
            }
            "ENCRYPTED PRIVATE KEY" => return Err(KeyError::Encrypted),
            "OPENSSH PRIVATE KEY" => return Err(KeyError::OpenSsh),
            "PUBLIC KEY" | "RSA PUBLIC KEY" | "CERTIFICATE" => problem = KeyError::Public,
            // `EC PARAMETERS` stand before the keys that older tools write.
            _other => {}
        }
    }
    Err(problem)
}

/// The bytes of a text in base64 in which white space means nothing.
pub(super) fn decoded(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let dense: Zeroizing<String> =
        Zeroizing::new(text.chars().filter(|c| !c.is_whitespace()).collect());
    LENIENT
        .decode(&*dense)
        .map(Zeroizing::new)
        .map_err(|_error| KeyError::Damaged("it is not base64"))
}
