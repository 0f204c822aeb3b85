//! Access tokens as JWTs: what they say, read before anything of it is believed, and the checks that do
//! not need a key.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use crate::principal::PrincipalName;

/// Bytes of a token that is looked at.
pub(super) const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// Scopes of a token that are looked at.
const MAX_SCOPES: usize = 256;
/// Times after the year 9999 are no times.
const LATEST_SECONDS: f64 = 253_402_300_800.0;

/// Why an access token is not taken. Nothing here holds what the token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// It is too long to be looked at.
    #[error("the token is longer than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// It is something else.
    #[error("the token is no JWT")]
    NotAJwt,
    /// It is a JWT for another purpose.
    #[error("the token is of another type than at+jwt and JWT")]
    WrongType,
    /// Nobody has signed it.
    #[error("the token is not signed")]
    Unsigned,
    /// Its signature is none that is taken.
    #[error("the token is signed with an algorithm that is not allowed here")]
    Algorithm,
    /// It demands what is not known here.
    #[error("the token has critical headers, and none are known here")]
    Critical,
    /// Somebody else has made it.
    #[error("the token is not of an issuer that is trusted here")]
    Issuer,
    /// It is for another place.
    #[error("the token is not for this audience")]
    Audience,
    /// It does not say how long it is good.
    #[error("the token does not say when it expires")]
    NoExpiry,
    /// It was good before.
    #[error("the token has expired")]
    Expired,
    /// It will be good later.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// It says that it was made later than now, or after its own end.
    #[error("the token was issued at a time that cannot be")]
    IssuedInFuture,
    /// It does not say whose it is, or in a way that cannot be a name.
    #[error("the token names nobody whom it could be of")]
    Principal,
    /// It is only good together with a proof, and whoever has stolen it has none.
    #[error("the token is bound to a key, and proofs of keys are not checked here")]
    Bound,
    /// It names a key that the issuer does not have.
    #[error("the token is signed with a key that the issuer does not publish")]
    UnknownKey,
    /// It names a key that is for something else.
    #[error("the token is signed with an algorithm that does not fit the key of the issuer")]
    KeyMismatch,
    /// It names no key, and there are many.
    #[error("the token does not say which key of the issuer it is signed with")]
    NoKeyId,
    /// It was changed, or somebody else has signed it.
    #[error("the signature of the token is wrong")]
    Signature,
}

/// A token as it was read. Nothing of it is true before its signature was checked.
#[derive(Debug)]
pub(super) struct Jwt<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    /// What is signed.
    pub(super) message: &'a str,
    pub(super) signature: Vec<u8>,
    claims: Map<String, Value>,
}

/// What tokens have to say.
#[derive(Clone, Debug)]
pub(super) struct Demands {
    pub(super) audiences: Vec<String>,
    pub(super) principal_claim: String,
    pub(super) leeway: Duration,
}

/// What a token says that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) name: PrincipalName,
    pub(super) scopes: Vec<String>,
    /// When it is not taken any more.
    pub(super) until: SystemTime,
}

/// The headers that matter. Keys and addresses of keys that a token brings along are not among them.
#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    #[serde(default, rename = "crit")]
    critical: IsThere,
}

/// Whether there is a member, whatever it is.
#[derive(Default)]
struct IsThere(bool);

impl<'de> Deserialize<'de> for IsThere {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_whatever| Self(true))
    }
}

impl<'a> Jwt<'a> {
    /// Reads a token, and refuses what is no access token with an allowed signature.
    pub(super) fn parse(token: &'a str, allowed: &[Algorithm]) -> Result<Self, JwtError> {
        let (message, signature) = token.rsplit_once('.').ok_or(JwtError::NotAJwt)?;
        let (header, claims) = message.split_once('.').ok_or(JwtError::NotAJwt)?;
        let decoded = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part);
            bytes.map_err(|_not_base64| JwtError::NotAJwt)
        };
        let header: Header =
            serde_json::from_slice(&decoded(header)?).map_err(|_not_a_header| JwtError::NotAJwt)?;
        if header.alg.eq_ignore_ascii_case("none") {
            return Err(JwtError::Unsigned);
        }
        if header.critical.0 {
            return Err(JwtError::Critical);
        }
        if !header.typ.as_deref().is_none_or(is_access_token) {
            return Err(JwtError::WrongType);
        }
        let algorithm = header.alg.parse().ok();
        let algorithm = algorithm.filter(|algorithm| allowed.contains(algorithm));
        let claims = serde_json::from_slice(&decoded(claims)?);
        Ok(Self {
            algorithm: algorithm.ok_or(JwtError::Algorithm)?,
            key_id: header.kid,
            message,
            signature: decoded(signature)?,
            claims: claims.map_err(|_no_object| JwtError::NotAJwt)?,
        })
    }

    /// Who says that they made it, to the letter.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }

    /// What it says, if that is what is demanded at this time.
    pub(super) fn check(&self, demands: &Demands, now: SystemTime) -> Result<Claims, JwtError> {
        let is_for_us = match self.claims.get("aud") {
            Some(Value::String(audience)) => demands.audiences.contains(audience),
            Some(Value::Array(audiences)) => audiences
                .iter()
                .filter_map(Value::as_str)
                .any(|audience| demands.audiences.iter().any(|ours| ours == audience)),
            _ => false,
        };
        if !is_for_us {
            return Err(JwtError::Audience);
        }
        let expires = self.time("exp")?.ok_or(JwtError::NoExpiry)?;
        let until = expires + demands.leeway;
        if now >= until {
            return Err(JwtError::Expired);
        }
        if self
            .time("nbf")?
            .is_some_and(|from| from > now + demands.leeway)
        {
            return Err(JwtError::NotYetValid);
        }
        let is_odd = |issued: SystemTime| issued > now + demands.leeway || issued > expires;
        if self.time("iat")?.is_some_and(is_odd) {
            return Err(JwtError::IssuedInFuture);
        }
        if self.claims.contains_key("cnf") {
            return Err(JwtError::Bound);
        }
        let name = self.claims.get(&demands.principal_claim);
        let name = name.and_then(Value::as_str).map(str::parse);
        let Some(Ok(name)) = name else {
            return Err(JwtError::Principal);
        };
        let scopes = self.scopes();
        Ok(Claims {
            name,
            scopes,
            until,
        })
    }

    /// A time, in seconds since 1970.
    fn time(&self, claim: &str) -> Result<Option<SystemTime>, JwtError> {
        let Some(value) = self.claims.get(claim) else {
            return Ok(None);
        };
        let seconds = value
            .as_f64()
            .filter(|seconds| (0.0..LATEST_SECONDS).contains(seconds));
        let seconds = seconds.ok_or(JwtError::NotAJwt)?;
        Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds)))
    }

    /// Scopes, as RFC 9068 writes them (`scope`, a text), or as some issuers do (`scp`, or a list).
    fn scopes(&self) -> Vec<String> {
        let mut scopes = Vec::new();
        for claim in ["scope", "scp"] {
            match self.claims.get(claim) {
                Some(Value::String(text)) => {
                    scopes.extend(text.split_ascii_whitespace().map(str::to_owned));
                }
                Some(Value::Array(list)) => {
                    scopes.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
        }
        scopes.truncate(MAX_SCOPES);
        scopes.sort();
        scopes.dedup();
        scopes
    }
}

/// Whether this is the type of an access token. A JWT may leave it out, and then it is just that.
fn is_access_token(typ: &str) -> bool {
    let lower = typ.to_ascii_lowercase();
    let short = lower.strip_prefix("application/").unwrap_or(&lower);
    matches!(short, "at+jwt" | "jwt")
}
