//! Prompts as commands: `/mcp__server__prompt`, with arguments by place or by name.

use std::collections::BTreeMap;

use cocode_core::ServerName;

use super::Manager;
use super::call_error::CallError;
use super::catalog::Catalog;
use crate::features::{Prompt, PromptResult};
use crate::options::RequestOptions;

/// A prompt that is to be got, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCommand {
    /// Whose prompt.
    pub server: ServerName,
    /// Which one, by the server's name for it.
    pub prompt: String,
    /// What it is told.
    pub arguments: BTreeMap<String, String>,
}

/// Why a line is no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// It does not begin as one.
    #[error("a prompt begins with `/mcp__`, then its server and its name")]
    NotAPrompt,
    /// There is no such prompt.
    #[error("there is no prompt `/{name}`{}", near_text(near))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// A quotation mark has no other.
    #[error("a quotation mark is not closed")]
    Unclosed,
    /// There are more words than arguments.
    #[error("`{word}` is one word too many: {usage}")]
    TooMany {
        /// The first of them.
        word: String,
        /// How the prompt is used.
        usage: String,
    },
    /// An argument is given twice.
    #[error("`{argument}` is given twice: {usage}")]
    Twice {
        /// Which one.
        argument: String,
        /// How the prompt is used.
        usage: String,
    },
    /// Arguments that have to be given are not.
    #[error("{} not given: {usage}", missing_text(arguments))]
    Missing {
        /// Which ones.
        arguments: Vec<String>,
        /// How the prompt is used.
        usage: String,
    },
}

impl PromptCommand {
    /// Reads a line such as `/mcp__git__review main "the new parser" depth=2`. A word counts as
    /// named if its beginning is the name of an argument; the others fill the arguments that are
    /// left, in the order in which the server lists them.
    pub fn parse(line: &str, catalog: &Catalog) -> Result<Self, PromptError> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Self::from_words(name, command_words(rest)?, catalog)
    }

    /// The same of words that are apart already: `/mcp__git__review`, and what follows it.
    pub fn from_words(
        command: &str,
        words: Vec<String>,
        catalog: &Catalog,
    ) -> Result<Self, PromptError> {
        let name = command.strip_prefix('/').ok_or(PromptError::NotAPrompt)?;
        if !name.starts_with("mcp__") {
            return Err(PromptError::NotAPrompt);
        }
        let Some((server, prompt)) = catalog.resolve_prompt(name) else {
            let names: Vec<&str> = catalog.prompts().map(|(name, ..)| name.as_str()).collect();
            let near = cocode_core::nearest(name, names.iter().copied());
            let near = near.into_iter().map(|name| format!("/{name}"));
            return Err(PromptError::Unknown {
                name: name.to_owned(),
                near: near.collect(),
            });
        };
        let arguments = fill(prompt, name, words)?;
        Ok(Self {
            server: server.clone(),
            prompt: prompt.name.clone(),
            arguments,
        })
    }
}

impl Manager {
    /// Gets a prompt, filled in.
    pub async fn prompt(
        &self,
        command: &PromptCommand,
        options: RequestOptions,
    ) -> Result<PromptResult, CallError> {
        let PromptCommand {
            server,
            prompt,
            arguments,
        } = command;
        let _in_use = self.server(server)?.in_use();
        let session = self.session_for(server, &options).await?;
        let got = session.get_prompt(prompt, arguments, options).await;
        got.map_err(|error| self.request_failed(server, prompt, error))
    }
}

/// The words after a command. Quotation marks, single or double, hold words together; a backslash takes
/// the meaning from what follows it, except within single ones.
pub fn command_words(line: &str) -> Result<Vec<String>, PromptError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => {
                let next = characters.next().ok_or(PromptError::Unclosed)?;
                word.get_or_insert_default().push(next);
            }
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (_, Some(open)) if character == open => quote = None,
            (_, None) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err(PromptError::Unclosed);
    }
    words.extend(word);
    Ok(words)
}

fn fill(
    prompt: &Prompt,
    name: &str,
    words: Vec<String>,
) -> Result<BTreeMap<String, String>, PromptError> {
    let usage = || usage(prompt, name);
    let mut given = BTreeMap::new();
    let mut by_place = Vec::new();
    for word in words {
        let named = word.split_once('=').filter(|(name, _)| {
            let mut known = prompt.arguments.iter();
            known.any(|argument| argument.name == *name)
        });
        let Some((argument, value)) = named else {
            by_place.push(word);
            continue;
        };
        if given
            .insert(argument.to_owned(), value.to_owned())
            .is_some()
        {
            return Err(PromptError::Twice {
                argument: argument.to_owned(),
                usage: usage(),
            });
        }
    }
    let mut by_place = by_place.into_iter();
    for argument in &prompt.arguments {
        if given.contains_key(&argument.name) {
            continue;
        }
        let Some(value) = by_place.next() else { break };
        given.insert(argument.name.clone(), value);
    }
    if let Some(word) = by_place.next() {
        return Err(PromptError::TooMany {
            word,
            usage: usage(),
        });
    }
    let required = prompt.arguments.iter().filter(|argument| argument.required);
    let missing: Vec<String> = required
        .filter(|argument| !given.contains_key(&argument.name))
        .map(|argument| argument.name.clone())
        .collect();
    if missing.is_empty() {
        Ok(given)
    } else {
        Err(PromptError::Missing {
            arguments: missing,
            usage: usage(),
        })
    }
}

fn usage(prompt: &Prompt, name: &str) -> String {
    let mut text = format!("/{name}");
    for argument in &prompt.arguments {
        let name = argument.name.to_uppercase();
        text = if argument.required {
            format!("{text} {name}")
        } else {
            format!("{text} [{name}]")
        };
    }
    text
}

fn near_text(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; did you mean `{}`?", near.join("` or `")),
    }
}

fn missing_text(arguments: &[String]) -> String {
    let is_or_are = if arguments.len() == 1 { "is" } else { "are" };
    format!("`{}` {is_or_are}", arguments.join("`, `"))
}

#[cfg(test)]
#[path = "prompts_tests.rs"]
mod tests;
