//! The document that describes us to authorization servers which take the address of such a document
//! as the name of a client.

use serde_json::{Value, json};
use url::Url;

/// Why an address cannot name a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url} cannot be the address of the document that describes this client: {reason}")]
pub struct InvalidMetadataUrl {
    /// The address, without what may be secret.
    pub url: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Checks that an address can name a client.
pub fn check_metadata_url(url: &Url) -> Result<(), InvalidMetadataUrl> {
    let reason = if url.scheme() != "https" {
        "it is not https"
    } else if !url.username().is_empty() || url.password().is_some() {
        "it has a user name or a password in it"
    } else if url.fragment().is_some() {
        "it has a fragment"
    } else if url.path() == "/" {
        "it has no path"
    } else {
        return Ok(());
    };
    let url = crate::oauth::http::shown(url);
    Err(InvalidMetadataUrl { url, reason })
}

/// The document itself, for whoever puts it there.
pub fn client_metadata_document(url: &Url, redirect_uris: &[String]) -> Value {
    json!({
        "client_id": url.as_str(),
        "client_name": "cocode",
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    })
}

#[cfg(test)]
mod tests {
    use super::{check_metadata_url, client_metadata_document};

    #[test]
    fn only_documents_that_others_can_fetch_name_a_client() {
        for (text, reason) in [
            ("https://app.example/client.json", None),
            ("https://app.example/a/client.json?v=1", None),
            ("http://app.example/client.json", Some("it is not https")),
            ("https://app.example", Some("it has no path")),
            ("https://app.example/a#b", Some("it has a fragment")),
            (
                "https://u@app.example/a",
                Some("it has a user name or a password in it"),
            ),
            (
                "https://u:p@app.example/a",
                Some("it has a user name or a password in it"),
            ),
        ] {
            let checked = check_metadata_url(&text.parse().unwrap());
            assert_eq!(
                checked.clone().err().map(|error| error.reason),
                reason,
                "{text}"
            );
            assert!(!format!("{checked:?}").contains("u@"), "{checked:?}");
        }
    }

    #[test]
    fn the_document_names_itself() {
        let url = "https://app.example/client.json".parse().unwrap();
        let document = client_metadata_document(&url, &["http://127.0.0.1/callback".to_owned()]);
        assert_eq!(document["client_id"], "https://app.example/client.json");
        assert_eq!(document["redirect_uris"][0], "http://127.0.0.1/callback");
        assert_eq!(document["grant_types"][1], "refresh_token");
        assert_eq!(document["token_endpoint_auth_method"], "none");
    }
}
