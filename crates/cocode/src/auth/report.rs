//! A sign-in as it is told: without anything that is secret.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cocode_auth::Place;
use cocode_auth::oauth::{ClientKind, Grant, SignedIn, TokenKind};
use serde::Serialize;

use crate::stores::place_name;
use crate::text::age;

/// What one authorization server gave us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignInReport {
    pub(super) issuer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
    pub(super) scopes: Vec<String>,
    /// What the server has asked for besides, for the next sign-in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) wanted_scopes: Vec<String>,
    /// In seconds since 1970; absent, if nothing was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_in_seconds: Option<u64>,
    /// Whether it goes on after that without anybody.
    pub(super) renewable: bool,
    /// Whether tokens are bound to a key of ours.
    pub(super) bound_to_key: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signed_in_at: Option<u64>,
    pub(super) client: ClientReport,
    pub(super) kept_in: &'static str,
}

/// Who we are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientReport {
    pub(super) kind: &'static str,
    pub(super) id: String,
}

impl SignInReport {
    /// What has just come of signing in.
    pub(super) fn of_login(signed_in: &SignedIn, now: u64) -> Self {
        let SignedIn {
            issuer,
            resource,
            scopes,
            expires_at,
            renewable,
            bound,
            client,
            client_id,
            place,
        } = signed_in;
        Self {
            issuer: issuer.clone(),
            resource: Some(resource.clone()).filter(|resource| !resource.is_empty()),
            scopes: scopes.clone(),
            wanted_scopes: Vec::new(),
            expires_at: *expires_at,
            expires_in_seconds: expires_at.map(|end| end.saturating_sub(now)),
            renewable: *renewable,
            bound_to_key: *bound,
            signed_in_at: Some(now),
            client: ClientReport::of(*client, client_id),
            kept_in: place_name(*place),
        }
    }

    /// What is stored.
    pub(super) fn of_grant(issuer: &str, grant: &Grant, place: Place, now: u64) -> Self {
        let tokens = grant.tokens.as_ref();
        let requested = &grant.requested_scopes;
        let scopes = tokens.map(|tokens| tokens.scopes.as_ref().unwrap_or(requested));
        let expires_at = tokens.and_then(|tokens| tokens.expires_at);
        Self {
            issuer: issuer.to_owned(),
            resource: grant.resource.clone(),
            scopes: scopes.cloned().unwrap_or_default(),
            wanted_scopes: grant.wanted_scopes.clone(),
            expires_at,
            expires_in_seconds: expires_at.map(|end| end.saturating_sub(now)),
            renewable: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
            bound_to_key: tokens.is_some_and(|tokens| tokens.kind == TokenKind::Dpop),
            signed_in_at: grant.signed_in_at,
            client: ClientReport::of(grant.client.kind, &grant.client.id),
            kept_in: place_name(place),
        }
    }

    /// How long it lasts, in words.
    pub(super) fn lasts(&self) -> String {
        let renewed = if self.renewable {
            ", renewed by itself"
        } else {
            ""
        };
        match self.expires_in_seconds {
            None => format!("nothing is said{renewed}"),
            Some(0) => format!("over{renewed}"),
            Some(seconds) => format!("in {}{renewed}", age(Duration::from_secs(seconds))),
        }
    }

    pub(super) fn scopes(&self) -> String {
        if self.scopes.is_empty() {
            return "none are named".to_owned();
        }
        self.scopes.join(" ")
    }
}

impl ClientReport {
    fn of(kind: ClientKind, id: &str) -> Self {
        Self {
            kind: match kind {
                ClientKind::Preregistered => "preregistered",
                ClientKind::MetadataDocument => "metadata-document",
                ClientKind::Dynamic => "dynamic",
            },
            id: id.to_owned(),
        }
    }

    /// In words.
    pub(super) fn told(&self) -> String {
        let Self { kind, id } = self;
        match *kind {
            "preregistered" => format!("{id} (registered beforehand)"),
            "metadata-document" => format!("{id} (described by a document)"),
            _ => format!("{id} (registered by cocode)"),
        }
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
