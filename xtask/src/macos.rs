//! `cargo xtask macos`: whether the product still compiles for macOS, seen from anywhere.
//!
//! Checking links nothing, so the few C files of the dependencies need no compiler for that system:
//! two scripts that write empty files stand in for it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::shell::{cargo, output, program, run, run_logged};
use crate::workspace;

const TARGET: &str = "aarch64-apple-darwin";

/// For the closing lines of a run that could not have the target.
pub(crate) const NOT_CHECKED: &str =
    "NOT CHECKED: whether everything compiles for macOS, for want of its Rust target";

/// How long rustup may take to fetch the target.
const DOWNLOAD_TIME: Duration = Duration::from_mins(3);

const COMPILER: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then : > "$2"; fi
  shift
done
"#;

const ARCHIVER: &str = r#"#!/bin/sh
for word in "$@"; do
  case "$word" in *.a) : > "$word" ;; esac
done
"#;

pub(crate) fn run_check(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask macos"));
    }
    if !is_target_installed() {
        let hint = format!("run `rustup target add {TARGET}` first");
        return Err(Failure::new(format!("{TARGET} is not installed: {hint}")));
    }
    let folder = folder()?;
    let compiler = script(&folder, "cc", COMPILER)?;
    let archiver = script(&folder, "ar", ARCHIVER)?;
    run(cargo()
        .args([
            "check",
            "--workspace",
            "--exclude",
            "xtask",
            "--all-targets",
        ])
        .args(["--locked", "--target", TARGET])
        .env("CC_aarch64_apple_darwin", compiler)
        .env("AR_aarch64_apple_darwin", archiver))
}

/// Checks if the Rust target is here or can be had; says so if not.
pub(crate) fn check_if_possible() -> Result<(), Failure> {
    if !is_target_installed() {
        let log = folder()?.join("rustup.log");
        let mut rustup = program("rustup");
        rustup.args(["target", "add", TARGET]);
        let deadline = Instant::now() + DOWNLOAD_TIME;
        match run_logged(&mut rustup, &log, deadline) {
            Ok(Some(status)) if status.success() => println!("installed {TARGET}"),
            Ok(Some(status)) => println!("cannot install {TARGET}: rustup ended with {status}"),
            Ok(None) => println!("cannot install {TARGET}: rustup took too long"),
            Err(failure) => println!("cannot install {TARGET}: {failure}"),
        }
    }
    if is_target_installed() {
        return run_check(&[]);
    }
    println!("{NOT_CHECKED}");
    Ok(())
}

pub(crate) fn is_target_installed() -> bool {
    let installed = output(program("rustup").args(["target", "list", "--installed"]));
    installed.is_ok_and(|list| list.lines().any(|line| line.trim() == TARGET))
}

fn folder() -> Result<PathBuf, Failure> {
    let folder = workspace::root().join("target/macos");
    fs::create_dir_all(&folder).map_err(|error| Failure::because(folder.display(), error))?;
    Ok(folder)
}

fn script(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    let because = |error| Failure::because(path.display(), error);
    fs::write(&path, text).map_err(because)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(because)?;
    Ok(path)
}
