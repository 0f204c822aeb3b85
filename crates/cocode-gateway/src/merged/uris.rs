//! Resources of many servers: how a URI names its server where it has to, and which URIs a template
//! may stand for.
//!
//! A resource keeps its URI. Where two servers list the same one, the second is shown as
//! `cocode://SERVER/URI`: the name of its server, percent-encoded, and then the URI as it is. That
//! form leads to its server always, shown or not, and it works for URI templates, too.

use cocode_core::{ServerName, percent_encode};

const SCHEME: &str = "cocode://";
/// Longer URIs come of no template.
const MAX_MATCHED_BYTES: usize = 8 * 1024;
/// Nothing comes of a template with more pieces.
const MAX_PIECES: usize = 128;

/// A URI that names its server.
pub(crate) fn named(server: &ServerName, uri: &str) -> String {
    format!("{SCHEME}{}/{uri}", percent_encode(server.as_str()))
}

/// The name of the server in a URI, as it was encoded, and the server's own URI.
pub(crate) fn split(uri: &str) -> Option<(ServerName, &str)> {
    let (scheme, rest) = uri.split_at_checked(SCHEME.len())?;
    let (server, uri) = rest.split_once('/')?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(())?;
    Some((decoded(server)?, uri))
}

/// Whether a URI names its server: what follows the name is a URI itself, with a scheme. Others of this form, such as
/// `cocode://conversations/ID`, may be those of a server.
pub(crate) fn names_server(uri: &str) -> bool {
    let rest = split(uri).and_then(|(_, rest)| rest.split_once(':'));
    rest.is_some_and(|(scheme, _)| {
        let mut bytes = scheme.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// The server behind an encoded name.
pub(crate) fn decoded(text: &str) -> Option<ServerName> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()?.parse().ok()
}

/// A URI template (RFC 6570), as far as it takes to see whether a URI may come of it.
#[derive(Debug)]
pub(crate) struct Pattern {
    pieces: Vec<Piece>,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// This text.
    Text(String),
    /// Anything, perhaps nothing: values that begin with this, if it is given, and that go on to the
    /// next separator unless they may hold some.
    Value {
        begins: Option<char>,
        holds_separators: bool,
    },
}

impl Pattern {
    pub(crate) fn new(template: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('{') {
            let Some((expression, after)) = after.split_once('}') else {
                break;
            };
            if !text.is_empty() {
                pieces.push(Piece::Text(text.to_owned()));
            }
            let operator = expression.chars().next();
            let piece = match operator {
                Some('+') => Piece::of(None, true),
                Some('#') => Piece::of(Some('#'), true),
                Some(operator @ ('?' | '&' | ';' | '/' | '.')) => Piece::of(Some(operator), true),
                _ => Piece::of(None, false),
            };
            pieces.push(piece);
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Self { pieces }
    }

    /// Whether it begins with the scheme of URIs that name their server.
    pub(crate) fn is_of_scheme(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text(text)) if split(&format!("{text}/")).is_some())
    }

    /// How many bytes it fixes: the more, the better it fits.
    pub(crate) fn fixed(&self) -> usize {
        let fixed = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Value { .. } => 0,
        });
        fixed.sum()
    }

    /// Whether a URI may come of it.
    pub(crate) fn matches(&self, uri: &str) -> bool {
        let is_elsewhere = match self.pieces.first() {
            Some(Piece::Text(text)) => !uri.starts_with(text.as_str()),
            _ => false,
        };
        if is_elsewhere || uri.len() > MAX_MATCHED_BYTES || self.pieces.len() > MAX_PIECES {
            return false;
        }
        // The places in the URI that the pieces so far lead to.
        let mut places = vec![false; uri.len() + 1];
        places[0] = true;
        for piece in &self.pieces {
            places = piece.advance(uri, &places);
        }
        places.last() == Some(&true)
    }
}

impl Piece {
    fn of(begins: Option<char>, holds_separators: bool) -> Self {
        Self::Value {
            begins,
            holds_separators,
        }
    }

    fn advance(&self, uri: &str, from: &[bool]) -> Vec<bool> {
        let mut reached = vec![false; from.len()];
        match self {
            Self::Text(text) => {
                let ends = uri.match_indices_overlapping(text);
                for (begin, end) in ends {
                    reached[end] |= from[begin];
                }
            }
            Self::Value {
                begins,
                holds_separators,
            } => {
                let mut is_inside = false;
                for (place, is_start) in from.iter().enumerate() {
                    // A value that is not there is nothing at all.
                    reached[place] |= *is_start || is_inside;
                    let byte = uri.as_bytes().get(place).copied();
                    let goes_on = byte.is_some_and(|byte| {
                        *holds_separators || !matches!(byte, b'/' | b'?' | b'#')
                    });
                    let may_begin =
                        begins.is_none_or(|begins| byte.map(char::from) == Some(begins));
                    is_inside = goes_on && (is_inside || (*is_start && may_begin));
                }
            }
        }
        reached
    }
}

/// Where a text is found, also where it overlaps with itself.
trait Overlapping {
    fn match_indices_overlapping(&self, text: &str) -> Vec<(usize, usize)>;
}

impl Overlapping for str {
    fn match_indices_overlapping(&self, text: &str) -> Vec<(usize, usize)> {
        let (whole, text) = (self.as_bytes(), text.as_bytes());
        let found = whole.windows(text.len()).enumerate();
        let found = found.filter(|(_, window)| *window == text);
        found
            .map(|(begin, _)| (begin, begin + text.len()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MATCHED_BYTES, MAX_PIECES, Pattern, decoded, named, percent_encode, split};

    #[test]
    fn a_uri_that_names_its_server_leads_back() {
        for server in ["files", "my server", "a/b:c", "日本", "100%", "A.b~c_d-e"] {
            let server = server.parse().unwrap();
            for uri in ["file:///a?b#c", "x", "", "cocode://b/x", "file:///{path}"] {
                let shown = named(&server, uri);
                assert_eq!(split(&shown), Some((server.clone(), uri)), "{shown}");
            }
            assert_eq!(decoded(&percent_encode(server.as_str())), Some(server));
        }
        for other in [
            "file:///x",
            "cocode://",
            "cocode://a",
            "cocode:///x",
            "cocode://%zz/x",
        ] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[track_caller]
    fn check(template: &str, uri: &str, expected: bool) {
        assert_eq!(
            Pattern::new(template).matches(uri),
            expected,
            "{template} {uri}"
        );
    }

    #[test]
    fn templates_match_what_may_come_of_them() {
        check("file:///{path}", "file:///a", true);
        check("file:///{path}", "file:///a/b", false);
        check("file:///{+path}", "file:///a/b", true);
        check("file:///{path}", "http:///a", false);
        check("db://{table}/rows/{id}", "db://users/rows/7", true);
        check("db://{table}/rows/{id}", "db://users/columns/7", false);
        check("db://{table}/rows/{id}", "db://a/b/rows/7", false);
        check("x://a{/more*}", "x://a", true);
        check("x://a{/more*}", "x://a/b/c", true);
        check("x://a{/more*}", "x://ab", false);
        check("x://a{?q,r}", "x://a?q=1&r=2", true);
        check("x://a{?q,r}", "x://a#q", false);
        check("x://{a}{b}", "x://ab", true);
        check("x://aba{v}aba", "x://abaaba", true);
        check("x://aba{v}aba", "x://ababa", false);
        check("{v}", "", true);
        check("é{v}", "éa", true);
        check("odd{", "odd{", true);
    }

    #[test]
    fn a_hostile_template_is_decided_in_bounded_time() {
        let template = Pattern::new(&"{a}x".repeat(64));
        let uri = "x".repeat(2_000);
        assert!(template.matches(&uri));
        assert!(!template.matches(&format!("{uri}y")));
        assert!(!Pattern::new("{+a}").matches(&"x".repeat(MAX_MATCHED_BYTES + 1)));
        assert!(!Pattern::new(&"{a}".repeat(MAX_PIECES + 1)).matches("x"));
    }

    #[test]
    fn more_text_fits_better() {
        assert!(Pattern::new("a://b/{c}").fixed() > Pattern::new("a://{+c}").fixed());
    }
}
