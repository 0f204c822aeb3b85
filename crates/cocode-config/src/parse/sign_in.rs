//! Reads what an entry says about signing in.

use cocode_core::{Dpop, Grant, Registration};

use super::Reader;
use crate::document::Node;
use crate::entry::OAuthEntry;
use crate::keys;

impl Reader<'_> {
    pub(super) fn oauth(&mut self, node: &Node, oauth: &mut OAuthEntry) {
        let Some(members) = node.members() else {
            return self.wrong("oauth", node, "a table");
        };
        for (key, member) in self.known(members, keys::OAUTH, "oauth.") {
            let name = format!("oauth.{}", key.name);
            self.lines.insert(name.clone(), member.line);
            let node = &member.node;
            match key.name {
                "client_id" => oauth.client_id = self.text(&name, node),
                "client_secret_env" => oauth.client_secret_env = self.text(&name, node),
                "callback_port" => oauth.callback_port = self.port(&name, node),
                "callback_url" => oauth.callback_url = self.text(&name, node),
                "scopes" => oauth.scopes = self.scopes(&name, node),
                "resource" => oauth.resource = self.text(&name, node),
                "registration" => {
                    let word = self.one_of(key, &name, node);
                    oauth.registration = word.as_deref().and_then(Registration::from_name);
                }
                "client_metadata_url" => oauth.client_metadata_url = self.text(&name, node),
                "issuer" => oauth.issuer = self.text(&name, node),
                "grant" => {
                    let word = self.one_of(key, &name, node);
                    oauth.grant = word.as_deref().and_then(Grant::from_name);
                }
                "private_key_file" => oauth.private_key_file = self.text(&name, node),
                "private_key_env" => oauth.private_key_env = self.text(&name, node),
                "signing_algorithm" => oauth.signing_algorithm = self.one_of(key, &name, node),
                "assertion_env" => oauth.assertion_env = self.text(&name, node),
                "assertion_file" => oauth.assertion_file = self.text(&name, node),
                "assertion_command" => oauth.assertion_command = self.text(&name, node),
                "idp_issuer" => oauth.idp_issuer = self.text(&name, node),
                "idp_token_endpoint" => oauth.idp_token_endpoint = self.text(&name, node),
                "idp_client_id" => oauth.idp_client_id = self.text(&name, node),
                "idp_client_secret_env" => oauth.idp_client_secret_env = self.text(&name, node),
                "dpop" => {
                    let word = self.one_of(key, &name, node);
                    oauth.dpop = word.as_deref().and_then(Dpop::from_name);
                }
                "allow_private_network" => {
                    oauth.allow_private_network = self.boolean(&name, node);
                }
                other => debug_assert!(false, "the key {other} is in the table, but not read"),
            }
        }
        self.unused(node.line, oauth);
    }

    /// What is for another way to sign in than the one that was chosen.
    fn unused(&mut self, line: u32, oauth: &OAuthEntry) {
        let OAuthEntry {
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
            ..
        } = oauth;
        let grant = grant.unwrap_or_default();
        let is_enterprise = grant == Grant::Enterprise;
        let has_assertion = is_enterprise || grant == Grant::JwtBearer;
        let has_key = private_key_file.is_some() || private_key_env.is_some();
        let assertion = "the grants jwt_bearer and enterprise";
        let enterprise = "the grant enterprise";
        for (key, given, is_used, purpose) in [
            ("assertion_env", assertion_env, has_assertion, assertion),
            ("assertion_file", assertion_file, has_assertion, assertion),
            (
                "assertion_command",
                assertion_command,
                has_assertion,
                assertion,
            ),
            ("idp_issuer", idp_issuer, is_enterprise, enterprise),
            (
                "idp_token_endpoint",
                idp_token_endpoint,
                is_enterprise,
                enterprise,
            ),
            ("idp_client_id", idp_client_id, is_enterprise, enterprise),
            (
                "idp_client_secret_env",
                idp_client_secret_env,
                is_enterprise,
                enterprise,
            ),
            (
                "signing_algorithm",
                signing_algorithm,
                has_key,
                "a client with a private key",
            ),
        ] {
            if given.is_some() && !is_used {
                let key = format!("oauth.{key}");
                let line = self.lines.get(&key).copied().unwrap_or(line);
                let message = format!("this is for {purpose}, and does nothing here");
                self.warning(line, Some(&key), message);
            }
        }
    }
}
