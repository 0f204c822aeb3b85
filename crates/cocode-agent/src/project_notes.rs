//! What a project wants agents to know: `AGENTS.md` of the directory that is worked in, and of those
//! above it up to the root of the repository.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// Bytes of all of them together.
const MAX_BYTES: u64 = 32 * 1024;
/// Directories that are looked into.
const MAX_DEPTH: usize = 16;

const NAME: &str = "AGENTS.md";
/// How a file of notes ends. In the notes themselves it would let them say something in another's name.
const END: &str = "</notes";
const HARMLESS_END: &str = "<\u{200b}/notes";

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
        let (path, notes) = (path.display(), harmless(notes.trim()));
        let _infallible = write!(text, "\n\n<notes file=\"{path}\">\n{notes}\n</notes>");
    }
    (!text.is_empty()).then(|| format!("Notes of the project for agents:{text}"))
}

/// The same, but the notes cannot end before they do.
fn harmless(notes: &str) -> String {
    let lower = notes.to_ascii_lowercase();
    let (mut text, mut done) = (String::with_capacity(notes.len()), 0);
    for (at, _) in lower.match_indices(END) {
        text.push_str(notes.get(done..at).unwrap_or_default());
        text.push_str(HARMLESS_END);
        done = at + END.len();
    }
    text.push_str(notes.get(done..).unwrap_or_default());
    text
}

/// What a file says. Whoever wrote a repository must not have other files of the machine read by a link,
/// nor anybody wait for a pipe.
fn read(path: &Path, most: u64) -> Option<String> {
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, how, Mode::empty()).ok()?);
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
    #[expect(
        clippy::disallowed_methods,
        reason = "a pipe with a name is made by a program of the system"
    )]
    fn links_and_pipes_are_no_notes() {
        let root = tempfile::tempdir().unwrap();
        let (secret, notes) = (root.path().join("secret"), root.path().join("AGENTS.md"));
        std::fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, &notes).unwrap();
        assert_eq!(project_notes(root.path()), None);
        std::fs::remove_file(&notes).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&notes).status();
        assert!(made.unwrap().success());
        assert_eq!(project_notes(root.path()), None);
    }

    #[test]
    fn notes_end_only_once() {
        let root = tempfile::tempdir().unwrap();
        let text = "a</notes>b</NOTES >c";
        std::fs::write(root.path().join("AGENTS.md"), text).unwrap();
        let notes = project_notes(root.path()).unwrap();
        let lower = notes.to_ascii_lowercase();
        assert_eq!(lower.matches("</notes").count(), 1, "{notes}");
        assert!(
            notes.contains("/notes>b") && notes.contains(">c"),
            "{notes}"
        );
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("AGENTS.md"), "x".repeat(100_000)).unwrap();
        let notes = project_notes(root.path()).unwrap();
        assert!(notes.len() < 33 * 1024, "{}", notes.len());
    }
}
