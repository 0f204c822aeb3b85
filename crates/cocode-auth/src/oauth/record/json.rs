//! How a record is written: JSON that only this crate reads. A field that is not known is passed
//! over and is gone with the next write; whatever must not be lost that way gets a new version.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Grant, Record};
use crate::oauth::client::{Client, ClientAuthentication, ClientKind};
use crate::oauth::tokens::{TokenKind, Tokens};
use crate::secret::Secret;

const VERSION: u64 = 1;

/// Why a text is no record. What the parser says is left out, because it quotes values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::oauth) enum RecordError {
    /// A later version of the program wrote it.
    #[error("version {0} is not known here")]
    NewerVersion(u64),
    /// It is no JSON, or not the JSON that is written here.
    #[error("reading stopped at column {column}")]
    Malformed {
        /// Where.
        column: usize,
    },
}

impl Record {
    pub(in crate::oauth) fn parse(text: &str) -> Result<Self, RecordError> {
        let malformed = |error: serde_json::Error| RecordError::Malformed {
            column: error.column(),
        };
        // The version first: what else a newer text holds may look different.
        let JsonVersion { version } = serde_json::from_str(text).map_err(malformed)?;
        if version > VERSION {
            return Err(RecordError::NewerVersion(version));
        }
        let json: JsonRecord = serde_json::from_str(text).map_err(malformed)?;
        Ok(json.into())
    }

    pub(in crate::oauth) fn to_text(&self) -> Result<Secret, serde_json::Error> {
        serde_json::to_string(&JsonRecord::from(self)).map(Secret::new)
    }
}

#[derive(Deserialize)]
struct JsonVersion {
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct JsonRecord {
    version: u64,
    url: String,
    revision: u64,
    issuer: Option<String>,
    grants: BTreeMap<String, JsonGrant>,
}

#[derive(Serialize, Deserialize)]
struct JsonGrant {
    client: JsonClient,
    tokens: Option<JsonTokens>,
    resource: Option<String>,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    dpop_key: Option<Hidden>,
    #[serde(default)]
    requested_scopes: Vec<String>,
    #[serde(default)]
    wanted_scopes: Vec<String>,
    signed_in_at: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct JsonClient {
    id: String,
    secret: Option<Hidden>,
    #[serde(with = "authentication")]
    authentication: ClientAuthentication,
    #[serde(with = "JsonClientKind")]
    kind: ClientKind,
    #[serde(default)]
    redirect_uris: Vec<String>,
    secret_expires_at: Option<u64>,
    registration_access_token: Option<Hidden>,
    registration_uri: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct JsonTokens {
    access: Hidden,
    #[serde(with = "JsonTokenKind")]
    kind: TokenKind,
    expires_at: Option<u64>,
    issued_at: u64,
    refresh: Option<Hidden>,
    scopes: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ClientKind", rename_all = "snake_case")]
enum JsonClientKind {
    Preregistered,
    MetadataDocument,
    Dynamic,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TokenKind", rename_all = "snake_case")]
enum JsonTokenKind {
    Bearer,
    Dpop,
}

/// A secret on its way into the store, which is the one place where it may be written.
struct Hidden(Secret);

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Secret::new(text)))
    }
}

/// The words of the metadata of authorization servers.
mod authentication {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::oauth::client::ClientAuthentication;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    pub(super) fn serialize<S: Serializer>(
        method: &ClientAuthentication,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(method.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ClientAuthentication, D::Error> {
        let text = String::deserialize(deserializer)?;
        ClientAuthentication::parse(&text)
            .ok_or_else(|| D::Error::custom("no way to prove who a client is"))
    }
}

fn hidden(secret: Option<&Secret>) -> Option<Hidden> {
    secret.cloned().map(Hidden)
}

fn revealed(hidden: Option<Hidden>) -> Option<Secret> {
    hidden.map(|Hidden(secret)| secret)
}

impl From<&Record> for JsonRecord {
    fn from(record: &Record) -> Self {
        let Record {
            url,
            issuer,
            grants,
            revision,
        } = record;
        Self {
            version: VERSION,
            url: url.clone(),
            revision: *revision,
            issuer: issuer.clone(),
            grants: grants
                .iter()
                .map(|(issuer, grant)| (issuer.clone(), grant.into()))
                .collect(),
        }
    }
}

impl From<JsonRecord> for Record {
    fn from(json: JsonRecord) -> Self {
        let JsonRecord {
            version: _,
            url,
            revision,
            issuer,
            grants,
        } = json;
        Self {
            url,
            issuer,
            grants: grants
                .into_iter()
                .map(|(issuer, grant)| (issuer, grant.into()))
                .collect(),
            revision,
        }
    }
}

impl From<&Grant> for JsonGrant {
    fn from(grant: &Grant) -> Self {
        let Grant {
            client,
            tokens,
            resource,
            token_endpoint,
            revocation_endpoint,
            dpop_key,
            requested_scopes,
            wanted_scopes,
            signed_in_at,
        } = grant;
        Self {
            client: client.into(),
            tokens: tokens.as_ref().map(JsonTokens::from),
            resource: resource.clone(),
            token_endpoint: token_endpoint.clone(),
            revocation_endpoint: revocation_endpoint.clone(),
            dpop_key: hidden(dpop_key.as_ref()),
            requested_scopes: requested_scopes.clone(),
            wanted_scopes: wanted_scopes.clone(),
            signed_in_at: *signed_in_at,
        }
    }
}

impl From<JsonGrant> for Grant {
    fn from(json: JsonGrant) -> Self {
        let JsonGrant {
            client,
            tokens,
            resource,
            token_endpoint,
            revocation_endpoint,
            dpop_key,
            requested_scopes,
            wanted_scopes,
            signed_in_at,
        } = json;
        Self {
            client: client.into(),
            tokens: tokens.map(Tokens::from),
            resource,
            token_endpoint,
            revocation_endpoint,
            dpop_key: revealed(dpop_key),
            requested_scopes,
            wanted_scopes,
            signed_in_at,
        }
    }
}

impl From<&Client> for JsonClient {
    fn from(client: &Client) -> Self {
        let Client {
            id,
            secret,
            authentication,
            kind,
            redirect_uris,
            secret_expires_at,
            registration_access_token,
            registration_uri,
        } = client;
        Self {
            id: id.clone(),
            secret: hidden(secret.as_ref()),
            authentication: *authentication,
            kind: *kind,
            redirect_uris: redirect_uris.clone(),
            secret_expires_at: *secret_expires_at,
            registration_access_token: hidden(registration_access_token.as_ref()),
            registration_uri: registration_uri.clone(),
        }
    }
}

impl From<JsonClient> for Client {
    fn from(json: JsonClient) -> Self {
        let JsonClient {
            id,
            secret,
            authentication,
            kind,
            redirect_uris,
            secret_expires_at,
            registration_access_token,
            registration_uri,
        } = json;
        Self {
            id,
            secret: revealed(secret),
            authentication,
            kind,
            redirect_uris,
            secret_expires_at,
            registration_access_token: revealed(registration_access_token),
            registration_uri,
        }
    }
}

impl From<&Tokens> for JsonTokens {
    fn from(tokens: &Tokens) -> Self {
        let Tokens {
            access,
            kind,
            expires_at,
            issued_at,
            refresh,
            scopes,
        } = tokens;
        Self {
            access: Hidden(access.clone()),
            kind: *kind,
            expires_at: *expires_at,
            issued_at: *issued_at,
            refresh: hidden(refresh.as_ref()),
            scopes: scopes.clone(),
        }
    }
}

impl From<JsonTokens> for Tokens {
    fn from(json: JsonTokens) -> Self {
        let JsonTokens {
            access,
            kind,
            expires_at,
            issued_at,
            refresh,
            scopes,
        } = json;
        Self {
            access: access.0,
            kind,
            expires_at,
            issued_at,
            refresh: revealed(refresh),
            scopes,
        }
    }
}
