//! The soaks in small: a few seconds of what `cargo xtask soak` does for minutes.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the tests run the program that they are about"
)]

use std::process::Command;

/// Tests everywhere should see the same kills.
const SEED: &str = "20261116";

fn soak(words: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_cocode-bench"))
        .arg("soak")
        .args(words.split_whitespace())
        .args(["--seed", SEED])
        .output()
        .unwrap();
    let (told, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{told}\n{errors}");
    assert!(told.contains("soak: everything holds"), "{told}");
}

#[test]
fn calls_under_random_kills_end_once_and_leave_nothing_behind() {
    soak("--seconds 5 --calls 500 --servers 10");
}

#[test]
fn calls_through_a_gateway_under_random_kills_end_once_and_leave_nothing_behind() {
    soak("--gateway --seconds 5 --sessions 50 --in-flight 20 --servers 4");
}
