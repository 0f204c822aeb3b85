//! Saved prompts: files of Markdown in directories, each a prompt with arguments. Read when they are
//! asked for, so that what is written meanwhile counts.

mod body;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_core::Era;
use cocode_wire::{RpcError, code};
use serde_json::{Value, json};

use super::answers::cacheable;
use super::talk::Talk;
use body::Body;

/// Prompts that are offered; the names that come later in the alphabet are left out.
const MAX_PROMPTS: usize = 256;
/// Files of one directory that are looked at.
const MAX_FILES: usize = 4_096;
/// Bytes of one file.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Bytes of a prompt with its arguments.
const MAX_EXPANDED_BYTES: usize = 1024 * 1024;
/// How long clients may rely on the list: files change at any time.
const LIST_TTL_MS: u64 = 0;

/// The directories that prompts are saved in. The first that has a name decides what it means.
#[derive(Clone, Debug, Default)]
pub struct SavedPrompts {
    directories: Arc<[PathBuf]>,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedPrompt {
    /// The name of its file, without the extension.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it is to be told.
    pub arguments: Vec<SavedArgument>,
    body: Body,
}

/// What a prompt is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedArgument {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt says nothing without it.
    pub is_required: bool,
}

/// Why a prompt cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// There is none of this name.
    #[error("there is no prompt `{0}`")]
    Unknown(String),
    /// It has no such argument.
    #[error("the prompt `{prompt}` has no argument `{argument}`{known}")]
    UnknownArgument {
        /// Which prompt.
        prompt: String,
        /// Which argument.
        argument: String,
        /// Those that it has, as the end of the sentence.
        known: String,
    },
    /// It lacks one.
    #[error("the prompt `{prompt}` needs its argument `{argument}`")]
    Missing {
        /// Which prompt.
        prompt: String,
        /// Which argument.
        argument: String,
    },
    /// It would be too long.
    #[error("the prompt `{prompt}` is longer than {limit} bytes with these arguments")]
    TooLong {
        /// Which prompt.
        prompt: String,
        /// How long it may be.
        limit: usize,
    },
}

impl SavedPrompts {
    /// The prompts of these directories. None of them is looked at yet, and none has to be there.
    pub fn new(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        let directories = directories.into_iter().collect();
        Self { directories }
    }

    /// All of them, by name. Blocks: it reads files.
    pub fn read(&self) -> Vec<SavedPrompt> {
        let mut all: BTreeMap<String, SavedPrompt> = BTreeMap::new();
        for directory in self.directories.iter() {
            for path in files(directory) {
                if let Some(prompt) = read_file(&path) {
                    all.entry(prompt.name.clone()).or_insert(prompt);
                }
            }
        }
        if all.len() > MAX_PROMPTS {
            tracing::warn!(
                n_prompts = all.len(),
                MAX_PROMPTS,
                "too many prompts are saved"
            );
        }
        all.into_values().take(MAX_PROMPTS).collect()
    }

    /// The one of this name. Blocks: it reads files.
    pub fn find(&self, name: &str) -> Result<SavedPrompt, PromptError> {
        let found = self.read().into_iter().find(|prompt| prompt.name == name);
        found.ok_or_else(|| PromptError::Unknown(name.chars().take(100).collect()))
    }
}

impl SavedPrompt {
    /// What it says with these arguments.
    pub fn expand(&self, given: &BTreeMap<String, String>) -> Result<String, PromptError> {
        let known: BTreeSet<&str> = self.arguments.iter().map(|one| one.name.as_str()).collect();
        if let Some(unknown) = given.keys().find(|name| !known.contains(name.as_str())) {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            return Err(PromptError::UnknownArgument {
                prompt: self.name.clone(),
                argument: unknown.chars().take(100).collect(),
                known: match known.as_slice() {
                    [] => ": it has none".to_owned(),
                    known => format!(": it has {}", known.join(", ")),
                },
            });
        }
        let missing = self.arguments.iter();
        let missing = missing.filter(|one| one.is_required && !given.contains_key(&one.name));
        if let Some(missing) = missing.into_iter().next() {
            return Err(PromptError::Missing {
                prompt: self.name.clone(),
                argument: missing.name.clone(),
            });
        }
        let names = self.arguments.iter().map(|one| one.name.as_str());
        let names: Vec<&str> = names.collect();
        let expanded = self.body.expand(&names, given, MAX_EXPANDED_BYTES);
        expanded.ok_or_else(|| PromptError::TooLong {
            prompt: self.name.clone(),
            limit: MAX_EXPANDED_BYTES,
        })
    }
}

impl Talk {
    /// The result of `prompts/list`.
    pub(super) async fn prompts(&self, era: Era) -> Result<Value, RpcError> {
        let prompts = self.shared.options.prompts.clone();
        let prompts = blocking(move || prompts.read()).await?;
        let prompts: Vec<Value> = prompts.iter().map(described).collect();
        Ok(cacheable(json!({ "prompts": prompts }), era, LIST_TTL_MS))
    }

    /// The result of `prompts/get`.
    pub(super) async fn prompt(
        &self,
        name: Option<String>,
        arguments: Option<Value>,
    ) -> Result<Value, RpcError> {
        let wrong = |what: String| RpcError::new(code::INVALID_PARAMS, what);
        let name = name.ok_or_else(|| wrong("no prompt is named".to_owned()))?;
        let given = match arguments {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(arguments) => serde_json::from_value(arguments)
                .map_err(|error| wrong(format!("`arguments` are no texts: {error}")))?,
        };
        let prompts = self.shared.options.prompts.clone();
        let found = blocking(move || prompts.find(&name)).await?;
        let found = found.map_err(|error| wrong(error.to_string()))?;
        let text = found.expand(&given);
        let text = text.map_err(|error| wrong(error.to_string()))?;
        let content = json!({ "type": "text", "text": text });
        let mut result = json!({ "messages": [{ "role": "user", "content": content }] });
        if let Some(description) = &found.description {
            result["description"] = description.as_str().into();
        }
        Ok(result)
    }
}

fn described(prompt: &SavedPrompt) -> Value {
    let arguments = prompt.arguments.iter().map(|argument| {
        let mut told = json!({ "name": argument.name, "required": argument.is_required });
        if let Some(description) = &argument.description {
            told["description"] = description.as_str().into();
        }
        told
    });
    let arguments: Vec<Value> = arguments.collect();
    let mut told = json!({ "name": prompt.name, "arguments": arguments });
    if let Some(description) = &prompt.description {
        told["description"] = description.as_str().into();
    }
    told
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RpcError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
}

/// The prompts of a directory, in the order of their names.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(directory = %directory.display(), %error, "prompts are not read");
            return Vec::new();
        }
    };
    let paths = entries.take(MAX_FILES).filter_map(Result::ok);
    let paths = paths.map(|entry| entry.path());
    let is_prompt = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md");
    let mut paths: Vec<PathBuf> = paths.filter(is_prompt).collect();
    paths.sort();
    paths
}

fn read_file(path: &Path) -> Option<SavedPrompt> {
    match try_read(path) {
        Ok(prompt) => Some(prompt),
        Err(why) => {
            tracing::warn!(path = %path.display(), why, "a saved prompt is left out");
            None
        }
    }
}

fn try_read(path: &Path) -> Result<SavedPrompt, String> {
    let name = path.file_stem().and_then(|name| name.to_str());
    let name = name.ok_or("its name is no text")?;
    let facts = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is no file".to_owned());
    }
    if facts.len() > MAX_FILE_BYTES {
        return Err(format!("it is longer than {MAX_FILE_BYTES} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    file::parse(name, &text)
}

#[cfg(test)]
#[path = "prompts_tests.rs"]
mod tests;
