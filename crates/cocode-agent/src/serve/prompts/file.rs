//! The file of a prompt: what it says about itself between two lines of dashes, and its text.

use super::body::{ALL, Body, Piece, is_name};
use super::{SavedArgument, SavedPrompt};

/// Arguments of one prompt.
const MAX_ARGUMENTS: usize = 32;

/// Reads the file of the prompt `name`. What is wrong is said for people.
pub(super) fn parse(name: &str, text: &str) -> Result<SavedPrompt, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body) = split(text)?;
    let head = Head::parse(head)?;
    let body = Body::parse(body.trim());
    let arguments = if head.arguments.is_empty() {
        implied(&body, head.hint.as_deref())
    } else {
        check(&body, &head.arguments)?;
        head.arguments
    };
    if arguments.len() > MAX_ARGUMENTS {
        return Err(format!("it has more than {MAX_ARGUMENTS} arguments"));
    }
    Ok(SavedPrompt {
        name: name.to_owned(),
        description: head.description,
        arguments,
        body,
    })
}

/// What a file says about itself, and the rest of it.
fn split(text: &str) -> Result<(&str, &str), String> {
    let Some(rest) = text.strip_prefix("---") else {
        return Ok(("", text));
    };
    let Some(rest) = rest
        .strip_prefix("\r\n")
        .or_else(|| rest.strip_prefix('\n'))
    else {
        return Ok(("", text));
    };
    let mut length = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (head, body) = rest.split_at(length);
            return Ok((head, body.strip_prefix(line).unwrap_or_default()));
        }
        length += line.len();
    }
    Err("what it says about itself has no end: a line `---` is missing".to_owned())
}

#[derive(Default)]
struct Head {
    description: Option<String>,
    hint: Option<String>,
    arguments: Vec<SavedArgument>,
}

impl Head {
    fn parse(text: &str) -> Result<Self, String> {
        let mut head = Self::default();
        let mut is_list = false;
        for line in text.lines() {
            let inner = line.trim();
            if inner.is_empty() || inner.starts_with('#') {
                continue;
            }
            let is_inside = line.starts_with([' ', '\t', '-']);
            if is_inside {
                if is_list {
                    head.item(inner)?;
                }
                continue;
            }
            let Some((key, value)) = inner.split_once(':') else {
                return Err(format!("`{inner}` is no `key: value`"));
            };
            let value = unquoted(value);
            is_list = key.trim() == "arguments";
            match key.trim() {
                "description" => head.description = some(value),
                "argument-hint" => head.hint = some(value),
                "arguments" => {
                    let names = value.trim_start_matches('[').trim_end_matches(']');
                    let names = names.split([',', ' ']).map(unquoted);
                    for name in names.filter(|name| !name.is_empty()) {
                        head.arguments.push(argument(name, None)?);
                    }
                }
                // Other programs have their own keys.
                _ => {}
            }
        }
        Ok(head)
    }

    /// A line below `arguments:`.
    fn item(&mut self, line: &str) -> Result<(), String> {
        if let Some(item) = line.strip_prefix('-') {
            let (name, description) = match item.split_once(':') {
                Some((key, name)) if key.trim() == "name" => (name, None),
                Some((name, description)) => (name, some(unquoted(description))),
                None => (item, None),
            };
            self.arguments.push(argument(unquoted(name), description)?);
            return Ok(());
        }
        let (Some((key, value)), Some(last)) = (line.split_once(':'), self.arguments.last_mut())
        else {
            return Err(format!("`{line}` says nothing about an argument"));
        };
        match (key.trim(), unquoted(value)) {
            ("description", value) => last.description = some(value),
            ("required", "true") => last.is_required = true,
            ("required", "false") => last.is_required = false,
            ("required", _) => return Err(format!("`{line}` is neither true nor false")),
            _ => {}
        }
        Ok(())
    }
}

/// An argument; a question mark behind its name means that it may be left out.
fn argument(name: &str, description: Option<String>) -> Result<SavedArgument, String> {
    let (name, is_required) = match name.strip_suffix('?') {
        Some(name) => (name, false),
        None => (name, true),
    };
    if !is_name(name) {
        return Err(format!("`{name}` is no name for an argument"));
    }
    Ok(SavedArgument {
        name: name.to_owned(),
        description,
        is_required,
    })
}

/// The arguments of a prompt that names none: what its text has places for.
fn implied(body: &Body, hint: Option<&str>) -> Vec<SavedArgument> {
    let mut arguments: Vec<SavedArgument> = Vec::new();
    let mut add = |name: String, is_required: bool, description: Option<String>| {
        if arguments.iter().all(|known| known.name != name) {
            arguments.push(SavedArgument {
                name,
                description,
                is_required,
            });
        }
    };
    // Those with places come first, so that they are at their places.
    let places = body.places().filter_map(|piece| match piece {
        Piece::Place(place) => Some(*place),
        _ => None,
    });
    for place in 1..=places.max().unwrap_or(0) {
        add(place.to_string(), false, None);
    }
    for piece in body.places() {
        if let Piece::Named(name) = piece {
            add(name.clone(), true, None);
        }
    }
    if body.places().any(|piece| *piece == Piece::All) {
        add(ALL.to_owned(), false, hint.map(str::to_owned));
    }
    arguments
}

/// Whether the text has places for these arguments only.
fn check(body: &Body, arguments: &[SavedArgument]) -> Result<(), String> {
    for (place, argument) in arguments.iter().enumerate() {
        let before = arguments.iter().take(place);
        if before.into_iter().any(|other| other.name == argument.name) {
            return Err(format!("its argument `{}` is there twice", argument.name));
        }
    }
    for piece in body.places() {
        match piece {
            Piece::Named(name) if arguments.iter().all(|known| known.name != *name) => {
                return Err(format!("`{{{{{name}}}}}` is none of its arguments"));
            }
            Piece::Place(place) if *place > arguments.len() => {
                return Err(format!(
                    "`${place}` is none of its {} arguments",
                    arguments.len()
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = |mark| text.strip_prefix(mark)?.strip_suffix(mark);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
