//! Confined programs against the real kernel: what they cannot write, whom they cannot reach, and that they
//! still end with their guard.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

use cocode_process::{
    Confinement, ExitReport, GuardedChild, ProcessSpec, SpawnError, confinement_support, spawn,
};
use tempfile::TempDir;

use crate::system::{eventually, group, is_alive, parent};
use crate::{next_line, read_all, shell, stdout_lines};

/// Tells the test program to try sockets, and where.
const SOCKETS_ROLE: &str = "COCODE_PROCESS_TEST_SOCKETS";

/// A place that may be written, and one beside it that may not.
struct House {
    both: TempDir,
}

impl House {
    fn new() -> Self {
        let support = confinement_support();
        assert!(support.is_sufficient(), "{support}");
        let both = TempDir::new().unwrap();
        for name in ["inside", "outside"] {
            let place = both.path().join(name);
            fs::create_dir(&place).unwrap();
            fs::write(place.join("kept"), "as it was").unwrap();
        }
        Self { both }
    }

    fn path(&self) -> &Path {
        self.both.path()
    }

    fn confinement(&self) -> Confinement {
        Confinement::read_only()
            .with_writable([self.path().join("inside")])
            .unwrap()
    }

    /// A script that runs in the directory above both, confined to `inside`.
    fn script(&self, script: &str) -> ProcessSpec {
        let mut spec = shell(script);
        spec.cwd = Some(self.path().to_owned());
        spec.confinement = Some(self.confinement());
        spec
    }

    async fn run(&self, script: &str) -> (ExitReport, String) {
        let mut child = spawn(&self.script(script)).unwrap();
        let output = read_all(&mut child).await;
        (child.wait().await, output)
    }

    /// Checks that a command does what it wants where it is free, and does not where it is confined.
    async fn check_denied(&self, command: &str) {
        let free = Self::new();
        for name in ["link", "file-link"] {
            let link = Path::new("inside").join(name);
            if let Ok(target) = fs::read_link(self.path().join(&link)) {
                symlink(target, free.path().join(link)).unwrap();
            }
        }
        let mut spec = free.script(command);
        spec.confinement = None;
        let report = spawn(&spec).unwrap().wait().await;
        assert!(report.success(), "fails anyway: {command}");
        self.check_denied_here(command).await;
    }

    async fn check_denied_here(&self, command: &str) {
        let (report, output) = self
            .run(&format!("LC_ALL=C; export LC_ALL; {command}"))
            .await;
        assert!(!report.success(), "allowed: {command}: {output}");
        let outside = self.path().join("outside");
        let names: Vec<_> = fs::read_dir(&outside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["kept"], "{command}");
        let kept = fs::read_to_string(outside.join("kept")).unwrap();
        assert_eq!(kept, "as it was", "{command}");
    }

    async fn check_allowed(&self, command: &str) {
        let (report, output) = self.run(&format!("set -e; {command}")).await;
        assert!(report.success(), "denied: {command}: {output}");
    }
}

#[tokio::test]
async fn nothing_is_written_outside() {
    let house = House::new();
    for command in [
        "echo new >outside/new",
        "echo more >>outside/kept",
        ": >outside/kept",
        "truncate -s 0 outside/kept",
        "rm outside/kept",
        "mkdir outside/new",
        "mkfifo outside/new",
        "ln -s kept outside/new",
        "ln outside/kept outside/new",
        "mv outside/kept outside/new",
        "cp inside/kept outside/new",
        "mv outside outside2",
        "echo new >new",
        "rm -r outside",
        // By other names of the same place.
        "echo new >inside/../outside/new",
        "echo new >/proc/self/root$PWD/outside/new",
        "echo new >/proc/self/cwd/outside/new",
        "cd outside; echo new >new",
        "exec 3<outside/kept; echo new >/proc/self/fd/3",
    ] {
        house.check_denied(command).await;
    }
}

#[tokio::test]
async fn whatever_is_inside_may_be_done() {
    let house = House::new();
    for command in [
        "echo new >inside/new; rm inside/new",
        "echo more >>inside/kept; truncate -s 1 inside/kept",
        "mkdir inside/a inside/b; echo x >inside/a/x; mv inside/a/x inside/b/y; ln inside/b/y inside/a/z",
        "ln -s z inside/a/link; mkfifo inside/a/fifo; rm -r inside/a inside/b",
        "cat outside/kept >/dev/null; ls outside >inside/list",
        "echo x >/dev/null; head -c 4 /dev/urandom >/dev/zero",
    ] {
        house.check_allowed(command).await;
    }
}

#[tokio::test]
async fn nothing_comes_in_by_a_name_that_would_make_it_writable() {
    let house = House::new();
    symlink("../outside", house.path().join("inside/link")).unwrap();
    symlink("../outside/kept", house.path().join("inside/file-link")).unwrap();
    for command in [
        "ln outside/kept inside/mine",
        "mv outside/kept inside/mine",
        "mv outside inside/mine",
        "echo new >inside/link/new",
        "echo new >inside/file-link",
        "ln -s ../outside inside/own-link; echo new >inside/own-link/new",
    ] {
        house.check_denied(command).await;
    }
    // Inside a confinement, namespaces and mounts do not help either. Not every system lets users try.
    let mounting = "unshare -rm mount --bind inside outside && echo new >outside/new";
    house.check_denied_here(mounting).await;
    // A move to the outside is a copy that fails: nothing may be lost on the way.
    house.check_denied("mv inside/kept outside/new").await;
    assert!(house.path().join("inside/kept").exists());
}

#[tokio::test]
async fn the_children_of_a_program_are_confined_wherever_they_go() {
    let house = House::new();
    for command in [
        "sh -c 'sh -c \"echo new >outside/new\"'",
        "(echo new >outside/new) & wait $!",
        "setsid -w sh -c 'echo new >outside/new'",
        "env -i /bin/sh -c 'echo new >outside/new'",
        "find . -maxdepth 0 -exec sh -c 'echo new >outside/new' ';' ; test -e outside/new",
    ] {
        house.check_denied(command).await;
    }
    house
        .check_allowed("setsid -w sh -c 'sh -c \"echo new >inside/new\"'")
        .await;
}

#[tokio::test]
async fn the_environment_of_others_cannot_be_read_not_even_by_root() {
    let house = House::new();
    let others = "cat /proc/$PPID/environ";
    let mut free = house.script(others);
    free.confinement = None;
    assert!(spawn(&free).unwrap().wait().await.success());
    let (report, output) = house.run(others).await;
    assert!(!report.success());
    assert_eq!(output, "");
    // Its own it can.
    let (report, _output) = house.run("cat /proc/self/environ").await;
    assert!(report.success());
}

#[tokio::test]
async fn a_read_only_program_writes_nothing_at_all() {
    let house = House::new();
    let mut spec = house.script("echo x >inside/x || echo x >/tmp/x-$$ || echo x >/dev/shm/x-$$");
    spec.confinement = Some(Confinement::read_only());
    assert!(!spawn(&spec).unwrap().wait().await.success());
    assert!(!house.path().join("inside/x").exists());
}

#[tokio::test]
async fn missing_roots_are_left_out() {
    let house = House::new();
    let mut spec = house.script("echo x >inside/x && ! mkdir missing && ! mkdir absent");
    let roots = ["inside", "missing", "absent", "inside/kept/below-a-file"];
    let roots = roots.map(|root| house.path().join(root));
    spec.confinement = Some(Confinement::read_only().with_writable(roots).unwrap());
    assert!(spawn(&spec).unwrap().wait().await.success());
}

#[tokio::test]
async fn a_single_file_may_be_writable() {
    let house = House::new();
    let mut spec = house.script("echo x >outside/kept && ! rm outside/kept && ! touch outside/new");
    let file = house.path().join("outside/kept");
    spec.confinement = Some(Confinement::read_only().with_writable([file]).unwrap());
    assert!(spawn(&spec).unwrap().wait().await.success());
}

#[test]
fn a_root_that_cannot_be_opened_is_an_error() {
    let opened = Confinement::read_only().with_writable(["a\0b"]);
    let error = opened.unwrap_err().to_string();
    assert!(error.starts_with("cannot open `"), "{error}");
}

#[tokio::test]
async fn the_program_gains_no_privileges_and_holds_no_descriptor_of_ours() {
    let house = House::new();
    let (_, status) = house
        .run("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status")
        .await;
    assert_eq!(status, "NoNewPrivs:\t1\nSeccomp:\t2\n");
    // Listed by another process, which opens the directory in place of the shell.
    let (_, descriptors) = house.run("ls /proc/$$/fd; true").await;
    assert_eq!(descriptors, "0\n1\n2\n");
}

#[tokio::test]
async fn the_owner_keeps_nothing_of_the_rules() {
    let house = House::new();
    let rules = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        all.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
            .filter(|target| target.to_string_lossy().contains("landlock"))
            .count()
    };
    let mut child = spawn(&house.script("read line")).unwrap();
    // Another test of this process may just be starting a program.
    eventually("no rules are held", || rules() == 0);
    drop(child.take_stdin());
    child.wait().await;
}

/// A program with a grandchild in its group and one in a session of its own, all deaf to SIGTERM.
const DEAF_TREE: &str = "
    trap '' TERM
    sleep 300 & near=$!
    far=$(setsid sh -c 'sleep 300 >/dev/null 2>&1 & echo $!')
    echo $$ $near $far
    while :; do sleep 300; done
";

async fn start_deaf_tree(house: &House) -> (GuardedChild, Vec<u32>) {
    let mut child = spawn(&house.script(DEAF_TREE)).unwrap();
    let line = next_line(&mut stdout_lines(&mut child)).await;
    let mut pids: Vec<u32> = line
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    let guard = parent(child.pid());
    eventually("the guard adopts the orphan", || parent(pids[2]) == guard);
    pids.push(guard);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    (child, pids)
}

#[tokio::test]
async fn a_stop_leaves_nothing_of_a_confined_tree() {
    let house = House::new();
    let (mut child, pids) = start_deaf_tree(&house).await;
    assert_eq!(group(child.pid()), child.pid());
    assert_eq!(child.stop().await, ExitReport::Signal(libc::SIGKILL));
    assert!(!pids.iter().copied().any(is_alive));
}

#[tokio::test]
async fn the_drop_of_a_confined_child_leaves_nothing() {
    let house = House::new();
    let (child, pids) = start_deaf_tree(&house).await;
    drop(child);
    crate::system::eventually_gone(&pids);
}

#[tokio::test]
async fn the_death_of_the_guard_takes_the_confined_program_along() {
    let house = House::new();
    let (mut child, pids) = start_deaf_tree(&house).await;
    crate::system::kill(pids[3], libc::SIGKILL);
    assert_eq!(child.wait().await, ExitReport::Unknown);
    crate::system::eventually_gone(&pids[..2]);
    crate::system::kill(pids[2], libc::SIGKILL);
}

#[tokio::test]
async fn a_confined_program_signals_nobody_outside() {
    if !confinement_support().gaps().is_empty() {
        return;
    }
    let house = House::new();
    let mut victim = spawn(&shell("read line")).unwrap();
    let pid = victim.pid();
    let guard = parent(pid);
    let (report, _) = house
        .run(&format!("kill -KILL {pid} || kill -KILL {guard}"))
        .await;
    assert!(!report.success());
    drop(victim.take_stdin());
    // End of input, and not a signal.
    assert_eq!(victim.wait().await, ExitReport::Code(1));
    let (report, _) = house.run("sleep 300 & kill -KILL $!").await;
    assert!(report.success(), "its own children it may end");
}

#[tokio::test]
async fn a_confined_program_has_no_terminal() {
    let house = House::new();
    house.check_denied_here("echo x >/dev/tty").await;
    let (_, session) = house.run("cut -d' ' -f6 /proc/$$/stat; echo $$").await;
    let fields: Vec<_> = session.split_whitespace().collect();
    assert_eq!(fields[0], fields[1], "it leads a session of its own");
}

/// Runs what [`try_sockets`] does in a confined copy of this program, and gives its lines.
async fn tried(house: &House, confinement: Option<Confinement>, with: &str) -> Vec<String> {
    let mut spec = ProcessSpec::new(std::env::current_exe().unwrap());
    spec.args = ["--exact", "confinement::try_sockets", "--nocapture"]
        .map(Into::into)
        .into();
    spec.env = vec![(SOCKETS_ROLE.into(), with.into())];
    spec.cwd = Some(house.path().join("inside"));
    spec.confinement = confinement;
    let mut child = spawn(&spec).unwrap();
    let output = read_all(&mut child).await;
    assert!(child.wait().await.success(), "{output}");
    let lines = output
        .lines()
        .filter_map(|line| line.strip_prefix("tried "));
    lines.map(str::to_owned).collect()
}

/// Not a test by itself: what the confined copy of this program does.
#[test]
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "is told what to do by its environment, and tells the test what happened"
)]
fn try_sockets() {
    let Some(given) = std::env::var_os(SOCKETS_ROLE) else {
        return;
    };
    let given = given.into_string().unwrap();
    let [port, name, socket] = given.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{given}");
    };
    let say = |what: &str, result: io::Result<()>| {
        let kind = result.map_err(|error| error.kind());
        println!("\ntried {what}: {kind:?}");
    };
    let address = format!("127.0.0.1:{port}");
    say("connect", TcpStream::connect(&address).map(drop));
    say("bind", TcpListener::bind("127.0.0.1:0").map(drop));
    let udp = UdpSocket::bind("127.0.0.1:0");
    say(
        "udp",
        udp.and_then(|udp| udp.send_to(b"x", &address).map(drop)),
    );
    let of_abstract = SocketAddr::from_abstract_name(name).unwrap();
    say("abstract", UnixStream::connect_addr(&of_abstract).map(drop));
    say("path", UnixStream::connect(socket).map(drop));
    say("own", UnixListener::bind("own.socket").map(drop));
    say("pair", UnixStream::pair().map(drop));
    say("ring", ring());
}

/// Whether the system has rings for input and output, through which sockets could be opened.
fn ring() -> io::Result<()> {
    let nothing = std::ptr::null::<u8>();
    #[expect(unsafe_code, reason = "the standard library has no such call")]
    // SAFETY: no memory is given, so that the call fails in any case.
    unsafe {
        libc::syscall(libc::SYS_io_uring_setup, 0, nothing);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS) => Err(error),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn only_socket_pairs_are_left_without_a_network() {
    let house = House::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("cocode-test-{}", std::process::id());
    let of_abstract = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&of_abstract).unwrap();
    let socket = house.path().join("outside.socket");
    let _path = UnixListener::bind(&socket).unwrap();
    let port = tcp.local_addr().unwrap().port();
    let with = format!("{port} {name} {}", socket.display());

    let free = tried(&house, None, &with).await;
    assert_eq!(free.len(), 8, "{free:?}");
    assert!(free.iter().all(|line| line.ends_with("Ok(())")), "{free:?}");

    let denied = "Err(PermissionDenied)";
    let is_scoped = confinement_support().gaps().is_empty();
    let of_abstract = if is_scoped { denied } else { "Ok(())" };
    let expected = |network: &str, of_abstract: &str| {
        vec![
            format!("connect: {network}"),
            format!("bind: {network}"),
            format!("udp: {network}"),
            format!("abstract: {of_abstract}"),
            format!("path: {network}"),
            format!("own: {network}"),
            "pair: Ok(())".to_owned(),
            "ring: Err(Unsupported)".to_owned(),
        ]
    };
    fs::remove_file(house.path().join("inside/own.socket")).unwrap();
    let confined = tried(&house, Some(house.confinement()), &with).await;
    assert_eq!(confined, expected(denied, denied));
    let online = tried(&house, Some(house.confinement().with_network()), &with).await;
    assert_eq!(online, expected("Ok(())", of_abstract));
}

#[tokio::test]
async fn a_detached_program_is_confined_as_well() {
    use std::io::Read as _;
    let house = House::new();
    let spec = house.script("echo x >outside/new; echo x >inside/new; echo done");
    let mut output = String::new();
    let mut reader = cocode_process::spawn_detached(&spec, None).unwrap();
    reader.read_to_string(&mut output).unwrap();
    assert_eq!(output, "done\n");
    assert!(!house.path().join("outside/new").exists());
    assert!(house.path().join("inside/new").exists());
}

#[tokio::test]
async fn a_program_that_is_missing_is_told_as_such_in_a_sandbox_too() {
    let mut spec = ProcessSpec::new("no-such-program-at-all");
    spec.confinement = Some(Confinement::read_only());
    assert!(matches!(spawn(&spec), Err(SpawnError::NotFound { .. })));
}
