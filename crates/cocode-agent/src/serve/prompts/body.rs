//! The text of a prompt, and the places in it where arguments go: `{{name}}`, `$1`, `$ARGUMENTS`. Two
//! dollars are one.

use std::collections::BTreeMap;

/// The argument of a prompt that names none of its own, and takes whatever it is given.
pub(super) const ALL: &str = "arguments";

/// A text with places for arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Body(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// The argument of this name.
    Named(String),
    /// The argument at this place, from one.
    Place(usize),
    /// All arguments.
    All,
}

impl Body {
    pub(super) fn parse(text: &str) -> Self {
        let (mut pieces, mut rest) = (Vec::new(), text);
        let mut plain = String::new();
        while let Some(at) = rest.find(['$', '{']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            let (piece, after) = place(from);
            rest = after;
            match piece {
                Piece::Text(text) => plain.push_str(&text),
                piece => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(piece);
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Self(pieces)
    }

    /// The places for arguments.
    pub(super) fn places(&self) -> impl Iterator<Item = &Piece> {
        let is_place = |piece: &&Piece| !matches!(piece, Piece::Text(_));
        self.0.iter().filter(is_place)
    }

    /// The text with these arguments, whose names are in order; none if it is too long. What is
    /// inserted is not looked at again.
    pub(super) fn expand(
        &self,
        names: &[&str],
        given: &BTreeMap<String, String>,
        max_bytes: usize,
    ) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            let by_name = |name: &str| given.get(name).map_or("", String::as_str);
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Named(name) => text.push_str(by_name(name)),
                Piece::Place(place) => {
                    let name = names.get(place.saturating_sub(1));
                    text.push_str(name.map_or("", |name| by_name(name)));
                }
                Piece::All => {
                    let all = names.iter().map(|name| by_name(name));
                    let all: Vec<&str> = all.filter(|value| !value.is_empty()).collect();
                    text.push_str(&all.join(" "));
                }
            }
            if text.len() > max_bytes {
                return None;
            }
        }
        Some(text)
    }
}

/// What begins here: a place, or else one character.
fn place(from: &str) -> (Piece, &str) {
    if let Some(rest) = from.strip_prefix("$$") {
        return (Piece::Text("$".to_owned()), rest);
    }
    if let Some(rest) = from.strip_prefix("$ARGUMENTS") {
        return (Piece::All, rest);
    }
    if let Some(rest) = from.strip_prefix('$') {
        let digit = rest.chars().next().and_then(|first| first.to_digit(10));
        return match digit {
            Some(digit @ 1..) => {
                let after = rest.trim_start_matches(|first: char| first.is_ascii_digit());
                // More digits than one are an amount of money, or something else.
                if rest.len() - after.len() == 1 {
                    (Piece::Place(digit as usize), after)
                } else {
                    (Piece::Text("$".to_owned()), rest)
                }
            }
            _ => (Piece::Text("$".to_owned()), rest),
        };
    }
    let named = from.strip_prefix("{{").and_then(|rest| {
        let (name, after) = rest.split_once("}}")?;
        let name = name.trim();
        is_name(name).then(|| (Piece::Named(name.to_owned()), after))
    });
    named.unwrap_or_else(|| {
        let mut characters = from.chars();
        let first = characters.next().map(String::from).unwrap_or_default();
        (Piece::Text(first), characters.as_str())
    })
}

/// Whether an argument may be called this.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is_part)
}
