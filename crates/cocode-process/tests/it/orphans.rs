//! Nothing survives: not a grandchild, not one in a session of its own, whatever ends first.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use cocode_process::{ExitReport, GuardedChild, spawn};

use crate::system::{eventually, eventually_gone, is_alive, kill, parent};
use crate::{next_line, shell, stdout_lines};

/// Set in the process that plays the owner.
const OWNER_ROLE: &str = "COCODE_PROCESS_TEST_OWNER";

/// A program that ignores SIGTERM, with a grandchild in its group and an orphaned one in a session
/// of its own, both deaf to SIGTERM as well. It prints all three process ids.
const DEAF_TREE: &str = "
    trap '' TERM
    sleep 300 & near=$!
    far=$(setsid sh -c 'sleep 300 >/dev/null 2>&1 & echo $!')
    echo $$ $near $far
";
const THEN_LINGER: &str = "while :; do sleep 300; done";
const THEN_EXIT_WHEN_TOLD: &str = "read line; exit 7";

async fn start_deaf_tree(then: &str) -> (GuardedChild, Vec<u32>) {
    let mut child = spawn(&shell(&format!("{DEAF_TREE}{then}"))).unwrap();
    let line = next_line(&mut stdout_lines(&mut child)).await;
    let mut pids = parse_pids(&line);
    assert_eq!(pids.len(), 3, "{line}");
    assert_eq!(pids[0], child.pid());
    // The far one comes to the guard as soon as its own parent has exited.
    let guard = parent(child.pid());
    eventually("the guard adopts the orphan", || parent(pids[2]) == guard);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    pids.push(guard);
    (child, pids)
}

fn parse_pids(line: &str) -> Vec<u32> {
    line.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[tokio::test]
async fn stop_leaves_nothing() {
    let (mut child, pids) = start_deaf_tree(THEN_LINGER).await;
    assert_eq!(child.stop().await, ExitReport::Signal(libc::SIGKILL));
    // No polling: all are gone when stop returns.
    assert!(!pids.iter().copied().any(is_alive));
}

#[tokio::test]
async fn the_exit_of_the_program_leaves_nothing() {
    let (mut child, pids) = start_deaf_tree(THEN_EXIT_WHEN_TOLD).await;
    child.take_stdin().unwrap().try_write(b"\n").unwrap();
    assert_eq!(child.wait().await, ExitReport::Code(7));
    assert!(!pids.iter().copied().any(is_alive));
}

#[tokio::test]
async fn the_death_of_the_program_leaves_nothing() {
    let (mut child, pids) = start_deaf_tree(THEN_LINGER).await;
    kill(pids[0], libc::SIGKILL);
    assert_eq!(child.wait().await, ExitReport::Signal(libc::SIGKILL));
    assert!(!pids.iter().copied().any(is_alive));
}

#[test]
fn a_drop_outside_the_runtime_leaves_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (child, pids) = runtime.block_on(start_deaf_tree(THEN_LINGER));
    drop(child);
    eventually_gone(&pids);
}

#[test]
fn a_drop_after_the_runtime_leaves_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (child, pids) = runtime.block_on(start_deaf_tree(THEN_LINGER));
    drop(runtime);
    assert!(
        pids.iter().copied().all(is_alive),
        "the runtime does not own the child"
    );
    drop(child);
    eventually_gone(&pids);
}

#[tokio::test]
async fn an_abandoned_stop_leaves_nothing() {
    let (mut child, pids) = start_deaf_tree(THEN_LINGER).await;
    let impatient = std::time::Duration::from_millis(1);
    assert!(tokio::time::timeout(impatient, child.stop()).await.is_err());
    drop(child);
    eventually_gone(&pids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guard_of_a_dropped_child_is_reaped() {
    let (child, pids) = start_deaf_tree(THEN_LINGER).await;
    drop(child);
    let guard = format!("/proc/{}", pids[3]);
    eventually("the guard is no zombie", || {
        !std::path::Path::new(&guard).exists()
    });
}

#[tokio::test]
async fn the_death_of_the_guard_ends_the_program_and_its_group() {
    let (mut child, pids) = start_deaf_tree(THEN_LINGER).await;
    kill(pids[3], libc::SIGKILL);
    assert_eq!(child.wait().await, ExitReport::Unknown);
    eventually_gone(&pids[..2]);
    // Out of reach without the guard; the test cleans up behind itself.
    kill(pids[2], libc::SIGKILL);
}

#[tokio::test]
async fn a_signal_to_the_guard_changes_nothing() {
    let (mut child, pids) = start_deaf_tree(THEN_EXIT_WHEN_TOLD).await;
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGPIPE,
        libc::SIGQUIT,
    ] {
        kill(pids[3], signal);
    }
    assert!(pids.iter().copied().all(is_alive));
    child.take_stdin().unwrap().try_write(b"\n").unwrap();
    assert_eq!(child.wait().await, ExitReport::Code(7));
}

#[tokio::test]
async fn a_wide_and_deep_tree_is_swept() {
    // Each level starts the next in a session of its own; none of them is in the group.
    let script = "
        level='[ $1 = 0 ] || setsid sh -c \"$2\" - $(($1 - 1)) \"$2\" & echo $$; exec sleep 300'
        for wide in 1 2 3 4 5; do setsid sh -c \"$level\" - 5 \"$level\" & done
        read line";
    let mut child = spawn(&shell(script)).unwrap();
    let mut lines = stdout_lines(&mut child);
    let mut pids = Vec::new();
    for _ in 0..30 {
        pids.push(next_line(&mut lines).await.parse().unwrap());
    }
    assert!(pids.iter().copied().all(is_alive));
    child.take_stdin().unwrap().try_write(b"\n").unwrap();
    assert_eq!(child.wait().await, ExitReport::Code(0));
    assert!(!pids.iter().copied().any(is_alive));
}

#[test]
fn sigkill_of_the_owner_leaves_nothing() {
    if is_owner() {
        play_owner();
    }
    let (owner, pids) = start_owner("orphans::sigkill_of_the_owner_leaves_nothing");
    assert!(pids.iter().copied().all(is_alive));
    owner.kill();
    eventually_gone(&pids);
}

#[test]
fn a_guard_is_not_hit_by_who_kills_the_owner_by_name() {
    if is_owner() {
        play_owner();
    }
    let (owner, pids) = start_owner("orphans::a_guard_is_not_hit_by_who_kills_the_owner_by_name");
    let guard = pids[3];
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{guard}/{file}")).unwrap();
    eventually("the guard has its own name", || {
        read("comm") == "process-guard\n"
    });
    eventually("the guard has its own command line", || {
        read("cmdline").trim_end_matches('\0') == "process-guard"
    });
    owner.kill();
    eventually_gone(&pids);
}

#[test]
fn the_program_dies_with_its_guard_even_if_nobody_waits() {
    if is_owner() {
        play_owner();
    }
    let (owner, pids) =
        start_owner("orphans::the_program_dies_with_its_guard_even_if_nobody_waits");
    kill(pids[3], libc::SIGKILL);
    eventually_gone(&pids[..1]);
    owner.kill();
    // Out of reach without guard and owner; the test cleans up behind itself.
    kill(pids[1], libc::SIGKILL);
    kill(pids[2], libc::SIGKILL);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the role is told by the environment"
)]
fn is_owner() -> bool {
    std::env::var_os(OWNER_ROLE).is_some()
}

/// Starts the tree from a process of its own, reports who is in it, and waits to be killed.
fn play_owner() -> ! {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_child, pids) = runtime.block_on(start_deaf_tree(THEN_LINGER));
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\npids: {}", pids.join(" ")).unwrap();
    stdout.flush().unwrap();
    loop {
        thread::park();
    }
}

/// A process that owns a tree. It does not outlive its test, also if that fails.
struct Owner(Child);

impl Owner {
    fn kill(self) {
        drop(self);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs the named test of this binary as an owner, on its main thread.
fn start_owner(test: &str) -> (Owner, Vec<u32>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the owner is to be killed, not guarded"
    )]
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(OWNER_ROLE, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(owner.stdout.take().unwrap());
    let pids = stdout
        .lines()
        .map(Result::unwrap)
        .find_map(|line| line.strip_prefix("pids: ").map(parse_pids))
        .unwrap();
    (Owner(owner), pids)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_started_at_once_do_not_hold_each_other() {
    let runtime = tokio::runtime::Handle::current();
    let spawners: Vec<_> = (0..5)
        .map(|_| {
            let runtime = runtime.clone();
            thread::spawn(move || {
                let _context = runtime.enter();
                let spec = shell("exec sleep 300");
                (0..10).map(|_| spawn(&spec).unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut children: Vec<_> = spawners
        .into_iter()
        .flat_map(|spawner| spawner.join().unwrap())
        .collect();
    assert_eq!(children.len(), 50);
    while let Some(child) = children.pop() {
        let pid = child.pid();
        drop(child);
        eventually_gone(&[pid]);
        assert!(children.iter().all(|other| is_alive(other.pid())));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipes_of_children_started_at_once_are_not_mixed() {
    let runtime = tokio::runtime::Handle::current();
    let spawners: Vec<_> = (0..5)
        .map(|_| {
            let runtime = runtime.clone();
            thread::spawn(move || {
                let _context = runtime.enter();
                (0..10)
                    .map(|_| spawn(&shell("exec cat")).unwrap())
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut children: Vec<_> = spawners
        .into_iter()
        .flat_map(|spawner| spawner.join().unwrap())
        .collect();
    while let Some(mut child) = children.pop() {
        // A copy of this pipe in any other child would keep it open, and the wait would not end.
        drop(child.take_stdin());
        assert_eq!(child.wait().await, ExitReport::Code(0));
        assert!(children.iter().all(|other| is_alive(other.pid())));
    }
}
