//! How a client proves who it is in a request to the authorization server: not at all, by its secret
//! (RFC 6749 section 2.3.1), or by a token that its key signed (RFC 7523).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::client::{Client, ClientAuthentication};
use super::jwt;
use super::key::{KeyError, SigningKey};
use super::random::unguessable;
use super::token::Form;
use crate::secret::Secret;

/// How long a token for one request is good. Clocks differ, and nobody can use it twice.
const ASSERTION_SECONDS: u64 = 5 * 60;

/// How much of the name of such a token cannot be guessed.
const NAME_BYTES: usize = 16;

/// Says what the proof is.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Why a client cannot prove who it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientAuthenticationError {
    /// There is none.
    #[error(
        "the client {client:?} has to prove who it is by {method}, but its secret is not known"
    )]
    NoSecret {
        /// Its name.
        client: String,
        /// How.
        method: &'static str,
    },
    /// There is none.
    #[error(
        "the client {client:?} has to prove who it is by private_key_jwt, but it has no private key"
    )]
    NoKey {
        /// Its name.
        client: String,
    },
    /// It does not sign.
    #[error("the client cannot sign a proof of who it is")]
    Key(#[from] KeyError),
}

/// What one client proves itself with.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientProof<'a> {
    pub(super) client: &'a Client,
    pub(super) key: Option<&'a SigningKey>,
    pub(super) issuer: &'a str,
    pub(super) now: u64,
}

impl<'a> ClientProof<'a> {
    /// Puts the proof into a request. A signed one is made anew each time, as it may be used once.
    pub(super) fn put(
        self,
        form: &mut Form,
        headers: &mut HeaderMap,
    ) -> Result<(), ClientAuthenticationError> {
        let client = self.client;
        match client.authentication {
            ClientAuthentication::None => form.add("client_id", &client.id),
            ClientAuthentication::SecretBasic => {
                headers.insert(header::AUTHORIZATION, self.basic()?);
                form.hide(self.secret()?.clone());
            }
            ClientAuthentication::SecretPost => {
                form.add("client_id", &client.id);
                form.add_secret("client_secret", self.secret()?);
            }
            ClientAuthentication::PrivateKeyJwt => {
                // RFC 7521 makes the id optional here; some servers look it up before they look at
                // the assertion.
                form.add("client_id", &client.id);
                form.add("client_assertion_type", ASSERTION_TYPE);
                form.add_secret("client_assertion", &self.assertion()?);
            }
        }
        Ok(())
    }

    fn secret(self) -> Result<&'a Secret, ClientAuthenticationError> {
        let secret = self.client.secret.as_ref();
        secret.ok_or_else(|| self.no_secret())
    }

    fn no_secret(self) -> ClientAuthenticationError {
        ClientAuthenticationError::NoSecret {
            client: self.client.id.clone(),
            method: self.client.authentication.as_str(),
        }
    }

    fn basic(self) -> Result<HeaderValue, ClientAuthenticationError> {
        let (id, secret) = (&self.client.id, self.secret()?);
        let pair = Zeroizing::new(format!(
            "{}:{}",
            encoded(id),
            Zeroizing::new(encoded(secret.expose())).as_str()
        ));
        let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
        // Base64 always fits into a header.
        let mut value = HeaderValue::from_str(&value).map_err(|_invalid| self.no_secret())?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn assertion(self) -> Result<Secret, ClientAuthenticationError> {
        let id = self.client.id.as_str();
        let key = self
            .key
            .ok_or_else(|| ClientAuthenticationError::NoKey { client: id.into() })?;
        let mut header = Map::new();
        header.insert("typ".to_owned(), "JWT".into());
        let mut claims = Map::new();
        let mut claim = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        claim("iss", id.into());
        claim("sub", id.into());
        // The issuer and not the endpoint: an endpoint can be that of somebody in between, who would
        // be given a proof that is good elsewhere.
        claim("aud", self.issuer.into());
        claim("iat", self.now.into());
        claim("exp", self.now.saturating_add(ASSERTION_SECONDS).into());
        let name = unguessable(NAME_BYTES).map_err(KeyError::from)?;
        claim("jti", name.expose().into());
        Ok(jwt::signed(key, header, claims)?)
    }
}

/// As RFC 6749 wants ids and secrets in the header. A space becomes `%20` instead of `+`, and what
/// needs no escape gets none: servers that decode in either way, or not at all, then agree as far as
/// they can.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'*' => encoded.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            _ => {
                let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value & 15)]);
                encoded.extend(['%', digit(byte >> 4), digit(byte)]);
            }
        }
    }
    encoded
}

#[cfg(test)]
#[path = "client_auth_tests.rs"]
mod tests;
