//! Patterns of addresses, for the policy. Compared piece by piece, so that a `*` never reaches from
//! one piece of an address into the next.
//!
//! # What a pattern means
//!
//! `SCHEME://HOST[:PORT][/PATH[?QUERY]]`, or `unix:///PATH`, or `*` for every address.
//!
//! | piece | in the pattern | without it |
//! |---|---|---|
//! | scheme | `http`, `https`, `ws`, `wss`, `unix`, or `*` | an error |
//! | host | any text with `*`; `*.example.com` is not `example.com` itself | an error |
//! | port | a number or `*` | the usual port of the scheme |
//! | path | any text with `*`, which also matches `/` | any path and query |
//! | query | any text with `*` | none, or any if the path ends with `*` |
//!
//! A host of digits and `*` alone means IPv4 addresses: `10.*` is not `10.example.com`. Credentials,
//! upper case, the two forms of international names, `..` and needless `%` make no difference.
//!
//! # Why it matters what for
//!
//! Whoever is in doubt must not be let through. [`UrlPattern::allows`] reads narrowly: an address
//! that two programs may read in two ways (`\`, control characters, a `%2F` under a partial path)
//! is not allowed. [`UrlPattern::denies`] reads widely: a missing port means all ports, a missing
//! query any query, and the path is also compared with every `%` undone.

mod target;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use cocode_core::Wildcard;
use thiserror::Error;
use url::{Host, Url};

use target::{Target, has_hidden_separator, normal, undone, undone_once, without_dots};

/// The longest pattern.
pub const MAX_URL_PATTERN_BYTES: usize = 2048;
/// The schemes that servers can have.
const SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "unix"];
const UNIX: &str = "unix";

/// A pattern of addresses.
///
/// ```
/// use cocode_config::UrlPattern;
///
/// let pattern: UrlPattern = "https://*.example.com/*".parse()?;
/// assert!(pattern.allows("https://mcp.example.com/v1?x=1"));
/// assert!(!pattern.allows("https://mcp.example.com@evil.org/"));
/// # Ok::<(), cocode_config::InvalidUrlPattern>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    text: String,
    /// Nothing for `*`, which means every address.
    pieces: Option<Pieces>,
}

/// Why a text is no pattern of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidUrlPattern {
    /// Nothing there.
    #[error("a pattern of addresses cannot be empty")]
    Empty,
    /// Longer than [`MAX_URL_PATTERN_BYTES`].
    #[error("a pattern of addresses has at most {MAX_URL_PATTERN_BYTES} bytes")]
    TooLong,
    /// A character that no address has as it is.
    #[error("a pattern of addresses cannot contain {0:?}")]
    Character(char),
    /// No `://`.
    #[error("a pattern of addresses begins with a scheme, as in `https://` or `*://`")]
    NoScheme,
    /// A scheme that no server has.
    #[error("`{0}` is not one of http, https, ws, wss, unix, *")]
    Scheme(String),
    /// Nothing between `://` and the path.
    #[error("the pattern has no host; `*` means any")]
    NoHost,
    /// `unix://` is followed by a path alone.
    #[error("a pattern of unix sockets is `unix:///path`")]
    UnixHost,
    /// `user@`.
    #[error("credentials never count, and cannot be part of a pattern")]
    Credentials,
    /// A host that cannot be one.
    #[error("`{0}` cannot be a host")]
    Host(String),
    /// A port that cannot be one.
    #[error("`{0}` is not a port; write a number from 1 to 65535, or `*`")]
    Port(String),
    /// `.` or `..`, or a query without a path.
    #[error("`{0}` cannot be a path; it begins with `/` and has no `.` and `..` in it")]
    Path(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pieces {
    /// Nothing for `*`.
    scheme: Option<String>,
    host: HostPattern,
    port: PortPattern,
    /// Nothing where the pattern says nothing of it.
    path: Option<PathPattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Any,
    /// Of unix sockets.
    Absent,
    Name(Wildcard),
    V4(Wildcard),
    V6(Ipv6Addr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortPattern {
    Any,
    Usual,
    Exactly(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PathPattern {
    path: Wildcard,
    query: Option<Wildcard>,
}

impl UrlPattern {
    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the address is meant beyond doubt.
    pub fn allows(&self, url: &str) -> bool {
        let Some(target) = Target::of(url) else {
            return false;
        };
        let Some(pieces) = &self.pieces else {
            return true;
        };
        !target.is_ambiguous
            && pieces.matches_scheme(&target)
            && pieces.host.allows(target.host.as_ref())
            && match pieces.port {
                PortPattern::Any => true,
                PortPattern::Usual => target.is_usual_port,
                PortPattern::Exactly(port) => target.port == Some(port),
            }
            && (pieces.path.as_ref()).is_none_or(|pattern| pattern.allows(&target))
    }

    /// Whether the address may be meant. One that cannot be understood may.
    pub fn denies(&self, url: &str) -> bool {
        let (Some(target), Some(pieces)) = (Target::of(url), &self.pieces) else {
            return true;
        };
        pieces.matches_scheme(&target)
            && pieces.host.denies(target.host.as_ref())
            && match pieces.port {
                PortPattern::Any | PortPattern::Usual => true,
                PortPattern::Exactly(port) => target.port == Some(port),
            }
            && (pieces.path.as_ref()).is_none_or(|pattern| pattern.denies(&target))
    }
}

impl FromStr for UrlPattern {
    type Err = InvalidUrlPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(InvalidUrlPattern::Empty);
        }
        if text.len() > MAX_URL_PATTERN_BYTES {
            return Err(InvalidUrlPattern::TooLong);
        }
        let is_odd = |character: &char| {
            character.is_control() || character.is_whitespace() || matches!(character, '\\' | '#')
        };
        if let Some(character) = text.chars().find(is_odd) {
            return Err(InvalidUrlPattern::Character(character));
        }
        let pieces = if text.bytes().all(|byte| byte == b'*') {
            None
        } else {
            Some(Pieces::of(text)?)
        };
        let text = text.to_owned();
        Ok(Self { text, pieces })
    }
}

impl fmt::Display for UrlPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl Pieces {
    fn of(text: &str) -> Result<Self, InvalidUrlPattern> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidUrlPattern::NoScheme)?;
        let scheme = match scheme.to_ascii_lowercase() {
            any if any == "*" => None,
            known if SCHEMES.contains(&known.as_str()) => Some(known),
            other => return Err(InvalidUrlPattern::Scheme(other)),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if scheme.as_deref() == Some(UNIX) {
            if !authority.is_empty() || path.is_empty() {
                return Err(InvalidUrlPattern::UnixHost);
            }
            return Ok(Self {
                path: Some(PathPattern::of(path, "unix://")?),
                scheme,
                host: HostPattern::Absent,
                port: PortPattern::Any,
            });
        }
        if authority.contains('@') {
            return Err(InvalidUrlPattern::Credentials);
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let path = if path.is_empty() {
            None
        } else {
            Some(PathPattern::of(path, "https://host")?)
        };
        Ok(Self {
            scheme,
            host: HostPattern::of(host)?,
            port: PortPattern::of(port)?,
            path,
        })
    }

    fn matches_scheme(&self, target: &Target) -> bool {
        (self.scheme.as_ref()).is_none_or(|scheme| *scheme == target.scheme)
    }
}

impl HostPattern {
    fn of(text: &str) -> Result<Self, InvalidUrlPattern> {
        let invalid = || InvalidUrlPattern::Host(text.to_owned());
        if text.is_empty() {
            return Err(InvalidUrlPattern::NoHost);
        }
        if text.bytes().all(|byte| byte == b'*') {
            return Ok(Self::Any);
        }
        if !text.contains('*') {
            return match exact_host(text).ok_or_else(invalid)? {
                Host::Domain(name) => Ok(Self::Name(Wildcard::new(name))),
                Host::Ipv4(address) => Ok(Self::V4(Wildcard::new(address.to_string()))),
                Host::Ipv6(address) => Ok(Self::V6(address)),
            };
        }
        // Each label that has no star is brought into the form that addresses have.
        let mut labels = Vec::new();
        let trimmed = text.strip_suffix('.').unwrap_or(text);
        for label in trimmed.split('.') {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_*".contains(&byte);
            let label = if label.bytes().all(is_plain) {
                label.to_ascii_lowercase()
            } else if label.contains('*') {
                return Err(invalid());
            } else {
                match exact_host(label) {
                    Some(Host::Domain(label)) => label,
                    _ => return Err(invalid()),
                }
            };
            if label.is_empty() {
                return Err(invalid());
            }
            labels.push(label);
        }
        let host = labels.join(".");
        let is_number = host
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".*".contains(&byte))
            && host.bytes().any(|byte| byte.is_ascii_digit());
        let pattern = Wildcard::new(host);
        Ok(if is_number {
            Self::V4(pattern)
        } else {
            Self::Name(pattern)
        })
    }

    fn allows(&self, host: Option<&Host<String>>) -> bool {
        match (self, host) {
            (Self::Absent, None) | (Self::Any, Some(_)) => true,
            (Self::Name(pattern), Some(Host::Domain(name))) => pattern.matches(name),
            (Self::V4(pattern), Some(Host::Ipv4(address))) => pattern.matches(&address.to_string()),
            (Self::V6(pattern), Some(Host::Ipv6(address))) => pattern == address,
            _ => false,
        }
    }

    fn denies(&self, host: Option<&Host<String>>) -> bool {
        let v4 = match host {
            Some(Host::Ipv6(address)) => address.to_ipv4_mapped(),
            _ => None,
        };
        match (self, host) {
            (Self::Name(pattern) | Self::V4(pattern), Some(Host::Domain(text))) => {
                pattern.matches(text)
            }
            (Self::Name(pattern) | Self::V4(pattern), Some(Host::Ipv4(address))) => {
                pattern.matches(&address.to_string())
            }
            (Self::Name(pattern) | Self::V4(pattern), Some(Host::Ipv6(_))) => {
                v4.is_some_and(|address: Ipv4Addr| pattern.matches(&address.to_string()))
            }
            (Self::V6(pattern), Some(Host::Ipv4(address))) => {
                pattern.to_ipv4_mapped() == Some(*address)
            }
            _ => self.allows(host),
        }
    }
}

impl PortPattern {
    fn of(text: Option<&str>) -> Result<Self, InvalidUrlPattern> {
        let Some(text) = text else {
            return Ok(Self::Usual);
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let port = text.parse().ok().filter(|port| is_number && *port > 0);
        port.map(Self::Exactly)
            .ok_or_else(|| InvalidUrlPattern::Port(text.to_owned()))
    }
}

impl PathPattern {
    /// `before` is what makes an address of the path, so that it is written as addresses are.
    fn of(text: &str, before: &str) -> Result<Self, InvalidUrlPattern> {
        let invalid = || InvalidUrlPattern::Path(text.to_owned());
        let written = text.split('?').next().unwrap_or_default();
        let has_dots = |segment: &str| {
            let segment = segment.to_ascii_lowercase().replace("%2e", ".");
            segment == "." || segment == ".."
        };
        if !text.starts_with('/') || written.split('/').any(has_dots) {
            return Err(invalid());
        }
        let url = Url::parse(&format!("{before}{text}")).ok();
        let url = url.ok_or_else(invalid)?;
        let query = url.query().map(|query| Wildcard::new(normal(query)));
        let path = Wildcard::new(normal(url.path()));
        Ok(Self { path, query })
    }

    fn allows(&self, target: &Target) -> bool {
        let is_any = self.path.as_str() == "/*";
        let is_clear = is_any || !has_hidden_separator(&target.path);
        let ends_open = self.path.as_str().ends_with('*');
        is_clear
            && self.path.matches(&target.path)
            && match (&self.query, &target.query) {
                (Some(pattern), Some(query)) => pattern.matches(query),
                (Some(pattern), None) => pattern.matches(""),
                (None, Some(_)) => ends_open,
                (None, None) => true,
            }
    }

    fn denies(&self, target: &Target) -> bool {
        let query = target.query.as_deref().unwrap_or_default();
        let undone = undone(&target.path);
        let path = self.path.matches(&target.path)
            || self.path.matches(&undone)
            || self.path.matches(&without_dots(&undone));
        path && (self.query.as_ref())
            .is_none_or(|pattern| pattern.matches(query) || pattern.matches(&undone_once(query)))
    }
}

/// A host without stars, as addresses have it.
fn exact_host(text: &str) -> Option<Host<String>> {
    if text.contains(['/', '?', '@', '%']) {
        return None;
    }
    let url = Url::parse(&format!("https://{text}")).ok()?;
    let host = url.host()?.to_owned();
    match host {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name);
            (!name.is_empty()).then(|| Host::Domain(name.to_owned()))
        }
        address => Some(address),
    }
}

#[cfg(test)]
#[path = "url_pattern_tests.rs"]
mod tests;
