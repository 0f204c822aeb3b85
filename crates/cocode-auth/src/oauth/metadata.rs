//! What servers publish about themselves: RFC 9728 for resources, RFC 8414 and `OpenID` Connect
//! Discovery for authorization servers. Only what is used here is read, and what is optional and makes
//! no sense counts as not said: one odd field must not keep a user out.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

/// What an MCP server says about how to be let in.
#[derive(Clone, Debug, Deserialize)]
pub struct ProtectedResource {
    /// Its own name, which tokens are bound to.
    pub resource: String,
    /// Who may let us in.
    #[serde(default, deserialize_with = "lenient")]
    pub authorization_servers: Vec<String>,
    /// What can be asked for.
    #[serde(default, deserialize_with = "lenient")]
    pub scopes_supported: Option<Vec<String>>,
    /// Whether it takes only tokens that are bound to a key.
    #[serde(default, deserialize_with = "lenient")]
    pub dpop_bound_access_tokens_required: bool,
}

/// What an authorization server says about itself.
#[derive(Clone, Debug, Deserialize)]
pub struct AuthorizationServer {
    /// Its name, which must be the one that it was found by.
    pub issuer: String,
    /// Where the user's browser is sent.
    #[serde(default, deserialize_with = "lenient")]
    pub authorization_endpoint: Option<Url>,
    /// Where tokens come from.
    #[serde(default, deserialize_with = "lenient")]
    pub token_endpoint: Option<Url>,
    /// Where clients register.
    #[serde(default, deserialize_with = "lenient")]
    pub registration_endpoint: Option<Url>,
    /// Where tokens are given back.
    #[serde(default, deserialize_with = "lenient")]
    pub revocation_endpoint: Option<Url>,
    /// What can be asked for.
    #[serde(default, deserialize_with = "lenient")]
    pub scopes_supported: Option<Vec<String>>,
    /// How it checks that the one who began is the one who ends.
    #[serde(default, deserialize_with = "lenient")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// How clients may prove who they are.
    #[serde(default, deserialize_with = "lenient")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// How their tokens may be signed.
    #[serde(default, deserialize_with = "lenient")]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// How tokens may be asked for.
    #[serde(default, deserialize_with = "lenient")]
    pub grant_types_supported: Option<Vec<String>>,
    /// Whether its answers name it, RFC 9207.
    #[serde(default, deserialize_with = "lenient")]
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a client may be named by the address of its description.
    #[serde(default, deserialize_with = "lenient")]
    pub client_id_metadata_document_supported: bool,
    /// How proofs of keys may be signed, RFC 9449.
    #[serde(default, deserialize_with = "lenient")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether it published nothing, and its endpoints are those that revision 2025-03-26 fixed.
    #[serde(skip)]
    pub assumed: bool,
}

impl AuthorizationServer {
    /// The authorization server of a server of revision 2025-03-26 that publishes nothing: itself.
    /// There is none for addresses that have no origin.
    pub(super) fn assumed(server: &Url) -> Option<Self> {
        let at = |path: &str| {
            let mut url = server.join(path).ok()?;
            url.set_username("").ok()?;
            url.set_password(None).ok()?;
            Some(url)
        };
        Some(Self {
            issuer: server.origin().ascii_serialization(),
            authorization_endpoint: Some(at("/authorize")?),
            token_endpoint: Some(at("/token")?),
            registration_endpoint: Some(at("/register")?),
            revocation_endpoint: None,
            scopes_supported: None,
            code_challenge_methods_supported: None,
            token_endpoint_auth_methods_supported: None,
            token_endpoint_auth_signing_alg_values_supported: None,
            grant_types_supported: None,
            authorization_response_iss_parameter_supported: false,
            client_id_metadata_document_supported: false,
            dpop_signing_alg_values_supported: None,
            assumed: true,
        })
    }
}

/// Whatever cannot be read is as if it were not there.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{AuthorizationServer, ProtectedResource};

    #[test]
    fn odd_fields_count_as_not_said() {
        let text = r#"{
            "issuer": "https://as.example",
            "token_endpoint": "https://as.example/token",
            "registration_endpoint": "",
            "revocation_endpoint": 7,
            "scopes_supported": "a b",
            "grant_types_supported": null,
            "authorization_response_iss_parameter_supported": "yes",
            "client_id_metadata_document_supported": true
        }"#;
        let server: AuthorizationServer = serde_json::from_str(text).unwrap();
        assert!(server.token_endpoint.is_some());
        assert_eq!(server.registration_endpoint, None);
        assert_eq!(server.revocation_endpoint, None);
        assert_eq!(server.scopes_supported, None);
        assert_eq!(server.grant_types_supported, None);
        assert!(!server.authorization_response_iss_parameter_supported);
        assert!(server.client_id_metadata_document_supported);
        assert!(!server.assumed);
    }

    #[test]
    fn names_are_demanded() {
        assert!(serde_json::from_str::<AuthorizationServer>(r#"{"token_endpoint": "x"}"#).is_err());
        assert!(serde_json::from_str::<ProtectedResource>(r#"{"resource": 1}"#).is_err());
    }

    #[test]
    fn the_endpoints_of_a_server_that_publishes_nothing_are_at_its_root() {
        let url = "https://user:pass@mcp.example:8443/a/mcp?b"
            .parse()
            .unwrap();
        let server = AuthorizationServer::assumed(&url).unwrap();
        assert_eq!(server.issuer, "https://mcp.example:8443");
        let endpoint = |url: Option<url::Url>| url.unwrap().to_string();
        assert_eq!(
            endpoint(server.authorization_endpoint),
            "https://mcp.example:8443/authorize"
        );
        assert_eq!(
            endpoint(server.token_endpoint),
            "https://mcp.example:8443/token"
        );
        assert_eq!(
            endpoint(server.registration_endpoint),
            "https://mcp.example:8443/register"
        );
        assert!(server.assumed);
    }
}
