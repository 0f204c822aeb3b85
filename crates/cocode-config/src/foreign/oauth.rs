//! What tools say about signing in: the same few things under different names.

use super::draft::{Draft, Members, Output};
use super::fields::Fields;
use crate::entry::OAuthEntry;

/// The names a tool has for what is fixed about signing in.
#[derive(Clone, Copy)]
pub(super) struct OAuthShape {
    /// The table.
    pub(super) table: &'static str,
    /// How keys of the table are called in messages, as in `oauth.`.
    pub(super) prefix: &'static str,
    pub(super) client_id: &'static str,
    /// A text with a reference to the variable that holds the secret.
    pub(super) client_secret: Option<&'static str>,
    pub(super) callback_port: Option<&'static str>,
    pub(super) callback_url: Option<&'static str>,
    pub(super) scopes: Scopes,
}

/// How scopes are written.
#[derive(Clone, Copy)]
pub(super) enum Scopes {
    /// Not in this table.
    None,
    /// In one text, with spaces between.
    Text(&'static str),
    List(&'static str),
}

impl OAuthShape {
    /// Whether a key of the table is one of ours to change.
    pub(super) fn owns(&self, key: &str) -> bool {
        let scopes = match self.scopes {
            Scopes::None => None,
            Scopes::Text(key) | Scopes::List(key) => Some(key),
        };
        let keys = [
            Some(self.client_id),
            self.client_secret,
            self.callback_port,
            self.callback_url,
            scopes,
        ];
        keys.contains(&Some(key))
    }

    pub(super) fn read(self, fields: &mut Fields<'_>) -> OAuthEntry {
        fields.inside(self.table, self.prefix, |fields| OAuthEntry {
            client_id: fields.text(self.client_id),
            client_secret_env: self
                .client_secret
                .and_then(|key| fields.secret_variable(key)),
            callback_port: self.callback_port.and_then(|key| fields.port(key)),
            callback_url: self.callback_url.and_then(|key| fields.text(key)),
            scopes: match self.scopes {
                Scopes::None => Vec::new(),
                Scopes::List(key) => fields.words(key).unwrap_or_default(),
                Scopes::Text(key) => {
                    let scopes = fields.word(key).unwrap_or_default();
                    scopes.split_whitespace().map(str::to_owned).collect()
                }
            },
            ..OAuthEntry::default()
        })
    }

    /// The table, if there is anything to say.
    pub(super) fn write(self, draft: &mut Draft<'_>) {
        let mut members = Members::new();
        if let Some(id) = draft.entry.oauth.client_id.take()
            && let Some(id) = draft.expanded("oauth.client_id", &id)
        {
            members.push((self.client_id.to_owned(), Output::Text(id)));
        }
        if let Some(key) = self.client_secret
            && let Some(name) = draft.entry.oauth.client_secret_env.take()
            && let Some(secret) = draft.variable("oauth.client_secret_env", &name)
        {
            members.push((key.to_owned(), Output::Text(secret)));
        }
        if let Some(key) = self.callback_port
            && let Some(port) = draft.entry.oauth.callback_port.take()
        {
            members.push((key.to_owned(), Output::Integer(port.into())));
        }
        if let Some(key) = self.callback_url
            && let Some(url) = draft.entry.oauth.callback_url.take()
            && let Some(url) = draft.expanded("oauth.callback_url", &url)
        {
            members.push((key.to_owned(), Output::Text(url)));
        }
        self.write_scopes(draft, &mut members);
        if !members.is_empty() {
            draft.put(self.table, Output::Table(members));
        }
    }

    fn write_scopes(self, draft: &mut Draft<'_>, members: &mut Members) {
        if draft.entry.oauth.scopes.is_empty() {
            return;
        }
        let (key, value) = match self.scopes {
            Scopes::None => return,
            Scopes::Text(key) => {
                let scopes = std::mem::take(&mut draft.entry.oauth.scopes);
                (key, Output::Text(scopes.join(" ")))
            }
            Scopes::List(key) => {
                let scopes = std::mem::take(&mut draft.entry.oauth.scopes);
                let scopes = scopes.into_iter().map(Output::Text).collect();
                (key, Output::List(scopes))
            }
        };
        members.push((key.to_owned(), value));
    }
}
