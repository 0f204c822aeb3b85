//! Which scopes to ask for. Pure.

use super::metadata::{AuthorizationServer, ProtectedResource};

/// Gets us a refresh token at authorization servers that know it.
const OFFLINE_ACCESS: &str = "offline_access";

/// No list of scopes is longer.
const MAX_SCOPES: usize = 200;

/// No scope is longer.
const MAX_SCOPE_BYTES: usize = 512;

/// All scopes of a list together, with a space after each: they are stored with the tokens, and have
/// to fit into the address that a browser is sent to.
const MAX_LIST_BYTES: usize = 6 * 1024;

/// What is known when scopes are chosen.
#[derive(Clone, Copy, Debug)]
pub struct ScopeChoice<'a> {
    /// What the user wants; if empty, nothing was said.
    pub explicit: &'a [String],
    /// What the refusal named.
    pub challenged: Option<&'a [String]>,
    /// What the MCP server says about itself.
    pub resource: Option<&'a ProtectedResource>,
    /// Who will be asked.
    pub server: &'a AuthorizationServer,
    /// Whether refresh tokens are of use. Programs that have credentials of their own get none, and
    /// some authorization servers refuse them if they ask.
    pub refreshable: bool,
}

impl ScopeChoice<'_> {
    /// What to ask for. If it is empty, nothing is asked for by name, and the authorization server
    /// decides.
    pub fn select(self) -> Vec<String> {
        let supported = self
            .resource
            .and_then(|resource| resource.scopes_supported.as_deref());
        let named = Some(self.explicit).filter(|scopes| !scopes.is_empty());
        let named = named.or(self.challenged).or(supported).unwrap_or_default();
        let mut scopes = union([named]);
        // Alone it would stand in the way of what the authorization server gives to those who ask
        // for nothing.
        if self.refreshable && !scopes.is_empty() && self.server.offers_offline_access() {
            scopes = union([&scopes, &[OFFLINE_ACCESS.to_owned()]]);
        }
        scopes
    }
}

impl AuthorizationServer {
    /// Whether refresh tokens have to be asked for, and can be.
    fn offers_offline_access(&self) -> bool {
        let lists = |list: &Option<Vec<String>>, wanted: &str| {
            list.as_ref()
                .map(|list| list.iter().any(|entry| entry == wanted))
        };
        lists(&self.scopes_supported, OFFLINE_ACCESS) == Some(true)
            && lists(&self.grant_types_supported, "refresh_token") != Some(false)
    }
}

/// What to ask for when more is needed: all that was asked for or given before, and what the refusal
/// named, so that nothing is lost.
pub fn step_up(requested: &[String], granted: &[String], challenged: &[String]) -> Vec<String> {
    union([requested, granted, challenged])
}

/// The scopes in a text that separates them by spaces, each once. What is no scope is left out.
pub fn parse(text: &str) -> Vec<String> {
    let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    union([words.as_slice()])
}

/// Whether a text is a scope, as RFC 6749 spells them.
pub fn is_scope(text: &str) -> bool {
    let allowed = |byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.bytes().all(allowed)
}

/// Each scope of the lists once, in their order. What makes the list too long is left out.
fn union<const N: usize>(lists: [&[String]; N]) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    let mut n_bytes = 0;
    for scope in lists.into_iter().flatten() {
        let longer = n_bytes + scope.len() + 1;
        let fits = scope.len() <= MAX_SCOPE_BYTES && longer <= MAX_LIST_BYTES;
        if fits && is_scope(scope) && !scopes.contains(scope) && scopes.len() < MAX_SCOPES {
            scopes.push(scope.clone());
            n_bytes = longer;
        }
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::{ScopeChoice, is_scope, parse, step_up};
    use crate::oauth::{AuthorizationServer, ProtectedResource};

    fn list(text: &str) -> Vec<String> {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }

    fn server(metadata: &str) -> AuthorizationServer {
        let text = format!(r#"{{"issuer": "https://as.example"{metadata}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn resource(metadata: &str) -> ProtectedResource {
        let text = format!(r#"{{"resource": "https://mcp.example"{metadata}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_most_certain_word_about_scopes_counts() {
        let named = resource(r#", "scopes_supported": ["r", "s"]"#);
        let unnamed = resource("");
        let plain = server("");
        let select = |explicit: &str, challenged: Option<&str>, resource| {
            let (explicit, challenged) = (list(explicit), challenged.map(list));
            let choice = ScopeChoice {
                explicit: &explicit,
                challenged: challenged.as_deref(),
                resource,
                server: &plain,
                refreshable: true,
            };
            choice.select().join(" ")
        };
        assert_eq!(select("a b a", Some("c"), Some(&named)), "a b");
        assert_eq!(select("", Some("c"), Some(&named)), "c");
        assert_eq!(select("", None, Some(&named)), "r s");
        assert_eq!(select("", None, Some(&unnamed)), "");
        assert_eq!(select("", None, None), "");
    }

    #[test]
    fn offline_access_is_asked_for_where_it_exists_and_helps() {
        let cases = [
            (
                "a",
                r#", "scopes_supported": ["a", "offline_access"]"#,
                "a offline_access",
            ),
            ("", r#", "scopes_supported": ["offline_access"]"#, ""),
            ("a", r#", "scopes_supported": ["a"]"#, "a"),
            ("a", "", "a"),
            (
                "offline_access a",
                r#", "scopes_supported": ["offline_access"]"#,
                "offline_access a",
            ),
            (
                "a",
                r#", "scopes_supported": ["offline_access"], "grant_types_supported": ["authorization_code"]"#,
                "a",
            ),
            (
                "a",
                r#", "scopes_supported": ["offline_access"], "grant_types_supported": ["refresh_token"]"#,
                "a offline_access",
            ),
        ];
        for (challenged, metadata, expected) in cases {
            let challenged = list(challenged);
            let choice = ScopeChoice {
                explicit: &[],
                challenged: Some(&challenged),
                resource: None,
                server: &server(metadata),
                refreshable: true,
            };
            assert_eq!(choice.select().join(" "), expected, "{metadata}");
            let choice = ScopeChoice {
                refreshable: false,
                ..choice
            };
            assert_eq!(choice.select(), challenged, "{metadata}");
        }
    }

    #[test]
    fn a_step_up_keeps_what_was_there_in_its_order() {
        let scopes = step_up(&list("b a"), &list("a c"), &list("d b"));
        assert_eq!(scopes.join(" "), "b a c d");
        assert_eq!(step_up(&[], &[], &list("d")).join(" "), "d");
    }

    #[test]
    fn no_server_makes_us_ask_for_more_than_an_address_and_a_record_can_hold() {
        let long = |letter: char, length| letter.to_string().repeat(length);
        let (longest, too_long) = (long('a', 512), long('b', 513));
        assert_eq!(
            parse(&format!("{too_long} {longest} c")),
            [longest.as_str(), "c"]
        );
        let many: Vec<String> = (0..300).map(|number| number.to_string()).collect();
        assert_eq!(parse(&many.join(" ")), many[..200]);
        let large: Vec<String> = (0..150).map(|number| format!("{number:0>99}")).collect();
        let scopes = step_up(&list("first"), &large, &list("last"));
        assert_eq!(scopes.len(), 1 + 61 + 1);
        assert_eq!(scopes.last().unwrap(), "last");
        assert!(scopes.join(" ").len() <= 6 * 1024);
    }

    #[test]
    fn scopes_are_made_of_visible_signs() {
        for scope in ["a", "files:read", "https://x/y.z", "!#[]~"] {
            assert!(is_scope(scope), "{scope}");
        }
        for scope in ["", "a b", "a\"b", "a\\b", "ü", "a\n"] {
            assert!(!is_scope(scope), "{scope}");
        }
        assert_eq!(parse("  a b\ta \u{fc} \"c\" ").join(" "), "a b");
    }
}
