//! What a gateway has to be told to take access tokens, and what of that cannot be.

use std::time::Duration;

use url::{Host, Url};

use super::algorithm::Algorithm;

/// The longest leeway: clocks that differ more are to be set.
const MAX_LEEWAY: Duration = Duration::from_mins(5);
/// Issuers of one gateway.
const MAX_ISSUERS: usize = 16;
/// The longest name of an issuer. It stands in the audit log, after the name of who comes from there.
const MAX_ISSUER_BYTES: usize = 512;
/// Scopes and audiences of one gateway.
const MAX_WORDS: usize = 64;

/// What access tokens have to be to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthOptions {
    /// The address of the gateway as clients know it, such as `https://gateway.example/mcp`. Tokens are
    /// asked for it.
    pub resource: Url,
    /// What tokens may be for besides the resource.
    pub audiences: Vec<String>,
    /// Who may issue tokens. Each is trusted with its own names: what two of them call alike are two
    /// principals.
    pub issuers: Vec<IssuerOptions>,
    /// How tokens may be signed.
    pub algorithms: Vec<Algorithm>,
    /// The claim that names the principal.
    pub principal_claim: String,
    /// What every token has to allow.
    pub required_scopes: Vec<String>,
    /// What a token has to allow to manage the gateway.
    pub admin_scope: Option<String>,
    /// How much the clock of an issuer may differ.
    pub leeway: Duration,
}

/// Who may issue tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerOptions {
    /// Its name, as it stands in its tokens, to the letter.
    pub issuer: String,
    /// Where its keys are; its metadata says so if there is nothing here.
    pub jwks_uri: Option<Url>,
}

/// Why access tokens cannot be taken like that. Names the key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthSetupError {
    /// Nobody could come, or too many issuers are given.
    #[error("`issuers` has to name 1 to {MAX_ISSUERS} issuers of tokens")]
    Issuers,
    /// That is no issuer.
    #[error(
        "the issuer `{issuer}` cannot be used: it has to be an https address (or http on this \
         machine) of at most {MAX_ISSUER_BYTES} bytes, without spaces, user name, query and fragment"
    )]
    Issuer {
        /// What was given.
        issuer: String,
    },
    /// Two issuers are one.
    #[error("the issuer `{issuer}` is there twice")]
    IssuerTwice {
        /// Which.
        issuer: String,
    },
    /// Keys cannot be fetched from there.
    #[error(
        "`jwks_uri` of the issuer `{issuer}` cannot be used: it has to be an https address (or http \
         on this machine), without user name"
    )]
    JwksUri {
        /// Whose.
        issuer: String,
    },
    /// That is no resource.
    #[error("`resource` has to be an http or https address without query and fragment")]
    Resource,
    /// No token could be taken.
    #[error("`algorithms` is empty: leave it out to take all that are safe")]
    Algorithms,
    /// Nobody could have a name.
    #[error("`principal_claim` is empty: leave it out to use `sub`")]
    PrincipalClaim,
    /// That is no scope.
    #[error("`{scope}` is no scope: a scope has no spaces, quotes and control characters")]
    Scope {
        /// What was given.
        scope: String,
    },
    /// Too many of something.
    #[error("`{key}` has more than {MAX_WORDS} entries")]
    TooMany {
        /// Of what.
        key: &'static str,
    },
    /// Tokens would be good for too long.
    #[error("`leeway` is more than {} seconds: set the clocks instead", MAX_LEEWAY.as_secs())]
    Leeway,
}

impl OAuthOptions {
    /// How access tokens usually are: for this resource, of this issuer, with any signature that is
    /// safe, named by `sub`, with a minute of leeway.
    pub fn new(resource: Url, issuer: impl Into<String>) -> Self {
        Self {
            resource,
            audiences: Vec::new(),
            issuers: vec![IssuerOptions {
                issuer: issuer.into(),
                jwks_uri: None,
            }],
            algorithms: Algorithm::ALL.to_vec(),
            principal_claim: "sub".to_owned(),
            required_scopes: Vec::new(),
            admin_scope: None,
            leeway: Duration::from_mins(1),
        }
    }

    /// Whether this can be used.
    pub fn check(&self) -> Result<(), OAuthSetupError> {
        if !matches!(self.issuers.len(), 1..=MAX_ISSUERS) {
            return Err(OAuthSetupError::Issuers);
        }
        for (index, one) in self.issuers.iter().enumerate() {
            let issuer = || one.issuer.clone();
            if one.url().is_none() {
                return Err(OAuthSetupError::Issuer { issuer: issuer() });
            }
            let is_same = |other: &IssuerOptions| other.issuer == one.issuer;
            if self.issuers.iter().take(index).any(is_same) {
                return Err(OAuthSetupError::IssuerTwice { issuer: issuer() });
            }
            if one.jwks_uri.as_ref().is_some_and(|url| !is_safe(url)) {
                return Err(OAuthSetupError::JwksUri { issuer: issuer() });
            }
        }
        let resource = &self.resource;
        let is_plain = resource.query().is_none() && resource.fragment().is_none();
        if !matches!(resource.scheme(), "http" | "https") || !is_plain || !resource.has_host() {
            return Err(OAuthSetupError::Resource);
        }
        if self.algorithms.is_empty() {
            return Err(OAuthSetupError::Algorithms);
        }
        if self.principal_claim.is_empty() {
            return Err(OAuthSetupError::PrincipalClaim);
        }
        if self.leeway > MAX_LEEWAY {
            return Err(OAuthSetupError::Leeway);
        }
        self.check_words()
    }

    fn check_words(&self) -> Result<(), OAuthSetupError> {
        let lists = [
            ("audiences", &self.audiences),
            ("required_scopes", &self.required_scopes),
        ];
        if let Some((key, _)) = lists.into_iter().find(|(_, list)| list.len() > MAX_WORDS) {
            return Err(OAuthSetupError::TooMany { key });
        }
        let mut scopes = self.required_scopes.iter().chain(&self.admin_scope);
        match scopes.find(|scope| !is_scope(scope)) {
            Some(scope) => Err(OAuthSetupError::Scope {
                scope: scope.clone(),
            }),
            None => Ok(()),
        }
    }
}

impl IssuerOptions {
    /// Its name as an address, if it is one that can be used.
    pub(super) fn url(&self) -> Option<Url> {
        let unfit = |character: char| character.is_whitespace() || character.is_control();
        if self.issuer.len() > MAX_ISSUER_BYTES || self.issuer.contains(unfit) {
            return None;
        }
        let url = Url::parse(&self.issuer).ok()?;
        let is_plain = url.query().is_none() && url.fragment().is_none();
        (is_plain && is_safe(&url)).then_some(url)
    }
}

/// Whether nobody on the way can change what comes from there.
fn is_safe(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return false,
    };
    let is_bare = url.username().is_empty() && url.password().is_none();
    is_bare && (url.scheme() == "https" || (url.scheme() == "http" && is_local))
}

/// Whether a text is a scope, RFC 6749 section 3.3. What is none could break out of a header.
fn is_scope(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{IssuerOptions, OAuthOptions, OAuthSetupError};

    fn usual() -> OAuthOptions {
        let resource = "https://gateway.example/mcp".parse().unwrap();
        OAuthOptions::new(resource, "https://issuer.example/")
    }

    fn with(change: impl FnOnce(&mut OAuthOptions)) -> Result<(), OAuthSetupError> {
        let mut options = usual();
        change(&mut options);
        options.check()
    }

    #[test]
    fn issuers_are_safe_addresses_and_each_is_there_once() {
        assert_eq!(usual().check(), Ok(()));
        for good in [
            "https://issuer.example",
            "https://issuer.example/tenant/v2.0",
            "http://127.0.0.1:8080",
            "http://localhost:8080/realm",
            "http://[::1]:1",
        ] {
            let set = |options: &mut OAuthOptions| options.issuers[0].issuer = good.to_owned();
            assert_eq!(with(set), Ok(()), "{good}");
        }
        let long = format!("https://issuer.example/{}", "x".repeat(500));
        for bad in [
            "",
            "issuer",
            "http://issuer.example",
            "https://user@issuer.example",
            "https://issuer.example?tenant=1",
            "https://issuer.example/#x",
            "ftp://issuer.example",
            "https://issuer.example/a b",
            " https://issuer.example",
            "https://issuer.\nexample",
            &long,
        ] {
            let set = |options: &mut OAuthOptions| options.issuers[0].issuer = bad.to_owned();
            let issuer = bad.to_owned();
            assert_eq!(with(set), Err(OAuthSetupError::Issuer { issuer }), "{bad}");
        }
        let twice = with(|options| options.issuers.push(options.issuers[0].clone()));
        assert!(matches!(twice, Err(OAuthSetupError::IssuerTwice { .. })));
        let none = with(|options| options.issuers.clear());
        assert_eq!(none, Err(OAuthSetupError::Issuers));
        let many = with(|options| {
            options.issuers = (0..17)
                .map(|number| IssuerOptions {
                    issuer: format!("https://issuer-{number}.example"),
                    jwks_uri: None,
                })
                .collect();
        });
        assert_eq!(many, Err(OAuthSetupError::Issuers));
        let plain = with(|options| {
            options.issuers[0].jwks_uri = "http://keys.example/".parse().ok();
        });
        assert!(matches!(plain, Err(OAuthSetupError::JwksUri { .. })));
    }

    #[test]
    fn what_would_let_in_nobody_or_too_many_is_refused() {
        for bad in [
            "mailto:a@b.example",
            "https://a.example/?b",
            "https://a.example/#b",
        ] {
            let refused = with(|options| options.resource = bad.parse().unwrap());
            assert_eq!(refused, Err(OAuthSetupError::Resource), "{bad}");
        }
        let refused = with(|options| options.algorithms.clear());
        assert_eq!(refused, Err(OAuthSetupError::Algorithms));
        let refused = with(|options| options.principal_claim.clear());
        assert_eq!(refused, Err(OAuthSetupError::PrincipalClaim));
        let refused = with(|options| options.leeway = Duration::from_mins(6));
        assert_eq!(refused, Err(OAuthSetupError::Leeway));
        for bad in ["", "two words", "quo\"te", "back\\slash", "new\nline", "ä"] {
            let scope = bad.to_owned();
            let expected = Err(OAuthSetupError::Scope { scope });
            let refused = with(|options| options.required_scopes.push(bad.to_owned()));
            assert_eq!(refused, expected, "{bad:?}");
            let refused = with(|options| options.admin_scope = Some(bad.to_owned()));
            assert_eq!(refused, expected, "{bad:?}");
        }
        let refused = with(|options| options.audiences = vec![String::new(); 65]);
        let key = "audiences";
        assert_eq!(refused, Err(OAuthSetupError::TooMany { key }));
    }

    #[test]
    fn symmetric_signatures_and_none_cannot_be_configured() {
        use crate::oauth::Algorithm;
        for bad in ["none", "HS256", "HS384", "HS512", "ES512", "es256", ""] {
            assert!(bad.parse::<Algorithm>().is_err(), "{bad}");
        }
        for good in Algorithm::ALL {
            assert_eq!(good.as_str().parse(), Ok(good));
        }
        assert_eq!("Ed25519".parse(), Ok(Algorithm::EdDsa));
    }
}
