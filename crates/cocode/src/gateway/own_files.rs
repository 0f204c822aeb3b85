//! The files that are the gateway's own: what it keeps, and what it obeys. Clients that say who they are must
//! neither read the one nor write the other.

use std::path::{Path, PathBuf};

use crate::daemon::Place;
use crate::workspace::Workspace;

/// What the gateway keeps for itself, if it is below this directory: its tokens, its log, credentials.
pub(super) fn kept_below(root: &Path, workspace: &Workspace) -> Option<PathBuf> {
    let places = &workspace.places;
    first_below(root, [&places.state, &places.user])
}

/// What decides what the gateway does, if it is below this directory: its configuration, also that of the
/// directory that it was started in, its tokens, its socket.
pub(super) fn obeyed_below(root: &Path, workspace: &Workspace) -> Option<PathBuf> {
    let places = &workspace.places;
    let socket = Place::of(workspace).map(|place| place.socket);
    let obeyed = [&places.user, &places.state, &places.system].into_iter();
    first_below(root, obeyed.chain(&places.directory).chain(&socket))
}

fn first_below<'a>(root: &Path, paths: impl IntoIterator<Item = &'a PathBuf>) -> Option<PathBuf> {
    let mut paths = paths.into_iter().map(|path| real(path));
    paths.find(|path| path.starts_with(root))
}

/// Where a path leads, also if its end is not there yet.
fn real(path: &Path) -> PathBuf {
    match (std::fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(above), Some(name)) => real(above).join(name),
        (Err(_), ..) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::first_below;

    #[test]
    fn what_is_not_there_yet_is_found_through_links() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/ana")).unwrap();
        std::fs::create_dir(root.join("elsewhere")).unwrap();
        symlink(root.join("home/ana"), root.join("me")).unwrap();
        let state = root.join("me/.local/state/cocode");
        let real = root.join("home/ana/.local/state/cocode");
        assert_eq!(first_below(&root.join("home"), [&state]), Some(real));
        assert_eq!(first_below(&root.join("elsewhere"), [&state]), None);
    }
}
