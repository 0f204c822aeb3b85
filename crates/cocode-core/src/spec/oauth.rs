//! What a user may fix about signing in at a server. Owns the words for it and their spelling in
//! files; whoever signs in decides what to do with them.

use std::fmt;
use std::path::PathBuf;

use super::without_secrets;

/// What a user fixed about signing in at a server. Everything may be left out: then it is found by
/// asking the server. Its [`fmt::Debug`] leaves out what may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuth {
    /// A client registered beforehand; without it, [`OAuth::registration`] says how to become one.
    pub client_id: Option<String>,
    /// The variable of our environment that holds the secret of that client; without it, the client
    /// has none.
    pub client_secret_env: Option<String>,
    /// The port of the callback; without it, that of an http [`OAuth::callback_url`], or any that is
    /// free.
    pub callback_port: Option<u16>,
    /// The redirect URL to register and send, where it is not `http://127.0.0.1:PORT/callback`: a
    /// forwarded port, for example. It is http to a loopback address, or https. If it is http and
    /// has a port, that is where to listen; if it has none, the port that is listened at belongs
    /// into it.
    pub callback_url: Option<String>,
    /// What to ask for; if empty, what the server names.
    pub scopes: Vec<String>,
    /// The resource to ask for, where it is not the address.
    pub resource: Option<String>,
    /// How to become a client, where none was registered beforehand.
    pub registration: Registration,
    /// The https URL of a document that describes this client, which is then its ID.
    pub client_metadata_url: Option<String>,
    /// The authorization server that knows the client of [`OAuth::client_id`], and that is used if
    /// the server names several; without it, the first that the server names.
    pub issuer: Option<String>,
    /// How to come by a token.
    pub grant: Grant,
    /// The file with the private key of the client, in PEM.
    pub private_key_file: Option<PathBuf>,
    /// The variable of our environment that holds the private key of the client, in PEM.
    pub private_key_env: Option<String>,
    /// How the private key signs: one of [`SIGNING_ALGORITHMS`]; without it, what fits the key.
    pub signing_algorithm: Option<String>,
    /// The variable of our environment that holds the assertion: the JWT of [`Grant::JwtBearer`], or
    /// the ID token of [`Grant::Enterprise`]. Of this and the next two, at most one is given, and it
    /// is read anew each time it is needed.
    pub assertion_env: Option<String>,
    /// The file that holds the assertion.
    pub assertion_file: Option<PathBuf>,
    /// The command that prints the assertion. It runs where the other commands of the server do.
    pub assertion_command: Option<String>,
    /// The identity provider of [`Grant::Enterprise`], by its issuer.
    pub idp_issuer: Option<String>,
    /// Where the identity provider gives out tokens; without it, what its metadata say.
    pub idp_token_endpoint: Option<String>,
    /// The client that the identity provider knows; without it, [`OAuth::client_id`].
    pub idp_client_id: Option<String>,
    /// The variable of our environment that holds the secret of that client; without it, the client
    /// has none.
    pub idp_client_secret_env: Option<String>,
    /// Whether tokens are bound to a key of ours.
    pub dpop: Dpop,
    /// Whether what the server names may be at private addresses although the server is not.
    pub allow_private_network: bool,
}

/// How to become a client, where none was registered beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// Whatever the authorization server offers, a document first.
    #[default]
    Auto,
    /// By the URL of a document that describes the client.
    Cimd,
    /// By registering with the authorization server.
    Dcr,
}

/// How to come by a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A user agrees in a browser.
    #[default]
    AuthorizationCode,
    /// The client itself is who signs in, by its secret or its key.
    ClientCredentials,
    /// A JWT from elsewhere says who signs in.
    JwtBearer,
    /// The ID token of an identity provider is exchanged for what the server's own authorization
    /// server accepts.
    Enterprise,
}

/// Whether tokens are bound to a key of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dpop {
    /// Where the authorization server offers it and the server wants it.
    #[default]
    Auto,
    /// Always, and no token is taken otherwise.
    Always,
    /// Never.
    Never,
}

/// The names of the algorithms that a private key may sign with.
pub const SIGNING_ALGORITHMS: [&str; 9] = [
    "ES256", "ES384", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA",
];

impl Registration {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Cimd, Self::Dcr];

    /// The name in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cimd => "cimd",
            Self::Dcr => "dcr",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl Grant {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::AuthorizationCode,
        Self::ClientCredentials,
        Self::JwtBearer,
        Self::Enterprise,
    ];

    /// The name in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "jwt_bearer",
            Self::Enterprise => "enterprise",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl Dpop {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];

    /// The name in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

/// Credentials and queries of addresses may be secrets, and never show; nor do commands.
impl fmt::Debug for OAuth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            client_id,
            client_secret_env,
            callback_port,
            callback_url,
            scopes,
            resource,
            registration,
            client_metadata_url,
            issuer,
            grant,
            private_key_file,
            private_key_env,
            signing_algorithm,
            assertion_env,
            assertion_file,
            assertion_command,
            idp_issuer,
            idp_token_endpoint,
            idp_client_id,
            idp_client_secret_env,
            dpop,
            allow_private_network,
        } = self;
        let address = |url: &Option<String>| url.as_deref().map(without_secrets);
        formatter
            .debug_struct("OAuth")
            .field("client_id", client_id)
            .field("client_secret_env", client_secret_env)
            .field("callback_port", callback_port)
            .field("callback_url", &address(callback_url))
            .field("scopes", scopes)
            .field("resource", &address(resource))
            .field("registration", registration)
            .field("client_metadata_url", &address(client_metadata_url))
            .field("issuer", &address(issuer))
            .field("grant", grant)
            .field("private_key_file", private_key_file)
            .field("private_key_env", private_key_env)
            .field("signing_algorithm", signing_algorithm)
            .field("assertion_env", assertion_env)
            .field("assertion_file", assertion_file)
            .field("assertion_command", &assertion_command.is_some())
            .field("idp_issuer", &address(idp_issuer))
            .field("idp_token_endpoint", &address(idp_token_endpoint))
            .field("idp_client_id", idp_client_id)
            .field("idp_client_secret_env", idp_client_secret_env)
            .field("dpop", dpop)
            .field("allow_private_network", allow_private_network)
            .finish()
    }
}
