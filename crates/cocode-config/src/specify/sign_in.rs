//! Checks what an entry says about signing in, as far as that can be done without contacting
//! anybody: addresses, and what each way to come by a token needs.

use cocode_core::{Grant, OAuth, SIGNING_ALGORITHMS, nearest};
use url::Url;

use super::{Base, Work};
use crate::entry::OAuthEntry;
use crate::parse::did_you_mean;
use crate::problem::Problem;
use crate::sign_in_url::{Purpose, objection};

impl Work<'_> {
    pub(super) fn oauth(&mut self, oauth: &OAuthEntry, base: Base<'_>) -> OAuth {
        self.check_alternatives(oauth);
        self.check_grant(oauth);
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
        let callback_url = self.address("callback_url", callback_url.as_ref(), Purpose::Callback);
        self.check_callback(*callback_port, callback_url.as_deref());
        OAuth {
            client_id: self.word("client_id", client_id.as_ref()),
            client_secret_env: self.variable("client_secret_env", client_secret_env.as_ref()),
            callback_port: *callback_port,
            callback_url,
            scopes: scopes.clone(),
            resource: self.word("resource", resource.as_ref()),
            registration: registration.unwrap_or_default(),
            client_metadata_url: self.address(
                "client_metadata_url",
                client_metadata_url.as_ref(),
                Purpose::Document,
            ),
            issuer: self.address("issuer", issuer.as_ref(), Purpose::Issuer),
            grant: grant.unwrap_or_default(),
            private_key_file: self.path(
                "oauth.private_key_file",
                private_key_file.as_deref(),
                base,
            ),
            private_key_env: self.variable("private_key_env", private_key_env.as_ref()),
            signing_algorithm: self.algorithm(signing_algorithm.as_ref()),
            assertion_env: self.variable("assertion_env", assertion_env.as_ref()),
            assertion_file: self.path("oauth.assertion_file", assertion_file.as_deref(), base),
            assertion_command: assertion_command.clone(),
            idp_issuer: self.address("idp_issuer", idp_issuer.as_ref(), Purpose::Issuer),
            idp_token_endpoint: self.address(
                "idp_token_endpoint",
                idp_token_endpoint.as_ref(),
                Purpose::Endpoint,
            ),
            idp_client_id: self.word("idp_client_id", idp_client_id.as_ref()),
            idp_client_secret_env: self
                .variable("idp_client_secret_env", idp_client_secret_env.as_ref()),
            dpop: dpop.unwrap_or_default(),
            allow_private_network: allow_private_network.unwrap_or(false),
        }
    }

    fn word(&mut self, key: &str, text: Option<&String>) -> Option<String> {
        self.plain(&format!("oauth.{key}"), text?)
    }

    fn variable(&mut self, key: &str, name: Option<&String>) -> Option<String> {
        self.check_name(&format!("oauth.{key}"), name?);
        name.cloned()
    }

    fn algorithm(&mut self, name: Option<&String>) -> Option<String> {
        let name = name?;
        if !SIGNING_ALGORITHMS.contains(&name.as_str()) {
            let message = format!("it must be one of {}", SIGNING_ALGORITHMS.join(", "));
            let meant = nearest(name, SIGNING_ALGORITHMS).into_iter().next();
            self.complain("signing_algorithm", message, did_you_mean(meant));
        }
        Some(name.clone())
    }

    fn address(&mut self, key: &str, text: Option<&String>, purpose: Purpose) -> Option<String> {
        let text = self.word(key, text)?;
        match objection(&text, purpose) {
            None => Some(text),
            Some(message) => {
                self.complain(key, message.to_owned(), None);
                None
            }
        }
    }

    /// Where browsers are sent back to, and where we listen for them.
    fn check_callback(&mut self, port: Option<u16>, url: Option<&str>) {
        let Some(port) = port else {
            return;
        };
        if port == 0 {
            let message = "it must be a port from 1 to 65535".to_owned();
            self.complain("callback_port", message, None);
        }
        // Behind https somebody else listens, and passes on to our port.
        let url = url.and_then(|url| Url::parse(url).ok());
        let url = url.filter(|url| url.scheme() == "http");
        if let Some(named) = url.and_then(|url| url.port())
            && named != port
        {
            let message = format!("it is {port}, but `callback_url` has the port {named}");
            let hint = "leave `callback_port` out: the port of `callback_url` is listened at. A \
                        forwarded port needs the same number on both sides";
            self.complain("callback_port", message, Some(hint.to_owned()));
        }
    }

    /// Of keys that say the same in different ways there may be one.
    fn check_alternatives(&mut self, oauth: &OAuthEntry) {
        let assertions = assertions(oauth);
        let keys = private_keys(oauth);
        for ways in [assertions.as_slice(), keys.as_slice()] {
            let mut given = ways.iter().filter(|(_, is_given)| *is_given);
            let first = given.next();
            if let (Some((first, _)), Some((second, _))) = (first, given.next()) {
                let message =
                    format!("it has both `{first}` and `{second}`: only one can be meant");
                self.complain(second, message, None);
            }
        }
    }

    /// What each way to come by a token needs.
    fn check_grant(&mut self, oauth: &OAuthEntry) {
        let grant = oauth.grant.unwrap_or_default();
        let has_key = private_keys(oauth).iter().any(|(_, is_given)| *is_given);
        let has_assertion = assertions(oauth).iter().any(|(_, is_given)| *is_given);
        let client = (oauth.client_id.is_some(), "`client_id`");
        let proof = (
            has_key || oauth.client_secret_env.is_some(),
            "`client_secret_env`, `private_key_file` or `private_key_env`",
        );
        let assertion = (
            has_assertion,
            "`assertion_env`, `assertion_file` or `assertion_command`",
        );
        let provider = (
            oauth.idp_issuer.is_some() || oauth.idp_token_endpoint.is_some(),
            "`idp_issuer` or `idp_token_endpoint`",
        );
        let needs: &[(bool, &str)] = match grant {
            Grant::AuthorizationCode => &[],
            Grant::ClientCredentials => &[client, proof],
            Grant::JwtBearer => &[client, assertion],
            Grant::Enterprise => &[client, assertion, provider],
        };
        for (_, missing) in needs.iter().filter(|(is_given, _)| !is_given) {
            let message = format!("{} needs {missing} beside it", grant.as_str());
            self.complain("grant", message, None);
        }
    }

    fn complain(&mut self, key: &str, message: String, hint: Option<String>) {
        let key = format!("oauth.{key}");
        let mut problem = Problem::error(self.found.origin_of(&key), message)
            .server(&self.found.name)
            .key(key);
        problem.hint = hint;
        self.problems.push(problem);
    }
}

/// Where an assertion may be.
fn assertions(oauth: &OAuthEntry) -> [(&'static str, bool); 3] {
    [
        ("assertion_env", oauth.assertion_env.is_some()),
        ("assertion_file", oauth.assertion_file.is_some()),
        ("assertion_command", oauth.assertion_command.is_some()),
    ]
}

/// Where a private key may be.
fn private_keys(oauth: &OAuthEntry) -> [(&'static str, bool); 2] {
    [
        ("private_key_file", oauth.private_key_file.is_some()),
        ("private_key_env", oauth.private_key_env.is_some()),
    ]
}

#[cfg(test)]
#[path = "sign_in_tests.rs"]
mod tests;
