//! One word of the command line: `key=value`, `key:=json`, `key=@file`, `key:=@file`, or `-`.

use std::path::{Path, PathBuf};

use cocode_client::RawJson;

use super::assemble::ReadStdin;
use crate::error::{CliError, Code};

/// A word, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// `-`: a whole object from stdin.
    Stdin,
    /// One argument.
    Member {
        /// Its name.
        key: String,
        /// Its value.
        given: Given,
    },
}

/// How a value was given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Text(String),
    Json(String),
    TextFile(PathBuf),
    JsonFile(PathBuf),
}

/// A value that is at hand.
#[derive(Debug)]
pub(crate) enum Value {
    /// From the command line, to be turned into what the schema asks for.
    Text(String),
    /// From a file: a text where the schema allows one.
    FileText(String),
    /// Sent as it is.
    Json(RawJson),
}

impl Piece {
    pub(crate) fn parse(word: &str) -> Result<Self, CliError> {
        if word == "-" {
            return Ok(Self::Stdin);
        }
        let Some((left, value)) = word.split_once('=') else {
            let message = format!("`{word}` is no argument of a tool");
            return Err(CliError::new(Code::InvalidArguments, message)
                .hint("write key=value, key:=json, key=@file, or - for stdin")
                .hint("the server's command stands after `--`"));
        };
        let (key, is_json) = match left.strip_suffix(':') {
            Some(key) => (key, true),
            None => (left, false),
        };
        if key.is_empty() {
            let message = format!("the argument `{word}` has no name");
            return Err(CliError::new(Code::InvalidArguments, message));
        }
        let given = match (value.strip_prefix('@'), is_json) {
            (Some(path), true) => Given::JsonFile(path.into()),
            (None, true) => Given::Json(value.to_owned()),
            // A doubled @ is one @ and no file.
            (Some(text), false) if text.starts_with('@') => Given::Text(text.to_owned()),
            (Some(path), false) => Given::TextFile(path.into()),
            (None, false) => Given::Text(value.to_owned()),
        };
        let key = key.to_owned();
        Ok(Self::Member { key, given })
    }
}

impl Given {
    /// Whether this is `@-`.
    pub(crate) fn is_stdin(&self) -> bool {
        matches!(self, Self::TextFile(path) | Self::JsonFile(path) if path.as_os_str() == "-")
    }

    /// Reads files and checks JSON. The file `-` is stdin.
    pub(crate) fn load(self, key: &str, read_stdin: ReadStdin<'_>) -> Result<Value, CliError> {
        let read = |path: &Path| {
            if path.as_os_str() == "-" {
                read_stdin()
            } else {
                read(path)
            }
        };
        match self {
            Self::Text(text) => Ok(Value::Text(text)),
            Self::TextFile(path) => read(&path).map(Value::FileText),
            Self::Json(text) => json(key, text, &format!("`{key}:=`")),
            Self::JsonFile(path) => json(key, read(&path)?, &format!("`{}`", path.display())),
        }
    }
}

fn json(key: &str, text: String, place: &str) -> Result<Value, CliError> {
    let bad = |error| {
        let message = format!("the value of `{key}` in {place} is not JSON");
        CliError::new(Code::InvalidArguments, message)
            .because(&error)
            .hint(format!(
                "a text needs quotes in JSON; `{key}=…` takes a text as it is"
            ))
    };
    RawJson::parse(text).map(Value::Json).map_err(bad)
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| CliError::file("read", path, &error))
}
