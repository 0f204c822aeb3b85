//! `${VAR}` and `${VAR:-default}` in values, and references to secrets.
//!
//! A default may hold references of its own. `$${` stands for a plain `${`. A value or default that
//! is nothing but `keyring:NAME` or `cmd:LINE`, or a piece `${keyring:NAME}` or `${cmd:LINE}`, names
//! a secret: it is left to whoever connects, and refused where secrets have no place. What comes out
//! of a variable is text and nothing else.

use cocode_core::{Template, TemplatePart};

/// Where variables come from.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How deep defaults may be nested.
pub(crate) const MAX_NESTING: usize = 8;
/// The longest value that expansion may make.
pub const MAX_EXPANDED_BYTES: usize = 256 * 1024;

/// Why a value cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// A variable is not set, and there is no default.
    #[error("the variable `{0}` is not set")]
    Unset(String),
    /// A `${` without its `}`.
    #[error("a `${{` has no `}}`")]
    Unclosed,
    /// Something that is no name of a variable. Not shown: it may be a piece of a password.
    #[error("what stands between `${{` and `}}` is not the name of a variable")]
    BadName(String),
    /// A secret where none may be.
    #[error("a secret (`keyring:` or `cmd:`) cannot be used here, only in `env` and `headers`")]
    SecretNotHere,
    /// Defaults in defaults in defaults.
    #[error("defaults are nested too deeply")]
    TooDeep,
    /// More text than any value needs.
    #[error("the value is longer than {MAX_EXPANDED_BYTES} bytes")]
    TooLong,
}

impl ExpandError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unset(name) => {
                format!("set it, or give a default as in `${{{name}:-value}}`")
            }
            Self::Unclosed => "write `$${` for a plain `${`".to_owned(),
            Self::BadName(_) => {
                "write `${NAME}` or `${NAME:-default}`, and `$${` for a plain `${`".to_owned()
            }
            Self::SecretNotHere => "pass the secret in a variable: set it under `env`".to_owned(),
            Self::TooDeep | Self::TooLong => "write a shorter value".to_owned(),
        }
    }
}

/// A value in which only variables may be.
pub fn expand_plain(text: &str, variables: Variables<'_>) -> Result<String, ExpandError> {
    let mut output = Output::default();
    expand(text, variables, Secrets::Refused, 0, &mut output)?;
    let Output { parts, literal, .. } = output;
    debug_assert!(parts.is_empty(), "only secrets make parts");
    Ok(literal)
}

/// A value that may hold or name secrets.
pub fn expand_secret(text: &str, variables: Variables<'_>) -> Result<Template, ExpandError> {
    let mut output = Output::default();
    expand(text, variables, Secrets::Allowed, 0, &mut output)?;
    Ok(output.finish())
}

/// Whether a value names something instead of being it, so that it may be shown.
pub(crate) fn is_reference(text: &str) -> bool {
    // The command of a `cmd:` may hold anything, but is no more than what is run.
    whole_reference(text).is_some()
        || (text.starts_with("${")
            && text.ends_with('}')
            && !text.contains(":-")
            && text.matches('}').count() == 1)
}

/// The names of the variables that a value asks for, with whether they have a default.
pub fn variables_of(text: &str) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    collect_variables(text, 0, &mut names);
    names
}

fn collect_variables(text: &str, depth: usize, names: &mut Vec<(String, bool)>) {
    if depth > MAX_NESTING || whole_reference(text).is_some() {
        return;
    }
    for piece in pieces(text) {
        let inner = match piece {
            Piece::Reference(inner) if whole_reference(inner).is_none() => inner,
            _ => continue,
        };
        let (name, default) = name_and_default(inner);
        if is_variable_name(name) {
            names.push((name.to_owned(), default.is_some()));
        }
        if let Some(default) = default {
            collect_variables(default, depth + 1, names);
        }
    }
}

/// A piece of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text as it is.
    Literal(&'a str),
    /// [`ESCAPE`], which stands for a plain `${`.
    Escape,
    /// What is between `${` and its `}`.
    Reference(&'a str),
    /// From a `${` that has no `}` to the end.
    Unclosed(&'a str),
}

/// How a plain `${` is written.
pub(crate) const ESCAPE: &str = "$${";

/// What a value is made of, in order.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.find("${").unwrap_or(rest.len());
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let literal = match before.strip_suffix('$') {
            Some(literal) if !from.is_empty() => literal,
            _ => before,
        };
        if !literal.is_empty() {
            rest = rest.get(literal.len()..).unwrap_or_default();
            return Some(Piece::Literal(literal));
        }
        if let Some(after) = rest.strip_prefix(ESCAPE) {
            rest = after;
            return Some(Piece::Escape);
        }
        let Some(end) = closing(from) else {
            rest = "";
            return Some(Piece::Unclosed(from));
        };
        rest = from.get(end + 1..).unwrap_or_default();
        Some(Piece::Reference(from.get(2..end).unwrap_or_default()))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Allowed,
    Refused,
}

#[derive(Default)]
struct Output {
    parts: Vec<TemplatePart>,
    literal: String,
    length: usize,
}

impl Output {
    fn text(&mut self, text: &str) -> Result<(), ExpandError> {
        self.length += text.len();
        if self.length > MAX_EXPANDED_BYTES {
            return Err(ExpandError::TooLong);
        }
        self.literal.push_str(text);
        Ok(())
    }

    fn reference(&mut self, part: TemplatePart, secrets: Secrets) -> Result<(), ExpandError> {
        if secrets == Secrets::Refused {
            return Err(ExpandError::SecretNotHere);
        }
        self.end_literal();
        self.parts.push(part);
        Ok(())
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            let literal = std::mem::take(&mut self.literal);
            self.parts.push(TemplatePart::Literal(literal));
        }
    }

    fn finish(mut self) -> Template {
        self.end_literal();
        let parts = self.parts;
        Template { parts }
    }
}

fn expand(
    text: &str,
    variables: Variables<'_>,
    secrets: Secrets,
    depth: usize,
    output: &mut Output,
) -> Result<(), ExpandError> {
    if depth > MAX_NESTING {
        return Err(ExpandError::TooDeep);
    }
    if let Some(reference) = whole_reference(text) {
        return output.reference(reference, secrets);
    }
    for one in pieces(text) {
        match one {
            Piece::Literal(literal) => output.text(literal)?,
            Piece::Escape => output.text("${")?,
            Piece::Reference(inner) => piece(inner, variables, secrets, depth, output)?,
            Piece::Unclosed(_) => return Err(ExpandError::Unclosed),
        }
    }
    Ok(())
}

/// What is between `${` and `}`.
fn piece(
    inner: &str,
    variables: Variables<'_>,
    secrets: Secrets,
    depth: usize,
    output: &mut Output,
) -> Result<(), ExpandError> {
    if let Some(reference) = whole_reference(inner) {
        return output.reference(reference, secrets);
    }
    let (name, default) = name_and_default(inner);
    if !is_variable_name(name) {
        return Err(ExpandError::BadName(name.to_owned()));
    }
    // As in a shell: an empty variable counts as unset where there is a default.
    match (variables(name), default) {
        (Some(value), None) => output.text(&value),
        (Some(value), Some(_)) if !value.is_empty() => output.text(&value),
        (_, Some(default)) => expand(default, variables, secrets, depth + 1, output),
        (None, None) => Err(ExpandError::Unset(name.to_owned())),
    }
}

pub(crate) fn name_and_default(inner: &str) -> (&str, Option<&str>) {
    match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    }
}

/// Where the `}` is that closes the `${` a text begins with.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                depth += 1;
                at += 1;
            }
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The secret that a text names, if it does nothing else.
pub(crate) fn whole_reference(text: &str) -> Option<TemplatePart> {
    let filled = |rest: &str| (!rest.trim().is_empty()).then(|| rest.trim().to_owned());
    if let Some(name) = text.strip_prefix("keyring:") {
        return filled(name).map(TemplatePart::Keyring);
    }
    let line = text.strip_prefix("cmd:")?;
    filled(line).map(TemplatePart::Command)
}

/// Whether a text can be the name of a variable.
pub fn is_variable_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = name.bytes();
    let first = bytes.next();
    first.is_some_and(|byte| is_part(byte) && !byte.is_ascii_digit()) && bytes.all(is_part)
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
