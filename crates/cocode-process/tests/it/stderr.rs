//! Last words: kept, bounded, shown live.

use std::sync::{Arc, Mutex};

use cocode_process::{ExitReport, STDERR_TAIL_BYTES, spawn};

use crate::shell;

#[tokio::test]
async fn the_tail_is_complete_when_the_exit_is_known() {
    let mut child = spawn(&shell(
        "echo one >&2; echo two >&2; printf three >&2; exit 1",
    ))
    .unwrap();
    let tail = child.stderr();
    assert_eq!(child.wait().await, ExitReport::Code(1));
    drop(child);
    assert_eq!(tail.lines(2), ["two", "three"]);
}

#[tokio::test]
async fn a_flood_does_not_block_the_program_or_fill_the_memory() {
    let script = "head -c 100000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last words >&2";
    let mut child = spawn(&shell(script)).unwrap();
    assert_eq!(child.wait().await, ExitReport::Code(0));
    let lines = child.stderr().lines(usize::MAX);
    assert_eq!(lines, ["last words"], "of {STDERR_TAIL_BYTES} kept bytes");
}

#[tokio::test]
async fn the_tap_sees_lines_as_they_come() {
    let (sender, mut seen) = tokio::sync::mpsc::channel(8);
    let mut spec = shell("echo first >&2; read line; echo \"$line\" >&2");
    spec.stderr_tap = Some(Arc::new(move |line: &str| {
        sender.try_send(line.to_owned()).unwrap();
    }));
    let mut child = spawn(&spec).unwrap();
    assert_eq!(seen.recv().await.unwrap(), "first");
    child.take_stdin().unwrap().try_write(b"second\n").unwrap();
    assert_eq!(seen.recv().await.unwrap(), "second");
    assert_eq!(child.wait().await, ExitReport::Code(0));
}

#[tokio::test]
async fn the_tap_has_seen_all_lines_when_the_exit_is_known() {
    let seen = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&seen);
    let mut spec = shell("seq 20000 >&2");
    spec.stderr_tap = Some(Arc::new(move |_line: &str| *counter.lock().unwrap() += 1));
    assert_eq!(spawn(&spec).unwrap().wait().await, ExitReport::Code(0));
    assert_eq!(*seen.lock().unwrap(), 20_000);
}
