//! What importing and exporting share: which tools there are, where they keep their files, and how
//! such a file is read.

pub(crate) mod backup;
pub(crate) mod gather;
pub(crate) mod provenance;
pub(crate) mod select;

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use cocode_config::{Entry, HomePlaces, MAX_FOREIGN_BYTES, Origin, Problem, Severity, Tool};
use cocode_core::nearest;

use super::writing::looks_secret;
use crate::environment::text_variable;
use crate::error::{CliError, Code};
use crate::text::{either, plain};
use crate::workspace::Workspace;

/// The tool that a word names.
pub(crate) fn tool(word: &str) -> Result<Tool, CliError> {
    word.parse().map_err(|_unknown| {
        let message = format!("there is no tool `{}` that cocode knows", plain(word));
        let error = CliError::new(Code::InvalidUsage, message);
        let ids = Tool::ALL.map(Tool::id);
        let close = nearest(word, ids.iter().copied());
        let error = if close.is_empty() {
            error
        } else {
            let close: Vec<String> = close.iter().map(|id| format!("`{id}`")).collect();
            error.hint(format!("did you mean {}?", either(&close)))
        };
        error.hint(format!("tools: {}", ids.join(", ")))
    })
}

/// Where other tools keep their files, for this work tree.
pub(crate) fn homes(workspace: &Workspace) -> Result<HomePlaces, CliError> {
    let homes = &workspace.environment.homes;
    let Some(home) = &homes.home else {
        let message = "there is no home directory to look for other tools in";
        return Err(
            CliError::new(Code::SetupFailed, message).hint("set HOME, or name a file with --file")
        );
    };
    let mut places = HomePlaces::of_home(home, cfg!(target_os = "macos"));
    if let Some(config) = &homes.xdg_config {
        places.config.clone_from(config);
        if !cfg!(target_os = "macos") {
            places.applications.clone_from(config);
        }
    }
    places.project = workspace.places.work_tree();
    places.claude_config.clone_from(&homes.claude);
    places.codex_home.clone_from(&homes.codex);
    let opencode = text_variable("OPENCODE_CONFIG").filter(|file| !file.is_empty());
    places.opencode_config = opencode.map(Into::into);
    Ok(places)
}

/// The text of a file of another tool, if there is one. Only of regular files, and never more than
/// is ever used.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, Box<Problem>> {
    let wrong = |message: String| {
        Box::new(Problem {
            severity: Severity::Error,
            origin: Origin::file(path),
            server: None,
            key: None,
            message,
            hint: None,
        })
    };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(wrong("it is not a regular file".to_owned())),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(wrong(format!("it cannot be read: {error}"))),
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_FOREIGN_BYTES).unwrap_or(u64::MAX);
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    if bytes.len() > MAX_FOREIGN_BYTES {
        let message = format!("the file is larger than {MAX_FOREIGN_BYTES} bytes");
        return Err(wrong(message));
    }
    let text = String::from_utf8(bytes).map_err(|_not| wrong("it is not UTF-8".to_owned()))?;
    Ok(Some(text))
}

/// Whether there is no such file; a parent that is a file counts.
fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The keys of an entry whose values look like secrets in plain text. What has a reference in it has
/// its secret elsewhere.
pub(crate) fn plain_secrets(entry: &Entry) -> Vec<String> {
    let lines = entry.lines().into_iter();
    lines
        .filter(|line| line.is_secret && looks_secret(&line.key) && !line.value.0.contains("${"))
        .map(|line| line.key)
        .collect()
}

/// So many servers, for a sentence.
pub(crate) fn n_servers(number: usize) -> String {
    match number {
        1 => "1 server".to_owned(),
        number => format!("{number} servers"),
    }
}

/// A path without links, where it leads somewhere.
pub(crate) fn real_path(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_gone| path.to_owned())
}

/// Whether a file, or the link that leads to it, came with the work tree.
pub(crate) fn is_in_work_tree(path: &Path, workspace: &Workspace) -> bool {
    let Some(tree) = workspace.places.work_tree() else {
        return false;
    };
    let tree = real_path(&tree);
    // A file that is yet to be made is where its directory is.
    let mut above = path.ancestors().skip(1);
    let directory = above.find(|directory| directory.exists());
    let is_named_there = directory.is_some_and(|directory| real_path(directory).starts_with(&tree));
    is_named_there || real_path(path).starts_with(&tree)
}

/// What is wrong with a server, without the file, the server's name and line: the row says those.
pub(crate) fn note(problem: &Problem) -> String {
    let message = match &problem.key {
        Some(key) => format!("`{key}`: {}", problem.message),
        None => problem.message.clone(),
    };
    match &problem.hint {
        Some(hint) => format!("{message} ({hint})"),
        None => message,
    }
}
