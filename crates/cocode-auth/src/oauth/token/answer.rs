//! Reads the answers of authorization servers, as they should be and as they are.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::super::dpop::parse_http_date;
use super::super::tokens::{TokenKind, Tokens};
use super::error::{TemporaryTrouble, TokenError, TokenRefusal};
use super::form::Form;
use crate::secret::Secret;

/// No token is longer. A header could not carry it.
const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// Nobody has to believe that a token lives longer: 10 years.
const MAX_LIFE_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;

/// A day. Who asks us to wait longer is not waited for.
const MAX_RETRY_AFTER_SECONDS: u64 = 24 * 60 * 60;

/// The fields of an answer.
pub(crate) type Fields = Map<String, Value>;

/// What was asked, as far as it matters for reading the answer.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(super) url: &'a str,
    pub(super) form: &'a Form,
    pub(super) now: u64,
}

impl Asked<'_> {
    /// The fields of an answer that is no refusal.
    pub(crate) fn read(&self, response: &Response<Bytes>) -> Result<Fields, TokenError> {
        let status = response.status();
        let fields = fields(response);
        if status.is_redirection() {
            let reason = format!(
                "it sends us elsewhere (HTTP {}), where we do not go",
                status.as_u16()
            );
            return Err(self.malformed(reason));
        }
        let error = fields.as_ref().and_then(|fields| self.error_of(fields));
        let is_foreign = fields.is_none();
        if let Some(trouble) = self.trouble(response, error.as_deref(), is_foreign) {
            return Err(trouble.into());
        }
        // Some servers refuse with 200.
        let is_refusal = !status.is_success()
            || (error.is_some() && fields.as_ref().and_then(access_token).is_none());
        if is_refusal {
            let refusal = TokenRefusal {
                url: self.url.to_owned(),
                status: status.as_u16(),
                error: error.unwrap_or_default(),
                description: self.description_of(fields.as_ref(), response),
            };
            return Err(refusal.sorted());
        }
        fields.ok_or_else(|| {
            let kind = content_type(response.headers());
            let kind = if kind.is_empty() {
                "something".to_owned()
            } else {
                self.form.told(&kind)
            };
            self.malformed(format!("{kind} instead of JSON"))
        })
    }

    pub(super) fn malformed(&self, reason: impl Into<String>) -> TokenError {
        TokenError::Malformed {
            url: self.url.to_owned(),
            reason: reason.into(),
        }
    }

    /// Whether the server is only busy or broken. Where it names another reason, that counts. A 401
    /// that is foreign to OAuth comes from somebody who stands before the server, and that can pass.
    fn trouble(
        &self,
        response: &Response<Bytes>,
        error: Option<&str>,
        is_foreign: bool,
    ) -> Option<TemporaryTrouble> {
        let status = response.status();
        let is_temporary = match (status, error) {
            (StatusCode::TOO_MANY_REQUESTS, _)
            | (_, Some("server_error" | "temporarily_unavailable" | "slow_down")) => true,
            (_, Some(_)) => false,
            (status, None) => {
                status.is_server_error()
                    || status == StatusCode::REQUEST_TIMEOUT
                    || status == StatusCode::TOO_EARLY
                    || (status == StatusCode::UNAUTHORIZED && is_foreign)
            }
        };
        is_temporary.then(|| TemporaryTrouble {
            url: self.url.to_owned(),
            reason: match error {
                Some(error) => format!("HTTP {}, {error}", status.as_u16()),
                None => format!("HTTP {}", status.as_u16()),
            },
            retry_after: self.retry_after(response.headers()),
            sent: true,
            source: None,
        })
    }

    fn retry_after(&self, headers: &HeaderMap) -> Option<u64> {
        let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
        let seconds = match text.parse() {
            Ok(seconds) => seconds,
            Err(_no_number) => parse_http_date(text)?.saturating_sub(self.now),
        };
        Some(seconds.min(MAX_RETRY_AFTER_SECONDS))
    }

    /// The code of an error. It should be a text; some send an object that has one.
    fn error_of(&self, fields: &Fields) -> Option<String> {
        let error = match fields.get("error")? {
            Value::String(error) => error,
            Value::Object(error) => ["code", "type", "status"]
                .into_iter()
                .find_map(|name| error.get(name)?.as_str())?,
            _ => return None,
        };
        Some(self.form.told(error)).filter(|error| !error.is_empty())
    }

    fn description_of(
        &self,
        fields: Option<&Fields>,
        response: &Response<Bytes>,
    ) -> Option<String> {
        let described = match fields {
            Some(fields) => ["error_description", "message", "detail"]
                .into_iter()
                .find_map(|name| fields.get(name)?.as_str())
                .or_else(|| fields.get("error")?.get("message")?.as_str())
                .map(|text| self.form.told(text)),
            None if content_type(response.headers()) == "text/plain" => {
                Some(self.form.told(&String::from_utf8_lossy(response.body())))
            }
            None => None,
        };
        described.filter(|text| !text.is_empty())
    }

    /// The tokens of an answer.
    pub(super) fn tokens(&self, fields: &Fields, binding: Binding) -> Result<Tokens, TokenError> {
        let access =
            access_token(fields).ok_or_else(|| self.malformed("there is no access token in it"))?;
        if access.len() > MAX_TOKEN_BYTES {
            return Err(self.malformed("its access token is too long"));
        }
        if !access.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.malformed("its access token has characters that fit into no header"));
        }
        let refresh = fields.get("refresh_token").and_then(Value::as_str);
        let life = fields.get("expires_in").and_then(seconds);
        Ok(Tokens {
            access: Secret::new(access),
            kind: self.kind(fields, binding)?,
            expires_at: life.map(|life| self.now.saturating_add(life)),
            issued_at: self.now,
            refresh: refresh.filter(|token| !token.is_empty()).map(Secret::new),
            scopes: fields.get("scope").and_then(scopes),
        })
    }

    fn kind(&self, fields: &Fields, binding: Binding) -> Result<TokenKind, TokenError> {
        let kind = fields.get("token_type").and_then(Value::as_str);
        let kind = kind.unwrap_or("Bearer");
        match kind.to_ascii_lowercase().as_str() {
            "dpop" if binding == Binding::None => {
                Err(self.malformed("its token is bound to a key, and we showed none"))
            }
            "dpop" => Ok(TokenKind::Dpop),
            // Such tokens are not presented as they are, or not at all.
            "mac" | "pop" | "n_a" => {
                Err(self.malformed(format!("its token is of the type {}", self.form.told(kind))))
            }
            // Some servers invent types (Slack: `user`, `bot`), and mean the usual one.
            _ if binding == Binding::Required => {
                Err(self.malformed("its token is not bound to our key, as it has to be"))
            }
            _ => Ok(TokenKind::Bearer),
        }
    }
}

/// Whether tokens are bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// We showed no key.
    None,
    /// We showed one, and take what we get.
    Offered,
    /// We showed one, and tokens have to be bound to it.
    Required,
}

pub(super) fn access_token(fields: &Fields) -> Option<&str> {
    let token = fields.get("access_token")?.as_str()?;
    (!token.is_empty()).then_some(token)
}

/// JSON, or the form that GitHub's first servers sent and some still do.
fn fields(response: &Response<Bytes>) -> Option<Fields> {
    let body = response.body();
    if let Ok(Value::Object(fields)) = serde_json::from_slice(body) {
        return Some(fields);
    }
    if content_type(response.headers()) != "application/x-www-form-urlencoded" {
        return None;
    }
    let pairs = form_urlencoded::parse(body);
    Some(
        pairs
            .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
            .collect(),
    )
}

/// Without its parameters.
fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// A duration as a number or a text. None at all, if it is not positive: servers that send 0 mean
/// that the token does not end.
fn seconds(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // Conversion saturates, and anything absurd is cut to size.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates"
    )]
    let seconds = number as u64;
    (seconds > 0).then_some(seconds.min(MAX_LIFE_SECONDS))
}

/// Scopes as a text or a list. GitHub puts commas between them.
fn scopes(value: &Value) -> Option<Vec<String>> {
    let scopes: Vec<String> = match value {
        Value::String(text) if text.contains(' ') => text.split(' ').map(str::to_owned).collect(),
        Value::String(text) => text.split(',').map(str::to_owned).collect(),
        Value::Array(values) => values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => return None,
    };
    let scopes: Vec<String> = scopes
        .into_iter()
        .filter(|scope| !scope.is_empty())
        .collect();
    (!scopes.is_empty()).then_some(scopes)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
