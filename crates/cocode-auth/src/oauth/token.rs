//! Asks an authorization server for tokens, by all the grants that we know.
//!
//! What is sent here is often good for one use: a code, or a refresh token that the server replaces.
//! If an exchange breaks after the request may have arrived, nobody knows whether it was used, and a
//! server that sees it twice may take it for stolen and revoke everything. So a request is only
//! repeated if no connection was made, or if the server itself refused it for the proof that came
//! along with it, before it looked at the grant.

mod answer;
mod error;
mod form;
#[cfg(test)]
pub(super) mod test_server;

use std::fmt;

use bytes::Bytes;
use cocode_wire::{FetchError, LinkError, RequestLine};
use http::{HeaderMap, HeaderValue, Method, Response};
use url::Url;

use super::client::Client;
use super::client_auth::ClientProof;
use super::dpop::{Dpop, DpopPeer};
use super::http::{Http, HttpError, shown};
use super::key::SigningKey;
use super::tokens::Tokens;
use crate::secret::Secret;

use self::answer::{Asked, Binding, Fields, access_token};

pub use self::error::{TemporaryTrouble, TokenError, TokenRefusal};
pub(super) use self::form::Form;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Where tokens come from, and who asks for them.
#[derive(Clone, Copy)]
pub struct TokenEndpoint<'a> {
    /// Speaks to it.
    pub http: &'a Http,
    /// Where it is.
    pub url: &'a Url,
    /// The name of the authorization server.
    pub issuer: &'a str,
    /// Who we are there.
    pub client: &'a Client,
    /// What the client signs with, if it proves itself by `private_key_jwt`.
    pub key: Option<&'a SigningKey>,
    /// Binds the tokens to a key.
    pub dpop: Option<&'a Dpop>,
    /// What to do if the server binds them to none all the same.
    pub unbound: Unbound,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// What becomes of tokens that are bound to no key although we showed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Unbound {
    /// They are not used.
    #[default]
    Refused,
    /// They are used like others.
    Accepted,
}

/// How an identity provider is asked to vouch for the user at another authorization server.
#[derive(Clone, Copy, Debug)]
pub struct IdentityExchange<'a> {
    /// What the identity provider gave when the user signed in there.
    pub id_token: &'a Secret,
    /// The issuer of the authorization server that the MCP server trusts.
    pub audience: &'a str,
    /// The MCP server.
    pub resource: &'a str,
    /// What is asked for there.
    pub scopes: &'a [String],
}

impl TokenEndpoint<'_> {
    /// Redeems an authorization code. What it allows was settled when it was given.
    pub async fn exchange_code(
        &self,
        code: &Secret,
        verifier: &Secret,
        redirect_uri: &str,
        resource: Option<&str>,
    ) -> Result<Tokens, TokenError> {
        let mut form = Form::of_grant("authorization_code");
        form.add_secret("code", code);
        form.add("redirect_uri", redirect_uri);
        form.add_secret("code_verifier", verifier);
        form.add_target(resource, &[]);
        self.tokens(&form).await
    }

    /// Gets the next tokens. The refresh token stays the old one if the answer has none. Without
    /// scopes the new token allows what the old one did.
    pub async fn refresh(
        &self,
        refresh: &Secret,
        resource: Option<&str>,
        scopes: &[String],
    ) -> Result<Tokens, TokenError> {
        let mut form = Form::of_grant("refresh_token");
        form.add_secret("refresh_token", refresh);
        form.add_target(resource, scopes);
        let mut tokens = self.tokens(&form).await?;
        tokens.refresh.get_or_insert_with(|| refresh.clone());
        Ok(tokens)
    }

    /// Asks in the client's own name.
    pub async fn client_credentials(
        &self,
        resource: Option<&str>,
        scopes: &[String],
    ) -> Result<Tokens, TokenError> {
        let mut form = Form::of_grant("client_credentials");
        form.add_target(resource, scopes);
        self.tokens(&form).await
    }

    /// Asks with a token that somebody signed whom the server trusts, RFC 7523.
    pub async fn jwt_bearer(
        &self,
        assertion: &Secret,
        resource: Option<&str>,
        scopes: &[String],
    ) -> Result<Tokens, TokenError> {
        let mut form = Form::of_grant(JWT_BEARER);
        form.add_secret("assertion", assertion);
        form.add_target(resource, scopes);
        self.tokens(&form).await
    }

    /// Asks an identity provider for what [`TokenEndpoint::jwt_bearer`] takes at another
    /// authorization server, RFC 8693.
    pub async fn exchange_id_token(
        &self,
        exchange: IdentityExchange<'_>,
    ) -> Result<Secret, TokenError> {
        let mut form = Form::of_grant(TOKEN_EXCHANGE);
        form.add("requested_token_type", ID_JAG);
        form.add("audience", exchange.audience);
        form.add_target(Some(exchange.resource), exchange.scopes);
        form.add_secret("subject_token", exchange.id_token);
        form.add("subject_token_type", ID_TOKEN);
        let (fields, sent) = self.ask(&form).await?;
        let url = shown(self.url);
        let asked = self.asked(&url, &sent);
        let issued = fields
            .get("issued_token_type")
            .and_then(|kind| kind.as_str());
        if issued != Some(ID_JAG) {
            return Err(asked.malformed(match issued {
                Some(kind) => format!("it vouches by {}, not by an ID-JAG", sent.told(kind)),
                None => "it does not say that it is an ID-JAG".to_owned(),
            }));
        }
        // The name of the field is historical. This is no access token.
        access_token(&fields)
            .map(Secret::new)
            .ok_or_else(|| asked.malformed("there is no ID-JAG in it"))
    }

    async fn tokens(&self, form: &Form) -> Result<Tokens, TokenError> {
        let (fields, sent) = self.ask(form).await?;
        let binding = match (self.dpop, self.unbound) {
            (None, _) => Binding::None,
            (Some(_), Unbound::Accepted) => Binding::Offered,
            (Some(_), Unbound::Refused) => Binding::Required,
        };
        self.asked(&shown(self.url), &sent).tokens(&fields, binding)
    }

    /// Sends a request, and once more if only its proof was wrong. Gives back what was sent beside the
    /// answer to it.
    async fn ask(&self, form: &Form) -> Result<(Fields, Form), TokenError> {
        let url = shown(self.url);
        let (mut is_nonce_new, mut is_clock_new) = (true, true);
        loop {
            let (response, sent) = self.send(self.url, form).await?;
            let peer = DpopPeer::AuthorizationServer;
            let has_nonce = self
                .dpop
                .is_some_and(|dpop| dpop.heard(peer, self.url, response.headers()));
            let error = match self.asked(&url, &sent).read(&response) {
                Ok(fields) => return Ok((fields, sent)),
                Err(error) => error,
            };
            let code = error.refusal().map(|refusal| refusal.error.as_str());
            let once_more = match (self.dpop, code) {
                (Some(_), Some("use_dpop_nonce")) => std::mem::take(&mut is_nonce_new) && has_nonce,
                (Some(dpop), Some("invalid_dpop_proof")) => {
                    std::mem::take(&mut is_clock_new)
                        && dpop.set_clock(peer, self.url, response.headers(), self.now)
                }
                _ => false,
            };
            if !once_more {
                return Err(error);
            }
        }
    }

    /// Sends a request with everything that proves who we are, and gives that back too. If there is
    /// no connection nothing was used up, so there is a second attempt.
    pub(super) async fn send(
        &self,
        url: &Url,
        form: &Form,
    ) -> Result<(Response<Bytes>, Form), TokenError> {
        let outcome = match self.send_once(url, form.clone()).await? {
            Err(error) if !may_have_arrived(&error) => self.send_once(url, form.clone()).await?,
            outcome => outcome,
        };
        outcome.map_err(|error| failed(&shown(url), error))
    }

    async fn send_once(
        &self,
        url: &Url,
        mut form: Form,
    ) -> Result<Result<(Response<Bytes>, Form), HttpError>, TokenError> {
        let mut headers = HeaderMap::new();
        let proof = ClientProof {
            client: self.client,
            key: self.key,
            issuer: self.issuer,
            now: self.now,
        };
        proof.put(&mut form, &mut headers)?;
        if let Some(dpop) = self.dpop {
            let request = RequestLine {
                method: &Method::POST,
                url,
            };
            let proof = dpop.proof(request, None, self.now);
            let proof = proof.map_err(TokenError::Proof)?;
            form.hide(Secret::new(String::from_utf8_lossy(proof.as_bytes())));
            headers.insert(Dpop::HEADER, proof);
        }
        let answered = self.http.post(url, headers, FORM, form.body()).await;
        Ok(answered.map(|response| (response, form)))
    }

    pub(super) fn asked<'b>(&self, url: &'b str, form: &'b Form) -> Asked<'b> {
        Asked {
            url,
            form,
            now: self.now,
        }
    }
}

impl fmt::Debug for TokenEndpoint<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TokenEndpoint")
            .field("url", &shown(self.url))
            .field("issuer", &self.issuer)
            .field("client", &self.client.id)
            .finish_non_exhaustive()
    }
}

fn may_have_arrived(error: &HttpError) -> bool {
    !matches!(
        error,
        HttpError::Failed {
            source: FetchError::Link(LinkError::Unreachable { .. }),
            ..
        }
    )
}

fn failed(url: &str, error: HttpError) -> TokenError {
    let reason = match &error {
        HttpError::Refused(_)
        | HttpError::Failed {
            source: FetchError::Address | FetchError::Setup(_),
            ..
        } => return TokenError::Address(error),
        HttpError::Failed {
            source: FetchError::Link(LinkError::AnswerTooLarge { .. }),
            ..
        } => {
            return TokenError::Malformed {
                url: url.to_owned(),
                reason: "it is too long".to_owned(),
            };
        }
        HttpError::Failed { .. } if !may_have_arrived(&error) => "no connection could be made",
        HttpError::Failed { .. } => "the exchange broke",
        HttpError::TimedOut { .. } => "no answer came in time",
    };
    let sent = may_have_arrived(&error);
    TokenError::Temporary(TemporaryTrouble {
        url: url.to_owned(),
        reason: reason.to_owned(),
        retry_after: None,
        sent,
        source: Some(error),
    })
}

#[cfg(test)]
#[path = "token_tests.rs"]
pub(super) mod tests;
