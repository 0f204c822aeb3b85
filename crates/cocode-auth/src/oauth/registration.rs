//! Becoming a client of an authorization server: by what the user registered, by a document that
//! describes us, or by registering ourselves (RFC 7591), and leaving again (RFC 7592).

mod answer;
mod document;
mod error;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};
use url::{Host, Url};

use answer::{Answer, Refusal};
pub use document::{InvalidMetadataUrl, check_metadata_url, client_metadata_document};
pub use error::RegistrationError;

use super::authorize::untrusted;
use super::client::{Client, ClientAuthentication, ClientKind};
use super::http::{Http, shown};
use super::metadata::AuthorizationServer;
use crate::secret::Secret;

/// Who registers, whatever its version and wherever it runs, as RFC 7591 wants it named.
const SOFTWARE_ID: &str = "cocode";

/// How we would like to become a client.
#[derive(Clone, Debug)]
pub struct RegistrationWish {
    /// By which way, where the user has not registered one.
    pub mode: RegistrationMode,
    /// The client that the user registered with this authorization server.
    pub preregistered: Option<Client>,
    /// Where the document that describes us is.
    pub metadata_url: Option<Url>,
    /// Where the browser is to come back.
    pub redirect_uri: String,
    /// What we will ask for.
    pub scopes: Option<Vec<String>>,
    /// What users see.
    pub client_name: String,
}

/// Which ways to become a client may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RegistrationMode {
    /// Whatever the authorization server offers, a document first.
    #[default]
    Auto,
    /// Only by the document that describes us.
    Cimd,
    /// Only by registering.
    Dcr,
}

/// Becomes a client: the one that the user registered, the one of an earlier registration with this
/// authorization server if it is still good for this callback, the one of a document, or a new one.
/// The callback to use is the first of the client.
pub async fn register(
    http: &Http,
    server: &AuthorizationServer,
    wish: &RegistrationWish,
    kept: Option<&Client>,
    now: u64,
) -> Result<Client, RegistrationError> {
    if let Some(client) = &wish.preregistered {
        return Ok(preregistered(server, client, wish));
    }
    if let Some(client) = kept.filter(|client| is_still_good(client, wish, now)) {
        return Ok(client.clone());
    }
    let offered = server.client_id_metadata_document_supported;
    match (wish.mode, &wish.metadata_url) {
        (RegistrationMode::Cimd, None) => Err(RegistrationError::NoMetadataUrl),
        (RegistrationMode::Cimd, Some(_)) if !offered => {
            let issuer = untrusted(&server.issuer);
            Err(RegistrationError::NoMetadataDocuments { issuer })
        }
        (RegistrationMode::Cimd | RegistrationMode::Auto, Some(url)) if offered => {
            described(url, wish)
        }
        (_, _) => dynamic(http, server, wish).await,
    }
}

/// Gives a registration back, if we know how. Says whether there was one to give back.
pub async fn unregister(http: &Http, client: &Client) -> Result<bool, RegistrationError> {
    let (Some(address), Some(token)) =
        (&client.registration_uri, &client.registration_access_token)
    else {
        return Ok(false);
    };
    let bad = |url: &str, reason: &str| RegistrationError::BadAnswer {
        url: url.to_owned(),
        reason: reason.to_owned(),
    };
    let url = Url::parse(address).map_err(|_error| {
        bad(
            &untrusted(address),
            "it has no usable `registration_client_uri`",
        )
    })?;
    let shown = shown(&url);
    let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
    let mut value =
        value.map_err(|_error| bad(&shown, "its `registration_access_token` fits in no header"))?;
    value.set_sensitive(true);
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
    let answer = http.delete(&url, headers).await?;
    match answer.status().as_u16() {
        200 | 204 => Ok(true),
        // It is gone, and with it its token.
        401 | 404 | 410 => Ok(false),
        status => Err(RegistrationError::Refused {
            url: shown,
            status,
            details: Refusal::read(answer.body()).told(),
        }),
    }
}

/// Whether an earlier client can be used again.
fn is_still_good(client: &Client, wish: &RegistrationWish, now: u64) -> bool {
    let fits = match (client.kind, wish.mode) {
        (ClientKind::Dynamic, RegistrationMode::Auto | RegistrationMode::Dcr) => true,
        (ClientKind::MetadataDocument, RegistrationMode::Auto | RegistrationMode::Cimd) => {
            let url = wish.metadata_url.as_ref().map(Url::as_str);
            url == Some(client.id.as_str())
        }
        (ClientKind::Preregistered, _)
        | (ClientKind::Dynamic, RegistrationMode::Cimd)
        | (ClientKind::MetadataDocument, RegistrationMode::Dcr) => false,
    };
    let expires = client.secret.as_ref().and(client.secret_expires_at);
    let comes_back = |uri: &String| {
        *uri == wish.redirect_uri || Some(uri) == by_name(&wish.redirect_uri).as_ref()
    };
    fits && expires.is_none_or(|end| end > now)
        && client.redirect_uris.first().is_some_and(comes_back)
}

fn preregistered(server: &AuthorizationServer, client: &Client, wish: &RegistrationWish) -> Client {
    let mut client = client.clone();
    client.kind = ClientKind::Preregistered;
    client.redirect_uris = vec![wish.redirect_uri.clone()];
    let secret = client.secret.is_some();
    client.authentication = match client.authentication {
        ClientAuthentication::PrivateKeyJwt => ClientAuthentication::PrivateKeyJwt,
        _ if !secret => ClientAuthentication::None,
        chosen @ (ClientAuthentication::SecretBasic | ClientAuthentication::SecretPost)
            if server.accepts(chosen) =>
        {
            chosen
        }
        _ => server.way_to_show_a_secret(),
    };
    client
}

fn described(url: &Url, wish: &RegistrationWish) -> Result<Client, RegistrationError> {
    check_metadata_url(url)?;
    Ok(Client {
        id: url.as_str().to_owned(),
        secret: None,
        authentication: ClientAuthentication::None,
        kind: ClientKind::MetadataDocument,
        redirect_uris: vec![wish.redirect_uri.clone()],
        secret_expires_at: None,
        registration_access_token: None,
        registration_uri: None,
    })
}

/// Registers us. A callback by its number that is refused is tried by its name once: some
/// authorization servers know this machine only as `localhost`.
async fn dynamic(
    http: &Http,
    server: &AuthorizationServer,
    wish: &RegistrationWish,
) -> Result<Client, RegistrationError> {
    let issuer = || untrusted(&server.issuer);
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(RegistrationError::NotOffered { issuer: issuer() });
    };
    let Some(method) = server.way_for_a_new_client() else {
        let methods = server
            .token_endpoint_auth_methods_supported
            .iter()
            .flatten();
        return Err(RegistrationError::Authentication {
            issuer: issuer(),
            methods: methods.map(|method| untrusted(method)).collect(),
        });
    };
    let mut request = Request {
        endpoint,
        server,
        wish,
        method,
        redirect_uri: wish.redirect_uri.clone(),
    };
    match (request.send(http).await, by_name(&wish.redirect_uri)) {
        (Err(RegistrationError::RedirectRefused { .. }), Some(by_name)) => {
            request.redirect_uri = by_name;
            request.send(http).await
        }
        (answer, _) => answer,
    }
}

/// One attempt to register.
struct Request<'a> {
    endpoint: &'a Url,
    server: &'a AuthorizationServer,
    wish: &'a RegistrationWish,
    method: ClientAuthentication,
    redirect_uri: String,
}

impl Request<'_> {
    async fn send(&self, http: &Http) -> Result<Client, RegistrationError> {
        let body = Bytes::from(self.body().to_string());
        let json = HeaderValue::from_static("application/json");
        let posted = http.post(self.endpoint, HeaderMap::new(), json, body);
        let answer = posted.await?;
        match answer.status().as_u16() {
            200 | 201 => self.client(answer.body()),
            status => Err(self.refused(status, &Refusal::read(answer.body()))),
        }
    }

    fn body(&self) -> Value {
        let mut body = json!({
            "client_name": self.wish.client_name,
            "redirect_uris": [self.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": self.method.as_str(),
            "application_type": application_type(&self.redirect_uri),
            "software_id": SOFTWARE_ID,
            "software_version": env!("CARGO_PKG_VERSION"),
        });
        let scopes = self.wish.scopes.as_deref().unwrap_or_default();
        if !scopes.is_empty() {
            body["scope"] = scopes.join(" ").into();
        }
        body
    }

    /// What the server made of the request counts, not what was asked for.
    fn client(&self, body: &[u8]) -> Result<Client, RegistrationError> {
        let bad = |reason: &str| RegistrationError::BadAnswer {
            url: shown(self.endpoint),
            reason: reason.to_owned(),
        };
        // What serde says could quote the secret.
        let answer: Answer =
            serde_json::from_slice(body).map_err(|_error| bad("it has no `client_id`"))?;
        if answer.client_id.is_empty() {
            return Err(bad("its `client_id` is empty"));
        }
        let secret = answer.client_secret.filter(|secret| !secret.is_empty());
        let authentication = match (answer.token_endpoint_auth_method.as_deref(), &secret) {
            (_, None) => ClientAuthentication::None,
            (None, Some(_)) if self.server.accepts_only_public() => ClientAuthentication::None,
            (None, Some(_)) => self.server.way_to_show_a_secret(),
            (Some(method), Some(_)) => match ClientAuthentication::parse(method) {
                Some(ClientAuthentication::PrivateKeyJwt) | None => {
                    let methods = vec![untrusted(method)];
                    let issuer = untrusted(&self.server.issuer);
                    return Err(RegistrationError::Authentication { issuer, methods });
                }
                Some(method) => method,
            },
        };
        Ok(Client {
            id: answer.client_id,
            secret: secret.map(Secret::new),
            authentication,
            kind: ClientKind::Dynamic,
            redirect_uris: vec![self.redirect_uri.clone()],
            secret_expires_at: answer.client_secret_expires_at.filter(|&end| end != 0),
            registration_access_token: answer.registration_access_token.map(Secret::new),
            registration_uri: answer.registration_client_uri,
        })
    }

    fn refused(&self, status: u16, refusal: &Refusal) -> RegistrationError {
        let url = shown(self.endpoint);
        let details = refusal.told();
        match status {
            _ if refusal.is_about_the_callback() => RegistrationError::RedirectRefused {
                redirect_uri: self.redirect_uri.clone(),
                details,
            },
            401 | 403 => RegistrationError::Closed {
                url,
                status,
                details,
            },
            // Nobody said that it is there.
            404 | 405 | 501 if self.server.assumed => RegistrationError::NotOffered {
                issuer: untrusted(&self.server.issuer),
            },
            408 | 429 | 500 | 502..=599 => RegistrationError::Unavailable { url, status },
            _ => RegistrationError::Refused {
                url,
                status,
                details,
            },
        }
    }
}

impl AuthorizationServer {
    /// Whether a client may prove so who it is. If nothing is said, by its secret in a header: RFC 8414.
    fn accepts(&self, method: ClientAuthentication) -> bool {
        match &self.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|listed| listed == method.as_str()),
            None => method == ClientAuthentication::SecretBasic,
        }
    }

    fn accepts_only_public(&self) -> bool {
        let secret = [
            ClientAuthentication::SecretBasic,
            ClientAuthentication::SecretPost,
        ];
        self.accepts(ClientAuthentication::None) && !secret.into_iter().any(|way| self.accepts(way))
    }

    fn way_to_show_a_secret(&self) -> ClientAuthentication {
        let basic = self.accepts(ClientAuthentication::SecretBasic);
        if !basic && self.accepts(ClientAuthentication::SecretPost) {
            ClientAuthentication::SecretPost
        } else {
            ClientAuthentication::SecretBasic
        }
    }

    /// What to register for: a program on somebody's machine keeps no secret, so best none.
    fn way_for_a_new_client(&self) -> Option<ClientAuthentication> {
        if self.token_endpoint_auth_methods_supported.is_none() {
            return Some(ClientAuthentication::None);
        }
        let ways = [
            ClientAuthentication::None,
            ClientAuthentication::SecretBasic,
            ClientAuthentication::SecretPost,
        ];
        ways.into_iter().find(|&way| self.accepts(way))
    }
}

/// `native` for what comes back to this machine, as `OpenID` Connect calls it.
fn application_type(redirect_uri: &str) -> &'static str {
    let Ok(url) = Url::parse(redirect_uri) else {
        return "native";
    };
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    };
    if local || !matches!(url.scheme(), "http" | "https") {
        "native"
    } else {
        "web"
    }
}

/// The same callback by the name of this machine, if it is there by a number.
fn by_name(redirect_uri: &str) -> Option<String> {
    let mut url = Url::parse(redirect_uri).ok()?;
    let loopback = match url.host()? {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(_) => false,
    };
    if !loopback {
        return None;
    }
    url.set_host(Some("localhost")).ok()?;
    Some(url.into())
}

#[cfg(test)]
#[path = "registration_tests.rs"]
mod tests;
