//! A scripted issuer, and doors where its tokens are taken.

use std::ops::Deref;

use cocode_access::{
    Checked, DoorOptions, Doorkeeper, OAuthOptions, Principal, Refusal, ResourceServer,
};
use cocode_testkit::Signer;
use cocode_wire::{HeaderMap, HeaderValue, HttpClient};
use serde_json::Value;

pub(crate) const RESOURCE: &str = "https://gateway.example/mcp";

/// An issuer; it ends when it is dropped.
pub(crate) struct Issuer(cocode_testkit::Issuer);

impl Deref for Issuer {
    type Target = cocode_testkit::Issuer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Issuer {
    /// An issuer with metadata and these keys.
    pub(crate) fn start(keys: &[&Signer]) -> Self {
        Self(cocode_testkit::Issuer::start(keys))
    }

    /// An issuer that publishes nothing.
    pub(crate) fn empty() -> Self {
        Self(cocode_testkit::Issuer::empty())
    }

    /// What an honest token of this issuer says.
    pub(crate) fn claims(&self) -> Value {
        self.0.claims(RESOURCE, "alice")
    }

    pub(crate) fn options(&self) -> OAuthOptions {
        OAuthOptions::new(RESOURCE.parse().unwrap(), self.url())
    }

    /// A door where tokens of this issuer are taken.
    pub(crate) fn door(&self) -> Doorkeeper {
        door(self.options())
    }
}

pub(crate) fn door(options: OAuthOptions) -> Doorkeeper {
    let oauth = ResourceServer::new(options, &HttpClient::default()).unwrap();
    Doorkeeper::new(DoorOptions {
        tokens: None,
        oauth: Some(oauth),
        is_open: true,
    })
}

/// What the door says to a token; that it is never repeated is checked each time.
pub(crate) async fn comes(door: &Doorkeeper, token: &str) -> Result<Principal, Refusal> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    headers.insert("authorization", value);
    let result = match door.check(&headers, None) {
        Checked::Now(result) => result,
        Checked::Later(work) => work.await,
    };
    if let Err(refusal) = &result {
        let all = format!("{refusal:?} {:?} {:?}", refusal.headers(), refusal.body());
        let repeats = |part: &str| part.len() > 8 && all.contains(part);
        assert!(!token.split('.').any(repeats), "{all}");
    }
    result
}
