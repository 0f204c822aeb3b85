//! The soak in small: a few seconds of what `cargo xtask soak` does for a minute and more.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test runs the program that it is about"
)]

use std::process::Command;

/// Tests everywhere should see the same kills.
const SEED: &str = "20261116";

#[test]
fn calls_under_random_kills_end_once_and_leave_nothing_behind() {
    let words = ["--seconds", "5", "--calls", "500", "--servers", "10"];
    let output = Command::new(env!("CARGO_BIN_EXE_cocode-bench"))
        .arg("soak")
        .args(words)
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
