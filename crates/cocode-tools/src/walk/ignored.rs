//! What `.gitignore` files say, from the root down to where a walk is. Files above the root are
//! not read: they are outside.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, Mode, fstat, openat};

use crate::confine::{FILE, Inside, Root};
use crate::limits::MAX_IGNORE_FILE_BYTES;

const FILE_NAME: &str = ".gitignore";

/// One file for each directory on the way; the deepest one that has an opinion decides.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    levels: Vec<Option<Gitignore>>,
}

impl Ignored {
    /// Reads the files of all directories above the one where the walk begins.
    pub(super) fn enter_parents(&mut self, root: &Root, start: &Path) {
        let mut above: Vec<&Path> = start.ancestors().skip(1).collect();
        above.reverse();
        for directory in above {
            match root.open_directory(&Inside::known(directory)) {
                Ok(opened) => self.enter(opened.descriptor.as_fd(), directory),
                // It was moved since the walk's beginning was found; its file has no say.
                Err(_) => self.levels.push(None),
            }
        }
    }

    pub(super) fn enter(&mut self, directory: BorrowedFd<'_>, path: &Path) {
        self.levels.push(read(directory, path));
    }

    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether a path, relative to the root, is to be left out.
    pub(super) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        for level in self.levels.iter().rev().flatten() {
            match level.matched(path, is_directory) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// What the file in a directory says. One that is missing, unreadable, too long or no file says
/// nothing, and a line that makes no sense is passed over, as git does.
fn read(directory: BorrowedFd<'_>, path: &Path) -> Option<Gitignore> {
    let descriptor = openat(directory, FILE_NAME, FILE, Mode::empty()).ok()?;
    let stat = fstat(&descriptor).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut content = Vec::new();
    let mut file = File::from(descriptor).take(MAX_IGNORE_FILE_BYTES + 1);
    let length = file.read_to_end(&mut content).ok()?;
    if length as u64 > MAX_IGNORE_FILE_BYTES {
        return None;
    }
    let mut builder = GitignoreBuilder::new(PathBuf::from(path));
    for line in String::from_utf8_lossy(&content).lines() {
        let line = line.trim_start_matches('\u{feff}');
        drop(builder.add_line(None, line));
    }
    builder.build().ok()
}
