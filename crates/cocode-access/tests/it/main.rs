//! Who may use a gateway and what is written down, against real files, sockets, processes and a real
//! authorization server.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

mod audit_files;
mod audit_processes;
mod audit_tampering;
mod issuer;
mod jwt_attacks;
mod jwt_keys;
mod peer_oauth;
mod token_promises;
mod token_stores;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set in a process that plays a part of a test: where it works, and as what.
const DIRECTORY: &str = "COCODE_ACCESS_TEST_DIRECTORY";
const PART: &str = "COCODE_ACCESS_TEST_PART";

/// Where this process works and as what, if it plays a part of a test.
#[expect(
    clippy::disallowed_methods,
    reason = "they are set by these very tests"
)]
fn part() -> Option<(PathBuf, String)> {
    let directory = std::env::var_os(DIRECTORY)?;
    Some((directory.into(), std::env::var(PART).unwrap()))
}

/// Starts this program again for one test, which finds its part and plays it.
fn start(test: &str, directory: &Path, part: &str) -> Child {
    start_with("", test, directory, part)
}

/// As [`start`], after some words for the shell.
#[expect(
    clippy::disallowed_methods,
    reason = "these are parts of a test, and nothing else runs them"
)]
fn start_with(before: &str, test: &str, directory: &Path, part: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{before}\nexec \"$0\" \"$@\""))
        .arg(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(PART, part)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}
