//! The files that are the gateway's own: what it keeps, and what it obeys. Clients that say who they are must
//! neither read the one nor write the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_config::{LOCAL_FILE, PROJECT_FILES};
use cocode_process::{Confinement, reserved_paths, resolve};

use crate::daemon::Place;
use crate::error::CliError;
use crate::records::audit_directory;
use crate::workspace::Workspace;

/// The directory of the settings of a work tree.
const SETTINGS_DIRECTORY: &str = ".cocode";

/// The mark of a repository: configuration above it does not count.
const REPOSITORY: &str = ".git";

/// Paths that no directory of a principal may contain or be inside of.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFiles(Arc<[PathBuf]>);

impl OwnFiles {
    /// What the gateway keeps for itself: its tokens, its log, credentials.
    pub(super) fn kept(workspace: &Workspace) -> Self {
        let places = &workspace.places;
        Self::of([places.state.clone(), places.user.clone()])
    }

    pub(crate) fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// What decides what the gateway does, and proves what it did: its configuration, also that of the directory that
    /// it was started in and of those above, its tokens, its socket, its audit log.
    pub(super) fn obeyed(workspace: &Workspace) -> Result<Self, CliError> {
        let places = &workspace.places;
        let socket = Place::of(workspace).map(|place| place.socket);
        let sockets = socket.as_deref().and_then(Path::parent).map(Path::to_owned);
        let directories = places.directory.iter().flat_map(|here| here.ancestors());
        let names = PROJECT_FILES.map(|(name, _)| name);
        let names = [LOCAL_FILE, SETTINGS_DIRECTORY, REPOSITORY]
            .into_iter()
            .chain(names);
        let in_tree =
            directories.flat_map(|directory| names.clone().map(|name| directory.join(name)));
        let own = [&places.user, &places.state, &places.system];
        let own = own.into_iter().chain(&places.explicit).cloned();
        let own = own.chain(sockets).chain([audit_directory(workspace)?]);
        Ok(Self::of(own.chain(in_tree)))
    }

    /// A confinement that keeps file tools from these paths. Configuration files and keys that are named are not read
    /// either, nor is the audit log.
    pub(super) fn reserve(
        &self,
        keys: impl IntoIterator<Item = PathBuf>,
        workspace: &Workspace,
    ) -> Result<Confinement, CliError> {
        let mut reserved = Confinement::read_only();
        for path in &*self.0 {
            reserved = reserved.with_protected(path);
        }
        let hidden = workspace.places.explicit.iter().cloned().chain(keys);
        for path in hidden.chain([audit_directory(workspace)?]) {
            reserved = reserved.with_hidden(&path);
        }
        Ok(reserved)
    }

    /// The first of these paths that a directory contains or is inside of.
    pub(crate) fn exposed_by(&self, directory: &Path) -> Option<&Path> {
        let directory = resolve(directory);
        let mut paths = self.0.iter().map(PathBuf::as_path);
        paths.find(|path| {
            let reserved = reserved_paths(path);
            reserved
                .iter()
                .any(|reserved| reserved.starts_with(&directory) || directory.starts_with(reserved))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::OwnFiles;

    #[test]
    fn path_is_exposed_from_above_from_inside_and_through_links() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for made in ["home/ana", "elsewhere", "links", "store/plugins"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        symlink(root.join("home/ana"), root.join("me")).unwrap();
        symlink(root.join("store"), root.join("links/config")).unwrap();
        // The first is not there yet.
        let (state, user) = (
            root.join("me/.local/state/cocode"),
            root.join("links/config"),
        );
        let own = OwnFiles::of([state.clone(), user.clone()]);
        let exposed = |path: &str| own.exposed_by(&root.join(path)).map(Path::to_owned);
        for above_or_inside in ["home", "me/.local", "home/ana/.local/state/cocode/plugins"] {
            assert_eq!(
                exposed(above_or_inside).as_ref(),
                Some(&state),
                "{above_or_inside}"
            );
        }
        // Whoever writes in `links` leads the gateway to another directory.
        for above_or_inside in ["links", "store", "store/plugins", "links/config/plugins"] {
            assert_eq!(
                exposed(above_or_inside).as_ref(),
                Some(&user),
                "{above_or_inside}"
            );
        }
        for beside in [
            "elsewhere",
            "home/ana/work",
            "home/ana/.local/state/cocoder",
        ] {
            assert_eq!(exposed(beside), None, "{beside}");
        }
    }
}
