//! What authorization servers answer to a registration.

use serde::Deserialize;

use crate::oauth::authorize::untrusted;
use crate::oauth::metadata::lenient;

/// How a registration is answered.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) client_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) client_secret: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) client_secret_expires_at: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) token_endpoint_auth_method: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) registration_access_token: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) registration_client_uri: Option<String>,
}

/// How a registration is refused.
#[derive(Default, Deserialize)]
pub(super) struct Refusal {
    #[serde(default, deserialize_with = "lenient")]
    error: String,
    #[serde(default, deserialize_with = "lenient")]
    error_description: String,
}

impl Refusal {
    /// What is not as RFC 7591 wants it says nothing.
    pub(super) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    pub(super) fn is_about_the_callback(&self) -> bool {
        match self.error.as_str() {
            "invalid_redirect_uri" => true,
            "invalid_client_metadata" | "invalid_request" => {
                self.error_description.to_lowercase().contains("redirect")
            }
            _ => false,
        }
    }

    pub(super) fn told(&self) -> String {
        let (error, description) = (untrusted(&self.error), untrusted(&self.error_description));
        match (error.as_str(), description.as_str()) {
            (error, "") => error.to_owned(),
            ("", description) => description.to_owned(),
            (error, description) => format!("{error} ({description})"),
        }
    }
}
