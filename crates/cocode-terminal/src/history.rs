//! What was typed before, in a file for all sessions: one JSON string for each line, readable by its
//! owner alone. What begins with a space is not kept.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Entries that are kept, and bytes of one.
const MAX_ENTRIES: usize = 1000;
const MAX_ENTRY_BYTES: usize = 64 * 1024;

/// Bytes of the file that are read: its end, where it is longer.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

const OWNER_ONLY: u32 = 0o600;

/// What was typed before, and where in it the person is.
#[derive(Debug, Default)]
pub(crate) struct History {
    path: Option<PathBuf>,
    /// The oldest first.
    entries: VecDeque<String>,
    /// Which one is shown, and what was being typed before that.
    shown: Option<(usize, String)>,
}

impl History {
    /// Reads the file, if there is one.
    pub(crate) fn load(path: &Path) -> io::Result<Self> {
        let text = read_end(path)?;
        let mut history = Self {
            path: Some(path.to_owned()),
            ..Self::default()
        };
        let mut n_lines = 0;
        for line in text.lines() {
            n_lines += 1;
            // A line that another process was writing, or whose beginning was cut off.
            if let Ok(entry) = serde_json::from_str::<String>(line) {
                history.remember(entry);
            }
        }
        if n_lines > 2 * MAX_ENTRIES {
            history.rewrite(path)?;
        }
        Ok(history)
    }

    /// Keeps what was typed.
    pub(crate) fn add(&mut self, entry: &str) -> io::Result<()> {
        self.shown = None;
        let is_kept = !entry.trim().is_empty()
            && !entry.starts_with(' ')
            && entry.len() <= MAX_ENTRY_BYTES
            && self.entries.back().is_none_or(|last| last != entry);
        if !is_kept {
            return Ok(());
        }
        self.remember(entry.to_owned());
        let Some(path) = &self.path else {
            return Ok(());
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(OWNER_ONLY)
            .open(path)?;
        // One write, so that lines of several sessions do not mix.
        file.write_all(line_of(entry).as_bytes())
    }

    /// The entry before the one that is shown; `typed` is what the person was typing.
    pub(crate) fn earlier(&mut self, typed: &str) -> Option<&str> {
        let (place, typed) = match &self.shown {
            Some((place, typed)) => (place.checked_sub(1)?, typed.clone()),
            None => (self.entries.len().checked_sub(1)?, typed.to_owned()),
        };
        self.shown = Some((place, typed));
        self.entries.get(place).map(String::as_str)
    }

    /// The entry after the one that is shown, or what the person was typing.
    pub(crate) fn later(&mut self) -> Option<String> {
        let (place, typed) = self.shown.take()?;
        match self.entries.get(place + 1) {
            Some(entry) => {
                self.shown = Some((place + 1, typed));
                Some(entry.clone())
            }
            None => Some(typed),
        }
    }

    /// The person changed what is shown, so it is no entry any more.
    pub(crate) fn forget_place(&mut self) {
        self.shown = None;
    }

    /// The last entry before a place that contains a text, and its place.
    pub(crate) fn find(&self, wanted: &str, before: Option<usize>) -> Option<(usize, &str)> {
        let before = before.unwrap_or(self.entries.len());
        let earlier = self.entries.iter().enumerate().take(before);
        earlier
            .rev()
            .find(|(_, entry)| entry.contains(wanted))
            .map(|(place, entry)| (place, entry.as_str()))
    }

    fn remember(&mut self, entry: String) {
        self.entries.push_back(entry);
        if self.entries.len() > MAX_ENTRIES {
            self.entries.pop_front();
        }
    }

    /// Leaves in the file what is kept.
    fn rewrite(&self, path: &Path) -> io::Result<()> {
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(OWNER_ONLY)
            .open(&aside)?;
        let lines: String = self.entries.iter().map(|entry| line_of(entry)).collect();
        file.write_all(lines.as_bytes())?;
        fs::rename(&aside, path)
    }
}

fn line_of(entry: &str) -> String {
    format!("{}\n", serde_json::Value::from(entry))
}

fn read_end(path: &Path) -> io::Result<String> {
    use std::io::{Seek as _, SeekFrom};

    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_FILE_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("history.jsonl");
        (folder, path)
    }

    #[test]
    fn what_was_typed_is_there_in_the_next_session() {
        let (_folder, path) = place();
        let mut history = History::load(&path).unwrap();
        for entry in ["one", "two\nlines", "two\nlines", " secret", "", "three"] {
            history.add(entry).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "\"one\"\n\"two\\nlines\"\n\"three\"\n");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let mut next = History::load(&path).unwrap();
        assert_eq!(next.earlier("draft"), Some("three"));
        assert_eq!(next.earlier(""), Some("two\nlines"));
        assert_eq!(next.earlier(""), Some("one"));
        assert_eq!(next.earlier(""), None);
        assert_eq!(next.later().as_deref(), Some("two\nlines"));
        assert_eq!(next.later().as_deref(), Some("three"));
        assert_eq!(next.later().as_deref(), Some("draft"));
        assert_eq!(next.later(), None);
    }

    #[test]
    fn broken_lines_hide_no_others() {
        let (folder, _) = place();
        let path = folder.path().join("history.jsonl");
        fs::write(&path, b"half\"\n\"good\"\n\xff\n{}\n\"cut").unwrap();
        let mut history = History::load(&path).unwrap();
        assert_eq!(history.earlier(""), Some("good"));
        assert_eq!(history.earlier(""), None);
    }

    #[test]
    fn the_file_is_made_short_again() {
        let (folder, _) = place();
        let path = folder.path().join("history.jsonl");
        let lines: Vec<String> = (0..=2 * MAX_ENTRIES).map(|n| format!("\"{n}\"")).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        let mut history = History::load(&path).unwrap();
        assert_eq!(history.earlier(""), Some("2000"));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), MAX_ENTRIES);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn entries_are_found_from_the_last_on() {
        let mut history = History::default();
        for entry in ["cargo test", "git log", "cargo build"] {
            history.add(entry).unwrap();
        }
        assert_eq!(history.find("cargo", None), Some((2, "cargo build")));
        assert_eq!(history.find("cargo", Some(2)), Some((0, "cargo test")));
        assert_eq!(history.find("cargo", Some(0)), None);
    }
}
