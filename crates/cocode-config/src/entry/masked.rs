//! What of a value may be seen where nothing is approved: references and their structure, but no
//! text that may be a secret. A guess for lists, not for decisions: whoever approves an entry sees
//! all of it.

use crate::expand::{
    ESCAPE, MAX_NESTING, Piece, is_variable_name, name_and_default, pieces, whole_reference,
};

use super::secrets::{is_readable, is_token, is_token_part, looks_random, names_a_secret};

/// Stands for what is not shown.
pub(super) const HIDDEN: &str = "…";

/// Words before a credential that say how it is to be understood.
const SCHEMES: &[&str] = &["bearer", "basic", "digest", "token", "apikey", "key"];

/// A value that may be a secret, such as one of `env`: its references, with all other text hidden.
pub(super) fn value(text: &str) -> String {
    value_at(text, 0)
}

/// A word of a command line, or a whole command.
pub(super) fn text(text: &str) -> String {
    word_at(text, 0)
}

/// An address: of its credentials, query and fragment only the references, and no parts of its path
/// that look like keys.
pub(super) fn url(text: &str) -> String {
    url_at(text, 0)
}

/// The name of a variable; what can be none may be what somebody took for its value.
pub(super) fn variable(name: &str) -> String {
    let has_mark = name.contains('_') || !name.contains(|one: char| one.is_ascii_lowercase());
    let is_random = looks_random(name) && !has_mark;
    if is_variable_name(name) && !is_token(name) && !is_random {
        name.to_owned()
    } else {
        HIDDEN.to_owned()
    }
}

/// The words of a command line.
pub(super) fn words<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut masked = Vec::new();
    let mut is_value_of_secret = false;
    for word in words {
        let is_option = word.starts_with('-');
        masked.push(if is_value_of_secret && !is_option {
            value(word)
        } else {
            text(word)
        });
        is_value_of_secret = is_option && !word.contains('=') && names_a_secret(word);
    }
    masked
}

fn value_at(text: &str, depth: usize) -> String {
    if whole_reference(text).is_some() {
        return text.to_owned();
    }
    let mut masked = String::new();
    let mut run = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Literal(text) | Piece::Unclosed(text) => run.push_str(text),
            Piece::Escape => run.push_str(ESCAPE),
            Piece::Reference(inner) => {
                masked.push_str(&masked_run(&std::mem::take(&mut run)));
                masked.push_str(&reference(inner, depth, value_at));
            }
        }
    }
    masked.push_str(&masked_run(&run));
    masked
}

/// Text between references: only how a credential is to be understood.
fn masked_run(run: &str) -> String {
    let text = run.trim();
    let (before, after) = run.split_once(text).unwrap_or_default();
    let first = text.split(char::is_whitespace).next().unwrap_or_default();
    let is_scheme = SCHEMES.contains(&first.to_ascii_lowercase().as_str());
    match (text.is_empty(), is_scheme) {
        (true, _) => run.to_owned(),
        (false, true) if first == text => run.to_owned(),
        (false, true) => format!("{before}{first} {HIDDEN}{after}"),
        (false, false) => format!("{before}{HIDDEN}{after}"),
    }
}

/// What is between `${` and `}`: the name, and the default as far as it may be seen.
fn reference(inner: &str, depth: usize, mask: fn(&str, usize) -> String) -> String {
    if whole_reference(inner).is_some() {
        return format!("${{{inner}}}");
    }
    let (name, default) = name_and_default(inner);
    let is_secret = names_a_secret(name);
    let name = if is_variable_name(name) { name } else { HIDDEN };
    match default {
        None => format!("${{{name}}}"),
        Some(_) if depth >= MAX_NESTING => format!("${{{name}:-{HIDDEN}}}"),
        Some(default) if is_secret => format!("${{{name}:-{}}}", value_at(default, depth + 1)),
        Some(default) => format!("${{{name}:-{}}}", mask(default, depth + 1)),
    }
}

fn word_at(word: &str, depth: usize) -> String {
    if let Some((name, value)) = split_outside(word, '=')
        && names_a_secret(name)
        && !value.contains(is_readable)
    {
        return format!("{}={}", text_at(name, depth), value_at(value, depth));
    }
    header(word, depth).unwrap_or_else(|| text_at(word, depth))
}

/// `Authorization: Bearer xyz` in one word, as programs that pass headers on want it.
fn header(word: &str, depth: usize) -> Option<String> {
    let (name, value) = split_outside(word, ':')?;
    // What could be a command is not hidden by a name in front of it.
    let last = value.rsplit(char::is_whitespace).next()?;
    let is_address = value.starts_with("//");
    let is_secret = names_a_secret(name) && !is_address && !last.contains(is_readable);
    is_secret.then(|| format!("{}:{}", text_at(name, depth), value_at(value, depth)))
}

/// Any text: without tokens of well-known services, and with addresses as they are shown.
fn text_at(text: &str, depth: usize) -> String {
    if is_address(text, char::is_whitespace) {
        return url_at(text, depth);
    }
    let mut masked = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Escape => masked.push_str(ESCAPE),
            Piece::Reference(inner) => masked.push_str(&reference(inner, depth, word_at)),
            Piece::Literal(text) | Piece::Unclosed(text) => {
                for word in text.split_inclusive(char::is_whitespace) {
                    let end = word.trim_end();
                    masked.push_str(&if is_address(end, |one| one != '&' && is_readable(one)) {
                        url_at(end, depth)
                    } else {
                        without_tokens(end)
                    });
                    masked.push_str(word.get(end.len()..).unwrap_or_default());
                }
            }
        }
    }
    masked
}

/// Whether there is a scheme, and nothing that ends an address.
fn is_address(text: &str, is_end: fn(char) -> bool) -> bool {
    let is_scheme = |at: usize| text.get(at..).is_some_and(|from| from.starts_with("://"));
    outside(text).any(|(at, _)| is_scheme(at))
        && !outside(text).any(|(_, character)| is_end(character))
}

fn without_tokens(text: &str) -> String {
    let mut masked = String::new();
    for part in text.split_inclusive(|character: char| !is_token_part(character)) {
        let token = part.trim_end_matches(|character: char| !is_token_part(character));
        masked.push_str(if is_token(token) { HIDDEN } else { token });
        masked.push_str(part.get(token.len()..).unwrap_or_default());
    }
    masked
}

fn url_at(url: &str, depth: usize) -> String {
    let end = outside(url).find(|(_, character)| matches!(character, '?' | '#'));
    let end = end.map_or(url.len(), |(at, _)| at);
    let (url, more) = url.split_at_checked(end).unwrap_or((url, ""));
    let scheme = outside(url).find_map(|(at, _)| {
        let from = url.get(at..)?;
        from.starts_with("://").then_some(at + 3)
    });
    let (scheme, rest) = url
        .split_at_checked(scheme.unwrap_or_default())
        .unwrap_or(("", url));
    let end = outside(rest).find(|(_, character)| matches!(character, '/' | '\\'));
    let end = end.map_or(rest.len(), |(at, _)| at);
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let host = outside(authority).filter(|(_, character)| *character == '@');
    let host = host.last().map_or(0, |(at, _)| at + 1);
    let (user, host) = authority.split_at_checked(host).unwrap_or(("", authority));
    let mut masked = scheme.to_owned();
    if let Some(user) = user.strip_suffix('@') {
        masked.push_str(&value_at(user, depth));
        masked.push('@');
    }
    masked.push_str(&path_at(host, depth));
    masked.push_str(&path_at(path, depth));
    if let Some(mark) = more.chars().next() {
        let more = more.get(mark.len_utf8()..).unwrap_or_default();
        masked.push(mark);
        masked.push_str(&value_at(more, depth));
    }
    masked
}

/// Parts that are made as keys are, and are no words, are hidden.
fn path_at(path: &str, depth: usize) -> String {
    let mut masked = String::new();
    for piece in pieces(path) {
        match piece {
            Piece::Escape => masked.push_str(ESCAPE),
            Piece::Reference(inner) => masked.push_str(&reference(inner, depth, word_at)),
            Piece::Literal(text) | Piece::Unclosed(text) => {
                for part in text.split_inclusive('/') {
                    let segment = part.strip_suffix('/').unwrap_or(part);
                    let is_key = looks_random(segment) || is_token(segment);
                    masked.push_str(if is_key { HIDDEN } else { segment });
                    masked.push_str(part.get(segment.len()..).unwrap_or_default());
                }
            }
        }
    }
    masked
}

/// The characters of a text that are not in a reference, with where they are.
fn outside(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut start = 0;
    pieces(text).flat_map(move |piece| {
        let (literal, length) = match piece {
            Piece::Literal(text) | Piece::Unclosed(text) => (text, text.len()),
            Piece::Escape => ("", ESCAPE.len()),
            Piece::Reference(inner) => ("", inner.len() + "${}".len()),
        };
        let from = start;
        start += length;
        let characters = literal.char_indices();
        characters.map(move |(at, character)| (from + at, character))
    })
}

/// What is before and after the first such character that is not in a reference.
fn split_outside(text: &str, mark: char) -> Option<(&str, &str)> {
    let (at, _) = outside(text).find(|(_, character)| *character == mark)?;
    Some((text.get(..at)?, text.get(at + mark.len_utf8()..)?))
}
