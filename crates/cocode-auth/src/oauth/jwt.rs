//! Signed tokens in their compact form, RFC 7515. We make them; nothing here reads those of others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::key::{KeyError, SigningKey};
use crate::secret::Secret;

/// Signs claims. The header gets the name of the algorithm.
pub(crate) fn signed(
    key: &SigningKey,
    mut header: Map<String, Value>,
    claims: Map<String, Value>,
) -> Result<Secret, KeyError> {
    header.insert("alg".to_owned(), key.algorithm().as_str().into());
    let part = |part: Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(part).to_string());
    let mut token = format!("{}.{}", part(header), part(claims));
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(Secret::new(token))
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
pub(super) mod tests;
