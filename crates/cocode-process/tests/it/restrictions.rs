//! Programs inside and outside of a sandbox that connect to a socket, as the other end sees them.

use std::io::Read as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use cocode_process::{
    Confinement, GuardedChild, PathHandle, ProcessSpec, Restrictions, RestrictionsError,
    confinement_support, spawn,
};
use tempfile::TempDir;

use crate::read_all;

/// Tells the test program where to connect.
pub(crate) const CONNECT_ROLE: &str = "COCODE_PROCESS_TEST_CONNECT";

/// A copy of this program that does one test, or plays a role.
fn copy(test: &str, confinement: Option<Confinement>) -> ProcessSpec {
    let mut spec = ProcessSpec::new(std::env::current_exe().unwrap());
    spec.args = ["--exact", test, "--nocapture"].map(Into::into).into();
    spec.confinement = confinement;
    spec
}

fn connecting(socket: &Path, confinement: Option<Confinement>) -> GuardedChild {
    let mut spec = copy("restrictions::connect", confinement);
    spec.env = vec![(CONNECT_ROLE.into(), socket.into())];
    spawn(&spec).unwrap()
}

/// Not a test by itself: connects, and stays until the other end is closed or says something.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "is told what to do by its environment"
)]
fn connect() {
    let Some(socket) = std::env::var_os(CONNECT_ROLE) else {
        return;
    };
    let mut stream = UnixStream::connect(socket).unwrap();
    let n_read = stream.read(&mut [0]).unwrap();
    assert_eq!(n_read, 0);
}

fn check_support() {
    let support = confinement_support();
    assert!(support.is_sufficient(), "{support}");
}

#[tokio::test]
async fn whoever_is_in_a_sandbox_is_told_from_others() {
    check_support();
    let house = TempDir::new().unwrap();
    let socket = house.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let own = Restrictions::own().unwrap();
    let seen = async |confinement| {
        let mut child = connecting(&socket, confinement);
        let (stream, _address) = listener.accept().unwrap();
        let peer = Restrictions::of_peer(&stream).unwrap();
        drop(stream);
        assert!(child.wait().await.success());
        peer
    };

    let ordinary = seen(None).await;
    assert_eq!(ordinary, own);
    assert!(own.may_serve(ordinary));

    let confined = Restrictions {
        no_new_privileges: true,
        filters: own.filters + 1,
        is_sandboxed: true,
        ..own
    };
    let read_only = Confinement::read_only();
    let workspace = Confinement::workspace_write(PathHandle::open(house.path()).unwrap());
    // Without network, a program in the sandbox cannot connect at all.
    for confinement in [read_only.with_network(), workspace.with_network()] {
        let peer = seen(Some(confinement.clone())).await;
        assert_eq!(peer, confined, "{confinement:?}");
        assert!(!own.may_serve(peer), "{confinement:?}");
    }
}

#[tokio::test]
async fn they_are_told_apart_inside_of_a_sandbox_too() {
    check_support();
    let house = TempDir::new().unwrap();
    // With network, so that nothing but the mark of the inner sandboxes is new.
    let sandbox =
        Confinement::workspace_write(PathHandle::open(house.path()).unwrap()).with_network();
    let test = "restrictions::whoever_is_in_a_sandbox_is_told_from_others";
    let mut spec = copy(test, Some(sandbox));
    spec.env = vec![("TMPDIR".into(), house.path().into())];
    let mut child = spawn(&spec).unwrap();
    let output = read_all(&mut child).await;
    assert!(child.wait().await.success(), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

#[tokio::test]
async fn whoever_has_ended_is_not_known_though_its_connection_lasts() {
    let house = TempDir::new().unwrap();
    let socket = house.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut child = connecting(&socket, None);
    let (stream, _address) = listener.accept().unwrap();
    Restrictions::of_peer(&stream).unwrap();
    child.stop().await;
    let ended = Restrictions::of_peer(&stream);
    assert!(matches!(ended, Err(RestrictionsError::Ended)), "{ended:?}");
}

#[test]
fn the_own_process_is_as_restricted_as_itself() {
    let (one, _other) = UnixStream::pair().unwrap();
    let own = Restrictions::own().unwrap();
    assert_eq!(Restrictions::of_peer(&one).unwrap(), own);
    assert!(own.may_serve(own));
}

#[test]
fn what_is_no_unix_socket_has_nobody_at_its_other_end() {
    let file = tempfile::tempfile().unwrap();
    let unknown = Restrictions::of_peer(&file);
    assert!(
        matches!(unknown, Err(RestrictionsError::Unidentified(_))),
        "{unknown:?}"
    );
}
