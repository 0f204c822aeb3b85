//! Values that say whom a gateway believes, and where it keeps what it knows.

use url::Url;

use super::Reader;
use crate::document::Node;
use crate::expand::{Piece, is_reference, pieces};
use crate::settings::GatewayStore;
use crate::sign_in_url::{Purpose, objection};

/// How the address of a `PostgreSQL` database begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// Stands for a reference while an address is looked at: it may stand wherever a piece of one may.
const SOMETHING: char = '1';
/// Stands for a reference in the place of a password.
const HIDDEN: char = '\u{1}';

impl Reader<'_> {
    pub(super) fn safe_url(&mut self, path: &str, node: &Node) -> Option<String> {
        let text = self.text(path, node)?;
        match objection(&text, Purpose::Endpoint) {
            None => Some(text),
            Some(message) => {
                self.error(node.line, path, message);
                None
            }
        }
    }

    pub(super) fn issuers(&mut self, path: &str, node: &Node) -> Option<Vec<String>> {
        let nodes = self.list(path, node)?;
        if nodes.is_empty() {
            self.error(node.line, path, "it must name at least one");
            return None;
        }
        let mut issuers = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let text = self.text(&path, node)?;
            if let Some(message) = objection(&text, Purpose::Issuer) {
                self.error(node.line, &path, message);
                return None;
            }
            issuers.push(text);
        }
        Some(issuers)
    }

    pub(super) fn word(&mut self, path: &str, node: &Node) -> Option<String> {
        let text = self.text(path, node)?;
        if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
            self.error(node.line, path, "it must not have blanks in it");
            return None;
        }
        Some(text)
    }

    pub(super) fn words(&mut self, path: &str, node: &Node) -> Option<Vec<String>> {
        let nodes = self.list(path, node)?;
        let places = nodes.iter().enumerate();
        places
            .map(|(index, node)| self.word(&format!("{path}[{index}]"), node))
            .collect()
    }

    pub(super) fn hosts(&mut self, path: &str, node: &Node) -> Option<Vec<String>> {
        let message = "this is no host: write a name or an address, as in example.com or \
                       example.com:7777, without a scheme or a path";
        self.all_of(path, node, is_host, message)
    }

    pub(super) fn origins(&mut self, path: &str, node: &Node) -> Option<Vec<String>> {
        let message = "this is no origin: write a scheme and a host, as in https://example.com or \
                       http://localhost:3000, without a path";
        self.all_of(path, node, is_origin, message)
    }

    /// A list of texts that are all good. One that is not would never be met, and nobody would know why.
    fn all_of(
        &mut self,
        path: &str,
        node: &Node,
        is_good: fn(&str) -> bool,
        message: &str,
    ) -> Option<Vec<String>> {
        let nodes = self.list(path, node)?;
        let mut texts = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let text = self.text(&path, node)?;
            if !is_good(&text) {
                self.error(node.line, &path, message);
                return None;
            }
            texts.push(text);
        }
        Some(texts)
    }

    pub(super) fn store(&mut self, path: &str, node: &Node) -> Option<GatewayStore> {
        let text = self.text(path, node)?;
        match text.as_str() {
            "sqlite" => return Some(GatewayStore::Sqlite),
            "memory" => return Some(GatewayStore::Memory),
            _ if is_reference(&text) => return Some(GatewayStore::Postgres(text)),
            _ => {}
        }
        // The text may hold a password, so it is not repeated.
        let Some((message, hint)) = objection_to_database(&text) else {
            return Some(GatewayStore::Postgres(text));
        };
        self.report(node.line, path, message, Some(hint.to_owned()));
        None
    }
}

/// Whether clients may have this in their `Host`.
fn is_host(text: &str) -> bool {
    let is_bare = !text.contains(['/', '?', '#', '@', '\\']) && !text.contains(char::is_whitespace);
    is_bare && Url::parse(&format!("http://{text}/")).is_ok_and(|url| url.has_host())
}

/// Whether browsers may say this of a page, to the letter.
fn is_origin(text: &str) -> bool {
    let after = text.split_once("://").map(|(_, after)| after);
    let is_bare = after.is_some_and(|after| !after.contains(['/', '?', '#', '@']));
    is_bare && Url::parse(text).is_ok_and(|url| url.has_host())
}

/// Why a text is no address of a database that may be written into a file, and what to write.
fn objection_to_database(text: &str) -> Option<(&'static str, &'static str)> {
    let is_database = SCHEMES.iter().any(|scheme| text.starts_with(scheme));
    if !is_database {
        return Some((
            "this is no store",
            "write \"sqlite\", \"memory\", or an address that begins with postgres://",
        ));
    }
    let mut shape = String::new();
    let mut masked = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => {
                shape.push_str(literal);
                masked.push_str(literal);
            }
            // A default would be a password that is written here.
            Piece::Reference(inner) => {
                shape.push(SOMETHING);
                let is_plain = !inner.contains(":-");
                masked.push(if is_plain { HIDDEN } else { SOMETHING });
            }
            Piece::Escape | Piece::Unclosed(_) => {
                return Some((
                    "this is no address of a database",
                    "write `${NAME}` for a variable, and %24 for a plain $",
                ));
            }
        }
    }
    if has_password(&masked) {
        return Some((
            "a password cannot be written here, only where it is",
            "write `${VAR}` or `${keyring:NAME}` in its place",
        ));
    }
    match Url::parse(&shape) {
        Ok(_) => None,
        Err(_) => Some((
            "this is no address of a database",
            "write it as in postgres://cocode:${DB_PASSWORD}@db.example.com:5432/cocode",
        )),
    }
}

/// Whether an address holds a password, and not only what refers to one.
fn has_password(address: &str) -> bool {
    let is_literal = |password: &str| password.contains(|character| character != HIDDEN);
    let (_, rest) = address.split_once("://").unwrap_or_default();
    let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may hold a slash, even if it should not.
    let (user, _) = before_query.rsplit_once('@').unwrap_or_default();
    let (_, password) = user.split_once(':').unwrap_or_default();
    let in_query = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        name.to_ascii_lowercase().contains("password") && is_literal(value)
    };
    is_literal(password) || query.split('&').any(in_query)
}
