//! An address taken apart, and the forms in which its pieces are compared.

use url::{Host, Url};

/// An address, taken apart as whoever connects takes it apart.
pub(super) struct Target {
    pub(super) scheme: String,
    pub(super) host: Option<Host<String>>,
    pub(super) port: Option<u16>,
    pub(super) is_usual_port: bool,
    pub(super) path: String,
    pub(super) query: Option<String>,
    /// The text has what parsers silently drop or turn into something else.
    pub(super) is_ambiguous: bool,
}

impl Target {
    pub(super) fn of(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let is_odd = |character: char| {
            character.is_control() || character.is_whitespace() || character == '\\'
        };
        let host = url.host().and_then(|host| match host {
            Host::Domain("") => None,
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                Some(Host::Domain(name.to_ascii_lowercase()))
            }
            Host::Ipv4(address) => Some(Host::Ipv4(address)),
            Host::Ipv6(address) => Some(Host::Ipv6(address)),
        });
        Some(Self {
            scheme: url.scheme().to_owned(),
            host,
            port: url.port_or_known_default(),
            // The parser drops the port that is the usual one.
            is_usual_port: url.port().is_none(),
            path: normal(url.path()),
            query: url.query().map(normal),
            is_ambiguous: text.contains(is_odd),
        })
    }
}

/// Undoes a `%` that was not needed, and writes the others in upper case.
pub(super) fn normal(text: &str) -> String {
    decoded(text, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    })
}

/// Undoes every `%`, and those that come to light by that, as a careless server would.
pub(super) fn undone(text: &str) -> String {
    let mut text = undone_once(text);
    for _ in 0..3 {
        let next = undone_once(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text.replace('\\', "/")
}

pub(super) fn undone_once(text: &str) -> String {
    decoded(text, |_| true)
}

fn decoded(text: &str, is_undone: impl Fn(u8) -> bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                hex(*high, *low).map(|byte| (byte, [*high, *low], after))
            }
            _ => None,
        };
        match escaped {
            Some((byte, _, after)) if is_undone(byte) => {
                bytes.push(byte);
                rest = after;
            }
            Some((_, digits, after)) => {
                bytes.push(b'%');
                bytes.extend(digits.map(|digit| digit.to_ascii_uppercase()));
                rest = after;
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Whether undoing `%` changes where the path leads.
pub(super) fn has_hidden_separator(path: &str) -> bool {
    let count = |text: &str| text.bytes().filter(|byte| b"/\\\0".contains(byte)).count();
    count(&undone(path)) != count(path)
}

pub(super) fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}
