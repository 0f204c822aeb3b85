//! Where an imported server comes from: a comment right above it, which goes when the server goes.

use std::path::Path;

use cocode_config::{
    Config, EditContext, EditError, Format, Origin, Places, WriteError, format_of, with_lock,
    write_atomically,
};

use super::read_text;
use crate::environment::text_variable;
use crate::error::CliError;
use crate::manage::writing::not_written;
use crate::text::plain;
use crate::workspace::Workspace;

const MARK: &str = "# imported from ";

/// Where the server that begins here was imported from, if it was.
pub(crate) fn of(origin: &Origin) -> Option<String> {
    if format_of(&origin.file) != Format::Toml {
        return None;
    }
    let above = usize::try_from(origin.line?).ok()?.checked_sub(2)?;
    let text = read_text(&origin.file).ok()??;
    let line = text.lines().nth(above)?;
    line.strip_prefix(MARK).map(str::to_owned)
}

/// The same, to go at the end of a sentence; nothing if there is nothing to say.
pub(crate) fn told(origin: &Origin) -> String {
    let from = of(origin).map(|from| format!(", imported from {from}"));
    from.unwrap_or_default()
}

/// Writes above each server where it comes from. JSON has no comments: there it is not kept.
pub(crate) fn keep(
    file: &Path,
    servers: &[(&str, String)],
    edits: &EditContext,
    workspace: &Workspace,
) -> Result<(), CliError> {
    if format_of(file) != Format::Toml || servers.is_empty() {
        return Ok(());
    }
    let kept = with_lock(edits, file, || {
        let text = std::fs::read_to_string(file).map_err(|source| {
            EditError::from(WriteError::Io {
                action: "read",
                path: file.to_owned(),
                source,
            })
        })?;
        // The file alone, as it is now that nobody else writes it.
        let alone = Places {
            explicit: vec![file.to_owned()],
            ..workspace.places.clone()
        };
        let config = Config::load(&alone, &text_variable);
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let mut marks: Vec<(usize, &String)> = servers
            .iter()
            .filter_map(|(name, from)| {
                let line = config.servers.get(*name)?.winner.found.origin.line?;
                Some((usize::try_from(line).ok()?.checked_sub(1)?, from))
            })
            .collect();
        marks.sort_unstable();
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        for (at, from) in marks.into_iter().rev() {
            // A server on a line with others has no place of its own for a comment.
            if !lines.get(at).is_some_and(|line| line.starts_with('[')) {
                continue;
            }
            let mark = format!("{MARK}{}{end}", plain(from));
            let above = at.checked_sub(1).and_then(|above| lines.get_mut(above));
            match above {
                Some(above) if above.starts_with(MARK) => *above = mark,
                _ => lines.insert(at, mark),
            }
        }
        let marked = lines.concat();
        if marked != text {
            write_atomically(file, marked.as_bytes(), None)?;
        }
        Ok::<(), EditError>(())
    });
    kept.map_err(|error| not_written(&error))
}
