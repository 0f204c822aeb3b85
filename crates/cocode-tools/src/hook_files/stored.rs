//! The state before running commands, in a file that processes share.

use std::ffi::{CString, OsString};
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::RawMode;

use super::{Files, Node};

/// How often, and after which pause each, a lock is tried that another process has for a moment.
const LOCK_ATTEMPTS: usize = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A node in a file: path, kind, mode, and content or target.
type StoredNode = (String, u8, RawMode, String);

/// A baseline in a file, which is locked by every process that uses it, and removed by the last.
#[derive(Debug)]
pub(super) struct StoredBaseline {
    path: PathBuf,
    lock: File,
}

impl StoredBaseline {
    /// Uses the baseline of other processes, or makes the first.
    pub(super) fn open(path: PathBuf, capture: impl Fn() -> Files) -> io::Result<(Files, Self)> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        (DirBuilder::new().recursive(true).mode(0o700)).create(directory)?;
        let lock = File::create(path.with_extension("lock"))?;
        let stored = Self { path, lock };
        for _ in 0..LOCK_ATTEMPTS {
            match stored.lock.try_lock() {
                Ok(()) => {
                    let files = capture();
                    stored.write(&files)?;
                    // Another process that is first now finds the same files: no command runs yet.
                    if stored.lock.try_lock_shared().is_ok() {
                        return Ok((files, stored));
                    }
                }
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {
                    if stored.lock.try_lock_shared().is_ok()
                        && let Some(files) = stored.read()?
                    {
                        return Ok((files, stored));
                    }
                }
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    pub(super) fn read(&self) -> io::Result<Option<Files>> {
        match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            stored => {
                let nodes: Vec<StoredNode> = serde_json::from_slice(&stored?)?;
                let files: io::Result<Files> = nodes.into_iter().map(from_stored).collect();
                files.map(Some)
            }
        }
    }

    /// Writes the files where their user finds them, because they could not be put back.
    pub(super) fn save(&self, files: &Files) -> io::Result<PathBuf> {
        let directory = self
            .path
            .with_extension(format!("unrestored-{:016x}", fastrand::u64(..)));
        for (path, node) in files {
            if let Node::File(_, content) | Node::SharedFile(_, content) = node {
                let path = directory.join(path);
                std::fs::create_dir_all(path.parent().unwrap_or(&directory))?;
                std::fs::write(path, content)?;
            }
        }
        Ok(directory)
    }

    pub(super) fn write(&self, files: &Files) -> io::Result<()> {
        let nodes: Vec<StoredNode> = files.iter().map(to_stored).collect();
        let new = self
            .path
            .with_extension(format!("{:016x}", fastrand::u64(..)));
        std::fs::write(&new, serde_json::to_vec(&nodes)?)?;
        std::fs::rename(&new, &self.path)
    }
}

fn to_stored((path, node): (&PathBuf, &Node)) -> StoredNode {
    let (kind, mode, content) = match node {
        Node::File(mode, content) => (0, *mode, content.as_slice()),
        Node::Directory(mode) => (1, *mode, &[][..]),
        Node::Link(target) => (2, 0, target.to_bytes()),
        Node::Unknown(_) => (3, 0, &[][..]),
        Node::SharedFile(mode, content) => (4, *mode, content.as_slice()),
    };
    let path = STANDARD.encode(path.as_os_str().as_bytes());
    (path, kind, mode, STANDARD.encode(content))
}

fn from_stored((path, kind, mode, content): StoredNode) -> io::Result<(PathBuf, Node)> {
    let path = STANDARD.decode(path).map_err(io::Error::other)?;
    let content = STANDARD.decode(content).map_err(io::Error::other)?;
    let node = match kind {
        0 => Node::File(mode, content),
        1 => Node::Directory(mode),
        2 => Node::Link(CString::new(content)?),
        4 => Node::SharedFile(mode, content),
        _ => Node::Unknown("could not be read by another process"),
    };
    Ok((OsString::from_vec(path).into(), node))
}

impl Drop for StoredBaseline {
    fn drop(&mut self) {
        // No other process uses it.
        if self.lock.try_lock().is_ok()
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, "cannot remove the state of a workspace");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Files, Node, Path, StoredBaseline};

    #[test]
    fn processes_share_the_state_before_the_first_command() {
        let directory = tempfile::tempdir().unwrap();
        let open = |content: &str| {
            let file = Node::File(0o644, content.into());
            let files = Files::from([
                (".envrc".into(), file),
                (".husky".into(), Node::Directory(0o755)),
            ]);
            StoredBaseline::open(directory.path().join("1-2"), || files.clone()).unwrap()
        };
        let content = |files: &Files| match files.get(Path::new(".envrc")) {
            Some(Node::File(0o644, content)) => content.clone(),
            other => panic!("{other:?}"),
        };
        let (first, one) = open("clean");
        let (mut second, other) = open("changed by the command of the first");
        assert_eq!(second, first);
        second.insert(".envrc".into(), Node::File(0o644, b"accepted".into()));
        other.write(&second).unwrap();
        drop(other);
        assert_eq!(content(&one.read().unwrap().unwrap()), b"accepted");
        drop(one);
        let (files, one) = open("new");
        assert_eq!(content(&files), b"new");
        let saved = one.save(&files).unwrap();
        assert_eq!(std::fs::read(saved.join(".envrc")).unwrap(), b"new");
    }
}
