//! Who we are at an authorization server.

use crate::secret::Secret;

/// A client as one authorization server knows it. It means nothing to another.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its name there.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Secret>,
    /// How it proves who it is at the token endpoint.
    pub authentication: ClientAuthentication,
    /// How we came by it.
    pub kind: ClientKind,
    /// Where it may be redirected to; the first is the one we use.
    pub redirect_uris: Vec<String>,
    /// When the secret ends, in seconds since 1970; never, if nothing is said.
    pub secret_expires_at: Option<u64>,
    /// Lets us change or delete a registration.
    pub registration_access_token: Option<Secret>,
    /// Where that is done.
    pub registration_uri: Option<String>,
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientAuthentication {
    /// Not at all: its id stands in the request.
    #[default]
    None,
    /// By its secret in the `Authorization` header.
    SecretBasic,
    /// By its secret in the body.
    SecretPost,
    /// By a token that its private key signed.
    PrivateKeyJwt,
}

/// How we came by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// The user registered it.
    Preregistered,
    /// Its id is the address of a document that describes it.
    MetadataDocument,
    /// We registered it.
    Dynamic,
}

impl ClientAuthentication {
    /// As the metadata of authorization servers calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SecretBasic => "client_secret_basic",
            Self::SecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// The reverse of [`ClientAuthentication::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::None,
            Self::SecretBasic,
            Self::SecretPost,
            Self::PrivateKeyJwt,
        ]
        .into_iter()
        .find(|method| method.as_str() == text)
    }
}
