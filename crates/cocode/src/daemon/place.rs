//! Where the daemon of a user is found: a socket in a directory that nobody else can change.
//!
//! Whoever keeps state elsewhere has another daemon: the name of the socket is made of the place of
//! the state.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

use cocode_wire::serve::{UnixServerError, check_socket_directory};

use super::summon::Unavailable;
use crate::sharing;
use crate::workspace::Workspace;

/// Digits of the name of a socket. Its path must fit into a hundred bytes.
const NAME_DIGITS: usize = 16;

/// Number of gateways that can have a control socket besides the daemon.
const MAX_GATEWAYS: usize = 16;

/// Where a daemon is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The socket.
    pub(crate) socket: PathBuf,
    /// What the daemon writes down about itself.
    pub(crate) log: PathBuf,
    /// What `COCODE_HOME` means, if it is set.
    pub(super) home: Option<PathBuf>,
}

impl Place {
    /// The place of the daemon for those who work here.
    pub(crate) fn of(workspace: &Workspace) -> Option<Self> {
        let state = &workspace.places.state;
        let user = rustix::process::geteuid().as_raw();
        let given = workspace.environment.homes.xdg_runtime.clone();
        // Sessions that were not told where it is still have it there.
        let usual = || PathBuf::from(format!("/run/user/{user}"));
        let runtime = given.or_else(|| Some(usual()));
        let runtime = runtime.filter(|directory| is_own(directory, user));
        let socket = socket(runtime.as_deref(), state, user)?;
        let log = state.join("daemon.log");
        let is_set = workspace.environment.homes.cocode.is_some();
        let home = is_set.then(|| workspace.places.user.clone());
        Some(Self { socket, log, home })
    }

    /// Where gateways listen for commands while another process has the socket of the daemon.
    pub(crate) fn of_gateways(&self) -> impl Iterator<Item = Self> {
        (1..=MAX_GATEWAYS).map(|number| Self {
            socket: numbered(&self.socket, number),
            ..self.clone()
        })
    }

    /// Fails if others could put something else in the place of the socket. A missing directory passes:
    /// it is created with mode 0700.
    pub(super) fn check_directory(&self) -> Result<(), Unavailable> {
        let Some(directory) = self.socket.parent() else {
            return Err(Unavailable::Nameless);
        };
        match check_socket_directory(directory, rustix::process::geteuid().as_raw()) {
            Err(UnixServerError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(())
            }
            checked => checked.map_err(Unavailable::NotPrivate),
        }
    }

    /// Who holds this file starts the daemon; the others wait.
    pub(super) fn starting(&self) -> PathBuf {
        let mut name = self.socket.as_os_str().to_owned();
        name.push(".start");
        PathBuf::from(name)
    }
}

/// The first place whose name is short enough for a socket.
fn socket(runtime: Option<&Path>, state: &Path, user: u32) -> Option<PathBuf> {
    let digest = sharing::digest([state.as_os_str()]);
    let name = digest.get(..NAME_DIGITS)?;
    let in_runtime = runtime.map(|directory| directory.join("cocode").join(format!("{name}.sock")));
    let in_state = state.join("run").join("daemon.sock");
    let last = PathBuf::from(format!("/tmp/cocode-{user}/{name}.sock"));
    let mut all = in_runtime.into_iter().chain([in_state, last]);
    all.find(|path| SocketAddr::from_pathname(numbered(path, MAX_GATEWAYS)).is_ok())
}

fn numbered(socket: &Path, number: usize) -> PathBuf {
    socket.with_extension(format!("{number}.sock"))
}

fn is_own(directory: &Path, user: u32) -> bool {
    let found = std::fs::metadata(directory);
    found.is_ok_and(|found| found.is_dir() && found.uid() == user)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::socket;

    #[test]
    fn the_socket_is_in_the_runtime_directory_and_named_after_the_state() {
        let at = |state: &str| socket(Some(Path::new("/run/user/7")), Path::new(state), 7).unwrap();
        assert!(at("/srv/a/.local/state/cocode").starts_with("/run/user/7/cocode"));
        assert_eq!(at("/srv/a"), at("/srv/a"));
        assert_ne!(at("/srv/a"), at("/srv/b"));
    }

    #[test]
    fn without_a_runtime_directory_it_is_in_the_state_or_where_its_name_fits() {
        let short = socket(None, Path::new("/srv/a/state"), 7).unwrap();
        assert_eq!(short, Path::new("/srv/a/state/run/daemon.sock"));
        let deep = format!("/{}", "x".repeat(120));
        let elsewhere = socket(None, Path::new(&deep), 7).unwrap();
        assert!(elsewhere.starts_with("/tmp/cocode-7"), "{elsewhere:?}");
    }
}
