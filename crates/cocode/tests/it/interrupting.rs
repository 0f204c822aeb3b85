//! Ctrl-C: the call is cancelled, the server ends, and so does the program.

use std::process::{Child, Command};

use cocode_testkit::{Gate, Script, StdioServer};

use crate::harness::{Finished, command, start};

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Whether any process was started with the arguments of this server.
#[cfg(target_os = "linux")]
fn is_running(server: &StdioServer) -> bool {
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

#[test]
fn ctrl_c_cancels_the_call_and_leaves_no_process() {
    for name in ["-INT", "-TERM"] {
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
        let finished = Finished::of(child.wait_with_output().unwrap()).with_code(130);
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
    let child = start(&mut command(&["call", "echo"], &server));
    server
        .received()
        .wait_for_blocking(|message| message.is("tools/call"));
    signal(&child, "-INT");
    server
        .received()
        .wait_for_blocking(|message| message.is("notifications/cancelled"));
    signal(&child, "-INT");
    Finished::of(child.wait_with_output().unwrap()).with_code(130);
}
