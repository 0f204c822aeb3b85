//! Where to watch so that nothing at a path changes unseen: every link on the way counts, and for
//! what does not exist yet the place where it would begin.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most links on one way, as systems have it.
const MAX_LINKS: usize = 40;

/// What to watch for some paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trail {
    /// Directories that exist, without links.
    pub(super) directories: BTreeSet<PathBuf>,
    /// What matters in them: files, links, and what is missing.
    pub(super) spots: BTreeSet<PathBuf>,
}

impl Trail {
    pub(super) fn of(paths: BTreeSet<PathBuf>) -> Self {
        let mut trail = Self::default();
        for path in paths {
            // A relative path that has no absolute one leads nowhere.
            if let Ok(path) = std::path::absolute(path) {
                trail.follow(&path);
            }
        }
        trail
    }

    fn spot(&mut self, directory: &Path, name: &OsString) {
        self.directories.insert(directory.to_owned());
        self.spots.insert(directory.join(name));
    }

    fn follow(&mut self, path: &Path) {
        let mut at = PathBuf::new();
        let mut rest = parts(path);
        let mut n_links = 0;
        while let Some(part) = rest.pop_front() {
            let name = match part {
                Part::Root(root) => {
                    at = root;
                    continue;
                }
                Part::Up => {
                    at.pop();
                    continue;
                }
                Part::Name(name) => name,
            };
            let next = at.join(&name);
            let kind = fs::symlink_metadata(&next).map(|metadata| metadata.file_type());
            match kind {
                Ok(kind) if kind.is_symlink() => {
                    self.spot(&at, &name);
                    n_links += 1;
                    let target = fs::read_link(&next);
                    let (Ok(target), true) = (target, n_links <= MAX_LINKS) else {
                        return;
                    };
                    let mut parts = parts(&target);
                    parts.append(&mut rest);
                    rest = parts;
                }
                Ok(kind) if kind.is_dir() && !rest.is_empty() => at = next,
                // The end of the way, or of what there is of it.
                Ok(_) | Err(_) => return self.spot(&at, &name),
            }
        }
    }
}

/// A step on the way.
enum Part {
    Root(PathBuf),
    Up,
    Name(OsString),
}

fn parts(path: &Path) -> VecDeque<Part> {
    let mut parts = VecDeque::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => {
                parts.push_back(Part::Root(PathBuf::from(component.as_os_str())));
            }
            Component::CurDir => {}
            Component::ParentDir => parts.push_back(Part::Up),
            Component::Normal(name) => parts.push_back(Part::Name(name.to_owned())),
        }
    }
    parts
}
