//! Confined programs on systems that are not the one of the test.

use std::error::Error as _;

use super::*;
use crate::confinement::Confinement;

#[tokio::test]
async fn a_program_that_cannot_be_confined_is_not_started() {
    let marker = std::env::temp_dir().join(format!("cocode-unconfined-{}", std::process::id()));
    let mut spec = ProcessSpec::new("/bin/sh");
    spec.args = vec!["-c".into(), r#"touch "$0""#.into(), marker.clone().into()];
    spec.confinement = Some(Confinement::read_only());
    for support in [
        Support::Missing,
        Support::SwitchedOff,
        Support::Forbidden,
        Support::OtherSystem,
        Support::Landlock { abi: 2 },
    ] {
        let error = spawn_where(&spec, || support).expect_err("it was started");
        assert_eq!(
            error.to_string(),
            "cannot start program `/bin/sh` in a sandbox"
        );
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(cause.contains("Nothing was started"), "{cause}");
    }
    assert!(!marker.exists(), "something ran unconfined");
}

#[tokio::test]
async fn a_program_that_is_not_to_be_confined_needs_no_support() {
    let spec = ProcessSpec::new("/bin/true");
    let mut child = spawn_where(&spec, || Support::Missing).expect("it is not started");
    assert!(child.wait().await.success());
}

/// What Landlock lacks in older versions, the filter of system calls covers, as far as [`Support::gaps`] says.
#[tokio::test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
async fn older_landlock_is_completed_by_the_filter() {
    use tokio::io::AsyncReadExt as _;

    let script = r"
import ctypes, errno, os, socket, subprocess, sys
def attempt(name, function):
    try:
        function(); print(name, 'ok')
    except OSError as error:
        print(name, errno.errorcode[error.errno])
libc = ctypes.CDLL(None, use_errno=True)
def signal_all():
    if libc.kill(-1, 0) == -1: raise OSError(ctypes.get_errno(), '')
def type_into_terminal():
    if libc.ioctl(0, 0x5412, b'x') == -1: raise OSError(ctypes.get_errno(), '')
attempt('tcp', lambda: socket.socket(socket.AF_INET))
attempt('unix', lambda: socket.socket(socket.AF_UNIX))
attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\0cocode-test'))
attempt('truncate', lambda: os.truncate(sys.argv[1], 0))
attempt('all', signal_all)
attempt('terminal', type_into_terminal)
subprocess.run(['true'], check=True)
";
    let file = tempfile::NamedTempFile::new().expect("a file of the user");
    for abi in 3..=6 {
        let mut spec = ProcessSpec::new("/usr/bin/python3");
        spec.args = vec!["-c".into(), script.into(), file.path().into()];
        spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        spec.confinement = Some(Confinement::read_only());
        let mut child = spawn_where(&spec, || Support::Landlock { abi }).expect("started");
        let mut output = String::new();
        let mut stdout = child.take_stdout().expect("piped");
        stdout.read_to_string(&mut output).await.expect("text");
        assert!(child.wait().await.success(), "{abi}: {:?}", child.stderr());
        // Scoped signals reach nobody, and the call succeeds.
        let all = if abi < 6 { "EPERM" } else { "ok" };
        let expected = format!(
            "tcp EPERM\nunix EPERM\nabstract EPERM\ntruncate EACCES\nall {all}\nterminal EPERM\n"
        );
        assert_eq!(output, expected, "{abi}");
    }
}
