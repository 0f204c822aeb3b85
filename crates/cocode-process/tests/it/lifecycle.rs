//! Exit, wait and stop of programs that behave.

use std::time::Duration;

use cocode_process::{ExitReport, spawn};
use tokio::io::AsyncWriteExt as _;

use crate::{next_line, shell, stdout_lines};

#[tokio::test]
async fn the_exit_code_is_reported() {
    let mut child = spawn(&shell("exit 3")).unwrap();
    let report = child.wait().await;
    assert_eq!(
        (report, report.to_string().as_str()),
        (ExitReport::Code(3), "exit code 3")
    );
    assert_eq!(
        child.wait().await,
        report,
        "asking again gives the same answer"
    );
    assert_eq!(
        child.stop().await,
        report,
        "so does stopping what has ended"
    );
}

#[tokio::test]
async fn the_signal_is_reported() {
    for (name, report) in [
        ("KILL", ExitReport::Signal(libc::SIGKILL)),
        ("SEGV", ExitReport::Signal(libc::SIGSEGV)),
        ("TERM", ExitReport::Signal(libc::SIGTERM)),
        ("CHLD", ExitReport::Code(0)),
    ] {
        let mut child = spawn(&shell(&format!("kill -{name} $$"))).unwrap();
        assert_eq!(child.wait().await, report, "{name}");
    }
}

#[tokio::test]
async fn a_child_of_the_program_does_not_change_its_exit_code() {
    let mut child = spawn(&shell("sh -c 'exit 1' & wait; (sh -c 'exit 4' &); exit 5")).unwrap();
    assert_eq!(child.wait().await, ExitReport::Code(5));
}

#[tokio::test]
async fn data_flows_both_ways_and_the_end_of_stdin_ends_the_program() {
    let mut child = spawn(&shell("cat; exit 6")).unwrap();
    let mut stdin = child.take_stdin().unwrap();
    assert!(child.take_stdin().is_none());
    let mut lines = stdout_lines(&mut child);
    stdin.write_all(b"hello\n").await.unwrap();
    assert_eq!(next_line(&mut lines).await, "hello");
    drop(stdin);
    assert_eq!(child.wait().await, ExitReport::Code(6));
    assert_eq!(lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn stop_first_closes_stdin() {
    let mut spec = shell("trap 'exit 99' TERM; cat; exit 7");
    spec.stop.eof_grace = Duration::from_secs(30);
    assert_eq!(spawn(&spec).unwrap().stop().await, ExitReport::Code(7));
}

#[tokio::test]
async fn stop_then_asks_by_sigterm() {
    let mut spec = shell("trap 'exit 8' TERM; echo ready; while :; do sleep 0.01; done");
    spec.stop.term_grace = Duration::from_secs(30);
    let mut child = spawn(&spec).unwrap();
    assert_eq!(next_line(&mut stdout_lines(&mut child)).await, "ready");
    assert_eq!(child.stop().await, ExitReport::Code(8));
}

#[tokio::test]
async fn stop_at_last_kills() {
    let mut child = spawn(&shell(
        "trap '' TERM; echo ready; while :; do sleep 300; done",
    ))
    .unwrap();
    assert_eq!(next_line(&mut stdout_lines(&mut child)).await, "ready");
    assert_eq!(child.stop().await, ExitReport::Signal(libc::SIGKILL));
}

#[tokio::test]
async fn a_stopped_program_can_still_be_asked_to_exit() {
    let mut spec =
        shell("trap 'exit 8' TERM; echo ready; kill -STOP $$; while :; do sleep 1; done");
    spec.stop.term_grace = Duration::from_secs(30);
    let mut child = spawn(&spec).unwrap();
    assert_eq!(next_line(&mut stdout_lines(&mut child)).await, "ready");
    assert_eq!(child.stop().await, ExitReport::Code(8));
}

#[tokio::test]
async fn each_process_of_the_group_may_finish_after_sigterm() {
    // The leader dies of the signal at once; its child needs a moment, as a server behind a
    // wrapper script does.
    let mut spec = shell(
        "sh -c 'trap \"sleep 0.3; echo saved; exit\" TERM; echo ready; while :; do sleep 0.01; done' &
         wait",
    );
    spec.stop.term_grace = Duration::from_secs(30);
    let mut child = spawn(&spec).unwrap();
    let mut lines = stdout_lines(&mut child);
    assert_eq!(next_line(&mut lines).await, "ready");
    assert_eq!(child.stop().await, ExitReport::Signal(libc::SIGTERM));
    assert_eq!(next_line(&mut lines).await, "saved");
}

#[tokio::test]
async fn an_interrupted_wait_loses_nothing() {
    let mut child = spawn(&shell("cat; exit 9")).unwrap();
    let early = tokio::time::timeout(Duration::from_millis(1), child.wait()).await;
    assert!(early.is_err());
    drop(child.take_stdin());
    assert_eq!(child.wait().await, ExitReport::Code(9));
}

#[tokio::test]
async fn the_end_of_the_spawning_thread_does_not_matter() {
    let runtime = tokio::runtime::Handle::current();
    let spawner = std::thread::spawn(move || {
        let _context = runtime.enter();
        spawn(&shell("cat; exit 4")).unwrap()
    });
    // Not by `join`, which would block the only thread of the runtime.
    let mut child = tokio::task::spawn_blocking(|| spawner.join().unwrap())
        .await
        .unwrap();
    let mut stdin = child.take_stdin().unwrap();
    stdin.write_all(b"still here\n").await.unwrap();
    assert_eq!(next_line(&mut stdout_lines(&mut child)).await, "still here");
    drop(stdin);
    assert_eq!(child.wait().await, ExitReport::Code(4));
}
