//! What servers publish about themselves: RFC 9728 for resources, RFC 8414 and `OpenID` Connect
//! Discovery for authorization servers. Only what is used here is read.

use serde::Deserialize;
use url::Url;

/// What an MCP server says about how to be let in.
#[derive(Clone, Debug, Deserialize)]
pub struct ProtectedResource {
    /// Its own name, which tokens are bound to.
    pub resource: String,
    /// Who may let us in.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// What can be asked for.
    pub scopes_supported: Option<Vec<String>>,
    /// Whether it takes only tokens that are bound to a key.
    #[serde(default)]
    pub dpop_bound_access_tokens_required: bool,
}

/// What an authorization server says about itself.
#[derive(Clone, Debug, Deserialize)]
pub struct AuthorizationServer {
    /// Its name, which must be the one that it was found by.
    pub issuer: String,
    /// Where the user's browser is sent.
    pub authorization_endpoint: Option<Url>,
    /// Where tokens come from.
    pub token_endpoint: Option<Url>,
    /// Where clients register.
    pub registration_endpoint: Option<Url>,
    /// Where tokens are given back.
    pub revocation_endpoint: Option<Url>,
    /// What can be asked for.
    pub scopes_supported: Option<Vec<String>>,
    /// How it checks that the one who began is the one who ends.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// How clients may prove who they are.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// How their tokens may be signed.
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// How tokens may be asked for.
    pub grant_types_supported: Option<Vec<String>>,
    /// Whether its answers name it, RFC 9207.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a client may be named by the address of its description.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    /// How proofs of keys may be signed, RFC 9449.
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether it published nothing, and its endpoints are those that revision 2025-03-26 fixed.
    #[serde(skip)]
    pub assumed: bool,
}
