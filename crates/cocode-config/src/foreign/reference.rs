//! References to variables in the spellings of other tools, to and from ours.
//!
//! | spelling | tools |
//! |---|---|
//! | none: every text means itself | Claude Desktop, Codex, Zed |
//! | `${NAME}`, `${NAME:-default}` | Claude Code, `.mcp.json` |
//! | the same, and `$NAME` | Gemini CLI |
//! | `${env:NAME}`, and what only an editor knows | Cursor, VS Code |
//! | `{env:NAME}` | `OpenCode` |
//!
//! What was rendered is read back before it counts: a text that would come to mean something
//! else is refused instead.

use std::path::Path;

use crate::expand::is_variable_name;

/// How a tool spells references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// It has none.
    Plain,
    /// `${NAME}` and `${NAME:-default}`.
    Shell,
    /// Those, and `$NAME`.
    Dollar,
    /// `${env:NAME}`.
    Editor,
    /// `{env:NAME}`.
    Braces,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    /// A variable, and what stands for it where it is not set.
    Variable {
        name: String,
        default: Option<String>,
    },
    /// Something the tool asks its user for.
    Asked(String),
    /// The directory of the project.
    Project,
    /// The name of that directory.
    ProjectName,
}

/// Why a text cannot be carried over. Never holds the text, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason(pub(super) String);

impl Reason {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Whether a text of ours may name secrets: in `env` and `headers` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    Allowed,
    None,
}

/// A text of a tool, in our spelling, and what the tool would have asked for: an id, and the
/// variable that stands for it here.
pub(super) fn import(
    text: &str,
    dialect: Dialect,
    secrets: Secrets,
    project: Option<&Path>,
) -> Result<(String, Vec<(String, String)>), Reason> {
    let mut pieces = Pieces::default();
    let mut asked = Vec::new();
    for piece in parse(text, dialect)? {
        match piece {
            Piece::Asked(id) => {
                let name = variable_for(&id);
                asked.push((id, name.clone()));
                pieces.variable(name, None);
            }
            Piece::Project => pieces.literal(&directory(project)?.to_string_lossy()),
            Piece::ProjectName => {
                let name = directory(project)?.file_name().unwrap_or_default();
                pieces.literal(&name.to_string_lossy());
            }
            Piece::Literal(text) => pieces.literal(&text),
            Piece::Variable { name, default } => pieces.variable(name, default),
        }
    }
    let pieces = pieces.0;
    let ours = render_ours(&pieces);
    if secrets == Secrets::Allowed && is_secret_reference(&ours) {
        return Err(Reason::new(
            "it begins with `keyring:` or `cmd:`, which means a secret or a command here",
        ));
    }
    if parse_ours(&ours, Secrets::None).as_ref() != Ok(&pieces) {
        return Err(Reason::new("its references cannot be written here"));
    }
    Ok((ours, asked))
}

/// A text of ours in the spelling of a tool.
pub(super) fn export(text: &str, dialect: Dialect, secrets: Secrets) -> Result<String, Reason> {
    let pieces = parse_ours(text, secrets)?;
    let theirs = render(&pieces, dialect)?;
    if parse(&theirs, dialect).as_ref() != Ok(&pieces) {
        return Err(Reason::new("the tool would read it differently"));
    }
    Ok(theirs)
}

/// The variable that a text of ours is nothing but a reference to.
pub(super) fn only_variable(text: &str) -> Option<String> {
    let pieces = parse_ours(text, Secrets::Allowed).ok()?;
    match pieces.as_slice() {
        [
            Piece::Variable {
                name,
                default: None,
            },
        ] => Some(name.clone()),
        _ => None,
    }
}

/// A reference to a variable, in our spelling.
pub(super) fn to_variable(name: &str) -> String {
    format!("${{{name}}}")
}

fn directory(project: Option<&Path>) -> Result<&Path, Reason> {
    project.ok_or_else(|| Reason::new("it names a workspace folder, and no project is known"))
}

/// A name for what a tool asks for under an id.
fn variable_for(id: &str) -> String {
    let mut name: String = id
        .chars()
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' => character.to_ascii_uppercase(),
            _ => '_',
        })
        .collect();
    if !is_variable_name(&name) {
        name.insert_str(0, "INPUT_");
    }
    name
}

fn is_secret_reference(text: &str) -> bool {
    text.starts_with("keyring:") || text.starts_with("cmd:")
}

/// Collects pieces, with no two literals side by side and none of them empty.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn literal(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Literal(last)) => last.push_str(text),
            _ => self.0.push(Piece::Literal(text.to_owned())),
        }
    }

    fn variable(&mut self, name: String, default: Option<String>) {
        self.0.push(Piece::Variable { name, default });
    }
}

// === Our own spelling ===

fn parse_ours(text: &str, secrets: Secrets) -> Result<Vec<Piece>, Reason> {
    let secret = || Reason::new("only cocode can look secrets up");
    if secrets == Secrets::Allowed && is_secret_reference(text) {
        return Err(secret());
    }
    let mut pieces = Pieces::default();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        if let Some(escaped) = before.strip_suffix('$') {
            pieces.literal(escaped);
            pieces.literal("${");
            rest = from;
            continue;
        }
        pieces.literal(before);
        let end = closing(from).ok_or_else(|| Reason::new("a `${` has no `}`"))?;
        let (inner, after) = from.split_at_checked(end).unwrap_or((from, ""));
        if is_secret_reference(inner) {
            return Err(secret());
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (inner, None),
        };
        if !is_variable_name(name) {
            return Err(Reason::new("it has a `${` without the name of a variable"));
        }
        pieces.variable(name.to_owned(), default);
        rest = after.strip_prefix('}').unwrap_or(after);
    }
    pieces.literal(rest);
    Ok(pieces.0)
}

fn render_ours(pieces: &[Piece]) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(&literal.replace("${", "$${")),
            Piece::Variable { name, default } => push_shell(&mut text, name, default.as_deref()),
            Piece::Asked(_) | Piece::Project | Piece::ProjectName => {}
        }
    }
    text
}

/// Where the `}` is that belongs to a `${` right before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    let mut previous = '\0';
    for (at, character) in text.char_indices() {
        match character {
            '{' if previous == '$' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        previous = character;
    }
    None
}

fn push_shell(text: &mut String, name: &str, default: Option<&str>) {
    text.push_str("${");
    text.push_str(name);
    if let Some(default) = default {
        text.push_str(":-");
        text.push_str(default);
    }
    text.push('}');
}

// === The spellings of others ===

fn parse(text: &str, dialect: Dialect) -> Result<Vec<Piece>, Reason> {
    let opening = match dialect {
        Dialect::Plain => {
            let mut pieces = Pieces::default();
            pieces.literal(text);
            return Ok(pieces.0);
        }
        Dialect::Shell | Dialect::Editor => "${",
        Dialect::Dollar => "$",
        Dialect::Braces => "{",
    };
    let mut pieces = Pieces::default();
    let mut rest = text;
    while let Some(at) = rest.find(opening) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        pieces.literal(before);
        let found = match dialect {
            Dialect::Plain => None,
            Dialect::Shell => shell(from),
            Dialect::Dollar => shell(from).or_else(|| dollar(from)),
            Dialect::Editor => editor(from)?,
            Dialect::Braces => braces(from)?,
        };
        let length = if let Some((piece, length)) = found {
            match piece {
                Piece::Literal(text) => pieces.literal(&text),
                piece => pieces.0.push(piece),
            }
            length
        } else {
            pieces.literal(opening);
            opening.len()
        };
        rest = from.get(length..).unwrap_or_default();
    }
    pieces.literal(rest);
    Ok(pieces.0)
}

/// What a text begins with, and how long that is.
type Beginning = Option<(Piece, usize)>;

/// What is between an opening that the text begins with and the next `}`, and the whole length.
fn enclosed<'a>(text: &'a str, opening: &str) -> Option<(&'a str, usize)> {
    let inner = text.strip_prefix(opening)?;
    let end = inner.find('}')?;
    Some((inner.get(..end)?, opening.len() + end + 1))
}

fn shell(text: &str) -> Beginning {
    let (inner, length) = enclosed(text, "${")?;
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    let name = is_variable_name(name).then(|| name.to_owned())?;
    Some((Piece::Variable { name, default }, length))
}

fn dollar(text: &str) -> Beginning {
    let name: String = text
        .chars()
        .skip(1)
        .take_while(|character| character.is_ascii_alphanumeric() || *character == '_')
        .collect();
    let length = 1 + name.len();
    let default = None;
    is_variable_name(&name).then_some((Piece::Variable { name, default }, length))
}

fn editor(text: &str) -> Result<Beginning, Reason> {
    let Some((inner, length)) = enclosed(text, "${") else {
        return Ok(None);
    };
    let (kind, rest) = inner.split_once(':').unwrap_or((inner, ""));
    let variable = |name: &str| Piece::Variable {
        name: name.to_owned(),
        default: None,
    };
    let piece = match kind {
        "env" if is_variable_name(rest) => variable(rest),
        "input" if !rest.is_empty() => Piece::Asked(rest.to_owned()),
        "userHome" => variable("HOME"),
        "workspaceFolder" | "workspaceRoot" => Piece::Project,
        "workspaceFolderBasename" => Piece::ProjectName,
        "pathSeparator" | "/" => Piece::Literal("/".to_owned()),
        "env" | "input" | "config" | "command" | "cwd" | "execPath" => {
            let reason = format!("only the editor can tell what `${{{kind}…}}` stands for");
            return Err(Reason(reason));
        }
        _ => return Ok(None),
    };
    Ok(Some((piece, length)))
}

fn braces(text: &str) -> Result<Beginning, Reason> {
    if enclosed(text, "{file:").is_some() {
        return Err(Reason::new(
            "it is the content of a file, which has no reference here",
        ));
    }
    let Some((name, length)) = enclosed(text, "{env:") else {
        return Ok(None);
    };
    if !is_variable_name(name) {
        return Err(Reason::new(
            "it has a `{env:` without the name of a variable",
        ));
    }
    let (name, default) = (name.to_owned(), None);
    Ok(Some((Piece::Variable { name, default }, length)))
}

fn render(pieces: &[Piece], dialect: Dialect) -> Result<String, Reason> {
    let mut text = String::new();
    for piece in pieces {
        let (name, default) = match piece {
            Piece::Literal(literal) => {
                text.push_str(literal);
                continue;
            }
            Piece::Variable { name, default } => (name, default.as_deref()),
            Piece::Asked(_) | Piece::Project | Piece::ProjectName => continue,
        };
        match dialect {
            Dialect::Plain => {
                return Err(Reason::new("the tool does not expand variables there"));
            }
            Dialect::Shell | Dialect::Dollar => push_shell(&mut text, name, default),
            Dialect::Editor | Dialect::Braces if default.is_some() => {
                return Err(Reason::new("the tool has no defaults for variables"));
            }
            Dialect::Editor => text.extend(["${env:", name, "}"]),
            Dialect::Braces => text.extend(["{env:", name, "}"]),
        }
    }
    Ok(text)
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
