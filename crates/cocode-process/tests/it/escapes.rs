//! Attempts to leave the sandbox against the real kernel, each by another mechanism.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_process::{
    ConfineError, Confinement, ExitReport, PathHandle, ProcessSpec, TemporaryDirectory,
    confinement_support, spawn,
};
use tempfile::TempDir;

use crate::{read_all, shell};

/// A workspace, a home with a secret beside it, and a state directory with a temporary directory in it.
struct Layout {
    top: TempDir,
}

impl Layout {
    fn new() -> Self {
        let support = confinement_support();
        assert!(support.is_sufficient(), "{support}");
        let top = TempDir::new().unwrap();
        for name in ["ws/sub", "user/.config", "state/tmp"] {
            fs::create_dir_all(top.path().join(name)).unwrap();
        }
        fs::write(top.path().join("user/secret"), "secret").unwrap();
        fs::write(top.path().join("state/token"), "token").unwrap();
        Self { top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    fn handle(&self, name: &str) -> PathHandle {
        PathHandle::open(&self.path(name)).unwrap()
    }

    fn temporary(&self) -> Arc<TemporaryDirectory> {
        Arc::new(TemporaryDirectory::open(&self.path("state/tmp")).unwrap())
    }

    fn workspace_write(&self) -> Confinement {
        Confinement::workspace_write(self.handle("ws"))
            .with_temporary(self.temporary())
            .with_hidden(&self.path("state"))
            .with_protected(&self.path("user/.config"))
    }

    async fn run(&self, confinement: &Confinement, script: &str) -> (ExitReport, String) {
        let mut spec = shell(script);
        spec.env.push(("TOP".into(), self.path("").into()));
        self.start(confinement, spec).await
    }

    async fn python(&self, confinement: &Confinement, script: &str) -> String {
        let mut spec = shell("exec python3 -c \"$SCRIPT\"");
        spec.env.push(("SCRIPT".into(), script.into()));
        spec.env.push(("TOP".into(), self.path("").into()));
        self.start(confinement, spec).await.1
    }

    async fn start(
        &self,
        confinement: &Confinement,
        mut spec: ProcessSpec,
    ) -> (ExitReport, String) {
        spec.cwd = Some(self.path("ws"));
        spec.directory = Some(self.handle("ws"));
        spec.confinement = Some(confinement.clone());
        let mut child = spawn(&spec).unwrap();
        let output = read_all(&mut child).await;
        let report = child.wait().await;
        (
            report,
            format!("{output}{}", child.stderr().lines(50).join("\n")),
        )
    }
}

#[tokio::test]
async fn a_root_that_is_replaced_by_a_link_gives_nothing_to_the_next_command() {
    let layout = Layout::new();
    let confinement = Confinement::workspace_write(layout.handle("ws"))
        .with_writable([layout.path("ws/sub")])
        .unwrap();
    let (report, output) = layout
        .run(
            &confinement,
            "rmdir sub && ln -s $TOP/user sub && echo done",
        )
        .await;
    assert!(report.success(), "{output}");
    let (report, output) = layout.run(&confinement, "echo x >sub/new").await;
    assert!(!report.success(), "{output}");
    assert!(!layout.path("user/new").exists());
    // Nor is the link opened again by whoever starts anew.
    let again = Confinement::read_only().with_writable([layout.path("ws/sub")]);
    match again {
        Err(ConfineError::Link { name, .. }) => assert_eq!(name, "sub"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_link_above_a_root_is_refused_and_named() {
    let layout = Layout::new();
    symlink(layout.path("user"), layout.path("ws/link")).unwrap();
    let error = PathHandle::open(&layout.path("ws/link/.config")).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("`link` in it is a symbolic link"),
        "{message}"
    );
    let dotted = layout.path("ws/sub/../sub");
    assert!(PathHandle::open(&dotted).is_ok());
}

#[tokio::test]
async fn a_command_starts_in_the_directory_that_was_opened() {
    let layout = Layout::new();
    let directory = layout.handle("ws/sub");
    fs::rename(layout.path("ws/sub"), layout.path("ws/moved")).unwrap();
    symlink(layout.path("user"), layout.path("ws/sub")).unwrap();
    let mut spec = shell("pwd -P; echo x >new");
    spec.cwd = Some(layout.path("ws/sub"));
    spec.directory = Some(directory.clone());
    spec.confinement = Some(Confinement::workspace_write(directory));
    let mut child = spawn(&spec).unwrap();
    let output = read_all(&mut child).await;
    assert!(child.wait().await.success());
    assert_eq!(output.trim(), layout.path("ws/moved").to_str().unwrap());
    assert!(layout.path("ws/moved/new").exists());
    assert!(!layout.path("user/new").exists());
}

#[tokio::test]
async fn hidden_files_are_unreadable_and_the_temporary_directory_is_not() {
    let layout = Layout::new();
    for confinement in [
        layout.workspace_write(),
        layout.workspace_write().with_network(),
    ] {
        let script = "cat $TOP/user/secret && echo x >$TOP/state/tmp/x && cat $TOP/state/tmp/x";
        let (report, output) = layout.run(&confinement, script).await;
        assert!(report.success(), "{output}");
        assert_eq!(output, "secretx\n");
        for script in [
            "cat $TOP/state/token",
            "cat /proc/self/root$TOP/state/token",
            "cd $TOP/state && cat token",
            "ln $TOP/state/token stolen && cat stolen",
            "mv $TOP/state $TOP/ws/state",
            "echo x >$TOP/state/token",
            "echo x >$TOP/user/.config/x",
        ] {
            let (report, output) = layout.run(&confinement, script).await;
            assert!(!report.success(), "{script}: {output}");
        }
        assert_eq!(
            fs::read_to_string(layout.path("state/token")).unwrap(),
            "token"
        );
    }
}

#[tokio::test]
async fn hidden_and_protected_directories_stay_so_inside_of_a_writable_one() {
    let layout = Layout::new();
    let confinement = Confinement::workspace_write(layout.handle(""))
        .with_temporary(layout.temporary())
        .with_hidden(&layout.path("state"))
        .with_protected(&layout.path("user/.config"))
        .with_protected(&layout.path("user/none/yet"));
    let script = "echo x >$TOP/ws/x && echo x >$TOP/user/secret && echo x >$TOP/state/tmp/x";
    let (report, output) = layout.run(&confinement, script).await;
    assert!(report.success(), "{output}");
    for script in [
        "cat $TOP/state/token",
        "echo x >$TOP/state/new",
        "echo x >$TOP/user/.config/x",
        "mv $TOP/user/.config $TOP/ws/c",
        "mv $TOP/user $TOP/ws/h",
        "rm -r $TOP/state",
        "mkdir $TOP/user/none",
    ] {
        let (report, output) = layout.run(&confinement, script).await;
        assert!(!report.success(), "{script}: {output}");
    }
    let inside = Confinement::workspace_write(layout.handle("state/tmp"));
    let inside = inside.with_hidden(&layout.path("state"));
    let mut spec = shell("true");
    spec.confinement = Some(inside);
    let error = format!("{:?}", spawn(&spec).unwrap_err());
    assert!(error.contains("Reserved"), "{error}");
}

#[tokio::test]
async fn links_on_the_way_to_a_protected_directory_cannot_be_replaced() {
    let layout = Layout::new();
    fs::create_dir(layout.path("dotfiles")).unwrap();
    symlink(layout.path("not/yet"), layout.path("user/dangling")).unwrap();
    symlink(layout.path("dotfiles"), layout.path("user/link")).unwrap();
    let confinement = Confinement::workspace_write(layout.handle(""))
        .with_protected(&layout.path("user/link/own"))
        .with_protected(&layout.path("user/dangling/own"));
    for script in [
        "rm $TOP/user/dangling",
        "mkdir $TOP/not",
        "rm $TOP/user/link",
        "mv $TOP/user/link $TOP/ws/",
        "mkdir $TOP/dotfiles/own",
        "mv $TOP/user $TOP/ws/h",
    ] {
        let (report, output) = layout.run(&confinement, script).await;
        assert!(!report.success(), "{script}: {output}");
    }
    let (report, output) = layout.run(&confinement, "echo x >$TOP/user/secret").await;
    assert!(report.success(), "{output}");
}

#[tokio::test]
async fn the_root_directory_as_a_root_includes_no_devices() {
    let layout = Layout::new();
    let confinement = Confinement::workspace_write(PathHandle::open(Path::new("/")).unwrap());
    for script in [
        ": <>/dev/ptmx",
        "echo x >/proc/self/comm",
        "echo x >/dev/new",
    ] {
        let (report, output) = layout.run(&confinement, script).await;
        assert!(!report.success(), "{script}: {output}");
    }
    let (report, output) = layout.run(&confinement, "echo x >$TOP/new").await;
    assert!(report.success(), "{output}");
}

#[test]
fn a_deep_tree_with_closed_directories_is_removed() {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let layout = Layout::new();
    let top = layout.path("ws");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(&top, flags, Mode::empty()).unwrap();
    for _ in 0..5_000 {
        mkdirat(&directory, "d", Mode::RWXU).unwrap();
        directory = openat(&directory, "d", flags, Mode::empty()).unwrap();
    }
    for (name, mode) in [("closed", 0o000), ("fixed", 0o555)] {
        fs::create_dir_all(top.join(name).join("inner")).unwrap();
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for number in 0..9 {
        fs::create_dir_all(top.join(format!(".removed-{number}/inner"))).unwrap();
    }
    symlink(layout.path("user"), top.join("link")).unwrap();
    fs::set_permissions(&top, fs::Permissions::from_mode(0o000)).unwrap();
    cocode_process::remove_tree(&top).unwrap();
    assert!(!top.exists());
    assert!(layout.path("user/secret").exists());
    cocode_process::remove_tree(&top).unwrap();
}

#[tokio::test]
async fn a_temporary_directory_goes_with_its_program_and_after_a_crash() {
    let layout = Layout::new();
    let parent = layout.path("state/tmp/servers");
    fs::create_dir_all(parent.join("1-0/left")).unwrap();
    fs::write(parent.join("1-0.lock"), "").unwrap();
    let temporary = Arc::new(TemporaryDirectory::create_in(&parent).unwrap());
    let other = TemporaryDirectory::create_in(&parent).unwrap();
    crate::system::eventually("what a crash has left is removed", || {
        !parent.join("1-0").exists()
    });
    let path = temporary.path().to_owned();
    let mut spec = shell("echo x >$TMPDIR/x && cat");
    spec.env.push(("TMPDIR".into(), path.clone().into()));
    let hidden = Confinement::read_only().with_hidden(&layout.path("state"));
    spec.confinement = Some(hidden.with_temporary(temporary));
    let mut child = spawn(&spec).unwrap();
    drop(spec);
    drop(child.take_stdin());
    assert!(child.wait().await.success());
    assert!(path.join("x").exists());
    drop(child);
    crate::system::eventually("it is removed", || !path.exists());
    assert!(other.path().exists());
}

#[tokio::test]
async fn terminals_and_disks_cannot_be_opened() {
    let layout = Layout::new();
    let confinement = layout.workspace_write().with_network();
    let script = "
import os
for name in sorted(os.listdir('/dev')):
    for path in ['/dev/' + name] + ['/dev/%s/%s' % (name, n) for n in (os.listdir('/dev/' + name) if name == 'pts' else [])]:
        if os.path.isdir(path) or os.path.islink(path): continue
        try:
            os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY); print(path)
        except OSError: pass
";
    let opened = layout.python(&confinement, script).await;
    let opened: Vec<&str> = opened.lines().collect();
    let harmless = [
        "/dev/full",
        "/dev/null",
        "/dev/random",
        "/dev/urandom",
        "/dev/zero",
    ];
    assert_eq!(opened, harmless);
}

/// Calls of the C library by python, one result a line: `ok` or the error number's name.
const CALLS: &str = "
import ctypes, errno, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(name, result):
    error = ctypes.get_errno()
    print(name, 'ok' if result != -1 else errno.errorcode[error])
def syscall(name, number, *args):
    ctypes.set_errno(0)
    call(name, libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]))
def attempt(name, function):
    try:
        function(); print(name, 'ok')
    except OSError as error:
        print(name, errno.errorcode[error.errno])
";

#[tokio::test]
#[cfg(target_arch = "x86_64")]
async fn system_calls_that_reach_others_are_refused_and_own_ones_work() {
    let layout = Layout::new();
    let script = format!(
        "{CALLS}
limit = struct.pack('QQ', 1, 1)
me, parent = os.getpid(), os.getppid()
syscall('prlimit other', 302, parent, 7, limit, 0)
syscall('prlimit own', 302, 0, 7, 0, ctypes.create_string_buffer(16))
mask = struct.pack('Q', 1)
syscall('affinity other', 203, parent, 8, mask)
syscall('priority other', 141, 0, parent, 19)
syscall('priority user', 141, 2, 0, 19)
syscall('priority own', 141, 0, 0, 5)
syscall('ioprio user', 251, 3, 0, 0)
syscall('shmget', 29, 0, 4096, 0o1600)
syscall('msgget', 68, 0, 0o1600)
syscall('mq_open', 240, b'/cocode-test', 0o102, 0o600, 0)
syscall('keyctl', 250, 0, -4, 0)
syscall('add_key', 248, b'user', b'cocode', b'x', 1, -4)
syscall('unshare user', 272, 0x10000000)
syscall('unshare files', 272, 0x400)
syscall('clone3', 435, 0, 0)
syscall('mount', 165, b'none', b'/', b'tmpfs', 0, 0)
syscall('setns', 308, 0, 0)
syscall('bpf', 321, 0, 0, 0)
syscall('perf', 298, 0, 0, 0, 0, 0)
syscall('userfaultfd', 323, 0)
syscall('open_by_handle', 304, 0, 0, 0)
syscall('pidfd_getfd', 438, 0, 0, 0)
syscall('io_uring', 425, 1, 0)
syscall('chroot', 161, b'/')
syscall('sethostname', 170, b'x', 1)
syscall('unknown', 4000)
open('file', 'w').close()
attempt('chmod', lambda: os.chmod('file', 0o755))
attempt('setuid bit', lambda: os.chmod('file', 0o4755))
attempt('setgid bit', lambda: os.chmod('file', 0o2755))
attempt('setuid open', lambda: os.open('file2', os.O_CREAT | os.O_WRONLY, 0o4755))
attempt('plain open', lambda: os.open('file3', os.O_CREAT | os.O_WRONLY, 0o755))
attempt('fifo', lambda: os.mkfifo('fifo'))
attempt('device', lambda: os.mknod('device', 0o020666, os.makedev(1, 3)))
"
    );
    for confinement in [
        layout.workspace_write(),
        layout.workspace_write().with_network(),
    ] {
        let output = layout.python(&confinement, &script).await;
        for name in ["file", "file2", "file3", "fifo"] {
            drop(fs::remove_file(layout.path("ws").join(name)));
        }
        let expected = "prlimit other EPERM\nprlimit own ok\naffinity other EPERM\npriority other EPERM\n\
            priority user EPERM\npriority own ok\nioprio user EPERM\nshmget ENOSYS\nmsgget ENOSYS\n\
            mq_open ENOSYS\nkeyctl ENOSYS\nadd_key ENOSYS\nunshare user EPERM\nunshare files ok\n\
            clone3 ENOSYS\nmount EPERM\nsetns EPERM\nbpf EPERM\nperf EPERM\nuserfaultfd EPERM\n\
            open_by_handle EPERM\npidfd_getfd EPERM\nio_uring ENOSYS\nchroot EPERM\nsethostname EPERM\n\
            unknown ENOSYS\nchmod ok\nsetuid bit EPERM\nsetgid bit EPERM\nsetuid open EPERM\nplain open ok\n\
            fifo ok\n";
        assert!(output.starts_with(expected), "{output}");
        let device = output.lines().last().unwrap();
        assert!(
            device == "device EACCES" || device == "device EPERM",
            "{device}"
        );
    }
}

#[tokio::test]
async fn unix_sockets_reach_nobody_outside_without_a_network() {
    let layout = Layout::new();
    let _stream = UnixListener::bind(layout.path("stream.socket")).unwrap();
    let datagram = UnixDatagram::bind(layout.path("datagram.socket")).unwrap();
    datagram.set_nonblocking(true).unwrap();
    let script = format!(
        "{CALLS}
top = os.environ['TOP']
def stream():
    s = socket.socket(socket.AF_UNIX); s.connect(top + 'stream.socket')
def datagram():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'out', top + 'datagram.socket')
def datagram_pair():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'out', top + 'datagram.socket')
def addressed_pair():
    a, b = socket.socketpair(); a.sendto(b'out', top + 'datagram.socket')
def reconnected_pair():
    a, b = socket.socketpair(); a.connect(top + 'stream.socket')
def listener():
    s = socket.socket(socket.AF_UNIX); s.bind('own.socket'); s.listen()
def pair():
    a, b = socket.socketpair(); a.sendall(b'x'); assert b.recv(1) == b'x'
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); a.send(b'x')
for f in [stream, datagram, datagram_pair, addressed_pair, reconnected_pair, listener, pair]:
    attempt(f.__name__, f)
"
    );
    let output = layout.python(&layout.workspace_write(), &script).await;
    assert_eq!(
        output,
        "stream EPERM\ndatagram EPERM\ndatagram_pair EPERM\naddressed_pair EPERM\nreconnected_pair EPERM\n\
         listener EPERM\npair ok\n"
    );
    let heard = datagram.recv(&mut [0; 8]).unwrap_err();
    assert_eq!(heard.kind(), ErrorKind::WouldBlock);
    // With a network they are left as they are.
    let online = layout.workspace_write().with_network();
    let output = layout.python(&online, &script).await;
    assert!(output.starts_with("stream ok\ndatagram ok\n"), "{output}");
}

#[tokio::test]
async fn root_keeps_only_capabilities_about_files_and_identity() {
    let layout = Layout::new();
    let script = "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb):' /proc/self/status";
    let (_, output) = layout.run(&Confinement::read_only(), script).await;
    assert_eq!(output.lines().count(), 5, "{output}");
    for line in output.lines() {
        let (name, value) = line.split_once(':').unwrap();
        let value = u64::from_str_radix(value.trim(), 16).unwrap();
        // The bounding set of an ordinary user cannot be lowered, and gives nothing under `no_new_privs`.
        let is_of_user = name == "CapBnd" && !is_root();
        assert!(is_of_user || value & !0x4FB == 0, "{line}");
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[tokio::test]
async fn the_mark_of_the_sandbox_cannot_be_removed() {
    let layout = Layout::new();
    let script = "grep 'Max msgqueue size' /proc/self/limits; ulimit -q unlimited 2>/dev/null || \
        python3 -c 'import resource; resource.setrlimit(resource.RLIMIT_MSGQUEUE, (1, 1))' 2>/dev/null; \
        grep 'Max msgqueue size' /proc/self/limits";
    let (_, output) = layout
        .run(&Confinement::read_only().with_network(), script)
        .await;
    let lines: Vec<Vec<&str>> = output
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 2, "{output}");
    for line in lines {
        assert_eq!(line[3..5], ["0", "0"], "{output}");
    }
}

#[test]
fn links_directly_below_the_root_directory_are_followed() {
    let Some(link) = ["/bin", "/lib", "/sbin"]
        .map(Path::new)
        .into_iter()
        .find(|path| path.is_symlink())
    else {
        // A system without a merged /usr has none of these.
        assert!(Path::new("/bin").is_dir());
        return;
    };
    assert!(PathHandle::open(link).is_ok());
    let mode = fs::metadata("/").unwrap().permissions().mode();
    assert_eq!(mode & 0o022, 0, "only the system may put links there");
}
