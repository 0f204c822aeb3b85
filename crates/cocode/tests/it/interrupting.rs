//! Ctrl-C: the call is cancelled, the server ends, and so does the program. And the end that
//! nobody can catch, after which no process may be left either.

#[cfg(target_os = "linux")]
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use cocode_testkit::StdioServer;
use cocode_testkit::{Gate, Script};

use crate::harness::{Finished, command, start};

pub(crate) fn signal(child: &Child, name: &str) {
    signal_to(child.id(), name);
}

pub(crate) fn signal_to(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([name, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Whether any process was started with the arguments of this server.
#[cfg(target_os = "linux")]
pub(crate) fn is_running(server: &StdioServer) -> bool {
    let own = server.args().last().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.flatten().any(|process| {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        words
            .next()
            .is_some_and(|word| word.ends_with(b"cocode-scripted-server"))
            && words.any(|word| word == own.as_bytes())
    })
}

/// Whether the process exists and is no zombie.
#[cfg(target_os = "linux")]
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next();
    !matches!(
        state.and_then(|rest| rest.chars().next()),
        None | Some('Z' | 'X')
    )
}

/// Comes back when it is no longer so. The test runner ends a test that waits forever.
#[cfg(target_os = "linux")]
fn wait_while(mut is_so: impl FnMut() -> bool) {
    while is_so() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_cancels_the_call_and_leaves_no_process() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let gate = Gate::new();
        let server = Script::new()
            .on("tools/call")
            .hold(&gate)
            .text_result("late")
            .stdio();
        let child = start(&mut command(&["call", "echo"], &server));
        let call = server
            .received()
            .wait_for_blocking(|message| message.is("tools/call"));
        signal(&child, name);
        let cancelled = server
            .received()
            .wait_for_blocking(|message| message.is("notifications/cancelled"));
        let id: u64 = call.id().unwrap().parse().unwrap();
        assert_eq!(cancelled.params()["requestId"], id);
        let finished = Finished::of(child.wait_with_output().unwrap()).with_code(code);
        assert_eq!(finished.stdout, "");
        finished.complains(&["error: interrupted\n", "code: interrupted"]);
        #[cfg(target_os = "linux")]
        assert!(!is_running(&server));
    }
}

#[test]
fn ctrl_c_cancels_a_call_over_http_too() {
    let gate = Gate::new();
    let server = Script::new()
        .on("tools/call")
        .hold(&gate)
        .text_result("late")
        .http();
    let words = ["mcp", "--json", "call", "echo", "--url", &server.url()];
    let child = start(&mut crate::harness::program(words));
    server
        .requests()
        .wait_for_blocking(|request| request.is("tools/call"));
    signal(&child, "-INT");
    let finished = Finished::of(child.wait_with_output().unwrap()).with_code(130);
    assert_eq!(finished.error()["code"], "interrupted");
    server
        .requests()
        .wait_for_blocking(|request| request.is("notifications/cancelled"));
}

#[test]
fn ctrl_c_while_connecting_ends_at_once() {
    let server = Script::new().on("*").ignore().stdio();
    let child = start(&mut command(&["ping"], &server));
    server
        .received()
        .wait_for_blocking(|message| message.is("server/discover"));
    signal(&child, "-INT");
    Finished::of(child.wait_with_output().unwrap()).with_code(130);
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_stubborn_server() {
    let gate = Gate::new();
    let server = Script::new()
        .stay_after_eof()
        .ignore_sigterm()
        .on("tools/call")
        .hold(&gate)
        .ignore()
        .stdio();
    let mut child = start(&mut command(&["call", "echo"], &server));
    server
        .received()
        .wait_for_blocking(|message| message.is("tools/call"));
    signal(&child, "-INT");
    server
        .received()
        .wait_for_blocking(|message| message.is("notifications/cancelled"));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // Who waits for the server waits until it is gone.
    #[cfg(target_os = "linux")]
    {
        assert!(is_running(&server));
        wait_while(|| is_running(&server));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_is_killed_leaves_no_orphan() {
    let gate = Gate::new();
    let server = Script::new()
        .ignore_sigterm()
        .stay_after_eof()
        .on("tools/call")
        .fork()
        .notify(
            "notifications/message",
            r#"{"level":"info","logger":"pids","data":$pids}"#,
        )
        .hold(&gate)
        .ignore()
        .stdio();
    let mut child = start(&mut command(&["call", "echo", "-v"], &server));
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut told = lines.map_while(Result::ok).filter_map(|line| {
        let pids = line.strip_prefix("server info pids: ")?.to_owned();
        Some(serde_json::from_str::<Vec<u32>>(&pids).unwrap())
    });
    let pids = told.next().unwrap();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| is_alive(*pid)) && is_running(&server));
    signal(&child, "-KILL");
    assert_eq!(child.wait().unwrap().code(), None);
    wait_while(|| pids.iter().any(|pid| is_alive(*pid)) || is_running(&server));
}
