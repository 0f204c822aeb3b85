//! Reads what a server says in `WWW-Authenticate` when it refuses a request. Real headers are often
//! not what RFC 9110 asks for, so everything that can be understood is, and nothing is an error.

use super::authorize::untrusted;
use super::scopes;

/// Headers are not read further than this.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// No server has more ways to be let in.
const MAX_CHALLENGES: usize = 32;

/// One way to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AuthChallenge {
    /// How credentials are to be presented.
    pub scheme: Scheme,
    /// Where the server describes itself, RFC 9728.
    pub resource_metadata: Option<String>,
    /// What the request needs. What is no scope is left out.
    pub scope: Option<Vec<String>>,
    /// What was wrong with the credentials, as a code.
    pub error: Option<String>,
    /// The same in words, fit to be shown.
    pub error_description: Option<String>,
    /// What is protected.
    pub realm: Option<String>,
    /// How proofs of keys may be signed, RFC 9449.
    pub algs: Option<Vec<String>>,
    /// The authorization server that the header `Mcp-Auth-Server` names.
    pub auth_server: Option<String>,
}

/// How credentials are to be presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A token that whoever has it may use.
    Bearer,
    /// A token with a proof of its key.
    Dpop,
    /// A name and a password.
    Basic,
    /// Something else; empty, if the header named none.
    Other(String),
}

impl Default for Scheme {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl Scheme {
    fn parse(text: &str) -> Self {
        let is = |name: &str| text.eq_ignore_ascii_case(name);
        match text {
            _ if is("bearer") => Self::Bearer,
            _ if is("dpop") => Self::Dpop,
            _ if is("basic") => Self::Basic,
            other => Self::Other(untrusted(other)),
        }
    }

    /// Whether tokens of OAuth are presented so.
    pub fn is_oauth(&self) -> bool {
        matches!(self, Self::Bearer | Self::Dpop)
    }
}

impl AuthChallenge {
    /// All ways that the headers name, in their order.
    pub fn parse_all(headers: &[String]) -> Vec<Self> {
        let mut challenges = Vec::new();
        for header in headers {
            let end = header.floor_char_boundary(MAX_HEADER_BYTES);
            let (mut text, _too_long) = header.split_at(end);
            let mut assembly = Assembly::default();
            while let Some((item, rest)) = next_item(text) {
                assembly.take(item, &mut challenges);
                text = rest;
            }
            assembly.close();
            challenges.extend(assembly.current);
        }
        challenges.truncate(MAX_CHALLENGES);
        challenges
    }

    /// The token is good for less than what was asked for.
    pub fn is_insufficient_scope(&self) -> bool {
        self.is_error("insufficient_scope")
    }

    /// The proof of the key has to carry the nonce of the answer.
    pub fn is_use_dpop_nonce(&self) -> bool {
        self.is_error("use_dpop_nonce")
    }

    /// The token is expired, revoked or otherwise of no use.
    pub fn is_invalid_token(&self) -> bool {
        self.is_error("invalid_token")
    }

    /// A cocode gateway sent it that accepts only tokens of its own.
    pub fn is_of_gateway(&self) -> bool {
        self.realm.as_deref() == Some("cocode") && self.resource_metadata.is_none()
    }

    fn is_error(&self, code: &str) -> bool {
        self.error.as_deref() == Some(code)
    }

    /// Takes over a parameter. The first of a name counts.
    fn set(&mut self, name: &str, value: &str) {
        fn once<T>(place: &mut Option<T>, value: T) {
            if place.is_none() {
                *place = Some(value);
            }
        }
        let words = || -> Option<Vec<String>> {
            let words = value.split_ascii_whitespace().map(str::to_owned);
            Some(words.collect()).filter(|words: &Vec<_>| !words.is_empty())
        };
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => once(&mut self.resource_metadata, value.trim().to_owned()),
            "scope" => {
                let scope = scopes::parse(value);
                if self.scope.is_none() && !scope.is_empty() {
                    self.scope = Some(scope);
                }
            }
            "error" => once(&mut self.error, untrusted(value.trim())),
            "error_description" => once(&mut self.error_description, untrusted(value)),
            "realm" => once(&mut self.realm, untrusted(value)),
            "algs" => self.algs = self.algs.take().or_else(words),
            _unknown => {}
        }
    }
}

/// Hints for a cocode gateway that accepts only its own tokens.
pub fn gateway_token_hints(server: &str) -> [String; 2] {
    [
        "`cocode gateway token add NAME` on the machine of that gateway makes a token".to_owned(),
        format!("name the variable that holds the token: `bearer_token_env_var` of `{server}`"),
    ]
}

/// The way that we can go, if there is one: by a token of OAuth, best one whose challenge says what is
/// wrong or where to look. What it leaves out is taken from the others of that kind.
pub fn best(challenge: &cocode_wire::Challenge) -> Option<AuthChallenge> {
    let all = AuthChallenge::parse_all(&challenge.www_authenticate);
    let rank = |challenge: &&AuthChallenge| {
        let says = challenge.resource_metadata.is_some();
        (challenge.scheme.is_oauth(), challenge.error.is_some(), says)
    };
    // The last of equals would win otherwise.
    let mut best = match all.iter().rev().max_by_key(rank) {
        Some(best) => best.clone(),
        None if challenge.auth_server.is_some() => AuthChallenge::default(),
        None => return None,
    };
    best.auth_server.clone_from(&challenge.auth_server);
    for other in all.iter().filter(|other| other.scheme.is_oauth()) {
        best.resource_metadata = best
            .resource_metadata
            .or_else(|| other.resource_metadata.clone());
        best.scope = best.scope.or_else(|| other.scope.clone());
        best.algs = best.algs.or_else(|| other.algs.clone());
    }
    Some(best)
}

/// Puts the items of one header together.
#[derive(Default)]
struct Assembly<'a> {
    current: Option<AuthChallenge>,
    /// A parameter whose value had no quotes, and may go on.
    open: Option<(&'a str, String)>,
    /// Whether a scheme was the last item.
    after_scheme: bool,
}

impl<'a> Assembly<'a> {
    fn take(&mut self, item: Item<'a>, challenges: &mut Vec<AuthChallenge>) {
        let after_scheme = std::mem::take(&mut self.after_scheme);
        if let (Item::Word(word), Some((name, value))) = (&item, &mut self.open) {
            // Only these have several words; the quotes around them were forgotten.
            if ["scope", "error_description"].contains(&name.to_ascii_lowercase().as_str()) {
                value.push(' ');
                value.push_str(word);
                return;
            }
        }
        self.close();
        match item {
            Item::Parameter(name, Value::Whole(value)) => {
                self.current.get_or_insert_default().set(name, &value);
            }
            Item::Parameter(name, Value::Open(value)) => self.open = Some((name, value.to_owned())),
            // Credentials that a server sends itself, as for `Negotiate`, are of no use to us.
            Item::Word(_) if after_scheme => {}
            Item::Word(word) => {
                challenges.extend(self.current.take());
                self.current = Some(AuthChallenge {
                    scheme: Scheme::parse(word),
                    ..AuthChallenge::default()
                });
                self.after_scheme = true;
            }
            Item::Nothing => {}
        }
    }

    fn close(&mut self) {
        if let Some((name, value)) = self.open.take() {
            self.current.get_or_insert_default().set(name, &value);
        }
    }
}

/// What a header consists of.
enum Item<'a> {
    /// A name, an equals sign and a value.
    Parameter(&'a str, Value<'a>),
    /// Something that stands alone: a scheme, or credentials.
    Word(&'a str),
    /// A comma, or what cannot be understood.
    Nothing,
}

enum Value<'a> {
    /// It stood in quotes.
    Whole(String),
    /// It stood without, and ended where a word ends.
    Open(&'a str),
}

/// The next item and what is behind it; nothing at the end.
fn next_item(text: &str) -> Option<(Item<'_>, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    let (word, rest) = split(text, |character| {
        character.is_whitespace() || matches!(character, ',' | '=' | '"')
    });
    if word.is_empty() {
        let rest = match first {
            '"' => quoted(text).map_or("", |(_lost, rest)| rest),
            _ => text.trim_start_matches(first),
        };
        return Some((Item::Nothing, rest));
    }
    let Some(value) = rest.trim_start().strip_prefix('=') else {
        return Some((Item::Word(word), rest));
    };
    let behind = value.trim_start_matches('=');
    if behind.trim_start().is_empty() || behind.trim_start().starts_with(',') {
        // Base64 ends so, and so do parameters without a value.
        return Some((Item::Nothing, behind));
    }
    let value = value.trim_start();
    if let Some((value, rest)) = quoted(value) {
        return Some((Item::Parameter(word, Value::Whole(value)), rest));
    }
    let (value, rest) = split(value, |character| {
        character.is_whitespace() || character == ','
    });
    Some((Item::Parameter(word, Value::Open(value)), rest))
}

/// What is before the first character of a kind, and what is from there on.
fn split(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// A value in quotes and what is behind it. Quotes that do not end go to the end. Single ones are no
/// quotes by any standard and are used as such.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut characters = text.chars();
    let quote = characters
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    let mut value = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\\' => value.extend(characters.next()),
            _ if character == quote => break,
            _ => value.push(character),
        }
    }
    Some((value, characters.as_str()))
}

#[cfg(test)]
#[path = "challenge_tests.rs"]
mod tests;
