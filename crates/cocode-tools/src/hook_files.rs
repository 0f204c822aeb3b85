//! Workspace files that other programs execute: snapshots around confined commands, and undoing changes.
//!
//! No symbolic link is followed: every name is opened, made and removed in a directory that is held.

mod stored;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{
    AtFlags, Dev, Dir, FileType, Mode, OFlags, RawMode, chmodat, fchmod, fstat, mkdirat, openat,
    readlinkat, renameat, statat, symlinkat,
};
use rustix::io::Errno;

use self::stored::StoredBaseline;
use crate::confine::{DIRECTORY, FILE, Root, size};
use crate::limits::{MAX_HOOK_BYTES, MAX_HOOK_FILES};
use crate::refusal::Refusal;
use crate::text::shown;
use crate::tool::Shared;

/// Directories with everything in them, and files. `commondir` and `config.worktree` make git read its configuration
/// and hooks elsewhere. `HEAD` makes the root itself a git directory, with its own `config`.
const WATCHED: &[&str] = &[
    ".git",
    "HEAD",
    ".vscode",
    ".envrc",
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".husky",
    ".vscode/tasks.json",
];
/// Those that count only when they are no directory.
const CONTAINERS: &[&str] = &[".git", "HEAD", ".vscode"];

/// What is there, by path relative to the root.
type Files = BTreeMap<PathBuf, Node>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File(RawMode, Vec<u8>),
    /// A file that has another name, by which it can be written later.
    SharedFile(RawMode, Vec<u8>),
    Directory(RawMode),
    Link(CString),
    /// It could not be put back, for this reason.
    Unknown(&'static str),
}

/// The state that running commands of one root are compared with. Commands that overlap share it: one that
/// began while another had changed a file would take that change for the original.
#[derive(Debug)]
struct Baseline {
    root: (Dev, u64),
    files: Mutex<Files>,
    /// The same for other processes.
    stored: Option<StoredBaseline>,
}

impl Baseline {
    fn new(root: (Dev, u64), shared: &Shared) -> Result<Self, Refusal> {
        let stored = shared.baselines.get().map(|directory| {
            let path = directory.join(format!("{:x}-{:x}", root.0, root.1));
            StoredBaseline::open(path, || capture(&shared.root))
        });
        let failed = |error| Refusal::io("store the state of", "the workspace", &error);
        let (files, stored) = match stored.transpose().map_err(failed)? {
            Some((files, stored)) => (files, Some(stored)),
            None => (capture(&shared.root), None),
        };
        Ok(Self {
            root,
            files: Mutex::new(files),
            stored,
        })
    }

    /// The files, also with what other processes have accepted meanwhile.
    fn files(&self) -> MutexGuard<'_, Files> {
        let mut files = lock(&self.files);
        match self.stored.as_ref().map(StoredBaseline::read) {
            Some(Ok(Some(stored))) => *files = stored,
            Some(Err(error)) => tracing::error!(%error, "cannot read the state of a workspace"),
            Some(Ok(None)) | None => {}
        }
        files
    }

    /// Puts the files back. A baseline for which that fails is kept.
    fn restore(self: &Arc<Self>, root: &Root) -> Result<(), Refusal> {
        let files = self.files();
        let restored = restore(root, &files);
        let mut unrestored = lock(&UNRESTORED);
        unrestored.retain(|kept| !Arc::ptr_eq(kept, self));
        let Err(refusal) = restored else {
            return Ok(());
        };
        unrestored.push(Arc::clone(self));
        let saved = self.stored.as_ref().map(|stored| stored.save(&files));
        match saved {
            Some(Ok(directory)) => Err(Refusal::new(format!(
                "{refusal}; the files as they were are in {}",
                directory.display()
            ))),
            Some(Err(error)) => {
                tracing::error!(%error, "cannot save files that could not be restored");
                Err(refusal)
            }
            None => Err(refusal),
        }
    }
}

static BASELINES: Mutex<Vec<Weak<Baseline>>> = Mutex::new(Vec::new());

/// Those that could not be restored. No command runs there until they are.
static UNRESTORED: Mutex<Vec<Arc<Baseline>>> = Mutex::new(Vec::new());

/// Watches one command. Dropped before its changes are accepted, it undoes them.
#[derive(Debug)]
pub(crate) struct HookWatch {
    shared: Arc<Shared>,
    baseline: Arc<Baseline>,
    is_armed: AtomicBool,
    /// What the command has left at the changed paths.
    changed: BTreeMap<PathBuf, Option<Node>>,
}

/// Changes of a command to files that other programs execute. They are undone when this is dropped, unless they
/// are kept.
#[derive(Clone, Debug)]
pub struct HookChanges(Arc<HookWatch>);

impl HookWatch {
    /// Takes the snapshot before a command. Refuses if a file could not be put back. Blocks.
    pub(crate) fn begin(shared: Arc<Shared>) -> Result<Self, Refusal> {
        let stat = fstat(&shared.root).map_err(|errno| Refusal::system("watch", ".", errno))?;
        let root = (stat.st_dev, stat.st_ino);
        let mut baselines = lock(&BASELINES);
        baselines.retain(|known| known.strong_count() > 0);
        let mut known = baselines.iter().filter_map(Weak::upgrade);
        let baseline = if let Some(baseline) = known.find(|known| known.root == root) {
            baseline
        } else {
            let baseline = Arc::new(Baseline::new(root, &shared)?);
            baselines.push(Arc::downgrade(&baseline));
            baseline
        };
        let failed = lock(&UNRESTORED)
            .iter()
            .any(|failed| Arc::ptr_eq(failed, &baseline));
        if failed {
            baseline.restore(&shared.root)?;
        }
        let files = baseline.files();
        if let Some((path, Node::Unknown(why))) = files
            .iter()
            .find(|(_, node)| matches!(node, Node::Unknown(_)))
        {
            return Err(Refusal::denied(format!(
                "no command is run: other programs execute `{}`, and a change could not be undone: it {why}",
                shown(path)
            )));
        }
        drop(files);
        Ok(Self {
            shared,
            baseline,
            is_armed: AtomicBool::new(true),
            changed: BTreeMap::new(),
        })
    }

    /// Compares when the command and all its processes have ended. Blocks.
    pub(crate) fn finish(mut self) -> Option<HookChanges> {
        let after = capture(&self.shared.root);
        let before = self.baseline.files();
        for path in before.keys().chain(after.keys()) {
            let left = after.get(path);
            if before.get(path) != left {
                self.changed.insert(path.clone(), left.cloned());
            }
        }
        drop(before);
        self.is_armed = AtomicBool::new(!self.changed.is_empty());
        (!self.changed.is_empty()).then(|| HookChanges(Arc::new(self)))
    }

    /// Puts the files back, unless that was done, or the changes were accepted.
    fn undo(&self) -> Result<(), Refusal> {
        if !self.is_armed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        self.baseline.restore(&self.shared.root)
    }
}

impl Drop for HookWatch {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            tracing::error!(%error, "cannot undo the changes of a command");
        }
    }
}

impl HookChanges {
    /// The changed paths, relative to the workspace.
    pub fn paths(&self) -> Vec<String> {
        self.0.changed.keys().map(shown).collect()
    }

    /// Accepts the changes.
    pub fn keep(&self) {
        if self.0.is_armed.swap(false, Ordering::Relaxed) {
            let mut baseline = self.0.baseline.files();
            for (path, left) in &self.0.changed {
                match left {
                    Some(node) => baseline.insert(path.clone(), node.clone()),
                    None => baseline.remove(path),
                };
            }
            if let Some(Err(error)) =
                (self.0.baseline.stored.as_ref()).map(|stored| stored.write(&baseline))
            {
                tracing::error!(%error, "other processes do not learn what was accepted");
            }
        }
    }

    /// Puts the files back. Says what could not be.
    pub fn undo(&self) -> Result<(), String> {
        self.0.undo().map_err(|refusal| refusal.to_string())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn capture(root: &Root) -> Files {
    let mut files = Files::new();
    // Breadth first: however many files there are in one of them, each of these is looked at.
    let mut paths: VecDeque<PathBuf> = WATCHED.iter().map(PathBuf::from).collect();
    while let Some(path) = paths.pop_front() {
        if files.len() >= MAX_HOOK_FILES {
            files.insert(path, Node::Unknown("is one of too many such files"));
            break;
        }
        let mut found = look(root, &path);
        if let Ok(Some(Node::Directory(_))) = found {
            if is_container(&path) {
                continue;
            }
            match open(root, &path, false).and_then(|directory| names(&directory)) {
                Ok(names) => paths.extend(names.iter().map(|name| path.join(name))),
                Err(errno) => found = Err(errno),
            }
        }
        if let Some(node) = found.unwrap_or(Some(Node::Unknown("cannot be read"))) {
            files.insert(path, node);
        }
    }
    files
}

fn is_container(path: &Path) -> bool {
    CONTAINERS
        .iter()
        .any(|container| path == Path::new(container))
}

/// What is at a path. What is behind something that is no directory is not there.
fn look(root: &Root, path: &Path) -> Result<Option<Node>, Errno> {
    let found = open_parent(root, path, false).and_then(|(parent, name)| {
        let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = stat.st_mode & 0o7777;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Node::Directory(mode),
            FileType::Symlink => Node::Link(readlinkat(&parent, name, Vec::new())?),
            FileType::RegularFile if size(&stat) <= MAX_HOOK_BYTES => {
                let file = openat(&parent, name, FILE, Mode::empty())?;
                let mut content = Vec::new();
                let mut file = File::from(file).take(MAX_HOOK_BYTES);
                file.read_to_end(&mut content)
                    .map_err(|error| errno_of(&error))?;
                if stat.st_nlink > 1 {
                    Node::SharedFile(mode, content)
                } else {
                    Node::File(mode, content)
                }
            }
            _ => Node::Unknown("is too large, or no file"),
        })
    });
    match found {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => Ok(None),
        found => found.map(Some),
    }
}

/// Restores all watched files. Every changed one is moved away before any is written, so that none stays active if
/// writing fails. Returns the first error.
fn restore(root: &Root, before: &Files) -> Result<(), Refusal> {
    unlock_directories(root);
    let now = capture(root);
    let changed = WATCHED.iter().map(Path::new).filter_map(|top| {
        let is_of_it = |(path, _): &(&PathBuf, &Node)| {
            *path == top || !is_container(top) && path.starts_with(top)
        };
        let wanted: Vec<_> = before.iter().filter(is_of_it).collect();
        let is_changed = !now.iter().filter(is_of_it).eq(wanted.iter().copied());
        is_changed.then_some((top, wanted))
    });
    let changed: Vec<_> = changed.collect();
    let moved = changed.iter().map(|(top, _)| (top, move_away(root, top)));
    let moved: Vec<_> = moved.collect();
    let written = changed
        .iter()
        .map(|(top, wanted)| (top, write(root, wanted)));
    let outcomes = moved.into_iter().chain(written);
    let mut failed = Ok(());
    for (top, outcome) in outcomes {
        let outcome =
            outcome.map_err(|errno| Refusal::system("undo the change of", &shown(top), errno));
        failed = failed.and(outcome);
    }
    failed
}

/// Gives the owner back the rights to change the directories that are watched.
fn unlock_directories(root: &Root) {
    let open_to_owner = |mode: RawMode| Mode::from_raw_mode(mode & 0o7777 | 0o700);
    if let Ok(stat) = fstat(root)
        && let Err(errno) = fchmod(root, open_to_owner(stat.st_mode))
    {
        tracing::debug!(%errno, "cannot change the mode of the workspace");
    }
    for path in WATCHED.iter().map(Path::new) {
        let unlocked = open_parent(root, path, false).and_then(|(parent, name)| {
            let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    chmodat(&parent, name, open_to_owner(stat.st_mode), AtFlags::empty())
                }
                _ => Ok(()),
            }
        });
        // What cannot be changed then is an error of the restoring itself.
        if let Err(errno) = unlocked {
            tracing::debug!(%errno, path = %path.display(), "cannot change the mode of a directory");
        }
    }
}

/// Renames what is at a path: the user may have changed it meanwhile, and a directory may be deep.
fn move_away(root: &Root, top: &Path) -> Result<(), Errno> {
    match open_parent(root, top, false) {
        Ok((parent, name)) => {
            let aside = format!(".cocode-undone-{:016x}", fastrand::u64(..));
            match renameat(&parent, name, &parent, aside) {
                Err(Errno::NOENT) => Ok(()),
                renamed => renamed,
            }
        }
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Writes what was there.
fn write(root: &Root, wanted: &[(&PathBuf, &Node)]) -> Result<(), Errno> {
    for (path, node) in wanted {
        let (parent, name) = open_parent(root, path, true)?;
        match node {
            Node::Link(target) => symlinkat(target, &parent, name)?,
            Node::Directory(_) => mkdirat(&parent, name, Mode::RWXU)?,
            Node::File(mode, content) | Node::SharedFile(mode, content) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mut file = File::from(openat(&parent, name, flags, Mode::RUSR)?);
                file.write_all(content).map_err(|error| errno_of(&error))?;
                fchmod(&file, Mode::from_raw_mode(*mode))?;
            }
            Node::Unknown(_) => {}
        }
    }
    for (path, node) in wanted.iter().rev() {
        if let Node::Directory(mode) = node {
            fchmod(open(root, path, false)?, Mode::from_raw_mode(*mode))?;
        }
    }
    Ok(())
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn names(directory: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// The directory that a path is in, and its name there.
fn open_parent<'a>(
    root: &Root,
    path: &'a Path,
    makes: bool,
) -> Result<(OwnedFd, &'a OsStr), Errno> {
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
    Ok((open(root, parent, makes)?, name))
}

/// Opens a directory, one name after the other; what is missing is made if that is wanted.
fn open(root: &Root, path: &Path, makes: bool) -> Result<OwnedFd, Errno> {
    let mut directory = openat(root.as_fd(), ".", DIRECTORY, Mode::empty())?;
    for name in path {
        if makes {
            match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        directory = openat(&directory, name, DIRECTORY, Mode::empty())?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::{Files, Node, Root, restore};
    use crate::confine::Resolver;

    #[test]
    fn what_cannot_be_restored_keeps_nothing_else_from_it() {
        let directory = tempfile::tempdir().unwrap();
        let inside = |name: &str| directory.path().join(name);
        std::fs::create_dir(inside(".git")).unwrap();
        for name in [".envrc", ".git/config", ".husky"] {
            std::fs::write(inside(name), "changed").unwrap();
        }
        let root = Root::open(directory.path(), Resolver::System).unwrap();
        // No link can have a target of that length.
        let target = CString::new("x".repeat(10_000)).unwrap();
        let before = Files::from([
            (".envrc".into(), Node::File(0o644, b"before".into())),
            (".git/config".into(), Node::Link(target)),
        ]);
        let refusal = restore(&root, &before).unwrap_err().to_string();
        assert!(refusal.contains(".git/config"), "{refusal}");
        assert_eq!(std::fs::read(inside(".envrc")).unwrap(), b"before");
        assert!(!inside(".git/config").exists() && !inside(".husky").exists());
    }
}
