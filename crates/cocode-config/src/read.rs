//! Reads a file whole, within bounds, and says plainly why it cannot be used.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crate::document::{Format, Node, parse};
use crate::problem::{Origin, Problem};

/// The largest file of ours that is read. A configuration by hand has a hundredth of this.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The text of a file, or nothing if there is no such file.
pub(crate) fn text(path: &Path, limit: u64) -> Result<Option<String>, Box<Problem>> {
    let origin = || Origin::file(path);
    let bytes = match bytes(path, limit) {
        Ok(Some(bytes)) => bytes,
        // Somebody wanted a file here.
        Ok(None) if path.is_symlink() => {
            let message = "the file is a link that leads nowhere";
            let problem = Problem::error(origin(), message);
            return Err(Box::new(
                problem.hint("bring its target back, or remove the link"),
            ));
        }
        Ok(None) => return Ok(None),
        Err(unusable) => return Err(Box::new(unusable.problem(origin(), limit))),
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let before = error.utf8_error().valid_up_to();
            let line = line_of(error.as_bytes(), before);
            let message = "the file is not UTF-8 text";
            let problem = Problem::error(origin().at(line), message);
            return Err(Box::new(problem.hint("save it in the encoding UTF-8")));
        }
    };
    // Windows editors begin files with a mark that neither language knows.
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if let Some(at) = text.bytes().position(|byte| byte == 0) {
        let line = line_of(text.as_bytes(), at);
        let problem = Problem::error(
            origin().at(line),
            "the file has NUL bytes, so it is no text",
        );
        return Err(Box::new(
            problem.hint("restore it from a backup, or write it anew"),
        ));
    }
    Ok(Some(text))
}

/// The tree of a file, or nothing if there is no such file.
pub(crate) fn tree(path: &Path, format: Format) -> Result<Option<Node>, Box<Problem>> {
    let Some(text) = text(path, MAX_FILE_BYTES)? else {
        return Ok(None);
    };
    // An empty JSON file is what a tool leaves behind that was about to write it.
    if format == Format::Json && text.trim().is_empty() {
        return parsed(path, "{}", format).map(Some);
    }
    parsed(path, &text, format).map(Some)
}

/// The tree of a text that was read from a file.
pub(crate) fn parsed(path: &Path, text: &str, format: Format) -> Result<Node, Box<Problem>> {
    parse(text, format).map_err(|error| {
        let mut origin = Origin::file(path);
        origin.line = error.line;
        let language = match format {
            Format::Toml => "TOML",
            Format::Json => "JSON",
        };
        let message = format!("the file is not valid {language}: {}", error.message);
        Box::new(Problem::error(origin, message))
    })
}

/// Why a file gives no text.
enum Unusable {
    Input(std::io::Error),
    NoFile,
    TooLarge,
}

impl Unusable {
    fn problem(self, origin: Origin, limit: u64) -> Problem {
        match self {
            Self::Input(error) => {
                let hint = match error.kind() {
                    ErrorKind::PermissionDenied => Some("make it readable for you"),
                    _ => None,
                };
                let problem = Problem::error(origin, format!("cannot read the file: {error}"));
                match hint {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                }
            }
            Self::NoFile => Problem::error(origin, "this is not a regular file"),
            Self::TooLarge => {
                let message = format!("the file is larger than {limit} bytes");
                Problem::error(origin, message).hint("a configuration is never that large")
            }
        }
    }
}

fn bytes(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Unusable> {
    // Asked first, because opening a pipe without a writer would wait forever.
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(Unusable::NoFile),
        Ok(metadata) if metadata.len() > limit => return Err(Unusable::TooLarge),
        Ok(_) => {}
        Err(error) => return missing_or(error),
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return missing_or(error),
    };
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(Unusable::Input)?;
    if bytes.len() as u64 > limit {
        return Err(Unusable::TooLarge);
    }
    Ok(Some(bytes))
}

fn missing_or(error: std::io::Error) -> Result<Option<Vec<u8>>, Unusable> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        _ => Err(Unusable::Input(error)),
    }
}

fn line_of(bytes: &[u8], offset: usize) -> u32 {
    let before = bytes.iter().take(offset);
    let newlines = before.filter(|byte| **byte == b'\n').count();
    u32::try_from(newlines + 1).unwrap_or(u32::MAX)
}
