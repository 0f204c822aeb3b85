//! The lines of an entry: what is approved, kept, compared and shown of it.

use std::collections::BTreeMap;
use std::fmt;

use cocode_core::{Dpop, Grant, Registration};

use super::masked::{self, HIDDEN};
use super::{OAuthEntry, Text, visible};
use crate::expand::is_variable_name;
use crate::lock::sha256;

/// How a value begins of which only a hash is kept. No value does, because each is JSON.
const HASHED: &str = "sha256:";

/// The keys about signing in that hold names of variables.
const VARIABLES_OF_OAUTH: &[&str] = &[
    "oauth.client_secret_env",
    "oauth.private_key_env",
    "oauth.assertion_env",
    "oauth.idp_client_secret_env",
];

/// One line of what is approved: a key, its value as JSON, and what of it may be seen by anybody.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryLine {
    /// The key, as in `env.TOKEN`.
    pub key: String,
    /// The value as JSON, or a hash of it where no more was kept.
    pub value: Text,
    /// Whether the value may hold a secret, and is shown in full only to whoever approves it.
    pub is_secret: bool,
    /// The value as JSON, without what may be secret.
    pub masked: String,
}

impl EntryLine {
    /// One whose value may be seen but for what is masked.
    pub(super) fn new(key: &str, value: String, masked: String) -> Self {
        Self {
            key: key.to_owned(),
            is_secret: value != masked,
            value: Text(value),
            masked,
        }
    }

    /// The line for lists: without what may be secret, and with nothing that cannot be seen.
    pub fn shown(&self) -> String {
        if self.is_secret && self.masked == json_text(HIDDEN) {
            return HIDDEN.to_owned();
        }
        visible(&self.masked)
    }

    /// The line for whoever approves it: all of the value, with nothing that cannot be seen. Only
    /// what stands where the name of a variable belongs, and is none, is never shown: it is of no
    /// effect, and most likely a token.
    pub fn in_full(&self) -> String {
        visible(&self.approvable())
    }

    /// The key, with nothing that cannot be seen.
    pub fn shown_key(&self) -> String {
        visible(&self.key)
    }

    /// What may be kept of it: a hash, if the value may be secret.
    pub(crate) fn kept(mut self) -> Self {
        if self.is_secret && !self.is_hashed() {
            self.value = hash(self.value.0.as_bytes());
        }
        self
    }

    /// A line of which nothing may be seen or kept.
    pub(crate) fn hidden(key: &str, value: &[u8]) -> Self {
        Self {
            key: key.to_owned(),
            value: hash(value),
            is_secret: true,
            masked: json_text(HIDDEN),
        }
    }

    /// Whether only a hash of the value is known.
    pub(crate) fn is_hashed(&self) -> bool {
        self.is_secret && self.value.0.starts_with(HASHED)
    }

    /// Whether both say the same, as far as it is known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let hashed = |line: &Self| {
            if line.is_hashed() {
                line.value.clone()
            } else {
                hash(line.value.0.as_bytes())
            }
        };
        self.value == other.value || hashed(self) == hashed(other)
    }

    pub(crate) fn approvable(&self) -> String {
        let names = match self.key.split('.').next().unwrap_or_default() {
            "env_vars" | "bearer_token_env_var" | "env_http_headers" => true,
            _ => VARIABLES_OF_OAUTH.contains(&self.key.as_str()),
        };
        if !names {
            return self.value.0.clone();
        }
        let shown = |name: &str| {
            let name = if is_variable_name(name) { name } else { HIDDEN };
            name.to_owned()
        };
        if let Ok(name) = serde_json::from_str::<String>(&self.value.0) {
            return json_text(&shown(&name));
        }
        let list = serde_json::from_str::<Vec<String>>(&self.value.0).unwrap_or_default();
        let list: Vec<String> = list.iter().map(|name| shown(name)).collect();
        json_list(&list)
    }
}

fn hash(bytes: &[u8]) -> Text {
    Text(format!("{HASHED}{}", sha256(bytes)))
}

/// Collects lines in order.
#[derive(Default)]
pub(super) struct Lines(pub(super) Vec<EntryLine>);

impl Lines {
    fn open(&mut self, key: &str, value: String) {
        self.0.push(EntryLine::new(key, value.clone(), value));
    }

    fn masked(&mut self, key: &str, value: Option<&str>, mask: fn(&str) -> String) {
        if let Some(value) = value {
            let line = EntryLine::new(key, json_text(value), json_text(&mask(value)));
            self.0.push(line);
        }
    }

    pub(super) fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.open(key, json_text(value));
        }
    }

    pub(super) fn plain(&mut self, key: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.open(key, value.to_string());
        }
    }

    pub(super) fn list(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            self.list_even_empty(key, values);
        }
    }

    pub(super) fn list_even_empty(&mut self, key: &str, values: &[String]) {
        self.open(key, json_list(values));
    }

    pub(super) fn command(&mut self, key: &str, value: Option<&str>) {
        self.masked(key, value, masked::text);
    }

    pub(super) fn url(&mut self, key: &str, value: Option<&str>) {
        self.masked(key, value, masked::url);
    }

    pub(super) fn variable(&mut self, key: &str, value: Option<&str>) {
        self.masked(key, value, masked::variable);
    }

    pub(super) fn variables(&mut self, key: &str, values: &[String]) {
        let masked: Vec<String> = values.iter().map(|value| masked::variable(value)).collect();
        self.masked_list(key, values, &masked);
    }

    pub(super) fn words(&mut self, key: &str, values: &[String]) {
        let masked = masked::words(values.iter().map(String::as_str));
        self.masked_list(key, values, &masked);
    }

    pub(super) fn oauth(&mut self, oauth: &OAuthEntry) {
        let OAuthEntry {
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
        } = oauth;
        self.text("oauth.client_id", client_id.as_deref());
        self.variable("oauth.client_secret_env", client_secret_env.as_deref());
        self.plain("oauth.callback_port", *callback_port);
        self.url("oauth.callback_url", callback_url.as_deref());
        self.list("oauth.scopes", scopes);
        self.url("oauth.resource", resource.as_deref());
        self.text("oauth.registration", registration.map(Registration::as_str));
        self.url("oauth.client_metadata_url", client_metadata_url.as_deref());
        self.url("oauth.issuer", issuer.as_deref());
        self.text("oauth.grant", grant.map(Grant::as_str));
        self.text("oauth.private_key_file", private_key_file.as_deref());
        self.variable("oauth.private_key_env", private_key_env.as_deref());
        self.text("oauth.signing_algorithm", signing_algorithm.as_deref());
        self.variable("oauth.assertion_env", assertion_env.as_deref());
        self.text("oauth.assertion_file", assertion_file.as_deref());
        self.command("oauth.assertion_command", assertion_command.as_deref());
        self.url("oauth.idp_issuer", idp_issuer.as_deref());
        self.url("oauth.idp_token_endpoint", idp_token_endpoint.as_deref());
        self.text("oauth.idp_client_id", idp_client_id.as_deref());
        self.variable(
            "oauth.idp_client_secret_env",
            idp_client_secret_env.as_deref(),
        );
        self.text("oauth.dpop", dpop.map(Dpop::as_str));
        self.plain("oauth.allow_private_network", *allow_private_network);
    }

    fn masked_list(&mut self, key: &str, values: &[String], masked: &[String]) {
        if !values.is_empty() {
            let line = EntryLine::new(key, json_list(values), json_list(masked));
            self.0.push(line);
        }
    }

    pub(super) fn secrets(&mut self, key: &str, values: &BTreeMap<String, Text>) {
        for (name, value) in values {
            self.masked(&format!("{key}.{name}"), Some(&value.0), masked::value);
        }
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn json_list(texts: &[String]) -> String {
    serde_json::Value::from(texts).to_string()
}
