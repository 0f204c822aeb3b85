//! How the conformance client is let in: by OAuth, with a user who agrees to everything and needs no
//! browser, and with what the context of a scenario gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cocode_auth::oauth::{
    AuthorizationRequest, OAuthCredentials, RedirectWish, SignIn, Site, Sources, UserAgent,
    UserAgentError, Vault, Visit, Work,
};
use cocode_auth::{CommandSettings, Secret, StoreChoice, StoreOptions};
use cocode_client::{HttpClient, Url};
use cocode_core::{Grant, OAuth};
use serde_json::Value;
use tempfile::TempDir;

use crate::Failure;

/// The document that the suite knows this client by.
const METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// Nobody listens there: the user reads the answer off the redirect itself.
const REDIRECT_URI: &str = "http://127.0.0.1:8976/callback";

/// The most that an authorization page may have.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// Credentials for the server of a scenario, kept in a directory that ends with the client.
pub(crate) fn credentials(
    url: &Url,
    scenario: &str,
    context: &Value,
) -> Result<(OAuthCredentials, TempDir), Failure> {
    let directory = tempfile::tempdir()?;
    let vault = Vault::new(StoreOptions {
        choice: StoreChoice::File,
        directory: directory.path().join("state"),
        session_bus: None,
    });
    let given: BTreeMap<String, String> = context
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let text = |name: &str| given.get(name).cloned();
    // A "variable" is an entry of the context.
    let named = |name: &str| given.contains_key(name).then(|| name.to_owned());
    let oauth = OAuth {
        client_id: text("client_id"),
        client_secret_env: named("client_secret"),
        client_metadata_url: Some(METADATA_URL.to_owned()),
        private_key_env: named("private_key_pem"),
        signing_algorithm: text("signing_algorithm"),
        assertion_env: named("valid_jwt").or_else(|| named("idp_id_token")),
        idp_issuer: text("idp_issuer"),
        idp_token_endpoint: text("idp_token_endpoint"),
        idp_client_id: text("idp_client_id"),
        grant: grant(scenario),
        ..OAuth::default()
    };
    let variables = given.clone();
    let sign_in = SignIn {
        server: scenario.to_owned(),
        url: url.clone(),
        oauth,
        sources: Sources {
            variable: Arc::new(move |name| variables.get(name).cloned()),
            commands: CommandSettings::new(Vec::new()),
        },
    };
    let http = HttpClient::default();
    let site = Site::new(sign_in, http.clone(), vault);
    let agreeing: Arc<dyn UserAgent> = Arc::new(Agreeing { http });
    Ok((OAuthCredentials::new(site, Some(agreeing)), directory))
}

fn grant(scenario: &str) -> Grant {
    match scenario {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => Grant::ClientCredentials,
        "auth/enterprise-managed-authorization" | "auth/cross-app-access-complete-flow" => {
            Grant::Enterprise
        }
        "auth/wif-jwt-bearer" => Grant::JwtBearer,
        _ => Grant::AuthorizationCode,
    }
}

/// A user who agrees to everything, at servers that ask nothing and redirect at once.
#[derive(Clone, Debug)]
struct Agreeing {
    http: HttpClient,
}

impl UserAgent for Agreeing {
    fn prepare<'a>(&'a self, _wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>> {
        let visit: Box<dyn Visit> = Box::new(self.clone());
        Box::pin(std::future::ready(Ok(visit)))
    }
}

impl Visit for Agreeing {
    fn redirect_uri(&self) -> &str {
        REDIRECT_URI
    }

    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret> {
        Box::pin(async move {
            let failed = |message: &str| UserAgentError::Failed {
                message: message.to_owned(),
                source: None,
            };
            let asked = http::Request::get(request.url.as_str()).body(Bytes::new());
            let asked = asked.map_err(|_bad| failed("not an address"))?;
            let answer = self.http.fetch(asked, MAX_PAGE_BYTES).await;
            let answer = answer.map_err(|error| UserAgentError::Failed {
                message: "the authorization page cannot be reached".to_owned(),
                source: Some(Box::new(error)),
            })?;
            let location = answer.headers().get(http::header::LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            let location = location.and_then(|location| Url::parse(location).ok());
            let query = location.as_ref().and_then(Url::query);
            query
                .map(Secret::new)
                .ok_or_else(|| failed("the authorization page did not redirect"))
        })
    }
}
