//! What a scripted server does as a process: ending, flooding stderr, leaving children behind.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::script::ProcessStep;
use crate::template::Scope;

/// Ignores SIGTERM, says so on stderr, and ends by itself long after every test, should no one
/// end it.
const STUBBORN: &str = "trap '' TERM HUP; echo ready >&2; exec sleep 600 2>/dev/null";

/// Does what only a process can do.
pub(crate) async fn perform(step: &ProcessStep, scope: &mut Scope) {
    match step {
        ProcessStep::Exit(code) => exit(*code),
        ProcessStep::Signal(number) => {
            let me = std::process::id();
            let status = Command::new("sh")
                .arg("-c")
                .arg(format!("kill -{number} {me}"))
                .status();
            assert!(
                status.is_ok_and(|status| status.success()),
                "cannot send signal {number}"
            );
            // The signal may take a moment.
            std::future::pending::<()>().await;
        }
        ProcessStep::Stderr(bytes) => {
            let mut line = [b'e'; 80];
            line[79] = b'\n';
            let mut stderr = std::io::stderr().lock();
            let mut left = *bytes;
            while left > 0 {
                let part = left.min(line.len());
                let Some(text) = line.get(line.len() - part..) else {
                    break;
                };
                stderr.write_all(text).expect("stderr takes the flood");
                left -= part;
            }
        }
        ProcessStep::Fork => {
            let same_group = Command::new("sh");
            let mut own_group = Command::new("sh");
            own_group.process_group(0).stdout(Stdio::null());
            let mut own_session = Command::new("setsid");
            own_session.arg("sh").stdout(Stdio::null());
            let pids = [same_group, own_group, own_session].map(fork);
            scope.pids = serde_json::json!(pids).to_string();
        }
    }
}

/// Ends the process without waiting for a read of stdin to return.
#[expect(clippy::exit, reason = "the exit code is what the script asks for")]
pub(crate) fn exit(code: i32) -> ! {
    std::process::exit(code)
}

#[expect(
    clippy::zombie_processes,
    reason = "leaving children behind is the point"
)]
/// Starts a child and comes back when it can no longer be ended kindly.
fn fork(mut command: Command) -> u32 {
    let command = command
        .args(["-c", STUBBORN])
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("sh and setsid are installed");
    let mut ready = String::new();
    let stderr = child.stderr.take().expect("it was just piped");
    BufReader::new(stderr)
        .read_line(&mut ready)
        .expect("the child says that it is ready");
    assert_eq!(ready, "ready\n");
    child.id()
}
