//! Guarded children against the real system: shells, sessions, signals, death of the owner.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

#[cfg(target_os = "linux")]
mod confinement;
#[cfg(target_os = "linux")]
mod detached;
#[cfg(target_os = "linux")]
mod escapes;
#[cfg(target_os = "linux")]
mod hardening;
mod lifecycle;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod restrictions;
mod spawning;
mod stderr;
#[cfg(target_os = "linux")]
mod system;

use std::ffi::OsString;
use std::time::Duration;

use cocode_process::{GuardedChild, ProcessSpec, StopPolicy};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe;

/// Where the tools of a system are; tests do not read their environment.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Runs a shell script, with little patience.
fn shell(script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new("sh");
    spec.args = vec!["-c".into(), script.into()];
    spec.env = vec![(OsString::from("PATH"), OsString::from(PATH))];
    spec.stop = StopPolicy {
        eof_grace: Duration::from_millis(50),
        term_grace: Duration::from_millis(100),
    };
    spec
}

/// All that a child writes to stdout until the last holder of it is gone.
async fn read_all(child: &mut GuardedChild) -> String {
    let mut text = String::new();
    child
        .take_stdout()
        .unwrap()
        .read_to_string(&mut text)
        .await
        .unwrap();
    text
}

fn stdout_lines(child: &mut GuardedChild) -> Lines<BufReader<pipe::Receiver>> {
    BufReader::new(child.take_stdout().unwrap()).lines()
}

async fn next_line(lines: &mut Lines<BufReader<pipe::Receiver>>) -> String {
    lines.next_line().await.unwrap().unwrap()
}
