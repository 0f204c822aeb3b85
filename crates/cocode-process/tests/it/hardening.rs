//! Protection of the own process: relation to peers, memory, limits.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use cocode_process::{
    ProcessSpec, adopt_orphans, peer_is_descendant, protect_process_memory, raise_descriptor_limit,
    spawn, spawn_detached,
};
use tempfile::TempDir;

use crate::restrictions::CONNECT_ROLE;
use crate::{read_all, shell};

/// Shell command for a copy of this program that connects, and stays until the other end is closed.
const CONNECT: &str = "\"$COPY\" --exact restrictions::connect";

fn connecting(script: &str, socket: &Path) -> ProcessSpec {
    let mut spec = shell(script);
    let copy = std::env::current_exe().unwrap();
    spec.env.push(("COPY".into(), copy.into()));
    spec.env.push((CONNECT_ROLE.into(), socket.into()));
    spec
}

/// Whether the process that connects next is a descendant.
fn next_is_descendant(listener: &UnixListener) -> bool {
    let (stream, _address) = listener.accept().unwrap();
    peer_is_descendant(&stream).unwrap()
}

#[tokio::test]
async fn descendants_are_told_from_others() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();

    let _own = UnixStream::connect(&socket).unwrap();
    assert!(!next_is_descendant(&listener));

    let _child = spawn(&connecting(CONNECT, &socket)).unwrap();
    assert!(next_is_descendant(&listener));

    // Its parent is gone, and its guard has adopted it.
    let orphan = format!("({CONNECT}) & setsid sh -c '({CONNECT}) &'; wait");
    let _orphan = spawn(&connecting(&orphan, &socket)).unwrap();
    // Both are held: the guard ends the second one as soon as the first one is done.
    let accepted = [(); 2].map(|()| listener.accept().unwrap().0);
    for stream in &accepted {
        assert!(peer_is_descendant(stream).unwrap());
    }
    drop(accepted);

    let _stdout = spawn_detached(&connecting(CONNECT, &socket), None).unwrap();
    assert!(!next_is_descendant(&listener));
}

#[tokio::test]
async fn orphan_of_killed_guard_stays_a_descendant() {
    adopt_orphans().unwrap();
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    // In a group of its own, which the death of the guard does not end.
    let script = format!(
        "GUARD=$PPID PARENT=$$ setsid sh -c '
           kill -KILL $GUARD
           while [ \"$(cut -d\" \" -f4 /proc/$$/stat)\" = $PARENT ]; do :; done
           {CONNECT}' &
         wait"
    );
    let _child = spawn(&connecting(&script, &socket)).unwrap();
    assert!(next_is_descendant(&listener));
}

/// Not a test by itself: raises its limit, and starts a program.
#[tokio::test]
async fn raise_limit() {
    let own = || {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let own = limits
            .lines()
            .find(|line| line.starts_with("Max open files"));
        let mut own = own.unwrap().split_whitespace().skip(3).map(str::to_owned);
        (own.next().unwrap(), own.next().unwrap())
    };
    let (before, hard) = own();
    raise_descriptor_limit().unwrap();
    assert_eq!(own(), (hard.clone(), hard));
    let mut child = spawn(&shell("ulimit -Sn")).unwrap();
    assert_eq!(read_all(&mut child).await.trim(), before);
}

#[tokio::test]
async fn program_gets_the_descriptor_limit_from_before_the_raise() {
    let mut spec = shell("ulimit -Sn 256; exec \"$COPY\" --exact hardening::raise_limit");
    let copy = std::env::current_exe().unwrap();
    spec.env.push(("COPY".into(), copy.into()));
    let mut child = spawn(&spec).unwrap();
    let output = read_all(&mut child).await;
    assert!(child.wait().await.success(), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

/// Tells a copy of this program that it runs as an ordinary user.
const USER_ROLE: &str = "COCODE_PROCESS_TEST_USER";

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "is told what to do by its environment"
)]
async fn protected_process_is_closed_to_its_programs_but_not_to_itself() {
    if std::env::var_os(USER_ROLE).is_none() && is_root() {
        // Root may read everything, so an ordinary user has to try.
        let directory = TempDir::new().unwrap();
        let copy = directory.path().join("copy");
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.path(), mode).unwrap();
        let mut spec = shell(
            "exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$C\" --exact --nocapture \
             hardening::protected_process_is_closed_to_its_programs_but_not_to_itself",
        );
        spec.env.push(("C".into(), copy.into()));
        spec.env.push((USER_ROLE.into(), "1".into()));
        let mut child = spawn(&spec).unwrap();
        let output = read_all(&mut child).await;
        assert!(child.wait().await.success(), "{output}");
        assert!(output.contains("1 passed"), "{output}");
        return;
    }
    protect_process_memory().unwrap();
    let own = std::process::id();
    let script = format!(
        "cat /proc/{own}/environ >/dev/null 2>&1 && echo read
         cat /proc/$PPID/environ >/dev/null 2>&1 && echo read
         cat /proc/$$/environ >/dev/null && echo own
         tr '\\0' ' ' </proc/$PPID/cmdline"
    );
    let mut child = spawn(&shell(&script)).unwrap();
    // The program is as open as ever, and the guard still has its own name.
    let output = read_all(&mut child).await;
    assert_eq!(output.trim(), "own\nprocess-guard");
    // What this crate and the tools read of the own process.
    for file in ["fd/0", "exe", "ns/mnt"] {
        std::fs::read_link(format!("/proc/self/{file}")).unwrap();
    }
    for file in ["status", "limits", "maps", "fdinfo/0"] {
        std::fs::read(format!("/proc/self/{file}")).unwrap();
    }
    let (one, _other) = UnixStream::pair().unwrap();
    assert!(!peer_is_descendant(&one).unwrap());
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.contains("\nUid:\t0\t0\t")
}
