//! What a project wants agents to know: `AGENTS.md` of the directory that is worked in, and of those
//! above it up to the root of the repository.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Bytes of all of them together.
const MAX_BYTES: u64 = 32 * 1024;
/// Directories that are looked into.
const MAX_DEPTH: usize = 16;

const NAME: &str = "AGENTS.md";

/// The notes, the outermost first; nothing if there are none.
pub(crate) fn project_notes(directory: &Path) -> Option<String> {
    let mut directories = Vec::new();
    for directory in directory.ancestors().take(MAX_DEPTH) {
        directories.push(directory);
        if directory.join(".git").exists() {
            break;
        }
    }
    // Without a repository, what is above may be anybody's.
    let is_repository = directories
        .last()
        .is_some_and(|top| top.join(".git").exists());
    if !is_repository {
        directories.truncate(1);
    }
    let (mut text, mut left) = (String::new(), MAX_BYTES);
    for directory in directories.into_iter().rev() {
        let path = directory.join(NAME);
        let Some(notes) = read(&path, left) else {
            continue;
        };
        left = left.saturating_sub(notes.len() as u64);
        let (path, notes) = (path.display(), notes.trim());
        let _infallible = write!(text, "\n\n<notes file=\"{path}\">\n{notes}\n</notes>");
    }
    (!text.is_empty()).then(|| format!("Notes of the project for agents:{text}"))
}

fn read(path: &Path, most: u64) -> Option<String> {
    let file = File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::project_notes;

    #[test]
    fn notes_of_the_repository_come_before_those_of_the_directory() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        std::fs::write(root.path().join("AGENTS.md"), "outer").unwrap();
        std::fs::write(inner.join("AGENTS.md"), "inner").unwrap();
        let notes = project_notes(&inner).unwrap();
        assert!(notes.find("outer") < notes.find("inner"), "{notes}");
    }

    #[test]
    fn without_a_repository_only_the_directory_itself_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(root.path().join("AGENTS.md"), "outer").unwrap();
        assert_eq!(project_notes(&inner), None);
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("AGENTS.md"), "x".repeat(100_000)).unwrap();
        let notes = project_notes(root.path()).unwrap();
        assert!(notes.len() < 33 * 1024, "{}", notes.len());
    }
}
