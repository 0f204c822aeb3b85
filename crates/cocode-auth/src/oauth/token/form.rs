//! The body of a request to an authorization server, and what of it may not be said.

use bytes::Bytes;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::secret::Secret;

/// No more of what a server said is shown.
const MAX_TOLD_CHARACTERS: usize = 300;

/// Shorter secrets are not looked for in what a server says: they would be found in every word.
const MIN_HIDDEN_BYTES: usize = 4;

/// Fields in the order in which they are sent.
#[derive(Clone)]
pub(crate) struct Form {
    fields: Vec<(&'static str, Secret)>,
    /// What may not be said, whether it is in the body or in a header.
    hidden: Vec<Secret>,
}

impl Form {
    pub(super) fn of_grant(grant: &'static str) -> Self {
        let mut form = Self::empty();
        form.add("grant_type", grant);
        form
    }

    /// A body without a grant.
    pub(crate) fn empty() -> Self {
        Self {
            fields: Vec::new(),
            hidden: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, name: &'static str, value: &str) {
        self.fields.push((name, Secret::new(value)));
    }

    pub(crate) fn add_secret(&mut self, name: &'static str, value: &Secret) {
        self.fields.push((name, value.clone()));
        self.hide(value.clone());
    }

    /// Goes along with the body and may not be said.
    pub(crate) fn hide(&mut self, secret: Secret) {
        self.hidden.push(secret);
    }

    /// What is asked for, and for which server. Nothing is said where nothing is known.
    pub(super) fn add_target(&mut self, resource: Option<&str>, scopes: &[String]) {
        if let Some(resource) = resource {
            self.add("resource", resource);
        }
        if !scopes.is_empty() {
            self.add("scope", &scopes.join(" "));
        }
    }

    pub(crate) fn body(&self) -> Bytes {
        let mut body = Serializer::new(String::new());
        for (name, value) in &self.fields {
            body.append_pair(name, value.expose());
        }
        body.finish().into()
    }

    /// What a server said, fit to be shown: in one line, not too long, and without the secrets of
    /// this request, which some servers repeat when they refuse them.
    pub(crate) fn told(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.hidden {
            let secret = secret.expose();
            if secret.len() >= MIN_HIDDEN_BYTES {
                let escaped: String = byte_serialize(secret.as_bytes()).collect();
                text = text.replace(secret, "…").replace(&escaped, "…");
            }
        }
        let visible = text.chars().map(|character| match character {
            // These change the direction or are not seen at all.
            '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => ' ',
            _ if character.is_control() => ' ',
            _ => character,
        });
        let mut told: String = visible.take(MAX_TOLD_CHARACTERS + 1).collect();
        if let Some((end, _)) = told.char_indices().nth(MAX_TOLD_CHARACTERS) {
            told.truncate(end);
            told.push('…');
        }
        told.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Form;
    use crate::secret::Secret;

    #[test]
    fn fields_are_sent_in_order_and_escaped() {
        let mut form = Form::of_grant("client_credentials");
        form.add_secret("client_secret", &Secret::new("a b&c=ü"));
        form.add_target(
            Some("https://mcp.example/a?b"),
            &["one".to_owned(), "two".to_owned()],
        );
        assert_eq!(
            form.body(),
            "grant_type=client_credentials&client_secret=a+b%26c%3D%C3%BC\
             &resource=https%3A%2F%2Fmcp.example%2Fa%3Fb&scope=one+two"
        );
    }

    #[test]
    fn nothing_is_said_of_an_unknown_target() {
        let mut form = Form::of_grant("refresh_token");
        form.add_target(None, &[]);
        assert_eq!(form.body(), "grant_type=refresh_token");
    }

    #[test]
    fn secrets_are_cut_out_of_what_a_server_says() {
        let mut form = Form::empty();
        form.add_secret("code", &Secret::new("4/0Ab_secret"));
        form.add_secret("pin", &Secret::new("a"));
        form.hide(Secret::new("in the header"));
        form.add("client_id", "client");
        let cases = [
            (
                "code 4/0Ab_secret is unknown to client",
                "code … is unknown to client",
            ),
            ("so in the header", "so …"),
            ("code=4%2F0Ab_secret is a bad one", "code=… is a bad one"),
            (" two\r\nlines\u{1b}[31m\u{202e} ", "two  lines [31m"),
        ];
        for (text, expected) in cases {
            assert_eq!(form.told(text), expected, "{text}");
        }
        let long = form.told(&"ü".repeat(400));
        assert_eq!(long, format!("{}…", "ü".repeat(300)));
    }
}
